"""Trains, evaluates and exports a translator, from one command.

Without arguments it trains the `demo` preset on the built-in English-German
corpus: a few minutes on two cores. `--preset paper` is the system of Luong,
Pham and Manning (2015) on WMT14, for a GPU; `--preset small` suits tens of
thousands of pairs of your own:

    python examples/wmt14_train.py --preset small \
        --set data.train=corpus/train --set data.dev=corpus/dev \
        --set data.test=corpus/test --run-dir runs/mine

The same command again resumes a run that was interrupted.
"""

import argparse

from luong_keras.config import RunConfig
from luong_keras.config_values import override
from luong_keras.presets import PRESETS


def main() -> None:
    """Runs what the command line asks for."""
    arguments = parse_arguments()
    config = resolve_config(arguments)
    from luong_keras.recipe.run import run_recipe

    run_recipe(
        config, arguments.run_dir or f"runs/{arguments.preset or 'demo'}"
    )


def parse_arguments() -> argparse.Namespace:
    """The command line: a preset, and any setting by name."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--preset", choices=PRESETS, help="default: demo")
    parser.add_argument(
        "--dataset",
        help="phrasebook, files, wmt14_translate, or another builder of "
        "tensorflow_datasets; default: that of the preset",
    )
    parser.add_argument("--run-dir", help="default: runs/PRESET")
    parser.add_argument(
        "--test-subset",
        help="file of line numbers of the test set to keep",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, such as model.units=512; may be repeated",
    )
    return parser.parse_args()


def resolve_config(arguments: argparse.Namespace) -> RunConfig:
    """The preset with the settings of the command line."""
    if arguments.preset is None and arguments.dataset is None:
        print(
            "No --preset: training the demo on the built-in corpus. For "
            "WMT14 English-German as in the paper: --preset paper (downloads "
            "through tensorflow_datasets, wants a GPU). For text files of "
            "your own: --preset small --set data.train=PREFIX …"
        )
    settings = list(arguments.set)
    if arguments.dataset is not None:
        name = {"wmt14": "wmt14_translate", "wmt15": "wmt15_translate"}.get(
            arguments.dataset, arguments.dataset
        )
        settings.insert(0, f"data.dataset={name}")
    if arguments.test_subset is not None:
        settings.append(f"data.test_subset={arguments.test_subset}")
    return override(PRESETS[arguments.preset or "demo"], settings)


if __name__ == "__main__":
    main()
