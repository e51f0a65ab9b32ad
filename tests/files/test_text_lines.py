import bz2
import gzip
import lzma

import pytest

from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.sources.columns import RequestedColumns
from luong_keras.data.text_files import read_pairs, read_text, text_sources
from luong_keras.files.text_lines import read_lines


def pairs_of_file(path, content):
    sources = text_sources(str(write(path, content)), RequestedColumns())
    return list(read_text(sources, True))


def write(path, content):
    path.write_bytes(content)
    return path


def test_plain_and_gzipped_files_are_paired(tmp_path):
    content = gzip.compress("eins\nzwei ü\n".encode())
    source = write(tmp_path / "a.gz", content)
    target = write(tmp_path / "b", b"one\r\ntwo")
    pairs = list(read_pairs(source, target))
    assert [pair.place for pair in pairs] == ["a.gz:1", "a.gz:2"]
    assert pairs == [("eins", "one"), ("zwei ü", "two")]


def test_only_line_feeds_end_a_line(tmp_path):
    line = "a\u2028b\u0085c\x0bd\x0ce\x1cf\rg"
    path = write(tmp_path / "a", f"{line}\nx\n".encode())
    assert list(read_pairs(path, path)) == [(line, line), ("x", "x")]


def test_byte_order_marks_are_removed(tmp_path):
    path = write(tmp_path / "a", b"\xef\xbb\xbfx\n\xef\xbb\xbfy\n")
    assert list(read_lines(path)) == ["x", "y"]


@pytest.mark.parametrize("sides", [(2, 5), (5, 2), (0, 3)])
def test_unequal_line_counts_are_reported(tmp_path, sides):
    names = [
        write(tmp_path / name, b"x\n" * count)
        for name, count in zip("ab", sides, strict=True)
    ]
    message = f"{sides[0]} in .*a, {sides[1]} in .*b"
    with pytest.raises(ValueError, match=message):
        list(read_pairs(*names))


def test_invalid_utf8_is_reported_with_its_line(tmp_path):
    good = write(tmp_path / "good", b"a\nb\nc\n")
    bad = write(tmp_path / "bad", b"a\nb\nc\xff\n")
    message = "Line 3 of .*bad is not UTF-8.*remove the line .*from both files"
    with pytest.raises(ValueError, match=message):
        list(read_pairs(good, bad))


def test_bad_bytes_can_be_kept_for_the_corpus_to_skip(tmp_path):
    good = write(tmp_path / "good", b"a\nb\nc\n")
    bad = write(tmp_path / "bad", b"x\ny\xff\nz\n")
    pairs = read_pairs(good, bad, keep_bad_bytes=True)
    corpus = write_corpus(pairs, tmp_path / "corpus")
    assert len(corpus) == 2
    places = {"count": 1, "first_lines": ["good:2"]}
    assert corpus.skipped == {"not UTF-8": places}


def test_missing_and_empty_files_are_refused(tmp_path):
    good = write(tmp_path / "good", b"a\n")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(read_pairs(good, tmp_path / "nowhere"))
    empty = write(tmp_path / "empty", b"")
    with pytest.raises(ValueError, match="no sentence"):
        list(read_pairs(empty, empty))


@pytest.mark.parametrize(
    "encoding, mark",
    [
        *(("utf-16", ""), ("utf-16-le", ""), ("utf-16-be", "")),
        *(("utf-16-be", "\ufeff"), ("utf-32", "")),
    ],
)
def test_other_encodings_are_refused(tmp_path, encoding, mark):
    content = f"{mark}a\tb\nc\td\n".encode(encoding)
    message = r"a\.tsv is written in UTF-16 or UTF-32\. Expected: UTF-8"
    with pytest.raises(ValueError, match=message):
        pairs_of_file(tmp_path / "a.tsv", content)


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_compressed_text_of_another_name_is_refused(tmp_path, module):
    content = module.compress(b"a\tb\nc\td\n")
    with pytest.raises(ValueError, match=r"a\.tsv is compressed.*\.gz, \.xz"):
        pairs_of_file(tmp_path / "a.tsv", content)


def test_carriage_returns_as_line_ends_are_refused(tmp_path):
    path = tmp_path / "a.tsv"
    message = r"a\.tsv end only with a carriage return, as on old Macs"
    with pytest.raises(ValueError, match=message):
        pairs_of_file(path, b"a\tb\rc\td\re\tf\r")
    # Within a line of a longer file it becomes a space.
    pairs = [("a x b", "b"), ("c", "d")]
    assert pairs_of_file(path, b"a\rx\rb\tb\nc\td\n") == pairs
    assert pairs_of_file(path, b"a\tb\r\n") == [("a", "b")]
