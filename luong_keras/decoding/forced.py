"""Forced decoding: probabilities and alignments of given translations."""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.decoding.argument_checks import check_lengths, check_words
from luong_keras.decoding.model_step import (
    call_step,
    check_step_function,
    first_states,
)
from luong_keras.decoding.search import write_rows
from luong_keras.ops import masking
from luong_keras.ops.cross_entropy import masked_cross_entropy
from luong_keras.special_tokens import BOS_ID


class ForcedDecoding(NamedTuple):
    """Scores and alignments of given translations.

    Attributes:
        log_probabilities: (B, T) log-probability of each word, given the
            words before it; 0 on padding.
        alignments: (B, T, S) attention weights of the step that produces
            each word, after the softmax; zeros on padding.
    """

    log_probabilities: Any
    alignments: Any


def forced_decoding(
    step, states, targets, lengths, bos_id=BOS_ID
) -> ForcedDecoding:
    """Force the decoder to produce given translations.

    Args:
        step: The step function described in `luong_keras.decoding.model_step`.
        states: The first states, as in `luong_keras.decoding.search`.
        targets: (B, T) ids, including the final `</s>`.
        lengths: (B,) number of ids, including `</s>`; the rest is padding.
        bos_id: The id that the decoder reads first.

    Returns:
        `ForcedDecoding`.

    Raises:
        ValueError: For a Keras model as step, targets of another rank, or ids
            outside the vocabulary.

    Example:
    >>> import numpy as np
    >>> def always(ids, states, position):
    ...     logits = np.log([[[0.2, 0.3, 0.5]]]).astype("float32")
    ...     return logits, states, np.ones((1, 1, 1), "float32")
    >>> state = np.zeros((1, 1), "float32")
    >>> result = forced_decoding(always, [state], np.array([[2, 1]]), [2])
    >>> [f"{p:.1f}" for p in np.exp(result.log_probabilities)[0]]
    ['0.5', '0.3']
    """
    check_step_function(step)
    targets = ops.convert_to_tensor(targets, dtype="int32")
    if len(targets.shape) != 2:
        raise ValueError(
            "Expected: `targets` (B, T), the ids of B translations. Received: "
            f"shape {tuple(targets.shape)}."
        )
    batch, steps = ops.shape(targets)
    lengths = check_lengths("lengths", lengths, batch, limits=(0, steps))
    first_ids = ops.full((batch, 1), bos_id, dtype="int32")
    inputs = ops.concatenate([first_ids, targets], axis=1)
    states = first_states(step, states, batch, steps)
    # One call outside the loop gives the shape of the attention weights.
    logits, _, weights = call_step(step, first_ids, states, 0)
    check_words("targets", targets, lengths, logits.shape[-1])
    dtype = masking.wider_dtype(logits.dtype)
    width = ops.shape(weights)[-1]

    def body(t, log_probabilities, alignments, states):
        logits, states, weights = call_step(
            step, ops.take(inputs, t[None], axis=1), states, t
        )
        words = ops.take(targets, t[None], axis=1)
        inside = t < lengths
        gain = -masked_cross_entropy(logits, words, pad_id=-1)[:, 0]
        rows = (
            ops.where(inside, gain, 0),
            ops.where(inside[:, None], weights[:, 0], 0),
        )
        return (
            t + 1,
            *write_rows((log_probabilities, alignments), t, rows),
            states,
        )

    _, log_probabilities, alignments, _ = ops.while_loop(
        lambda t, *_: t < steps,
        body,
        (
            ops.zeros((), dtype="int32"),
            ops.zeros((steps, batch), dtype=dtype),
            ops.zeros((steps, batch, width), dtype=weights.dtype),
            states,
        ),
    )
    return ForcedDecoding(
        ops.transpose(log_probabilities), ops.transpose(alignments, (1, 0, 2))
    )
