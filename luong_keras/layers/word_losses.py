"""The losses of target words, computed right behind the projection."""

import keras

from luong_keras.layers.argument_checks import check_numbers
from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.ops.cross_entropy import check_smoothing
from luong_keras.ops.double_precision import check_float64
from luong_keras.special_tokens import PAD_ID


@keras.saving.register_keras_serializable(package="luong_keras")
class WordLosses(CheckedLayer):
    """`OutputProjection.word_losses` as a step of a functional model.

    Args:
        projection: the `OutputProjection` of the model, shared with it.
        label_smoothing: applied in training only, so that a validation
            perplexity is that of the words.
        pad_id: the padding id of the targets.
        sampled: in training, how many words of the vocabulary the losses are
            estimated from (`ops.sampled_loss`); all where None, and where
            there are no more. The vocabulary is to be sorted by frequency.
        seed: of these words.
        r_drop: in training, the weight of the divergence between two passes
            with other dropout (R-Drop, Liang et al. 2021, eq. 4); 0 for one
            pass.
        name, dtype, trainable: as in every Keras layer.

    Call arguments:
        vectors: h̃, (B, T, U); in training with `r_drop` (2 B, T, U), the two
            passes of a row after each other.
        targets: (B, T) ids.

    Output:
        losses and hits, both (B, T), 0 at padding.

    Example:

    >>> import numpy as np
    >>> from luong_keras.layers import OutputProjection, WordLosses
    >>> losses, hits = WordLosses(OutputProjection(20))(
    ...     np.ones((2, 3, 8)), np.array([[5, 3, 0], [7, 8, 3]])
    ... )
    >>> tuple(losses.shape), float(losses[0, 2])
    ((2, 3), 0.0)
    """

    def __init__(
        self,
        projection,
        label_smoothing=0.0,
        pad_id=PAD_ID,
        sampled=None,
        seed=None,
        r_drop=0.0,
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_smoothing(label_smoothing)
        if sampled is not None:
            check_numbers(sampled=sampled)
            if label_smoothing or r_drop:
                raise ValueError(
                    "The smoothed loss needs the logits of all words, and so "
                    "does the divergence of two passes. Received: "
                    f"sampled={sampled}, label_smoothing={label_smoothing}, "
                    f"r_drop={r_drop}. Leave `sampled` out, or the others."
                )
        if r_drop < 0:
            raise ValueError(
                "`r_drop` is the weight of a divergence, 0 or more. Received: "
                f"r_drop={r_drop}. Use 1 to 5, for example."
            )
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        check_float64(self)
        self.supports_masking = True
        self.projection = projection
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id
        self.sampled = sampled
        self.seed = seed
        self.r_drop = r_drop
        self.seed_generator = None
        if self.estimates:
            self.seed_generator = keras.random.SeedGenerator(seed)

    @property
    def estimates(self):
        """Whether the training loss samples the vocabulary."""
        size = self.projection.vocabulary_size
        return self.sampled is not None and self.sampled < size - 1

    def build(self, vectors_shape, targets_shape=None):
        if not self.projection.built:
            self.projection.build(vectors_shape)
        self.built = True

    def _check_widths(self, vectors, **others):
        super()._check_widths(vectors=vectors)  # targets are as long as these

    def _check_call(self, vectors, **others):
        self.projection._check_call(vectors)
        self.projection._check_widths(vectors=vectors)

    def compute_mask(self, inputs, previous_mask):
        # What comes out is zero at padding and needs no mask.
        return None

    def call(self, vectors, targets, training=False):
        if training and self.estimates:
            return self.projection.sampled_losses(
                *(vectors, targets, self.sampled, self.seed_generator),
                self.pad_id,
            )
        if not training:
            return self.projection.word_losses(
                vectors, targets, pad_id=self.pad_id
            )
        return self.projection.word_losses(
            *(vectors, targets, self.label_smoothing, self.pad_id, True),
            self.r_drop,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "projection": keras.saving.serialize_keras_object(self.projection),
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "sampled": self.sampled,
            "seed": self.seed,
            "r_drop": self.r_drop,
        }

    @classmethod
    def from_config(cls, config):
        projection = keras.saving.deserialize_keras_object(config["projection"])
        return cls(**{**config, "projection": projection})
