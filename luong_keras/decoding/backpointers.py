"""What a search keeps of every step, and the way back through it."""

from keras import ops

from luong_keras.decoding.beam_gather import gather_beams


def write_rows(buffers, t, rows, places=None):
    """Buffers (T, B, ...) with the rows (R, ...) of step t at `places` (R,).

    Without `places` R is B. The buffers keep their types.
    """
    t = ops.convert_to_tensor(t, "int32")
    if places is None:
        index = ops.reshape(t, (1, 1))
        rows = [row[None] for row in rows]
    else:
        index = ops.stack([ops.zeros_like(places) + t, places], axis=-1)
    return tuple(
        ops.scatter_update(buffer, index, ops.cast(row, buffer.dtype))
        for buffer, row in zip(buffers, rows, strict=True)
    )


def follow_backpointers(history, parent, lengths, ends, steps, pad_id):
    """Words (B, N, T) and weights (B, N, T, S) along the parents.

    Args:
        history: the words, the parents and the weights of every step, (T, B,
            K, ...) each; without parents, each hypothesis stayed in its slot.
        parent: (B, N) the slot in which each hypothesis lived when it had
            `lengths` words.
        lengths: (B, N).
        ends: (B, N) the step that produced `</s>`, or -1.
        steps: how many there were.
        pad_id: the id behind the last word.
    """
    words, *parents, weights = history
    size, batch, k = ops.shape(words)
    # slots[t]: where the hypothesis lived when it had t words.
    slots = ops.repeat(parent[None], size + 1, axis=0)
    if parents:
        slots = _slots(slots, parents[0], parent, lengths, steps)
    slots = ops.transpose(slots, (1, 2, 0))
    # From (T, B, K), of the slots and steps that each hypothesis has.
    times = ops.arange(size, dtype="int32")
    sentences = ops.arange(batch, dtype="int32")[:, None, None]
    first = (times * batch + sentences) * k
    inside = times < lengths[..., None]
    ids = ops.take(ops.reshape(words, (-1,)), first + slots[..., 1:])
    ids = ops.where(inside, ids, pad_id)
    # The weights of step t belong to the slots before its reordering.
    rows = ops.reshape(weights, (size * batch * k, ops.shape(weights)[-1]))
    alignments = ops.take(rows, first + slots[..., :-1], axis=0)
    wanted = inside | (times == ends[..., None])
    zero = ops.zeros((), alignments.dtype)
    return ids, ops.where(wanted[..., None], alignments, zero)


def _slots(slots, parents, last, lengths, steps):
    """`slots` (T + 1, B, N) with the places before the `last`."""

    def body(t, slot, slots):
        (before,) = gather_beams([parents[t]], slot)
        slot = ops.where(t < lengths, before, slot)
        (slots,) = write_rows((slots,), t, (slot,))
        return t - 1, slot, slots

    _, _, slots = ops.while_loop(
        lambda t, *_: t >= 0, body, (steps - 1, last, slots)
    )
    return slots
