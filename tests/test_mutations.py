"""The mistakes that are put into the library, listed and drawn."""

import ast
from itertools import islice
from pathlib import Path

import pytest

from tests.mutations.drawn import draw, modules
from tests.mutations.edits import Source, program
from tests.mutations.listed import MUTATIONS
from tests.mutations.matching_tests import ImportGraph
from tests.mutations.project_copy import PACKAGE, ROOT


@pytest.fixture(scope="module")
def drawn():
    """Many mutants, and how many of them are looked at one by one."""
    return list(islice(draw(7, ROOT / PACKAGE), 200))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_listed_mistake_can_be_made(mutation):
    text = (ROOT / PACKAGE / mutation.module).read_text(encoding="utf-8")
    assert program(mutation.apply(text)) not in (None, program(text))


def test_the_tests_of_the_listed_mistakes_exist():
    tests = {test for mutation in MUTATIONS for test in mutation.tests}
    assert [test for test in sorted(tests) if not (ROOT / test).exists()] == []


def test_a_seed_draws_the_same_mistakes(drawn):
    again = islice(draw(7, ROOT / PACKAGE), 5)
    assert [mutant.key() for mutant in again] == [m.key() for m in drawn[:5]]
    other = islice(draw(8, ROOT / PACKAGE), 5)
    assert [mutant.key() for mutant in other] != [m.key() for m in drawn[:5]]


def test_a_drawn_mistake_is_another_program_of_few_other_lines(drawn):
    assert len({mutant.key() for mutant in drawn}) == len(drawn)
    for mutant in drawn:
        text = (ROOT / PACKAGE / mutant.module).read_text(encoding="utf-8")
        ast.parse(mutant.text)
        # Outside of the lines that are shown nothing has changed.
        start = len("".join(text.splitlines(True)[: mutant.line - 1]))
        assert text[start:].startswith(mutant.before)
        rest = text[start + len(mutant.before) :]
        assert mutant.text == text[:start] + mutant.after + rest
        assert mutant.before != mutant.after


def test_docstrings_and_the_phrasebook_are_left_alone(drawn):
    assert not [name for name in modules(ROOT / PACKAGE) if "phrase" in name]
    for mutant in drawn:
        text = (ROOT / PACKAGE / mutant.module).read_text(encoding="utf-8")
        assert _docstrings(mutant.text) == _docstrings(text)


def _docstrings(text):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]
    return [ast.get_docstring(node, clean=False) for node in nodes]


EDITS = {
    "a < b": {"a <= b", "a > b"},
    "a not in b": {"a in b"},
    "a + 'b'": set(),
    "(a) * (b)": {"(a) / (b)"},
    "a and b or c": {"a or b or c", "a and b and c"},
    "a[1]": {"a[2]", "a[0]"},
    "a[-1]": {"a[-2]", "a[-0]"},
    "a = True, 0.5": {"a = False, 0.5", "a = True, 1.0"},
    "a if b else c": {"a if not b else c"},
    "a if not b else c": {"a if b else c"},
    "[a for a in b if c == d]": {
        "[a for a in b if not (c == d)]",
        "[a for a in b if c != d]",
    },
    "f(a, b)": {"f(b, a)"},
    "f(a, None)": set(),
    "minimum(a, b)": set(),
    "f(a, k=b, l=c)": {"f(a, l=c)", "f(a, k=b)"},
    "f(k=b,)": {"f()"},
    "f(a, axis=-1)": {"f(a)", "f(a, axis=0)", "f(a, axis=1)", "f(a, axis=-2)"}
    | {"f(a, axis=-0)"},
    "f(a, self.mask)": {"f(a, None)"},
    "f(k=my_mask)": {"f()", "f(k=None)"},
    "where(a, b, c)": {"where(a, c, b)"},
    "exp(a)": {"a"},
    "2 * exp(a or b)": {"2 / exp(a or b)", "3 * exp(a or b)"}
    | {"1 * exp(a or b)", "2 * (a or b)", "2 * exp(a and b)"},
    "len(a)": set(),
    "{'a': b, 'c': d}": {"{'c': d}", "{'a': b}"},
    "def f(a: 1, b=3) -> 2: 'x'": {
        "def f(a: 1, b=4) -> 2: 'x'",
        "def f(a: 1, b=2) -> 2: 'x'",
    },
    "raise a(1 + 1)": set(),
    "a = f'{b + 1}'": set(),
    "'ä', a < b": {"'ä', a <= b", "'ä', a > b"},
}


@pytest.mark.parametrize("text", EDITS)
def test_the_mistakes_in_a_text(text):
    source = Source(text)
    found = [source.apply(edit) for edits in source.places for edit in edits]
    assert sorted(found) == sorted(EDITS[text])


def write_project(folder, files):
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_tests_are_found_by_imports_and_layout(tmp_path):
    write_project(
        tmp_path,
        {
            "own/__init__.py": "_MODULES = {'Upper': 'layers.upper'}",
            "own/lower.py": "def low(): ...",
            "own/layers/__init__.py": "",
            "own/layers/upper.py": "from own.lower import low\nUpper = low",
            "own/alone.py": "",
            "tests/test_lower.py": "",
            "tests/test_direct.py": "from own import lower",
            "tests/test_walk.py": "import own\nown.__path__",
            "tests/layers/test_name.py": "import own as o\no.Upper",
            "tests/layers/upper/test_a_part.py": "",
            "tests/text/conftest.py": "from own.layers.upper import Upper",
            "tests/text/test_fixture.py": "",
            "tests/text/not_a_test.py": "from own import lower",
        },
    )
    graph = ImportGraph(tmp_path, "own")
    assert graph.tests_of("lower.py") == [
        "tests/test_lower.py",
        "tests/test_direct.py",
        "tests/layers/test_name.py",
        "tests/text/test_fixture.py",
        "tests/test_walk.py",
    ]
    assert graph.tests_of("layers/upper.py") == [
        "tests/layers/upper/test_a_part.py",
        "tests/layers/test_name.py",
        "tests/text/test_fixture.py",
        "tests/test_walk.py",
    ]
    assert graph.tests_of("alone.py") == ["tests/test_walk.py"]


def test_every_module_of_the_library_has_tests():
    graph = ImportGraph(ROOT, PACKAGE)
    assert [m for m in modules(ROOT / PACKAGE) if not graph.tests_of(m)] == []
