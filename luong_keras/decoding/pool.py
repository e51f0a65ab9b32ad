"""The hypotheses of a beam that have come to their end."""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.beam_gather import gather_beams
from luong_keras.ops.ordering import largest

# A finite stand-in: sums of it with real scores stay ordered.
NEVER = -1e30


class Pool(NamedTuple):
    """Finished hypotheses, (B, P) each, the best first.

    Attributes:
        ranking: what orders them; `NEVER` in an empty place.
        parent: the live place that each ends.
        end: the step at which `</s>` was chosen, the number of its words.
        more: what else a search keeps of each.
    """

    ranking: Any
    parent: Any
    end: Any
    more: tuple = ()


def empty_pool(batch, size, dtype, more=0) -> Pool:
    """A pool of `size` empty places, with `more` other numbers of each."""
    shape = (batch, size)
    return Pool(
        ops.full(shape, NEVER, dtype=dtype),
        ops.zeros(shape, dtype="int32"),
        ops.zeros(shape, dtype="int32"),
        tuple(ops.full(shape, NEVER, dtype=dtype) for _ in range(more)),
    )


def best_of(pool: Pool, others: Pool, size: int, sizes=None) -> Pool:
    """The best `size` of a pool and of others, (B, N) each.

    `sizes` (B,) may leave a sentence fewer.
    """
    merged = [
        ops.concatenate(pair, axis=-1)
        for pair in zip(
            (*pool[:3], *pool.more), (*others[:3], *others.more), strict=True
        )
    ]
    best, order = largest(merged[0], size)
    parent, end, *more = gather_beams(merged[1:], order)
    return Pool(within(sizes, best), parent, end, tuple(more))


def last_of(pool: Pool, sizes=None):
    """What the last of so many ranks by, (B, 1); of all when None."""
    if sizes is None:
        return pool.ranking[:, -1:]
    return ops.take_along_axis(pool.ranking, sizes[:, None] - 1, axis=-1)


def have_room(pool: Pool, finishes, size):
    """Which candidates (B, N), in order of rank, find a place in the pool."""
    taken = ops.cast(pool.ranking > NEVER / 2, "int32")
    taken = ops.sum(taken, axis=-1, keepdims=True)
    places = ops.cumsum(ops.cast(finishes, "int32"), axis=-1)
    return taken + places <= size


def alone(going, scores):
    """Scores (B, K); of sentences that do not go on the first one alone.

    So it is in a sentence without room for a word: `going` (B,) is False.
    """
    ranks = ops.arange(ops.shape(scores)[-1], dtype="int32")
    first = ops.cast(ops.where(ranks == 0, 0.0, NEVER), scores.dtype)
    return ops.where(going[:, None], scores, first)


def within(sizes, ranked):
    """Scores (B, ..., R) whose rank a sentence's size (B, ...) leaves."""
    if sizes is None:
        return ranked
    ranks = ops.arange(ops.shape(ranked)[-1], dtype="int32")
    return ops.where(ranks < sizes[..., None], ranked, NEVER)
