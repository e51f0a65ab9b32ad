"""Commands that read a run, on an untrained run."""

import collections
import gzip
import io
import itertools
import json
import math
import os
import shutil

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from luong_keras.cli import translate
from luong_keras.cli.main import main
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.datasets import Datasets
from luong_keras.evaluation.translation_scores import paired_test
from luong_keras.recipe import aligned_text
from luong_keras.recipe.loading import load_run
from luong_keras.serving.limits import ServingLimits
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.cli.conftest import PAIRS
from tests.serving.tiny_translator import TARGET_WORDS

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture
def text(tmp_path):
    """Write a file of the sources of the test pairs."""
    path = tmp_path / "text"
    path.write_text("".join(f"{source}\n" for source, _ in PAIRS))
    return path


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
def test_weights_are_chosen_by_name(
    run, monkeypatch, capsys, command, arguments
):
    monkeypatch.chdir(run.path.parent)
    (run.path.parent / "pairs.tsv").write_text("a\tb\n")
    argv = [command, "--run-dir", str(run.path), *arguments]
    assert main([*argv, "--weights", "bset"]) == 2
    error = capsys.readouterr().err
    assert "Received: bset. Did you mean best?" in error
    assert "has best." in error
    assert main([*argv, "--weights", ""]) == 2  # a variable that is not set
    assert "weights named best, last" in capsys.readouterr().err
    names = []

    def from_run(run_folder, weights=None, *others, **options):
        names.append(weights)
        raise ValueError("noted")

    monkeypatch.setattr(Translator, "from_run", from_run)
    assert main([*argv, "--weights", "epoch-7"]) == 2
    assert main(argv) == 2
    assert names == ["epoch-7", None]


@pytest.mark.parametrize(
    "flags", [["--run-dir={}", "--run-dir", "{}"], ["--run-dir", "{}", "{}"]]
)
def test_all_runs_are_exported(run, monkeypatch, flags):
    folders = []

    def from_run(run_folder, *others, **options):
        folders.append(run_folder)
        raise ValueError("noted")

    monkeypatch.setattr(Translator, "from_run", from_run)
    argv = [flag.format(run.path) for flag in flags]
    assert main(["export", *argv, "--output", "1"]) == 2
    assert folders == [[run.path, run.path]]


@pytest.mark.slow
def test_each_name_loads_its_weights(run, translator, tmp_path):
    copy = RunFolder(shutil.copytree(run.path, tmp_path / "copy"))
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

    def found(name=None):
        (loaded,), *_ = load_run(copy.path, name)
        return np.array(loaded.projection.bias)

    for number, name in enumerate(paths, start=1):
        np.testing.assert_array_equal(found(name), bias + number)
    np.testing.assert_array_equal(found(), bias)
    settings = copy.read_config()
    settings["training"] |= {"final_weights": "last"}
    copy.config.write_text(json.dumps(settings))
    np.testing.assert_array_equal(found(), bias + 1)


def standard_input(content):
    return io.TextIOWrapper(io.BytesIO(content))


@pytest.mark.parametrize("name", ["-", "/dev/fd/{}"])
def test_pipes_are_translated(call, translator, name, monkeypatch):
    """As a shell passes the output of a command: `<(zcat text.gz)`."""
    sources = [source for source, _ in PAIRS]
    reading, writing = os.pipe()
    os.write(writing, "".join(f"{source}\n" for source in sources).encode())
    os.close(writing)
    with os.fdopen(reading) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        translations = call("translate", name.format(reading))
    assert translations == translator.translate(sources)


