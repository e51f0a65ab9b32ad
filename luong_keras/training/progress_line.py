"""How far a training is, as one line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luong_keras.short_numbers import clock, rounded


@dataclass(frozen=True)
class TrainingState:
    """What is known of a training; None where it is not known yet.

    Attributes:
        epoch: the one that is trained, from 1.
        epochs: how many there will be.
        step: the batches of the epoch so far.
        steps: the batches of an epoch.
        loss: of the epoch so far.
        perplexity: likewise, of a target token.
        speed: in target tokens a second.
        rate: the learning rate.
        epoch_left: the seconds to the end of the epoch's batches.
        run_left: those to the end of the run.
        best: the best validation score of the epochs before.
        score: that of this epoch, which is over.
        validation: the perplexity of the validation text, likewise.
        seconds: that the epoch has taken, likewise.
        metric: what the score is called.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float | None = None
    perplexity: float | None = None
    speed: float | None = None
    rate: float | None = None
    epoch_left: float | None = None
    run_left: float | None = None
    best: float | None = None
    score: float | None = None
    validation: float | None = None
    seconds: float | None = None
    metric: str = "BLEU"


# How the parts of a line are written, the longest wording first, and what
# stands between them.
_Wording = tuple[str, Mapping[str, str]]
_RUNNING: Sequence[_Wording] = (
    (
        ", ",
        {
            "place": "epoch {epoch}/{epochs}, step {step}/{steps}",
            "loss": "loss {loss:.4g}",
            "perplexity": "perplexity {perplexity:.4g}",
            "speed": "{speed} tokens/s",
            "rate": "learning rate {rate:.3g}",
            "run_left": "epoch ends in {epoch_left}, run in {run_left}",
            "best": "best {metric} {best:.2f}",
        },
    ),
    (
        "  ",
        {
            "place": "epoch {epoch}/{epochs} step {step}/{steps}",
            "loss": "loss {loss:.4g}",
            "perplexity": "perplexity {perplexity:.4g}",
            "speed": "{speed} tokens/s",
            "rate": "lr {rate:.3g}",
            "run_left": "ETA {epoch_left}, run {run_left}",
            "best": "{metric} {best:.2f}",
        },
    ),
    (
        " ",
        {
            "place": "epoch {epoch}/{epochs} {step}/{steps}",
            "loss": "loss {loss:.4g}",
            "perplexity": "ppl {perplexity_short}",
            "speed": "{speed} tok/s",
            "rate": "lr {rate:.3g}",
            "run_left": "ETA {epoch_left}/{run_left}",
            "best": "{metric} {best:.1f}",
        },
    ),
    (
        " ",
        {
            "place": "epoch {epoch}/{epochs} {step}/{steps}",
            "loss": "loss {loss:.3g}",
            "perplexity": "ppl {perplexity_short}",
            "speed": "{speed} tok/s",
            "rate": "lr {rate:.2g}",
            "run_left": "ETA {epoch_left}/{run_left}",
            "best": "{metric} {best:.1f}",
        },
    ),
    (
        " ",
        {
            "place": "{epoch}/{epochs} {step}/{steps}",
            "loss": "loss {loss:.3g}",
            "perplexity": "ppl {perplexity_short}",
            "speed": "{speed} tok/s",
            "rate": "lr {rate:.2g}",
            "run_left": "{epoch_left}/{run_left}",
            "best": "{metric} {best:.1f}",
        },
    ),
    (
        " ",
        {
            "place": "{epoch}/{epochs} {step}/{steps}",
            "loss": "loss {loss:.3g}",
            "perplexity": "ppl {perplexity_short}",
            "speed": "{speed}/s",
            "rate": "lr {rate:.2g}",
            "run_left": "{epoch_left}/{run_left}",
            "best": "{metric} {best:.0f}",
        },
    ),
)
_OVER: Sequence[_Wording] = (
    (
        ", ",
        {
            "place": "epoch {epoch}/{epochs} in {seconds}",
            "loss": "loss {loss:.4g}",
            "perplexity": "perplexity {perplexity:.4g}",
            "validation": "validation {validation:.4g}",
            "score": "{metric} {score:.2f}",
            "best": "best {best:.2f}",
            "speed": "{speed} tokens/s",
            "rate": "learning rate {rate:.3g}",
        },
    ),
    (
        " ",
        {
            "place": "epoch {epoch}/{epochs} in {seconds}:",
            "loss": "loss {loss:.3g}",
            "perplexity": "ppl {perplexity_short}",
            "validation": "val {validation_short}",
            "score": "{metric} {score:.1f}",
            "best": "best {best:.1f}",
            "speed": "{speed} tok/s",
            "rate": "lr {rate:.2g}",
        },
    ),
)
# What a narrow terminal goes without, the first of them first.
_LEAST = ("rate", "speed", "loss", "best", "perplexity", "validation")


def running_line(
    state: TrainingState, width: int, wording: int = 0
) -> tuple[str, int]:
    """A training that goes on, in one line.

    Args:
        state: what is known.
        width: the columns that there are.
        wording: the number of the longest wording to try, that of the line
            before: a line that changes its words all the time cannot be read.

    Returns:
        The line, and the number of the wording that fitted.

    Example:
        >>> state = TrainingState(
        ...     3, 12, 123, 3125, 81.2, 9.81, 12345, 0.25, 245, 9071, 21.34
        ... )
        >>> running_line(state, 78)[0]
        '3/12 123/3125 loss 81.2 ppl 9.81 12.3k tok/s lr 0.25 4:05/2h31m BLEU \
21.3'
    """
    return _fitted(state, _RUNNING, width, wording)


def epoch_line(state: TrainingState, width: int) -> str:
    """An epoch that is over, in one line.

    Args:
        state: what is known.
        width: the columns that there are.

    Example:
        >>> state = TrainingState(
        ...     1, 4, 234, 234, 2.31, 9.81, score=31.2, seconds=83.0
        ... )
        >>> epoch_line(state, 80)
        'epoch 1/4 in 1:23, loss 2.31, perplexity 9.81, BLEU 31.20'
    """
    return _fitted(state, _OVER, width)[0]


def _fitted(
    state: TrainingState,
    wordings: Sequence[_Wording],
    width: int,
    first: int = 0,
) -> tuple[str, int]:
    values = {**vars(state), "place": ""}
    values = {name: v for name, v in values.items() if v is not None}
    for name in ("perplexity", "validation"):
        if name in values:
            values[f"{name}_short"] = rounded(values[name])
    for name in ("epoch_left", "run_left", "seconds"):
        if name in values:
            values[name] = clock(values[name])
    if "speed" in values:
        values["speed"] = rounded(values["speed"])
    for number in range(first, len(wordings)):
        between, formats = wordings[number]
        parts = {
            name: text.format(**values)
            for name, text in formats.items()
            if name in values
        }
        if len(between.join(parts.values())) <= width:
            return between.join(parts.values()), number
    for name in _LEAST:
        if len(between.join(parts.values())) > width:
            parts.pop(name, None)
    return between.join(parts.values())[:width], number
