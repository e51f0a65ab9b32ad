"""Windows and Gaussians of local attention.

Luong, Pham and Manning (2015), section 3.2. Positions are 0-based and in
natural word order. A sentence of S words has the positions 0 ... S - 1; if it
is padded on the left, position 0 is not the first index of its row.
"""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.ops import masking
from luong_keras.ops.masking import INDEX_DTYPE, all_indices
from luong_keras.ops.products import product

ALIGNMENTS = ("monotonic", "predictive")
GAUSSIANS = ("after_softmax", "renormalized", "inside_softmax", "none")


class Window(NamedTuple):
    """Windows of local attention.

    Attributes:
        aligned_position: p_t, (B, T), real if it is predicted; counted from
            the first word of the sentence.
        centre: The index of floor(p_t) in the row, (B, T) int.
        mask: Boolean (B, T, S), True inside the window and the sentence.
        gaussian: exp(-(s - p_t)^2 / (2 sigma^2)) (eq. 10), (B, T, S), outside
            the window too.
        log_gaussian: Its logarithm.
    """

    aligned_position: Any
    centre: Any
    mask: Any
    gaussian: Any
    log_gaussian: Any


class Blocks(NamedTuple):
    """Blocks of source positions that successive queries share.

    Attributes:
        size: L, the number of queries that share a block.
        span: The greatest distance, in positions, from the window centre of
            the first query to that of a later one.
    """

    size: int
    span: int


# A block per query.
SINGLE = Blocks(1, 0)


class AlignedPosition(NamedTuple):
    """Aligned positions of the queries of a call.

    Attributes:
        aligned_position: p_t, (B, T), counted from a sentence's first word.
        centre: The index of floor(p_t) in the row, (B, T).
        first: The index of each sentence's first word, (B,).
        mask: Boolean (B, S) or None.
    """

    aligned_position: Any
    centre: Any
    first: Any
    mask: Any


def sentence_span(value, mask):
    """Return the `masking.Span` of each sentence of `value` (B, S, M)."""
    if mask is not None:
        return masking.span(mask)
    batch, source_length = ops.shape(value)[0], ops.shape(value)[1]
    return masking.Span(
        ops.zeros((batch,), dtype=INDEX_DTYPE),
        ops.full((batch,), source_length, dtype=INDEX_DTYPE),
    )


def monotonic_position(step, lengths, clamp=True):
    """Return p_t = t ("local-m"), kept inside the sentence: min(t, S - 1).

    In the paper p_t = t may leave the sentence (`clamp=False`); the authors'
    program keeps it at the last word. `step` (..., T) int, `lengths` (B,)
    int; the result (B, T) int.
    """
    last = ops.expand_dims(ops.cast(lengths, INDEX_DTYPE) - 1, -1)
    step = ops.cast(step, INDEX_DTYPE)
    if clamp:
        return ops.minimum(step, ops.maximum(last, 0))
    return step + ops.zeros_like(last)


def predictive_position(query, lengths, position_kernel, position_vector):
    """Return the real p_t = S sigmoid(v_p . tanh(W_p h_t)) (eq. 9, "local-p").

    query (B, T, U), `position_kernel` (U, P), `position_vector` (P,);
    the result (B, T) in at least float32: bfloat16 cannot represent position
    257.
    """
    query = masking.upcast(query)
    hidden = ops.tanh(product(query, position_kernel, view=masking.upcast))
    vector = ops.cast(position_vector, hidden.dtype)
    fraction = ops.sigmoid(ops.sum(hidden * vector, axis=-1))
    return ops.cast(ops.expand_dims(lengths, -1), fraction.dtype) * fraction


def floor_position(aligned_position, lengths):
    """Return floor(p_t) as int (B, T), at most S - 1 (a sigmoid may be 1)."""
    last = ops.maximum(ops.cast(lengths, INDEX_DTYPE) - 1, 0)
    # The position of the window has no gradient; only the Gaussian has one.
    floor = ops.floor(ops.stop_gradient(aligned_position))
    return ops.minimum(ops.cast(floor, INDEX_DTYPE), ops.expand_dims(last, -1))


