"""Scores a trained run on its test pairs and prints a JSON line.

python examples/evaluate.py --run-dir runs/demo --beam-size 1
"""

import argparse
import dataclasses
import json

from luong_keras import (
    Evaluation,
    RunFolder,
    Translator,
    config_from_dict,
    load_datasets,
    write_results,
)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--weights", choices=("best", "last"), default="best")
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument(
        "--test-set",
        help="sacreBLEU's name of another test set, such as wmt15",
    )
    parser.add_argument("--test-subset", help="file of line numbers to keep")
    parser.add_argument("--beam-size", type=int, help="default: the run's")
    parser.add_argument(
        "--no-replacement",
        action="store_true",
        help="leave unknown words as <unk>",
    )
    arguments = parser.parse_args()
    run = RunFolder(arguments.run_dir)
    config = config_from_dict(run.read_config())
    decoding = config.decoding
    if arguments.beam_size is not None:
        decoding = dataclasses.replace(
            decoding, beam_size=arguments.beam_size, stack_size=None
        )
    if arguments.no_replacement:
        decoding = dataclasses.replace(decoding, replace_unknown=False)
    given = {
        name: value
        for name, value in (
            ("test_set", arguments.test_set),
            ("test_subset", arguments.test_subset),
        )
        if value is not None
    }
    data = dataclasses.replace(config.data, **given)
    datasets = load_datasets(data)
    pairs = datasets.test if arguments.part == "test" else datasets.dev
    translator = Translator.from_run(run.path, arguments.weights, decoding)
    evaluation = Evaluation(translator, data)
    results, _ = evaluation.scores(*map(list, zip(*pairs, strict=True)))
    results["perplexity"] = evaluation.perplexity(pairs)
    links = datasets.test_links if arguments.part == "test" else None
    if links is not None and translator.translation_model.has_attention:
        results["aer"] = evaluation.alignment_error_rate(pairs, links)
    results = {
        "set": arguments.part,
        "weights": arguments.weights,
        "decoding": dataclasses.asdict(decoding),
        **results,
    }
    write_results(run.results, results)
    print(json.dumps(results, ensure_ascii=False))


if __name__ == "__main__":
    main()
