"""Committed pages of docs/reproduction, and quotations of their figures."""

import json
from pathlib import Path

import pytest

from reproduction.page import write_pages
from reproduction.plan import read_plan
from reproduction.record import default_settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = ("builtin", "multi30k", "multi30k-small")


def summary(folder):
    """Read a summary, with numbers rounded so that machines agree."""
    text = (folder / "summary.json").read_text(encoding="utf-8")
    return json.loads(text, parse_float=lambda x: round(float(x), 6))


def test_all_pages_are_tested():
    folders = {path.name for path in (DOCS / "reproduction").iterdir()}
    assert folders == set(PAGES)


def test_settings_of_all_records_still_exist():
    paths = list((DOCS / "reproduction").glob("*/rows/*.json"))
    assert len(paths) > 50
    for path in paths:
        settings = json.loads(path.read_text(encoding="utf-8"))["settings"]
        assert set(settings) <= set(default_settings())


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_summaries_follow_from_their_rows(name, tmp_path):
    committed = DOCS / "reproduction" / name
    plan = read_plan(name.replace("-", "_"))
    write_pages(plan, committed / "rows", tmp_path)
    assert summary(tmp_path) == summary(committed)


@pytest.mark.parametrize(
    ("name", "title"),
    [("builtin", "On the built-in corpus"), ("multi30k", "On Multi30k")],
)
def test_documents_quote_the_verdicts_of_the_summary(name, title):
    text = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    (section,) = (x for x in text.split("\n## ") if x.startswith(title + "\n"))
    quoted = [x for x in section.splitlines() if x.startswith("| ")][1:]
    claims = summary(DOCS / "reproduction" / name)["claims"]
    assert quoted == [
        f"| {claim['claim']} | {claim['verdict']} | {claim['value']} |"
        for claim in claims
        if claim["verdict"] != "not tried"
    ]


def test_recipes_quote_the_gain_of_the_summary():
    tables = summary(DOCS / "reproduction" / "multi30k-small")["tables"]
    lines = [line for table in tables for line in table["lines"]]
    (change,) = (x["change"] for x in lines if x["row"] == "taught")
    text = (DOCS / "recipes.md").read_text(encoding="utf-8")
    assert (
        "The gain over `small` is {value:.1f}, between {low:.1f} and "
        "{high:.1f} with 95 % confidence".format(**change)
    ) in " ".join(text.split())
