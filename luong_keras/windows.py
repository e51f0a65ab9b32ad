"""Where local attention looks, and how sharply.

Luong, Pham and Manning (2015), section 3.2. Positions are 0-based and in
natural word order. A sentence of S words has the positions 0 ... S - 1.
"""

from keras import ops

from luong_keras import masking

ALIGNMENTS = ("monotonic", "predictive")
GAUSSIANS = ("after_softmax", "renormalized", "inside_softmax", "none")


def monotonic_position(step, lengths, clamp=True):
    """p_t = t ("local-m"), kept inside the sentence: min(t, S - 1).

    The paper has p_t = t, whose window leaves the sentence (`clamp=False`);
    the authors' program keeps it at the last word. `step` (..., T) int,
    `lengths` (B,) int; the result (B, T) int32.
    """
    last = ops.expand_dims(ops.cast(lengths, "int32") - 1, -1)
    step = ops.cast(step, "int32")
    if clamp:
        return ops.minimum(step, ops.maximum(last, 0))
    return step + ops.zeros_like(last)


def predictive_position(query, lengths, position_kernel, position_vector):
    """p_t = S sigmoid(v_p . tanh(W_p h_t)) (eq. 9, "local-p"), real.

    query (B, T, U), `position_kernel` (U, P), `position_vector` (P,);
    the result (B, T) in at least float32: bfloat16 has no room for position
    257.
    """
    query = masking.widen(query)
    hidden = ops.tanh(ops.matmul(query, ops.cast(position_kernel, query.dtype)))
    vector = ops.cast(position_vector, query.dtype)
    share = ops.sigmoid(ops.sum(hidden * vector, axis=-1))
    return ops.cast(ops.expand_dims(lengths, -1), share.dtype) * share


def window_centre(aligned_position, lengths):
    """floor(p_t), at most S - 1 (a sigmoid may round to 1); int32 (B, T)."""
    last = ops.maximum(ops.cast(lengths, "int32") - 1, 0)
    # The window's place has no gradient; only the Gaussian has.
    floor = ops.floor(ops.stop_gradient(aligned_position))
    return ops.minimum(ops.cast(floor, "int32"), ops.expand_dims(last, -1))


def window_mask(centre, half_width, source_length):
    """Boolean (B, T, S): True in [centre - D, centre + D]."""
    positions = ops.arange(source_length, dtype="int32")
    distance = ops.abs(positions - ops.expand_dims(centre, -1))
    return distance <= half_width


def gaussian(aligned_position, sigma, source_length):
    """exp(-(s - p_t)^2 / (2 sigma^2)) (eq. 10), (B, T, S)."""
    positions = ops.arange(source_length, dtype=aligned_position.dtype)
    distance = positions - ops.expand_dims(aligned_position, -1)
    return ops.exp(-ops.square(distance / sigma) / 2)


def local_weights(scores, mask, favour, form):
    """Attention weights from scores, a mask and the Gaussian `favour`.

    `form` is one of `GAUSSIANS`: "after_softmax" (eq. 10: the weights do not
    sum to 1), "renormalized", "inside_softmax" (score times Gaussian, the
    authors' later program) or "none".
    """
    scores = masking.widen(scores)
    if form == "none":
        return masking.masked_softmax(scores, mask)
    favour = ops.cast(favour, scores.dtype)
    if form == "inside_softmax":
        return masking.masked_softmax(scores * favour, mask)
    weights = masking.masked_softmax(scores, mask) * favour
    if form == "renormalized":
        total = ops.sum(weights, axis=-1, keepdims=True)
        weights = weights / ops.where(total > 0, total, 1.0)
    return weights
