"""Layer of word losses over an output projection."""

import keras

from luong_keras.config.checks import check_fraction, check_integers
from luong_keras.layers.argument_checks import check_layer
from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.layers.output_projection import (
    OutputProjection,
    share_again,
)
from luong_keras.special_tokens import PAD_ID


@keras.saving.register_keras_serializable(package="luong_keras")
class WordLosses(CheckedLayer):
    """`OutputProjection.word_losses` as a layer of a functional model.

    Args:
        projection: The `OutputProjection` of the model, shared with it.
        label_smoothing: The smoothing in training; none in validation, so
            that a validation perplexity is that of the words.
        pad_id: The padding id of the targets.
        sampled: Number of words from which training losses are estimated
            (`ops.cross_entropy`), of a vocabulary sorted by frequency; all
            words when None or when the vocabulary has no more.
        seed: Seed of the sampled words.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        vectors: H̃, (B, T, U).
        targets: (B, T) ids.

    Output:
        losses and hits, both (B, T), 0 at padding. A hit is 1 where no word
        has a higher logit than the target. A target outside the vocabulary has
        the loss NaN if the backend raises no error, as on JAX.

    Example:

    >>> import keras, numpy as np
    >>> from luong_keras.layers import OutputProjection, WordLosses
    >>> losses, hits = WordLosses(OutputProjection(20))(
    ...     np.ones((2, 3, 8)), np.array([[5, 3, 0], [7, 8, 3]])
    ... )
    >>> keras.ops.convert_to_numpy(losses)[0, 2].item()
    0.0
    """

    def __init__(
        self,
        projection,
        label_smoothing=0.0,
        pad_id=PAD_ID,
        sampled=None,
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_fraction(label_smoothing=label_smoothing)
        if sampled is not None:
            check_integers(sampled=sampled)
            if label_smoothing:
                raise ValueError(
                    "The smoothed loss needs the logits of all words. "
                    f"Received: sampled={sampled}, "
                    f"label_smoothing={label_smoothing}. Leave one of them out."
                )
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.sharing_may_be_lost = isinstance(projection, dict)
        if self.sharing_may_be_lost:  # from a saved configuration
            projection = keras.saving.deserialize_keras_object(projection)
        check_layer(OutputProjection, projection=projection)
        self.supports_masking = True
        self.projection = projection
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id
        self.sampled = sampled
        self.seed = seed
        self.seed_generator = None
        if self.estimates:
            self.seed_generator = keras.random.SeedGenerator(seed)

    @property
    def estimates(self):
        """True if the training loss uses a sampled softmax."""
        size = self.projection.vocabulary_size
        return self.sampled is not None and self.sampled < size - 1

    def build(self, vectors_shape, targets_shape=None):
        if not self.projection.built:
            self.projection.build(vectors_shape)
        self.built = True

    def _check_widths(self, vectors, **others):
        super()._check_widths(vectors=vectors)  # targets have no width

    def _check_call(self, vectors, **others):
        share_again(self, vectors)
        self.projection._check_call(vectors)
        self.projection._check_widths(vectors=vectors)

    def compute_mask(self, inputs, previous_mask):
        # The outputs are zero at padding and need no mask.
        return None

    def call(self, vectors, targets, training=False):
        if training and self.estimates:
            return self.projection.sampled_losses(
                vectors,
                targets,
                self.sampled,
                self.seed_generator,
                self.pad_id,
            )
        smoothing = self.label_smoothing if training else 0.0
        return self.projection.word_losses(
            vectors, targets, smoothing, self.pad_id, training
        )

    def _output_shape(self, vectors_shape, targets_shape=None):
        return (tuple(vectors_shape[:-1]),) * 2

    def get_config(self):
        return {
            **super().get_config(),
            "projection": keras.saving.serialize_keras_object(self.projection),
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "sampled": self.sampled,
            "seed": self.seed,
        }
