"""The files of a plan, as they are written."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from luong_keras.config_values import config_from_dict, read_yaml

_STRICT: Any = {"extra": "forbid"}


@dataclass(frozen=True)
class RowEntry:
    """A row as a plan writes it: another one and what is changed.

    Attributes:
        after: the row that it changes; the base of the plan when None.
        settings: what is changed, by full names.
        models: how many decide together, of as many seeds.
        turned: whether source and target language change places.
        teacher: the row whose models translate the training text: it is then
            read twice, as it is and with their translations.
    """

    after: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    models: int = 1
    turned: bool = False
    teacher: str | None = None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Line:
    """A line of a table: a row, and what the paper has there."""

    row: str
    name: str
    perplexity: float | None = None
    bleu: float | None = None
    aer: float | None = None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Table:
    """Lines under one title.

    Attributes:
        title: for a reader.
        lines: the rows.
        section: of the paper.
        source: the paper and the tables that have the figures of the lines.
    """

    title: str
    lines: list[Line]
    section: str | None = None
    source: str | None = None

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Claim:
    """A sum of scores that the paper says is above zero.

    Attributes:
        claim: in words.
        positive: rows with signs between them, as in `reverse - base`.
        section: of the paper.
        of: the score.
        over: of which test sentences; `long - all` is how much more the sum
            is of the long ones than of all.
    """

    claim: str
    positive: str
    section: str
    of: Literal["bleu", "perplexity", "aer"] = "bleu"
    over: Literal["all", "long", "long - all"] = "all"

    __pydantic_config__ = _STRICT

    @property
    def terms(self) -> list[tuple[int, str]]:
        """The rows of `positive` with their signs, 1 or -1."""
        found, sign = [], 1
        for part in self.positive.split():
            if part in ("-", "+"):
                sign = -1 if part == "-" else 1
            else:
                found.append((sign, part))
        return found


@dataclass(frozen=True)
class Correlation:
    """Two scores of the rows of a table, and whether they go together.

    `sign` is that of the correlation which the paper claims; 0 where it says
    that there is none.
    """

    claim: str
    section: str
    of: tuple[
        Literal["bleu", "perplexity", "aer"],
        Literal["bleu", "perplexity", "aer"],
    ]
    sign: Literal[-1, 0, 1]
    table: str

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Sample:
    """A sentence that every row translates for a reader."""

    source: str
    reference: str

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class PaperFile:
    """The systems, the tables and the claims of the paper."""

    base: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, RowEntry] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    correlations: list[Correlation] = field(default_factory=list)

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class ScaleFile:
    """A text, and the sizes that are tried with it.

    `tables` are those that are run where nothing is said; `rows` and
    `own_tables` are further ones, or stand in the place of the paper's. With
    `paper` false there are no others: any systems, each another one and a
    change.
    """

    title: str
    text: str
    preset: str
    settings: dict[str, Any]
    tables: list[str]
    paper: bool = True
    seeds: int = 1
    ensemble: int = 4  # models of the paper's
    files: str | None = None
    samples: list[Sample] = field(default_factory=list)
    rows: dict[str, RowEntry] = field(default_factory=dict)
    own_tables: dict[str, Table] = field(default_factory=dict)

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class OwnRows:
    """Rows of one's own."""

    rows: dict[str, RowEntry]

    __pydantic_config__ = _STRICT


def read_plan_file(path: Path, kind: type) -> Any:
    """A file of one of these kinds.

    Raises:
        FileNotFoundError: where there is none.
        ValueError: for what does not belong there, by its full name.
    """
    values = read_yaml(path)
    if not isinstance(values, dict):
        names = ", ".join(f.name for f in dataclasses.fields(kind))
        raise ValueError(
            f"Expected in {path}: {names}. Received: {type(values).__name__}."
        )
    try:
        return config_from_dict(values, kind)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