@pytest.mark.slow
def test_files_and_standard_input_are_translated(
    call, translator, tmp_path, monkeypatch
):
    sources = [source for source, _ in PAIRS]
    expected = translator.translate(sources)
    (tmp_path / "one").write_text(sources[0] + "\n")
    (tmp_path / "rest").write_text("\n".join(sources[1:]) + "\n")
    files = tmp_path / "one", tmp_path / "rest"
    assert call("translate", *files) == expected
    text = "".join(source + "\r\n" for source in sources)
    for given in (text, text.removesuffix("\r\n"), "\ufeff" + text):
        monkeypatch.setattr("sys.stdin", standard_input(given.encode()))
        assert call("translate") == expected
    for wrong, message in [
        (b"a\nb\xffc\n", "Line 2 of standard input is not UTF-8"),
        ("a".encode("utf-16"), "standard input is written in UTF-16"),
        ("a\nb\n".encode("utf-16-le"), "standard input is written in UTF-16"),
        (gzip.compress(b"a\nb\n"), "standard input is compressed. Expected"),
        (b"a\rb\rc\r", "The lines of standard input end only with a carriage"),
    ]:
        monkeypatch.setattr("sys.stdin", standard_input(wrong))
        assert message in call("translate", status=2)[0]
        # Good lines before the wrong one are translated.
        assert call.printed.out.count("\n") == wrong.startswith(b"a\nb\xff")


def test_standard_input_is_translated_as_it_arrives(
    call, translator, tmp_path, monkeypatch
):
    """Lines that have arrived are translated before more are read."""
    sources = [source for source, _ in PAIRS]
    expected = translator.translate(sources)
    reading, writing = os.pipe()
    counts = []
    before = Translator.translate

    def counting(self, lines, **options):
        counts.append(len(lines))
        if len(counts) == 1:
            os.write(writing, f"{sources[1]}\n{sources[2]}".encode())
            os.close(writing)
        return before(self, lines, **options)

    monkeypatch.setattr(Translator, "translate", counting)
    os.write(writing, f"{sources[0]}\n".encode())
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
    sources = [source for source, _ in PAIRS]
    expected = translator.translate(sources)
    size = translator.decoding.batch_size
    text = "".join(f"{source}\n" for source in sources) * size
    (tmp_path / "text").write_text(text)
    assert call("translate", tmp_path / "text") == expected * size
    assert shared == [1]
    # Each part has the phrases of its lines.
    words = [line.split()[-1] for line in reversed(expected * size)]
    phrases = tmp_path / "phrases"
    phrases.write_text("".join(f"{line}\n" for line in words))
    found = call("translate", tmp_path / "text", "--required", phrases)
    assert found == translator.translate(sources * size, required=words)
    assert found != expected * size
    before, counts = Translator.translate, []

    def failing(self, lines, **options):
        counts.append(len(lines))
        if len(counts) == 3:
            raise ValueError("no more")
        return before(self, lines, **options)

    monkeypatch.setattr(Translator, "translate", failing)
    (*_, error) = call("translate", tmp_path / "text", status=2)
    assert call.printed.out.splitlines() == (expected * size)[: 2 * size]
    assert "no more" in error
    assert counts == [size] * 3
    counts.clear()
    call("translate", tmp_path / "text", "--max-source-length", 1, status=2)
    assert f"{2 * size} of the lines" in call.printed.err


@pytest.mark.slow
def test_lines_that_were_cut_are_one_warning(call, tmp_path, monkeypatch):
    monkeypatch.setattr(translate, "BATCHES", 1)
    lines = (["the house ."] * 20 + ["the house . the house ."]) * 4
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    given = "translate", tmp_path / "text"
    assert len(call(*given, "--max-source-length", 4)) == len(lines)
    warning = call.printed.err
    assert warning.count("warning") == 1
    assert "at most 4 tokens" in warning
    assert "4 of the lines (number 21, 42, 63, 84)" in warning
    call(*given)
    assert "warning" not in call.printed.err


