import dataclasses
import errno
import functools
import json
import math
from typing import NamedTuple

import numpy as np
import pytest

from luong_keras.config import DataConfig
from luong_keras.inference.translation import ScoredTranslation, Translation
from luong_keras.recipe.evaluation import (
    Evaluation,
    preprocessor,
    text_scores,
    with_progress,
    write_results,
)
from luong_keras.special_tokens import EOS_ID
from luong_keras.truncation import TruncatedPlaces, cut_pairs
from tests.serving.tiny_translator import tiny_translator
from tests.terminals import terminal

PAIRS = [
    ("the cat sees a dog .", "die Katze sieht einen Hund ."),
    ("a house", "das Haus"),
    ("the dog .", "die Hund ."),
]
PLAIN = DataConfig(dataset="phrasebook")


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(beam_size=1, batch_size=2)


@pytest.fixture
def answers(translator, monkeypatch):
    """Return a function that sets the translations and records the inputs."""
    inputs = []

    def answer(*lines):
        def nbest(sources, advance):
            inputs.append(list(sources))
            return [
                [Translation(text, 0.0, tokens.split(), [], np.eye(1), [])]
                for text, tokens in lines
            ]

        def join(tokens):
            return [" ".join(words) for words in tokens]

        decoding = dataclasses.replace(translator.decoding, batch_size=8)
        monkeypatch.setattr(translator, "decoding", decoding)
        monkeypatch.setattr(translator, "nbest", nbest)
        monkeypatch.setattr(translator, "join", join)
        return inputs

    return answer


@pytest.mark.slow
def test_perplexity_is_computed_over_the_reference_tokens(translator):
    total = words = 0
    for source, target in PAIRS:
        ids = translator.target_tokenizer.encode([target]).to_list()[0]
        source_ids = translator.source_tokenizer.encode([source]).to_list()
        logits = translator.translation_model.model(
            [np.array(source_ids), np.array([[2, *ids]])]
        )
        logits = np.asarray(logits, "float64")[0]
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total -= sum(log_p[i, w] for i, w in enumerate([*ids, EOS_ID]))
        words += len(ids) + 1
    evaluation = Evaluation(translator, PLAIN)
    found = evaluation.perplexity(evaluation.forced(PAIRS))
    assert math.isclose(found, math.exp(total / words), rel_tol=1e-5)


def test_scores_of_perfect_and_lowercased_translations(translator, answers):
    sources, references = zip(*PAIRS, strict=True)
    evaluation = Evaluation(translator, PLAIN)
    inputs = answers(*((line, line) for line in references))
    scores, translations = evaluation.scores(sources, references)
    assert inputs == [list(sources)]
    assert translations == list(references)
    for name in ("bleu", "bleu_lowercase", "bleu_tokenized"):
        assert scores[name]["score"] == pytest.approx(100)
        assert scores[name]["signature"]
    assert scores["sentences"] == 3
    assert sum(g["sentences"] for g in scores["bleu_by_length"]) == 3
    answers(*((line.lower(), line.lower()) for line in references))
    scores, _ = evaluation.scores(sources, references)
    assert scores["bleu"]["score"] < 50
    assert scores["bleu_lowercase"]["score"] == pytest.approx(100)


@pytest.mark.slow
def test_pretokenised_text_is_scored_without_tokenisation(translator, answers):
    data = dataclasses.replace(PLAIN, pretokenized=True, target_language="zh")
    evaluation = Evaluation(translator, data, ["bleu:none"])
    # 13a would split both lines into the same tokens; Moses would join them.
    line, split = "a,b c d @-@ z.B. <unk> .", "a , b c d @-@ z . B . < unk > ."
    answers((line, line))
    scores, translations = evaluation.scores(["x y"], [line])
    assert translations == [line]
    for name in ("bleu", "bleu_lowercase", "bleu_tokenized"):
        assert scores[name]["score"] == pytest.approx(100)
        assert "tok:none" in scores[name]["signature"]
    assert scores["bleu_by_length"][0]["bleu"] == pytest.approx(100)
    assert not [name for name in scores if name.startswith("bleu:")]
    answers((split, split))
    scores, _ = evaluation.scores(["x y"], [line])
    for name in ("bleu", "bleu_lowercase", "bleu_tokenized"):
        assert scores[name]["score"] < 50
    assert scores["bleu_by_length"][0]["bleu"] < 50


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


def test_alignment_errors_follow_the_attention_weights(translator, monkeypatch):
    # The last row is of the step that reads the last token.
    weights = [
        np.array([[1, 0], [0, 1], [0, 1]]),
        np.array([[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]]),
    ]
    inputs = []

    def score(sources, targets, advance):
        inputs.append((list(sources), list(targets)))
        return [
            ScoredTranslation(
                -1.0, [*target.split(), "</s>"], np.zeros(3), source.split(), w
            )
            for source, target, w in zip(sources, targets, weights, strict=True)
        ]

    monkeypatch.setattr(translator, "score", score)
    data = dataclasses.replace(PLAIN, lowercase=True)
    evaluation = Evaluation(translator, data)
    pairs = [("A b", "x Y"), ("c D", "z w")]
    # Target token t is linked to the source token of the largest weight.
    forced = evaluation.forced(pairs)
    error_rate = functools.partial(
        evaluation.alignment_error_rate, forced, pairs
    )
    assert error_rate(["0-0 1-1", "0-1 1-0"]) == 0
    assert error_rate(["0-0 1-1", "0-0 1-1"]) == pytest.approx(0.5)
    assert inputs == [(["A b", "c D"], ["x Y", "z w"])]
    decoding = dataclasses.replace(translator.decoding, alignment_step="reads")
    monkeypatch.setattr(translator, "decoding", decoding)
    assert error_rate(["1-0 1-1", "0-0 0-1"]) == 0


def test_the_preprocessor_follows_the_settings():
    assert preprocessor(PLAIN, "en") is None
    found = preprocessor(dataclasses.replace(PLAIN, lowercase=True), "en")
    assert found("It’s A Cat") == "it’s a cat"
    data = dataclasses.replace(PLAIN, normalize_punctuation=True)
    assert preprocessor(data, "en")("It’s") == "It's"


def test_results_are_appended_as_lines(tmp_path):
    path = tmp_path / "results.jsonl"
    for results in ({"bleu": 1.5}, {"text": "ä"}):
        write_results(path, results)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"bleu": 1.5},
        {"text": "ä"},
    ]
    assert "ä" in lines[1]
    # An incomplete line of a killed process does not spoil the next line.
    path.write_bytes(path.read_bytes()[:-3])
    write_results(path, {"bleu": 2.5})
    assert json.loads(path.read_text().splitlines()[2]) == {"bleu": 2.5}


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
