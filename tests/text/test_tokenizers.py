"""Contract of both kinds of tokenizer, and their export."""

import shutil
from functools import partial
from pathlib import Path

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from luong_keras.special_tokens import SPECIAL_TOKENS, UNK_ID
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    VocabularySizeError,
)
from luong_keras.text.tokenizer import clean_text
from luong_keras.text.word_tokenizer import WordTokenizer
from tests.programs import run_program
from tests.text.strings import decoded

LINES = [
    "The cat sat on the mat.",
    "The dog, a big dog, sat on the cat!",
    "A cat and a dog.",
    "Größe über Übermut, sagt der Hund.",
]
make_words = partial(WordTokenizer.train, LINES, 50)
make_pieces = partial(SentencePieceTokenizer.train, LINES)
MAKERS = {
    "words": make_words,
    "pretokenized": partial(make_words, pretokenized=True),
    "bpe": partial(make_pieces, 64),
    "unigram": partial(make_pieces, 34, model_type="unigram"),
    "char": partial(make_pieces, 64, model_type="char"),
}
STRINGS = tf.TensorSpec([None], tf.string)
WORLD = [
    "Größe z.B. um 12:30 Uhr <x>",
    "我们今天去北京。他们去上海。",
    "東京に行きます。ｶﾀｶﾅ…½ ﬁ",
    "مرحبا بالعالم، كيف الحال؟",
    "Hi 😀 👩\u200d👩\u200d👧!",
]
SUBWORDS = {
    "normalization": {"normalization": "identity"},
    "coverage": {"character_coverage": 0.98},
    "bytes": {"byte_fallback": True, "character_coverage": 0.98},
    "symbols": {"user_defined_symbols": ["<x>", "…", "a,b", "我们"]},
    "all": {
        "model_type": "unigram",
        "normalization": "nfkc_cf",
        "byte_fallback": True,
        "user_defined_symbols": ["<x>"],
    },
    "char": {"model_type": "char", "byte_fallback": True},
}


@pytest.fixture(params=sorted(MAKERS), scope="module")
def tokenizer(request):
    return MAKERS[request.param]()


@pytest.mark.parametrize(
    "clear", [lambda: keras.utils.set_random_seed(1), keras.utils.clear_session]
)
def test_tokenizer_outlives_the_kernels(clear):
    text = tf.constant(LINES)
    for make in MAKERS.values():
        tokenizer = make()
        encode = tf.function(tokenizer.encode)
        before = encode(text).to_list()
        clear()
        assert encode(text).to_list() == before
        assert tokenizer.encode(text).to_list() == before


def test_known_text_is_restored(tokenizer):
    ids = tokenizer.encode(tf.constant(LINES))
    assert ids.dtype == tf.int32
    assert int(tf.reduce_min(ids.flat_values)) >= len(SPECIAL_TOKENS)
    assert int(tf.reduce_max(ids.flat_values)) < tokenizer.vocabulary_size
    assert decoded(tokenizer.decode(ids)) == LINES


def test_tokens_match_ids_and_keep_unknown_words(tokenizer):
    text = ["The 漢字 cat", "", "Zyx"]
    tokens, ids = tokenizer.tokens(text), tokenizer.encode(text)
    np.testing.assert_array_equal(tokens.row_lengths(), ids.row_lengths())
    assert UNK_ID in ids.flat_values.numpy()
    assert decoded(tokenizer.join(tokens)) == text


def test_lookup_takes_any_shape_and_any_id(tokenizer):
    size = tokenizer.vocabulary_size
    names = tokenizer.lookup(tf.constant([[0, 1, 2], [3, size, -1]]))
    expected = [[b"<pad>", b"<unk>", b"<s>"], [b"</s>", b"<unk>", b"<unk>"]]
    assert names.numpy().tolist() == expected
    assert tokenizer.lookup(tf.zeros([2, 0], tf.int32)).shape == (2, 0)


def test_special_tokens_in_text_are_ordinary_text(tokenizer):
    ids = tokenizer.encode(tf.constant(["<pad> </s> <s> cat"]))
    assert not {0, 2, 3} & set(ids.flat_values.numpy().tolist())