@pytest.mark.slow
def test_several_runs_are_an_ensemble(call, run, translator, text, tmp_path):
    other = RunFolder(shutil.copytree(run.path, tmp_path / "other"))
    model = translator.translation_model
    bias = np.array(model.projection.bias)
    model.projection.bias.assign(bias[::-1])
    model.model.save_weights(other.best_weights)
    model.projection.bias.assign(bias)
    together = Translator.from_run([run.path, other.path])
    expected = together.nbest([s for s, _ in PAIRS])
    lines = call("translate", "--run-dir", other.path, text, "--n-best", 2)
    for line, translations in zip(lines, expected, strict=True):
        for entry, found in zip(
            json.loads(line), translations[:2], strict=True
        ):
            assert entry["text"] == found.text
            assert entry["score"] == pytest.approx(found.score, rel=1e-5)
    assert lines != call("translate", text, "--n-best", 2)
    tokenizer = WordTokenizer.from_words(TARGET_WORDS[::-1])
    tokenizer.save(other.path, "target_vocabulary")
    with pytest.raises(ValueError, match="the same vocabularies"):
        load_run([run.path, other.path])


def test_runs_of_opposite_directions_are_no_ensemble(run, tmp_path):
    copies = [RunFolder(tmp_path / name) for name in ("en-de", "de-en")]
    for copy in copies:
        settings = RunFolder(shutil.copytree(run.path, copy.path)).read_config()
        names = "source_language", "target_language"
        settings["data"] |= zip(names, copy.path.name.split("-"), strict=True)
        copy.write_config(settings)
    with pytest.raises(ValueError, match="from en to de, .* opposite in .*de-"):
        load_run([copy.path for copy in copies])


def test_n_best_lists_with_links(call, run, translator, tmp_path, searches):
    (tmp_path / "text").write_text(PAIRS[0][0])
    options = ("--n-best", 3, "--alignments")
    (line,) = call("translate", tmp_path / "text", *options)
    found = json.loads(line)
    (expected,) = translator.nbest([PAIRS[0][0]])
    assert [entry["text"] for entry in found] == [
        translation.text for translation in expected[:3]
    ]
    assert found[0]["links"] == [list(link) for link in expected[0].links]
    assert searches[-1] == translator.decoding
    # More than the stack holds.
    (line,) = call("translate", tmp_path / "text", "--n-best", 6)
    assert len(json.loads(line)) == 6
    assert searches[-1] == translator.decoding.with_(n_best=6)
    call("translate", tmp_path / "text", "--beam-size", 1)
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
    given = [
        part
        for name, value in flags.items()
        for part in ("--" + name.replace("_", "-"), value)
    ]
    lines = call("translate", text, *given)
    assert searches[-1] == translator.decoding.with_(**flags)
    assert searches[-1].beam_size == 1
    assert lines == call("translate", text, *given)
    assert lines != call("translate", text, *given, "--seed", 8)


def entries(path):
    """Read the entries of a lexicon."""
    return {
        (source, target): float(share)
        for source, target, share in map(
            str.split, path.read_text().splitlines()
        )
    }


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
    counts = collections.Counter(itertools.chain(*links))
    of_source = collections.Counter()
    for (source, _), count in counts.items():
        of_source[source] += count
    assert entries(run.shortlist) == {
        (source, target): pytest.approx(count / of_source[source], rel=1e-4)
        for (source, target), count in counts.items()
    }
    words = len(of_source)
    assert line == (
        f"{len(counts)} pairs of {words} source tokens: {run.shortlist}"
    )
    found = call("translate", text, "--shortlist", run.shortlist)
    assert searches[-1].shortlist == str(run.shortlist)
    # All words are frequent here.
    assert found == translator.translate([source for source, _ in PAIRS])
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
    (line,) = call(
        "evaluate", "--beam-size", 1, "--no-replace-unknown", "--json"
    )
    found = json.loads(line)
    assert found["set"] == "test" and found["sentences"] == 3
    assert found["decoding"]["stack_size"] is None
    assert not searches[-1].replace_unknown
    assert {"bleu", "bleu_by_length", "perplexity"} <= set(found)
    assert json.loads(run.results.read_text().splitlines()[-1]) == found
    table = call("evaluate", "--beam-size", 1, "--no-replace-unknown")
    assert table[0] == "pairs    test, 3 sentences"
    assert table[2] == "search   beam, beam size 1"
    (bleu,) = [line for line in table if line.startswith("bleu ")]
    score = found["bleu"]
    assert bleu.split() == ["bleu", f"{score['score']:.2f}", score["signature"]]
    assert any(line.startswith("perplexity") for line in table)


