"""Unknown words replaced by the source words they are aligned to.

Luong et al. (2015), section 4.2, after Luong et al. (2015b, "Addressing the
Rare Word Problem in Neural Machine Translation").
"""

from keras import ops

from luong_keras.special_tokens import UNK_ID


def copied_positions(ids, alignments):
    """Where to copy each unknown word from; -1 for every other word.

    ids (..., T), alignments (..., T, S). The position is that of the largest
    attention weight in the step that produced the word; the first of equals.
    Returns int32 (..., T).
    """
    best = ops.cast(ops.argmax(alignments, axis=-1), "int32")
    return ops.where(ops.equal(ids, UNK_ID), best, -1)
