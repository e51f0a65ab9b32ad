"""The most probable words of a large vocabulary, and their probabilities.

A search step needs a few words out of tens of thousands. The other words are
neither sorted nor given log-probabilities.
"""

from keras import backend, ops, tree

from luong_keras.ops import masking
from luong_keras.ops.backends import rows_of_each
from luong_keras.ops.masking import INDEX_DTYPE

# A finite substitute for -inf: its sums with real scores stay ordered.
NEVER = -1e30
# Words per block; the maximum of each block is taken before sorting.
BLOCK = 64


def top_words(logits, count, suppressed=None, bonus=None):
    """Return log-probabilities and ids of the `count` most probable words.

    Args:
        logits: (B, K, V) logits; V may be unknown until the graph runs.
        count: N, the number of words, at most V.
        suppressed: Boolean mask, broadcastable to (B, K, V), of words that
            rank last, whatever their probability; None for no word.
        bonus: Addend of the log-probabilities, broadcastable to (B, K, V),
            or None.

    Returns:
        log-probabilities, in at least float32, and int32 ids, (B, K, N)
        each, the best first; of equal words, the lowest id first. The
        probabilities are normalised over all words, also suppressed ones.

    Example:
    >>> import numpy as np
    >>> log_probabilities, words = top_words(np.log([[[0.1, 0.6, 0.3]]]), 2)
    >>> [f"{p:.1f}" for p in np.exp(log_probabilities)[0, 0]]
    ['0.6', '0.3']
    >>> np.array(words)[0, 0].tolist()
    [1, 2]
    """
    logits = masking.upcast(ops.convert_to_tensor(logits))
    # log p(w) = l(w) - l(best) + log p(best): one pass over the vocabulary;
    # log_softmax would take several and write its result.
    highest = ops.log(ops.max(ops.softmax(logits), axis=-1, keepdims=True))
    ranked = logits
    if bonus is not None:
        ranked = ranked + ops.cast(bonus, ranked.dtype)
    if suppressed is not None:
        ranked = ops.where(suppressed, NEVER, ranked)
    values, words = top_k(ranked, count)
    if ranked is logits:
        best = values[..., :1]
    else:
        best = ops.max(logits, axis=-1, keepdims=True)
    return values - best + highest, words


def log_probabilities(logits, bonus=None):
    """Return log-probabilities (B, K, V) of all words, plus their bonus."""
    logits = masking.upcast(logits)
    gains = logits - ops.logsumexp(logits, axis=-1, keepdims=True)
    return gains if bonus is None else gains + ops.cast(bonus, gains.dtype)


def top_k(values, k):
    """Compute `largest` over the last axis of (B, K, V), faster for large V.

    The k largest values lie in the k blocks with the largest maxima. Of equal
    values, the one at the lower index counts as larger, as in `largest`.
    Therefore the result is the same, with int32 indices.
    """
    size = values.shape[-1] or ops.shape(values)[-1]
    # With few values, blocks would leave about as many candidates.
    if isinstance(size, int) and size <= 4 * BLOCK * k:
        return largest(values, k)
    padding = -size % BLOCK
    if not isinstance(size, int):
        padding = ops.maximum(padding, BLOCK * k - size)
    if not isinstance(padding, int) or padding:
        values = ops.pad(
            values,
            [(0, 0), (0, 0), (0, padding)],
            constant_values=-float("inf"),
        )
    hypotheses, blocks = ops.shape(values)[1], ops.shape(values)[-1] // BLOCK
    values = ops.reshape(values, (-1, blocks, BLOCK))
    _, top_blocks = largest(ops.max(values, axis=-1), k)
    # In the order of the vocabulary, to find the first of equal values.
    top_blocks = ops.sort(ops.cast(top_blocks, INDEX_DTYPE), axis=-1)
    candidates = rows_of_each(values, top_blocks)
    top_values, index = largest(ops.reshape(candidates, (-1, k * BLOCK)), k)
    index = ops.cast(index, INDEX_DTYPE)
    (block,) = gather_beams([top_blocks], index // BLOCK)
    index = ops.reshape(block * BLOCK + index % BLOCK, (-1, hypotheses, k))
    top_values = ops.reshape(top_values, (-1, hypotheses, k))
    return top_values, ops.cast(index, "int32")


def largest(values, count):
    """Compute `ops.top_k`, with equal values in the order of their indices.

    On torch, `ops.top_k` returns equal values in any order.

    Args:
        values: (..., N) values.
        count: The number of values to return, at most N.

    Returns:
        The values and their int32 indices, (..., count) each.

    Example:
        >>> import numpy as np
        >>> _, indices = largest(np.array([1.0, 3.0, 2.0, 3.0, 3.0]), 4)
        >>> np.array(indices).tolist()
        [1, 3, 4, 2]
    """
    if backend.backend() != "torch":
        return ops.top_k(values, count)
    values = ops.convert_to_tensor(values)
    indices = ops.argsort(-values, axis=-1)[..., :count]
    return ops.take_along_axis(values, indices, axis=-1), indices


def gather_beams(tensors, order):
    """Gather the rows at `order` (B, M) from tensors (B, N, ...).

    `tensors` is a list or any nested structure of tensors.

    Example:
    >>> import numpy as np
    >>> states = np.array([[[1, 1], [2, 2]], [[3, 3], [4, 4]]])
    >>> (beams,) = gather_beams([states], np.array([[1, 1], [1, 0]], "int32"))
    >>> np.array(beams)[..., 0].tolist()
    [[2, 2], [4, 3]]
    """
    return tree.map_structure(lambda x: rows_of_each(x, order), tensors)
