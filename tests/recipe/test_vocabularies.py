"""Vocabularies of a run, and sizes that the text does not allow."""

import json

import pytest

from luong_keras.cli.main import main
from luong_keras.config import (
    DataConfig,
    ModelConfig,
    RunConfig,
    SentencePieceConfig,
)
from luong_keras.config.values import with_values
from luong_keras.recipe import stages as recipe
from luong_keras.recipe.preparation import prepare_text
from luong_keras.recipe.vocabularies import (
    prepare_tokenizers,
    print_rewritten_references,
)
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.training.run_folder import RunFolder
from tests.recipe.quick_runs import write_tsv

pytestmark = pytest.mark.tensorflow
# the special tokens and the word-boundary mark
MORE = 5


@pytest.fixture
def tokenizers(tmp_path):
    def train(lines, size, **options):
        path = write_tsv(tmp_path / "text.tsv", zip(lines, lines, strict=True))
        subwords = {"tokenizer": "sentencepiece"}
        subwords["sentencepiece"] = SentencePieceConfig(**options)
        parts = dict.fromkeys(("train", "dev", "test"), path)
        data = DataConfig("files", **parts, **subwords)
        config = RunConfig(ModelConfig(size, size), data)
        run = RunFolder(tmp_path / "run")
        _, corpus = prepare_text(config, run)
        return prepare_tokenizers(corpus, config, run)

    return train


def test_a_linked_record_of_vocabularies_is_refused(tokenizers, tmp_path):
    tokenizers(["a b"] * 30, 30)
    record = tmp_path / "run" / "corpus" / "vocabularies.json"
    record.rename(tmp_path / "elsewhere")
    record.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="a link to .*elsewhere"):
        tokenizers(["a b"] * 30, 30)


@pytest.mark.parametrize(
    "options, more, message",
    [
        ({}, 0, "has many characters: 305 subwords"),
        ({"model_type": "char"}, 0, "has many characters: 305 subwords"),
        (
            {"byte_fallback": True},
            256,
            "has many characters, and there are 256 bytes: 561 subwords",
        ),
    ],
)
def test_vocabularies_grow_to_hold_all_characters(
    tokenizers, capsys, options, more, message
):
    han = [chr(0x4E00 + n) for n in range(300)]
    lines = ["".join(han[n : n + 10]) for n in range(0, 300, 10)]
    for tokenizer in tokenizers(lines, 100, **options):
        assert tokenizer.vocabulary_size == 300 + MORE + more
        decoded = tokenizer.decode(tokenizer.encode(lines)).numpy()
        assert [line.decode() for line in decoded] == lines
    printed = capsys.readouterr().out
    assert f"the source text {message}" in printed


def test_vocabularies_of_a_stopped_call_are_not_reused_for_others(
    tokenizers, monkeypatch
):
    lines = ["ab", "ba", "aab"] * 3
    sizes = [each.vocabulary_size for each in tokenizers(lines, 8)]
    # Training has not started, so other settings or text change them.
    assert [x.vocabulary_size for x in tokenizers(lines, 7)] < sizes
    for tokenizer in tokenizers(["xyz", "zyx"] * 3, 9):
        assert tokenizer.decode(tokenizer.encode(["xyz"])).numpy() == [b"xyz"]
    monkeypatch.setattr(SentencePieceTokenizer, "train", None)
    # The same call reuses them.
    for tokenizer in tokenizers(["xyz", "zyx"] * 3, 9):
        assert tokenizer.decode(tokenizer.encode(["xyz"])).numpy() == [b"xyz"]


def test_vocabularies_shrink_for_small_texts(tokenizers, capsys):
    for tokenizer in tokenizers(["ab", "ba", "aab"] * 3, 100):
        assert 2 + MORE <= tokenizer.vocabulary_size < 20
    assert "the source text is small: " in capsys.readouterr().out


