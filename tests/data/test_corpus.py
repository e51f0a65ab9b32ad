import json
from unittest.mock import Mock

import numpy as np
import pytest

from luong_keras.data.corpus import Corpus
from luong_keras.data.corpus_writer import open_or_write_corpus, write_corpus

PAIRS = [("a b", "x"), ("c\u00a0d", "y ü z"), ("e", "漢字\u2003w")]


@pytest.mark.parametrize("chunk", [1 << 22, 4])
def test_lines_are_read_in_any_order(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr("luong_keras.data.corpus._CHUNK", chunk)
    written = write_corpus(PAIRS, tmp_path)
    opened = Corpus.open(tmp_path)
    for corpus in written, opened:
        assert len(corpus) == 3
        source, target = corpus.lines(np.array([2, 0, 2, 1]))
        expected = [PAIRS[i] for i in (2, 0, 2, 1)]
        assert [line.decode() for line in source] == [p[0] for p in expected]
        assert [line.decode() for line in target] == [p[1] for p in expected]
    assert opened.lines(np.array([], int)) == ([], [])
    for outside in 3, -1:
        with pytest.raises(IndexError, match="Line numbers"):
            opened.lines(np.array([0, outside]))


@pytest.mark.parametrize("name", ["source.txt", "target.txt", "corpus.json"])
def test_links_are_refused(tmp_path, name):
    """A folder from elsewhere could otherwise name any file."""
    folder, other = tmp_path / "corpus", tmp_path / "other"
    for path in folder, other:
        write_corpus(PAIRS, path)
    (folder / name).unlink()
    (folder / name).symlink_to(other / name)
    with pytest.raises(ValueError, match=f"{name}. Received: a link to"):
        Corpus.open(folder)
    write_corpus(PAIRS[:1], folder)  # Replaces the link, not its target.
    assert len(Corpus.open(folder)) == 1 and len(Corpus.open(other)) == 3


def test_control_characters_become_spaces(tmp_path):
    pairs = [("\ufeff a\nb\r\nc\u2028d\x00e\u0085f\tg ", "x\x7f\x1fy\ufeff")]
    corpus = write_corpus(pairs, tmp_path)
    assert corpus.lines(np.array([0])) == ([b"a b c d e f g"], [b"x y"])
    assert (tmp_path / "source.txt").read_bytes() == b"a b c d e f g\n"


def test_bad_pairs_are_skipped_and_counted_with_line_numbers(tmp_path):
    good, no_source, no_target = ("a", "b"), ("", "b"), ("a", "\u00a0 ")
    pairs = [good, no_target, good, *[no_source] * 7, good, no_target]
    corpus = write_corpus([*pairs, ("\ud800", "b"), good], tmp_path)
    assert len(corpus) == 4
    assert corpus.skipped == Corpus.open(tmp_path).skipped
    assert corpus.skipped == {
        "empty target": {"count": 2, "first_lines": [2, 12]},
        "empty source": {"count": 7, "first_lines": [4, 5, 6, 7, 8]},
        "not UTF-8": {"count": 1, "first_lines": [13]},
    }
    description = json.loads((tmp_path / "corpus.json").read_text())
    assert (description["pairs"], description["key"]) == (4, "")
    message = r"No sentence pair.*Received: 2 pairs.*\[1, 2\]"
    with pytest.raises(ValueError, match=message):
        write_corpus([no_source, no_source], tmp_path)


def test_open_or_write_corpus_passes_on_its_options(tmp_path):
    options = {
        "preprocess_source": lambda text: text.upper().replace("DROP", ""),
        "preprocess_target": str.swapcase,
    }
    pairs = [("aA", "bB"), ("drop", "c")]
    corpus = open_or_write_corpus(lambda: pairs, tmp_path, "key", **options)
    assert corpus.lines(np.array([0])) == ([b"AA"], [b"Bb"])
    assert corpus.description["key"] == "key"
    assert [*corpus.skipped] == ["empty source"]
    options["max_skipped"] = 0.5
    assert open_or_write_corpus(None, tmp_path, "key", **options).skipped
    options["max_skipped"] = 0.49
    with pytest.raises(ValueError, match="50.0%.*at most 49.0%"):
        open_or_write_corpus(lambda: pairs, tmp_path, "key", **options)
    options["max_skipped"] = 0.0
    pairs = [("a", "b"), ("c", "")]
    with pytest.raises(ValueError, match="Pair 2 .* target sentence is empty"):
        open_or_write_corpus(lambda: pairs, tmp_path, "other", **options)
    with pytest.raises(FileNotFoundError, match="no complete corpus"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize("name", ["source.txt", "target.txt"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "missing"])
def test_damaged_files_are_detected_and_rewritten(tmp_path, name, damage):
    write_corpus(PAIRS, tmp_path, key="k")
    path = tmp_path / name
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[:-1])
    elif damage == "changed":
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1, content[-1]]))
    else:
        path.unlink()
    with pytest.raises(ValueError, match=name):
        Corpus.open(tmp_path)
    corpus = open_or_write_corpus(lambda: PAIRS, tmp_path, "k")
    assert corpus.lines(np.array([0])) == ([b"a b"], [b"x"])


