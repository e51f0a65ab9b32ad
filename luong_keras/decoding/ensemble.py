"""Ensembles of models, which choose each word together (section 4.2)."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from keras import ops

from luong_keras.config import ModelConfig
from luong_keras.config.checks import check_choice
from luong_keras.ops import masking
from luong_keras.ops.batch_compaction import PerSentence

AVERAGES = ("logits", "probabilities")
# Settings that must be equal, because all models share the vocabularies.
_SHARED = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "source_pad_id",
    "target_pad_id",
    "bos_id",
    "eos_id",
)


def ensemble_step(steps, state_counts, average="logits"):
    """Combine the step functions of models with the same vocabularies.

    Args:
        steps: Step functions of the models, as in `luong_keras.decoding`, for
            the same sentences.
        state_counts: The number of states of each step function.
        average: `"logits"`, the mean of the logits and one softmax: the
            renormalised geometric mean of the probabilities, as in the
            authors' program; `"probabilities"`, the arithmetic mean.

    Returns:
        A step function. Its states are the states of all models, one after
        the other. Its attention weights are the mean over the models that
        return weights.

    Raises:
        ValueError: For an unknown average, or other than one count per step.

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
    check_choice(AVERAGES, average=average)
    if not steps or len(steps) != len(state_counts):
        raise ValueError(
            "An ensemble needs at least one step function and the number of "
            f"states of each. Received: {len(steps)} steps and "
            f"{len(state_counts)} counts."
        )

    return _EnsembleStep(steps, state_counts, average)


class _EnsembleStep(PerSentence):
    """The step function of an ensemble.

    It multiplies the mean of the attention weights by `scale`.
    """

    per_sentence = ("steps",)

    def __init__(self, steps, state_counts, average, scale=1.0):
        self.steps = list(steps)
        self.state_counts = list(state_counts)
        self.average = average
        self.scale = scale

    def __call__(self, ids, states, position):
        remaining = iter(states)
        results = [
            step(ids, list(itertools.islice(remaining, count)), position)
            for step, count in zip(self.steps, self.state_counts, strict=True)
        ]
        logits, new_states, weights = zip(*results, strict=True)
        logits = [masking.upcast(ops.convert_to_tensor(x)) for x in logits]
        if self.average == "logits":
            average = _mean(logits)
        else:
            # Not the logarithm of the mean: small probabilities may round to
            # zero.
            gains = ops.stack([ops.log_softmax(x, axis=-1) for x in logits])
            average = ops.logsumexp(gains, axis=0) - math.log(len(logits))
        weights = [masking.upcast(x) for x in weights if x is not None]
        return (
            average,
            list(itertools.chain(*new_states)),
            _mean(weights) * self.scale if weights else None,
        )


def _mean(tensors):
    return sum(tensors[1:], tensors[0]) / len(tensors)


class ModelEnsemble:
    """Models with the same vocabularies that decode together (section 4.2).

    Like a `TranslationModel`, it is decoded with `encode` and
    `decoding_step`. Apart from the vocabularies, the models may differ.

    Args:
        models: Two or more `TranslationModel`s.

    Attributes:
        config: The configuration of the first model.
        has_attention: True if any decoder has attention, which gives
            alignments.

    Raises:
        ValueError: For fewer than two models, or models with different
            vocabularies.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        if len(models) < 2:
            raise ValueError(
                f"Expected: two models or more. Received: {len(models)}."
            )
        for name in _SHARED:
            values = [getattr(model.config, name) for model in models]
            if len(set(values)) > 1:
                raise ValueError(
                    f"The models of an ensemble must have the same {name}. "
                    f"Received: {values}. Train them on the same vocabularies."
                )
        self.models = list(models)
        self.config: ModelConfig = models[0].config
        self.has_attention = any(model.has_attention for model in models)

    def encode(self, *source):
        """Return lists of all memories, masks and first states."""
        encoded = [model.encode(*source) for model in self.models]
        memories, masks, states = zip(*encoded, strict=True)
        return list(memories), list(masks), list(itertools.chain(*states))

    def decoding_step(self, memories, masks, words=None):
        """Combine `TranslationModel.decoding_step` of all models.

        The alignments are the mean over the models that have attention.
        """
        steps = [
            model.decoding_step(memory, mask, words)
            for model, memory, mask in zip(
                self.models, memories, masks, strict=True
            )
        ]
        counts = [len(model.decoder.cell.state_size) for model in self.models]
        # Models without attention return zero weights.
        num_attending = sum(model.has_attention for model in self.models)
        scale = len(self.models) / max(num_attending, 1)
        return _EnsembleStep(steps, counts, "logits", scale)
