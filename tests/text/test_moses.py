"""Moses preprocessing in the graph against sacremoses."""

import functools
import gzip
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from luong_keras.text.moses import MosesGraph
from luong_keras.text.moses_rules import character_class
from luong_keras.text.preprocessing import Preprocessor, moses_tools
from tests.text.strings import decoded

TRICKY = [
    "",
    " \t\u00a0",
    "A man, a plan.",
    "Mr. Smith of the U.S.A. met Dr. J. Doe, e.g. here. He left.",
    "No. 5 and No. five and Art. 3, pp. 7 and pp. x",
    "A. B. c. D. e. F.",
    "Am 3. Mai usw. z.B. bzw. Nr. 7 d.h. ca. 5 km.",
    "M. Dupont et Mme. N.B. c.-à-d. ex. non.",
    "Wait... what.. .... .a ..b... 'so...' ...",
    "it's isn't I'll 'tis the Jones' house '99 80's rock'n'roll a'5 'a'",
    "L'homme qu'il n'a d' l' aujourd'hui ' C'",
    "don’t ‘quote’ ´acute´ `back` ``double'' ‚low’ l’eau",
    '"He said, "no"." \'She\' "yes," („ja“) « non » «oui» “a” " b ".',
    "well-known a - b -- c – d — e 3-4 a@-@b @-@ c @-@ @-@ d",
    "1,000.50 5,3 5, 3 a,b ,, ,a 5,a a,5 12, 1\u00a0000 .5 ½,½ ²,",
    "$5 £3 €7 5€ 20 % 3\u00a0% 5\u00a0ºC nº\u00a05 7\u00a0cm ( a ) [b] {c}",
    "a ( b ) . (c), (d): ; : ! ? ¿que? ¡no! a\u00a0! a\u00a0: \\ | < >",
    "漢字 かな カナ 한국 말 x漢 漢x 漢 、 。 ！",
    "\U0001f600 a\U0001f600b \U0001f1e9\U0001f1ea e\u0301 \u200b\ufeff",
    "a\x00b\x01c\x1bd\x1ce\x1ff\x7fg\x85h\ri\nj\tk \x02 l",
    "&amp; &quot;x&quot; R&D <b>c</b> a_b #tag @you ~ ^ * + = / a/b",
    "http://a.example/b?c=d#e f@g.example www.h.example",
    "ÄÖÜ ẞ İstanbul ΑΣ ΑΣ. ΣΑΣ",
    "x .a. B .5a. C .5. D",
    "Pages 3, 4, 5,",
    '\u0663 % \u0663\u00a0\u0663 "a."\u2009b ... "\u2009c',
    "The end.' The end.",
    "The end.'",
    'The end."',
    "The end .",
]
WORDS = [
    "s ' x ' y '",
    # A quotation mark that begins a sentence does not close the one before.
    "the cats",
    "' a ' b ' s ' c '",
    "boss ' ' s ' '' a '' `` b `` \" ' \" '",
    '„ a “ b “ c " d „ e „ f “',
    '“ a “ „ b „ " c "',
    "a 3 , 5 b 2 .",
    "3 4 . 5 6 .",
    "7 ,",
    "qu' il c' est d' 5 l' d'",
    "? a ; b ! : % \\ ( ¿ $ 5 ) , . !",
    "漢 字 . a 漢 b 한 국",
    # The last characters of three ranges.
    "漢 \u11ff 漢 \ufe4f 漢 \uffdc 漢",
    "'s 're a 'll '5 '",
    "EU :n x",
]
# Without the ideographs and syllables, which are all alike.
CODES = (*range(0x3100), *range(0xFB00, 0x10400), *range(0x1F000, 0x1FA00))
EVERYTHING = [chr(code) for code in CODES]
LANGUAGES = ["en", "de", "fr", "cs", "it", "ko"]
SETTINGS = [
    {},
    {"lowercase": True},
    {"normalize_punctuation": False},
    {"lowercase": True, "tokenize": False},
]


@functools.cache
def preprocessor_and_graph(language, **options):
    preprocessor = Preprocessor(language, **options)
    return preprocessor, MosesGraph(preprocessor)


