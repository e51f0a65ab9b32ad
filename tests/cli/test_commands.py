"""Commands that read a run, on an untrained run."""

import collections
import gzip
import io
import itertools
import json
import math
import os

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from luong_keras.cli import translate
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.datasets import Datasets
from luong_keras.evaluation.translation_scores import paired_test
from luong_keras.recipe import aligned_text
from luong_keras.recipe.loading import load_run
from luong_keras.serving.limits import ServingLimits
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator
from tests.cli.conftest import PAIRS, SOURCES, TARGETS, copy_run, write_lines
from tests.serving.tiny_translator import TARGET_WORDS

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture
def text(tmp_path):
    return write_lines(tmp_path / "text", SOURCES)


@pytest.fixture
def searches(monkeypatch):
    """Record the search settings of the translators that are made."""
    found = []
    before = Translator.from_run.__func__

    def from_run(cls, run_folder, weights=None, decoding=None, **options):
        found.append(decoding)
        return before(cls, run_folder, weights, decoding, **options)

    monkeypatch.setattr(Translator, "from_run", classmethod(from_run))
    return found


@pytest.mark.parametrize(
    "command, arguments",
    [
        ("translate", ["--check-export"]),
        ("evaluate", []),
        ("score", ["pairs.tsv"]),
        ("align", ["pairs.tsv"]),
        ("lexicon", []),
        ("export", ["--output", "1"]),
    ],
)
def test_weights_are_chosen_by_name(call, run, monkeypatch, command, arguments):
    monkeypatch.chdir(run.path.parent)
    (run.path.parent / "pairs.tsv").write_text("a\tb\n")
    given = command, *arguments
    (*_, error) = call(*given, "--weights", "bset", status=2)
    assert "Received: bset. Did you mean best?" in error
    assert "has best." in error
    # A variable that is not set.
    (*_, error) = call(*given, "--weights", "", status=2)
    assert "weights named best, last" in error
    names = []

    def from_run(run_folder, weights=None, *others, **options):
        names.append(weights)
        raise ValueError("noted")

    monkeypatch.setattr(Translator, "from_run", from_run)
    call(*given, "--weights", "epoch-7", status=2)
    call(*given, status=2)
    assert names == ["epoch-7", None]


@pytest.mark.parametrize(
    "flags", [["--run-dir={}", "--run-dir", "{}"], ["--run-dir", "{}", "{}"]]
)
def test_all_runs_are_exported(call, run, monkeypatch, flags):
    folders = []

    def from_run(run_folder, *others, **options):
        folders.append(run_folder)
        raise ValueError("noted")

    monkeypatch.setattr(Translator, "from_run", from_run)
    argv = [flag.format(run.path) for flag in flags]
    call("export", *argv, "--output", "1", status=2, run_dir=None)
    assert folders == [[run.path, run.path]]


@pytest.mark.slow
def test_each_name_loads_its_weights(run, translator, tmp_path):
    copy = copy_run(run, tmp_path / "copy")
    model = translator.translation_model
    bias = np.array(model.projection.bias)
    copy.checkpoints.mkdir()
    paths = {
        "last": copy.last_weights,
        "epoch-7": copy.checkpoints / "epoch-007.weights.h5",
    }
    for number, path in enumerate(paths.values(), start=1):
        model.projection.bias.assign(bias + number)
        model.model.save_weights(path)
    model.projection.bias.assign(bias)
    other = copy_run(copy, tmp_path / "2", training={"final_weights": "last"})
    for folder, name, number in (
        (copy, None, 0),
        (copy, "last", 1),
        (copy, "epoch-7", 2),
        (other, None, 1),
    ):
        (loaded,), *_ = load_run(folder.path, name)
        np.testing.assert_array_equal(loaded.projection.bias, bias + number)


