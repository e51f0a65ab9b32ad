"""Choice of the best epoch and its metric for any target language."""

import dataclasses
import json
import random

import keras
import numpy as np
import pytest

from luong_keras.cli.main import main
from luong_keras.evaluation import Metric
from luong_keras.evaluation.metrics import registry
from luong_keras.evaluation.plots import plot_alignment
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import best_of
from luong_keras.recipe import stages
from luong_keras.recipe.stored_settings import run_config
from luong_keras.report.page import write_page
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.recipe.quick_runs import arrays, quick_runs

pytestmark = pytest.mark.tensorflow
TINY = {
    "units": 8,
    "embedding_size": 6,
    "batch_size": 64,
    "beam_size": 1,
    "training.samples": 0,
    # Untrained models write translations of the maximum length.
    "decoding.max_length_ratio": 0.0,
    "decoding.max_length_offset": 3,
}


def inflected(count):
    """Draw pairs of a stem with a tag, and the inflected form."""
    draw = random.Random(1)
    endings = {"PAST": "ed", "PLURAL": "s", "GERUND": "ing"}
    stems = {
        "".join(draw.choices("abdegiklmnoprstu", k=6)) for _ in range(count)
    }
    tags = [draw.choice(list(endings)) for _ in stems]
    return [
        (f"{stem} {tag}", stem + endings[tag])
        for stem, tag in zip(sorted(stems), tags, strict=True)
    ]


def chinese(count):
    """Draw short sentences and translations in Chinese, without spaces."""
    draw = random.Random(2)
    parts = [
        {"the man": "那个男人", "my sister": "我的姐姐", "a horse": "一匹马"},
        {"sees": "看见", "draws": "画", "finds": "找到"},
        {"the bridge": "那座桥", "a lamp": "一盏灯", "old shoes": "旧鞋"},
        {"today": "今天", "at night": "晚上", "again": "又"},
    ]
    pairs = set()
    while len(pairs) < count:
        who, what, whom, when = (draw.choice(list(part)) for part in parts)
        number = draw.randint(2, 99)
        target = parts[0][who] + parts[3][when] + parts[1][what]
        target += f"{parts[2][whom]}{number}次。"
        pairs.add((f"{who} {what} {whom} {number} times {when}.", target))
    return sorted(pairs)


@pytest.fixture
def quick(monkeypatch):
    """Train quickly, and restore the registered metrics."""
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    with quick_runs():
        yield


@pytest.mark.parametrize("case", ["a word", "no word", "no translation"])
def test_runs_end_without_a_word_to_plot(tmp_path, quick, monkeypatch, case):
    def nbest(translator, *arguments, **options):
        found = original(translator, *arguments, **options)
        if case == "no translation":
            return [[] for _ in found]
        if is_empty:
            end = {"text": "", "tokens": [], "alignments": np.zeros((0, 3))}
            found = [[dataclasses.replace(best, **end)] for best, *_ in found]
        return found

    def best_by_place(translator, lines, advance):
        yield from enumerate(map(best_of, nbest(translator, lines)))

    original, is_empty = TextTranslator.nbest, case != "a word"
    monkeypatch.setattr(TextTranslator, "nbest", nbest)
    monkeypatch.setattr(TextTranslator, "best_by_place", best_by_place)
    monkeypatch.setattr(stages, "plot_alignment", plot_alignment)
    folder = tmp_path / "run"
    Translator.fit(inflected(60), run_dir=folder, **TINY, epochs=1)
    run = RunFolder(folder)
    first, *_ = run.translations.read_text().split("\n")
    assert (first == "") == is_empty
    assert (run.plots / "alignment.png").exists() != is_empty
    assert results(folder)["set"] == "test"


def test_runs_and_the_rest_of_the_process_are_independent(tmp_path, quick):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        Translator.fit(inflected(60), run_dir=tmp_path, **TINY, epochs=1)
    finally:
        keras.config.set_dtype_policy("float32")
    drawn = random.random()
    # The snapshot has no variables of a loss scale.
    Translator.fit(inflected(60), run_dir=tmp_path, **TINY, epochs=2)
    assert len(logs(tmp_path)) == 2
    assert random.random() != drawn  # The seed of the run is not the caller's.


