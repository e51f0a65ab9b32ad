"""Checks of settings that depend on another setting."""

from collections.abc import Collection, Iterable

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, leaf_values

_HALVED_BY_EPOCH = ("start", "after_epoch", "by_iteration")
_USUAL_RATES = {"adam": 0.001, "sgd": 1}
# Settings read only with these values of another; without values, any but None.
_READ_WITH: dict[str, tuple[str, ...]] = {
    "model.attention.score_mode": ("model.attention.kind", "global", "local"),
    "model.attention.use_scale": ("model.attention.kind", "global", "local"),
    "model.attention.alignment": ("model.attention.kind", "local"),
    "model.attention.half_width": ("model.attention.kind", "local"),
    "model.attention.gaussian": ("model.attention.kind", "local"),
    "model.attention.clamp_position": ("model.attention.kind", "local"),
    "model.attention.concat_form": ("model.attention.score_mode", "concat"),
    "model.attention.max_length": ("model.attention.score_mode", "location"),
    "model.attention.mask_location": ("model.attention.score_mode", "location"),
    "training.first_halved_epoch": ("training.halving", *_HALVED_BY_EPOCH),
    "training.halvings_per_epoch": ("training.halving", *_HALVED_BY_EPOCH),
    "training.clip_counts_embeddings": ("training.clip_norm",),
    "data.filters.length_unit": ("data.filters.length_ratio",),
    "data.columns": ("data.dataset", "files"),
    "decoding.temperature": ("decoding.search", "sampling"),
}


def check_effects(config: RunConfig, names: Iterable[str]) -> None:
    """Check that settings given for a new run have an effect in it.

    Args:
        config: The settings of the run.
        names: Full names of the given settings. Defaults need no effect.

    Raises:
        ValueError: If another setting makes one of them ineffective.
    """
    leaves = leaf_values(config_to_dict(config))
    defaults = leaf_values(config_to_dict(RunConfig()))
    for name in names:
        if name not in _READ_WITH or leaves[name] == defaults[name]:
            continue
        other, *choices = _READ_WITH[name]
        if leaves[other] not in (choices or {leaves[other]} - {None}):
            raise ValueError(
                f"{name} has an effect only with {other}="
                f"{' or '.join(choices) or '…'}. Received: {name}="
                f"{leaves[name]!r} with {other}={leaves[other]}. Leave {name} "
                f"out, or set {other}."
            )


def check_learning_rate(
    config: RunConfig, names: Collection[str], base: RunConfig
) -> None:
    """Check that a new optimizer has a learning rate of its own.

    Args:
        config: The settings of the run.
        names: Full names of the given settings.
        base: The settings of the run before these.

    Raises:
        ValueError: For another optimizer with the learning rate of `base`.
    """
    new, old = config.training, base.training
    if (
        "training.optimizer" in names
        and "training.learning_rate" not in names
        and new.optimizer != old.optimizer
        and new.learning_rate == old.learning_rate
    ):
        raise ValueError(
            f"Expected: training.learning_rate with training.optimizer="
            f"{new.optimizer}, about {_USUAL_RATES[new.optimizer]}. Received: "
            f"none, and {old.learning_rate:g} is that of {old.optimizer}."
        )
