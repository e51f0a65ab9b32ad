"""Beam search and greedy search as one function each."""

import numpy as np

from luong_keras.decoding.argument_checks import check_integer, known_values
from luong_keras.decoding.beam import Beam
from luong_keras.decoding.scorers import LengthPenalty, Prefix
from luong_keras.decoding.search import check_search, search
from luong_keras.decoding.strategy import Greedy, Hypotheses
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID


def beam_search(
    step,
    states,
    max_lengths,
    max_steps=None,
    *,
    min_lengths=None,
    beam_size=10,
    stack_size=None,
    length_penalty=0.0,
    prefix=None,
    prefix_lengths=None,
    beam_sizes=None,
    stack_sizes=None,
    stack_keeps="best",
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    pad_id=PAD_ID,
    scorers=(),
) -> Hypotheses:
    """Translate B sentences with K live hypotheses each.

    Calls `search` with a `Beam`, a `LengthPenalty` and a `Prefix`.

    Args:
        step: The step function described in `luong_keras.decoding.model_step`.
        states: The first states, as in `search`.
        max_lengths: Maximum number of symbols, including `</s>`: a number, or
            one per sentence, (B,).
        max_steps: The length of the result, as in `search`; the largest of
            `max_lengths` when None.
        min_lengths: Minimum number of words before `</s>`, likewise a number
            or (B,); 1 when None.
        beam_size: K.
        stack_size: N, the number of finished hypotheses to collect; K when
            None.
        length_penalty: A number, or one per sentence, (B,): x of the
            normalisation score / length**x, whose length includes `</s>`; 0
            leaves the plain sum (the paper).
        prefix: (B, P) ids that each sentence must begin with, scored like
            any other words; None for a free search.
        prefix_lengths: (B,) number of imposed words; all P when None.
        beam_sizes: (B,) beam size of each sentence, at most K; K when None.
        stack_sizes: (B,) number of finished hypotheses of each sentence, at
            most N; N when None.
        stack_keeps: The finished hypotheses to keep: the "best", or those
            that finish "first", which end the search (the authors' program).
        bos_id: The id that the decoder reads first.
        eos_id: The id that ends a sentence.
        pad_id: The id after the last word of the result.
        scorers: Other `Scorer`s.

    Returns:
        `Hypotheses` with N = `stack_size`, the best first. If nothing
        finished, at most K of the ranks are filled.
    """
    beam_size = check_integer("beam_size", beam_size)
    strategy = Beam(
        beam_size,
        stack_size,
        stack_keeps,
        sizes=beam_sizes,
        stack_sizes=stack_sizes,
    )
    scorers = check_search(strategy, scorers)
    if prefix is None and prefix_lengths is not None:
        raise ValueError(
            "`prefix_lengths` needs a `prefix`. Received: prefix=None."
        )
    prefixes = []
    if prefix is not None:
        prefixes = [Prefix(prefix, prefix_lengths)]
        lengths = prefixes[0].lengths
        _check_prefix(prefix, lengths, max_lengths, min_lengths, eos_id)
    return search(
        step,
        states,
        strategy,
        max_lengths,
        max_steps,
        min_lengths=min_lengths,
        scorers=[*prefixes, LengthPenalty(length_penalty), *scorers],
        bos_id=bos_id,
        eos_id=eos_id,
        pad_id=pad_id,
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


def _check_prefix(prefix, lengths, max_lengths, min_lengths, eos_id):
    """Check that prefixes fit the limits, if the values are known."""
    least = 1 if min_lengths is None else min_lengths
    values = [*map(known_values, (prefix, lengths, max_lengths, least))]
    if any(value is None for value in values):
        return
    prefix, lengths, max_lengths, least = values
    places = np.arange(prefix.shape[1])
    ends = (prefix == eos_id) & (places < lengths[:, None])
    is_early = (ends & (places < np.reshape(least, (-1, 1)))).any()
    if (lengths > max_lengths).any() or is_early:
        raise ValueError(
            "Expected: prefixes of at most `max_lengths` words, without </s> "
            f"before `min_lengths` words. Received: lengths {lengths.tolist()} "
            f"with max_lengths={max_lengths.tolist()}, min_lengths="
            f"{least.tolist()}, </s> at {np.argwhere(ends).tolist()}."
        )