def test_decode_leaves_out_special_tokens(tokenizer):
    ids = tokenizer.encode(tf.constant(LINES[:1])).to_list()[0]
    marked = tf.ragged.constant([[2, *ids, 3, 0, 0]], tf.int32)
    assert decoded(tokenizer.decode(marked)) == LINES[:1]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "text",
    [
        *(b"\xff\xfe cat", b"cat\xc3", b"", b"\xc2\xa0", b"a\x00b"),
        *(b"\xed\xa0\x80", b" \n\r\t", b"The\xc2\xa0cat"),
    ],
)
def test_any_bytes_are_accepted(tokenizer, text):
    replaced = text.decode(errors="replace")
    texts = tf.constant([text, replaced])
    ids = tokenizer.encode(texts)
    first, second = ids.to_list()
    assert first == second and not {0, 2, 3} & set(first)
    if not isinstance(tokenizer, WordTokenizer):
        # SentencePiece's normalisation then takes these for spaces.
        replaced = replaced.replace("\ufffd", " ")
    expected = [" ".join(replaced.split())] * 2
    assert decoded(tokenizer.join(tokenizer.tokens(texts))) == expected
    if UNK_ID not in first:
        assert decoded(tokenizer.decode(ids)) == expected


def test_no_break_spaces_separate_words(tokenizer):
    first, second = tokenizer.encode(["The\u00a0cat", "The cat"]).to_list()
    assert first == second


@pytest.mark.slow_after_first
def test_empty_batches_inside_a_tf_function(tokenizer):
    @tf.function(input_signature=[STRINGS], autograph=False)
    def there_and_back(text):
        ids = tokenizer.encode(text)
        return ids.to_tensor(), tokenizer.decode(ids), tokenizer.tokens(text)

    ids, text, tokens = there_and_back(tf.zeros([0], tf.string))
    assert (ids.shape, text.shape, tokens.nrows()) == ((0, 0), (0,), 0)
    _, text, _ = there_and_back(tf.constant(LINES))
    assert decoded(text) == LINES


def test_save_and_load(tokenizer, tmp_path):
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert type(loaded) is type(tokenizer)
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.encode(LINES).to_list() == tokenizer.encode(LINES).to_list()


@pytest.mark.slow_after_first
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_fingerprints_are_deterministic_and_depend_on_options(kind):
    make = MAKERS[kind]
    assert make().fingerprint == make().fingerprint
    lower = make(lowercase=True)
    assert lower.fingerprint != make().fingerprint
    first, second = lower.encode(["ÜBERMUT DOG", "übermut dog"]).to_list()
    assert first == second


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, "The Cat 's hat , 3.5 Ü !"),
        ({"lowercase": True}, "the cat 's hat , 3.5 ü !"),
        ({"pretokenized": True}, "The Cat 's hat, 3.5 Ü!"),
        ({"pretokenized": True, "lowercase": True}, "the cat 's hat, 3.5 ü!"),
    ],
)
@pytest.mark.parametrize("maker", ["train", "from_words", "loaded"])
def test_each_option_of_a_word_tokenizer(maker, options, tokens, tmp_path):
    text, tokens = ["The Cat 's hat, 3.5 Ü!"], tokens.split()
    if maker == "train":
        made = WordTokenizer.train(text, 50, **options)
        words = sorted(tokens, key=str.encode)  # each occurs once
    else:
        made, words = WordTokenizer.from_words(tokens, **options), tokens
    if maker == "loaded":
        made.save(tmp_path, "name")
        made = load_tokenizer(tmp_path, "name")
    defaults = {"pretokenized": False, "lowercase": False}
    assert made.options == defaults | options
    assert made.tokens(text).to_list() == [[word.encode() for word in tokens]]
    assert made.encode(text).to_list() == [[4 + words.index(w) for w in tokens]]
    joined = decoded(made.join(made.tokens(text)))
    assert joined == ([text[0].lower()] if "lowercase" in options else text)


def test_each_option_of_a_subword_tokenizer(tmp_path):
    text = ["Abba abba ﬁn ﬁn x"] * 9

    def pieces(**options):
        made = SentencePieceTokenizer.train(text, 20, **options)
        return made, set(b"".join(made.tokens(text[:1]).to_list()[0]).decode())

    made, characters = pieces()
    assert made.options == {"lowercase": False}
    # A ligature becomes its letters.
    assert characters == set("▁Aabfinx")
    made, characters = pieces(lowercase=True)
    assert characters == set("▁abfinx")
    made.save(tmp_path, "name")
    loaded = load_tokenizer(tmp_path, "name")
    assert loaded.options == made.options == {"lowercase": True}
    assert loaded.tokens(["ABBA"]).to_list() == made.tokens(["abba"]).to_list()
    _, characters = pieces(normalization="identity")
    assert characters == set("▁Aabﬁnx")
    # One letter of more than a hundred is not worth a subword.
    text.append("Q")
    for coverage, missing in ((0.98, True), (1.0, False)):
        made, _ = pieces(character_coverage=coverage)
        assert (UNK_ID in made.encode(["Q"]).to_list()[0]) is missing
    made = SentencePieceTokenizer.train(text, 280, byte_fallback=True)
    (tokens,) = made.tokens(["é"]).to_list()
    assert tokens == ["▁".encode(), b"<0xC3>", b"<0xA9>"]
    made, _ = pieces(user_defined_symbols=["ba"])
    assert made.tokens(["Abba"]).to_list()[0][-1] == b"ba"
    assert decoded(made.lookup([4])) == ["ba"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"model_type": "words"}, "model_type.*Received: model_type='words'"),
        ({"normalization": "nfc"}, "Received: normalization='nfc'"),
        ({"character_coverage": 0.5}, "0.98 to 1. Received: .*0.5"),
        ({"user_defined_symbols": ["a b"]}, "Received: 'a b'"),
        (
            {"user_defined_symbols": ["A"], "lowercase": True},
            "Received: 'A' among",
        ),
        ({"user_defined_symbols": "<x>"}, "one string, '<x>'"),
    ],
)
def test_invalid_options_of_a_subword_tokenizer(options, message):
    with pytest.raises(ValueError, match=message):
        SentencePieceTokenizer.train(LINES, 64, **options)


