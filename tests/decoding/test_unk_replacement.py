import numpy as np
from keras import ops

from luong_keras.decoding.unk_replacement import copied_positions


def test_only_unknown_words_are_copied_from_their_largest_weight():
    ids = np.array([[[1, 7, 1, 0], [9, 1, 3, 1]]], "int32")
    alignments = np.zeros((1, 2, 4, 3), "float32")
    alignments[0, 0, 0] = [0.2, 0.1, 0.7]
    alignments[0, 0, 1] = [0.0, 1.0, 0.0]
    alignments[0, 0, 2] = [0.4, 0.4, 0.2]  # the first of equals
    alignments[0, 1, 1] = [0.1, 0.8, 0.1]
    found = copied_positions(ids, alignments)
    # The last unknown word has no weights, so it copies no source word.
    assert ops.convert_to_numpy(found).tolist() == [
        [[2, -1, 0, -1], [-1, 1, -1, -1]]
    ]


def test_words_are_aligned_by_the_step_that_reads_them():
    ids = np.array([[1, 7, 1], [1, 1, 0]], "int32")
    alignments = np.zeros((2, 3, 3), "float32")
    alignments[0] = [[1, 0, 0], [0, 0, 1], [0, 1, 0]]  # cut before `</s>`
    alignments[1] = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]  # the last row: `</s>`
    found = copied_positions(ids, alignments, step="reads")
    assert ops.convert_to_numpy(found).tolist() == [[2, -1, 1], [0, 2, -1]]
