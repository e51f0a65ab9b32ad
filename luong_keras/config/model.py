"""Settings of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from luong_keras.config.checks import (
    Count,
    Fraction,
    NonNegative,
    Positive,
    Settings,
)
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

Precision: TypeAlias = Literal[
    "auto",
    "float32",
    "mixed_bfloat16",
    "mixed_float16",
    "float64",
    "bfloat16",
    "float16",
]


@dataclass(frozen=True)
class AttentionConfig(Settings):
    """Settings of the attention of a model."""

    # global: attention to the whole source; local: to a window of it
    kind: Literal["none", "global", "local"] = "local"
    # similarity of the decoder's state and a source position (section 3.1)
    score_mode: Literal[
        "dot", "scaled_dot", "cosine", "general", "concat", "location"
    ] = "general"
    # concat: joint (the paper), separate or query_only (the authors' program)
    concat_form: Literal["joint", "separate", "query_only"] | None = None
    # local: local-m or local-p (section 3.2)
    alignment: Literal["monotonic", "predictive"] = "predictive"
    half_width: Count = 10  # local: D, the half width of the window
    # local: form of the Gaussian around p_t (eq. 10); auto: after_softmax for
    # predictive alignment, none for monotonic
    gaussian: Literal[
        "auto", "after_softmax", "renormalized", "inside_softmax", "none"
    ] = "auto"
    # local-m: keep p_t at the last word after t passes it (the authors'
    # program)
    clamp_position: bool = True
    max_length: Count = 50  # location: number of positions
    # location: restrict the softmax to the sentence; False loses the weight of
    # positions outside (the authors' program)
    mask_location: bool = True
    use_scale: bool = False  # multiply the scores by a trained number

    def _check(self) -> None:
        if self.kind == "local" and self.score_mode == "location":
            raise ValueError(
                "kind='local' looks at a window and score_mode='location' at "
                "absolute positions: choose a content score, or "
                "kind='global'."
            )


@dataclass(frozen=True)
class ModelConfig(Settings):
    """Settings of a translation model.

    `luong-keras train --help-all` and the comments beside the fields describe
    them.
    """

    # number of source words, special tokens included
    source_vocabulary_size: Count = 50_000
    # number of target words, special tokens included
    target_vocabulary_size: Count = 50_000
    # F: the source is F float features per position, without a vocabulary
    source_features: Count | None = None
    embedding_size: Count = 1000  # E, the width of the word vectors
    units: Count = 1000  # U, the width of each layer
    encoder_layers: Count = 4  # number of recurrent layers of the encoder
    decoder_layers: Count = 4  # number of recurrent layers of the decoder
    # recurrent units of encoder and decoder
    recurrence: Literal["lstm", "gru"] = "lstm"
    bidirectional: bool = False  # each direction then has U / 2 units
    reverse_source: bool = True  # read the source backwards (section 4.2)
    # "luong": attention after the recurrence; "bahdanau": before it
    decoder: Literal["luong", "bahdanau"] = "luong"
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    # the attentional vector is part of the next step's input (section 3.3)
    input_feeding: bool = True
    # fraction of the units that training drops from the input of each layer
    dropout: Fraction = 0.2
    # zaremba: also from the output of the highest layer; authors: not from it;
    # sequence: as zaremba, with one mask for all steps of a sentence
    dropout_style: Literal["zaremba", "authors", "sequence"] = "zaremba"
    use_bias: bool = True  # bias of the gates; the authors' program has none
    attentional_bias: bool = False  # bias in eq. 5
    output_bias: bool = False  # bias in eq. 6
    # bound of the LSTM's cell state; 50 in the authors' program
    cell_clip: Positive | None = None
    # bound of the gradient of each layer's input; 1000 in the authors' program
    gradient_clip: Positive | None = None
    # use the target embedding as the output matrix
    tied_embeddings: bool = False
    # use one embedding for both sides; with tied_embeddings this is three-way
    # tying (Press and Wolf 2017)
    shared_embeddings: bool = False
    initial_range: NonNegative | None = 0.1  # U[-r, r]; None: Keras' defaults
    # auto: float32 or mixed_bfloat16, whichever multiplies matrices faster on
    # the machine where the run begins; on a GPU without bfloat16, mixed_float16
    # with a scaled loss
    precision: Precision = "float32"
    source_pad_id: int = PAD_ID  # id of <pad> in the source
    target_pad_id: int = PAD_ID  # id of <pad> in the target
    bos_id: int = BOS_ID  # id of <s>
    eos_id: int = EOS_ID  # id of </s>

    def _check(self) -> None:
        if self.shared_embeddings and self.source_features is not None:
            raise ValueError(
                "shared_embeddings=true needs words on both sides. Received: "
                f"source_features={self.source_features}. Set one of them to "
                "its default."
            )
        sizes = (self.source_vocabulary_size, self.target_vocabulary_size)
        if self.shared_embeddings and sizes[0] != sizes[1]:
            raise ValueError(
                "shared_embeddings=true means one vocabulary, so both sizes "
                f"must be equal. Received: {sizes[0]} and {sizes[1]}."
            )
        if self.reverse_source and self.bidirectional:
            raise ValueError(
                "reverse_source=True and bidirectional=True exclude each "
                "other: a bidirectional encoder reads both ways. Set one of "
                "them to false."
            )
        if self.bidirectional and self.units % 2:
            raise ValueError(
                "A bidirectional encoder splits `units` between its two "
                f"directions. Expected: an even number. Received: "
                f"units={self.units}."
            )
        if self.decoder == "bahdanau" and self.attention.kind == "none":
            raise ValueError(
                "decoder='bahdanau' feeds the context to the recurrence and "
                "needs attention. Received: attention.kind='none'."
            )
        clips = self.cell_clip is not None or self.gradient_clip is not None
        if clips and self.recurrence != "lstm":
            raise ValueError(
                "cell_clip and gradient_clip belong to recurrence='lstm'. "
                f"Received: recurrence={self.recurrence!r}."
            )