PAIRS = [
    ("Der Hund kommt um 12:30 <x>", "狗十二点半来。<x>"),
    ("Die Katze, z.B. die kleine 😀", "猫，比如小猫😀。"),
    ("Größe 3.5 <unk> </s>", "大小３.５…"),
    ("ein Haus", "房子"),
]
SUBWORDS = [
    *("--data.tokenizer", "sentencepiece"),
    *("--data.sentencepiece.model-type", "unigram"),
    *("--data.sentencepiece.normalization", "identity"),
    *("--data.sentencepiece.character-coverage", "0.99"),
    "--data.sentencepiece.byte-fallback",
    *("--data.sentencepiece.user-defined-symbols", "<x>,小猫"),
]
WORDS = ["--data.tokenizer", "words", "--data.pretokenized"]


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Return a function that runs `luong-keras train` without training."""
    monkeypatch.setattr(recipe, "train", lambda *_, **__: False)
    path = write_tsv(tmp_path / "pairs.tsv", PAIRS * 3)
    sizes = ["vocabulary_size=900", "units=4", "embedding_size=4"]

    def call(*flags, status=None):
        flags = [*flags, "--dev", path, "--test", path, "--set", *sizes]
        argv = ["train", path, "--run-dir", str(call.run), *flags]
        found = main([*argv, "data.processes=1"])
        assert status is None or found == status
        return capsys.readouterr().err

    call.run = tmp_path / "run"
    return call


def test_runs_keep_the_subword_settings_of_the_flags(command):
    command(*SUBWORDS)
    source, target = (
        load_tokenizer(command.run, f"{side}_vocabulary")
        for side in ("source", "target")
    )
    # Full-width digits and the ellipsis are kept, user-defined symbols are
    # single tokens, and unknown characters are bytes.
    text = ["大小３.５… 小猫<x>", "Ж"]
    ids = target.encode(text)
    assert [line.decode() for line in target.decode(ids).numpy()] == text
    tokens = [token.decode() for token in target.tokens(text).to_list()[0]]
    assert tokens[-2:] == ["小猫", "<x>"]
    assert target.lookup([4, 5]).numpy()[0] == b"<x>"
    assert 1 not in ids.flat_values.numpy()
    decoded = source.decode(source.encode(["<unk> </s> <s>"])).numpy()[0]
    assert decoded == b"<unk> </s> <s>"
    kept = json.loads((command.run / "config.json").read_text())
    assert kept["data"]["sentencepiece"] == {
        "model_type": "unigram",
        "normalization": "identity",
        "character_coverage": 0.99,
        "byte_fallback": True,
        "user_defined_symbols": ["<x>", "小猫"],
    }
    fingerprint = target.fingerprint
    command(*SUBWORDS)  # The same command continues.
    again = load_tokenizer(command.run, "target_vocabulary")
    assert again.fingerprint == fingerprint
    error = command(*SUBWORDS[:-1], "<x>", status=2)
    assert "data.sentencepiece.user_defined_symbols" in error


def test_older_runs_without_subword_settings_continue(command):
    command(*SUBWORDS[:2])
    path = command.run / "config.json"
    values = json.loads(path.read_text())
    del values["data"]["sentencepiece"], values["data"]["pretokenized"]
    path.write_text(json.dumps(values))
    command(*SUBWORDS[:2])
    values = json.loads(path.read_text())
    assert values["data"]["sentencepiece"]["model_type"] == "bpe"


def test_pretokenised_text_is_not_tokenised(command):
    command(*WORDS)
    tokenizer = load_tokenizer(command.run, "source_vocabulary")
    text = [source for source, _ in PAIRS]
    tokens = tokenizer.tokens(text).to_list()
    assert tokens == [line.encode().split() for line in text]
    ids = tokenizer.encode(text)
    # Words spelled like special tokens are unknown words.
    assert ids.to_list()[2][2:] == [1, 1]
    decoded = [line.decode() for line in tokenizer.decode(ids).numpy()]
    assert decoded == [*text[:2], "Größe 3.5 <unk> <unk>", text[3]]
    kept = json.loads((command.run / "config.json").read_text())
    assert kept["data"]["pretokenized"] is True
    assert kept["training"]["metric"] in ("bleu:none", "chrf", "exact_match")
    error = command("--data.pretokenized=false", status=2)
    assert "data.pretokenized" in error


@pytest.mark.parametrize(
    "flags, message",
    [
        ([*WORDS[:2], *SUBWORDS[2:4]], "Expected: tokenizer='sentencepiece'"),
        ([*SUBWORDS[:2], "--data.pretokenized"], "Expected: tokenizer='words'"),
        ([*SUBWORDS, "--data.tokenize"], "turns into '< x >'"),
        (
            [*SUBWORDS[:-1], "<X>", "--data.lowercase"],
            "Received: '<X>', which data.",
        ),
    ],
)
def test_contradictory_settings_are_refused(command, flags, message):
    assert message in command(*flags, status=2)
    assert not (command.run / "corpus").exists()


@pytest.mark.parametrize(
    ("other", "rule"), [("a", "nfkc"), ("\uff1f", "identity")]
)
def test_a_rule_that_keeps_all_references_is_offered(other, rule, capsys):
    persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    data = DataConfig("files", tokenizer="sentencepiece")
    print_rewritten_references([persian, other], RunConfig(data=data))
    printed = capsys.readouterr().out
    assert printed.endswith(f"data.sentencepiece.normalization={rule}\n")


PUNCTUATION = {"data.normalize_punctuation": True, "data.lowercase": True}


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "2 of 3 references of data.dev have characters that the subwords"),
        ({"data.lowercase": True}, "'真的吗？ a' becomes '真的吗? a'. To keep"),
        ({"data.sentencepiece.normalization": "identity"}, ""),
        ({"data.tokenizer": "words"}, ""),
        (
            {"data.tokenizer": "words"} | PUNCTUATION,
            "1 of 3 references of data.dev have characters that "
            "data.normalize_punctuation rewrites, so no translation has them: "
            "'ein „satz“, ß.' becomes 'ein \"satz,\" ß.'. To keep them: --set "
            "data.normalize_punctuation=false\n",
        ),
        (PUNCTUATION, "2 of 3 references of data.dev have characters that the"),
    ],
)
def test_references_changed_by_the_subwords_are_reported(
    settings, line, capsys
):
    subwords = {"data.dataset": "files", "data.tokenizer": "sentencepiece"}
    config = with_values(RunConfig(), subwords | settings)
    references = [" ein  „Satz“, ß.", "真的吗？ A", "น้ำ"]
    print_rewritten_references(references, config)
    printed = capsys.readouterr().out
    assert line in printed and bool(line) == bool(printed)
