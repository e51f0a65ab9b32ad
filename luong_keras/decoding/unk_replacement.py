"""Replacement of unknown words by the source words aligned to them.

Luong et al. (2015), section 4.2, after Luong et al. (2015b, "Addressing the
Rare Word Problem in Neural Machine Translation").
"""

from keras import ops

from luong_keras.special_tokens import UNK_ID


def copied_positions(ids, alignments, step="produces"):
    """Return the source positions of unknown words, -1 for other words.

    `ids` is (..., T), `alignments` (..., T, S), the result int32 (..., T). The
    position is that of the largest attention weight, the first of equal ones.
    With `step="produces"`, the step that produced the word counts; with
    `"reads"`, the next step, which reads the word, as in the authors' program.
    If the next step has no weights, as after the last word of a translation
    that was cut, the step that produced the word counts. Without any weights
    nothing can be copied, and the position is -1.
    """
    weights = alignments
    if step == "reads":
        later = ops.concatenate(
            [weights[..., 1:, :], weights[..., :1, :] * 0], axis=-2
        )
        exists = ops.any(later > 0, axis=-1, keepdims=True)
        weights = ops.where(exists, later, weights)
    copies = ops.logical_and(
        ops.equal(ids, UNK_ID), ops.any(weights > 0, axis=-1)
    )
    best = ops.cast(ops.argmax(weights, axis=-1), "int32")
    return ops.where(copies, best, -1)
