"""`luong-keras evaluate`: the scores of a run."""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional, arg

from luong_keras.cli.parallel_files import check_files, given_pairs
from luong_keras.cli.parsing import Own, parse_arguments
from luong_keras.cli.search_flags import SearchFlags, changed_search
from luong_keras.config import DataConfig
from luong_keras.recipe.run_settings import run_config


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Scores a trained run on its test pairs and prints a JSON line.

    The line is added to results.jsonl of the run.
    """

    # pairs to score in place of the run's: one file of both sides (.tsv, .csv,
    # .jsonl, .tmx), or a source and a target file; plain or packed (.gz, .xz,
    # .zst, .bz2)
    files: Annotated[
        Positional[tuple[Path, ...]],
        arg(metavar="[FILE [FILE]]", help_behavior_hint=""),
    ] = ()
    # the folder of the run
    run_dir: Path
    # best, last, average, exponential, or an epoch such as epoch-7; default:
    # what the run scored and exported, the best unless set otherwise
    weights: Own[str | None] = None
    # a score beside BLEU: chrf, ter, exact_match, or BLEU in a tokenization, as
    # bleu:zh; default: what chose the best epoch of the run
    metric: Own[str | None] = None
    # the pairs to score
    part: Literal["dev", "test"] = "test"
    # of runs on WMT text: sacreBLEU's name of another test set, such as wmt15
    test_set: Own[str | None] = None
    # file of line numbers to keep
    test_subset: Own[str | None] = None
    # the search; default: the run's
    search: OmitArgPrefixes[SearchFlags] = field(default_factory=SearchFlags)
    # leave unknown words as <unk>
    no_replacement: FlagCreatePairsOff[bool] = False


parse = functools.partial(parse_arguments, Evaluate, "luong-keras evaluate")


def run(arguments: Evaluate) -> int:
    """Scores, prints and notes the results."""
    config = run_config(arguments.run_dir)
    _check(arguments, config.data)
    decoding = changed_search(
        config.decoding,
        arguments.search,
        replace_unknown=False if arguments.no_replacement else None,
    )
    given = {
        name: value
        for name in ("test_set", "test_subset")
        if (value := getattr(arguments, name)) is not None
    }
    data = dataclasses.replace(config.data, **given)
    from luong_keras.data.datasets import load_datasets
    from luong_keras.recipe.decisions import run_metric
    from luong_keras.recipe.evaluation import Evaluation, write_results
    from luong_keras.recipe.preparation import evaluation_pairs
    from luong_keras.training.run_folder import RunFolder
    from luong_keras.translator import Translator

    metric = arguments.metric or config.training.metric
    if arguments.metric and run_metric(config, (), metric).score is None:
        raise ValueError(
            "--metric is a score of translations, such as chrf. Received: "
            f"{metric}, which has none."
        )
    run = RunFolder(arguments.run_dir)
    name, links = str(arguments.part), None
    if arguments.files:
        name = " ".join(map(str, arguments.files))
        pairs = [(s, t) for s, t in given_pairs(arguments.files, data)]
    else:
        # Another test set is none that the run keeps.
        datasets = load_datasets(data) if given else evaluation_pairs(data, run)
        pairs = datasets.dev
        if name == "test":
            pairs, links = datasets.test, datasets.test_links
    translator = Translator.from_run(
        arguments.run_dir, arguments.weights, decoding
    )
    evaluation = Evaluation(translator, data, metric)
    results, _ = evaluation.scores(*map(list, zip(*pairs, strict=True)))
    results["perplexity"] = evaluation.perplexity(pairs)
    if links is not None and translator.translation_model.has_attention:
        results["aer"] = evaluation.alignment_error_rate(pairs, links)
    results = {
        "set": name,
        "weights": arguments.weights or config.training.final_weights,
        "decoding": dataclasses.asdict(decoding),
        **results,
    }
    write_results(run.results, results)
    print(json.dumps(results, ensure_ascii=False))
    return 0


def _check(arguments: Evaluate, data: DataConfig) -> None:
    """Refuses a test set that nothing would read."""
    name, subset = arguments.test_set, arguments.test_subset
    given = {"--test-set": name, "--test-subset": subset}
    flags = [f"{flag} {value}" for flag, value in given.items() if value]
    if arguments.files:
        check_files(arguments.files)
        if flags or arguments.part == "dev":
            raise ValueError(
                "Files are scored in place of the run's own pairs. Expected: "
                "none of --part, --test-set and --test-subset. Received: "
                f"{' '.join(flags) or '--part dev'}. Leave it out, or the "
                "files."
            )
    if arguments.part == "dev" and flags:
        raise ValueError(
            "Expected: --test-set and --test-subset with --part test (the "
            f"default). Received: --part dev {' '.join(flags)}. Leave out "
            "--part dev, or what is of the test set."
        )
    if name is not None and data.dataset in ("phrasebook", "files"):
        languages = "-".join(data.languages)
        raise ValueError(
            "--test-set is another test set of a run on WMT text. Expected: "
            "a run whose data.dataset is a builder of tensorflow_datasets. "
            f"Received: --test-set {name} for a run with data.dataset="
            f"{data.dataset}. Leave it out, or give `luong-keras translate` "
            f"what `sacrebleu -t {name} -l {languages} --echo src` prints."
        )
