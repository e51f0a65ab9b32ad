"""What the finished rows of a plan say, as a page and as JSON."""

from __future__ import annotations

import datetime
import itertools
import shlex
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import luong_keras
from luong_keras.files.atomic_file import write_text
from luong_keras.files.json_file import write_json
from luong_keras.progress import progress_bar
from luong_keras.report.environment import environment
from reproduction.comparison import (
    SAMPLES,
    Interval,
    Resampling,
    Rows,
    Verdict,
    verdicts,
)
from reproduction.figures import by_length, learning_curves
from reproduction.measures import MEASURES
from reproduction.plan import Plan
from reproduction.plan_files import Claim, Sample
from reproduction.record import (
    Record,
    default_settings,
    read_records,
    record_path,
)
from reproduction.rows import Row
from reproduction.tables import tables_of
from reproduction.tasks import TEST_TEXT

_SAMPLE_ALIGNMENTS = ("feed", "local-m-general", "local-p")


def write_pages(plan: Plan, records: Path, output: Path) -> list[Path]:
    """Writes `index.html` and `summary.json` of the rows that are finished.

    Rows of another test or training text than most with the same settings
    have are told of and left out.

    Args:
        plan: that the rows belong to.
        records: the folder of the rows.
        output: where to write.

    Returns:
        The files; none where no row is finished.

    Raises:
        ValueError: for a row that is damaged.
        ImportError: where a package of the extra `train` is missing.
    """
    rows, left_out = _rows(plan, records)
    if not rows:
        return []
    data = _first(plan).config.data
    templates = environment("reproduction")
    with progress_bar("resampling"):
        found = _content(plan, rows)
    page = templates.get_template("reproduction.html").render(
        plan=plan,
        left_out=left_out,
        samples_drawn=SAMPLES,
        charts=learning_curves(plan, rows),
        by_length=by_length(plan, rows),
        translated=_samples(plan, rows),
        settings=[_settings(plan, name, rows[name]) for name in rows],
        languages=data.languages,
        version=luong_keras.__version__,
        date=datetime.date.today().isoformat(),
        **found,
    )
    output.mkdir(parents=True, exist_ok=True)
    paths = [output / "index.html", output / "summary.json"]
    write_text(paths[0], page)
    write_json(paths[1], {"scale": plan.scale, "title": plan.title, **found})
    return paths


def _first(plan: Plan) -> Row:
    """The row whose languages are those of the page."""
    return next(iter(plan.rows.values()))


def _rows(plan: Plan, records: Path) -> tuple[Rows, list[str]]:
    """The records by their rows, in the order of the plan."""
    by_name = defaultdict(list)
    by_text = defaultdict(list)
    left_out = []
    for path, record in read_records(records).items():
        row = plan.rows.get(record.row)
        if row is None:
            continue
        own_path = record_path(records, record.row, record.seeds)
        if path != own_path:
            left_out.append(f"{path.name}: not named {own_path.name}")
        elif len(record.seeds) != row.models:
            left_out.append(f"{path.name}: {len(record.seeds)} models")
        else:
            data = row.config.data
            named = [getattr(data, name) for name in TEST_TEXT]
            by_text[*data.languages, *named].append(record)
    trained = _usual_training_texts(by_text)
    for own in by_text.values():
        usual = statistics.mode(record.text["test"] for record in own)
        for record in own:
            if record.text["test"] != usual:
                left_out.append(f"{record.row}: another test text")
            elif record.text.get("corpus") not in (
                None,  # older rows do not say
                trained.get(record.training_text),
            ):
                left_out.append(f"{record.row}: another training text")
            elif differs := record.differences(plan.rows[record.row].config):
                left_out.append(f"{record.row}: other {', '.join(differs)}")
            else:
                by_name[record.row].append(record)
    rows = {name: by_name[name] for name in plan.rows if by_name[name]}
    return rows, left_out


def _usual_training_texts(
    by_text: Mapping[Any, Sequence[Record]],
) -> dict[str, str]:
    """The hash that most rows of the same training text have."""
    found = defaultdict(list)
    for record in itertools.chain.from_iterable(by_text.values()):
        if "corpus" in record.text:
            found[record.training_text].append(record.text["corpus"])
    return {key: statistics.mode(hashes) for key, hashes in found.items()}