def check_equal(texts, language, **options):
    """Check that the graph prepares and joins texts as sacremoses does."""
    preprocessor, graph = preprocessor_and_graph(language, **options)
    prepared = [preprocessor(text) for text in texts]
    assert decoded(graph.prepare(tf.constant(texts, tf.string))) == prepared
    words = [*prepared, *texts]
    finished = [preprocessor.postprocess(text) for text in words]
    assert decoded(graph.finish(tf.constant(words, tf.string))) == finished


@pytest.mark.parametrize("language", LANGUAGES)
def test_tricky_sentences_are_prepared_as_by_sacremoses(language):
    for options in SETTINGS:
        check_equal([*TRICKY, *WORDS], language, **options)


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "it", "hu"])
def test_every_abbreviation(language):
    tokenizer = moses_tools(language)["tokenizer"]
    numeric = tokenizer.NUMERIC_ONLY_PREFIXES
    words = sorted({*tokenizer.NONBREAKING_PREFIXES, *numeric})
    check_equal([f"x {w}. Y {w}. 5 {w}. {w}." for w in words], language)


@pytest.mark.slow
def test_every_character():
    words = [f"a{c}b,{c},'{c}' z. {c}" for c in EVERYTHING]
    texts = [" ".join(words[i : i + 256]) for i in range(0, len(words), 256)]
    preprocessor, graph = preprocessor_and_graph("en")
    prepared = decoded(graph.prepare(tf.constant(texts)))
    assert prepared == [preprocessor(text) for text in texts]


# Without surrogates, which are not UTF-8. Two differences are too rare to be
# drawn: "DOTMULTI", which sacremoses writes for dots, and capital letters of
# Unicode 14, which TensorFlow does not know.
PIECES = [
    *" .,'\"-`´‘’‚“”„«»–—…!?:;()[]{}<>|&@%$€¿ \u00a0\u2009\x00\x1c\n",
    *("...", "''", ".'", "s ' ", "@-@", " @-@ ", "\u00a0%", "5,3", "1\u00a00"),
    "it's",
    "l'eau",
    "U.S.",
    "e.g.",
    "No. 5",
    "Nr. ",
    "z.B.",
    "漢",
    "한",
    "Σ",
]
TOKENS = st.one_of(
    st.sampled_from(PIECES),
    st.sampled_from("aAsß5 "),
    st.text(st.characters(codec="utf-8"), max_size=3),
)
TEXT = st.lists(TOKENS, max_size=20).map("".join)
TEXTS = st.lists(TEXT, min_size=1, max_size=8)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_random_texts(language):
    @settings(max_examples=30, deadline=None)
    @given(TEXTS, st.booleans())
    def check(texts, lowercase):
        check_equal(texts, language, lowercase=lowercase)

    check()


def test_invalid_utf_8_is_replaced():
    _, graph = preprocessor_and_graph("en", lowercase=True)
    text = tf.constant([b"Caf\xe9, \xff\xfe.", b"\xf0\x9f", b"\xed\xa0\x80 a"])
    prepared = decoded(graph.prepare(text))
    assert prepared[0].startswith("caf \ufffd ,")
    assert all(decoded(graph.finish(text)))


def test_empty_batches():
    _, graph = preprocessor_and_graph("en")
    nothing = tf.constant([], tf.string)
    assert graph.prepare(nothing).shape == graph.finish(nothing).shape == [0]


def test_czech_words_that_break_sacremoses():
    # Its loop over a list calls `next` on the list.
    preprocessor, graph = preprocessor_and_graph("cs")
    words = "je-li d' - li x"
    with pytest.raises(TypeError, match="iterator"):
        preprocessor.postprocess(words)
    assert decoded(graph.finish(tf.constant([words]))) == [words]


def test_character_classes_match_only_their_characters():
    characters = "]^-\\[azb\x00\x01\u00e9\U0001f600"
    pattern = f"[{character_class(characters)}]"
    found = tf.strings.regex_full_match(tf.constant(EVERYTHING), pattern)
    matched = {EVERYTHING[place] for place in np.flatnonzero(found)}
    assert matched == set(characters)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("language", ["en", "de"])
def test_real_text(language, real_data):
    path = real_data("multi30k", f"train.{language}.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\n") for line in itertools.islice(file, 500)]
    check_equal(lines, language)
    check_equal(lines, language, lowercase=True)