def logs(folder):
    lines = RunFolder(folder).log.read_text().splitlines()
    return [json.loads(line) for line in lines]


def results(folder):
    return json.loads(RunFolder(folder).results.read_text().splitlines()[-1])


def same(first, second):
    first, second = arrays(first), arrays(second)
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_the_loss_decides_between_equal_scores(tmp_path, quick, capsys):
    """Train on one-word targets, whose BLEU is 0 in every epoch."""
    pairs = inflected(60)
    keep = {"training.keep": 3, "metric": "bleu"}
    Translator.fit(pairs, run_dir=tmp_path, epochs=3, **TINY, **keep)
    found = logs(tmp_path)
    assert [line["val_bleu"] for line in found] == [0, 0, 0]
    losses = [line["val_word_perplexity"] for line in found]
    assert losses == sorted(losses, reverse=True)
    run = RunFolder(tmp_path)
    assert same(run.best_weights, run.weights("epoch-3"))
    assert not same(run.best_weights, run.weights("epoch-1"))
    printed = capsys.readouterr().out
    assert printed.count("val_bleu has been 0 in all 3 epochs") == 1


@pytest.mark.slow
def test_one_word_targets_are_scored_by_exact_match(tmp_path, quick, capsys):
    pairs = inflected(60)
    Translator.fit(pairs, run_dir=tmp_path, epochs=1, **TINY)
    printed = capsys.readouterr().out
    (line,) = [x for x in printed.splitlines() if "best epoch is chosen" in x]
    assert "by exact_match: 6 of 6 references have fewer than four" in line
    assert ", exact match 0.00," in printed
    config = run_config(tmp_path)
    assert config.training.metric == "exact_match"
    assert config.data.target_language is None
    assert "val_exact_match" in logs(tmp_path)[0]
    assert results(tmp_path)["exact_match"] == {"score": 0.0}
    # The same call continues with the metric that the run has chosen.
    Translator.fit(pairs, run_dir=tmp_path, epochs=2, **TINY)
    assert "best epoch is chosen" not in capsys.readouterr().out
    assert run_config(tmp_path).training.metric == "exact_match"
    with pytest.raises(ValueError, match="metric: 'exact_match' → 'chrf'"):
        Translator.fit(pairs, run_dir=tmp_path, epochs=2, metric="chrf", **TINY)


@pytest.mark.slow
def test_chinese_targets_are_scored_with_the_chinese_tokenizer(
    tmp_path, quick, capsys
):
    pairs = chinese(60)
    Translator.fit(pairs, run_dir=tmp_path, epochs=1, **TINY)
    printed = capsys.readouterr().out
    assert "data.target_language is zh, by the text's script" in printed
    assert "data.source_language" not in printed
    assert (
        "best epoch is chosen by bleu:zh: the target language is zh" in printed
    )
    config = run_config(tmp_path)
    assert config.training.metric == "bleu:zh"
    assert config.data.languages == ("en", "zh")
    assert "val_bleu" in logs(tmp_path)[0]
    scores = results(tmp_path)
    assert "|tok:zh|" in scores["bleu:zh"]["signature"]
    assert "|tok:13a|" in scores["bleu"]["signature"]
    page = write_page([tmp_path], tmp_path / "page.html", alignments=False)
    assert "|tok:zh|" in page.read_text()
    assert main(["evaluate", "--run-dir", str(tmp_path)]) == 0
    assert "|tok:zh|" in results(tmp_path)["bleu:zh"]["signature"]


@pytest.mark.slow
def test_given_languages_are_not_detected(tmp_path, quick, capsys):
    given = {"data.source_language": "en", "data.target_language": "yue"}
    Translator.fit(
        chinese(60), run_dir=tmp_path, preset="small", epochs=1, **TINY, **given
    )
    assert "script" not in capsys.readouterr().out
    config = run_config(tmp_path)
    assert config.data.target_language == "yue"
    assert config.training.metric == "bleu:zh"


