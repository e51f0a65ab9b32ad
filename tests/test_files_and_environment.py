"""File names and environment variables in docs/files_and_environment.md.

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
VARIABLE_READ = re.compile(
    r'os\.environ(?:\.get\(|\[)"(\w+)"(?!\] =)|"(\w+)" (?:not )?in os\.environ'
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def first_cells(heading):
    """Return the names in the first column of the tables below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    names = (name for cell in cells for name in re.findall("`(.*?)`", cell))
    return {name.rstrip("/") for name in names}


def variables_read(path):
    """Return possible names of variables in a module that reads some."""
    text = path.read_text("utf-8")
    if not re.search(r"os\.(environ|getenv)", text):
        return set()
    constants = (
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return set(filter(VARIABLE.fullmatch, constants))


def test_page_lists_the_files_of_a_run_folder(tmp_path):
    run = RunFolder(tmp_path)
    paths = [getattr(run, name, None) for name in vars(RunFolder)]
    named = {path.name for path in paths if isinstance(path, Path)}
    listed = first_cells("A run folder")
    assert len(named) > 25 and not named - listed
    # The page also lists hidden files.
    assert all(name.startswith(".") for name in listed - named)
    assert named >= {
        f"{side}_vocabulary.{ending}"
        for side in ("source", "target")
        for ending in ("model", "vocab")
    }


def test_page_lists_the_environment_variables():
    read = set().union(*map(variables_read, PROGRAMS))
    assert {"LUONG_KERAS_TOKEN", "OMPI_COMM_WORLD_SIZE"} <= read
    listed = first_cells("Environment variables")
    assert not read - listed
    for folder in ("tests", "examples", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            names = map("".join, VARIABLE_READ.findall(path.read_text("utf-8")))
            assert listed.issuperset(filter(VARIABLE.fullmatch, names)), path
    assert {"RAY_ADDRESS", "LUONG_KERAS_CONSTRAINTS"} <= listed
