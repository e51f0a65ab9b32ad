"""Test sets by name and their subsets, without the network."""

import urllib.error

import pytest
import sacrebleu

from luong_keras.data import public_sets


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Puts small files in the place of the downloads."""
    asked = []

    def path(kind):
        def get(name, pair):
            asked.append((kind, name, pair))
            file = tmp_path / f"{pair}.{kind}"
            file.write_bytes(f"{pair} {kind}\u2028x\nzwei\n".encode())
            return str(file) if kind == "src" else [str(file)]

        return get

    monkeypatch.setattr(sacrebleu, "get_source_file", path("src"))
    monkeypatch.setattr(sacrebleu, "get_reference_files", path("ref"))
    return asked


def test_both_directions_are_the_sets_own(files):
    for pair in "en-de", "de-en":
        source, target = public_sets.test_set("wmt14/full", *pair.split("-"))
        assert source == [f"{pair} src\u2028x", "zwei"]
        assert target == [f"{pair} ref\u2028x", "zwei"]


def test_a_set_of_one_direction_is_turned(files, monkeypatch):
    monkeypatch.setattr(
        sacrebleu, "get_langpairs_for_testset", lambda name: ["de-en"]
    )
    source, target = public_sets.test_set("wmt14", "en", "de")
    assert (source[0], target[0]) == ("de-en ref\u2028x", "de-en src\u2028x")


def test_unknown_names_and_languages_are_answered_with_known_ones():
    with pytest.raises(ValueError, match="'wmt14/full'"):
        public_sets.test_set("wmt14/ful", "en", "de")
    with pytest.raises(ValueError, match="'de-en'.*Received: 'en-xx'"):
        public_sets.test_set("wmt14", "en", "xx")


@pytest.mark.parametrize(
    "failure", [urllib.error.URLError("no route"), SystemExit(1)]
)
def test_a_failed_download_says_that_it_needs_the_network(monkeypatch, failure):
    def fail(name, pair):
        raise failure

    monkeypatch.setattr(sacrebleu, "get_source_file", fail)
    with pytest.raises(ConnectionError, match="needs the network"):
        public_sets.test_set("wmt13", "en", "de")


LINES = list("abcde")


@pytest.mark.parametrize("content", ["3\n0\n4\n", "0\t3\n1\t0\n2\t4\n"])
def test_lines_are_selected_by_one_or_two_columns(tmp_path, content):
    path = tmp_path / "ids"
    path.write_text(content)
    assert public_sets.select_lines(LINES, path) == ["d", "a", "e"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\nx\n", "Line 2 .*'x'"),
        ("0\n-1\n", "Line 2"),
        ("0\n\n1\n", "Line 2"),
        ("0\n0 1\n", "Line 2"),
        ("0 0 0\n", "Line 1"),
        ("0 0\n2 1\n", "Line 2 .*must have 1 in its first column"),
        ("0\n5\n", "Line 2 .*below 5"),
        ("1\n2\n1\n", "Line 3 .*repeats line 1"),
        ("", "at least one line"),
    ],
)
def test_bad_lists_are_refused_by_line(tmp_path, content, message):
    path = tmp_path / "ids"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        public_sets.select_lines(LINES, path)


def test_the_2737_sentences_of_newstest2014(real_data):
    path = real_data("wmt14", "newstest2014.2737.ids.gz")
    chosen = public_sets.select_lines(range(3003), path)
    assert len(set(chosen)) == 2737
    assert chosen[:3] == [2221, 2222, 2223]
    with pytest.raises(ValueError, match="below 2737"):
        public_sets.select_lines(range(2737), path)
