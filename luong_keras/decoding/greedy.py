"""Greedy search: the most probable word at each step."""

from keras import ops

from luong_keras.decoding.scorers import LengthPenalty
from luong_keras.decoding.search import check_search, search
from luong_keras.decoding.strategy import Hypotheses, IndependentSampler
from luong_keras.decoding.top_words import top_words
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID


class Greedy(IndependentSampler):
    """Greedy choice of the best word at each step.

    The result is that of a beam of size 1, without its bookkeeping.
    """

    per_sentence = ("counts",)

    def pick(self, state, barred):
        # If the best word is a barred `</s>`, the second one is chosen.
        gains, words = top_words(state.logits, 2, state.suppressed, state.bonus)
        second = (words[..., 0] == state.eos_id) & barred
        return (
            ops.where(second, gains[..., 1], gains[..., 0]),
            ops.where(second, words[..., 1], words[..., 0]),
        )


def greedy_search(
    step,
    states,
    max_lengths,
    max_steps=None,
    *,
    min_lengths=None,
    length_penalty=0.0,
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    pad_id=PAD_ID,
    scorers=(),
) -> Hypotheses:
    """Translate B sentences with the best word at each step.

    Calls `search` with `Greedy` and a `LengthPenalty`.

    Args:
        step: The step function described in `luong_keras.decoding.model_step`.
        states: The first states, as in `search`.
        max_lengths: Maximum number of symbols, including `</s>`: a number, or
            one per sentence, (B,).
        max_steps: The length of the result, as in `search`; the largest of
            `max_lengths` when None.
        min_lengths: Minimum number of words before `</s>`, likewise a number
            or (B,); 1 when None.
        length_penalty: As in `beam_search`; it changes only the scores.
        bos_id: The id that the decoder reads first.
        eos_id: The id that ends a sentence.
        pad_id: The id after the last word of the result.
        scorers: Other `Scorer`s.

    Returns:
        `Hypotheses` with N = 1.
    """
    strategy = Greedy()
    scorers = check_search(strategy, scorers)
    return search(
        step,
        states,
        strategy,
        max_lengths,
        max_steps,
        min_lengths=min_lengths,
        scorers=[LengthPenalty(length_penalty), *scorers],
        bos_id=bos_id,
        eos_id=eos_id,
        pad_id=pad_id,
    )