def export(tracked, function, folder):
    """Export a function of strings, with what it uses, as `f`."""
    archive = keras.export.ExportArchive()
    archive.track(tracked)
    archive.add_endpoint("f", function, [STRINGS])
    archive.write_out(str(folder), verbose=False)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("options", sorted(SUBWORDS))
def test_ids_equal_those_of_sentencepiece_and_of_an_export(options, tmp_path):
    has_bytes = SUBWORDS[options].get("byte_fallback", False)
    size = {"char": 400, "all": 320, "bytes": 320}.get(options, 100)
    made = SentencePieceTokenizer.train(WORLD, size, **SUBWORDS[options])
    text = [*WORLD, "<x>北京😂 ﬁn… a,b Ж <s>", ""]
    ids = made.encode(text).to_list()
    restored = decoded(made.decode(made.encode(text)))
    # SentencePiece itself, without TensorFlow.
    model = made.file_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert ids == processor.encode(text)
    made.save(tmp_path, "pieces")
    loaded = load_tokenizer(tmp_path, "pieces")
    assert loaded.encode(text).to_list() == ids

    def there_and_back(text):
        found = loaded.encode(text)
        return found.to_tensor(), loaded.decode(found)

    export(loaded, there_and_back, tmp_path / "exported")
    served = tf.saved_model.load(tmp_path / "exported").f(tf.constant(text))
    padded = tf.ragged.constant(ids).to_tensor()
    np.testing.assert_array_equal(served[0], padded)
    assert decoded(served[1]) == restored
    if has_bytes:
        assert not any(UNK_ID in row for row in ids)
        assert "😂" in restored[-2]


def test_characters_are_left_out_only_on_request():
    # Four special tokens, the mark of a space, eleven characters.
    for kind in ("char", "bpe"):
        with pytest.raises(VocabularySizeError, match="overage` below") as e:
            SentencePieceTokenizer.train(["abcdefghijk"], 9, model_type=kind)
        assert e.value.nearest == 4 + 1 + 11
    made = SentencePieceTokenizer.train(["abcdefghijk"], 99, model_type="char")
    assert made.vocabulary_size == 4 + 1 + 11
    options = {"model_type": "char", "character_coverage": 0.99}
    made = SentencePieceTokenizer.train(["a" * 999 + "q"], 6, **options)
    assert made.encode(["q"]).to_list()[0][-1] == UNK_ID


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_errors_of_lines_are_raised_unchanged(error):
    def lines():
        yield from ["a cat"] * 10_000
        raise error

    with pytest.raises(error):
        SentencePieceTokenizer.train(lines(), 12)


def test_text_without_subwords_is_joined_as_written():
    tokenizer = SentencePieceTokenizer.train(["我们去北京。"] * 3, 15)
    text = ["我<s>们 </s> <unk> <pad>", "去 <b>"]
    assert decoded(tokenizer.join(tokenizer.tokens(text))) == text
    # Unknown words are decoded as by a word tokenizer.
    ids = tokenizer.encode(["我 cat 们"])
    assert decoded(tokenizer.decode(ids)) == ["我 <unk> 们"]
    # Words of another vocabulary, which replace unknown words.
    copied = tf.ragged.constant([["▁cat", "我", "▁", "▁<s>"], [], ["</s>"]])
    copied = copied.with_row_splits_dtype(tf.int32)  # as in a search
    assert decoded(tokenizer.join(copied)) == ["cat我 <s>", "", "</s>"]


