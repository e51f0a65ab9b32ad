"""Output projection of a translator."""

import keras
from keras import ops

from luong_keras.config.checks import check_fraction, check_integers
from luong_keras.layers.argument_checks import check_floats, check_layer
from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.layers.embedding import embedding_table
from luong_keras.layers.initializers import fresh_initializer
from luong_keras.missing_package import private_name
from luong_keras.ops.chunked_loss import chunked_word_losses, evaluates
from luong_keras.ops.cross_entropy import (
    draw_words,
    nan_where_unknown,
    real_ids,
    sampled_word_losses,
    without_padding,
    word_losses,
)
from luong_keras.ops.masking import shapes_compatible
from luong_keras.ops.products import product
from luong_keras.special_tokens import PAD_ID


@keras.saving.register_keras_serializable(package="luong_keras")
class OutputProjection(CheckedLayer):
    """Logits over the target vocabulary, W_s h̃_t.

    p(y_t | y_<t, x) = softmax(W_s h̃_t)  (eq. 6). With a tied embedding the
    rows of W_s are the embedding vectors (Press and Wolf 2017); if their
    width E differs from U, a learned matrix (U, E) projects h̃_t first.

    Args:
        vocabulary_size: V, including the special tokens.
        embedding: A `keras.layers.Embedding` of V rows to tie W_s to, or
            None for a separate matrix.
        use_bias: Whether every word has a bias (none in the paper).
        kernel_initializer: Initializer of the matrices.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        vectors: H̃, (..., U).

    Output:
        logits (..., V), in at least float32.

    Example:

    >>> import numpy as np
    >>> from luong_keras import OutputProjection
    >>> tuple(OutputProjection(20)(np.ones((2, 3, 8))).shape)
    (2, 3, 20)

    Reference:
        Luong, Pham and Manning (2015), eq. 6.
    """

    def __init__(
        self,
        vocabulary_size,
        embedding=None,
        use_bias=False,
        kernel_initializer="glorot_uniform",
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_integers(vocabulary_size=vocabulary_size)
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self._tie_may_be_lost = isinstance(embedding, dict)
        if self._tie_may_be_lost:  # from a saved configuration
            embedding = keras.saving.deserialize_keras_object(embedding)
        check_layer(keras.layers.Embedding, optional=True, embedding=embedding)
        if embedding is not None and embedding.input_dim != vocabulary_size:
            raise ValueError(
                "A tied embedding needs one row per word. Expected: "
                f"embedding.input_dim={vocabulary_size}. Received: "
                f"embedding.input_dim={embedding.input_dim}."
            )
        self.supports_masking = True
        self.vocabulary_size = vocabulary_size
        self.embedding = embedding
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, vectors_shape):
        units, width = vectors_shape[-1], self.vocabulary_size
        if self.embedding is not None:
            if not self.embedding.built:
                self.embedding.build()
            width = self.embedding.output_dim
        self.kernel = None
        if self.embedding is None or width != units:
            self.kernel = self.add_weight(
                name="kernel",
                shape=(units, width),
                initializer=fresh_initializer(self.kernel_initializer),
            )
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias",
                shape=(self.vocabulary_size,),
                initializer="zeros",
            )
        self.built = True

    def _check_call(self, vectors, **others):
        check_floats("vectors", vectors)
        share_again(self, vectors)
        if self._tie_may_be_lost:
            self._tie_may_be_lost = False
            self._tie_again(vectors)

    def _tie_again(self, vectors):
        """Tie to the embedding with which `vectors` were computed.

        `clone_model` makes each layer of a model from its configuration,
        which gives this layer another embedding of the same name. So does
        loading a file whose embedding is part of an inner model.
        """
        for layer in layers_before(vectors):
            if (
                isinstance(layer, keras.layers.Embedding)
                and layer.name == self.embedding.name
            ):
                _replace_layer(self, "embedding", layer)
                return

    def call(self, vectors):
        return self.logits(vectors, self.loop_weights())

    def _output_shape(self, vectors_shape):
        return (*vectors_shape[:-1], self.vocabulary_size)

    def loop_weights(self, words=None):
        """Return the weights that `logits` reads, cast and transposed.

        Loops fetch them once for all steps. With `words` (C,) they give only
        the logits of these ids, (..., C).
        """
        dtype = self.compute_dtype
        kernels = []
        if self.kernel is not None:
            kernel = ops.convert_to_tensor(self.kernel)
            if words is not None and self.embedding is None:
                kernel = ops.take(kernel, words, axis=1)
            kernels.append(ops.cast(kernel, dtype))
        if self.embedding is not None:
            table = embedding_table(self.embedding, words)
            kernels.append(ops.transpose(ops.cast(table, dtype)))
        bias = ops.convert_to_tensor(self.bias) if self.use_bias else None
        if words is not None and self.use_bias:
            bias = ops.take(bias, words)
        return kernels, bias

    def logits(self, vectors, weights):
        """Map vectors (..., U) to logits (..., V) by `loop_weights()`."""
        (*inner_kernels, kernel), bias = weights
        for inner_kernel in inner_kernels:
            vectors = product(vectors, inner_kernel)
        return product(vectors, kernel, bias)

    def word_losses(
        self,
        vectors,
        targets,
        label_smoothing=0.0,
        pad_id=PAD_ID,
        training=False,
    ):
        """Return the loss and hit of each target word, without the logits.

        vectors (B, T, U), targets (B, T) ids; returns losses -log p (eq. 4)
        and hits, both (B, T) and 0 at padding. With `training` the gradients
        are computed together with the losses, chunk by chunk of real words,
        so that the logits are never all held at once; nor are they in an
        evaluation of a `TrainingModel`.
        """
        check_fraction(label_smoothing=label_smoothing)
        _check_targets(vectors, targets)
        if not training and not evaluates.get():
            logits = self.call(vectors)
            return word_losses(logits, targets, label_smoothing, pad_id)
        (*inner_kernels, kernel), bias = self.loop_weights()
        vectors = ops.reshape(vectors, (-1, vectors.shape[-1]))
        for inner_kernel in inner_kernels:
            vectors = product(vectors, inner_kernel)
        results = chunked_word_losses(
            vectors,
            kernel,
            bias,
            ops.reshape(targets, (-1,)),
            label_smoothing,
            pad_id,
            bool(training),
        )
        return tuple(ops.reshape(x, ops.shape(targets)) for x in results)

    def sampled_losses(self, vectors, targets, count, seed, pad_id=PAD_ID):
        """Estimate `word_losses` from `count` words of the vocabulary.

        `seed` is a `keras.random.SeedGenerator`: each call draws new words.
        """
        _check_targets(vectors, targets)
        sampled_words, log_pi = draw_words(self.vocabulary_size, count, seed)
        (*inner_kernels, kernel), bias = self.loop_weights(sampled_words)

        def losses_of(vectors, targets):
            for inner_kernel in inner_kernels:
                vectors = product(vectors, inner_kernel)
            target_words = real_ids(targets, pad_id)
            (*_, target_kernel), target_bias = self.loop_weights(target_words)
            losses, hits = sampled_word_losses(
                vectors,
                sampled_words,
                log_pi,
                (kernel, bias),
                (target_kernel, target_bias),
                targets,
                pad_id,
            )
            size = self.vocabulary_size
            return nan_where_unknown(losses, target_words, size), hits

        results = without_padding(
            losses_of,
            ops.reshape(vectors, (-1, vectors.shape[-1])),
            ops.reshape(targets, (-1,)),
            pad_id,
        )
        return tuple(ops.reshape(x, ops.shape(targets)) for x in results)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding": keras.saving.serialize_keras_object(self.embedding),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


