"""Contents of a page: the records of runs, and example sentences."""

import difflib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

import numpy as np

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, leaf_values
from luong_keras.evaluation.translation_scores import sentence_chrf
from luong_keras.files.atomic_file import read_json_lines
from luong_keras.files.path_checks import no_link
from luong_keras.files.text_lines import read_lines
from luong_keras.progress import clock, format_rounded
from luong_keras.recipe.stored_settings import run_config
from luong_keras.training.epoch_logs import JsonLinesLog
from luong_keras.training.run_folder import RunFolder

# Scripts without spaces between words: Thai, Lao, Tibetan, Burmese, Khmer,
# Japanese and Chinese.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u9fff\uf900-\ufaff]"
)


@dataclass(frozen=True)
class RunRecord:
    """Content of a run folder.

    Attributes:
        folder: Folder of the run.
        name: Name of the run on the page.
        config: Settings of the run.
        epochs: Logs of the epochs.
        results: Last scores of the test pairs, empty without scores.
        sources: Sources of the test pairs.
        references: References of the test pairs.
        translations: Translations of the test pairs; empty before translation.
        sessions: Calls that trained the run, with time, duration and machine.
    """

    folder: Path
    name: str
    config: RunConfig
    epochs: Sequence[Mapping[str, Any]]
    results: Mapping[str, Any]
    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]
    sessions: Sequence[Mapping[str, Any]]

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of both languages, `und` for an unknown language."""
        data = self.config.data
        return data.source_language or "und", data.target_language or "und"

    def epoch_values(self, name: str) -> list[tuple[int, float]]:
        """Return the number and the value of epochs that have a result.

        Args:
            name: Name of the result.
        """
        return [
            (line["epoch"], float(line[name]))
            for line in self.epochs
            if line.get(name) is not None
        ]


def read_run(folder: str | Path) -> RunRecord:
    """Read a run, finished or not.

    Args:
        folder: Folder of the run, whose name is that of the run.

    Raises:
        FileNotFoundError: If the folder has no run.
        ValueError: If the files do not belong together, or are links.
    """
    run = RunFolder(folder)
    config = run_config(folder, resolve_paths=False)
    pairs = read_json_lines(run.test) if no_link(run.test).exists() else []
    translations = []
    if no_link(run.translations).exists():
        translations = list(read_lines(run.translations))
    if translations and len(translations) != len(pairs):
        raise ValueError(
            f"Expected: as many lines in {run.translations} as in {run.test}. "
            f"Received: {len(translations)} and {len(pairs)}. Remove "
            f"{run.finished} and give the command of the training again: it "
            "translates the test pairs anew."
        )
    # Lines with a search come from `luong-keras evaluate`, which does not save
    # translations.
    results = [
        line
        for line in read_json_lines(run.results, appended=True)
        if line.get("set") == "test" and "decoding" not in line
    ]
    return RunRecord(
        run.path,
        os.path.basename(os.path.abspath(folder)),
        config,
        JsonLinesLog(run.log).read(),
        results[-1] if results else {},
        [pair[0] for pair in pairs],
        [pair[1] for pair in pairs],
        translations,
        read_json_lines(run.sessions, appended=True),
    )


def setting_rows(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return each setting with its value in each run.

    Returns:
        Rows of `name`, `values`, and whether a value is `changed` from the
        default or `differs` between the runs.
    """
    default = leaf_values(config_to_dict(RunConfig()))
    leaves_by_run = [leaf_values(config_to_dict(run.config)) for run in runs]
    rows = []
    for name in leaves_by_run[0]:
        values = [leaves.get(name) for leaves in leaves_by_run]
        rows.append(
            {
                "name": name,
                "values": [
                    value
                    if isinstance(value, str)
                    else json.dumps(value, ensure_ascii=False)
                    for value in values
                ],
                "changed": any(v != default.get(name) for v in values),
                "differs": any(v != values[0] for v in values),
            }
        )
    return rows


def session_summary(run: RunRecord) -> dict[str, Any]:
    """Summarise the time and the machines of a run."""
    seconds = sum(session["seconds"] for session in run.sessions)
    machines = [session["machine"] for session in run.sessions]
    speeds = [value for _, value in run.epoch_values("tokens_per_second")]
    return {
        "epochs": len(run.epochs),
        "calls": len(run.sessions),
        "time": clock(seconds) if run.sessions else None,
        "speed": format_rounded(harmonic_mean(speeds)) if speeds else None,
        "machines": [
            machine
            for place, machine in enumerate(machines)
            if machine not in machines[:place]
        ],
    }


