"""Translation models equal to the authors', built from a golden case."""

import numpy as np

from luong_keras import AttentionConfig, ModelConfig, TranslationModel
from luong_keras.interop import load_authors_weights

KINDS = {0: "none", 1: "global", 2: "local", 4: "local"}
SCORES = {1: "dot", 2: "general", 3: "concat"}


def authors_model(meta, weights, precision="float64"):
    """Build the translation model of `meta` with these weights."""
    model = TranslationModel(authors_config(meta, weights, precision))
    load_authors_weights(model, weights)
    return model


def authors_config(meta, weights, precision="float64"):
    score = SCORES.get(meta["attn_opt"], "general")
    attention = AttentionConfig(
        kind=KINDS[meta["attn_func"]],
        score_mode=score,
        concat_form="query_only" if score == "concat" else None,
        alignment="monotonic" if meta["attn_func"] == 2 else "predictive",
        half_width=max(meta.get("D", 1), 1),
        gaussian="inside_softmax" if meta.get("norm_local") else "auto",
    )
    source_size, units = weights["W_emb_src"].shape
    return ModelConfig(
        source_vocabulary_size=source_size,
        target_vocabulary_size=len(weights["W_emb_tgt"]),
        embedding_size=units,
        units=units,
        encoder_layers=meta["num_layers"],
        decoder_layers=meta["num_layers"],
        reverse_source=bool(meta["is_reverse"]),
        attention=attention,
        input_feeding=bool(meta["feed_input"]),
        dropout=0.0,
        dropout_style="authors",
        use_bias=False,
        cell_clip=50.0,
        gradient_clip=1000.0,
        initial_range=0.1,
        precision=precision,
        source_pad_id=meta["src_pad_id"],
        # The begin symbol is never a target, so it serves as padding.
        target_pad_id=meta["tgt_bos_id"],
        bos_id=meta["tgt_bos_id"],
        eos_id=meta["tgt_eos_id"],
    )


def padded(ids, pad_id):
    """Replace the -1 after the last id by the padding of the model."""
    return np.where(ids < 0, pad_id, ids).astype("int32")


def gradient_arrays(model, gradients, authors_weights):
    """Return the gradients of all variables in the authors' layout."""
    by_variable = {
        id(variable): gradient
        for variable, gradient in zip(
            model.training_model.trainable_variables, gradients, strict=True
        )
    }
    return authors_weights(model, lambda v: by_variable[id(v)])
