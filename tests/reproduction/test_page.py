import html
import json
import re

import pytest

from reproduction.page import write_pages
from tests.reproduction.made_up_records import (
    TABLE_1,
    builtin_plan,
    own_plan,
    record,
    write_rows,
)


@pytest.fixture
def folder(tmp_path):
    """Write the rows of table 1, each better than the last, with two seeds."""
    rows = tmp_path / "rows"
    for place, name in enumerate(TABLE_1):
        share = 0.3 + 0.08 * place
        aer = 0.4 - 0.02 * place if place > 2 else None
        for seed in (1, 2):
            made = record(name, seed, share, 3 - 0.3 * place, aer)
            made.scores["bleu"]["score"] = 100 * share + seed
            write_rows(rows, made)
    return tmp_path


def written(folder, plan=None):
    """Write a page; return its text, its tables and its claims by text."""
    plan = plan or builtin_plan()
    page, path = write_pages(plan, folder / "rows", folder)
    summary = json.loads(path.read_text(encoding="utf-8"))
    claims = {claim["claim"]: claim for claim in summary["claims"]}
    return page.read_text(encoding="utf-8"), summary["tables"], claims


def plain(text):
    text = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.slow
def test_figures_are_shown_with_the_papers(folder):
    text, tables, _ = written(folder)
    (table,) = (t for t in tables if t["title"].startswith("Table 1"))
    reverse = next(x for x in table["lines"] if x["row"] == "reverse")
    # Mean and deviation of 39 and 40.
    assert reverse["bleu"]["mean"] == pytest.approx(39.5)
    assert reverse["bleu"]["deviation"] == pytest.approx(0.5**0.5)
    assert reverse["paper"] == {"bleu": 12.6, "perplexity": 9.9, "aer": None}
    assert reverse["paper_change"] == 1.3
    unk = next(x for x in table["lines"] if x["row"] == "local-p-unk")
    assert unk["paper_change"] == 1.9
    assert table["lines"][0]["paper_change"] is None
    assert reverse["trials"] == 2 and reverse["change"]["over"] == "base"
    source = "Luong, Pham and Manning (2015), table 1, newstest2014"
    assert table["source"] == source and source in plain(text)
    ensemble = table["lines"][-1]
    assert ensemble["bleu"] is None and ensemble["trials"] == 0
    assert "39.5 ± 0.7" in plain(text) and "12.6" in plain(text)


@pytest.mark.slow
def test_rows_show_the_command_that_makes_them(folder):
    text, _, _ = written(folder)
    command = "--config plan=builtin rows=reverse seeds=2 "
    assert command in plain(text) and "Scored by version" in plain(text)
    made = record("ensemble", seeds=(1, 2, 3, 4))
    write_rows(folder / "rows", record("local-p-unk"), made)
    text, _, _ = written(folder)
    assert "rows=local-p-unk seeds=1 " in plain(text)
    # The plan sets the number of models of an ensemble.
    assert "rows=ensemble Settings" in plain(text)


@pytest.mark.slow
def test_claims_get_verdicts(folder):
    text, _, claims = written(folder)
    assert claims["Reversing the source helps."]["verdict"] == "holds"
    assert claims["Reversing the source helps."]["section"] == "4.2"
    assert "chance would decide 5 % of them, 0.9 of 18." in plain(text)
    ensemble = claims["An ensemble is better than a single model."]
    assert ensemble["verdict"] == "not tried"
    assert ensemble["missing"] == ["ensemble", "local-p-unk"]
    # With a better baseline the verdict changes.
    better = record("base", 1, 0.9), record("base", 2, 0.9)
    write_rows(folder / "rows", *better)
    _, _, claims = written(folder)
    assert claims["Reversing the source helps."]["verdict"] == "does not hold"


@pytest.mark.slow
def test_page_loads_nothing_and_escapes_texts(folder):
    text, _, _ = written(folder)
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "default-src 'none'" in text
    assert "says <b>" not in text and "says &lt;b&gt;" in text
    shown = plain(text)
    # As in figures 5 and 6, table 5 and figure 7 of the paper.
    assert "Validation perplexity" in shown
    assert "BLEU of 5 groups of equally many sentences" in shown
    assert "Alignment of feed" in shown and "Alignment of base" not in shown
    assert builtin_plan().file.samples[0]["reference"] in shown
    assert "No model was trained on the real WMT14" in shown


@pytest.mark.slow
def test_rows_of_another_test_text_or_settings_are_left_out(folder):
    other = record("base", 3, text={"test": "another"})
    changed = record("reverse", 2)
    changed.settings["model.units"] = 7
    write_rows(folder / "rows", other, changed)
    text, tables, _ = written(folder)
    assert "base, seeds (3,): another test text" in plain(text)
    assert "reverse-2.json: other model.units" in plain(text)
    lines = tables[0]["lines"]
    assert [line["trials"] for line in lines[:2]] == [2, 1]


@pytest.mark.slow
def test_rows_of_another_training_text_are_left_out(folder):
    for corpus, seed in (("usual", 1), ("usual", 2), ("other", 3)):
        text = record("reverse").text | {"corpus": corpus}
        write_rows(folder / "rows", record("reverse", seed, text=text))
    text, tables, _ = written(folder)
    message = "Left out: reverse, seeds (3,): another training text."
    assert message in plain(text)
    assert tables[0]["lines"][1]["trials"] == 2
    # Older records have no training text, and are kept.
    write_rows(folder / "rows", record("reverse", 4), record("reverse", 5))
    _, tables, _ = written(folder)
    assert tables[0]["lines"][1]["trials"] == 4


