"""Unknown words replaced in the graph."""

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.inference.unknown_words import UnknownWords
from luong_keras.special_tokens import UNK_ID

SOURCES = [["Ada", "saw", "Oslo"], ["zebra", "Kai", ""]]
IDS = [[[UNK_ID, 7, UNK_ID], [8, UNK_ID, 0]], [[UNK_ID, 0, 0], [UNK_ID] * 3]]
TOKENS = [
    [["<unk>", "sah", "<unk>"], ["x", "<unk>", ""]],
    [["<unk>", "", ""], ["<unk>"] * 3],
]
WEIGHTS = [
    [
        [[0.5, 0.2, 0.3], [0.1, 0.1, 0.8], [0.4, 0.6, 0.0]],  # cut
        [[0.0, 0.0, 1.0], [0.7, 0.3, 0.0], [0.1, 0.2, 0.7]],
    ],
    [
        [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0]] * 3,
    ],
]
COPIED = {
    "produces": [
        [["Ada", "sah", "saw"], ["x", "Ada", ""]],
        [["zebra", "", ""], ["<unk>"] * 3],
    ],
    "reads": [
        [["Oslo", "sah", "saw"], ["x", "Oslo", ""]],
        [["Kai", "", ""], ["<unk>"] * 3],
    ],
}
WORDS = {"Oslo": "Oslō", "zebra": "Zebra", "saw": "sah"}


def replaced(unknown_words):
    found = unknown_words.replace(
        tf.constant(IDS),
        tf.constant(np.array(WEIGHTS, "float32")),
        tf.constant(TOKENS),
        tf.constant(SOURCES),
    )
    return [[[w.decode() for w in r] for r in n] for n in found.numpy()]


@pytest.mark.parametrize("step", ["produces", "reads"])
def test_words_are_copied_or_translated(step, tmp_path):
    assert replaced(UnknownWords(None, step)) == COPIED[step]
    path = tmp_path / "dictionary"
    lines = [f"{word} {translation} 0.5" for word, translation in WORDS.items()]
    # Of two translations the likelier one; a known word stays, whatever it is.
    lines = ["zebra Gnu 0.25", "x y 1", "sah z 1", *lines]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    expected = [
        [
            [
                WORDS.get(word, word) if number == UNK_ID else word
                for word, number in zip(*pair, strict=True)
            ]
            for pair in zip(*rows, strict=True)
        ]
        for rows in zip(COPIED[step], IDS, strict=True)
    ]
    assert replaced(UnknownWords(str(path), step)) == expected
    assert "Oslō" in str(expected) or step == "produces"


def test_the_step_that_produces_is_the_default():
    assert replaced(UnknownWords(None)) == COPIED["produces"]
