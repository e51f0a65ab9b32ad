"""Contract of both kinds of tokenizer, and their export."""

import json
import shutil
from pathlib import Path

import keras
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

LINES = [
    "The cat sat on the mat.",
    "The dog, a big dog, sat on the cat!",
    "A cat and a dog.",
    "Größe über Übermut, sagt der Hund.",
]
MAKERS = {
    "words": lambda **options: WordTokenizer.train(LINES, 50, **options),
    "pretokenized": lambda **options: WordTokenizer.train(
        LINES, 50, pretokenized=True, **options
    ),
    "bpe": lambda **options: SentencePieceTokenizer.train(LINES, 64, **options),
    "unigram": lambda **options: SentencePieceTokenizer.train(
        LINES, 34, model_type="unigram", **options
    ),
    "char": lambda **options: SentencePieceTokenizer.train(
        LINES, 64, model_type="char", **options
    ),
}
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
    for make in MAKERS.values():
        tokenizer = make()
        encode = tf.function(tokenizer.encode)
        before = encode(tf.constant(LINES)).to_list()
        clear()
        assert encode(tf.constant(LINES)).to_list() == before
        assert tokenizer.encode(tf.constant(LINES)).to_list() == before


def test_known_text_is_restored(tokenizer):
    ids = tokenizer.encode(tf.constant(LINES))
    assert ids.dtype == tf.int32
    assert int(tf.reduce_min(ids.flat_values)) >= len(SPECIAL_TOKENS)
    assert int(tf.reduce_max(ids.flat_values)) < tokenizer.vocabulary_size
    decoded = [line.decode() for line in tokenizer.decode(ids).numpy()]
    assert decoded == LINES


def test_tokens_match_ids_and_keep_unknown_words(tokenizer):
    text = tf.constant(["The 漢字 cat", "", "Zyx"])
    tokens, ids = tokenizer.tokens(text), tokenizer.encode(text)
    assert tokens.row_lengths().numpy().tolist() == (
        ids.row_lengths().numpy().tolist()
    )
    assert UNK_ID in ids.flat_values.numpy()
    joined = tokenizer.join(tokens).numpy()
    assert [line.decode() for line in joined] == ["The 漢字 cat", "", "Zyx"]


def test_lookup_takes_any_shape_and_any_id(tokenizer):
    size = tokenizer.vocabulary_size
    names = tokenizer.lookup(tf.constant([[0, 1, 2], [3, size, -1]]))
    assert names.numpy().tolist() == [
        [b"<pad>", b"<unk>", b"<s>"],
        [b"</s>", b"<unk>", b"<unk>"],
    ]
    assert tokenizer.lookup(tf.zeros([2, 0], tf.int32)).shape == (2, 0)


def test_special_tokens_in_text_are_ordinary_text(tokenizer):
    ids = tokenizer.encode(tf.constant(["<pad> </s> <s> cat"]))
    assert not {0, 2, 3} & set(ids.flat_values.numpy().tolist())


def test_decode_leaves_out_special_tokens(tokenizer):
    ids = tokenizer.encode(tf.constant(LINES[:1])).to_list()[0]
    marked = tf.ragged.constant([[2, *ids, 3, 0, 0]], tf.int32)
    assert tokenizer.decode(marked).numpy()[0].decode() == LINES[0]


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
    expected = " ".join(replaced.split())
    joined = tokenizer.join(tokenizer.tokens(texts)).numpy()
    assert [line.decode() for line in joined] == [expected] * 2
    decoded = [line.decode() for line in tokenizer.decode(ids).numpy()]
    if UNK_ID not in first:
        assert decoded == [expected] * 2


def test_no_break_spaces_separate_words(tokenizer):
    text = tf.constant(["The\u00a0cat", "The cat"])
    first, second = tokenizer.encode(text).to_list()
    assert first == second


@pytest.mark.slow_after_first
def test_empty_batches_inside_a_tf_function(tokenizer):
    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )
    def there_and_back(text):
        ids = tokenizer.encode(text)
        return ids.to_tensor(), tokenizer.decode(ids), tokenizer.tokens(text)

    ids, text, tokens = there_and_back(tf.zeros([0], tf.string))
    assert (ids.shape, text.shape, tokens.nrows()) == ((0, 0), (0,), 0)
    _, text, _ = there_and_back(tf.constant(LINES))
    assert [line.decode() for line in text.numpy()] == LINES


