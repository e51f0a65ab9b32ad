import errno
import os
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import loky
import pytest

import luong_keras
from luong_keras.config import FilterConfig
from luong_keras.data import corpus_writer
from luong_keras.data.corpus import Corpus
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.pair_checks import filter_reason, is_of_script
from luong_keras.data.sources.source_kinds import PlacedPair
from luong_keras.recipe.preparation import left_out_report
from tests.programs import start_program

ALL_FILTERS = FilterConfig(
    4.0, identical=True, duplicates=True, scripts=("Latin", "Cyrillic")
)


def noisy_pairs(count):
    """Yield good and bad pairs from two sources."""
    random.seed(1)
    good = [(f"word {i} here", f"слово {i} тут") for i in range(count // 3)]
    bad = [
        ("", "x"),
        ("same да", "same да"),
        ("a", "и " * 9),
        ("кто", "кто-то"),
        ("who", "who is"),
        ("\udcff", "ы"),
        ("no second", None),
    ]
    for number in range(count):
        pair = random.choice(good if random.random() < 0.8 else bad)
        placed = PlacedPair(*pair, f"x.tsv:{number + 1}")
        placed.part = int(number > count // 2)
        if number % 97 == 0:
            placed.problem = "no record"
        yield placed


def file_contents(corpus):
    return {path.name: path.read_bytes() for path in corpus.folder.iterdir()}


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(corpus_writer, "_PAIRS_PER_CALL", 100)
    monkeypatch.setattr(corpus_writer, "_LOCAL_CALLS", 2)


def write(folder, pairs=None, **options):
    pairs = noisy_pairs(2000) if pairs is None else pairs
    return write_corpus(pairs, folder, filters=ALL_FILTERS, **options)


def test_filtered_pairs_are_reported_by_reason(tmp_path):
    pairs = [
        ("a b c d e", "х"),
        ("ok", "да"),
        ("x", "x"),
        ("да", "нет"),
        ("yes", "no"),
        ("ok", "да"),
        ("12 %", "12 %!"),  # without letters: matches every script
    ]
    corpus = write_corpus(pairs, tmp_path, filters=ALL_FILTERS)
    assert list(corpus.side_lines("source")) == ["ok", "12 %"]
    assert corpus.skipped == {}
    places = {name: e["first_lines"] for name, e in corpus.filtered.items()}
    assert places == {
        "length ratio": [1],
        "identical sides": [3],
        "source script": [4],
        "target script": [5],
        "duplicate": [6],
    }
    assert corpus.filtered["duplicate"]["examples"] == ["'ok' ||| 'да'"]
    assert list(left_out_report(corpus))[:2] == [
        "left out, one side is too long for the other: 1 pair, such as",
        "  1: 'a b c d e' ||| 'х'",
    ]
    # Filtered pairs do not count as bad pairs.
    write_corpus(pairs, tmp_path, filters=ALL_FILTERS, max_skipped=0.0)
    whole = write_corpus(pairs, tmp_path)
    assert len(whole) == 7 and whole.description["filtered"] == {}


CHARACTERS = {"length_ratio": 2, "length_unit": "characters"}


@pytest.mark.parametrize(
    "source, target, options, reason",
    [
        ("a b", "x y z w", {"length_ratio": 2}, None),
        ("a b", "x y z w v", {"length_ratio": 2}, "length ratio"),
        ("a b c d e", "x y", {"length_ratio": 2}, "length ratio"),
        ("abc", "x y z w", CHARACTERS, "length ratio"),
        ("abc", "xyzw", CHARACTERS, None),
        ("a", "a", {}, None),
    ],
)
def test_each_filter(source, target, options, reason):
    assert filter_reason(source, target, FilterConfig(**options)) == reason


def test_script_names_and_shares():
    assert is_of_script("Ab я", "Latin") and not is_of_script("A яю", "Latin")
    assert is_of_script("Ab яю", "Cyrillic")  # half suffices
    assert is_of_script("東京タワー x", "Han+Katakana")
    assert not is_of_script("abc", "Han")
    for scripts in ("Latn", "Latin + Greek", "Greek+latin"):
        assert is_of_script("abc", scripts) and is_of_script("äbç", scripts)
    filters = FilterConfig(scripts=("Latein", "x"))
    with pytest.raises(ValueError, match="scripts of Unicode.*'Latein'"):
        write_corpus([], "nowhere", filters=filters)


@pytest.mark.slow
def test_number_of_processes_does_not_change_the_corpus(tmp_path, small_chunks):
    one = write(tmp_path / "one", processes=1)
    assert one.parts[0] > one.parts[1] > 0
    assert one.parts[0] + one.parts[1] == len(one)
    left_out = [e["count"] for e in (one.skipped | one.filtered).values()]
    assert sum(left_out) == 2000 - len(one)
    two = write(tmp_path / "two", processes=2)
    assert file_contents(one) == file_contents(two)
    with pytest.raises(ValueError, match="Pair x.tsv:1 cannot be used"):
        write(tmp_path / "strict", max_skipped=0.0, processes=2)


@pytest.mark.usefixtures("small_chunks")
def test_pairs_without_places_are_numbered_across_chunks(tmp_path):
    pairs = [(f"a {i}", f"b {i}") for i in range(350)]
    pairs[123], pairs[249] = ("", "x"), ("same", "same")
    filters = FilterConfig(identical=True)
    corpus = write_corpus(iter(pairs), tmp_path / "a", filters=filters)
    assert corpus.skipped["empty source"]["first_lines"] == [124]
    assert corpus.filtered["identical sides"]["first_lines"] == [250]
    with pytest.raises(ValueError, match="Pair 124 cannot be used"):
        write_corpus(iter(pairs), tmp_path / "b", max_skipped=0.0)


def test_pending_chunks_are_limited(monkeypatch):
    given = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, max_workers, env, initializer, initargs):
            super().__init__(max_workers)

        def shutdown(self, **_):
            super().shutdown()

    monkeypatch.setattr(loky, "ProcessPoolExecutor", Pool)
    chunks = (given.append(i) or i for i in range(100))
    for done, result in enumerate(corpus_writer.map_chunks(str, chunks, 3, 5)):
        assert result == str(done)
        assert len(given) - done <= 2 * 3 + 1
    assert done == 99


def test_writing_starts_over_after_a_kill(tmp_path, small_chunks):
    expected = file_contents(write(tmp_path / "whole"))

    def interrupted_pairs():
        yield from list(noisy_pairs(2000))[:700]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "killed", interrupted_pairs())
    with pytest.raises(FileNotFoundError):
        Corpus.open(tmp_path / "killed")
    assert file_contents(write(tmp_path / "killed")) == expected


def test_other_files_of_the_folder_stay(tmp_path):
    (tmp_path / "source.en").write_text("mine")
    write(tmp_path)
    (tmp_path / "source.ids.1.bin").touch()  # of the old corpus
    write(tmp_path)
    assert (tmp_path / "source.en").read_text() == "mine"
    assert not (tmp_path / "source.ids.1.bin").exists()


def test_full_shared_memory_is_reported(monkeypatch):
    full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    monkeypatch.setattr(loky, "ProcessPoolExecutor", full)
    with pytest.raises(OSError, match=r"No space.*/dev/shm.*processes=1"):
        list(corpus_writer.map_chunks(str, "ab", 2))


def killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_killed_workers_are_reported():
    with pytest.raises(OSError, match="was killed, (?s:.*)data.processes=1"):
        list(corpus_writer.map_chunks(killed, "ab", 2))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported_with_the_file(tmp_path, monkeypatch):
    full = Path("/dev/full")
    monkeypatch.setattr(corpus_writer, "text_path", lambda *_: full)
    with pytest.raises(OSError, match="/dev/full could not be.*disk is full"):
        write_corpus([("a", "b")], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(number):
    program = (
        "import os, time\n"
        "from luong_keras.data.corpus_writer import map_chunks\n"
        "def work(_):\n"
        "    time.sleep(0.1)\n"
        "    return os.getpid()\n"
        "for found in map_chunks(work, range(10**9), 2):\n"
        "    print(found, flush=True)\n"
    )
    with start_program(program) as parent:
        workers = set()
        while len(workers) < 2:
            workers.add(Path("/proc", parent.stdout.readline().strip()))
        assert all(worker.exists() for worker in workers)
        parent.send_signal(number)
        end = time.monotonic() + 60
        while any(worker.exists() for worker in workers):
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.slow
def test_workers_load_no_keras_and_ignore_ctrl_c():
    def loaded(_):
        handler = signal.getsignal(signal.SIGINT)
        return luong_keras.__version__, "keras" in sys.modules, handler

    found, _ = corpus_writer.map_chunks(loaded, "ab", 2)
    assert found == (luong_keras.__version__, False, signal.SIG_IGN)
