"""A translation model whose probabilities and attention are in a table."""

from types import SimpleNamespace

import numpy as np
from keras import ops

from luong_keras.special_tokens import EOS, SPECIAL_TOKENS
from luong_keras.text.word_tokenizer import WordTokenizer

SOURCE_WORDS = ["a", "b", "c", "d"]
TARGET_WORDS = ["x", "y", "."]
SOURCE_NAMES = [*SPECIAL_TOKENS, *SOURCE_WORDS]
TARGET_NAMES = [*SPECIAL_TOKENS, *TARGET_WORDS]
# Not an id of the target vocabulary, so the paddings cannot be confused.
SOURCE_PAD_ID = len(SOURCE_NAMES)
STEPS, WIDTH = 9, 8
IMPOSSIBLE = 1e-9

# First source word, position, previous word -> probabilities of the next word,
# and tenths of attention to the source words.
SCRIPT = {
    # Ends after one word, a few words or an unknown word.
    ("a", 0, "<s>"): ({"x": 0.6, "<unk>": 0.3, "y": 0.08, ".": 0.02}, [8, 2]),
    ("a", 1, "x"): ({EOS: 0.6, "y": 0.4}, [3, 7]),
    ("a", 1, "<unk>"): ({EOS: 0.9, ".": 0.1}, [1, 9]),
    ("a", 1, "y"): ({EOS: 0.97, "x": 0.03}, [4, 6]),
    ("a", 1, "."): ({EOS: 0.75, "y": 0.25}, [6, 4]),
    ("a", 2, "y"): ({EOS: 0.97, "x": 0.03}, [2, 8]),
    # Prefers to end after one word.
    ("b", 0, "<s>"): ({"y": 0.9, "<unk>": 0.1}, [6, 3, 1]),
    ("b", 1, "y"): ({EOS: 0.8, "<unk>": 0.2}, [1, 1, 8]),
    ("b", 2, "<unk>"): ({EOS: 0.7, "x": 0.3}, [2, 7, 1]),
    # Cannot end within four words; the fourth word is unknown.
    ("c", 0, "<s>"): ({"x": 0.8, "y": 0.2}, [7, 3]),
    ("c", 1, "x"): ({"x": 0.8, "y": 0.2}, [6, 4]),
    ("c", 2, "x"): ({"x": 0.8, "y": 0.2}, [9, 1]),
    ("c", 3, "x"): ({"<unk>": 0.9, "y": 0.1}, [2, 8]),
}
# The entry of every other key.
OTHERWISE = ({EOS: 0.5, "x": 0.5}, [5, 5])


class ScriptedModel:
    """A replacement of `TranslationModel` with a table such as `SCRIPT`.

    Attributes:
        encoded: List of the ids of each encoded batch.
    """

    has_attention = True
    config = SimpleNamespace(
        source_vocabulary_size=len(SOURCE_NAMES),
        target_vocabulary_size=len(TARGET_NAMES),
        source_pad_id=SOURCE_PAD_ID,
        target_pad_id=0,
        bos_id=2,
        eos_id=3,
    )

    def __init__(self, script=SCRIPT, otherwise=OTHERWISE):
        words = len(TARGET_NAMES)
        shape = (SOURCE_PAD_ID + 1, STEPS, words)
        self.logits = np.empty((*shape, words), "float32")
        self.weights = np.empty((*shape, WIDTH), "float32")
        self.logits[:], self.weights[:] = _rows(*otherwise)
        for (source, position, last), row in script.items():
            first, last = SOURCE_NAMES.index(source), TARGET_NAMES.index(last)
            place = first, position, last
            self.logits[place], self.weights[place] = _rows(*row)
        self.encoded = []

    def encode(self, ids):
        """Return memory (B, S, 2): each id and its double, 0 for padding."""
        self.encoded.append(ops.convert_to_numpy(ids).tolist())
        mask = ids != SOURCE_PAD_ID
        ids = ops.cast(ids, "float32")
        memory = ops.stack([ids, 2 * ids * ops.cast(mask, "float32")], -1)
        return memory, mask, [ids[:, :1]]

    def decoding_step(self, memory, mask, words=None):
        width = ops.shape(memory)[1]

        def step(ids, states, position):
            first = ops.cast(states[0][..., 0], "int32")
            row = (first * STEPS + position) * len(TARGET_NAMES) + ids
            logits, weights = (
                ops.take(table.reshape(-1, table.shape[-1]), row, axis=0)
                for table in (self.logits, self.weights)
            )
            unmasked = ops.cast(mask, "float32")[:, None]
            return logits, states, weights[..., :width] * unmasked

        return step


def tokenizers():
    """Create the source and target tokenizers of the script."""
    return tuple(map(WordTokenizer.from_words, (SOURCE_WORDS, TARGET_WORDS)))


def _rows(probabilities, tenths):
    """Return logits (V,) and weights (S,); the latter are given in tenths."""
    logits = np.full(len(TARGET_NAMES), np.log(IMPOSSIBLE))
    for word, probability in probabilities.items():
        logits[TARGET_NAMES.index(word)] = np.log(probability)
    weights = np.zeros(WIDTH)
    weights[: len(tenths)] = np.array(tenths) / 10
    return logits, weights
