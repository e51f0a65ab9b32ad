"""The most probable words of a large vocabulary, and their probabilities.

A step of a search asks for a few words of tens of thousands. Neither the
order nor the log-probabilities of all the others are computed for that.
"""

from keras import backend, ops, tree

from luong_keras.ops import masking
from luong_keras.ops.masking import PLACE_DTYPE

# A finite stand-in of -inf: sums of it with real scores stay ordered.
NEVER = -1e30
# Words whose maximum is taken before anything is sorted.
BLOCK = 64


def top_words(logits, count, suppressed=None, bonus=None):
    """The `count` most probable words: their log-probabilities and ids.

    Args:
        logits: (B, K, V); V may be unknown until the graph runs.
        count: how many words, N, at most V.
        suppressed: boolean, broadcastable to (B, K, V): words that come last,
            whatever their probability. None bars no word.
        bonus: what is added to log-probabilities, broadcastable to
            (B, K, V), or None.

    Returns:
        log-probabilities, in at least float32, and int32 ids, (B, K, N)
        each, the best first and of equals the lowest id. The probabilities
        are those among all words, the suppressed ones too.

    Example:
    >>> import numpy as np
    >>> log_probabilities, words = top_words(np.log([[[0.1, 0.6, 0.3]]]), 2)
    >>> [f"{p:.1f}" for p in np.exp(log_probabilities)[0, 0]]
    ['0.6', '0.3']
    >>> np.array(words)[0, 0].tolist()
    [1, 2]
    """
    logits = masking.upcast(ops.convert_to_tensor(logits))
    # log p(w) = l(w) - l(best) + log p(best): one pass over the vocabulary,
    # where log_softmax would take several and write its result.
    highest = ops.log(ops.max(ops.softmax(logits), axis=-1, keepdims=True))
    if suppressed is None and bonus is None:
        values, words = top_k(logits, count)
        return values - values[..., :1] + highest, words
    best = ops.max(logits, axis=-1, keepdims=True)
    if bonus is not None:
        logits = logits + ops.cast(bonus, logits.dtype)
    if suppressed is not None:
        logits = ops.where(suppressed, NEVER, logits)
    values, words = top_k(logits, count)
    return values - best + highest, words


def at_most(count, size):
    """No more than the words of a vocabulary.

    One whose size is a tensor has words enough.
    """
    return min(count, size) if isinstance(size, int) else count


def top_k(values, k):
    """`largest` over the last axis of (B, K, V), faster where V is large.

    What is among the k largest values lies in one of the k blocks of largest
    maximum; equal values count as larger where their index is lower, as
    they do in `largest`. So the result is the same, int32 indices.
    """
    size = ops.shape(values)[-1]
    # Else the candidates are about as many as the values.
    if isinstance(size, int) and size <= 4 * BLOCK * k:
        found, index = largest(values, k)
        return found, ops.cast(index, "int32")
    missing = -size % BLOCK
    if not isinstance(size, int):
        missing = ops.maximum(missing, BLOCK * k - size)
    if not isinstance(missing, int) or missing:
        values = ops.pad(
            values,
            [(0, 0), (0, 0), (0, missing)],
            constant_values=-float("inf"),
        )
    hypotheses, blocks = ops.shape(values)[1], ops.shape(values)[-1] // BLOCK
    values = ops.reshape(values, (-1, BLOCK))
    highest = ops.reshape(ops.max(values, axis=-1), (-1, blocks))
    _, chosen = largest(highest, k)
    # In the order of the vocabulary, so that of equals the first is found.
    chosen = ops.sort(ops.cast(chosen, PLACE_DTYPE), axis=-1)
    candidates = ops.take(values, flat_rows(chosen, blocks), axis=0)
    found, index = largest(ops.reshape(candidates, (-1, k * BLOCK)), k)
    index = ops.cast(index, PLACE_DTYPE)
    (block,) = gather_beams([chosen], index // BLOCK)
    index = ops.reshape(block * BLOCK + index % BLOCK, (-1, hypotheses, k))
    found = ops.reshape(found, (-1, hypotheses, k))
    return found, ops.cast(index, "int32")


def largest(values, count):
    """`ops.top_k`: of equal values the one at the lowest place comes first.

    On torch that of Keras takes equal ones in any order.

    Args:
        values: (..., N).
        count: how many, at most N.

    Returns:
        The values and their places, (..., count) each.

    Example:
        >>> import numpy as np
        >>> _, places = largest(np.array([1.0, 3.0, 2.0, 3.0, 3.0]), 4)
        >>> np.array(places).tolist()
        [1, 3, 4, 2]
    """
    if backend.backend() != "torch":
        return ops.top_k(values, count)
    values = ops.convert_to_tensor(values)
    places = ops.argsort(-values, axis=-1)[..., :count]
    return ops.take_along_axis(values, places, axis=-1), places


def gather_beams(tensors, order):
    """Rows of every tensor (B, N, ...) at order (B, M): (B, M, ...) each.

    `tensors` is a list or any nested structure of them. One gather of whole
    rows, where `ops.take_along_axis` would gather number by number.

    Example:
    >>> import numpy as np
    >>> states = np.array([[[1, 1], [2, 2]], [[3, 3], [4, 4]]])
    >>> (taken,) = gather_beams([states], np.array([[1, 1], [1, 0]], "int32"))
    >>> np.array(taken)[..., 0].tolist()
    [[2, 2], [4, 3]]
    """
    each = tree.flatten(tensors)
    if not each:
        return tensors
    index = flat_rows(order, ops.shape(each[0])[1])
    rows = [ops.reshape(x, (-1, *ops.shape(x)[2:])) for x in each]
    return tree.pack_sequence_as(
        tensors, [ops.take(x, index, axis=0) for x in rows]
    )


def flat_rows(order, count):
    """Indices in (B · N, ...) of the rows `order` (B, M) of (B, N, ...)."""
    first = ops.arange(ops.shape(order)[0], dtype=PLACE_DTYPE)
    first = first * ops.cast(count, PLACE_DTYPE)
    return ops.cast(order, PLACE_DTYPE) + first[:, None]
