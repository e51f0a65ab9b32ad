"""The notebooks as they are committed; `make docs` runs them."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_the_page_lists_them():
    page = (FOLDER.parent / "notebooks.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(notebooks/(\w+\.ipynb)\)", page)
    assert sorted(listed) == [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds[:3] == ["markdown", "markdown", "code"]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    title, _, install = ("".join(c["source"]) for c in notebook["cells"][:3])
    assert title.startswith("# ")
    # It does nothing where the library is installed.
    assert 'find_spec("luong_keras") is None' in install
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            # Results are the site's, and would go stale here.
            assert cell["outputs"] == [] and cell["execution_count"] is None
        else:
            text = "".join(cell["source"])
            for target in re.findall(r"\]\(([^)#\s]+)", text):
                if not re.match(r"[a-z]+:", target):
                    assert (FOLDER / target).exists(), target
