"""The most probable word at every step."""

from keras import ops

from luong_keras.decoding.backpointers import write_rows
from luong_keras.decoding.hypotheses import Hypotheses
from luong_keras.decoding.top_words import top_words
from luong_keras.ops import masking
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID


def greedy_search(
    step,
    states,
    max_lengths,
    max_steps,
    min_lengths=None,
    length_penalty=0.0,
    bos_id=BOS_ID,
    eos_id=EOS_ID,
    pad_id=PAD_ID,
) -> Hypotheses:
    """Translates B sentences by the best word of every step.

    The same result as a beam of one hypothesis, without its bookkeeping.

    Args:
        step: the step function described in `luong_keras.decoding`.
        states: its first states, a list of (B, U).
        max_lengths: (B,) most symbols of each sentence, `</s>` counted.
        max_steps: the largest of them, the length of the result.
        min_lengths: (B,) fewest words before `</s>` is allowed.
        length_penalty: as in `beam_search`; it changes the scores alone.
        bos_id: the id the decoder reads first.
        eos_id: the id that ends a sentence.
        pad_id: the id behind the last word of the result.

    Returns:
        `Hypotheses` with N = 1.
    """
    max_lengths = ops.cast(max_lengths, "int32")
    batch = ops.shape(states[0])[0]
    if min_lengths is None:
        min_lengths = ops.ones_like(max_lengths)
    # As in beam search, the first word is never `</s>`.
    min_lengths = ops.maximum(ops.cast(min_lengths, "int32"), 1)
    states = [ops.expand_dims(state, 1) for state in states]
    first = ops.full((batch, 1), bos_id, dtype="int32")
    # One call outside the loop gives the shape of the attention weights.
    logits, _, weights = step(first, states, 0)
    dtype = masking.wider_dtype(logits.dtype)
    source_length = ops.shape(weights)[-1]
    ids = ops.full((max_steps + 1, batch), pad_id, dtype="int32")
    alignments = ops.zeros(
        (max_steps + 1, batch, source_length), dtype=weights.dtype
    )

    def unfinished(t, _ids, done, *_):
        return ops.logical_and(t < max_steps, ops.any(~done))

    def body(t, last, done, lengths, scores, ids, alignments, *states):
        logits, states, weights = step(last, list(states), t)
        # Where the best word may not be chosen, the second one is.
        log_probabilities, words = top_words(logits, 2)
        second = (words[:, 0, 0] == eos_id) & (t < min_lengths)
        gain = ops.where(
            second, log_probabilities[:, 0, 1], log_probabilities[:, 0, 0]
        )
        word = ops.where(second, words[:, 0, 1], words[:, 0, 0])
        ends = word == eos_id
        scores = scores + ops.where(done, 0.0, gain)
        writes = ~done & ~ends
        word = ops.where(writes, word, pad_id)
        row = ops.where(done[:, None], 0.0, weights[:, 0])
        ids, alignments = write_rows((ids, alignments), t, (word, row))
        lengths = lengths + ops.cast(writes, "int32")
        done = done | ends | (t + 1 >= max_lengths)
        return (
            t + 1,
            word[:, None],
            done,
            lengths,
            scores,
            ids,
            alignments,
            *states,
        )

    def condition(t, last, done, *_):
        return unfinished(t, last, done)

    start = (
        ops.zeros((), dtype="int32"),
        first,
        max_lengths < 1,
        ops.zeros((batch,), dtype="int32"),
        ops.zeros((batch,), dtype=dtype),
        ids,
        alignments,
        *states,
    )
    _, _, _, lengths, scores, ids, alignments, *_ = ops.while_loop(
        condition, body, start
    )
    if length_penalty:
        # What ended before its limit has the symbol `</s>` too.
        symbols = ops.minimum(lengths + 1, ops.maximum(max_lengths, 1))
        scores = scores / ops.cast(symbols, dtype) ** length_penalty
    ids = ops.transpose(ids[:max_steps])[:, None]
    alignments = ops.transpose(alignments[:max_steps], (1, 0, 2))[:, None]
    return Hypotheses(ids, lengths[:, None], scores[:, None], alignments)
