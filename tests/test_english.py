"""German habits that the project's English avoids.

`make lint` finds misspelled words; these phrases are spelled correctly.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Patterns and better forms.
HABITS = {
    # Titles of docstrings.
    r'"""(What|Which|How|Where|Whether|Of what)\b': (
        "a noun phrase or an imperative"
    ),
    # Descriptions of arguments.
    r"\b(Args|Attributes|Raises|Call arguments):\n +\*{0,2}\w+: [a-z]+ ": (
        "a capital letter after the colon, as in Keras"
    ),
    # Headings.
    r"(\A#|(?m:^##+)) (What|Which|How|Where)\b": "a noun phrase",
    # "so viele": in English it means very many.
    r"\bso (many|much)\b(?! (that|as)\b)": "that many, a given number of",
    # "sagen": a program reports; people are told.
    r"\b(is|are|was|were|be|been) told\b": "is reported, is refused",
    # "weitergehen".
    r"\b(go|goes|going|went|gone) on\b": "continues",
    # "allein" after its noun.
    r"\balone[.;]": "only, before the words that it limits",
    # "ein Training": it has no plural.
    r"\btrainings\b|\ba training[.,;]": "a training run",
    # Things need; people want.
    r"\bwants\b": "needs",
    r"\bpupil\b": "student",
    r"\bthe way back\b": "the backward pass",
}
FOLDERS = (
    *("luong_keras", "examples/reproduction"),
    *("export", "benchmarks", "tests"),
)
FILES = [
    *(
        path
        for name in FOLDERS
        for path in (ROOT / name).rglob("*.py")
        if path != Path(__file__)
    ),
    *(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *(
        path
        for name in ("docs", "export")
        for path in (ROOT / name).glob("*.md")
    ),
    *(ROOT / "examples").glob("*.py"),
]


def lines_that_match(pattern: str, text: str) -> list[str]:
    """Return the matches of a pattern, whose spaces may be line breaks."""
    spaces = re.compile(pattern.replace(" ", r"\s+(?:# )?"))
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {found.group()!r}"
        for found in spaces.finditer(text)
    ]


@pytest.mark.parametrize("pattern", HABITS)
def test_prose_has_no_german_habits(pattern):
    found = {
        path.relative_to(ROOT).as_posix(): lines
        for path in FILES
        if (lines := lines_that_match(pattern, path.read_text("utf-8")))
    }
    assert not found, f"Write {HABITS[pattern]}."


def test_habits_are_found_across_lines():
    text = "# It goes\n# on, with so many\n# as before."
    (habit,) = (each for each in HABITS if "goes" in each)
    assert lines_that_match(habit, text) == ["line 1: 'goes\\n# on'"]