def examples(runs: Sequence[RunRecord], count: int) -> list[dict[str, Any]]:
    """Choose the most informative pairs of one run or two.

    Args:
        runs: One translated run, or two with the same test pairs.
        count: Number of pairs of each kind.

    Returns:
        Groups of `title`, `note` and `examples`. For one run, the best and the
        worst translations. For two runs, the pairs with the largest difference,
        in each direction. An example has the `number`, `source` and `reference`
        of its pair, and `translations` with `run`, `pieces`, `chrf` and
        `alignment`.
    """
    lowercase = any(run.config.data.lowercase for run in runs)
    scores = [
        sentence_chrf(run.translations, run.references, lowercase)
        for run in runs
    ]
    if len(runs) == 1:
        (rank,) = scores
        titles = ("The best", "The worst")
        note = (
            "Ordered by sentence chrF; of equal scores, the longer source "
            "first."
        )
    else:
        rank = [b - a for a, b in zip(*scores, strict=True)]
        titles = (f"Better in {runs[1].name}", f"Better in {runs[0].name}")
        note = "Ordered by the difference in sentence chrF."
    lengths = [len(source) for source in runs[0].sources]
    indices = range(len(rank))
    high = sorted(indices, key=lambda i: (-rank[i], -lengths[i]))[:count]
    low = sorted(indices, key=lambda i: (rank[i], -lengths[i]))[:count]
    if len(runs) == 2:
        high = [i for i in high if rank[i] > 0]
        low = [i for i in low if rank[i] < 0]
    else:
        low = [i for i in low if i not in high]
    return [
        {
            "title": title,
            "note": note,
            "examples": [
                {
                    "number": i + 1,
                    "source": runs[0].sources[i],
                    "reference": runs[0].references[i],
                    "translations": [
                        {
                            "run": run.name,
                            "pieces": pieces(
                                run.translations[i],
                                run.references[i],
                                lowercase,
                            ),
                            "chrf": run_scores[i],
                            "alignment": None,
                            "unaligned": None,
                        }
                        for run, run_scores in zip(runs, scores, strict=True)
                    ],
                }
                for i in indices
            ],
        }
        for title, indices in zip(titles, (high, low), strict=True)
    ]


def pieces(
    translation: str, reference: str, lowercase: bool = False
) -> list[tuple[str, bool]]:
    """Split a translation into parts that its reference has or lacks.

    The parts consist of words, or of characters in scripts without spaces.
    With `lowercase`, words that differ only in case are equal.

    Returns:
        The text of each part, and whether the reference lacks it.

    Example:
        >>> pieces("ein alter Hund", "ein Hund")
        [('ein ', False), ('alter ', True), ('Hund ', False)]
    """
    has_spaces = not _WITHOUT_SPACES.search(translation + reference)
    ours, theirs = (
        [f"{word} " for word in text.split()] if has_spaces else list(text)
        for text in (translation, reference)
    )
    our_units, their_units = (
        [unit.strip().lower() if lowercase else unit.strip() for unit in side]
        for side in (ours, theirs)
    )
    matcher = difflib.SequenceMatcher(
        None, our_units, their_units, autojunk=False
    )
    return [
        ("".join(ours[start:stop]), kind != "equal")
        for kind, start, stop, *_ in matcher.get_opcodes()
        if stop > start
    ]


def add_alignments(
    groups: Sequence[Mapping[str, Any]],
    runs: Sequence[RunRecord],
    longest: int = 40,
) -> None:
    """Add the attention weights of the models, in percent, to the examples.

    Each run is loaded and translates its examples again, in the same way as it
    translated the test pairs.

    Args:
        groups: Groups of `examples`.
        runs: The runs that `examples` got.
        longest: Maximum number of tokens per side to draw.
    """
    from luong_keras.inference.text_translator import TextTranslator
    from luong_keras.inference.translation import best_of
    from luong_keras.recipe.evaluation import with_progress
    from luong_keras.recipe.loading import load_run

    all_examples = [each for group in groups for each in group["examples"]]
    for index, run in enumerate(runs):
        if run.config.model.attention.kind == "none" or not all_examples:
            continue
        weights = run.results.get("weights")
        translator = TextTranslator(*load_run(run.folder, weights))
        nbest_lists = with_progress(
            translator.nbest,
            [example["source"] for example in all_examples],
            what=f"aligning the examples of {run.name}",
        )
        for example, nbest in zip(all_examples, nbest_lists, strict=True):
            best, shown = best_of(nbest), example["translations"][index]
            if best.text != run.translations[example["number"] - 1]:
                shown["unaligned"] = (
                    "No alignment: the run now translates this pair otherwise."
                )
            elif max(len(best.tokens), len(best.source_tokens)) > longest:
                shown["unaligned"] = (
                    f"No alignment: more than {longest} tokens."
                )
            elif best.tokens and best.source_tokens:
                percent = np.rint(100 * best.alignments).astype(int)
                shown["alignment"] = {
                    "source": best.source_tokens,
                    "target": best.tokens,
                    "percent": percent.tolist(),
                }
