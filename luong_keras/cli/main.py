"""Entry point of the command line, with errors in one line."""

import contextlib
import importlib
import io
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import luong_keras
from luong_keras.files.atomic_file import DISK_ADVICE, DISK_REASONS
from luong_keras.missing_package import KNOWN, missing_package
from luong_keras.suggestions import did_you_mean

COMMANDS = {
    "train": "train a translator, or continue with one",
    "translate": "translate text with a trained run",
    "evaluate": "score a trained run on its test pairs",
    "score": "score given translations",
    "align": "link the words of given translations",
    "report": "write a run, or two side by side, as a page of HTML",
    "lexicon": "write a shortlist for faster search",
    "export": "write a SavedModel for TensorFlow Serving",
    "ask": "translate text through a server of an export",
}
# `train` can also train on JAX; `ask` uses no backend.
ANY_BACKEND = ("train", "ask")
# Without a reader of their output these have nothing more to do.
_ONLY_PRINT = ("translate", "score", "align", "ask")
_HELP = {"-h", "--help", "--help-all"}
_CLOSED_OUTPUT = 141  # 128 + SIGPIPE, as in a shell


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit status: 2 for an error that the user can correct, 1 for
        another failure, 75 if the same command continues the work, and 141
        if nobody reads the output of a command that also writes files.
    """
    status = 0
    try:
        status = _main(argv)
    except BrokenPipeError:
        pass
    finally:
        try:
            sys.stdout.flush()
        except OSError as error:
            # Otherwise Python writes the rest again at its end.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            # The reader may close the output, but a full disk loses a part.
            if status == 0 and not isinstance(error, BrokenPipeError):
                message = (
                    f"the end of the output was not written: {error}. Free "
                    "some space, and run the same command again."
                )
                # Instead of the exit with 0 after `--help`, too.
                raise SystemExit(_fail("luong-keras", message)) from None
    return status


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """Return a warning of this package as one line; others as Python does."""
    if filename.startswith(os.path.dirname(luong_keras.__file__)):
        return f"luong-keras: warning: {message}\n"
    return _PYTHON_FORMAT(message, category, filename, lineno, line)


_PYTHON_FORMAT = warnings.formatwarning


def _main(argv: Sequence[str] | None) -> int:
    # Silence the messages that TensorFlow prints at every start.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    own_process = argv is None
    if own_process:
        warnings.formatwarning = _format_warning
        # Streams that the caller has closed, as by `>&-`.
        sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if own_process and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # in every locale
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
        return _run_command(name, argv)
    with without_startup_noise(argv):
        return _run_command(name, argv)


def usage() -> str:
    """Return the text of `luong-keras --help`."""
    lines = "\n".join(f"  {name:<10} {what}" for name, what in COMMANDS.items())
    return (
        "usage: luong-keras COMMAND …\n\nAttention-based translation, from "
        f"text to a served model.\n\n{lines}\n\n"
        "`luong-keras COMMAND --help` lists its options. Errors are one line;\n"
        "--debug prints the traceback."
    )


def _run_command(name: str, argv: list[str]) -> int:
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
        # A missing package raises an error that says what to install.
        parsing = importlib.import_module("luong_keras.cli.parsing")
        command = importlib.import_module(f"luong_keras.cli.{name}")
        if hasattr(command, "parse"):
            arguments = command.parse(argv)
        else:
            kind = getattr(command, name.capitalize())
            arguments = parsing.parse_arguments(kind, program, argv)
        return command.run(arguments)
    except BrokenPipeError:
        if name in _ONLY_PRINT or _HELP.intersection(argv):
            raise
        return _fail(
            program,
            "the output was closed, as by `| head`, before the command was "
            "done. Write it to a file, and run the same command again.",
            _CLOSED_OUTPUT,
        )
    except KeyboardInterrupt:
        return 130
    except (ValueError, OSError, ImportError, ArithmeticError) as error:
        if debug:
            raise
        # A NaN in training is not a mistake of the command line.
        status = 1 if isinstance(error, ArithmeticError) else 2
        status = getattr(error, "exit_status", status)
        if isinstance(error, ModuleNotFoundError):
            package = str(error.name).partition(".")[0]
            if package in KNOWN:  # such as Keras' backend
                return _fail(program, str(missing_package(package, error)))
            *_, (file, line, *_) = (
                entry
                for entry in traceback.extract_tb(error.__traceback__)
                if not entry.filename.startswith("<")  # of importlib
            )
            return _fail(
                program,
                f"Line {line} of {file} imports `{error.name}`, which could "
                f"not be imported ({error}). Install its package.",
            )
        return _fail(program, str(error), status)
    except Exception as error:
        reason = _disk_reason(error)
        if debug or reason is None:
            raise
        return _fail(
            program,
            f"{error}: {reason}. {DISK_ADVICE}.",
        )


def _disk_reason(error: Exception) -> str | None:
    """Return the problem with the disk in an error of TensorFlow, or None.

    TensorFlow writes exports and TensorBoard's files.
    """
    if type(error).__module__ != "tensorflow.python.framework.errors_impl":
        return None
    reasons = (
        reason
        for number, reason in DISK_REASONS.items()
        if os.strerror(number) in str(error)
    )
    return next(reasons, None)


def _fail(program: str, message: str, status: int = 2) -> int:
    # The received value may be as long as a file.
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
    with contextlib.suppress(BrokenPipeError):
        print(f"{program}: error: {' '.join(message.split())}", file=sys.stderr)
    return status


_LONGEST = 3000  # characters of a message
_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_DRIVER = Path("/proc/driver/nvidia/version")
_END = b"\0\n"  # what the filtered process writes last
# Information and warnings, the line printed before them, and false errors:
# libraries registered twice, a slower operation.
_NOISE = re.compile(
    rb"[IW]\d{4} \d\d:\d\d:\d\d\.\d+|[IW]0000 00:00:\d+\.\d+"
    rb"|WARNING: All log messages before absl::InitializeLog\(\)"
    rb"|E0000 .*(Unable to register cu\w+ factory|oneDNN supports DT_\w+ only)"
)
# On a machine without a card, the failed call is not an error.
_NO_CARD = re.compile(rb"E0000 .*failed call to cuInit")


@contextlib.contextmanager
def without_startup_noise(arguments: list[str]) -> Iterator[None]:
    """Filter the standard error of this process within the context.

    Nothing is filtered with `--debug`, if TF_CPP_MIN_LOG_LEVEL is below 2
    (2 means errors only), or if the system has no `fork`.

    Args:
        arguments: Arguments of the command.
    """
    unfiltered = "--debug" in arguments or os.environ.get(_LEVEL) in ("0", "1")
    if unfiltered or not hasattr(os, "fork"):
        yield
        return
    terminal = os.dup(2)
    reading, writing = os.pipe()
    waiting, passed_on = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.close(waiting)
        _pass_on(reading, terminal, passed_on)
    os.close(reading)
    os.close(passed_on)
    os.dup2(writing, 2)
    os.close(writing)
    stderr = sys.stderr
    sys.stderr = os.fdopen(
        terminal, "w", buffering=1, errors="backslashreplace", closefd=False
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = stderr
        with contextlib.suppress(BrokenPipeError):
            os.write(2, _END)
        os.dup2(terminal, 2)
        os.close(terminal)
        # Wait until all lines are printed, before the prompt returns. The child
        # ends later, with the last child of this process that has its pipe.
        os.read(waiting, 1)
        os.close(waiting)


def is_noise(line: bytes, has_card: bool) -> bool:
    """Test whether a line is one of TensorFlow's start messages.

    Args:
        line: Line of the standard error.
        has_card: Whether the machine has an NVIDIA driver.

    Example:
        >>> is_noise(b"I0000 00:00:17.3 19 port.cc:153] oneDNN is on", False)
        True
        >>> is_noise(b"E0000 00:00:17.3 19 gpu.cc:1] out of memory", False)
        False
    """
    if _NOISE.match(line):
        return True
    return not has_card and _NO_CARD.match(line) is not None


def _pass_on(reading: int, writing: int, passed_on: int) -> None:
    """Copy lines that are not noise, until all writers have closed the pipe.

    It closes `passed_on` after copying everything before `_END`.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The parent may handle these signals and print messages.
        signal.signal(number, signal.SIG_IGN)
    has_card = _DRIVER.exists()
    with contextlib.suppress(OSError), os.fdopen(reading, "rb") as lines:
        for line in lines:
            ends = line.endswith(_END)
            line = line.removesuffix(_END)
            if not is_noise(line, has_card):
                os.write(writing, line)
            if ends:
                os.close(passed_on)
    os._exit(0)
