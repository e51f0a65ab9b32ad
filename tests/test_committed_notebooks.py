"""Committed notebooks; `make docs` runs them.

`ruff` finds undefined names in them.
"""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.test_english import HABITS, lines_that_match
from tests.test_readme import missing_files

nbformat = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
INSTALL = """\
import importlib.util

if importlib.util.find_spec("luong_keras") is None:
    %pip install --quiet "luong-keras[train] @ git+ADDRESS\""""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def _cells(notebook, kind):
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def _text(notebook):
    return "\n\n".join(c.source for c in _cells(notebook, "markdown"))


def unknown_names(source):
    """Return names that a program uses but this library does not have."""
    tree, found, unknown = ast.parse(source), {}, []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.module.partition(".")[0] != "luong_keras":
            continue
        owner = importlib.import_module(node.module)
        for name in node.names:
            if hasattr(owner, name.name):
                found[name.asname or name.name] = getattr(owner, name.name)
            else:
                unknown.append(name.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = found.get(node.value.id)
            if owner is not None and not hasattr(owner, node.attr):
                unknown.append(f"{node.value.id}.{node.attr}")
    return unknown


def test_page_lists_the_notebooks():
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(notebooks/(\w+\.ipynb)\)", page)
    assert sorted(listed) == [path.name for path in NOTEBOOKS]


def test_unknown_names_are_found():
    source = "from luong_keras import Translator, Missing\nTranslator.fits()\n"
    assert unknown_names(source) == ["Missing", "Translator.fits"]
    assert unknown_names("from luong_keras import alignment as a\na.none") == [
        "a.none"
    ]
    assert not unknown_names("from luong_keras import fit\nx.fits")


def test_notebooks_are_committed_without_outputs(notebook):
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in _cells(notebook, "code"):
        assert cell.outputs == [] and cell.execution_count is None, cell.id
    # Ids are names, not the random ids of an editor.
    assert notebook.cells[0].id == "title"


def test_notebooks_begin_with_title_and_installation(notebook):
    kinds = [cell.cell_type for cell in notebook.cells]
    first = kinds.index("code")
    assert first > 0
    assert notebook.cells[0].source.startswith("# ")
    assert notebook.cells[first].source.startswith(INSTALL)
    assert "on no index yet" in notebook.cells[first - 1].source
    code = "\n".join(c.source for c in _cells(notebook, "code"))
    imports = re.findall(r"^(?:import|from) (\w*keras|tensorflow)", code, re.M)
    # Imported first, it silences the messages of TensorFlow.
    assert imports[0] == "luong_keras"


def test_notebooks_use_existing_names(notebook):
    code = [c.source for c in _cells(notebook, "code") if c.id != "install"]
    assert not unknown_names("\n".join(code))


def test_links_of_notebooks_lead_to_files(notebook, path):
    assert not missing_files(_text(notebook), path.parent)


def test_english_of_notebooks(notebook):
    lines = {
        better: found
        for pattern, better in HABITS.items()
        if (found := lines_that_match(pattern, _text(notebook)))
    }
    assert not lines
