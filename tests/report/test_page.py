import dataclasses
import html.parser
import json
import re
from pathlib import Path

import numpy as np
import pytest

from luong_keras.cli.main import main
from luong_keras.evaluation.translation_scores import corpus_bleu, sentence_chrf
from luong_keras.report import page as page_module
from luong_keras.report.contents import (
    add_alignments,
    examples,
    pieces,
    read_run,
    setting_rows,
)
from luong_keras.report.page import write_page
from tests.report.made_up_run import BAD, GOOD, PAIRS, made_up_run
from tests.serving.tiny_translator import tiny_translator, write_run


class Elements(html.parser.HTMLParser):
    """Parser that collects the text and the elements of a page."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def of(self, *tags):
        return [attributes for tag, attributes in self.found if tag in tags]


def html_of(runs, count=5):
    """Write the page of runs without alignments; return its content."""
    path = runs[0].parent / "page.html"
    write_page(runs, path, count, alignments=False, samples=50)
    return path.read_text(encoding="utf-8")


def text_of(runs):
    return Elements(html_of(runs)).text


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one") / "mine"
    made_up_run(folder, BAD, **{"model.units": 48})
    return html_of([folder], 2)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    made_up_run(folder / "base", BAD)
    made_up_run(folder / "better", GOOD, epochs=2, seed=9)
    return html_of([folder / "base", folder / "better"])


@pytest.fixture
def two_folders(tmp_path):
    return [tmp_path / "a", tmp_path / "b"]


@pytest.mark.parametrize("page", ["one_run", "two_runs"])
def test_pages_load_no_other_resources(request, page):
    text = request.getfixturevalue(page)
    elements = Elements(text)
    for _, attributes in elements.found:
        loading = {"src", "srcset", "data", "action", "poster"}
        assert not loading & attributes.keys()
        for name in ("href", "xlink:href"):
            assert attributes.get(name, "#")[0] == "#"
    assert not elements.of("link", "iframe", "img", "object", "base")
    assert not re.search(r"@import|url\((?!#)", text)
    (policy,) = [a for a in elements.of("meta") if "http-equiv" in a]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert policy["content"].startswith("default-src 'none'")


def test_translations_are_escaped_in_html(one_run):
    assert "<script>alert" not in one_run and "<img" not in one_run
    assert len(Elements(one_run).of("script")) == 1
    assert "<b>bold</b>" in Elements(one_run).text


def test_scores_show_their_signatures(one_run):
    text = Elements(one_run).text
    bleu = corpus_bleu(BAD, GOOD)
    assert f"{bleu.score:.2f}" in text and bleu.signature in text
    for part in ("chrF2", "nc:6", "TER", "tok:tercom", "4.25", "12.5%"):
        assert part in text


def test_charts_have_titles_axes_and_values(one_run):
    drawings = re.findall(r"<svg.*?</svg>", one_run, re.S)
    assert len(drawings) == 6
    titles = set()
    for svg in drawings:
        attributes = Elements(svg).of("svg")[0]
        assert attributes["role"] == "img" and attributes["aria-label"]
        titles.add(attributes["aria-label"])
        text = Elements(svg).text
        assert attributes["aria-label"] in text
        assert "epoch" in text or "source words" in text
        # Charts take the colours and the width of the page.
        assert "var(--ink)" in svg and not re.search(r"#0102", svg)
        assert "width" not in attributes
    assert "Perplexity of a target token" in titles
    # two points, because the first epoch has no BLEU
    assert one_run.count("<title>BLEU, epoch") == 2
    assert "BLEU, epoch 3: 30" in one_run
    ids = [a["id"] for _, a in Elements(one_run).found if "id" in a]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_the_metric_that_chose_the_epoch_is_shown_first(tmp_path):
    settings = {"data.source_language": None, "data.target_language": None}
    run = made_up_run(tmp_path / "mine", GOOD, **settings)
    results = json.loads(run.results.read_text())
    results |= {"bleu": {"score": 0.0}, "exact_match": {"score": 98.0}}
    results |= {"mine": {"score": 0.012345}}
    run.results.write_text(json.dumps(results))
    text = " ".join(text_of([run.path]).split())
    assert re.search(r"exact match\W*98.00.*BLEU\W*\d", text)
    assert re.search(r"mine\W*0.01235", text)
    # The languages are unknown.
    assert "und →" not in text and "mine 6 test pairs" in text


def test_pages_show_time_machine_and_settings(one_run):
    text = Elements(one_run).text
    assert "3 of 5" in text and "1h02m, in 2 calls" in text
    assert "A processor, 7 cores" in text
    assert re.search(r"model\.units\s*48", text)


def test_texts_have_a_language_and_an_automatic_direction(one_run):
    texts = [a for a in Elements(one_run).of("dd") if "dir" in a]
    assert {a.get("lang") for a in texts} == {"en", "de"}
    assert {a["dir"] for a in texts} == {"auto"}


def test_two_runs_are_compared_side_by_side(two_runs):
    text = Elements(two_runs).text
    assert "Is the difference more than chance?" in text
    assert "bs:50" in text and "Better in better" in text
    assert "base, training" in text and "better, validation" in text
    differing = text[text.index("Settings in which the runs differ") :]
    assert re.search(r"training\.seed\s*\d+\s*9", differing)


@pytest.mark.slow
def test_names_of_runs_are_not_drawn_as_formulas(tmp_path):
    names = ["a$\\bad{$", "_cost$5_vs$6"]
    folders = [tmp_path / name for name in names]
    for folder in folders:
        made_up_run(folder, GOOD)
    html = re.sub(r"<title>.*?</title>", "", html_of(folders))
    drawings = re.findall(r"<svg.*?</svg>", html, re.S)
    legends = [svg for svg in drawings if "legend_1" in svg]
    assert legends
    for name in names:
        assert all(name in Elements(svg).text for svg in legends)


@pytest.mark.slow
def test_lowercased_runs_are_compared_without_case(two_folders):
    for run, lines in zip(two_folders, (GOOD, BAD), strict=True):
        made_up_run(run, map(str.lower, lines), **{"data.lowercase": True})
    _, compared = text_of(two_folders).split("Is the difference more than")
    for name in ("BLEU", "chrF2"):
        found = re.search(rf"{name}\s*([\d.]+) ± .*?(case:\w+)", compared)
        assert found.groups() == ("100.00", "case:lc")


def test_pretokenised_runs_are_compared_by_their_tokens(two_folders):
    for run, lines in zip(two_folders, (GOOD, BAD), strict=True):
        made_up_run(run, lines, **{"data.pretokenized": True})
    text = text_of(two_folders)
    assert "tok:13a" not in text
    table, compared = text.split("Is the difference more than chance?")
    assert "tok:none" in table and "tok:none" in compared


def test_words_of_all_runs_are_counted_alike(two_folders):
    """Sources without spaces are one word each of a pretokenised run."""
    pairs = [("我" * count, "a b c d e") for count in (5, 30)]
    for run, pretokenized in zip(two_folders, (False, True), strict=True):
        settings = {"data.pretokenized": pretokenized}
        settings["data.tokenizer"] = "words"
        made_up_run(run, ["a b c d", "a b d e"], pairs, **settings)
    assert "b, 21–30" in text_of(two_folders)
    assert "b, 21–30" not in text_of(two_folders[::-1])


def test_the_last_scores_of_the_test_set_are_read(tmp_path):
    run = made_up_run(tmp_path, GOOD)
    evaluation = {"weights": "last", "decoding": {}, "perplexity": 5.5}
    lines = [
        {"set": "test", "perplexity": 9.5},
        json.loads(run.results.read_text()),
        {"set": "dev", "perplexity": 7.75},
        # Later evaluations of the finished run.
        *({"set": name, **evaluation} for name in ("test", "wmt15")),
    ]
    run.results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_run(tmp_path).results["perplexity"] == 4.25


def test_incomplete_last_lines_are_left_out(tmp_path):
    run = made_up_run(tmp_path, GOOD)
    for path in (run.results, run.sessions, run.log):
        with path.open("a") as file:
            file.write('{"set": "te')
    found = read_run(tmp_path)
    assert found.results["aer"] == 0.125
    assert len(found.sessions) == 2 and len(found.epochs) == 3
    # The test pairs are written at once: a cut line is an error.
    run.test.write_bytes(run.test.read_bytes()[:-3])
    with pytest.raises(ValueError, match=r"test\.jsonl, line 6"):
        read_run(tmp_path)


def test_two_runs_need_the_same_test_pairs(two_folders):
    made_up_run(two_folders[0], GOOD)
    made_up_run(two_folders[1], GOOD[::-1], pairs=PAIRS[::-1])
    with pytest.raises(ValueError, match="same test pairs. Expected: 6 pairs"):
        html_of(two_folders)


def test_unfinished_runs_have_a_page(tmp_path):
    run = made_up_run(tmp_path / "a", epochs=0, sessions=False)
    text = text_of([run.path])
    for part in ("not been translated yet", "No epoch", "not recorded"):
        assert part in text


def test_examples_have_the_best_and_worst_scores(tmp_path):
    run = read_run(made_up_run(tmp_path / "a", BAD).path)
    best, worst = examples([run], 2)
    assert best["examples"][0]["reference"] == "ein Haus"
    chosen = [*best["examples"], *worst["examples"]]
    scores = [example["translations"][0]["chrf"] for example in chosen]
    assert scores[0] == pytest.approx(100)
    assert scores[2] == min(sentence_chrf(BAD, GOOD)) < scores[3] < scores[1]
    # With few pairs, each is shown once.
    best, worst = examples([run], 10)
    assert len(best["examples"]) == 6 and not worst["examples"]


def test_examples_of_two_runs_differ_most_in_score(tmp_path):
    texts = {"a": [*BAD[:5], GOOD[5]], "b": [*GOOD[:5], BAD[5]]}
    runs = [made_up_run(tmp_path / name, texts[name]) for name in texts]
    second, first = examples([read_run(run.path) for run in runs], 3)
    assert second["title"] == "Better in b" and first["title"] == "Better in a"
    assert [example["number"] for example in first["examples"]] == [6]
    pairs = [example["translations"] for example in second["examples"]]
    gains = [other["chrf"] - first["chrf"] for first, other in pairs]
    assert gains == sorted(gains, reverse=True) and min(gains) > 0


@pytest.mark.parametrize(
    "translation, reference, differs",
    [
        ("ein Hund", "ein Hund", []),
        ("ein alter Hund", "ein Hund", ["alter "]),
        ("这只旧狗在房子里面吗", "这只狗在房子里面吗", ["旧"]),
        ("猫家", "猫は家", []),
        ("قط كبير", "قط", ["كبير "]),
        ("", "ein Hund", []),
        ("ein Hund 日", "ein Hund", [" 日"]),
        ("དེ་ནི་", "དེ་", ["ནི་"]),
        pytest.param("a" + " b" * 300, "b " * 300, ["a "], id="frequent words"),
    ],
)
def test_words_not_in_the_reference_are_marked(translation, reference, differs):
    found = pieces(translation, reference)
    assert "".join(text for text, _ in found).strip() == translation
    assert [text for text, differ in found if differ] == differs


def test_case_is_ignored_in_examples_of_lower_cased_runs(tmp_path):
    lower, settings = map(str.lower, GOOD), {"data.lowercase": True}
    run = made_up_run(tmp_path / "a", lower, **settings)
    best, worst = examples([read_run(run.path)], 50)
    for example in best["examples"] + worst["examples"]:
        (found,) = example["translations"]
        assert found["chrf"] == 100
        assert not any(differs for _, differs in found["pieces"])


def test_alignments_are_tables(tmp_path, monkeypatch):
    made_up_run(tmp_path / "a", GOOD)

    def add_alignments(groups, runs):
        words = {"source": ["قطة", "dog"], "target": ["Hund"]}
        translation = groups[0]["examples"][0]["translations"][0]
        translation["alignment"] = words | {"percent": [[7, 93]]}

    monkeypatch.setattr(page_module, "add_alignments", add_alignments)
    path = write_page([tmp_path / "a"], tmp_path / "x.html", 1)
    elements = Elements(path.read_text())
    styles = [td["style"] for td in elements.of("td") if "style" in td]
    assert styles == ["--w:7%", "--w:93%"]
    headings = [a for a in elements.of("th") if a.get("dir") == "auto"]
    assert [a["lang"] for a in headings] == ["en", "en", "de"]
    assert "قطة" in elements.text


@pytest.mark.usefixtures("eager")
def test_alignments_are_of_each_run_and_its_weights(tmp_path):
    options = {"beam_size": 1}, {"beam_size": 1, "unknown_logit": 9.0}
    translators = [tiny_translator(**each) for each in options]
    for name, translator in zip("ab", translators, strict=True):
        run = made_up_run(tmp_path / name, GOOD)
        run.config.unlink()
        write_run(run.path, translator)
        run.best_weights.rename(run.last_weights)
        run.results.write_text('{"set": "test", "weights": "last"}\n')
        sources = [source for source, _ in PAIRS]
        shown = [f"{text}\n" for text in translator.translate(sources)]
        run.translations.write_text("".join(shown))
    runs = [read_run(tmp_path / name) for name in "ab"]
    groups = examples(runs, 1)
    add_alignments(groups, runs)
    (example,) = groups[0]["examples"]
    found = [shown["alignment"] for shown in example["translations"]]
    for alignment, translator in zip(found, translators, strict=True):
        ((best, *_),) = translator.nbest([example["source"]])
        assert alignment["target"] == best.tokens
        percent = 100 * best.alignments
        np.testing.assert_allclose(alignment["percent"], percent, atol=0.51)
    assert found[0]["target"] != found[1]["target"]
    add_alignments(groups, runs, longest=0)
    assert "more than 0 tokens" in example["translations"][0]["unaligned"]
    # A run that continued no longer translates as it did.
    others = [dataclasses.replace(run, translations=GOOD) for run in runs]
    add_alignments(groups, others)
    assert "otherwise" in example["translations"][0]["unaligned"]


@pytest.mark.parametrize(
    "folders, options",
    [("ab", {}), ([], {}), (["a"] * 3, {}), (["a"], {"count": 0})],
)
def test_wrong_arguments_are_refused_before_any_work(folders, options):
    with pytest.raises(ValueError, match="list of the folder|`count` must be"):
        write_page(folders, "page.html", **options)


def test_settings_mark_changes_and_differences(tmp_path):
    runs = made_up_run(tmp_path / "a"), made_up_run(tmp_path / "b", seed=7)
    rows = setting_rows([read_run(run.path) for run in runs])
    rows = {row["name"]: row for row in rows}
    seed, dataset = rows["training.seed"], rows["data.dataset"]
    assert seed["values"] == ["1", "7"] and seed["differs"]
    assert dataset["values"] == ["phrasebook"] * 2
    assert dataset["changed"] and not dataset["differs"]


def test_each_line_feed_ends_one_translation(tmp_path):
    translations = ["die\rKatze", *GOOD[1:]]
    made_up_run(tmp_path / "a", translations)
    assert read_run(tmp_path / "a").translations == translations
    made_up_run(tmp_path / "a", GOOD[1:])
    with pytest.raises(ValueError, match="Received: 5 and 6"):
        read_run(tmp_path / "a")


def test_the_command_writes_the_page(tmp_path, capsys):
    run = made_up_run(tmp_path / "a", GOOD)
    assert main(["report", str(run.path), "--no-alignments"]) == 0
    assert capsys.readouterr().out.strip() == str(run.report)
    assert run.report.stat().st_size > 10_000


@pytest.mark.parametrize("flags, output", [([], "b/report.html"), (["x"], "x")])
def test_the_command_passes_its_flags(tmp_path, monkeypatch, flags, output):
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        made_up_run(tmp_path / name)
    calls = []
    monkeypatch.setattr(page_module, "write_page", lambda *g: calls.append(g))
    flags = [f"--output={flag}" for flag in flags]
    main(["report", "a", "b", *flags, "--examples=2", "--samples=7"])
    assert calls == [((Path("a"), Path("b")), Path(output), 2, True, 7)]


@pytest.mark.parametrize(
    "argv, part",
    [
        ("nowhere", "nowhere, which does not exist"),
        ("a b c", "Received: 3"),
        (
            "a --examples 0",
            "--examples must be at least 1. Received: --examples=0",
        ),
        ("a --samples 0", "--samples must be at least 1"),
    ],
)
def test_errors_of_the_command(tmp_path, monkeypatch, capsys, argv, part):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *argv.split()]) == 2
    error = capsys.readouterr().err
    assert part in error and error.count("\n") == 1