def test_save_and_load(tokenizer, tmp_path):
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert type(loaded) is type(tokenizer)
    assert loaded.fingerprint == tokenizer.fingerprint
    text = tf.constant(LINES)
    assert loaded.encode(text).to_list() == tokenizer.encode(text).to_list()


@pytest.mark.slow_after_first
@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_fingerprints_are_deterministic_and_depend_on_options(kind):
    make = MAKERS[kind]
    assert make().fingerprint == make().fingerprint
    lower = make(lowercase=True)
    assert lower.fingerprint != make().fingerprint
    ids = lower.encode(tf.constant(["ÜBERMUT DOG", "übermut dog"])).to_list()
    assert ids[0] == ids[1]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["The", "Cat", "'s", "hat", ",", "3.5", "Ü", "!"]),
        (
            {"lowercase": True},
            ["the", "cat", "'s", "hat", ",", "3.5", "ü", "!"],
        ),
        ({"pretokenized": True}, ["The", "Cat", "'s", "hat,", "3.5", "Ü!"]),
        (
            {"pretokenized": True, "lowercase": True},
            ["the", "cat", "'s", "hat,", "3.5", "ü!"],
        ),
    ],
)
@pytest.mark.parametrize("maker", ["train", "from_words", "loaded"])
def test_each_option_of_a_word_tokenizer(maker, options, tokens, tmp_path):
    text = ["The Cat 's hat, 3.5 Ü!"]
    if maker == "train":
        made = WordTokenizer.train(text, 50, **options)
        words = sorted(tokens, key=str.encode)  # each occurs once
    else:
        made, words = WordTokenizer.from_words(tokens, **options), tokens
    if maker == "loaded":
        made.save(tmp_path, "name")
        made = load_tokenizer(tmp_path, "name")
    assert made.options == {
        "pretokenized": False, "lowercase": False, **options
    }  # fmt: skip
    assert made.tokens(text).to_list() == [[word.encode() for word in tokens]]
    assert made.encode(text).to_list() == [
        [4 + words.index(word) for word in tokens]
    ]
    joined = made.join(made.tokens(text)).numpy()[0].decode()
    expected = text[0].lower() if "lowercase" in options else text[0]
    assert joined == expected


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
    assert made.tokens(["é"]).to_list() == [
        ["▁".encode(), b"<0xC3>", b"<0xA9>"]
    ]
    made, _ = pieces(user_defined_symbols=["ba"])
    assert made.tokens(["Abba"]).to_list()[0][-1] == b"ba"
    assert made.lookup([4]).numpy().tolist() == [b"ba"]
    for options, message in (
        ({"model_type": "words"}, "model_type.*Received: model_type='words'"),
        ({"normalization": "nfc"}, "Received: normalization='nfc'"),
        ({"character_coverage": 0.5}, "0.98 to 1. Received: .*0.5"),
        ({"user_defined_symbols": ["a b"]}, "Received: 'a b'"),
        (
            {"user_defined_symbols": ["A"], "lowercase": True},
            "Received: 'A' among",
        ),
        ({"user_defined_symbols": "<x>"}, "one string, '<x>'"),
    ):
        with pytest.raises(ValueError, match=message):
            pieces(**options)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("options", sorted(SUBWORDS))
def test_ids_equal_those_of_sentencepiece_and_of_an_export(options, tmp_path):
    has_bytes = SUBWORDS[options].get("byte_fallback", False)
    size = {"char": 400, "all": 320, "bytes": 320}.get(options, 100)
    made = SentencePieceTokenizer.train(WORLD, size, **SUBWORDS[options])
    text = [*WORLD, "<x>北京😂 ﬁn… a,b Ж <s>", ""]
    ids, decoded = made.encode(text).to_list(), made.decode(made.encode(text))
    # SentencePiece itself, without TensorFlow.
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=made.file_bytes()
    )
    assert ids == processor.encode(text)
    made.save(tmp_path, "pieces")
    loaded = load_tokenizer(tmp_path, "pieces")
    assert loaded.encode(text).to_list() == ids
    archive = keras.export.ExportArchive()
    archive.track(loaded)

    def there_and_back(text):
        found = loaded.encode(text)
        return found.to_tensor(), loaded.decode(found)

    archive.add_endpoint(
        "f", there_and_back, [tf.TensorSpec([None], tf.string)]
    )
    archive.write_out(str(tmp_path / "exported"), verbose=False)
    served = tf.saved_model.load(tmp_path / "exported").f(tf.constant(text))
    padded = tf.ragged.constant(ids).to_tensor()
    assert served[0].numpy().tolist() == padded.numpy().tolist()
    assert served[1].numpy().tolist() == decoded.numpy().tolist()
    if has_bytes:
        assert not any(UNK_ID in row for row in ids)
        assert "😂" in decoded.numpy()[-2].decode()


