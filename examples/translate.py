"""Translates standard input to standard output with a trained run.

    echo "The old teacher opens the door." | \
        python examples/translate.py --run-dir runs/demo

`--n-best` and `--alignments` print JSON lines instead of text.
"""

import argparse
import dataclasses
import json
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops of an export)

from luong_keras import (
    RunConfig,
    RunFolder,
    Translator,
    config_from_dict,
    load_datasets,
)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--weights", choices=("best", "last"), default="best")
    parser.add_argument("--beam-size", type=int, help="default: the run's")
    parser.add_argument("--length-penalty", type=float)
    parser.add_argument(
        "--n-best", type=int, default=1, help="translations a sentence"
    )
    parser.add_argument(
        "--alignments",
        action="store_true",
        help="also the links [source position, target position] of each word",
    )
    parser.add_argument(
        "--check-export",
        action="store_true",
        help="translate the test set through the run's newest export and "
        "compare it with the model, instead of reading standard input",
    )
    arguments = parser.parse_args()
    run = RunFolder(arguments.run_dir)
    config: RunConfig = config_from_dict(run.read_config())
    translator = Translator.from_run(
        run.path, arguments.weights, decoding_settings(config, arguments)
    )
    if arguments.check_export:
        sys.exit(check_export(translator, run, config))
    lines = [line.rstrip("\n") for line in sys.stdin]
    if arguments.n_best == 1 and not arguments.alignments:
        for line in translator.translate(lines):
            print(line)
        return
    for found in translator.nbest(lines):
        entries = [
            translation.as_dict(links=arguments.alignments)
            for translation in found[: arguments.n_best]
        ]
        print(json.dumps(entries, ensure_ascii=False))


def decoding_settings(config, arguments):
    """The run's search with what the command line changes."""
    changes = {}
    if arguments.beam_size is not None:
        changes["beam_size"] = arguments.beam_size
    if arguments.length_penalty is not None:
        changes["length_penalty"] = arguments.length_penalty
    decoding = dataclasses.replace(config.decoding, **changes)
    if arguments.n_best > (decoding.stack_size or decoding.beam_size):
        decoding = dataclasses.replace(
            decoding, stack_size=arguments.n_best, beam_size=arguments.n_best
        )
    return decoding


def check_export(translator, run, config) -> int:
    """0 where the newest export translates as the model does."""
    versions = [path for path in run.export.iterdir() if path.name.isdecimal()]
    newest = max(versions, key=lambda path: int(path.name))
    serve = tf.saved_model.load(str(newest)).signatures["serving_default"]
    sources = [source for source, _ in load_datasets(config.data).test]
    expected = translator.translate(sources)
    served = []
    for start in range(0, len(sources), 32):
        text = tf.constant(sources[start : start + 32])
        answer = serve(text=text)["translation"].numpy()
        served += [translation.decode() for translation in answer]
    for source, translation in list(zip(sources, served, strict=True))[:3]:
        print(f"{source}\n  {translation}")
    different = sum(a != b for a, b in zip(expected, served, strict=True))
    print(
        f"export {newest}: {len(served) - different} of {len(served)} "
        "translations equal those of the model"
    )
    return int(different > 0)


if __name__ == "__main__":
    main()