def test_evaluations_follow_the_settings_of_the_run(
    run, tmp_path, monkeypatch, capsys
):
    copy = RunFolder(shutil.copytree(run.path, tmp_path / "copy"))
    copy.best_weights.rename(copy.last_weights)
    settings = copy.read_config()
    settings["training"]["metric"] = "exact_match"
    settings["data"] |= {"lowercase": True, "target_language": "zh"}
    copy.config.write_text(json.dumps(settings))
    monkeypatch.setattr(
        "luong_keras.recipe.preparation.evaluation_pairs",
        lambda *_: Datasets(list, "", [], PAIRS[1:2], ["0-0"]),
    )
    (tmp_path / "text").write_text("a\n")
    given = "--run-dir", copy.path, "--weights", "last", "--json"
    given += "--beam-size", 1, "--baseline", tmp_path / "text"
    found = json.loads(evaluate(capsys, *given).out)
    assert {"aer", "exact_match"} <= {*found} and found["weights"] == "last"
    parts = found["compared"][0]["signature"].split("|")
    assert {"case:lc", "tok:zh"} <= {*parts}


@pytest.mark.slow
def test_pairs_of_a_file_are_scored(call, run, tmp_path):
    """The test pairs of the run, read from a file, have the same scores."""
    (line,) = call("evaluate", "--metric", "chrf", "--json")
    expected = json.loads(line)
    path = tmp_path / "other.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS))
    (line,) = call("evaluate", path, "--metric", "chrf", "ter", "--json")
    found = json.loads(line)
    assert found.pop("set") == str(path) and expected.pop("set") == "test"
    assert found.pop("ter")["score"] > 0
    assert found == expected and "chrf" in found
    assert json.loads(run.results.read_text().splitlines()[-1])["set"] == (
        str(path)
    )
    error = "\n".join(call("evaluate", path, "--part", "dev", status=2))
    assert "Received: --part dev and files. Leave" in error
    error = "\n".join(call("evaluate", "--metric", "loss", status=2))
    assert "Received: loss, which has none." in error


@pytest.fixture
def two_files(tmp_path):
    """Write pairs and two files of translations: one right, one wrong."""
    references = ["der Hund schläft heute", "die Katze sieht den Hund", "ja"]
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"source {i}\t{r}\n" for i, r in enumerate(references))
    )
    (tmp_path / "right.txt").write_text("\n".join(references) + "\n")
    (tmp_path / "wrong.txt").write_text("der Hund\ndie Katze\nnein\n")
    return tmp_path


def evaluate(capsys, *arguments, status=0):
    assert main(["evaluate", *map(str, arguments)]) == status
    return capsys.readouterr()


def test_translations_of_a_file_are_scored_and_compared(two_files, capsys):
    pairs, right, wrong = (
        two_files / name for name in ("pairs.tsv", "right.txt", "wrong.txt")
    )
    command = pairs, "--translations", right, "--baseline", wrong
    found = json.loads(evaluate(capsys, *command, "--json").out)
    assert found["bleu"]["score"] == pytest.approx(100)
    expected = paired_test(
        wrong.read_text().splitlines(),
        right.read_text().splitlines(),
        right.read_text().splitlines(),
    )
    assert found["compared"] == [score._asdict() for score in expected]
    lines = evaluate(capsys, *command).out.splitlines()
    assert lines[1] == f"translations  {right}"
    (bleu,) = [line for line in lines if line.startswith("BLEU")]
    pairs.write_text("a\tb\n \t \n")
    errors = evaluate(capsys, *command, status=2).err
    assert "Pair pairs.tsv:2 cannot be used: the source" in errors
    values = f"{expected[0].second:.2f} ± {expected[0].second_interval:.2f}"
    assert values in bleu and bleu.endswith(f"{expected[0].p_value:.3f}")