def test_characters_are_left_out_only_on_request():
    # Four special tokens, the mark of a space, eleven characters.
    for kind in ("char", "bpe"):
        with pytest.raises(
            VocabularySizeError, match="overage` below"
        ) as caught:
            SentencePieceTokenizer.train(["abcdefghijk"], 9, model_type=kind)
        assert caught.value.nearest == 4 + 1 + 11
    made = SentencePieceTokenizer.train(["abcdefghijk"], 99, model_type="char")
    assert made.vocabulary_size == 4 + 1 + 11
    rare = ["a" * 999 + "q"]
    made = SentencePieceTokenizer.train(
        rare, 6, model_type="char", character_coverage=0.99
    )
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
    joined = tokenizer.join(tokenizer.tokens(text)).numpy()
    assert [line.decode() for line in joined] == text
    # Unknown words are decoded as by a word tokenizer.
    decoded = tokenizer.decode(tokenizer.encode(["我 cat 们"])).numpy()
    assert decoded[0].decode() == "我 <unk> 们"
    # Words of another vocabulary, which replace unknown words.
    copied = tf.ragged.constant([["▁cat", "我", "▁", "▁<s>"], [], ["</s>"]])
    copied = copied.with_row_splits_dtype(tf.int32)  # as in a search
    joined = tokenizer.join(copied).numpy()
    assert [line.decode() for line in joined] == ["cat我 <s>", "", "</s>"]


def test_joined_text_is_one_line():
    tokenizer = SentencePieceTokenizer.train(
        ["a cat"] * 3, 264, byte_fallback=True, normalization="identity"
    )
    # Any byte can be sampled from a model.
    tokens = [["▁a", "<0x0A>", "▁cat", "<0x0D>", "<0x0A>"], ["<0x0A>", "a"]]
    joined = tokenizer.join(tf.ragged.constant(tokens)).numpy()
    assert [line.decode() for line in joined] == ["a cat ", "a"]


def test_model_types_differ_and_bpe_is_the_default():
    found = {}
    for kind in ("bpe", "unigram", "char"):
        made = SentencePieceTokenizer.train(LINES, 40, model_type=kind)
        found[kind] = made.file_bytes()
    default = SentencePieceTokenizer.train(LINES, 40).file_bytes()
    assert found["bpe"] == default
    assert len({*found.values()}) == 3


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
            return {
                "many": self.many.decode(self.many.encode(text)),
                "few": self.few.decode(self.few.encode(text)),
                "pieces": self.pieces.decode(self.pieces.encode(text)),
            }

    texts = Texts()
    expected = texts.convert(tf.constant(LINES))
    archive = keras.export.ExportArchive()
    archive.track(texts)
    archive.add_endpoint(
        "convert", texts.convert, [tf.TensorSpec([None], tf.string)]
    )
    archive.write_out(str(tmp_path / "exported"), verbose=False)
    shutil.rmtree(folder)
    moved = shutil.move(tmp_path / "exported", tmp_path / "moved")
    received = tf.saved_model.load(moved).convert(tf.constant(LINES))
    for name in expected:
        assert received[name].numpy().tolist() == (
            expected[name].numpy().tolist()
        )
    assert expected["few"].numpy().tolist() != (
        expected["many"].numpy().tolist()
    )


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
    file, description = tmp_path / "x.vocab", tmp_path / "x.json"
    file.write_bytes(file.read_bytes()[:-2])  # One word less.
    with pytest.raises(ValueError, match="changed after"):
        load_tokenizer(tmp_path, "x")
    file.unlink()
    with pytest.raises(FileNotFoundError, match="no file.*x.vocab of a Word"):
        load_tokenizer(tmp_path, "x")
    description.write_text(json.dumps({"kind": "letters"}))
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
    lowered = clean_text(tf.constant(texts), lowercase=True).numpy()
    different = {
        ord(text)
        for text, found in zip(texts, lowered, strict=True)
        if text.lower() != found.decode()
    }
    assert different <= unknown
    texts = ["", "A\0B\0", "\0", "ΑΣ\0ΑΣ. ΣΑ", "İI", "I\u0300Į\u0303J\u0301"]
    lowered = clean_text(tf.constant([texts]), lowercase=True).numpy()[0]
    assert [text.decode() for text in lowered] == [
        text.replace("\0", " ").lower() for text in texts
    ]