def test_joined_text_is_one_line():
    options = {"byte_fallback": True, "normalization": "identity"}
    tokenizer = SentencePieceTokenizer.train(["a cat"] * 3, 264, **options)
    # Any byte can be sampled from a model.
    tokens = [["▁a", "<0x0A>", "▁cat", "<0x0D>", "<0x0A>"], ["<0x0A>", "a"]]
    joined = tokenizer.join(tf.ragged.constant(tokens))
    assert decoded(joined) == ["a cat ", "a"]


def test_model_types_differ_and_bpe_is_the_default():
    bpe, unigram, char = (
        make_pieces(40, model_type=kind).file_bytes()
        for kind in ("bpe", "unigram", "char")
    )
    assert make_pieces(40).file_bytes() == bpe
    assert len({bpe, unigram, char}) == 3


@pytest.mark.slow
def test_exports_contain_tokenizers_and_their_files(tmp_path):
    folder = tmp_path / "tokenizers"
    WordTokenizer.train(LINES[:2], 9).save(folder / "b", "text")
    SentencePieceTokenizer.train(LINES, 64).save(folder, "pieces")

    class Texts(tf.Module):
        def __init__(self):
            super().__init__()
            self.many = WordTokenizer.train(LINES, 50)
            self.few = load_tokenizer(folder / "b", "text")
            self.pieces = load_tokenizer(folder, "pieces")

        def convert(self, text):
            each = self.many, self.few, self.pieces
            return [made.decode(made.encode(text)) for made in each]

    texts = Texts()
    expected = [*map(decoded, texts.convert(tf.constant(LINES)))]
    export(texts, texts.convert, tmp_path / "exported")
    shutil.rmtree(folder)
    moved = shutil.move(tmp_path / "exported", tmp_path / "moved")
    received = tf.saved_model.load(moved).f(tf.constant(LINES))
    assert [*map(decoded, received)] == expected
    many, few, _ = expected
    assert few != many


@pytest.mark.slow
def test_the_file_of_a_word_table_lasts_as_long_as_its_process():
    """Check that equal tables share it, and that a fork does not remove it."""
    printed = run_program(
        "import os, sys\n"
        "from pathlib import Path\n"
        "from luong_keras.text.word_tokenizer import WordTokenizer\n"
        "files = {\n"
        "    WordTokenizer.from_words(words)._asset.asset_path.numpy()\n"
        "    for words in (['cat'], ['dog'], ['cat'])\n"
        "}\n"
        "if not (child := os.fork()):\n"
        "    sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(*(file.decode() for file in files), sep='\\n')\n"
        "assert all(map(os.path.isfile, files))\n"
    )
    files = printed.split()
    assert len(files) == 2
    assert not any(Path(file).parent.parent.exists() for file in files)


def test_load_refuses_damaged_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tokenizer"):
        load_tokenizer(tmp_path, "x")
    tokenizer = WordTokenizer.from_words(["a", "b", "c"])
    tokenizer.save(tmp_path, "x")
    file = tmp_path / "x.vocab"
    file.write_bytes(file.read_bytes()[:-2])  # One word less.
    with pytest.raises(ValueError, match="changed after"):
        load_tokenizer(tmp_path, "x")
    file.unlink()
    with pytest.raises(FileNotFoundError, match="no file.*x.vocab of a Word"):
        load_tokenizer(tmp_path, "x")
    (tmp_path / "x.json").write_text('{"kind": "letters"}')
    with pytest.raises(ValueError, match="sentencepiece"):
        load_tokenizer(tmp_path, "x")


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["tr_TR.UTF-8", "lt_LT.UTF-8"])
def test_lower_case_does_not_depend_on_the_locale(locale):
    test = f"{__file__}::test_lower_case_equals_pythons_except_in_unicode_14"
    program = f"import pytest\nsys.exit(pytest.main(['-q', {test!r}]))"
    assert "1 passed" in run_program(program, LC_ALL=locale, LANG=locale)


def test_lower_case_equals_pythons_except_in_unicode_14():
    unknown = {0x2C2F, 0xA7C0, 0xA7D0, 0xA7D6, 0xA7D8, *range(0x10570, 0x10596)}
    texts = [chr(c) for c in (*range(1, 0xD800), *range(0xE000, 0x20000))]
    lowered = decoded(clean_text(tf.constant(texts), lowercase=True))
    different = {
        ord(text)
        for text, found in zip(texts, lowered, strict=True)
        if text.lower() != found
    }
    assert different <= unknown
    texts = ["", "A\0B\0", "\0", "ΑΣ\0ΑΣ. ΣΑ", "İI", "I\u0300Į\u0303J\u0301"]
    lowered = decoded(clean_text(tf.constant([texts]), lowercase=True)[0])
    assert lowered == [text.replace("\0", " ").lower() for text in texts]