def test_further_references_are_used(two_files, capsys):
    """Each translation equals one of its references."""
    other = two_files / "other.txt"
    other.write_text("der Hund\ndie Katze\nnein\n")
    mixed = two_files / "mixed.txt"
    mixed.write_text("der Hund\ndie Katze sieht den Hund\nnein\n")
    found = json.loads(
        evaluate(
            *(capsys, two_files / "pairs.tsv", "--translations", mixed),
            *("--references", other, "--metric", "exact_match"),
            *("--metric", "ter", "--json"),
        ).out
    )
    assert found["exact_match"] == {"score": 100.0}
    assert found["ter"]["score"] == 0
    assert found["bleu"]["signature"].startswith("nrefs:2|")
    bleu = sacrebleu.corpus_bleu(
        mixed.read_text().splitlines(),
        [
            ["der Hund schläft heute", "die Katze sieht den Hund", "ja"],
            other.read_text().splitlines(),
        ],
    )
    assert found["bleu"]["score"] == pytest.approx(bleu.score)
    # A blank line is no reference.
    mixed.write_text("der Hund schläft heute\ndie\nnein\n")
    other.write_text("\n \n\n")
    given = two_files / "pairs.tsv", "--translations", mixed, "--json"
    one, two = (
        json.loads(evaluate(capsys, *given, *further).out)["bleu"]["score"]
        for further in ([], ["--references", other])
    )
    assert 0 < one == two


@pytest.mark.slow
def test_a_run_is_compared_with_translations(call, run, two_files):
    theirs = two_files / "theirs.txt"
    theirs.write_text("".join(f"{target}\n" for _, target in PAIRS))
    run.results.touch()
    before = len(run.results.read_text().splitlines())
    (line,) = call("evaluate", "--baseline", theirs, "--json")
    bleu = json.loads(line)["compared"][0]
    assert bleu["first"] == pytest.approx(100) and bleu["second"] < 50
    # A run does not differ from itself.
    (line,) = call("evaluate", "--baseline", run.path, "--json")
    assert {one["p_value"] for one in json.loads(line)["compared"]} == {1.0}
    assert len(run.results.read_text().splitlines()) == before + 2


def test_the_search_of_the_command_applies_to_both_runs(call, run, searches):
    flags = ["--beam-size", 1, "--no-replace-unknown"]
    call("evaluate", "--baseline", run.path, "--metric", "chrf", *flags)
    ours, theirs = searches
    assert ours.beam_size == 1 and not ours.replace_unknown
    assert theirs == ours


def test_baselines_are_checked_before_translating(call, searches, two_files):
    (two_files / "one.txt").write_text("a line\n")
    for baseline, part in (("one.txt", "1 line"), ("", "config.json")):
        errors = call("evaluate", "--baseline", two_files / baseline, status=2)
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
        (["--translations", "right.txt", "--beam-size", "2"], "--beam-size"),
        (
            ["--translations", "pairs.tsv", "--references", "one.txt"],
            "1 line in one.txt.",
        ),
        (["--translations", "none.txt"], "none.txt"),
        (["--translations", "set.xml"], "only the sources of such a file"),
        (
            ["--translations", "right.txt", "--references", "set.xml"],
            "only the sources of such a file",
        ),
    ],
)
def test_wrong_comparisons_are_refused(
    two_files, capsys, monkeypatch, flags, message
):
    monkeypatch.chdir(two_files)
    (two_files / "one.txt").write_text("ja\n")
    (two_files / "set.xml").write_text(
        "<doc><src><seg>a</seg></src><ref><seg>b</seg></ref></doc>\n"
    )
    lines = evaluate(capsys, "pairs.tsv", *flags, status=2).err.splitlines()
    *notes, error = lines
    assert message in error
    # If the pairs were read, a note says that the first line is a pair.
    assert all("so its first line is a pair" in note for note in notes)


