"""Word losses from vectors, without the logits of all words at once.

The projection, its softmax, the loss (eq. 4 and 6) and their gradients are
computed together, chunk by chunk, and only for real words: at most the last
chunk has padding. For a word y with logits l = x W + b and smoothing e (see
`cross_entropy.masked_cross_entropy`):

    loss = log sum exp(l) - (1 - e) l_y - e mean(l)
    d loss / d l = softmax(l) - (1 - e) onehot(y) - e / V

so the gradients of x, W and b for an upstream gradient of 1 are known with the
loss. The losses of this library give each word the same upstream gradient,
which then multiplies them; unequal weights need a second pass.

In float16 an optimizer scales the loss, so that small gradients are not lost.
This scale arrives with the upstream gradient, too late for d loss / d l, most
of which underflows in float16: it gets a separate scale.
"""

import functools
import operator
from contextvars import ContextVar

from keras import backend, ops

from luong_keras.ops.cross_entropy import nan_where_unknown, real_ids
from luong_keras.ops.devices import has_gpu
from luong_keras.ops.loops import sequential_while_loop, with_custom_gradient
from luong_keras.ops.products import product

# Logits held at once: 32 MB in float32; 512 MB on a GPU, because small products
# leave most of a GPU idle.
_MAX_LOGITS, _MAX_LOGITS_ON_GPU = 2**23, 2**27
# Whether losses outside of training are computed in chunks, too. They have no
# gradients then; whole ones can be differentiated twice.
evaluates = ContextVar("luong_keras_evaluates", default=False)
# Chunks that TensorFlow computes in parallel. The sequential operations of one
# chunk leave cores to the other.
_PARALLEL_CHUNKS = 2


def chunked_word_losses(
    vectors,
    kernel,
    bias,
    targets,
    label_smoothing=0.0,
    pad_id=0,
    training=True,
):
    """Return the losses and hits of words, (N,) each, 0 at padding.

    vectors (N, U), kernel (U, V), bias (V,) or None, targets (N,) ids. The
    result equals `cross_entropy.word_losses` of the logits. Without `training`
    it has no gradients.
    """
    arguments = [vectors, kernel] if bias is None else [vectors, kernel, bias]
    words = _Words(
        [ops.stop_gradient(x) for x in arguments],
        ops.cast(targets, "int32"),
        label_smoothing,
        pad_id,
    )
    if not training:
        return words.run(None)
    ones = ops.ones_like(targets, dtype=words.dtype)
    losses, hits, *unit_gradients = words.run(ones)

    def gradients(upstream):
        weights = upstream[0]
        # The weight of a real word if there is one; 0 without words.
        first_weight = ops.sum(
            ops.take(weights, words.order[:1]), axis=0, keepdims=True
        )
        real_weights = ops.where(words.is_real, weights, first_weight)
        real_weights = ops.concatenate([real_weights, first_weight])
        lowest, highest = ops.min(real_weights), ops.max(real_weights)

        def weighted_gradients():
            # The weights may be as large as the optimizer's loss scale.
            largest = ops.maximum(-lowest, highest)  # in magnitude
            return [d * largest for d in words.run(weights / largest)[2:]]

        return ops.cond(
            lowest == highest,
            lambda: [d * lowest for d in unit_gradients],
            weighted_gradients,
        )

    return with_custom_gradient([losses, hits], gradients, arguments)


