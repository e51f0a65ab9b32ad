"""docs/files_and_environment.md lists what a run writes and a process reads.

`tests/test_translator.py` compares its files with those of a finished run.
"""

import ast
import re
from pathlib import Path

from luong_keras.training.run_folder import RunFolder

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "files_and_environment.md").read_text("utf-8")
PROGRAMS = (
    *(ROOT / "luong_keras").rglob("*.py"),
    *(ROOT / "export" / "client" / "luong_keras_client").rglob("*.py"),
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def first_cells(heading):
    """The names in the first column of the tables below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    names = (name for cell in cells for name in re.findall("`(.*?)`", cell))
    return {name.rstrip("/") for name in names}


def variables_read(path):
    """Names like those of variables, in a module that reads some."""
    text = path.read_text("utf-8")
    if not re.search(r"os\.(environ|getenv)", text):
        return set()
    constants = (
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return set(filter(VARIABLE.fullmatch, constants))


def test_the_page_has_the_names_of_a_run_folder(tmp_path):
    run = RunFolder(tmp_path)
    named = {path.name for path in vars(run).values()} - {tmp_path.name}
    listed = first_cells("A run folder")
    assert len(named) > 25 and not named - listed
    # The rest are hidden, or their endings depend on the tokenizer.
    others = {name for name in listed - named if not name.startswith(".")}
    assert others == {
        f"{side}_vocabulary.{ending}"
        for side in ("source", "target")
        for ending in ("model", "vocab")
    }


def test_the_page_has_the_variables_that_are_read():
    read = set().union(*map(variables_read, PROGRAMS))
    assert {"LUONG_KERAS_TOKEN", "OMPI_COMM_WORLD_SIZE"} <= read
    assert not read - first_cells("Environment variables")
