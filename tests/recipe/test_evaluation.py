import errno
import io
import json
from typing import NamedTuple

import pytest

from luong_keras.config import DataConfig
from luong_keras.files.atomic_file import read_json_lines
from luong_keras.recipe.evaluation import (
    Evaluation,
    text_scores,
    with_progress,
    write_results,
)
from luong_keras.truncation import TruncatedPlaces, cut_pairs
from tests.serving.tiny_translator import tiny_translator
from tests.terminals import terminal

PLAIN = DataConfig(dataset="phrasebook")


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(beam_size=1, batch_size=2)


@pytest.mark.parametrize(
    "long, short, means",
    [
        ("那个男人今天在花园里看见那座房子。", "我们喜欢猫。", [6, 17]),
        ("วันนี้ผู้ชายคนนั้นเห็นบ้านหลังนั้น", "ฉันรักแมว", [9, 34]),
        ("그 남자는 오늘 정원에서 그 집을 봅니다.", "나는 고양이를 봐요.", [5]),
    ],
    ids=["zh", "th", "ko"],
)
def test_bleu_by_length_counts_characters_without_spaces(long, short, means):
    text = [long, short]
    scores = text_scores(text, [f"{long}{short}", short], text, DataConfig())
    found = scores["bleu_by_length"]
    assert [group["mean_length"] for group in found] == means
    assert 50 < found[-1]["bleu"] < 90


def test_results_are_appended_as_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    for results in ({"bleu": 1.5}, {"text": "ä"}):
        write_results(path, results)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [*map(json.loads, lines)] == [{"bleu": 1.5}, {"text": "ä"}]
    assert "ä" in lines[1]
    # The incomplete line of a killed process is replaced.
    path.write_bytes(path.read_bytes()[:-3])
    write_results(path, {"bleu": 2.5})
    path.write_bytes(path.read_bytes()[:-1])  # Only the line end is missing.
    write_results(path, {"bleu": 3.5})
    assert [line["bleu"] for line in read_json_lines(path)] == [1.5, 2.5, 3.5]


def test_results_of_another_process_are_kept(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"

    class SlowFile(io.FileIO):
        def read(self):
            found = super().read()
            with open(path, "ab") as file:
                file.write(b'{"bleu": 1.5}\n')
            return found

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("pathlib.Path.open", lambda *given: SlowFile(*given))
        write_results(path, {"bleu": 2.5})
    assert [line["bleu"] for line in read_json_lines(path)] == [1.5, 2.5]


class Pair(NamedTuple):
    truncated: bool


LINES = ["a b", "a", "", "a b c d", "b", "c a b", "b a"]


@pytest.mark.slow
def test_all_lines_are_translated_in_one_call(translator):
    """Pass all lines at once, so that several batches can run in parallel."""
    lengths = []

    class Lines(list):
        def __iter__(self):
            lengths.append(len(self))
            return super().__iter__()

    evaluation = Evaluation(translator, PLAIN)
    found = evaluation.translations(Lines(LINES))
    assert lengths == [len(LINES)]
    assert [best.text for best in found] == translator.translate(LINES)
    # A test set of documents has no room for the alignments.
    found += evaluation.forced([(x, x) for x in LINES], alignments=False)
    assert all(result.alignments.size == 0 for result in found)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("method", ["translate", "nbest", "score"])
def test_progress_advances_by_batches(translator, monkeypatch, method):
    steps = []
    columns = [LINES, LINES] if method == "score" else [LINES]
    answer = getattr(translator, method)
    expected = answer(*columns)
    assert len(answer(*columns, advance=steps.append)) == len(LINES)
    assert steps == [2, 2, 2, 1]
    with terminal(monkeypatch) as seen:
        found = with_progress(answer, *columns, what="shouting")
    assert repr(found) == repr(expected)
    assert "shouting" in seen.text


def test_one_warning_lists_truncated_lines(capsys):
    def answer(lines, advance):
        cut = TruncatedPlaces()
        for place, line in enumerate(lines):
            cut.add(place, len(line) > 3)
        cut.warn(stacklevel=1)
        return lines

    assert with_progress(answer, LINES, what="shouting") == LINES
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("shouting: Expected") and "number 4, 6" in line

    def scored(lines, advance):
        cut_pairs(Pair(len(line) > 3) for line in lines).warn(stacklevel=1)
        return lines

    with_progress(scored, LINES, what="scoring")
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("scoring: 2 pairs (number 4, 6) were cut")


def test_results_that_cannot_be_written_say_why(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, "denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(PermissionError, match="results.jsonl could not be wri"):
        write_results(tmp_path / "results.jsonl", {"bleu": 2.5})
