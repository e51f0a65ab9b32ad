"""A sequence-to-sequence model with attention, from a configuration."""

import dataclasses
from typing import Any

import keras
from keras import ops

from luong_keras.config import AttentionConfig, ModelConfig
from luong_keras.layers import (
    AttentionRNN,
    BahdanauGRUCell,
    BahdanauLSTMCell,
    Bridge,
    Embedding,
    Encoder,
    InputFeedingGRUCell,
    InputFeedingLSTMCell,
    LocalAttention,
    LuongAttention,
    OutputProjection,
    WordLosses,
)
from luong_keras.models.training_model import TrainingModel, named_outputs
from luong_keras.ops.batch_compaction import PerSentence
from luong_keras.ops.devices import resolve_precision

# Classes and names. Keras numbers the names that it gives, but patterns of
# `training.frozen` must fit the paths of every model of a process.
_CELLS = {
    ("luong", "lstm"): (InputFeedingLSTMCell, "input_feeding_lstm_cell"),
    ("luong", "gru"): (InputFeedingGRUCell, "input_feeding_gru_cell"),
    ("bahdanau", "lstm"): (BahdanauLSTMCell, "bahdanau_lstm_cell"),
    ("bahdanau", "gru"): (BahdanauGRUCell, "bahdanau_gru_cell"),
}