def choose_blocks(half_width, steps, position=None, successive=False):
    """Return the `Blocks` and the least source length for gathering them.

    Gathering copies the blocks out of the source; a short source is faster to
    read as a whole, in one product. The lengths were measured with D = 10
    (`benchmarks/local_attention.py`).

    Args:
        half_width: D.
        steps: T, the number of queries, or None.
        position: Decoder steps, () or (..., T); None for predicted positions.
        successive: Whether they are 0 ... T - 1.
    """
    width = 2 * half_width + 1
    if steps == 1:
        return SINGLE, 0
    if successive:
        return Blocks(2 * half_width, 2 * half_width - 1), 8 * width
    # All hypotheses of a beam are at the same step.
    is_shared = position is not None and (
        len(position.shape) == 0 or position.shape[-1] == 1
    )
    if is_shared and steps is not None:
        return Blocks(steps, 0), 2 * width
    return SINGLE, 16 * width


def window_indices(centre, half_width, source_length, blocks=SINGLE):
    """Return the source positions of each block, (B, N, W) int.

    `centre` (B, T). W = 2 D + 1 + span, or S in a shorter source. A block
    that would leave the source is moved inside; `window_mask` marks the
    positions that belong to a window.
    """
    width = 2 * half_width + 1 + blocks.span
    if isinstance(source_length, int):
        width = min(width, source_length)
    else:
        width = ops.minimum(width, source_length)
    first = ops.cast(centre[:, :: blocks.size], INDEX_DTYPE) - half_width
    first = ops.minimum(first, source_length - width)
    first = ops.expand_dims(ops.maximum(first, 0), -1)
    return first + all_indices(width)


def cut_into_blocks(x, size):
    """Cut `x` (B, T, U) into blocks (B N, L, U), padded with zeros."""
    batch, steps, width = ops.shape(x)
    if size > 1:
        zeros = ops.zeros(
            (batch, _block_padding(steps, size), width), dtype=x.dtype
        )
        x = ops.concatenate([x, zeros], axis=1)
        steps = ops.shape(x)[1] // size
    return ops.reshape(x, (batch * steps, size, width))


def join_blocks(x, batch, steps):
    """Undo `cut_into_blocks`: return (B, T, U)."""
    _, size, width = ops.shape(x)
    rows = ops.reshape(x, (batch, steps + _block_padding(steps, size), width))
    return rows[:, :steps]


def _block_padding(steps, size):
    """Return the number of padding steps in the last block.

    It avoids `-steps % size`, which is negative in ONNX.
    """
    return (size - steps % size) % size


def window_mask(centre, half_width, positions):
    """Return a mask (B, T, S or W), True in [centre - D, centre + D].

    `positions` (S,) for the whole source, or the `window_indices` (B, T, W).
    """
    # Not by `abs`, which LiteRT does not have for integers.
    centre = ops.expand_dims(centre, -1)
    return ops.logical_and(
        positions >= centre - half_width, positions <= centre + half_width
    )


def log_gaussian(aligned_position, sigma, positions):
    """Return -(s - p_t)^2 / (2 sigma^2) (of eq. 10), (B, T, S or W).

    `positions`, broadcastable to (B, T, S or W), count from the same word as
    p_t (B, T).
    """
    positions = ops.cast(positions, aligned_position.dtype)
    distance = positions - ops.expand_dims(aligned_position, -1)
    return -ops.square(distance / sigma) / 2


def local_weights(scores, window, form):
    """Return attention weights from scores and their `Window`.

    `form` is one of `GAUSSIANS`: "after_softmax" (eq. 10: the weights do not
    sum to 1), "renormalized", "inside_softmax" (score times Gaussian, the
    authors' later program) or "none".
    """
    scores = masking.upcast(scores)
    if form == "inside_softmax":
        scores = scores * ops.cast(window.gaussian, scores.dtype)
    if form == "renormalized":
        # A quotient of products would be 0 / 0 where the Gaussian underflows.
        scores = scores + ops.cast(window.log_gaussian, scores.dtype)
    weights = masking.masked_softmax(scores, window.mask)
    if form == "after_softmax":
        weights = weights * ops.cast(window.gaussian, weights.dtype)
    return weights
