"""The score functions of content-based and location-based attention.

Luong, Pham and Manning (2015), section 3.1. Every function returns scores
(..., T, S) before the softmax. B batch, T target length, S source length,
U width of the query, M width of the memory, A width of the comparison.

To add a score: write its function here, name its weights in
`layers.LuongAttention.build` and call it in `LuongAttention.score`.
"""

from keras import ops

CONTENT_SCORES = ("dot", "scaled_dot", "cosine", "general", "concat")
SCORE_MODES = (*CONTENT_SCORES, "location")
CONCAT_FORMS = ("joint", "separate", "query_only")


def dot_scores(query, keys):
    """score(h_t, k_s) = h_t . k_s ("dot", below eq. 7, where k_s = h̄_s).

    With keys k_s = W_a h̄_s it is "general": h_t^T W_a h̄_s (below eq. 7).
    query (B, T, U), keys (B, S, U).
    """
    return ops.matmul(query, ops.swapaxes(keys, -1, -2))


def unit_vectors(x):
    """`x` divided by its length along the last axis; zeros stay zeros.

    The dot product of two such vectors is their cosine similarity (Graves et
    al. 2014, section 3.3.1, eq. 6).
    """
    squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
    # The square root has no finite gradient at zero.
    safe = ops.where(squares > 0, squares, 1.0)
    return x / ops.sqrt(safe)


def concat_scores(projected_query, keys, attention_vector):
    """Score = v_a . tanh(W_a [h_t; h̄_s]) ("concat", below eq. 7).

    W_a is split in two: `projected_query` (B, T, A) is the half that
    multiplies h_t, `keys` (B, S, A) the half that multiplies h̄_s, or h̄_s
    itself in the authors' program; `attention_vector` v_a (A,).
    """
    compared = ops.tanh(
        ops.expand_dims(projected_query, -2) + ops.expand_dims(keys, -3)
    )
    return ops.sum(compared * attention_vector, axis=-1)


def location_scores(query, location_kernel):
    """a_t = softmax(W_a h_t) (eq. 8): a score a position, whatever is there.

    query (B, T, U), `location_kernel` (U, max_length); the result is
    (B, T, max_length).
    """
    return ops.matmul(query, location_kernel)


def fit_positions(by_position, source_length):
    """Cuts or extends (..., max_length) to (..., S) along the last axis.

    Positions from `max_length` on get a copy of the last column: the caller
    masks them (`positions_within`).
    """
    last = by_position.shape[-1] - 1
    index = ops.minimum(ops.arange(source_length, dtype="int32"), last)
    return ops.take(by_position, index, axis=-1)


def positions_within(max_length, source_length):
    """Boolean (S,): True where a location score exists."""
    return ops.arange(source_length, dtype="int32") < max_length


# Gradients of the query alone, for a loop whose backward is written by hand.


def dot_query_gradient(d_scores, keys):
    """Of `dot_scores`: d_scores (B, T, S), keys (B, S, U), to (B, T, U)."""
    return ops.matmul(ops.cast(d_scores, keys.dtype), keys)


def unit_vectors_gradient(x, d_units):
    """Of `unit_vectors`: what is along `x` changes its length alone."""
    units = unit_vectors(x)
    squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
    along = ops.sum(units * d_units, axis=-1, keepdims=True)
    safe = ops.where(squares > 0, squares, 1.0)
    return (d_units - units * along) / ops.sqrt(safe)


def concat_query_gradient(projected_query, keys, attention_vector, d_scores):
    """Of `concat_scores`, that of `projected_query` (B, T, A)."""
    compared = ops.tanh(
        ops.expand_dims(projected_query, -2) + ops.expand_dims(keys, -3)
    )
    d_scores = ops.expand_dims(d_scores, -1)
    slopes = d_scores * (1 - compared * compared)
    return ops.sum(slopes, axis=-2) * attention_vector


def fit_positions_gradient(d_fitted, max_length):
    """Of `fit_positions`, for scores that are masked from `max_length` on."""
    by_position = ops.arange(max_length, dtype="int32")
    length = ops.shape(d_fitted)[-1]
    found = ops.take(d_fitted, ops.minimum(by_position, length - 1), axis=-1)
    return ops.where(by_position < length, found, 0.0)
