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

from keras import backend, ops

from luong_keras.ops.cross_entropy import real_ids
from luong_keras.ops.devices import has_gpu
from luong_keras.ops.loops import sequential_while_loop, with_custom_gradient
from luong_keras.ops.products import product

# Logits held at once: 32 MB in float32; 512 MB on a GPU, because small products
# leave most of a GPU idle.
_MAX_LOGITS, _MAX_LOGITS_ON_GPU = 2**23, 2**27
# Chunks that TensorFlow computes in parallel. The sequential operations of one
# chunk leave cores to the other.
_PARALLEL_CHUNKS = 2


def chunked_word_losses(
    vectors, kernel, bias, targets, label_smoothing=0.0, pad_id=0
):
    """Return the losses and hits of words, (N,) each, 0 at padding.

    vectors (N, U), kernel (U, V), bias (V,) or None, targets (N,) ids. The
    result equals `cross_entropy.word_losses` of the logits.
    """
    arguments = [vectors, kernel] if bias is None else [vectors, kernel, bias]
    words = _Words(
        [ops.stop_gradient(each) for each in arguments],
        ops.cast(targets, "int32"),
        label_smoothing,
        pad_id,
    )
    ones = ops.ones_like(targets, dtype=words.dtype)
    losses, hits, *unit_gradients = words.run(ones)

    def gradients(upstream):
        weights = upstream[0]
        # The weight of a real word if there is one; 0 without words.
        first = ops.sum(ops.take(weights, words.order[:1]), keepdims=True)
        inside = ops.where(words.real, weights, first)
        inside = ops.concatenate([inside, first])
        lowest, highest = ops.min(inside), ops.max(inside)

        def weighted():
            # The weights may be as large as the optimizer's loss scale.
            largest = ops.maximum(ops.abs(lowest), ops.abs(highest))
            return [d * largest for d in words.run(weights / largest)[2:]]

        return ops.cond(
            lowest == highest,
            lambda: [d * lowest for d in unit_gradients],
            weighted,
        )

    return with_custom_gradient([losses, hits], gradients, arguments)