def _check_targets(vectors, targets):
    """Check that targets (B, T) match vectors (B, T, U)."""
    expected, shape = tuple(vectors.shape)[:-1], tuple(targets.shape)
    if not shapes_compatible(shape, expected):
        raise ValueError(
            "`targets` must have one id per vector. Expected: shape "
            f"{expected}. Received: {shape}. Shift the words that the decoder "
            "reads and the words that it predicts by one, to equal lengths."
        )


def _replace_layer(layer, name, other):
    """Replace a layer that is an attribute of another layer."""
    tracker = private_name("keras.Layer._tracker", layer)
    tracker.unlock()
    tracker.untrack(getattr(layer, name))
    setattr(layer, name, other)
    if layer.built:
        tracker.lock()


def share_again(layer, vectors):
    """Give the losses of a copied model the projection of its logits.

    A copy makes both layers from their configurations: two projections with
    one name. `layer`, the losses or the projection, is about to read `vectors`.
    """
    operation, *_ = getattr(vectors, "_keras_history", (None,))
    if operation is None:
        return
    nodes = private_name("keras.Operation._outbound_nodes", operation)
    readers = [layer, *(node.operation for node in nodes)]
    projections = {
        reader.name: reader
        for reader in readers
        if isinstance(reader, OutputProjection)
    }
    for losses in readers:
        if getattr(losses, "sharing_may_be_lost", False):
            shared = projections.get(losses.projection.name)
            if shared is not None:
                losses.sharing_may_be_lost = False
                _replace_layer(losses, "projection", shared)


def layers_before(tensor):
    """Yield the layers, with inner ones, that computed a symbolic tensor."""
    if not isinstance(tensor, keras.KerasTensor):
        return
    # Only a tensor of a layer has a history; an input always has one.
    example = keras.Input((), name="known")
    private_name("keras.KerasTensor._keras_history", example)
    queue, seen = [tensor], set()
    while queue:
        operation, node_index, _ = getattr(
            queue.pop(), "_keras_history", (None, None, None)
        )
        if operation is None or (id(operation), node_index) in seen:
            continue
        seen.add((id(operation), node_index))
        if isinstance(operation, keras.Layer):
            yield from private_name("keras.Layer._flatten_layers", operation)()
        nodes = private_name("keras.Operation._inbound_nodes", operation)
        queue += nodes[node_index].input_tensors
