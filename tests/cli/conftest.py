"""Untrained run for the tests of the commands that read a run."""

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


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(stack_size=4, length_penalty=1.0, beam_size=2)


@pytest.fixture(scope="module")
def run(translator, tmp_path_factory):
    """Write the folder of an untrained run, with its test pairs."""
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "test.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS))
    parts = dict.fromkeys(("train", "dev", "test"), str(path))
    data = DataConfig("files", **parts)
    return RunFolder(write_run(folder / "tiny", translator, data=data))


@pytest.fixture
def call(run, capsys):
    """Call a command on the run; return the lines that it prints.

    `call.printed` has the whole output of the last command.
    """

    def call(name, *arguments, status=0):
        argv = [name, "--run-dir", run.path, *arguments]
        assert main([str(argument) for argument in argv]) == status
        call.printed = out, err = capsys.readouterr()
        return (err if status == 2 else out).splitlines()

    return call
