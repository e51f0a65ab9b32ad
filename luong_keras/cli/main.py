"""Finds the subcommand, runs it, and says in one line what is wrong."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import luong_keras
from luong_keras.cli.startup_noise import without_startup_noise
from luong_keras.near_names import did_you_mean

COMMANDS = {
    "train": "train a translator, or go on with one",
    "translate": "translate text with a trained run",
    "evaluate": "score a trained run on its test pairs",
    "score": "say how probable given translations are",
    "align": "link the words of given translations",
    "report": "write a run, or two side by side, as a page of HTML",
    "lexicon": "write which words a shortlist may have, to search faster",
    "export": "write a SavedModel for TensorFlow Serving",
    "ask": "translate text through a server of an export",
}
# One trains on JAX as well, the other uses none.
ANY_BACKEND = ("train", "ask")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        argv: the arguments; those of the process when None.

    Returns:
        The exit status: 2 for what the user can put right, and 1 where what
        was asked for came to another end.
    """
    try:
        try:
            return _main(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return 0


def _main(argv: Sequence[str] | None) -> int:
    # What TensorFlow says of itself at every start is no message of ours.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    own_process = argv is None
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if argv[0] == "--version":
        print(luong_keras.__version__)
        return 0
    name = argv.pop(0)
    if name not in COMMANDS:
        return _fail(
            "luong-keras",
            f"Expected a command, one of {', '.join(COMMANDS)}. Received: "
            f"{name}.{did_you_mean(name, COMMANDS)}",
        )
    if not own_process:
        return _run(name, argv)
    with without_startup_noise(argv):
        return _run(name, argv)


def usage() -> str:
    """What `luong-keras --help` prints."""
    lines = "\n".join(f"  {name:<10} {what}" for name, what in COMMANDS.items())
    return (
        "usage: luong-keras COMMAND …\n\nAttention-based translation, from "
        f"text to a served model.\n\n{lines}\n\n"
        "`luong-keras COMMAND --help` has the rest. Errors are one line; "
        "--debug shows\nwhere they come from."
    )


def _run(name: str, argv: list[str]) -> int:
    program = f"luong-keras {name}"
    debug = "--debug" in argv
    argv = [argument for argument in argv if argument != "--debug"]
    try:
        backend = os.environ["KERAS_BACKEND"]
        if name not in ANY_BACKEND and backend != "tensorflow":
            raise ValueError(
                "The command needs Keras' TensorFlow backend. Received: "
                f"KERAS_BACKEND={backend}. Unset it."
            )
        command = importlib.import_module(f"luong_keras.cli.{name}")
        return command.run(command.parse(argv)) or 0
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, ImportError, ArithmeticError) as error:
        if debug:
            raise
        # A training that came to a NaN was no mistake of the command line.
        status = 1 if isinstance(error, ArithmeticError) else 2
        return _fail(program, str(error), status)


def _fail(program: str, message: str, status: int = 2) -> int:
    print(f"{program}: error: {' '.join(message.split())}", file=sys.stderr)
    return status