class TranslationModel:
    """Layers of one translator and the functional models over them.

    For a source x and a target y (Luong et al. 2015, sections 2 to 3):

        h̄_1 ... h̄_S = encoder(x)
        h̃_t = decoder(y_<t, h̄)                           (eq. 5)
        p(y_t | y_<t, x) = softmax(W_s h̃_t)               (eq. 6)

    Args:
        config: A `ModelConfig`.
        label_smoothing: The smoothing of the training losses.
        sampled_softmax: Number of words from which the training losses are
            estimated, or None for all words.

    Attributes:
        config: The `ModelConfig`, with `precision="auto"` resolved.
        model: Functional model from `source` (B, S) and `target_in` (B, T)
            to logits (B, T, V). With `source_features` the inputs are
            `source` (B, S, F), `source_mask` (B, S) and `target_in`. Show,
            save and decode with this model.
        training_model: Functional model with the additional input
            `target_out` (B, T), to the loss and hit of each word, both
            (B, T). Fit this model.
        encoder, decoder, projection, …: the shared layers.

    Example:
    >>> import numpy as np
    >>> from luong_keras import ModelConfig, TranslationModel
    >>> config = ModelConfig(
    ...     source_vocabulary_size=20, target_vocabulary_size=30,
    ...     embedding_size=8, units=8, encoder_layers=1, decoder_layers=1,
    ... )
    >>> translation_model = TranslationModel(config)
    >>> words = np.ones((2, 5), "int32")
    >>> tuple(translation_model.model([words, words]).shape)
    (2, 5, 30)
    """

    def __init__(
        self,
        config: ModelConfig,
        label_smoothing: float = 0.0,
        sampled_softmax: int | None = None,
    ):
        self.config = dataclasses.replace(
            config, precision=resolve_precision(config.precision)
        )
        self.label_smoothing = label_smoothing
        self.sampled_softmax = sampled_softmax
        self._make_layers()
        self._make_models()

    # Layers.

    def _make_layers(self) -> None:
        config, dtype = self.config, self.config.precision
        side = "shared" if config.shared_embeddings else "source"
        self.source_embedding: Any = None
        if config.source_features is None:
            self.source_embedding = self._make_embedding(
                config.source_vocabulary_size, f"{side}_embedding"
            )
        self.encoder = Encoder(
            config.units,
            num_layers=config.encoder_layers,
            recurrence=config.recurrence,
            bidirectional=config.bidirectional,
            reverse=config.reverse_source,
            dropout=config.dropout,
            dropout_style=config.dropout_style,
            use_bias=config.use_bias,
            cell_clip=config.cell_clip,
            gradient_clip=config.gradient_clip,
            kernel_initializer=self._make_initializer(None),
            dtype=dtype,
            name="encoder",
        )
        self.target_embedding = self.source_embedding
        if not config.shared_embeddings:
            self.target_embedding = self._make_embedding(
                config.target_vocabulary_size, "target_embedding"
            )
        self.decoder = AttentionRNN(
            self._make_cell(),
            dropout=config.dropout,
            dropout_style=config.dropout_style,
            dtype=dtype,
            name="decoder",
        )
        self.bridge: Any = None
        if config.encoder_layers != config.decoder_layers:
            self.bridge = Bridge(
                config.units,
                config.decoder_layers * self.decoder.cell.states_per_layer,
                kernel_initializer=self._make_initializer("glorot_uniform"),
                dtype=dtype,
                name="bridge",
            )
        self.projection = OutputProjection(
            config.target_vocabulary_size,
            embedding=(
                self.target_embedding if config.tied_embeddings else None
            ),
            use_bias=config.output_bias,
            kernel_initializer=self._make_initializer("glorot_uniform"),
            dtype=dtype,
            name="output_projection",
        )

    def _make_initializer(self, default):
        if self.config.initial_range is None:
            return default
        limit = self.config.initial_range
        return keras.initializers.RandomUniform(-limit, limit)

    def _make_embedding(self, vocabulary_size, name):
        return Embedding(
            vocabulary_size,
            self.config.embedding_size,
            embeddings_initializer=self._make_initializer("uniform"),
            dtype=self.config.precision,
            name=name,
        )

    def _make_cell(self):
        config = self.config
        options = {"num_layers": config.decoder_layers}
        if config.recurrence == "lstm":
            options["cell_clip"] = config.cell_clip
            options["gradient_clip"] = config.gradient_clip
        if config.decoder == "luong":
            options["input_feeding"] = config.input_feeding
        if config.initial_range is not None:
            options["kernel_initializer"] = self._make_initializer(None)
            options["recurrent_initializer"] = self._make_initializer(None)
        cell, name = _CELLS[config.decoder, config.recurrence]
        return cell(
            config.units,
            name=name,
            attention=self._make_attention(config.attention),
            use_bias=config.use_bias,
            attentional_bias=config.attentional_bias,
            dtype=config.precision,
            **options,
        )

    def _make_attention(self, attention: AttentionConfig):
        if attention.kind == "none":
            return None
        options = {
            "name": "luong_attention",
            "score_mode": attention.score_mode,
            "use_scale": attention.use_scale,
            "kernel_initializer": self._make_initializer("glorot_uniform"),
            "dtype": self.config.precision,
        }
        if attention.score_mode == "concat":
            options["concat_form"] = attention.concat_form
        if attention.kind == "local":
            options["name"] = "local_attention"
            return LocalAttention(
                attention.alignment,
                attention.half_width,
                gaussian=attention.gaussian,
                clamp_position=attention.clamp_position,
                **options,
            )
        if attention.score_mode == "location":
            options["max_length"] = attention.max_length
            options["mask_location"] = attention.mask_location
        return LuongAttention(**options)

    # Functional models.

    def _make_models(self) -> None:
        inputs = [keras.Input((None,), dtype="int32", name="source")]
        if self.config.source_features is not None:
            inputs = [
                keras.Input((None, self.config.source_features), name="source"),
                keras.Input((None,), dtype="bool", name="source_mask"),
            ]
        target_in = keras.Input((None,), dtype="int32", name="target_in")
        target_out = keras.Input((None,), dtype="int32", name="target_out")
        vectors, memory, mask, states = self._run_layers([*inputs, target_in])
        self.model = keras.Model(
            [*inputs, target_in], self.projection(vectors), name="translator"
        )
        losses = WordLosses(
            self.projection,
            self.label_smoothing,
            self.config.target_pad_id,
            self.sampled_softmax,
            dtype=self.config.precision,
            name="word_losses",
        )(vectors, target_out)
        self.training_model = TrainingModel(
            [*inputs, target_in, target_out],
            named_outputs(word=losses[0], hits=losses[1]),
            name="translator_training",
        )
        self.encoding_model = keras.Model(
            inputs, [memory, mask, *states], name="translator_encoding"
        )

    def _run_layers(self, inputs):
        """Return the decoder's vectors h̃ and the memory it attends to.

        The memory's mask and the decoder's initial states follow.
        """
        source, *masks, target_in = inputs
        if self.source_embedding is not None:
            masks = [ops.not_equal(source, self.config.source_pad_id)]
            source = self.source_embedding(source)
        (mask,) = masks
        memory, *states = self.encoder(source, mask=mask)
        if self.bridge is not None:
            num_states = self.decoder.cell.states_per_layer
            states = self.bridge(states[-num_states:])
        memory_arguments = {}
        if self.has_attention:
            memory_arguments = {"memory": memory, "memory_mask": mask}
        vectors = self.decoder(
            self.target_embedding(target_in),
            initial_state=states,
            start_position=0,
            **memory_arguments,
        )
        return vectors, memory, mask, states

    @property
    def has_attention(self) -> bool:
        """True if the decoder has attention, which gives alignments."""
        return self.decoder.cell.attention is not None

    # Parts, for decoding.

    def encode(self, *source):
        """Return the memory (B, S, M), its mask (B, S) and initial states.

        Args:
            *source: Ids (B, S), or with `source_features` the features
                (B, S, F) and their mask (B, S).
        """
        memory, mask, *states = self.encoding_model(list(source))
        states = self.decoder.initial_states(states[0], states)
        return memory, mask, states

    def decoding_step(self, memory, mask, words=None):
        """Return a function of one decoding step over this memory.

        It takes `ids` (B, K), `states` (a list of (B, K, U)) and the 0-based
        `position`, and returns logits (B, K, V), the new states and the
        attention weights (B, K, S), zeros without attention. With `words`
        (C,), a shortlist of ids, the logits are (B, K, C) and `ids` are indices
        in the shortlist.
        """
        return DecodingStep(self, memory, mask, words)


