import urllib.error
from unittest.mock import Mock

import pytest
import sacrebleu

from luong_keras.data import public_sets


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    """Replace the downloads by small files."""

    def path(kind):
        def get(name, pair):
            file = tmp_path / f"{pair}.{kind}"
            file.write_bytes(f"{pair} {kind}\u2028x\nzwei\n".encode())
            return str(file) if kind == "src" else [str(file)]

        return get

    monkeypatch.setattr(sacrebleu, "get_source_file", path("src"))
    monkeypatch.setattr(sacrebleu, "get_reference_files", path("ref"))


@pytest.mark.usefixtures("downloads")
@pytest.mark.parametrize("pair", ["en-de", "de-en"])
def test_sets_of_both_directions_are_used_as_published(pair):
    source, target = public_sets.test_set("wmt14/full", *pair.split("-"))
    assert source == [f"{pair} src\u2028x", "zwei"]
    assert target == [f"{pair} ref\u2028x", "zwei"]


@pytest.mark.usefixtures("downloads")
def test_a_set_of_one_direction_is_reversed(monkeypatch):
    monkeypatch.setattr(
        sacrebleu, "get_langpairs_for_testset", lambda name: ["de-en"]
    )
    source, target = public_sets.test_set("wmt14", "en", "de")
    assert (source[0], target[0]) == ("de-en ref\u2028x", "de-en src\u2028x")


def test_unknown_names_and_languages_list_known_ones():
    with pytest.raises(ValueError, match="'wmt14/full'"):
        public_sets.test_set("wmt14/ful", "en", "de")
    with pytest.raises(ValueError, match="'de-en'.*Received: 'en-xx'"):
        public_sets.test_set("wmt14", "en", "xx")


@pytest.mark.parametrize(
    "failure", [urllib.error.URLError("no route"), SystemExit(1)]
)
def test_a_failed_download_mentions_the_network(monkeypatch, failure):
    fail = Mock(side_effect=failure)
    monkeypatch.setattr(sacrebleu, "get_source_file", fail)
    with pytest.raises(ConnectionError, match="needs the network"):
        public_sets.test_set("wmt13", "en", "de")
