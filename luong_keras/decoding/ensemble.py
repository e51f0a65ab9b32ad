"""Several models that decide together about every word."""

import math

from keras import ops

from luong_keras.ops import masking
from luong_keras.ops.batch_compaction import PerSentence

AVERAGES = ("logits", "probabilities")


def ensemble_step(steps, state_counts, average="logits"):
    """One step function of several models with the same vocabularies.

    Args:
        steps: the models' step functions, as in `luong_keras.decoding`, over
            the same sentences.
        state_counts: how many states each of them has.
        average: `"logits"`, their mean and one softmax: the renormalised
            geometric mean of the probabilities, as in the authors' program;
            `"probabilities"`, the arithmetic mean.

    Returns:
        A step function whose states are those of all models, one after the
        other, and whose attention weights are the mean of theirs, of those
        that return any.

    Raises:
        ValueError: for an unknown average, or not one count a step.

    Example:
    >>> import numpy as np
    >>> def certain(word):
    ...     def step(ids, states, position):
    ...         return np.log(word)[None, None], states, np.ones((1, 1, 1))
    ...     return step
    >>> step = ensemble_step(
    ...     [certain([0.8, 0.2]), certain([0.2, 0.8])], [0, 0], "probabilities"
    ... )
    >>> logits, _, _ = step(np.zeros((1, 1), "int32"), [], 0)
    >>> np.exp(np.array(logits))[0, 0].round(3).tolist()
    [0.5, 0.5]
    """
    if average not in AVERAGES:
        raise ValueError(
            f"`average` must be one of {AVERAGES}. Received: "
            f"average={average!r}."
        )
    if not steps or len(steps) != len(state_counts):
        raise ValueError(
            "An ensemble needs at least one step function and the number of "
            f"states of each. Received: {len(steps)} steps and "
            f"{len(state_counts)} counts."
        )

    return _EnsembleStep(steps, state_counts, average)


class _EnsembleStep(PerSentence):
    """Calls the steps of all models."""

    per_sentence = ("steps",)

    def __init__(self, steps, state_counts, average):
        self.steps = list(steps)
        self.state_counts = list(state_counts)
        self.average = average

    def __call__(self, ids, states, position):
        results, first = [], 0
        for one, count in zip(self.steps, self.state_counts, strict=True):
            own = list(states[first : first + count])
            results.append(one(ids, own, position))
            first += count
        logits, new_states, weights = zip(*results, strict=True)
        weights = [masking.upcast(x) for x in weights if x is not None]
        return (
            _averaged(logits, self.average),
            [state for states in new_states for state in states],
            _mean(weights) if weights else None,
        )


def _averaged(logits, average):
    logits = [masking.upcast(ops.convert_to_tensor(each)) for each in logits]
    if average == "logits":
        return _mean(logits)
    # Not the logarithm of the mean: a small probability may round to zero.
    each = ops.stack([ops.log_softmax(each, axis=-1) for each in logits])
    return ops.logsumexp(each, axis=0) - math.log(len(logits))


def _mean(tensors):
    return sum(tensors[1:], tensors[0]) / len(tensors)