class DecodingStep(PerSentence):
    """Step function of a search, see `luong_keras.decoding.search`.

    Args:
        translation_model: The `TranslationModel` of the decoder.
        memory: (B, S, M).
        mask: (B, S).
        words: (C,) ids of a shortlist, or None for all words. With a
            shortlist, the step reads and scores indices of it.
    """

    per_sentence = ("projected_memory", "mask")

    def __init__(self, translation_model, memory, mask, words=None):
        self.translation_model = translation_model
        cell = translation_model.decoder.cell
        # Everything that a step reads is prepared here, once.
        self.weights = cell.loop_weights()
        self.output_weights = translation_model.projection.loop_weights(words)
        self.words = words
        projected = cell.project_memory(memory) or ()
        # Keys and values have a row per sentence; the value kernel has none.
        self.projected_memory, self.value_kernel = projected[:2], projected[2:]
        self.mask = mask

    def __call__(self, ids, states, position):
        """Return logits (B, K, V), new states and alignments (B, K, S)."""
        model = self.translation_model
        if self.words is not None:
            ids = ops.take(self.words, ids)
        states, alignments = model.decoder.cell.step(
            self.weights,
            # The words' share of the gates of the first layer.
            model.decoder.cell.project_inputs(model.target_embedding(ids)),
            states,
            (*self.projected_memory, *self.value_kernel) or None,
            self.mask,
            position,
        )
        vectors = ops.cast(states[-1], model.decoder.compute_dtype)
        if alignments is None:
            shape = (*ops.shape(ids), ops.shape(self.mask)[1])
            alignments = ops.zeros(shape, dtype=vectors.dtype)
        logits = model.projection.logits(vectors, self.output_weights)
        return logits, states, alignments
