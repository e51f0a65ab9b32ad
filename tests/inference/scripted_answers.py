"""Answers of a scripted model to some texts, written by hand."""

from math import log

import numpy as np
import pytest

from luong_keras.config import DecodingConfig
from luong_keras.inference.translation_graph import TranslationGraph
from tests.serving.scripted_model import (
    SOURCE_PAD_ID,
    ScriptedModel,
    tokenizers,
)
from tests.serving.tiny_translator import LENGTHS

ABSENT = -1e30


def graph(model=None, **decoding):
    settings = {
        "beam_size": 2,
        "replace_unknown": False,
        "max_source_length": 8,
        **LENGTHS,
        **decoding,
    }
    model = model or ScriptedModel()
    return TranslationGraph(model, *tokenizers(), DecodingConfig(**settings))


def ranks(found):
    """Return texts and scores of every sentence, without empty ranks."""
    texts, scores = found["translations"].numpy(), found["scores"].numpy()
    return [
        [
            (text.decode(), pytest.approx(float(score), rel=1e-5, abs=1e-6))
            for text, score in zip(*row, strict=True)
            if score > ABSENT / 2
        ]
        for row in zip(texts, scores, strict=True)
    ]


def check_arrays(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        array = found[name].numpy()
        value = np.array(value, object if array.dtype == object else None)
        assert array.shape == value.shape, name
        if array.dtype == np.float32:
            np.testing.assert_allclose(array, value, rtol=1e-5, atol=1e-6)
        else:
            assert array.tolist() == value.tolist(), name


NOTHING = [[0, 0, 0]] * 6
# Sentences of two, three and no words: three source positions, and six target
# positions, the maximum length for the longest sentence.
TRANSLATED = {
    "translations": [[b"x", b"<unk>"], [b"y <unk>", b"y <unk> x"], [b"", b""]],
    "scores": [
        [log(0.6 * 0.6), log(0.3 * 0.9)],
        [log(0.9 * 0.2 * 0.7), log(0.9 * 0.2 * 0.3 * 0.5)],
        [0, ABSENT],
    ],
    "tokens": [
        [[b"x"] + [b""] * 5, [b"<unk>"] + [b""] * 5],
        [[b"y", b"<unk>"] + [b""] * 4, [b"y", b"<unk>", b"x"] + [b""] * 3],
        [[b""] * 6] * 2,
    ],
    "lengths": [[1, 1], [2, 3], [0, 0]],
    "alignments": [
        [
            [[0.8, 0.2, 0], [0.3, 0.7, 0], *NOTHING[2:]],
            [[0.8, 0.2, 0], [0.1, 0.9, 0], *NOTHING[2:]],
        ],
        [
            [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1], *NOTHING[3:]],
            [
                *([0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1]),
                *([0.5, 0.5, 0.0], *NOTHING[4:]),
            ],
        ],
        [NOTHING] * 2,
    ],
    "source_tokens": [[b"a", b"b", b""], [b"b", b"c", b"Q"], [b"", b"", b""]],
    "source_lengths": [2, 3, 0],
    "truncated": [False, False, False],
    "unfinished": [[False] * 2] * 3,
}
TEXT = ["a b", "b c Q", ""]
BEST = [("x", log(0.36)), ("<unk>", log(0.27))]
NORMALISED = [("x y", log(0.24 * 0.97) / 3), ("x", log(0.36) / 2)]
SCORED = {
    "log_probability": [log(0.6 * 0.4 * 0.97), log(0.1 * 0.5), log(1e-9)],
    "word_log_probabilities": [
        [log(0.6), log(0.4), log(0.97)],
        [log(0.1), log(0.5), 0],
        [log(1e-9), 0, 0],
    ],
    "tokens": [
        [b"x", b"y", b"</s>"],
        [b"Q", b"</s>", b""],
        [b"</s>", b"", b""],
    ],
    "lengths": [3, 2, 1],
    "alignments": [
        [[0.8, 0.2, 0], [0.3, 0.7, 0], [0.2, 0.8, 0]],
        [[0.6, 0.3, 0.1], [0.5, 0.5, 0], [0, 0, 0]],
        [[0.8, 0.2, 0], [0, 0, 0], [0, 0, 0]],
    ],
    "source_tokens": [[b"a", b"b", b""], [b"b", b"c", b"Q"], [b"a", b"d", b""]],
    "source_lengths": [2, 3, 2],
    "truncated": [False, False, False],
}
PAIRS = ["a b", "b c Q", "a d"], ["x y", "Q", ""]
MEMORY = [
    [[4, 8], [5, 10], [SOURCE_PAD_ID, 0]],
    [[5, 10], [6, 12], [1, 2]],
    [[SOURCE_PAD_ID, 0]] * 3,
]