class _Words:
    """Words of a batch, real ones first, with the weights that project them."""

    def __init__(self, arguments, targets, label_smoothing, pad_id):
        self.vectors, self.kernel, *biases = arguments
        self.bias = biases[0] if biases else None
        self.label_smoothing = label_smoothing
        self.vocabulary = self.kernel.shape[-1]
        self.dtype = product(self.vectors[:1], self.kernel).dtype
        self.count = ops.shape(targets)[0]
        self.real = ops.not_equal(targets, pad_id)
        self.targets = real_ids(targets, pad_id)
        real = ops.cast(self.real, "int32")
        self.order = ops.cast(ops.argsort(1 - real), "int32")
        self._cut_chunks(ops.sum(real))
        self.scale = self._gradient_scale()

    def _cut_chunks(self, real):
        """Set the number of chunks and the number of words per chunk."""
        maximum = _MAX_LOGITS_ON_GPU if has_gpu() else _MAX_LOGITS
        limit = max(maximum // self.vocabulary, 1)
        self.parallel_chunks = 1
        if backend.backend() == "tensorflow":
            if not has_gpu():
                self.parallel_chunks = _PARALLEL_CHUNKS
            self.words = real
            limit = max(limit // self.parallel_chunks, 1)
            self.chunks = _quotient(real, limit * self.parallel_chunks)
            maximum = ops.maximum(self.chunks, 1) * self.parallel_chunks
            self.size = _quotient(real, maximum)
            return
        # Shapes cannot depend on values: the last chunk may have padding.
        # Without words there is one chunk, which is empty.
        most = max(_quotient(self.count, limit), 1)
        self.size = _quotient(self.count, most)
        self.chunks = _quotient(real, max(self.size, 1))
        missing = most * self.size - self.count
        self.padded = ops.pad(
            self.order, [[0, missing]], constant_values=self.count
        )

    def _gradient_scale(self):
        """Return the scale of the logits' gradients in float16, else None.

        It keeps sums over the words of a chunk below 2 ** 15. Its limit of
        2 ** 10 is for few words, whose sums over the vocabulary could overflow.
        """
        if backend.standardize_dtype(self.kernel.dtype) != "float16":
            return None
        sizes = ops.where(self.real[:, None], ops.abs(self.vectors), 0)
        # The gradients are at most 1.
        largest = ops.cast(ops.max(sizes, initial=0), self.dtype)
        largest = ops.maximum(largest, 1)
        words = ops.cast(ops.maximum(self.size, 1), self.dtype)
        return ops.minimum(2.0**15 / (words * largest), 2.0**10)

    def _rows(self, chunk):
        """Return the indices (n,) of the chunk's words, N for no word."""
        start = chunk * self.size
        if backend.backend() == "tensorflow":
            # With few words the last worker may have none.
            start = ops.minimum(start, self.words)
            size = ops.minimum(self.size, self.words - start)
            return ops.slice(self.order, [start], [size])
        return ops.slice(self.padded, [start], [self.size])

    def run(self, weights):
        """Return losses, hits and the gradients of the weighted loss sum.

        weights (N,). Losses and hits are (N,); the gradients are those of
        vectors, kernel and bias, if any.
        """
        losses, hits, *gradients = (
            functools.reduce(operator.add, each)
            for each in zip(
                *(
                    self._worker(i, weights)
                    for i in range(self.parallel_chunks)
                ),
                strict=True,
            )
        )
        real = ops.cast(self.real, self.dtype)
        if self.scale is not None:
            gradients = [d / self.scale for d in gradients]
        return [losses * real, hits * real, *gradients]

    def _worker(self, worker, weights):
        """Return the results of one worker's chunks; zeros for other words."""
        # One more row takes the results of places without a word.
        rows = self.count + 1
        width = self.vectors.shape[-1]
        found = [
            ops.zeros((rows,), dtype=self.dtype),
            ops.zeros((rows,), dtype=self.dtype),
            ops.zeros((rows, width), dtype=self.dtype),
        ]

        def body(number, *held):
            rows = self._rows(number * self.parallel_chunks + worker)
            by_word, sums = self._chunk(rows, weights)
            return (
                number + 1,
                *_written(held[:3], rows, by_word),
                *(old + new for old, new in zip(held[3:], sums, strict=True)),
            )

        # The sums, as large as the kernel, begin with those of the first chunk.
        rows = self._rows(worker)
        by_word, sums = self._chunk(rows, weights)
        _, *held = sequential_while_loop(
            lambda number, *_: number < self.chunks,
            body,
            ops.ones((), dtype="int32"),
            *_written(found, rows, by_word),
            *sums,
        )
        return [*(x[: self.count] for x in held[:3]), *held[3:]]

    def _chunk(self, rows, weights):
        """Return the results per word, and the results summed over words."""
        last = self.count - 1
        index = ops.minimum(rows, last)
        present = ops.logical_and(rows <= last, ops.take(self.real, index))
        weights = ops.where(present, ops.take(weights, index), 0.0)
        vectors = ops.take(self.vectors, index, axis=0)
        logits = product(vectors, self.kernel)
        if self.bias is not None:
            logits = logits + ops.cast(self.bias, logits.dtype)
        losses, hits, d_logits = losses_and_gradients(
            logits, ops.take(self.targets, index), self.label_smoothing
        )
        # The weights multiply the narrow operand of each product.
        if self.scale is not None:
            d_logits = d_logits * self.scale
        d_logits = ops.cast(d_logits, self.kernel.dtype)
        by_word = ops.expand_dims(weights, -1)
        weighted = vectors * ops.cast(by_word, vectors.dtype)
        sums = [product(ops.transpose(weighted), d_logits)]
        if self.bias is not None:
            row = ops.cast(weights[None], d_logits.dtype)
            sums.append(product(row, d_logits)[0])
        # Transposed here, because TensorFlow fuses it with the product.
        d_vectors = by_word * product(d_logits, ops.transpose(self.kernel))
        return [losses, hits, d_vectors], sums


def _written(found, rows, by_word):
    """Update the results per word, (N, ...), at the rows (n,)."""
    index = ops.expand_dims(rows, -1)
    return [
        ops.scatter_update(old, index, new)
        for old, new in zip(found, by_word, strict=True)
    ]


def losses_and_gradients(logits, targets, label_smoothing):
    """Return losses and hits (N,), and the gradients of logits (N, V)."""
    probabilities = ops.softmax(logits, axis=-1)
    count, vocabulary = ops.shape(logits)[0], logits.shape[-1]
    # Keras refuses the maximum of an empty tensor; a chunk may be empty.
    initial = 0 if logits.shape[0] == 0 else None
    highest = ops.max(logits, axis=-1, keepdims=True, initial=initial)
    # The softmax of the highest logit is 1 / sum exp(l - highest).
    of_highest = ops.max(probabilities, axis=-1, keepdims=True, initial=initial)
    log_total = highest - ops.log(of_highest)
    row = ops.arange(count, dtype="int32")
    place = row * vocabulary + targets
    of_target, share = (
        ops.take(ops.reshape(x, (-1,)), place)[:, None]
        for x in (logits, probabilities)
    )
    d_logits = probabilities
    losses = log_total - (1 - label_smoothing) * of_target
    if label_smoothing:
        mean = ops.mean(logits, axis=-1, keepdims=True)
        losses = losses - label_smoothing * mean
        d_logits = d_logits - label_smoothing / vocabulary
    # Only at the target words: a one-hot matrix would take more passes.
    of_right = share - label_smoothing / vocabulary - (1 - label_smoothing)
    d_logits = ops.scatter_update(
        d_logits, ops.stack([row, targets], axis=-1), of_right[:, 0]
    )
    hits = ops.cast(of_target >= highest, logits.dtype)
    return losses[:, 0], hits[:, 0], d_logits


def _quotient(number, divisor):
    """Return number / divisor, rounded up."""
    return (number + divisor - 1) // divisor