class _Words:
    """Words of a batch, real ones first, with the weights that project them."""

    def __init__(self, arguments, targets, label_smoothing, pad_id):
        self.vectors, self.kernel, *biases = arguments
        self.bias = biases[0] if biases else None
        self.label_smoothing = label_smoothing
        self.vocabulary_size = self.kernel.shape[-1]
        self.dtype = product(self.vectors[:1], self.kernel).dtype
        self.num_words = ops.shape(targets)[0]
        self.is_real = ops.not_equal(targets, pad_id)
        self.targets = real_ids(targets, pad_id)
        is_real = ops.cast(self.is_real, "int32")
        self.order = ops.cast(ops.argsort(1 - is_real), "int32")
        self._cut_chunks(ops.sum(is_real))
        self.scale = self._gradient_scale()

    def _cut_chunks(self, num_real):
        """Set the number of chunks and the number of words per chunk."""
        max_logits = _MAX_LOGITS_ON_GPU if has_gpu() else _MAX_LOGITS
        # A chunk also adds to the kernel's gradient, (U, V).
        width = self.kernel.shape[0]
        limit = max(max_logits // self.vocabulary_size, width // 8, 1)
        self.parallel_chunks = 1
        if backend.backend() == "tensorflow":
            if not has_gpu():
                self.parallel_chunks = _PARALLEL_CHUNKS
            self.num_real = num_real
            limit = max(limit // self.parallel_chunks, 1)
            self.num_chunks = _ceil_divide(
                num_real, limit * self.parallel_chunks
            )
            parts = ops.maximum(self.num_chunks, 1) * self.parallel_chunks
            self.chunk_size = _ceil_divide(num_real, parts)
            return
        # Shapes cannot depend on values: the last chunk may have padding.
        # Without words there is one chunk, which is empty.
        max_chunks = max(_ceil_divide(self.num_words, limit), 1)
        self.chunk_size = _ceil_divide(self.num_words, max_chunks)
        self.num_chunks = _ceil_divide(num_real, max(self.chunk_size, 1))
        padding = max_chunks * self.chunk_size - self.num_words
        self.padded_order = ops.pad(
            self.order, [[0, padding]], constant_values=self.num_words
        )

    def _gradient_scale(self):
        """Return the scale of the logits' gradients in float16, else None.

        It keeps sums over the words of a chunk below 2 ** 15. Its limit of
        2 ** 10 is for few words, whose sums over the vocabulary could overflow.
        """
        if backend.standardize_dtype(self.kernel.dtype) != "float16":
            return None
        sizes = ops.where(self.is_real[:, None], ops.abs(self.vectors), 0)
        # The gradients are at most 1.
        largest = ops.cast(ops.max(sizes, initial=0), self.dtype)
        largest = ops.maximum(largest, 1)
        words = ops.cast(ops.maximum(self.chunk_size, 1), self.dtype)
        return ops.minimum(2.0**15 / (words * largest), 2.0**10)

    def _chunk_rows(self, chunk):
        """Return the indices (n,) of the chunk's words, N for no word."""
        start = chunk * self.chunk_size
        if backend.backend() == "tensorflow":
            # With few words the last worker may have none.
            start = ops.minimum(start, self.num_real)
            size = ops.minimum(self.chunk_size, self.num_real - start)
            return ops.slice(self.order, [start], [size])
        return ops.slice(self.padded_order, [start], [self.chunk_size])

    def run(self, weights):
        """Return losses, hits and the gradients of the weighted loss sum.

        weights (N,), or None for no gradients. Losses and hits are (N,); the
        gradients are those of vectors, kernel and bias, if any.
        """
        losses, hits, *gradients = (
            functools.reduce(operator.add, parts)
            for parts in zip(
                *(
                    self._run_worker(i, weights)
                    for i in range(self.parallel_chunks)
                ),
                strict=True,
            )
        )
        is_real = ops.cast(self.is_real, self.dtype)
        if self.scale is not None:
            gradients = [d / self.scale for d in gradients]
        return [losses * is_real, hits * is_real, *gradients]

    def _run_worker(self, worker, weights):
        """Return the results of one worker's chunks; zeros for other words."""

        def body(step, *results):
            rows = self._chunk_rows(step * self.parallel_chunks + worker)
            by_word, sums = self._compute_chunk(rows, weights)
            return (
                step + 1,
                *_scatter_results(results[:count], rows, by_word),
                *(
                    old + new
                    for old, new in zip(results[count:], sums, strict=True)
                ),
            )

        # The sums, as large as the kernel, begin with those of the first chunk.
        rows = self._chunk_rows(worker)
        by_word, sums = self._compute_chunk(rows, weights)
        count = len(by_word)
        # One more row takes the results of padding.
        zeros = [
            ops.zeros((self.num_words + 1, *x.shape[1:]), dtype=self.dtype)
            for x in by_word
        ]
        _, *results = sequential_while_loop(
            lambda step, *_: step < self.num_chunks,
            body,
            ops.ones((), dtype="int32"),
            *_scatter_results(zeros, rows, by_word),
            *sums,
        )
        by_word, sums = results[:count], results[count:]
        return [*(x[: self.num_words] for x in by_word), *sums]

    def _compute_chunk(self, rows, weights):
        """Return the results per word, and the results summed over words."""
        last = self.num_words - 1
        index = ops.minimum(rows, last)
        vectors = ops.take(self.vectors, index, axis=0)
        logits = product(vectors, self.kernel, self.bias)
        losses, hits, d_logits = losses_and_gradients(
            logits, ops.take(self.targets, index), self.label_smoothing
        )
        if weights is None:
            return [losses, hits], []
        is_word = ops.logical_and(rows <= last, ops.take(self.is_real, index))
        weights = ops.where(is_word, ops.take(weights, index), 0.0)
        # The weights multiply the narrow operand of each product.
        if self.scale is not None:
            d_logits = d_logits * self.scale
        d_logits = ops.cast(d_logits, self.kernel.dtype)
        word_weights = ops.expand_dims(weights, -1)
        weighted_vectors = vectors * ops.cast(word_weights, vectors.dtype)
        sums = [product(ops.transpose(weighted_vectors), d_logits)]
        if self.bias is not None:
            weight_row = ops.cast(weights[None], d_logits.dtype)
            sums.append(product(weight_row, d_logits)[0])
        # Transposed here, because TensorFlow fuses it with the product.
        d_vectors = word_weights * product(d_logits, ops.transpose(self.kernel))
        return [losses, hits, d_vectors], sums


def _scatter_results(buffers, rows, by_word):
    """Update the results per word, (N, ...), at the rows (n,)."""
    index = ops.expand_dims(rows, -1)
    return [
        ops.scatter_update(old, index, new)
        for old, new in zip(buffers, by_word, strict=True)
    ]


def losses_and_gradients(logits, targets, label_smoothing):
    """Return losses and hits (N,), and the gradients of logits (N, V)."""
    probabilities = ops.softmax(logits, axis=-1)
    count, vocabulary = ops.shape(logits)[0], logits.shape[-1]
    # Keras refuses the maximum of an empty tensor; a chunk may be empty.
    initial = 0 if logits.shape[0] == 0 else None
    highest_logit = ops.max(logits, axis=-1, keepdims=True, initial=initial)
    # The softmax of the highest logit is 1 / sum exp(l - highest).
    highest_probability = ops.max(
        probabilities, axis=-1, keepdims=True, initial=initial
    )
    log_total = highest_logit - ops.log(highest_probability)
    row = ops.arange(count, dtype="int32")
    index = row * vocabulary + targets
    target_logit, target_probability = (
        ops.take(ops.reshape(x, (-1,)), index)[:, None]
        for x in (logits, probabilities)
    )
    d_logits = probabilities
    losses = log_total - (1 - label_smoothing) * target_logit
    if label_smoothing:
        mean = ops.mean(logits, axis=-1, keepdims=True)
        losses = losses - label_smoothing * mean
        d_logits = d_logits - label_smoothing / vocabulary
    # Only at the target words: a one-hot matrix would take more passes.
    target_gradient = (
        target_probability
        - label_smoothing / vocabulary
        - (1 - label_smoothing)
    )
    d_logits = ops.scatter_update(
        d_logits, ops.stack([row, targets], axis=-1), target_gradient[:, 0]
    )
    hits = ops.cast(target_logit >= highest_logit, logits.dtype)
    losses = nan_where_unknown(losses[:, 0], targets, vocabulary)
    return losses, hits[:, 0], d_logits


def _ceil_divide(number, divisor):
    """Return number / divisor, rounded up."""
    return (number + divisor - 1) // divisor
