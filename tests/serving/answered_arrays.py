"""Hand-written outputs of a translator, and the results they stand for."""

import numpy as np

from luong_keras.inference.translation import ScoredTranslation, Translation
from luong_keras_client import TranslatedText, TranslationScore

ABSENT = -1e30
# Attention of the longest translation.
_LONG = [[0.5, 0.25, 0.25], [0, 0, 1], [0.25, 0.5, 0.25], [0.125, 0.25, 0.625]]
_ROW = {"truncated": [False, False, True], "status": ["OK"] * 3}
# Outputs of a search for three sentences, the second one empty. The first
# translation has no step for `</s>`, but padding, as another one is longer.
SEARCHED = {
    "translations": [["Tür auf", "x"], ["", ""], ["Ä <unk> z .", "y"]],
    "scores": [[-0.5, -2.5], [0.0, ABSENT], [-1.5, -1.75]],
    "tokens": [
        [["Tür", "auf", "", ""], ["x", "", "", ""]],
        [[""] * 4, [""] * 4],
        [["Ä", "<unk>", "z", "."], ["y", "", "", ""]],
    ],
    "lengths": [[2, 1], [0, 0], [4, 1]],
    "alignments": [
        [
            [[0.75, 0.25, 0], [0.125, 0.875, 0], [0, 0, 0], [0, 0, 0]],
            [[0.25, 0.75, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0, 0]],
        ],
        [[[0, 0, 0]] * 4] * 2,
        [
            _LONG,
            [[0, 1, 0], [0.25, 0.25, 0.5], [0, 0, 0], [0, 0, 0]],
        ],
    ],
    "source_tokens": [["door", "open", ""], [""] * 3, ["ä", "b", "c"]],
    "source_lengths": [2, 0, 3],
    "truncated": [False, False, True],
    "unfinished": [[False] * 2] * 3,
}
_SOURCES = {x: SEARCHED[x] for x in ("source_tokens", "source_lengths")}
_BEST = {
    "translation": ["Tür auf", "", "Ä <unk> z ."],
    "score": [-0.5, 0.0, -1.5],
    **_ROW,
}
# Signature -> its outputs for the same sentences.
ANSWERS = {
    "serving_default": _BEST,
    "translate": {
        "translations": SEARCHED["translations"],
        "scores": SEARCHED["scores"],
        "truncations": [[False] * 2, [False] * 2, [True, False]],
        **_ROW,
    },
    "align": {  # Rank 0.
        "tokens": [tokens for tokens, _ in SEARCHED["tokens"]],
        "lengths": [2, 0, 4],
        "alignments": [weights for weights, _ in SEARCHED["alignments"]],
        **_SOURCES,
        **_BEST,
    },
    "score": {
        "log_probability": [-1.5, -0.25, -3.0],
        "word_log_probabilities": [
            [-0.5, -1.0, 0.0],
            [-0.25, 0.0, 0.0],
            [-0.75, -0.25, -2.0],
        ],
        "tokens": [["Tür", "</s>", ""], ["</s>", "", ""], ["Ä", "z", "</s>"]],
        "lengths": [2, 1, 3],
        **_ROW,
    },
    "encode": {
        "memory": [
            [[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]],
            [[9.0, 9.0]] * 3,
            [[5.0, 6.0], [7.0, 8.0], [0.5, 0.25]],
        ],
        "lengths": [2, 0, 3],
        **_ROW,
    },
}
ANSWERS["align_pair"] = {
    **ANSWERS["score"],
    **_SOURCES,
    "alignments": [
        [[0.75, 0.25, 0], [0.5, 0.5, 0], [0, 0, 0]],
        [[0, 0, 0]] * 3,
        [[0.5, 0.25, 0.25], [0, 1, 0], [0.25, 0, 0.75]],
    ],
}
MEMORIES = [
    np.array([[1, 2], [3, 4]]),
    np.zeros((0, 2)),
    np.array([[5, 6], [7, 8], [0.5, 0.25]]),
]
# Step -> links of each translation of each sentence.
LINKS = {
    "produces": [
        [[(0, 0), (1, 1)], [(1, 0)]],
        [[]],
        [[(0, 0), (1, 2), (2, 1), (2, 3)], [(1, 0)]],
    ],
    "reads": [
        [[(1, 0), (1, 1)], [(0, 0)]],
        [[]],
        [[(1, 1), (2, 0), (2, 2), (2, 3)], [(2, 0)]],
    ],
}
SCORED = [
    ScoredTranslation(
        -1.5,
        ["Tür", "</s>"],
        np.array([-0.5, -1]),
        ["door", "open"],
        np.array([[0.75, 0.25], [0.5, 0.5]]),
        False,
    ),
    ScoredTranslation(
        -0.25, ["</s>"], np.array([-0.25]), [], np.zeros((1, 0)), False
    ),
    ScoredTranslation(
        -3.0,
        ["Ä", "z", "</s>"],
        np.array([-0.75, -0.25, -2]),
        ["ä", "b", "c"],
        np.array([[0.5, 0.25, 0.25], [0, 1, 0], [0.25, 0, 0.75]]),
        True,
    ),
]
SCORES = [
    TranslationScore(
        scored.log_probability,
        scored.tokens,
        scored.word_log_probabilities,
        scored.truncated,
    )
    for scored in SCORED
]
TEXTS = [
    [TranslatedText("Tür auf", -0.5), TranslatedText("x", -2.5)],
    [TranslatedText("", 0.0)],
    [TranslatedText("Ä <unk> z .", -1.5, True), TranslatedText("y", -1.75)],
]


def translations(step):
    """Return the translations of `SEARCHED` with the links of a step."""
    door, letters = ["door", "open"], ["ä", "b", "c"]
    words = ["Ä", "<unk>", "z", "."]
    links = LINKS[step]
    return [
        [
            Translation(
                "Tür auf",
                -0.5,
                ["Tür", "auf"],
                door,
                np.array([[0.75, 0.25], [0.125, 0.875]]),
                links[0][0],
                False,
            ),
            Translation(
                "x", -2.5, ["x"], door, np.array([[0.25, 0.75]]), links[0][1]
            ),
        ],
        [Translation("", 0.0, [], [], np.zeros((0, 0)), links[1][0], False)],
        [
            Translation(
                "Ä <unk> z .",
                -1.5,
                words,
                letters,
                np.array(_LONG),
                links[2][0],
                True,
            ),
            Translation(
                "y", -1.75, ["y"], letters, np.eye(3)[1:2], links[2][1], True
            ),
        ],
    ]


def arrays(outputs):
    """Convert outputs to arrays, with strings as bytes."""
    return {name: _array(values) for name, values in outputs.items()}


def check(found, expected):
    """Check that results, or lists of them, have equal fields and types."""
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
        return
    # The client has classes of the same names.
    assert type(found).__name__ == type(expected).__name__
    for name, value in vars(expected).items():
        actual = getattr(found, name)
        if isinstance(value, np.ndarray):
            assert actual.shape == value.shape, name
            assert actual.tolist() == value.tolist(), name
        else:
            assert actual == value and type(actual) is type(value), name


def _array(values):
    array = np.array(values)
    if array.dtype.kind == "U":
        return np.frompyfunc(str.encode, 1, 1)(array.astype(object))
    if array.dtype.kind == "f":
        return array.astype("float32")
    return array