def test_lower_cased_and_cased_references_are_not_compared(tmp_path):
    plan = own_plan(tmp_path, "{data.lowercase: true}")
    for name in ("small", "wide"):
        trials = [record(name, seed, plan=plan) for seed in (1, 2)]
        write_rows(tmp_path / "rows", *trials)
    text, (table,), _ = written(tmp_path, plan)
    assert [line["trials"] for line in table["lines"]] == [2, 2]
    assert table["lines"][1]["change"] is None
    assert "Left out" not in plain(text)


def test_claims_on_rows_with_different_references_are_undecided(folder):
    for seed in (1, 2):
        made = record("reverse", seed, 0.9)
        made.sentences["reference_length"][0] += 1
        write_rows(folder / "rows", made)
    text, _, claims = written(folder)
    reversing = claims["Reversing the source helps."]
    assert reversing["verdict"] == "not decided" and reversing["value"] is None
    assert "rows of other references" in plain(text)


@pytest.mark.slow
def test_rows_of_the_other_direction_are_shown_but_not_compared(folder):
    for name in ("turned-base", "turned-location", "turned-feed"):
        write_rows(folder / "rows", record(name, text={"test": "german"}))
    text, tables, _ = written(folder)
    assert "Left out" not in plain(text)
    (table,) = (t for t in tables if t["section"] == "4.3")
    first, second, *_ = table["lines"]
    assert first["trials"] == 1 and first["change"] is None
    assert second["change"]["over"] == "turned-base"


def test_pages_of_user_defined_plans_do_not_mention_the_paper(tmp_path):
    others = [f"w{i}" for i in range(7)]
    entries = "".join(f"\n  {name}: {{after: small}}" for name in others)
    plan = own_plan(tmp_path, "{model.units: 640}" + entries)
    for name in ("small", "wide", *others):
        write_rows(tmp_path / "rows", record(name, plan=plan))
    text, (table, _), _ = written(tmp_path, plan)
    assert "paper" not in plain(text) and "#claims" not in plain(text)
    assert "<h1>My text</h1>" in text and 'href="#claims"' not in text
    assert table["lines"][1]["change"]["over"] == "small"
    # Both rows are drawn in the figures, which have eight curves.
    assert text.count("wide") >= 4 and "BLEU of 5 groups" in plain(text)
    assert "Validation BLEU, 8 of 9 rows" in plain(text)


def test_no_rows_give_no_page(tmp_path):
    assert write_pages(builtin_plan(), tmp_path / "rows", tmp_path) == []
    assert not (tmp_path / "index.html").exists()


@pytest.mark.slow
def test_rows_of_no_table_are_listed_as_other_rows(tmp_path):
    rows = tmp_path / "rows"
    write_rows(rows, record("local-p", share=0.4), record("gru", share=0.3))
    text, tables, _ = written(tmp_path)
    (table,) = tables
    assert [line["name"] for line in table["lines"]] == ["local-p", "gru"]
    assert [line["bleu"]["mean"] for line in table["lines"]] == [40, 30]
    assert "Other rows" not in plain(text)
    write_rows(rows, *[record(name) for name in TABLE_1])
    text, tables, _ = written(tmp_path)
    assert tables[-1]["title"] == "Other rows"
    assert [x["row"] for x in tables[-1]["lines"]] == ["gru"]


@pytest.mark.slow
def test_records_that_are_no_trial_of_the_plan_are_left_out(folder):
    rows = folder / "rows"
    # An ensemble with other models than in the plan.
    write_rows(rows, record("ensemble", seeds=(1, 2)))
    (rows / "base-1 (1).json").write_bytes((rows / "base-1.json").read_bytes())
    # A file that another process is writing.
    (rows / ".partial-elsewhere-1-base-3.json").write_text("{")
    text, tables, _ = written(folder)
    for name in ("ensemble-1to2", "base-1 (1)"):
        assert f"{name}.json: no trial of this plan" in plain(text)
    lines = tables[0]["lines"]
    assert lines[0]["trials"] == 2 and lines[-1]["trials"] == 0


@pytest.mark.slow
def test_translations_are_shown_under_their_sentences(folder):
    made = record("base")
    made.samples[1]["text"] = "the second"
    # A record with fewer samples than the plan.
    short = record("reverse")
    del short.samples[1:]
    write_rows(folder / "rows", made, short)
    text, _, _ = written(folder)
    one, two, three = re.findall(r"<article.*?</article>", text, re.S)[:3]
    assert "the second" not in one and "the second" in two
    assert "reverse says" in one and "reverse says" not in two + three


def test_other_target_languages_may_have_another_test_text(tmp_path):
    plan = own_plan(tmp_path, "{data.target_language: fr}")
    wide = record("wide", plan=plan, text={"test": "french"})
    write_rows(tmp_path / "rows", record("small", plan=plan), wide)
    text, _, _ = written(tmp_path, plan)
    assert "Left out" not in plain(text)
