"""Settings of a run, and of its search, as flags of the command line."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from luong_keras.cli.parsing import Own
from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import LEAVES, SHORT_NAMES, expected
from luong_keras.suggestions import did_you_mean

_FLAG = re.compile(r"--(?:[\w-]+\.[\w.-]+|columns)")


def settings_flags(arguments: type, config: RunConfig) -> type:
    """The dataclass of a command with the sections of a run beside.

    For the help: their values are those of `config`.
    """
    fields = [
        (field.name, field.type, getattr(config, field.name))
        for field in dataclasses.fields(RunConfig)
    ]
    made = dataclasses.make_dataclass(
        arguments.__name__,
        fields,
        bases=(arguments,),
        namespace={"__doc__": arguments.__doc__},
        frozen=True,
    )
    # The help is read from the comments of the source that this names.
    made.__module__ = arguments.__module__
    return made


def taken_settings(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings that flags name, as assignments, and what else there is.

    A list may stand in one word or in several.

    Raises:
        ValueError: for a flag of no setting, or without its value.

    Example:
        >>> taken_settings("--data.columns a b --model.units=8 --x".split())
        (['data.columns=["a", "b"]', 'model.units=8'], ['--x'])
        >>> taken_settings(["--model.no-bidirectional", "pairs.tsv"])
        (['model.bidirectional=false'], ['pairs.tsv'])
    """
    assignments, others, words = [], [], list(argv)
    while words:
        flag, equals, value = words[0].partition("=")
        if not _FLAG.fullmatch(flag):
            others.append(words.pop(0))
            continue
        del words[0]
        name, negated = _setting(flag)
        if negated and equals:
            raise ValueError(
                f"Expected: {flag} without a value. Received: {flag}={value}."
            )
        if negated:
            value = "false"
        elif not equals:
            value = _value(flag, LEAVES[name], words)
        assignments.append(f"{name}={value}")
    return assignments, others


def _setting(flag: str) -> tuple[str, bool]:
    """The setting that a flag names, and whether it is switched off."""
    name = flag[2:].replace("-", "_")
    (name,) = SHORT_NAMES.get(name, (name,))
    positive = name.replace(".no_", ".")
    if name not in LEAVES and LEAVES.get(positive) is bool:
        return positive, True
    if name not in LEAVES:
        flags = [f"--{known.replace('_', '-')}" for known in LEAVES]
        raise ValueError(
            f"Unrecognized options: {flag}.{did_you_mean(flag, flags)} "
            "--help-all has all settings."
        )
    return name, False


def _value(flag: str, annotation: typing.Any, words: list[str]) -> str:
    """Takes the value of a flag from the words after it."""
    if annotation is bool:
        given = words and words[0].lower() in ("true", "false")
        return words.pop(0).lower() if given else "true"
    most = _most_words(annotation)
    values: list[str] = []
    while words and len(values) < most and not words[0].startswith("--"):
        values.append(words.pop(0))
        if set(values[0]) & {",", "["}:
            break
    if not values:
        raise ValueError(
            f"{flag}: Expected {expected(annotation)}. Received: no value."
        )
    return values[0] if len(values) == 1 else json.dumps(values)


def _most_words(annotation: typing.Any) -> float:
    """The maximum number of words of a value."""
    parts = typing.get_args(annotation)
    if isinstance(annotation, types.UnionType):
        return max(map(_most_words, parts))
    if typing.get_origin(annotation) is not tuple:
        return 1
    return float("inf") if ... in parts else len(parts)


@dataclass(frozen=True)
class SearchFlags:
    """Settings of the search, each as the run has it where it is not given."""

    # hypotheses of the search, or samples of a sentence
    beam_size: Own[int | None] = None
    # beam: the best hypotheses; sampling: drawn at random, one a sentence, or
    # as many as --beam-size or translate's --n-best says
    search: Own[Literal["beam", "sampling"] | None] = None
    # of --search sampling: below 1 probable words become more probable
    temperature: Own[float | None] = None
    # of --search sampling: draw from this many most probable words
    top_k: Own[int | None] = None
    # of --search sampling: draw from the fewest words with this probability
    # together
    top_p: Own[float | None] = None
    # of --search sampling: another seed draws others
    seed: Own[int | None] = None
    # 0: sum of log-probabilities, 1: their mean
    length_penalty: Own[float | None] = None
    # power: length**x; google: ((5 + length) / 6)**x
    length_penalty_form: Own[Literal["power", "google"] | None] = None
    # penalty for source words that get no attention, such as 0.2
    coverage_penalty: Own[float | None] = None
    # no translation has this many words in a row twice
    no_repeat_ngram: Own[int | None] = None
    # fewest words of a translation, of the source length + 1
    min_length_ratio: Own[float | None] = None
    # most symbols of a translation: this x the source length + the offset; of
    # the source length + 1 without one
    max_length_ratio: Own[float | None] = None
    # see --max-length-ratio
    max_length_offset: Own[float | None] = None
    # a file of `luong-keras lexicon`: translate with the words that a batch's
    # source words have there, and with frequent ones
    shortlist: Own[str | None] = None


def changed_search(
    decoding: DecodingConfig, flags: SearchFlags, **others: Any
) -> DecodingConfig:
    """The search of a run with what the command line gives; None is nothing.

    Args:
        decoding: that of the run.
        flags: of the command line.
        **others: what else it gives, as `DecodingConfig.with_` takes it.
    """
    given = dataclasses.asdict(flags) | others
    return decoding.with_(
        **{name: value for name, value in given.items() if value is not None}
    )