def pipe_of(lines):
    """Write lines into a pipe; return the end that is read."""
    reading, writing = os.pipe()
    with open(writing, "w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return open(reading)


@pytest.mark.parametrize("name", ["-", "/dev/fd/{}"])
def test_pipes_are_translated(call, translator, name, monkeypatch):
    """As a shell passes the output of a command: `<(zcat text.gz)`."""
    with pipe_of(SOURCES) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        translations = call("translate", name.format(pipe.fileno()))
    assert translations == translator.translate(SOURCES)


@pytest.mark.slow
def test_files_and_standard_input_are_translated(
    call, translator, tmp_path, monkeypatch
):
    def give(content):
        stream = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr("sys.stdin", stream)

    expected = translator.translate(SOURCES)
    one = write_lines(tmp_path / "one", SOURCES[:1])
    rest = write_lines(tmp_path / "rest", SOURCES[1:])
    assert call("translate", one, rest) == expected
    text = "".join(source + "\r\n" for source in SOURCES)
    for given in (text, text.removesuffix("\r\n"), "\ufeff" + text):
        give(given.encode())
        assert call("translate") == expected
    for wrong, message in [
        (b"a\nb\xffc\n", "Line 2 of standard input is not UTF-8"),
        ("a".encode("utf-16"), "standard input is written in UTF-16"),
        ("a\nb\n".encode("utf-16-le"), "standard input is written in UTF-16"),
        (gzip.compress(b"a\nb\n"), "standard input is compressed. Expected"),
        (b"a\rb\rc\r", "The lines of standard input end only with a carriage"),
    ]:
        give(wrong)
        assert message in call("translate", status=2)[0]
        # Good lines before the wrong one are translated.
        assert call.printed.out.count("\n") == wrong.startswith(b"a\nb\xff")


def test_standard_input_is_translated_as_it_arrives(
    call, translator, monkeypatch
):
    """Lines that have arrived are translated before more are read."""
    expected = translator.translate(SOURCES)
    reading, writing = os.pipe()
    before, counts = Translator.translate, []

    def counting(self, lines, **options):
        counts.append(len(lines))
        if len(counts) == 1:
            os.write(writing, "\n".join(SOURCES[1:]).encode())
            os.close(writing)
        return before(self, lines, **options)

    monkeypatch.setattr(Translator, "translate", counting)
    os.write(writing, f"{SOURCES[0]}\n".encode())
    monkeypatch.setattr("sys.stdin", os.fdopen(reading))
    assert call("translate") == expected
    assert counts == [1, 1, 1]


@pytest.mark.slow
def test_long_texts_are_printed_in_parts(
    call, translator, tmp_path, monkeypatch
):
    """The parts before an error are printed."""
    shared = []
    monkeypatch.setattr(translate, "share_cores", lambda: shared.append(1))
    monkeypatch.setattr(translate, "BATCHES", 1)
    size = translator.decoding.batch_size
    sources, expected = SOURCES * size, translator.translate(SOURCES) * size
    text = write_lines(tmp_path / "text", sources)
    assert call("translate", text) == expected
    assert shared == [1]
    # Each part has the phrases of its lines.
    words = [line.split()[-1] for line in reversed(expected)]
    phrases = write_lines(tmp_path / "phrases", words)
    found = call("translate", text, "--required", phrases)
    assert found == translator.translate(sources, required=words) != expected
    before, counts = Translator.translate, []

    def failing(self, lines, **options):
        counts.append(len(lines))
        if len(counts) == 3:
            raise ValueError("no more")
        return before(self, lines, **options)

    monkeypatch.setattr(Translator, "translate", failing)
    (*_, error) = call("translate", text, status=2)
    assert call.printed.out.splitlines() == expected[: 2 * size]
    assert "no more" in error
    assert counts == [size] * 3
    counts.clear()
    call("translate", text, "--max-source-length", 1, status=2)
    assert f"{2 * size} of the lines" in call.printed.err


@pytest.mark.slow
def test_lines_that_were_cut_are_one_warning(call, tmp_path, monkeypatch):
    monkeypatch.setattr(translate, "BATCHES", 1)
    lines = (["the house ."] * 20 + ["the house . the house ."]) * 4
    given = "translate", write_lines(tmp_path / "text", lines)
    assert len(call(*given, "--max-source-length", 4)) == len(lines)
    warning = call.printed.err
    assert warning.count("warning") == 1
    assert "at most 4 tokens" in warning
    assert "4 of the lines (number 21, 42, 63, 84)" in warning
    call(*given)
    assert "warning" not in call.printed.err


@pytest.mark.slow
def test_several_runs_are_an_ensemble(call, run, translator, text, tmp_path):
    other = copy_run(run, tmp_path / "other")
    model = translator.translation_model
    bias = np.array(model.projection.bias)
    model.projection.bias.assign(bias[::-1])
    model.model.save_weights(other.best_weights)
    model.projection.bias.assign(bias)
    together = Translator.from_run([run.path, other.path]).nbest(SOURCES)
    lines = call("translate", "--run-dir", other.path, text, "--n-best", 2)
    assert [*map(json.loads, lines)] == [
        [
            {"text": one.text, "score": pytest.approx(one.score, rel=1e-5)}
            for one in nbest[:2]
        ]
        for nbest in together
    ]
    assert lines != call("translate", text, "--n-best", 2)
    tokenizer = WordTokenizer.from_words(TARGET_WORDS[::-1])
    tokenizer.save(other.path, "target_vocabulary")
    with pytest.raises(ValueError, match="the same vocabularies"):
        load_run([run.path, other.path])


def test_runs_of_opposite_directions_are_no_ensemble(run, tmp_path):
    copies = []
    for source, target in (("en", "de"), ("de", "en")):
        data = {"source_language": source, "target_language": target}
        folder = tmp_path / f"{source}-{target}"
        copies.append(copy_run(run, folder, data=data).path)
    with pytest.raises(ValueError, match="from en to de, .* opposite in .*de-"):
        load_run(copies)


def test_n_best_lists_with_links(call, translator, tmp_path, searches):
    text = write_lines(tmp_path / "text", SOURCES[:1])
    (line,) = call("translate", text, "--n-best", 3, "--alignments")
    found = json.loads(line)
    (expected,) = translator.nbest(SOURCES[:1])
    assert [one["text"] for one in found] == [one.text for one in expected[:3]]
    assert found[0]["links"] == [list(link) for link in expected[0].links]
    assert searches[-1] == translator.decoding
    # More than the stack holds.
    (line,) = call("translate", text, "--n-best", 6)
    assert len(json.loads(line)) == 6
    assert searches[-1] == translator.decoding.with_(n_best=6)
    call("translate", text, "--beam-size", 1)
    assert (searches[-1].beam_size, searches[-1].stack_size) == (1, None)


@pytest.mark.slow
def test_flags_set_the_search(call, translator, text, searches, tmp_path):
    (tmp_path / "words").write_text("a b 1\n")
    flags = {
        "dictionary": str(tmp_path / "words"),
        "alignment_step": "reads",
        "batch_size": 2,
        "stack_keeps": "first",
        "search": "sampling",
        "temperature": 0.5,
        "top_k": 3,
        "top_p": 0.75,
        "seed": 7,
        "length_penalty_form": "google",
        "coverage_penalty": 0.25,
        "no_repeat_ngram": 2,
    }
    names = ("--" + name.replace("_", "-") for name in flags)
    given = ["translate", text]
    given += itertools.chain(*zip(names, flags.values(), strict=True))
    lines = call(*given)
    assert searches[-1] == translator.decoding.with_(**flags)
    assert searches[-1].beam_size == 1
    assert lines == call(*given) != call(*given, "--seed", 8)


def entries(path):
    rows = map(str.split, path.read_text().splitlines())
    return {(source, target): float(share) for source, target, share in rows}


def test_lexicon_of_the_alignments_of_the_model(
    call, run, translator, text, searches, monkeypatch
):
    monkeypatch.setattr(aligned_text, "CHUNK", 2)
    pairs = [*PAIRS, PAIRS[0]]
    write_corpus(pairs, run.corpus)
    (line,) = call("lexicon")
    links = []
    for source, target in pairs:
        (scored,) = translator.score([source], [target])
        target = [word if word != "der" else "<unk>" for word in target.split()]
        rows = scored.alignments[:-1]
        best = [source.split()[row.argmax()] for row in rows]
        links.append([*zip(best, target, strict=True)])
    linked = [*itertools.chain(*links)]
    counts = collections.Counter(linked)
    of_source = collections.Counter(source for source, _ in linked)
    assert entries(run.shortlist) == {
        pair: pytest.approx(count / of_source[pair[0]], rel=1e-4)
        for pair, count in counts.items()
    }
    found = f"{len(counts)} pairs of {len(of_source)} source tokens"
    assert line == f"{found}: {run.shortlist}"
    found = call("translate", text, "--shortlist", run.shortlist)
    assert searches[-1].shortlist == str(run.shortlist)
    # All words are frequent here.
    assert found == translator.translate(SOURCES)
    call("lexicon", "--pairs", 2, "--output", run.path / "two")
    assert {*entries(run.path / "two")} == {*links[0], *links[2]}
    searches.clear()
    for output in (run.path, "-"):
        (error,) = call("lexicon", "--output", output, status=2)
        assert "Expected: the path of a file to write" in error
    (error,) = call("lexicon", "--min-count", 0, status=2)
    assert "--min-count must be at least 1" in error
    assert not searches
    (error,) = call("lexicon", "--min-count", 99, status=2)
    assert "linked at least 99 times" in error


def test_phrases_are_read_from_files(call, text, tmp_path):
    (tmp_path / "required").write_text("Haus\tdie\n\nKatze Hund\n")
    (tmp_path / "forbidden").write_text(".\nsieht\tHaus\n\n")
    phrases = ("--required", tmp_path / "required")
    phrases += ("--forbidden", tmp_path / "forbidden")
    found = call("translate", text, *phrases)
    assert "Haus" in found[0] and "die" in found[0] and "." not in found[0]
    assert "sieht" not in found[1] and "Haus" not in found[1]
    assert "Katze Hund" in found[2]
    (tmp_path / "required").write_text("Haus\n")
    error = " ".join(call("translate", text, *phrases, status=2))
    assert "a line for each of the 3 sentences" in error
    assert "1 line in" in error


@pytest.mark.slow
def test_scores_of_a_run_are_printed_and_recorded(call, run, searches):
    given = "evaluate", "--beam-size", 1, "--no-replace-unknown"
    found = call(*given, "--json")
    assert found["set"] == "test" and found["sentences"] == 3
    assert found["decoding"]["stack_size"] is None
    assert not searches[-1].replace_unknown
    assert {"bleu", "bleu_by_length", "perplexity"} <= set(found)
    assert json.loads(run.results.read_text().splitlines()[-1]) == found
    table = call(*given)
    assert table[0] == "pairs    test, 3 sentences"
    assert table[2] == "search   beam, beam size 1"
    (bleu,) = [line for line in table if line.startswith("bleu ")]
    score = found["bleu"]
    assert bleu.split() == ["bleu", f"{score['score']:.2f}", score["signature"]]
    assert any(line.startswith("perplexity") for line in table)


def test_evaluations_follow_the_settings_of_the_run(
    call, run, tmp_path, monkeypatch
):
    settings = {"training": {"metric": "exact_match"}}
    settings["data"] = {"lowercase": True, "target_language": "zh"}
    copy = copy_run(run, tmp_path / "copy", **settings)
    copy.best_weights.rename(copy.last_weights)
    monkeypatch.setattr(
        "luong_keras.recipe.preparation.evaluation_pairs",
        lambda *_: Datasets(list, "", [], PAIRS[1:2], ["0-0"]),
    )
    given = "evaluate", "--weights", "last", "--json", "--beam-size", 1
    given += "--baseline", write_lines(tmp_path / "text", ["a"])
    found = call(*given, run_dir=copy.path)
    assert {"aer", "exact_match"} <= {*found} and found["weights"] == "last"
    parts = found["compared"][0]["signature"].split("|")
    assert {"case:lc", "tok:zh"} <= {*parts}


@pytest.mark.slow
def test_pairs_of_a_file_are_scored(call, run, tmp_path):
    """The test pairs of the run, read from a file, have the same scores."""
    expected = call("evaluate", "--metric", "chrf", "--json")
    path = write_lines(tmp_path / "other.tsv", map("\t".join, PAIRS))
    found = call("evaluate", path, "--metric", "chrf", "ter", "--json")
    recorded = json.loads(run.results.read_text().splitlines()[-1])
    assert recorded["set"] == found.pop("set") == str(path)
    assert expected.pop("set") == "test" and found.pop("ter")["score"] > 0
    assert found == expected and "chrf" in found
    error = "\n".join(call("evaluate", path, "--part", "dev", status=2))
    assert "Received: --part dev and files. Leave" in error
    error = "\n".join(call("evaluate", "--metric", "loss", status=2))
    assert "Received: loss, which has none." in error


RIGHT = ["der Hund schläft heute", "die Katze sieht den Hund", "ja"]
WRONG = ["der Hund", "die Katze", "nein"]


@pytest.fixture
def two_files(tmp_path):
    """Write pairs and two files of translations: one right, one wrong."""
    pairs = [f"source {i}\t{r}" for i, r in enumerate(RIGHT)]
    write_lines(tmp_path / "pairs.tsv", pairs)
    write_lines(tmp_path / "right.txt", RIGHT)
    write_lines(tmp_path / "wrong.txt", WRONG)
    return tmp_path


@pytest.fixture
def evaluate(call, two_files):
    """Evaluate files, without a run."""

    def evaluate(*arguments, **settings):
        given = two_files / "pairs.tsv", *arguments
        return call("evaluate", *given, **settings, run_dir=None)

    return evaluate


def test_translations_of_a_file_are_scored_and_compared(evaluate, two_files):
    right, wrong = two_files / "right.txt", two_files / "wrong.txt"
    flags = "--translations", right, "--baseline", wrong
    found = evaluate(*flags, "--json")
    assert found["bleu"]["score"] == pytest.approx(100)
    expected = paired_test(WRONG, RIGHT, RIGHT)
    assert found["compared"] == [score._asdict() for score in expected]
    lines = evaluate(*flags)
    assert lines[1] == f"translations  {right}"
    (bleu,) = [line for line in lines if line.startswith("BLEU")]
    values = f"{expected[0].second:.2f} ± {expected[0].second_interval:.2f}"
    assert values in bleu and bleu.endswith(f"{expected[0].p_value:.3f}")
    (two_files / "pairs.tsv").write_text("a\tb\n \t \n")
    errors = "\n".join(evaluate(*flags, status=2))
    assert "Pair pairs.tsv:2 cannot be used: the source" in errors


def test_further_references_are_used(evaluate, two_files):
    """Each translation equals one of its references."""
    mixed = [WRONG[0], RIGHT[1], WRONG[2]]
    flags = "--translations", write_lines(two_files / "mixed.txt", mixed)
    further = "--references", two_files / "wrong.txt"
    metrics = "--metric", "exact_match", "--metric", "ter"
    found = evaluate(*flags, *further, *metrics, "--json")
    assert found["exact_match"] == {"score": 100.0}
    assert found["ter"]["score"] == 0
    assert found["bleu"]["signature"].startswith("nrefs:2|")
    bleu = sacrebleu.corpus_bleu(mixed, [RIGHT, WRONG])
    assert found["bleu"]["score"] == pytest.approx(bleu.score)
    # A blank line is no reference.
    write_lines(two_files / "mixed.txt", [RIGHT[0], "die", "nein"])
    write_lines(two_files / "wrong.txt", ["", " ", ""])
    one, two = (evaluate(*flags, *x, "--json") for x in ((), further))
    assert 0 < one["bleu"]["score"] == two["bleu"]["score"]


@pytest.mark.slow
def test_a_run_is_compared_with_translations(call, run, tmp_path):
    theirs = write_lines(tmp_path / "theirs.txt", TARGETS)
    run.results.touch()
    before = len(run.results.read_text().splitlines())
    bleu = call("evaluate", "--baseline", theirs, "--json")["compared"][0]
    assert bleu["first"] == pytest.approx(100) and bleu["second"] < 50
    # A run does not differ from itself.
    found = call("evaluate", "--baseline", run.path, "--json")
    assert {one["p_value"] for one in found["compared"]} == {1.0}
    assert len(run.results.read_text().splitlines()) == before + 2


def test_the_search_of_the_command_applies_to_both_runs(call, run, searches):
    flags = ["--beam-size", 1, "--no-replace-unknown"]
    call("evaluate", "--baseline", run.path, "--metric", "chrf", *flags)
    ours, theirs = searches
    assert ours.beam_size == 1 and not ours.replace_unknown
    assert theirs == ours


def test_baselines_are_checked_before_translating(call, searches, tmp_path):
    one = write_lines(tmp_path / "one.txt", ["a line"])
    for baseline, part in ((one, "1 line"), (tmp_path, "config.json")):
        errors = call("evaluate", "--baseline", baseline, status=2)
        assert part in "\n".join(errors)
    assert not searches


@pytest.mark.slow
def test_scores_of_a_run_that_is_read_only_are_printed(call, monkeypatch):
    def refuse(*_):
        raise PermissionError("results.jsonl belongs to another user")

    monkeypatch.setattr("luong_keras.recipe.evaluation.write_results", refuse)
    (*_, error) = call("evaluate", "--json", status=2)
    assert "another user" in error
    assert "bleu" in json.loads(call.printed.out)


@pytest.mark.parametrize(
    "flags, message",
    [
        ([], "Expected: --run-dir with the folder of a run"),
        (["right.txt", "--beam-size", "2"], "--beam-size"),
        (["pairs.tsv", "--references", "one.txt"], "1 line in one.txt."),
        (["none.txt"], "none.txt"),
        *(
            (flags, "only the sources of such a file")
            for flags in (["set.xml"], ["right.txt", "--references", "set.xml"])
        ),
    ],
)
def test_wrong_comparisons_are_refused(
    evaluate, two_files, monkeypatch, flags, message
):
    monkeypatch.chdir(two_files)
    write_lines(two_files / "one.txt", ["ja"])
    xml = "<doc><src><seg>a</seg></src><ref><seg>b</seg></ref></doc>"
    write_lines(two_files / "set.xml", [xml])
    given = ["--translations", *flags] if flags else []
    *notes, error = evaluate(*given, status=2)
    assert message in error
    # If the pairs were read, a note says that the first line is a pair.
    assert all("so its first line is a pair" in note for note in notes)


def test_each_part_of_a_run_is_scored(call, tmp_path, monkeypatch):
    sets = [("a", "of development")], [("a", "of the run")]
    monkeypatch.setattr(
        "luong_keras.recipe.preparation.evaluation_pairs",
        lambda *_: Datasets(list, "", *sets),
    )
    for name, reference in (("test", "of the run"), ("dev", "of development")):
        given = "--translations", write_lines(tmp_path / "text", [reference])
        given += "--metric", "chrf", "--json", "--part", name
        found = call("evaluate", *given)
        assert found["set"] == name
        assert found["chrf"]["score"] == pytest.approx(100)


@pytest.mark.slow
def test_given_translations_are_scored(call, run, translator, text, tmp_path):
    lines = call("score", run.path.parent / "test.tsv")
    scored = translator.score(SOURCES, TARGETS)
    for line, expected in zip(lines, scored, strict=True):
        total, words, perplexity = line.split("\t")
        assert float(total) == pytest.approx(expected.log_probability, abs=1e-3)
        assert int(words) == len(expected.tokens)
        assert float(perplexity) == pytest.approx(
            math.exp(-expected.log_probability / len(expected.tokens)), rel=1e-3
        )
    other = write_lines(tmp_path / "targets", TARGETS)
    assert call("score", text, other) == lines
    words = sum(len(expected.tokens) for expected in scored)
    total = sum(expected.log_probability for expected in scored)
    perplexity = f"{math.exp(-total / words):.3f} of {words} words"
    assert perplexity in call.printed.err


def test_pairs_of_pipes_are_scored(call, run, tmp_path):
    """As a shell passes the outputs of commands: `<(…) <(…)`."""
    expected = call("score", run.path.parent / "test.tsv")
    with pipe_of(SOURCES) as one, pipe_of(TARGETS) as other:
        paths = [f"/dev/fd/{pipe.fileno()}" for pipe in (one, other)]
        assert call("score", *paths) == expected
    (*_, error) = call("score", tmp_path / "a", tmp_path / "b", status=2)
    assert f"{tmp_path / 'a'} does not exist. Expected UTF-8 text" in error


def test_pairs_that_were_cut_are_reported(run, call, tmp_path):
    long = "the cat " * 9
    lines = ["a house\tdas Haus", f"{long}\tx", f"a house\t{long}"]
    text = write_lines(tmp_path / "pairs.tsv", lines)
    call("score", text)
    *_, cut, perplexity = call.printed.err.splitlines()
    assert "2 pairs (number 2, 3) were cut" in cut
    assert perplexity.startswith("perplexity ")
    call("score", run.path.parent / "test.tsv")
    assert "were cut" not in call.printed.err
    call("evaluate", text)
    assert "2 pairs (number 2, 3) were cut" in call.printed.err
    for command in ("score", "evaluate"):
        call(command, text, "--max-source-length", 30)
        assert "were cut" not in call.printed.err


@pytest.mark.slow
def test_lines_and_translations_that_were_cut_are_one_warning(
    call, translator, tmp_path
):
    lines = ["a house", "the cat " * 9, "the dog sees", "cat", "a dog sees a"]
    text = write_lines(tmp_path / "text", lines)
    found = translator.translate_batch(tf.constant(lines))
    cut = found["unfinished"].numpy()[:, 0].sum()
    assert 0 < cut < len(lines)
    call("translate", text)
    lines = call.printed.err.splitlines()
    (warning,) = [line for line in lines if "warning" in line]
    assert "1 of the lines (number 2)" in warning
    assert f"Cut at the maximum length, without `</s>`: {cut} " in warning
    # Flags set the length ratios.
    flags = "--max-length-ratio", 0.4
    (*_, error) = call("translate", text, *flags, status=2)
    assert "min_length_ratio" in error


def test_exports_are_compared_with_their_model(
    call, run, translator, monkeypatch
):
    from luong_keras.serving import export as exported

    for version in ("9", "10", ".11-x"):
        (run.export / version).mkdir(parents=True, exist_ok=True)
    answers = translator.translate(SOURCES)
    folders = []

    def answer(folder, sources, size):
        assert size == translator.decoding.batch_size
        folders.append(folder)
        return answers

    monkeypatch.setattr(exported, "exported_translations", answer)
    given = "translate", "--check-export"
    assert "3 of 3 translations equal" in call(*given)[-1]
    assert folders == [run.export / "10"]
    answers[1] = "else"
    assert "2 of 3 translations equal" in call(*given, status=1)[-1]
    answers[1] = None
    lines = call(*given)
    assert lines[-2].endswith("too long for the export: 1")
    assert "2 of 2 translations equal" in lines[-1]
    call(*given, "--max-source-length=1", status=1)
    (line,) = call.printed.err.splitlines()
    assert line.startswith("luong-keras translate: warning: Expected:")
    assert "(number 1, 2, 3)" in line


def test_exports_have_the_requested_search(
    call, run, tmp_path, monkeypatch, searches
):
    exports, precisions = [], []

    def export(translator, folder, say, limits, extra_files):
        assert "parent/config.json" in extra_files
        precisions.append(translator.translation_model.config.precision)
        exports.append((translator.decoding, folder, limits))
        return folder

    monkeypatch.setattr("luong_keras.translator.export_saved_model", export)
    output = tmp_path / "1"
    given = "export", "--output", output
    limits = "--max-beam-size", 7, "--max-rows", 5, "--max-source-length", 6
    assert call(*given, *limits)[-1] == f"exported to {output}"
    ((decoding, *rest),) = exports
    assert (decoding.max_beam_size, decoding.stack_size) == (7, 4)
    assert decoding.max_source_length == 6
    assert rest == [output, ServingLimits(5)]
    call(*given, "--beam-size", 3, "--precision", "mixed_float16")
    assert precisions == ["float32", "mixed_float16"]
    assert exports[-1][0].stack_size is None
    assert exports[-1][-1] == ServingLimits()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_of_an_export_is_one_line(call, tmp_path, monkeypatch):
    def export(*arguments, **options):
        tf.io.write_file("/dev/full", "a SavedModel")

    monkeypatch.setattr("luong_keras.translator.export_saved_model", export)
    (line,) = call("export", "--output", tmp_path / "1", status=2)
    assert "/dev/full" in line and "the disk is full. Free some" in line
