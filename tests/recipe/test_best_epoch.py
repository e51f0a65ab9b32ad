"""Choice of the best epoch and its metric for any target language."""

import dataclasses
import random

import keras
import numpy as np
import pytest

from luong_keras.cli.main import main
from luong_keras.evaluation import Metric
from luong_keras.evaluation.metrics import registry
from luong_keras.evaluation.plots import plot_alignment
from luong_keras.files.atomic_file import read_json_lines
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import best_of
from luong_keras.recipe import stages
from luong_keras.recipe.stored_settings import run_config
from luong_keras.report.page import write_page
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.recipe import quick_runs
from tests.recipe.quick_runs import arrays, same, write_tsv

pytestmark = pytest.mark.tensorflow


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
def fit(tmp_path, monkeypatch):
    """Train a run of one epoch quickly, and restore the registered metrics."""

    def train(pairs=None, **settings):
        settings = quick_runs.TINY | {"batch_size": 64, "epochs": 1} | settings
        Translator.fit(pairs or inflected(60), run_dir=tmp_path, **settings)

    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    with quick_runs.quick_runs():
        yield train


@pytest.mark.parametrize("case", ["a word", "no word", "no translation"])
def test_runs_end_without_a_word_to_plot(tmp_path, fit, monkeypatch, case):
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
    fit()
    run = RunFolder(tmp_path)
    first, *_ = run.translations.read_text().split("\n")
    assert (first == "") == is_empty
    assert (run.plots / "alignment.png").exists() != is_empty
    assert results(tmp_path)["set"] == "test"


def test_runs_and_the_rest_of_the_process_are_independent(tmp_path, fit):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        fit()
    finally:
        keras.config.set_dtype_policy("float32")
    drawn = random.random()
    # The snapshot has no variables of a loss scale.
    fit(epochs=2)
    assert len(logs(tmp_path)) == 2
    assert random.random() != drawn  # The seed of the run is not the caller's.


def logs(folder):
    return read_json_lines(RunFolder(folder).log)


def results(folder):
    return read_json_lines(RunFolder(folder).results)[-1]


@pytest.mark.slow
def test_the_loss_decides_between_equal_scores(tmp_path, fit, capsys):
    """Train on one-word targets, whose BLEU is 0 in every epoch."""
    fit(epochs=3, metric="bleu", **{"training.keep": 3})
    found = logs(tmp_path)
    assert [line["val_bleu"] for line in found] == [0, 0, 0]
    losses = [line["val_word_perplexity"] for line in found]
    assert losses == sorted(losses, reverse=True)
    run = RunFolder(tmp_path)
    best, kept = arrays(run.best_weights), arrays(run.weights("epoch-3"))
    np.testing.assert_equal(best, kept)
    assert not same(run.best_weights, run.weights("epoch-1"))
    printed = capsys.readouterr().out
    assert printed.count("val_bleu has been 0 in all 3 epochs") == 1


@pytest.mark.slow
def test_one_word_targets_are_scored_by_exact_match(tmp_path, fit, capsys):
    fit()
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
    fit(epochs=2)
    assert "best epoch is chosen" not in capsys.readouterr().out
    assert run_config(tmp_path).training.metric == "exact_match"
    with pytest.raises(ValueError, match="metric: 'exact_match' → 'chrf'"):
        fit(epochs=2, metric="chrf")


@pytest.mark.slow
def test_chinese_targets_are_scored_with_the_chinese_tokenizer(
    tmp_path, fit, capsys
):
    fit(chinese(60))
    printed = capsys.readouterr().out
    assert "data.target_language is zh, by the text's script" in printed
    assert "data.source_language" not in printed
    chosen = "best epoch is chosen by bleu:zh: the target language is zh"
    assert chosen in printed
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
def test_given_languages_are_not_detected(tmp_path, fit, capsys):
    given = {"data.source_language": "en", "data.target_language": "yue"}
    fit(chinese(60), preset="small", **given)
    assert "script" not in capsys.readouterr().out
    config = run_config(tmp_path)
    assert config.data.target_language == "yue"
    assert config.training.metric == "bleu:zh"


def test_a_custom_metric_chooses_the_best_epoch(tmp_path, fit, capsys):
    scores = iter([5.0, 3.0, 4.0, 2.5])  # three epochs, and the test
    mine = Metric("mine", lambda ours, theirs: next(scores), "min", "my score")
    fit(epochs=3, metric=mine, **{"training.keep": 3})
    assert [line["val_mine"] for line in logs(tmp_path)] == [5, 3, 4]
    run = RunFolder(tmp_path)
    best, kept = arrays(run.best_weights), arrays(run.weights("epoch-2"))
    np.testing.assert_equal(best, kept)
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


def test_unknown_metrics_are_refused_before_the_text_is_read(tmp_path, fit):
    with pytest.raises(ValueError, match="Did you mean chrf"):
        fit(metric="chfr")
    assert not RunFolder(tmp_path).corpus.exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No font on this machine")
@pytest.mark.parametrize("text", [chinese, inflected])
def test_the_command_exports_the_best_epoch(tmp_path, text):
    """Check that the exported model scores as in the best epoch."""
    # 144 of the pairs are held out.
    path = write_tsv(tmp_path / "pairs.tsv", text(720))
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
    dev = read_json_lines(RunFolder(folder).dev)
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
    path = write_tsv(tmp_path / "pairs.tsv", pairs)
    run = RunFolder(tmp_path / "run")
    assert main(["train", path, "--run-dir", str(run.path)]) == 0
    test = read_json_lines(run.test)
    assert len(test) == len(pairs) // 10
    found = run.translations.read_text().splitlines()
    right = sum(text == pair[1] for text, pair in zip(found, test, strict=True))
    # 88 and 79 were right; 0 with the preset for tens of thousands of pairs.
    assert right >= 0.8 * len(test)