def test_a_custom_metric_chooses_the_best_epoch(tmp_path, quick, capsys):
    scores = iter([5.0, 3.0, 4.0, 2.5])  # three epochs, and the test
    mine = Metric("mine", lambda ours, theirs: next(scores), "min", "my score")
    keep = {"training.keep": 3, "metric": mine}
    pairs = inflected(60)
    Translator.fit(pairs, run_dir=tmp_path, epochs=3, **TINY, **keep)
    assert [line["val_mine"] for line in logs(tmp_path)] == [5, 3, 4]
    run = RunFolder(tmp_path)
    assert same(run.best_weights, run.weights("epoch-2"))
    assert results(tmp_path)["mine"] == {"score": 2.5}
    printed = capsys.readouterr().out
    assert "my score 4.0" in printed and "best 3.0" in printed
    assert run_config(tmp_path).training.metric == "mine"
    page = write_page([tmp_path], tmp_path / "page.html", alignments=False)
    assert "Validation my score" in page.read_text()
    # The run can be scored without the metric too.
    del registry._FACTORIES["mine"]
    assert main(["evaluate", "--run-dir", str(tmp_path)]) == 0
    assert "mine is left out of the scores" in capsys.readouterr().err
    assert "mine" not in results(tmp_path)


def test_unknown_metrics_are_refused_before_the_text_is_read(tmp_path, quick):
    with pytest.raises(ValueError, match="Did you mean chrf"):
        Translator.fit(inflected(60), run_dir=tmp_path, metric="chfr", **TINY)
    assert not RunFolder(tmp_path).corpus.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No font on this machine")
@pytest.mark.parametrize("text", [chinese, inflected])
def test_the_command_exports_the_best_epoch(tmp_path, text):
    """Check that the exported model scores as in the best epoch."""
    pairs = text(720)  # of which 144 are held out
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    command = f"train {path} --run-dir {tmp_path}/run --preset small-fast"
    command += " --units 64 --embedding-size 64 --dropout 0 --batch-size 16"
    command += " --learning-rate 0.004 --vocabulary-size 200 --epochs 12"
    command += " --set training.first_halved_epoch=9"
    assert main(command.split()) == 0
    folder = tmp_path / "run"
    config = run_config(folder)
    metric = registry.find_metric(config.training.metric)
    scores = [line[metric.key] for line in logs(folder)]
    assert max(scores) > max(scores[0], 5)
    greedy = config.decoding.with_(beam_size=1)
    translator = Translator.from_run(folder, decoding=greedy)
    dev = [
        json.loads(line)
        for line in RunFolder(folder).dev.read_text().splitlines()
    ]
    translations = translator.translate([source for source, _ in dev])
    found = metric.scored(translations, [target for _, target in dev])
    assert abs(found["score"] - max(scores)) < 2


ONES = [
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve"),
]
TENS = [
    *("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty"),
    "ninety",
]


def in_words(number):
    """Spell a number below 1,000 whose last two digits are not 13 to 19."""
    hundreds, rest = divmod(number, 100)
    tens, ones = divmod(rest, 10)
    words = [ONES[hundreds - 1], "hundred"] if hundreds else []
    words += ["and"] if hundreds and rest else []
    words += [ONES[rest - 1]] if 0 < rest <= 12 else []
    words += [TENS[tens - 2]] if rest > 12 else []
    words += [ONES[ones - 1]] if rest > 12 and ones else []
    return " ".join(words)


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_the_default_command_learns_a_small_text(tmp_path, reverse):
    """Learn to spell numbers as words, or to read these words."""
    numbers = [n for n in range(1, 1000) if not 13 <= n % 100 <= 19]
    pairs = [(f"{n}", in_words(n)) for n in numbers]
    if reverse:
        pairs = [(f"it is {text} today", n) for n, text in pairs]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    run = RunFolder(tmp_path / "run")
    assert main(["train", str(path), "--run-dir", str(run.path)]) == 0
    test = [json.loads(line) for line in run.test.read_text().splitlines()]
    assert len(test) == len(pairs) // 10
    found = run.translations.read_text().splitlines()
    right = sum(text == pair[1] for text, pair in zip(found, test, strict=True))
    # 88 and 79 were right; 0 with the preset for tens of thousands of pairs.
    assert right >= 0.8 * len(test)
