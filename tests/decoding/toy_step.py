"""A step function that reads its probabilities from a table.

The state of a hypothesis is one number, a row of the table. It depends on the
sentence and on all words so far: a search that confuses parents, states or
positions reads other rows.
"""

import re

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import search
from luong_keras.special_tokens import BOS_ID, EOS_ID

ROWS = 997


class ToyStep:
    """Random logits (ROWS, V) and alignments (ROWS, S).

    Args:
        vocabulary_size: V.
        source_length: S.
        end_logit: Number added to all logits of `</s>`.
        seed: Seed of the table.
    """

    def __init__(self, vocabulary_size=8, source_length=4, end_logit=0, seed=0):
        generator = np.random.default_rng(seed)
        size = (ROWS, vocabulary_size)
        self.logits = generator.normal(size=size).astype("float32") * 1.5
        self.logits[:, EOS_ID] += end_logit
        self.alignments = generator.dirichlet(
            np.ones(source_length), ROWS
        ).astype("float32")

    def states(self, *sentences):
        """Return first states; any small number stands for a sentence."""
        return [np.array(sentences, "float32")[:, None]]

    def __call__(self, ids, states, position):
        old = ops.cast(states[0][..., 0], "int32")
        row = (old * 17 + ids * 5 + position * 3 + 1) % ROWS
        logits = ops.take(ops.convert_to_tensor(self.logits), row, axis=0)
        weights = ops.take(ops.convert_to_tensor(self.alignments), row, axis=0)
        return logits, [ops.cast(row, "float32")[..., None]], weights

    def row(self, sentence, words):
        """Return the row that is read after these words."""
        row = sentence
        for position, word in enumerate([BOS_ID, *words]):
            row = (row * 17 + word * 5 + position * 3 + 1) % ROWS
        return row

    def log_probabilities(self, sentence, words):
        """Return log p(. | words), (V,) float64."""
        return log_softmax(self.logits[self.row(sentence, words)])

    def alignment_rows(self, sentence, words):
        """Return the weights of the step that produces each word, (T, S)."""
        rows = [self.row(sentence, words[:i]) for i in range(len(words))]
        return self.alignments[rows]


class ConstantStep:
    """The same probabilities at every step, whatever the history."""

    def __init__(self, probabilities):
        with np.errstate(divide="ignore"):
            self.logits = np.log(np.array(probabilities, "float32"))

    def states(self, *sentences):
        """Return first states, which are not read."""
        return [np.zeros((len(sentences), 1), "float32")]

    def __call__(self, ids, states, position):
        zeros = ops.zeros_like(ops.cast(ids, "float32"))[..., None]
        return zeros + ops.convert_to_tensor(self.logits), states, zeros


def refused(*parts):
    """Expect an error whose message has these parts, in this order."""
    return pytest.raises(ValueError, match=".*".join(map(re.escape, parts)))


def symbol_log_probabilities(step, sentence, symbols):
    """List log p of each symbol after the symbols before it."""
    return [
        step.log_probabilities(sentence, symbols[:t])[symbol]
        for t, symbol in enumerate(symbols)
    ]


def check_ranks(found, scores, rtol=1e-4):
    """Check that hypotheses are those of {words: score}, the best first."""
    best = sorted(scores, key=scores.get, reverse=True)
    assert [words for _, words, _ in found] == best
    np.testing.assert_allclose(
        [score for score, _, _ in found], [scores[w] for w in best], rtol=rtol
    )


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def translations(step, sentences, max_lengths, function=search, **options):
    """Search these sentences and return the result as lists."""
    states = step.states(*sentences)
    return as_lists(function(step, states, max_lengths=max_lengths, **options))


def as_lists(hypotheses):
    """List (score, words, alignments) per sentence, without empty ranks."""
    ids, lengths, scores, alignments = (
        np.asarray(ops.convert_to_numpy(part)) for part in hypotheses
    )
    found = []
    for row in range(len(ids)):
        ranks = [n for n, s in enumerate(scores[row]) if np.isfinite(s)]
        # Empty ranks come last and hold nothing.
        assert ranks == list(range(len(ranks)))
        assert (lengths[row, len(ranks) :] == 0).all()
        inside = np.arange(ids.shape[-1]) < lengths[row, :, None]
        assert (ids[row][~inside] == 0).all()
        # Only the row of `</s>` may follow the words.
        after_end = np.arange(ids.shape[-1]) > lengths[row, :, None]
        assert (alignments[row][after_end] == 0).all()
        found.append(
            [
                (
                    float(scores[row, n]),
                    tuple(ids[row, n, : lengths[row, n]].tolist()),
                    alignments[row, n, : lengths[row, n]],
                )
                for n in ranks
            ]
        )
    return found
