"""Mutations of the library, listed and drawn, and the tests chosen for them."""

import ast
import json
import re
from itertools import islice
from pathlib import Path

import pytest

from tests.mutations.drawn import Mutant, draw, modules, read_records, record
from tests.mutations.edits import Source, program
from tests.mutations.listed import MUTATIONS, Mutation
from tests.mutations.matching_tests import ImportGraph
from tests.mutations.project_copy import PACKAGE, ROOT, Outcome, read_output


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_listed_mutations_change_the_program(mutation):
    text = (ROOT / PACKAGE / mutation.module).read_text(encoding="utf-8")
    assert program(mutation.apply(text)) not in (None, program(text))


def test_listed_mutations_apply_in_exactly_one_place():
    mutation = Mutation("ours", "layers/attention/scores.py", "a", "b", "")
    assert mutation.apply("cac") == "cbc"
    for text in ("", "aa"):
        with pytest.raises(ValueError, match="must have 'a' once"):
            mutation.apply(text)


def test_tests_of_listed_mutations_exist():
    tests = {mutation.tests for mutation in MUTATIONS}
    assert [test for test in sorted(tests) if not (ROOT / test).exists()] == []


def test_cases_of_listed_mutations_exist():
    absent = []
    for mutation in MUTATIONS:
        # Cases of golden tests are names of recorded numbers.
        if "golden" in mutation.tests:
            continue
        path = ROOT / mutation.tests
        files = [path] if path.suffix else path.glob("*.py")
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        names = "".join(re.findall(r"def (test_\w+)", text))
        words = {*re.findall(r"\w+", mutation.cases)} - {"and", "or", "not"}
        for word in words:
            if word not in (names if "_" in word else text):
                absent.append((mutation.name, word))
    assert absent == []


def test_seeds_draw_reproducible_mutants():
    first, again, other = (
        [m.key() for m in islice(draw(seed, ROOT / PACKAGE, "text/"), 20)]
        for seed in (7, 7, 8)
    )
    assert first == again != other
    assert len(set(first)) == 20


def test_drawn_mutants_differ_in_the_lines_shown():
    docstrings = {}
    for mutant in islice(draw(1, ROOT / PACKAGE), 200):
        name = mutant.module
        text = (ROOT / PACKAGE / name).read_text(encoding="utf-8")
        ast.parse(mutant.text)
        start = len("".join(text.splitlines(True)[: mutant.line - 1]))
        assert text[start:].startswith(mutant.before)
        rest = text[start + len(mutant.before) :]
        assert mutant.text == text[:start] + mutant.after + rest
        assert mutant.before != mutant.after
        if name not in docstrings:
            docstrings[name] = _lines_of_docstrings(text)
        assert mutant.line not in docstrings[name]


def _lines_of_docstrings(text):
    """Return the lines of all expressions that are only a constant."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr)]
    return {
        line
        for node in nodes
        if isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }


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
    "'ä', exp(a)": {"'ä', a"},
}


@pytest.mark.parametrize("text", EDITS)
def test_edits_of_a_text(text):
    source = Source(text)
    found = [source.apply(edit) for edits in source.places for edit in edits]
    assert sorted(found) == sorted(EDITS[text])


def test_mutants_with_the_same_program_are_not_drawn(tmp_path):
    write_project(tmp_path, {"one.py": '"""x = 1 - 0"""\nx = 1 - 0\n'})
    found = {(m.line, m.after) for m in draw(1, tmp_path)}
    # "1 + 0" is missing: the compiler replaces it by the same number.
    assert found == {(2, f"x = {new}") for new in ("2 - 0", "0 - 0", "1 - 1")}
    assert program("a\n\nb") == program("a; b")
    assert program("a +") is None


def test_recorded_mutants_are_recognised(tmp_path):
    path = tmp_path / "records.jsonl"
    mutant = Mutant("layers/attention/scores.py", 3, "a < b", "a > b", "text")
    outcome = Outcome("cut", ["tests/test_a.py::test_b"], 4, 5.0)
    assert read_records(path, "jax") == {}
    found = record(mutant, outcome, "jax")
    assert (found["result"], found["all_tests"]) == ("survived", False)
    path.write_text(json.dumps(found) + "\n", encoding="utf-8")
    assert read_records(path, "jax") == {mutant.key(): found}
    assert read_records(path, "tensorflow") == {}


OUTPUT = """collecting ... collected 3 items

tests/test_a.py::test_b PASSED                        [ 33%]
tests/test_a.py::test_c[x - y] {}
"""
FAILED = """FAILED                 [ 66%]

=========================== short test summary info ============================
FAILED tests/test_a.py::test_c[x] - assert 1 == 2
========================= 1 failed, 1 passed in 9.81s ======================="""


@pytest.mark.parametrize(
    "status, end, expected",
    [
        (0, "PASSED   [100%]", ("passed", [], 2)),
        (0, "SKIPPED (PASSED)   [100%]", ("passed", [], 1)),
        (1, FAILED, ("failed", ["tests/test_a.py::test_c[x]"], 1)),
        (2, "\nERROR tests/test_d.py", ("failed", ["tests/test_d.py"], 1)),
        (-11, "", ("failed", ["pytest ended with -11"], 1)),
        (5, "", ("no tests", [], 1)),
        ("cut", "", ("cut", ["tests/test_a.py::test_c[x - y]"], 1)),
    ],
)
def test_output_of_pytest_is_read(status, end, expected):
    assert read_output(status, OUTPUT.format(end)) == expected


def write_project(folder, files):
    for name, text in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_matching_tests_are_found_by_imports_and_layout(tmp_path):
    write_project(
        tmp_path,
        {
            "own/__init__.py": "_MODULES = {'Upper': 'layers.upper'}",
            "own/lower.py": "def low(): ...",
            "own/layers/__init__.py": "",
            "own/layers/upper.py": "from own.lower import low\nUpper = low",
            "own/single.py": "",
            "tests/test_lower.py": "from own.layers import upper",
            "tests/test_direct.py": "from own import lower",
            "tests/test_walk.py": "import own\nown.__path__",
            "tests/data/test_more.py": "from own import Upper\nUpper()",
            "tests/data/test_once.py": "from own import Upper",
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
        "tests/data/test_more.py",
        "tests/data/test_once.py",
        "tests/layers/test_name.py",
        "tests/text/test_fixture.py",
        "tests/test_walk.py",
    ]
    assert graph.tests_of("layers/upper.py") == [
        "tests/layers/upper/test_a_part.py",
        "tests/data/test_more.py",
        "tests/layers/test_name.py",
        "tests/data/test_once.py",
        "tests/test_lower.py",
        "tests/text/test_fixture.py",
        "tests/test_walk.py",
    ]
    assert graph.tests_of("single.py") == ["tests/test_walk.py"]


def test_every_module_of_the_library_has_tests():
    graph = ImportGraph(ROOT, PACKAGE)
    assert [m for m in modules(ROOT / PACKAGE) if not graph.tests_of(m)] == []


@pytest.mark.parametrize("status", [3, 4])
def test_internal_errors_of_pytest_are_reported(status):
    with pytest.raises(SystemExit, match="could not run the tests"):
        read_output(status, OUTPUT.format(""))
