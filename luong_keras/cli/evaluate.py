"""`luong-keras evaluate`: the scores of a run."""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes

from luong_keras.cli.parsing import Own, parse_arguments
from luong_keras.cli.search_flags import SearchFlags, changed_search
from luong_keras.config import DataConfig
from luong_keras.recipe.run_settings import run_config


@dataclass(frozen=True)
class Evaluate:
    """Scores a trained run on its test pairs and prints a JSON line.

    The line is added to results.jsonl of the run.
    """

    # the folder of the run
    run_dir: Path
    # best, last, average, exponential, or an epoch such as epoch-7; default:
    # what the run scored and exported, the best unless set otherwise
    weights: Own[str | None] = None
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
    from luong_keras.recipe.evaluation import Evaluation, write_results
    from luong_keras.recipe.preparation import evaluation_pairs
    from luong_keras.training.run_folder import RunFolder
    from luong_keras.translator import Translator

    run = RunFolder(arguments.run_dir)
    # Another test set is none that the run keeps.
    datasets = load_datasets(data) if given else evaluation_pairs(data, run)
    pairs = datasets.test if arguments.part == "test" else datasets.dev
    translator = Translator.from_run(
        arguments.run_dir, arguments.weights, decoding
    )
    evaluation = Evaluation(translator, data, config.training.metric)
    results, _ = evaluation.scores(*map(list, zip(*pairs, strict=True)))
    results["perplexity"] = evaluation.perplexity(pairs)
    links = datasets.test_links if arguments.part == "test" else None
    if links is not None and translator.translation_model.has_attention:
        results["aer"] = evaluation.alignment_error_rate(pairs, links)
    results = {
        "set": arguments.part,
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
