"""`luong-keras evaluate`: scores of a run, or of given translations."""

import dataclasses
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import (
    FlagCreatePairsOff,
    OmitArgPrefixes,
    Positional,
    UseAppendAction,
    arg,
)

from luong_keras.cli.parsing import Option, given_flags
from luong_keras.cli.settings_flags import SearchFlags, override_search
from luong_keras.config import DataConfig
from luong_keras.data.text_files import read_given_pairs
from luong_keras.files.text_lines import read_lines_beside
from luong_keras.recipe.stored_settings import run_config
from luong_keras.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Score a trained run, or translations in a file, and print a table.

    The scores of a run are also added to its results.jsonl.
    """

    # pairs to score instead of the run's: one file of both sides (.tsv, .csv
    # or others), or a source and a target file; plain or compressed
    files: Annotated[
        Positional[tuple[Path, ...]],
        arg(metavar="[FILE [FILE]]", help_behavior_hint=""),
    ] = ()
    # the folder of the run
    run_dir: Option[Path | None] = None
    # a file of translations of the pairs, to score instead of a run
    translations: Option[Path | None] = None
    # files of further references, with one line per pair; blank: none
    references: Option[UseAppendAction[tuple[tuple[Path, ...], ...]]] = ()
    # another run, or a file of translations, to compare with by a paired test
    baseline: Option[Path | None] = None
    # best, last, or an epoch such as epoch-7; default: the weights
    # that the run scored and exported, by default the best
    weights: Option[str | None] = None
    # scores in addition to BLEU: chrf, ter, exact_match, or BLEU in a
    # tokenization, as bleu:zh; default: the metric that chose the run's best
    # epoch
    metric: Option[UseAppendAction[tuple[tuple[str, ...], ...]]] = ()
    # pairs of the run to score
    part: Literal["dev", "test"] = "test"
    # settings of the search, also that of a baseline run; default: each run's
    search: OmitArgPrefixes[SearchFlags] = field(default_factory=SearchFlags)
    # print a line of JSON instead of the table, with BLEU by length and the
    # options of the search
    json: FlagCreatePairsOff[bool] = False


def run(arguments: Evaluate) -> int:
    """Score, print the results, and add those of a run to its folder."""
    config = None
    data, metrics = DataConfig(), list(itertools.chain(*arguments.metric))
    _check_system(arguments)
    if arguments.run_dir is not None:
        config = run_config(arguments.run_dir)
        data, metrics = config.data, metrics or [config.training.metric]
    from luong_keras.recipe.evaluation import (
        Evaluation,
        format_results,
        text_scores,
        write_results,
    )

    _check_metrics(arguments, data)
    name, pairs, links = _load_pairs(arguments, data)
    sources, targets = map(list, zip(*pairs, strict=True))
    references: Any = targets
    if arguments.references:
        columns = [
            read_lines_beside(path, len(pairs))
            for path in itertools.chain(*arguments.references)
        ]
        references = list(map(list, zip(targets, *columns, strict=True)))
    # Read before translating, which takes longer.
    baseline_lines = None
    if arguments.baseline is not None and arguments.baseline.is_dir():
        run_config(arguments.baseline)
    elif arguments.baseline is not None:
        baseline_lines = read_lines_beside(arguments.baseline, len(pairs))
    results: dict[str, Any] = {"set": name}
    if arguments.translations is not None:
        translations = read_lines_beside(arguments.translations, len(pairs))
        results["translations"] = str(arguments.translations)
        results |= text_scores(sources, translations, references, data, metrics)
    else:
        assert arguments.run_dir is not None and config is not None
        translator = _load_run(arguments.run_dir, arguments, arguments.weights)
        evaluation = Evaluation(translator, data, metrics)
        scores, translations = evaluation.all_scores(pairs, references, links)
        results["weights"] = arguments.weights or config.training.final_weights
        results["decoding"] = dataclasses.asdict(translator.decoding)
        results |= scores
    if arguments.baseline is not None:
        results["baseline"] = str(arguments.baseline)
        results["compared"] = _compare_with_baseline(
            baseline_lines,
            arguments,
            sources,
            translations,
            references,
            data,
        )
    if arguments.json:
        print(json.dumps(results, ensure_ascii=False))
    else:
        print(format_results(results))
    if arguments.run_dir is not None and arguments.translations is None:
        # After the scores, because the run may be read-only.
        sys.stdout.flush()
        write_results(RunFolder(arguments.run_dir).results, results)
    return 0


def _load_run(folder: Path, arguments: Evaluate, weights: str | None) -> Any:
    """Load the translator of a run, with the search of the command line."""
    decoding = override_search(run_config(folder).decoding, arguments.search)
    from luong_keras.translator import Translator

    return Translator.from_run(folder, weights, decoding)


def _load_pairs(
    arguments: Evaluate, data: DataConfig
) -> tuple[str, Sequence[Any], Sequence[str] | None]:
    """Return the name of the pairs, the pairs, and the links of the words."""
    if arguments.files:
        from luong_keras.data.datasets import check_evaluation_pair

        name = " ".join(map(str, arguments.files))
        pairs = read_given_pairs(arguments.files, data)
        return name, list(map(check_evaluation_pair, pairs)), None
    from luong_keras.recipe.preparation import evaluation_pairs

    assert arguments.run_dir is not None
    part, run = arguments.part, RunFolder(arguments.run_dir)
    datasets = evaluation_pairs(data, run, part)
    links = datasets.test_links if part == "test" else None
    return part, getattr(datasets, part), links


def _compare_with_baseline(
    baseline_lines: list[str] | None,
    arguments: Evaluate,
    sources: Sequence[str],
    translations: Sequence[str],
    references: Any,
    data: DataConfig,
) -> list[dict[str, Any]]:
    """Compare each score by a paired test, the baseline first."""
    from luong_keras.evaluation.metrics.bleu import target_of, tokenizer_of
    from luong_keras.evaluation.translation_scores import paired_test
    from luong_keras.recipe.evaluation import Evaluation

    if baseline_lines is None:
        assert arguments.baseline is not None
        translator = _load_run(arguments.baseline, arguments, None)
        found = Evaluation(translator, data).translations(sources)
        baseline_lines = [translation.text for translation in found]
    scores = paired_test(
        baseline_lines,
        translations,
        references,
        lowercase=data.lowercase,
        tokenize=tokenizer_of(target_of(data, references))[0],
    )
    return [score._asdict() for score in scores]


def _check_system(arguments: Evaluate) -> None:
    """Check that the command line names one system and one set of pairs."""
    run, file = arguments.run_dir, arguments.translations
    if run is None and (file is None or not arguments.files):
        raise ValueError(
            "Expected: --run-dir with the folder of a run, or a file of pairs "
            "and --translations with their translations. Received: no --run-dir"
            f"{'' if file else ', no --translations'}"
            f"{'' if arguments.files else ', no pairs'}."
        )
    if file is not None:
        flags = given_flags(arguments.search, vars(arguments.search))
        flags += given_flags(arguments, ("weights",))
        if flags:
            raise ValueError(
                "Translations in a file need no search. Expected: none of its "
                f"flags beside --translations. Received: {' '.join(flags)}. "
                "Leave it out."
            )
    if arguments.files and arguments.part == "dev":
        raise ValueError(
            "Expected: either files or the run's validation pairs. Received: "
            "--part dev and files. Leave one of them out."
        )


def _check_metrics(arguments: Evaluate, data: DataConfig) -> None:
    """Check that all metrics score translations, before loading a model."""
    from luong_keras.evaluation.metrics.bleu import Target
    from luong_keras.evaluation.metrics.registry import find_metric

    for setting in itertools.chain(*arguments.metric):
        if find_metric(setting, Target(data.target_language)).score is None:
            raise ValueError(
                "--metric is a score of translations, such as chrf. Received: "
                f"{setting}, which has none."
            )
