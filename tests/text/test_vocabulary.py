import re
from unittest.mock import Mock

import pytest
import sentencepiece
import tensorflow as tf

from luong_keras.special_tokens import SPECIAL_TOKENS, UNK_ID
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.word_tokenizer import WordTokenizer


def words_of(tokenizer):
    return tokenizer.file_bytes().decode().split("\n")[:-1]


def test_words_are_ordered_by_frequency_then_bytes():
    lines = ["b a c", "b d a", "b", "<s> <s> <s> <unk>"]
    tokenizer = WordTokenizer.train(lines, 7, pretokenized=True)
    assert words_of(tokenizer) == [*SPECIAL_TOKENS, "b", "a", "c"]
    assert tokenizer.vocabulary_size == 7
    again = WordTokenizer.train(lines[::-1], 7, pretokenized=True)
    assert again.fingerprint == tokenizer.fingerprint
    frequent = WordTokenizer.train(lines, 50, pretokenized=True, min_count=2)
    assert words_of(frequent) == [*SPECIAL_TOKENS, "b", "a"]
    assert frequent.vocabulary_size == 6


@pytest.mark.parametrize("size", [4, 0, -1])
def test_training_needs_a_word_and_room_for_it(size):
    with pytest.raises(ValueError, match="at least 5"):
        WordTokenizer.train(["a"], size)
    with pytest.raises(ValueError, match="No word occurs 3 times"):
        WordTokenizer.train(["a a"], 10, min_count=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the\na\n", "starts with the lines"),
        (b"", "starts with the lines"),
        (b"<unk>\n<pad>\n<s>\n</s>\na\n", "starts with the lines"),
        (b"<pad>\n<unk>\n<s>\n</s>\na\nb\na\n", "line 5 and in line 7"),
        (b"<pad>\n<unk>\n<s>\n</s>\na\n\nb\n", "Line 6"),
        (b"<pad>\n<unk>\n<s>\n</s>\na b\n", "Line 5"),
        (b"<pad>\n<unk>\n<s>\n</s>\na\r\nb\r\n", "Line 5"),
        (b"<pad>\n<unk>\n<s>\n</s>\n\xff\n", "not UTF-8"),
    ],
)
def test_bad_vocabularies_are_refused(tmp_path, content, message):
    path = tmp_path / "bad.vocab"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordTokenizer(path)


def test_a_vocabulary_may_lack_the_last_line_end(tmp_path):
    path = tmp_path / "v"
    path.write_bytes(b"<pad>\n<unk>\n<s>\n</s>\nx")
    tokenizer = WordTokenizer(path)
    assert tokenizer.vocabulary_size == 5
    assert tokenizer.encode(tf.constant(["x"])).to_list() == [[4]]


def test_a_rare_word_is_unknown_but_keeps_its_spelling():
    tokenizer = WordTokenizer.from_words(["a", "b"])
    text = tf.constant(["a zebra b"])
    assert tokenizer.encode(text).to_list() == [[4, 1, 5]]
    assert tokenizer.tokens(text).to_list() == [[b"a", b"zebra", b"b"]]


def test_each_tokenizer_reads_its_file_as_it_is(tmp_path, monkeypatch):
    text = tf.constant(["b a"])
    WordTokenizer.from_words(["a", "b"]).save(tmp_path, "words")
    first = load_tokenizer(tmp_path, "words")
    WordTokenizer.from_words(["c", "a", "b"]).save(tmp_path, "words")
    second = load_tokenizer(tmp_path, "words")
    assert second.encode(text).to_list() == [[6, 5]]
    assert second.lookup([4]).numpy().tolist() == [b"c"]
    assert first.encode(text).to_list() == [[5, 4]]
    # A relative path is that of the folder of the call.
    for folder, words in (("one", ["a", "b"]), ("two", ["b", "a"])):
        WordTokenizer.from_words(words).save(tmp_path / folder, "words")
        monkeypatch.chdir(tmp_path / folder)
        ids = WordTokenizer("words.vocab").encode(text).to_list()
        assert ids == [[4 + words.index("b"), 4 + words.index("a")]]


@pytest.mark.parametrize(
    ("word", "received"),
    [
        *(("a\nb", r"'a\nb'."), ("a b", "'a b'."), ("a\r", r"'a\r'.")),
        *(("", "''."), ("x", "'x' twice."), ("<s>", "'<s>' twice.")),
    ],
)
def test_words_that_are_no_line_of_their_own_are_refused(word, received):
    with pytest.raises(ValueError, match=re.escape(f"Received: {received}")):
        WordTokenizer.from_words(["x", "y", word])


def test_subwords_are_learned_from_long_lines_and_reserved_characters():
    long_line = "Ω " * 20_000 + "▅"
    made = SentencePieceTokenizer.train(["a b c", long_line], 10)
    assert UNK_ID not in made.encode(["Ω"]).to_list()[0]


def test_a_half_replaced_tokenizer_does_not_exist(tmp_path, monkeypatch):
    WordTokenizer.from_words(["a"]).save(tmp_path, "words")
    fail = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("luong_keras.text.tokenizer.write_json", fail)
    with pytest.raises(KeyboardInterrupt):
        WordTokenizer.from_words(["b"]).save(tmp_path, "words")
    with pytest.raises(FileNotFoundError, match="no tokenizer"):
        load_tokenizer(tmp_path, "words")


@pytest.mark.parametrize("kind", [WordTokenizer, SentencePieceTokenizer])
def test_missing_files(kind):
    message = f"no file.*{kind.__name__}.train"
    with pytest.raises(FileNotFoundError, match=message):
        kind("/nonexistent/file")


def test_corrupt_models_and_models_with_other_ids_are_refused(tmp_path):
    path = tmp_path / "pieces.model"
    path.write_bytes(b"no model at all")
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        SentencePieceTokenizer(path)
    lines = iter(["a cat sat", "a dog"])
    options = {"vocab_size": 20, "model_type": "bpe", "minloglevel": 2}
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines, model_writer=file, **options
        )
    with pytest.raises(ValueError, match="pad_id=0"):
        SentencePieceTokenizer(path)


@pytest.mark.parametrize(
    ("lines", "size", "message"),
    [
        (["a cat"], 5000, "smaller `vocabulary_size`"),
        (["the quick brown fox"], 6, "larger `vocabulary_size`"),
        ([], 100, "no sentence"),
        (["a b c", "a " * 100_001], 10, "Received: b'a a .*, of 200,002"),
    ],
)
def test_impossible_subword_vocabularies_are_refused(lines, size, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(lines, size)
