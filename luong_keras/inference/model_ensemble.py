"""Several trained models that translate as one."""

from __future__ import annotations

from collections.abc import Sequence

from keras import ops

from luong_keras.config import ModelConfig
from luong_keras.decoding.ensemble import AVERAGES, ensemble_step
from luong_keras.models.translation_model import TranslationModel
from luong_keras.ops import masking
from luong_keras.ops.batch_compaction import PerSentence

# What has to be equal, for one vocabulary means one thing to all.
_SHARED = (
    "source_vocabulary_size",
    "target_vocabulary_size",
    "source_pad_id",
    "target_pad_id",
    "bos_id",
    "eos_id",
)


class ModelEnsemble:
    """Models of the same vocabularies that decide together (section 4.1).

    It is decoded as a `TranslationModel` is, by `encode` and
    `decoding_step`; the models may differ in everything else.

    Args:
        models: two or more `TranslationModel`s.
        average: of what the mean is taken, as `ensemble_step` describes.

    Attributes:
        config: that of the first model.

    Raises:
        ValueError: for less than two models, models of other vocabularies,
            or an unknown average.
    """

    def __init__(
        self, models: Sequence[TranslationModel], average: str = "logits"
    ) -> None:
        if len(models) < 2 or average not in AVERAGES:
            raise ValueError(
                "Expected: two models or more, and an average of "
                f"{AVERAGES}. Received: {len(models)} models and "
                f"average={average!r}."
            )
        for name in _SHARED:
            values = [getattr(model.config, name) for model in models]
            if len(set(values)) > 1:
                raise ValueError(
                    f"The models of an ensemble must have the same {name}. "
                    f"Received: {values}. Train them on the same vocabularies."
                )
        self.models = list(models)
        self.average = average

    @property
    def config(self) -> ModelConfig:
        """The first model's configuration, for what all have in common."""
        return self.models[0].config

    @property
    def has_attention(self) -> bool:
        """Whether the decoder attends, so that there are alignments."""
        return any(model.has_attention for model in self.models)

    def fold_embedding(self) -> None:
        """As `TranslationModel.fold_embedding`, of all of them."""
        for model in self.models:
            model.fold_embedding()

    def encode(self, *source):
        """Lists of the models' memories, of masks, and of all first states."""
        memories, masks, states = [], [], []
        for model in self.models:
            memory, mask, first = model.encode(*source)
            memories.append(memory)
            masks.append(mask)
            states += first
        return memories, masks, states

    def decoding_step(self, memories, masks, words=None):
        """As `TranslationModel.decoding_step`, over all of them.

        The alignments are the mean of those of the models that have any.
        """
        steps = [
            model.decoding_step(memory, mask, words)
            for model, memory, mask in zip(
                self.models, memories, masks, strict=True
            )
        ]
        counts = [len(model.decoder.cell.state_size) for model in self.models]
        # Those without attention give zeros.
        share = sum(model.has_attention for model in self.models)
        return _MeanOfTheAttending(
            ensemble_step(steps, counts, self.average),
            len(self.models) / max(share, 1),
        )

    @staticmethod
    def joined_memory(memories):
        """The memories side by side, (B, S, sum of M)."""
        memories = [masking.upcast(memory) for memory in memories]
        return ops.concatenate(memories, axis=-1)


class _MeanOfTheAttending(PerSentence):
    """The step of an ensemble, whose attention weights times a number."""

    per_sentence = ("step",)

    def __init__(self, step, scale):
        self.step = step
        self.scale = scale

    def __call__(self, ids, states, position):
        logits, states, weights = self.step(ids, states, position)
        return logits, states, weights * self.scale
