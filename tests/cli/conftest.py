"""Untrained run for the tests of the commands that read a run."""

import json
import shutil

import pytest

from luong_keras.cli.main import main
from luong_keras.config import DataConfig
from luong_keras.training.run_folder import RunFolder
from tests.serving.tiny_translator import tiny_translator, write_run

PAIRS = [
    ("the cat sees a dog .", "die Katze sieht einen Hund ."),
    ("a house", "das Haus"),
    ("the dog .", "der Hund ."),
]
SOURCES, TARGETS = map(list, zip(*PAIRS, strict=True))


def write_lines(path, lines):
    """Write a text file; return its path."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def copy_run(run, path, **changes):
    """Copy a run; change settings of the named sections."""
    copy = RunFolder(shutil.copytree(run.path, path))
    settings = copy.read_config()
    for section, values in changes.items():
        settings[section] |= values
    copy.write_config(settings)
    return copy


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(stack_size=4, length_penalty=1.0, beam_size=2)


@pytest.fixture(scope="module")
def run(translator, tmp_path_factory):
    """Write the folder of an untrained run, with its test pairs."""
    folder = tmp_path_factory.mktemp("runs")
    path = write_lines(folder / "test.tsv", map("\t".join, PAIRS))
    parts = dict.fromkeys(("train", "dev", "test"), str(path))
    data = DataConfig("files", **parts)
    return RunFolder(write_run(folder / "tiny", translator, data=data))


@pytest.fixture
def call(run, capsys):
    """Call a command on the run; return the lines that it prints.

    With `--json`, return the scores instead. `call.printed` has the whole
    output of the last command.
    """

    def call(name, *arguments, status=0, run_dir=run.path):
        flags = () if run_dir is None else ("--run-dir", run_dir)
        assert main([*map(str, (name, *flags, *arguments))]) == status
        call.printed = out, err = capsys.readouterr()
        if "--json" in arguments and status == 0:
            return json.loads(out)
        return (err if status == 2 else out).splitlines()

    return call
