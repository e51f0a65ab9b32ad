"""Word splitting in the graph, against the tokenisation of sacreBLEU."""

import gzip

import pytest
import tensorflow as tf
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from luong_keras.text.word_splitting import join_13a, split_13a, split_at_spaces
from tests.text.strings import decoded

TRICKY = [
    "",
    " ",
    "a",
    "It's 3.5%, isn't it?",
    "1,000.50 and .5 and 5. and 5, 6",
    "1-2 a-b 3-d e-4 -5 --",
    "U.S.A. e.g. z.B. ... a..b ,,",
    "&quot;x&quot; &amp;lt; &lt;b&gt; R&D &unknown;",
    "a<skipped>b -\nc\nd",
    "a@b.de http://x.org/y_z?q=1#t ~user ^2 `q` \\n |p| {b} [c]",
    'he said "hello, (you)": no; yes!',
    "a\u00a0b\u2009c\u3000d\u2028e\u0085f\x0bg\x0ch\x1ci\x1dj\x1ek\x1fl\tm",
    "„Müller“ «là» 漢字。漢, ５.５ — – … €5 £3.2",
    "'tis '99 rock'n'roll ''quoted''",
    "\u200bzero\u200bwidth\ufeff",
    "e\u0301 \U0001f600, \U0001f600.",
    "a@3.5. b@3. 5 www.3. 5 x.3@y 1:2: 3 :4 z.B.C. www. a .b. c",
    "<unk> <s> </s> <pad> http : //x . org",
]


def received(ragged):
    return [[word.decode() for word in row] for row in ragged.to_list()]


def check_equal(lines):
    """Check the words against sacreBLEU, and again once they are joined."""
    tokenize = Tokenizer13a()
    words = split_13a(tf.constant(lines))
    assert received(words) == [tokenize(line).split() for line in lines]
    joined = join_13a(words)
    assert received(split_13a(joined)) == received(words)
    return decoded(joined)


def test_tricky_sentences_split_as_in_sacrebleu_also_when_joined():
    check_equal(TRICKY)


def test_white_space_is_that_of_python():
    lines = [*TRICKY, "".join(f"{chr(i)}a" for i in range(0x3100))]
    split = received(split_at_spaces(tf.constant(lines)))
    assert split == [line.split() for line in lines]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "sentence",
    [
        'He said: "Yes, it\'s (almost) 3.5%!"',
        "A 10-year-old and/or his dog; $5 each.",
        "Wait... what?",
        'A "B" and "C d".',
        "Er rief „Halt!“.",
        "user@host",
        "Um 12:30 Uhr, z.B. am 3.5. um 12:30:45.",
        "Es steht 3:2, d.h. (u.a.) 1:2:3:4.",
        "The U.S.A. at 5 p.m., i.e. now.",
        "Siehe www.example.com. Dann (www.uni-x.de/seite.html).",
        "http://www.example.org/a/b.html, https://x.org und Booking.com.",
        "Mail: max.muster@mail.cs.uni-x.ac.uk, info@x.de.",
        "Das Ende. Ein Anfang. 5 Euro, usw. und Dr. Müller, S. 5.",
        "مرحبا، 12:30. 我们 3:2。 Hallo 😀!",
    ],
)
def test_sentences_in_usual_spelling_are_restored(sentence):
    assert decoded(join_13a(split_13a(tf.constant([sentence])))) == [sentence]


@pytest.mark.slow
def test_real_text(real_data):
    for language in "en", "de":
        path = real_data("multi30k", f"train.{language}.gz")
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            lines = [next(file).rstrip("\n") for _ in range(4000)]
        pairs = zip(check_equal(lines), lines, strict=True)
        same = sum(text == line.strip() for text, line in pairs)
        assert same / len(lines) > 0.99