def _content(plan: Plan, rows: Rows) -> dict[str, Any]:
    """What the page and the JSON say alike."""
    resampling = Resampling(rows)
    return {
        "tables": tables_of(plan, resampling),
        "claims": [_told(verdict) for verdict in verdicts(plan, resampling)],
    }


def _told(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    if isinstance(claim, Claim):
        measure = MEASURES[claim.of]
        computed = f"{measure.title} of {claim.positive}".replace(" - ", " − ")
        if claim.over != "all":
            computed += f", {claim.over} sentences"
        digits, percent = measure.decimals, measure.percent
    else:
        first, second = (MEASURES[of].title for of in claim.of)
        computed = f"Pearson’s r of {first} and {second}"
        digits, percent = 2, False
    return {
        "claim": claim.claim,
        "section": claim.section,
        "verdict": verdict.verdict,
        "computed": computed,
        "value": _number(verdict.value, digits, percent),
        "missing": list(verdict.missing),
        "trials": verdict.trials,
        "basis": verdict.value.basis if verdict.value else verdict.why,
    }


def _number(value: Interval | None, digits: int, percent: bool) -> str | None:
    if value is None:
        return None
    scale, unit = (100, " %") if percent else (1, "")
    low, high = value.low, value.high
    texts = [
        f"{scale * x:+.{digits}f}".replace("-", "−")
        for x in (value.value, low, high)
        if x is not None
    ]
    if low == high:
        return texts[0] + unit
    return f"{texts[0]}{unit} ({texts[1]} to {texts[2]})"


def _samples(plan: Plan, rows: Rows) -> list[dict[str, Any]]:
    """The plan's sentences, as the rows translate and align them."""
    found = []
    language = _first(plan).config.data.languages[0]
    for sentence in plan.samples:
        shown = []
        for name, records in rows.items():
            spoken = plan.rows[name].config.data.languages[0]
            sample = _sample(records[0], sentence.source, plan.samples)
            if spoken != language or sample is None:
                continue
            aligned = name in _SAMPLE_ALIGNMENTS and sample["percent"]
            shown.append(
                {
                    "row": name,
                    "text": sample["text"],
                    "alignment": {
                        "source": sample["source_tokens"],
                        "target": sample["tokens"],
                        "percent": sample["percent"],
                    }
                    if aligned
                    else None,
                }
            )
        if shown:
            found.append({"sentence": sentence, "shown": shown})
    return found


def _sample(
    record: Record, source: str, known: Sequence[Sample]
) -> Mapping[str, Any] | None:
    """What a row makes of a sentence, if it was asked."""
    for sample, asked in zip(record.samples, known, strict=False):
        # Older rows have no sources: they were asked in the plan's order.
        if sample.get("source", asked.source) == source:
            return sample
    return None


def _settings(
    plan: Plan, name: str, records: Sequence[Record]
) -> dict[str, Any]:
    """A row's settings and where it was made."""
    row = plan.rows[name]
    default = default_settings()
    changed = {
        setting: value
        for setting, value in records[0].settings.items()
        if value != default.get(setting)
    }
    return {
        "name": name,
        "after": row.after,
        "changes": row.changes,
        "changed": changed,
        "command": _command(plan, row, records),
        "trials": [
            {
                "seeds": ", ".join(map(str, record.seeds)),
                "minutes": round(record.made["training_seconds"] / 60, 1),
                "version": record.made["version"],
                "revision": record.made["revision"] or "not recorded",
                "machine": ", ".join(record.made["machine"].values()),
            }
            for record in records
        ],
    }


def _command(plan: Plan, row: Row, records: Sequence[Record]) -> str:
    """What trains and scores a row as it was."""
    words = [*plan.command, "--only", row.name]
    if row.models == 1:
        seeds = max(seed for record in records for seed in record.seeds)
        words += ["--seeds", str(seeds)]
    return shlex.join(words)
