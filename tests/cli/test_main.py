"""Help and one-line errors of commands, before Keras is loaded."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import luong_keras
from luong_keras.cli import main as main_module
from luong_keras.cli.main import COMMANDS, main, usage
from tests.programs import run_program

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_single_blank_lines(name, capsys):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    printed = capsys.readouterr().out
    assert "usage" in printed and "\n\n\n" not in printed
    # A flag for each setting of the search that the command reads.
    searches = ("translate", "evaluate", "export")
    assert ("--stack-keeps" in printed) == (name in searches)
    assert ("--max-beam-size" in printed) == (name == "export")
    assert "--batch-size" not in printed or name != "export"


def test_help_texts_have_no_line_that_tyro_would_not_join():
    package = Path(luong_keras.__file__).parent
    sources = [*package.glob("config/*.py"), *package.glob("cli/*.py")]
    broken = [
        line
        for source in sources
        for line in re.findall(
            r"(?<=\n)    # .*\n    # [^a-zA-Z].*", source.read_text()
        )
    ]
    assert not broken and len(sources) > 15


def error_of(argv, capsys):
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def run_with_closed_output(arguments, **environment):
    """Run the command; return its exit status and its errors."""
    with subprocess.Popen(
        [sys.executable, "-m", "luong_keras", *arguments.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    return process.returncode, errors


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "damaged/config.json": "{",
        "old/config.json": '{"model": {"unit": 3}}',
        "begun/config.json": "{}",
        "wrong.yaml": "model: {units: x}",
        "a.yaml": "1: 2",
        "pairs.tsv": "a\tb\n",
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    Path("empty").mkdir()


@pytest.mark.parametrize(
    "argv, parts",
    [
        ("tran", ["luong-keras: error:", "Received: tran", "mean train"]),
        ("train --set model.unit=3", ["train: error:", "mean model.units"]),
        ("train --epoch 3", ["--epoch", "mean --epochs"]),
        ("train --epochs x", ["--epochs", "Expected INT", "Received: x"]),
        ("train --training.epochs x", ["training.epochs", "int", "'x'"]),
        ("train --training.epochs --seed 3", ["training.epochs has no val"]),
        ("train --model.no-bidirectional", ["mean model.bidirectional?"]),
        ("train --data.columns a 2", ["data.columns: Expected [str, str]"]),
        ("train --columns a --seed 3", ["[str, str] or null. Received: 'a'"]),
        ("train --set data.columns=a,b,c", ["[str, str] or null", "'a,b,c'"]),
        ("translate --run-dir old --n-best 0", ["--n-best must be at least 1"]),
        ("train --epochs 0", ["training", "at least 1", "epochs=0"]),
        ("train --precision float", ["--precision: Expected one of auto, b"]),
        ("train --preset smal", ["small", "Received: smal", "mean small"]),
        ("train --config wrong.yaml", ["model.units", "int", "'x'"]),
        ("train --config no.yaml", ["no.yaml", "does not exist"]),
        ("train none.tsv", ["none.tsv, which does not exist"]),
        ("train a.txt", ["both sides", "Received: a.txt"]),
        ("train pairs.tsv b c", ["Received: pairs.tsv b c"]),
        ("train pairs.tsv --dev a.tsv b.tsv", ["Expected: as dev one file"]),
        ("train --test a.tsv b.tsv", ["training text before --test"]),
        ("train --dev pairs.tsv", ["training text as well"]),
        ("train --devices 2", ["for several devices --backend jax"]),
        ("train --devices 0", ["--devices must be at least 1"]),
        ("train --backend torch", ["Received: torch"]),
        # A path from a variable of the shell that is not set.
        ("train pairs.tsv --run-dir=", ["--run-dir with a path", "empty"]),
        ("translate --run_dir=", ["--run-dir with a path", "empty"]),
        ("export --output 1 --run-dir=", ["--run-dir with a path", "empty"]),
        ("evaluate --references=", ["--references with a path", "empty"]),
        # Flags that would be ignored.
        (
            "translate --run-dir begun --check-export text --n-best=3",
            ["does not read --n-best, files."],
        ),
        (
            "translate --run-dir begun --run-dir old --check-export",
            ["does not read more than one --run-dir."],
        ),
        (
            "translate --run-dir begun --required pairs.tsv --search=sampling",
            ["--required", "give --search beam."],
        ),
        # Flags without the one that they belong to.
        (
            "translate --run-dir begun --temperature 2 --top-k 3 --top-p 0.5 "
            "--seed 1",
            ["--temperature, --top-k, --top-p, --seed: settings of samples"],
        ),
        (
            "export --run-dir begun --output 1 --temperature 2 --seed 1",
            ["error: --temperature: settings", "--search sampling as well"],
        ),
        ("align --run-dir begun pairs.tsv --gold-one-based", ["--gold as"]),
        ("translate", ["--run-dir", "required"]),
        ("export --output 1", ["--run-dir is required"]),
        ("export --run-dir --output 1", ["--run-dir is required"]),
        ("translate --run-dir nowhere", ["nowhere, which does not exist"]),
        ("evaluate --run-dir pairs.tsv", ["pairs.tsv, which is a file"]),
        ("train pairs.tsv --init-from a.yaml", ["a.yaml, which is a file"]),
        ("translate --run-dir empty", ["without config.json"]),
        ("translate --run-dir damaged", ["damaged/config.json", "is damaged"]),
        ("evaluate --run-dir old", ["model.unit", "mean model.units"]),
        ("evaluate --run-dir old --part tst", ["dev, test", "mean test"]),
        ("score --run-dir begun pairs.txt", ["both sides", "pairs.txt"]),
        ("align --run-dir begun a.txt", ["both sides", "Received: a.txt"]),
        ("align --run-dir old a b --symmetrize un", ["grow-diag", "un"]),
        ("export --run-dir old --output first", ["a version number", "first"]),
    ],
)
def test_errors_are_one_line_and_write_nothing(
    working_folder, capsys, argv, parts
):
    before = os.listdir()
    line = error_of(argv.split(), capsys)
    assert os.listdir() == before
    assert line.startswith("luong-keras")
    for part in parts:
        assert part in line.replace("section.name=value", "key=value")


@pytest.mark.slow
def test_long_values_are_cut_in_errors(working_folder, tmp_path, capsys):
    long = "x" * 10**6
    (tmp_path / "long.json").write_text(f'{{"epochs": "{long}"}}')
    (tmp_path / "list.yaml").write_text(f"epochs: [{'1, ' * 10**4}]")
    for flags in (
        *(["--config", name] for name in ("long.json", "list.yaml")),
        *([name, long] for name in ("--epochs", "--training.epochs")),
        ["--set", f"epochs={'9' * 10**4}"],
    ):
        assert 30 < len(error_of(["train", *flags], capsys)) < 3500
    assert 30 < len(error_of([long], capsys)) < 3500


def test_debug_raises_the_error(working_folder):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        main(["translate", "--run-dir", "nowhere", "--debug"])


def test_other_backends_are_refused(working_folder, capsys, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    line = error_of(["translate", "--run-dir", "empty"], capsys)
    assert "Received: KERAS_BACKEND=jax" in line


def test_every_command_is_listed():
    for name, description in COMMANDS.items():
        assert name in usage() and description in usage()
    assert main([]) == 0


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "program", [["-m", "luong_keras"], [ROOT / "export/client.py"]]
)
def test_the_output_is_utf_8_in_every_locale(program):
    found = subprocess.check_output(
        [sys.executable, *program, "--help"],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
        encoding="utf-8",
    )
    assert "…" in found


@pytest.mark.slow_after_first
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    "arguments, status",
    [
        ("--version >&-", 0),
        ("--help >&- 2>&-", 0),
        ("nothing 2>&-", 2),
        ("train --nothing 2>&-", 2),
        ("translate --run-dir {run} <&-", 2),
    ],
)
def test_closed_streams_do_not_change_the_status(arguments, status, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    arguments = arguments.format(run=tmp_path)
    command = f'"{sys.executable}" -m luong_keras_command {arguments}'
    assert subprocess.run(command, shell=True).returncode == status


def test_warnings_are_lines_like_errors(tmp_path):
    (tmp_path / "config.json").write_text('{"training": {"max_skipped": 1}}')
    argv = ["align", "a", "b", "--run-dir", tmp_path, "--symmetrize=union"]
    command = [sys.executable, "-m", "luong_keras", *argv]
    done = subprocess.run(command, capture_output=True, text=True)
    warning, error = done.stderr.splitlines()
    assert warning.startswith("luong-keras: warning: training.max_skipped=1")
    assert error.startswith("luong-keras align: error: Links of one direction")
    other = main_module._format_warning("old", FutureWarning, "keras.py", 3)
    assert other.startswith("keras.py:3: FutureWarning: old")


@pytest.mark.slow
def test_help_and_errors_do_not_load_keras():
    program = (
        "import os, sys\n"
        "os.environ.pop('TF_CPP_MIN_LOG_LEVEL', None)\n"
        "from luong_keras_command import main\n"
        "from luong_keras.cli.main import COMMANDS\n"
        "for name in COMMANDS:\n"
        "    for arguments in (['--help'], ['--nothing'], ['--help-all']):\n"
        "        try:\n"
        "            main([name, *arguments])\n"
        "        except SystemExit as stop:\n"
        "            assert not stop.code\n"
        "main(['translate', '--run-dir', 'nowhere'])\n"
        "loaded = {'keras', 'tensorflow'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '2'\n"
    )
    printed = run_program(program)
    # `--help` has the common settings, `--help-all` has all of them.
    assert "--learning-rate" in printed
    assert printed.count("--model.attention.kind ") == 1


@pytest.mark.parametrize("module", ["luong_keras", "luong_keras_command"])
def test_help_and_version_load_no_large_package(module):
    for argument in ("--help", "--version"):
        command = [sys.executable, "-X", "importtime", "-m", module, argument]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() in (usage(), luong_keras.__version__)
        lines = done.stderr.splitlines()
        loaded = {line.rpartition("|")[2].strip() for line in lines}
        assert "luong_keras.cli.main" in loaded
        assert not loaded & {"keras", "tensorflow", "jax", "torch", "numpy"}


def test_processes_of_the_command_import_no_file_of_the_folder(tmp_path):
    (tmp_path / "lazy_loader.py").write_text("print('imported')")
    program = (
        "import subprocess\n"
        "from luong_keras_command import main\n"
        "main(['--version'])\n"
        "command = [sys.executable, '-m', 'luong_keras', '--version']\n"
        f"subprocess.run(command, cwd={str(tmp_path)!r}, check=True)\n"
    )
    assert run_program(program) == f"{luong_keras.__version__}\n" * 2


@pytest.mark.slow_after_first
@pytest.mark.parametrize("arguments", ["--help", "--version", "train --help"])
def test_closed_standard_output_is_no_error(arguments):
    found = run_with_closed_output(arguments, PYTHONUNBUFFERED="")
    assert found == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize("arguments", ["--version", "report --help"])
def test_a_full_disk_under_the_output_is_an_error(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "luong_keras_command", *arguments.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": ""},
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "output was not written" in line and "No space left" in line


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "arguments, unbuffered, status",
    [
        # The line is printed after the command has failed.
        ("train --run-dir pairs.tsv", "", 2),
        ("train --preset demo --run-dir new", "1", 141),
    ],
)
def test_closed_output_does_not_make_a_failure_a_success(
    working_folder, arguments, unbuffered, status
):
    environment = {"PYTHONUNBUFFERED": unbuffered}
    found, errors = run_with_closed_output(arguments, **environment)
    assert found == status, errors
    # After the messages of TensorFlow.
    assert "luong-keras train: error: " in errors.splitlines()[-1], errors


def test_a_missing_package_of_other_code_is_named(
    working_folder, tmp_path, monkeypatch, capsys
):
    (tmp_path / "sources.py").write_text("\nimport no_such_package.frames\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        "luong_keras.cli.evaluate.run_config",
        lambda _: importlib.import_module("sources"),
    )
    line = error_of(["evaluate", "--run-dir", "begun"], capsys)
    assert f"Line 2 of {tmp_path / 'sources.py'} imports `no_such_pack" in line
    assert "luong-keras[" not in line


def test_a_missing_tensorflow_is_named_with_its_extra(working_folder):
    program = (
        "from luong_keras_command import main\n"
        "sys.exit(main(['evaluate', '--run-dir', 'begun']))\n"
    )
    *_, line = run_program(program, "tensorflow", status=2).splitlines()
    assert "This needs the package `tensorflow`, which" in line
    assert "pip install '.[train]'" in line
