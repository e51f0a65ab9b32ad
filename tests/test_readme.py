"""Code, links and tables of the documentation.

A code block after a line `<!-- not run -->` is not run.
"""

import doctest
import re
import tomllib
from pathlib import Path

import pytest

import luong_keras

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "export" / "README.md",
    ROOT / "export" / "RUNBOOK.md",
    ROOT / "benchmarks" / "README.md",
]


def python_blocks(text):
    """Return (line number, code) of every block to run."""
    lines, blocks, start = text.splitlines(), [], None
    for number, line in enumerate(lines):
        if start is None and line.strip() == "```python":
            start = number + 1
        elif start is not None and line.strip() == "```":
            before = lines[start - 2].strip() if start > 1 else ""
            if before != "<!-- not run -->":
                blocks.append((start + 1, "\n".join(lines[start:number])))
            start = None
    return blocks


def relative_links(text):
    """Return the targets of relative links and images."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", prose)
    targets += re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, re.MULTILINE)
    targets += re.findall(r"""(?:src|href)=["']([^"']+)""", prose)
    return [
        target
        for target in targets
        if not re.match(r"[a-z][a-z+.-]*:|#", target)
    ]


def missing_files(text, folder):
    """Return the relative links in a text that lead to no file."""
    return [
        target
        for target in relative_links(text)
        if not (folder / target.partition("#")[0]).exists()
    ]


def test_links_and_blocks_are_found():
    text = (
        "[a](b.md#c) ![d](e/f.png) [g](https://h) [i](#j)\n"
        "```python\nx = 1\n```\n<!-- not run -->\n```python\ny\n```\n"
        "```sh\n[k](l)\n```\n[m]: n.md\n"
    )
    assert relative_links(text) == ["b.md#c", "e/f.png", "n.md"]
    assert python_blocks(text) == [(3, "x = 1")]


@pytest.mark.tensorflow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_of_documents_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Later blocks use the names of earlier ones.
    names = {"__name__": "document"}
    for line, code in python_blocks(document.read_text(encoding="utf-8")):
        if ">>>" in code:
            example = doctest.DocTestParser().get_doctest(
                code, names, f"{document.name}:{line}", str(document), line
            )
            example.globs = names
            report = []
            runner = doctest.DocTestRunner(
                optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
            )
            runner.run(example, out=report.append, clear_globs=False)
            assert not runner.failures, "".join(report)
        else:
            # Line numbers in tracebacks are those of the document.
            padded = "\n" * (line - 1) + code
            exec(compile(padded, str(document), "exec"), names)


@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)
def test_relative_links_lead_to_files(document):
    text = document.read_text(encoding="utf-8")
    assert not missing_files(text, document.parent)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_line_begins_with_a_percent_sign(document):
    """The site omits lines that begin with a percent sign."""
    text = document.read_text(encoding="utf-8")
    assert re.findall(r"(?m)^[ \t]*%.*", text) == []


def test_every_benchmark_is_in_the_tables():
    folder = ROOT / "benchmarks"
    text = (folder / "README.md").read_text(encoding="utf-8")
    absent = [
        path.name
        for path in folder.glob("*.py")
        if f"]({path.name})" not in text
    ]
    assert not absent


@pytest.mark.parametrize(
    "path, count",
    [
        ("CITATION.cff", 1),
        ("docs/install.md", 2),
        ("examples/cluster/train.yaml", 1),
        ("examples/cluster/translate_with_ray.yaml", 1),
    ],
)
def test_names_of_the_version_are_current(path, count):
    """Compare names of wheels and images, and the citation."""
    names = r"(?:luong[_-]keras(?:-ray)?[-:]|^version: )(\d+\.\d+\.\d+)"
    found = re.findall(names, (ROOT / path).read_text("utf-8"), re.MULTILINE)
    assert found == [luong_keras.__version__] * count


def test_names_of_the_clients_version_are_current():
    settings = (ROOT / "export/client/pyproject.toml").read_text("utf-8")
    version = tomllib.loads(settings)["project"]["version"]
    text = "".join(
        (ROOT / path).read_text("utf-8")
        for path in ("docs/install.md", "setup.py")
    )
    found = re.findall(r"luong.keras.client(?:-|>=)(\d+\.\d+\.\d+)", text)
    assert found == [version] * 2