def test_a_corpus_is_rewritten_only_if_necessary(tmp_path):
    make = Mock(return_value=PAIRS)
    for _ in range(2):
        open_or_write_corpus(make, tmp_path, "first")
        assert make.call_count == 1
    open_or_write_corpus(make, tmp_path, "second")
    assert make.call_count == 2
    (tmp_path / "corpus.json").unlink()  # Like an interruption.
    open_or_write_corpus(make, tmp_path, "second")
    assert make.call_count == 3


def test_interrupted_writing_leaves_no_corpus(tmp_path):
    write_corpus(PAIRS, tmp_path)

    def broken():
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus(broken(), tmp_path)
    with pytest.raises(FileNotFoundError, match="Write the corpus again"):
        Corpus.open(tmp_path)


def test_an_open_corpus_outlives_its_replacement(tmp_path):
    old = write_corpus(PAIRS, tmp_path)
    new = write_corpus([("new", "new")], tmp_path)
    assert old.lines(np.array([2]))[0] == [b"e"]
    assert old.fingerprint != new.fingerprint


def test_invalid_descriptions_are_refused(tmp_path):
    write_corpus(PAIRS, tmp_path)
    path = tmp_path / "corpus.json"
    description = json.loads(path.read_text())
    path.write_text(json.dumps({**description, "format": 99}))
    with pytest.raises(ValueError, match="another format"):
        Corpus.open(tmp_path)
    incomplete = [{"files": value} for value in ([], {}, {"source.txt": 1})]
    contents = [description | change for change in incomplete]
    for key in description.keys() - {"filtered", "parts"}:
        contents.append({k: description[k] for k in description if k != key})
    for content in ["{", "[]", *map(json.dumps, contents)]:
        path.write_text(content)
        with pytest.raises(ValueError, match="does not describe a corpus"):
            Corpus.open(tmp_path)
        assert len(open_or_write_corpus(lambda: PAIRS, tmp_path, "")) == 3
    del description["files"]["target.txt"]["crc32"]
    path.write_text(json.dumps(description))
    with pytest.raises(ValueError, match="is not the file that was written"):
        Corpus.open(tmp_path)


def test_too_many_bad_pairs_are_refused_with_examples(tmp_path):
    pairs = [("a", "b")] * 18 + [("", "lost"), ("c", "")]
    assert write_corpus(pairs, tmp_path / "one", max_skipped=0.1).skipped
    message = (
        r"2 of 20 .* 10\.0%\. Expected: at most 9\.0%.*"
        r"19 \(empty source\): '' \|\|\| 'lost'; 20 \(empty target\)"
    )
    with pytest.raises(ValueError, match=message):
        write_corpus(pairs, tmp_path / "two", max_skipped=0.09)
    with pytest.raises(FileNotFoundError):
        Corpus.open(tmp_path / "two")


def test_sentences_over_20000_characters_are_skipped(tmp_path):
    preprocess = Mock(wraps=str.upper)
    pairs = [("a", "b"), ("x" * 20_000, "y"), ("x" * 20_001, "y")]
    corpus = write_corpus(pairs, tmp_path, preprocess_source=preprocess)
    assert len(corpus) == 2
    lengths = [len(call.args[0]) for call in preprocess.call_args_list]
    assert lengths == [1, 20_000]
    assert corpus.skipped["too long"] == {"count": 1, "first_lines": [3]}
