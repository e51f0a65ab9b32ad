"""The command `align`, on two untrained runs."""

import dataclasses
import gzip
import re

import keras
import pytest

from luong_keras.alignment.aer import LinkScores, parse_alignments
from luong_keras.alignment.links import format_links
from luong_keras.alignment.symmetrization import METHODS, symmetrize
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.stored_settings import run_config
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.cli.conftest import copy_run, write_lines
from tests.serving.tiny_translator import write_run

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(scope="module")
def reverse_run(translator, run, tmp_path_factory):
    """Write the folder of a run of the other direction."""
    tokenizers = translator.target_tokenizer, translator.source_tokenizer
    source_size, target_size = (x.vocabulary_size for x in tokenizers)
    settings = dataclasses.replace(
        translator.translation_model.config,
        source_vocabulary_size=source_size,
        target_vocabulary_size=target_size,
    )
    keras.utils.set_random_seed(7)
    # Its alignment step differs from that of the other run.
    decoding = translator.decoding.with_(alignment_step="reads")
    reverse = Translator(TranslationModel(settings), *tokenizers, decoding)
    data = run_config(run.path).data
    data = dataclasses.replace(data, source_language="de", target_language="en")
    folder = tmp_path_factory.mktemp("runs") / "reverse"
    return RunFolder(write_run(folder, reverse, data=data))


@pytest.fixture
def text(tmp_path):
    """Write a source and a target file; return them and their lines."""
    sources = ["the cat sees .", "a house", "", "the dog .", "the house."]
    targets = ["die Katze sieht .", "das Haus", " ", "der Hund .", "das Haus."]
    english = write_lines(tmp_path / "en", sources)
    german = write_lines(tmp_path / "de", targets)
    return english, german, (sources, targets)


@pytest.mark.slow
def test_links_of_words_are_printed(
    call, translator, text, tmp_path, monkeypatch
):
    *files, pairs = text
    expected = [format_links(links) for links in translator.links(*pairs)]
    assert expected[2] == "" and all(expected[:2])
    # With more pairs than a chunk has.
    monkeypatch.setattr("luong_keras.recipe.aligned_text.CHUNK", 2)
    assert call("align", *files) == expected
    columns, output = tmp_path / "both.tsv.gz", tmp_path / "out" / "links"
    rows = "".join(f"{s}\t{t}\n" for s, t in zip(*pairs, strict=True))
    columns.write_bytes(gzip.compress(rows.encode()))
    (line,) = call("align", columns, "--output", output)
    assert line == f"5 pairs: {output}"
    assert output.read_text().splitlines() == expected
    reads = [format_links(row) for row in translator.links(*pairs, "reads")]
    assert call("align", *files, "--step", "reads") == reads != expected


@pytest.mark.slow
def test_links_of_both_directions_are_symmetrised(
    call, reverse_run, translator, text
):
    *files, pairs = text
    other = Translator.from_run(reverse_run.path)
    both = [
        (forward, [(i, j) for j, i in backward])
        for forward, backward in zip(
            translator.links(*pairs), other.links(*pairs[::-1]), strict=True
        )
    ]

    def expected(method):
        return [format_links(symmetrize(*links, method)) for links in both]

    given = ["align", *files, "--reverse-run", reverse_run.path]
    assert call(*given) == expected("grow-diag-final")
    union = expected("union")
    assert call(*given, "--symmetrize", "union") == union
    assert expected("intersection") != union


def test_links_are_compared_with_gold_links(
    call, reverse_run, translator, text, tmp_path
):
    *files, pairs = text
    links = translator.links(*pairs)
    # The links that were found; the first one is only possible.
    rows = [" ".join(f"{i + 1}-{j + 1}" for i, j in row) for row in links]
    rows[0] = rows[0].replace("-", "p", 1)
    gold = write_lines(tmp_path / "gold", rows)
    given = "align", *files, "--gold", gold, "--gold-one-based"
    given += "--output", "-"
    assert call(*given) == [format_links(row) for row in links]
    (line,) = call.printed.err.splitlines()
    perfect = "AER 0.00 %, precision 100.00 %, recall 100.00 %"
    assert line.split(None, 1) == ["forward", perfect]
    rows[1] = "1-1 2-2 2p1 1-2"
    write_lines(gold, rows)
    call(*given, "--reverse-run", reverse_run.path)
    lines = [line.split(None, 1) for line in call.printed.err.splitlines()]
    assert [name for name, _ in lines] == ["forward", "backward", *METHODS]
    found = LinkScores()
    parsed = parse_alignments(rows, one_based=True)
    for one, other in zip(links, parsed, strict=True):
        found.add(one, other)
    assert 0 < found.recall < 1
    assert lines[0][1] == (
        f"AER {100 * found.error_rate:.2f} %, precision "
        f"{100 * found.precision:.2f} %, recall {100 * found.recall:.2f} %"
    )


@pytest.mark.parametrize(
    "gold, message",
    [
        ("0-0\n0-0\n", "2 lines in .*gold, and a text that .* en:3"),
        ("0-0\n\n\n\n0-0\n\n", "6 lines in .*gold, and 5 pairs"),
        ("0-0\n0-2\n\n\n\n", r"line 2 .* \(en:2\).* to 1 and 1.* 0-2.* from 1"),
        ("0-0\n2-0\n\n\n\n", r"line 2 .* \(en:2\).* to 1 and 1.* 2-0.* from 1"),
        ("0-0\n\n\n\n0:0\n", "'0:0' in line 5"),
    ],
)
def test_gold_links_of_another_text_are_refused(
    call, text, tmp_path, gold, message
):
    (tmp_path / "gold").write_text(gold)
    output = write_lines(tmp_path / "links", ["old"])
    options = ("--gold", tmp_path / "gold", "--output", output)
    assert re.search(message, call("align", *text[:2], *options, status=2)[-1])
    assert output.read_text() == "old\n"


def test_lines_that_cannot_be_aligned_are_refused(call, text):
    english, german, _ = text
    (error,) = call("align", english, german, "--output", german, status=2)
    assert f"than those that are read. Received: {german}" in error
    german.write_text(german.read_text().replace("das Haus\n", "\n"))
    (error,) = call("align", english, german, status=2)
    assert "The target of en:2 is empty" in error and "'a house'" in error
    german.write_text("das\n")
    (error,) = call("align", english, german, status=2)
    assert "the same number of lines. Received: 5 in" in error


def test_pairs_that_were_cut_are_reported(call, reverse_run, text, tmp_path):
    given = ["align", *text[:2], "--max-source-length"]
    call(*given, 2)
    reported = "3 of 5 pairs (first en:1): cut to the maximum length"
    assert reported in call.printed.err
    call(*given, 0, status=2)
    call(*given, 20)
    assert "cut to the maximum length" not in call.printed.err
    # In one direction only.
    shorter = {"max_source_length": 2}
    copy = copy_run(reverse_run, tmp_path / "copy", decoding=shorter)
    call("align", *text[:2], "--reverse-run", copy.path)
    assert reported in call.printed.err


def test_wrong_arguments_are_refused(call, run, reverse_run, text):
    given = ["align", *text[:2]]
    (error,) = call(*given, "--symmetrize", "union", status=2)
    assert "--symmetrize union only" in error and "--reverse-run" in error
    folders = ("--run-dir", reverse_run.path, "--reverse-run", reverse_run.path)
    (error,) = call(*given, *folders, status=2)
    assert "a run of the other direction, from en to de" in error
    # The languages of this run are unknown.
    assert len(call(*given, "--reverse-run", run.path)) == 5
    (error,) = call("align", text[0], status=2)
    assert "or a source and a target file" in error