def test_each_part_of_a_run_is_scored(run, tmp_path, monkeypatch, capsys):
    sets = [("a", "of development")], [("a", "of the run")]
    monkeypatch.setattr(
        "luong_keras.recipe.preparation.evaluation_pairs",
        lambda *_: Datasets(list, "", *sets),
    )
    for name, reference in (("test", "of the run"), ("dev", "of development")):
        (tmp_path / "text").write_text(f"{reference}\n")
        found = json.loads(
            evaluate(
                capsys,
                *("--run-dir", run.path, "--translations", tmp_path / "text"),
                *("--metric", "chrf", "--json", "--part", name),
            ).out
        )
        assert found["set"] == name
        assert found["chrf"]["score"] == pytest.approx(100)


@pytest.mark.slow
def test_given_translations_are_scored(call, run, translator, tmp_path):
    columns = run.path.parent / "test.tsv"
    lines = call("score", columns)
    scored = translator.score(*zip(*PAIRS, strict=True))
    for line, expected in zip(lines, scored, strict=True):
        total, words, perplexity = line.split("\t")
        assert float(total) == pytest.approx(expected.log_probability, abs=1e-3)
        assert int(words) == len(expected.tokens)
        assert float(perplexity) == pytest.approx(
            math.exp(-expected.log_probability / len(expected.tokens)), rel=1e-3
        )
    for name, side in (("a", 0), ("b", 1)):
        (tmp_path / name).write_text("".join(p[side] + "\n" for p in PAIRS))
    assert call("score", tmp_path / "a", tmp_path / "b") == lines
    words = sum(len(expected.tokens) for expected in scored)
    total = sum(expected.log_probability for expected in scored)
    perplexity = f"{math.exp(-total / words):.3f} of {words} words"
    assert perplexity in call.printed.err


def test_pairs_of_pipes_are_scored(call, run, tmp_path):
    """As a shell passes the outputs of commands: `<(…) <(…)`."""
    expected = call("score", run.path.parent / "test.tsv")
    pipes = [os.pipe() for _ in range(2)]
    for (_, writing), side in zip(pipes, zip(*PAIRS, strict=True), strict=True):
        os.write(writing, "".join(f"{text}\n" for text in side).encode())
        os.close(writing)
    paths = [f"/dev/fd/{reading}" for reading, _ in pipes]
    try:
        assert call("score", *paths) == expected
    finally:
        for reading, _ in pipes:
            os.close(reading)
    (*_, error) = call("score", tmp_path / "a", tmp_path / "b", status=2)
    assert f"{tmp_path / 'a'} does not exist. Expected UTF-8 text" in error


def test_pairs_that_were_cut_are_reported(run, call, tmp_path):
    long, text = "the cat " * 9, tmp_path / "pairs.tsv"
    text.write_text(f"a house\tdas Haus\n{long}\tx\na house\t{long}\n")
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
    text = tmp_path / "text"
    text.write_text("\n".join(lines) + "\n")
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
    answers = translator.translate([source for source, _ in PAIRS])
    folders = []

    def answer(folder, sources, size):
        assert size == translator.decoding.batch_size
        folders.append(folder)
        return answers

    monkeypatch.setattr(exported, "exported_translations", answer)
    assert (
        "3 of 3 translations equal" in call("translate", "--check-export")[-1]
    )
    assert folders == [run.export / "10"]
    answers[1] = "else"
    lines = call("translate", "--check-export", status=1)
    assert "2 of 3 translations equal" in lines[-1]
    answers[1] = None
    lines = call("translate", "--check-export")
    assert lines[-2].endswith("too long for the export: 1")
    assert "2 of 2 translations equal" in lines[-1]
    call("translate", "--check-export", "--max-source-length=1", status=1)
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
    options = ("--max-beam-size", 7, "--max-rows", 5)
    options += ("--max-source-length", 6)
    lines = call("export", "--output", output, *options)
    assert lines[-1] == f"exported to {output}"
    ((decoding, *rest),) = exports
    assert (decoding.max_beam_size, decoding.stack_size) == (7, 4)
    assert decoding.max_source_length == 6
    assert rest == [output, ServingLimits(5)]
    options = ("--beam-size", 3, "--precision", "mixed_float16")
    call("export", "--output", output, *options)
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
