"""Subwords whose merges are left out at random."""

import concurrent.futures
import io
import subprocess
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from luong_keras.data import phrasebook
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.subword_sampling import SubwordSampler
from luong_keras.text.word_tokenizer import WordTokenizer

pytestmark = pytest.mark.tensorflow

LINES = [pair.target for pair in phrasebook.split_pairs("train", 200)]


@pytest.fixture
def tokenizer():
    return SentencePieceTokenizer.train(LINES, 300)


def rows(ids):
    return ids.to_list()


def test_other_pieces_say_the_same(tokenizer):
    drawn = SubwordSampler(tokenizer, 0.3).encode(LINES, 1)
    drawn = tf.ragged.constant(drawn)
    usual = tokenizer.encode(tf.constant(LINES))
    said = tokenizer.decode(drawn).numpy().tolist()
    assert said == tokenizer.decode(usual).numpy().tolist()
    assert drawn.dtype == usual.dtype
    longer = np.array(drawn.row_lengths()) > np.array(usual.row_lengths())
    assert longer.mean() > 0.9


def test_hardly_ever_left_out_is_the_usual_splitting(tokenizer):
    sampler = SubwordSampler(tokenizer, 1e-9)
    drawn = sampler.encode(LINES, 1)
    assert drawn == rows(tokenizer.encode(tf.constant(LINES)))


def test_all_but_always_left_out_is_single_characters(tokenizer):
    sampler = SubwordSampler(tokenizer, 1 - 1e-9)
    drawn = sampler.encode(LINES, 1)
    pieces = tokenizer.lookup(tf.ragged.constant(drawn)).flat_values.numpy()
    assert {len(piece.decode()) for piece in pieces} == {1}


@pytest.mark.parametrize("dropout", [0.1, 0.6])
def test_a_merge_is_left_out_as_often_as_it_says(dropout):
    # With "▁" and two letters there are two merges, one after the other: "ab"
    # and then "▁ab". The second is offered where the first was made.
    count = 4000
    model = SentencePieceTokenizer.train(["ab"] * 20, 9)
    vocabulary = [model.lookup([i]).numpy()[0].decode() for i in range(9)]
    assert vocabulary[4:6] == ["ab", "▁ab"]
    drawn = SubwordSampler(model, dropout).encode(["ab"] * count, 7)
    kinds = [tuple(vocabulary[i] for i in row) for row in drawn]
    kept = 1 - dropout
    for kind, expected in {
        ("▁ab",): kept**2,
        ("▁", "ab"): kept * dropout,
        ("▁", "a", "b"): dropout,
    }.items():
        deviation = (expected * (1 - expected) / count) ** 0.5
        assert abs(kinds.count(kind) / count - expected) < 4 * deviation


def test_what_is_drawn_follows_from_the_seed_alone(tokenizer):
    sampler = SubwordSampler(tokenizer, 0.3)

    def drawn(seed):
        return sampler.encode(LINES[:30], seed)

    first = [drawn(seed) for seed in (5, 6, 7)]
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        again = list(threads.map(drawn, [5, 6, 7] * 6))
    assert again == first * 6
    assert first[0] != first[1]


def test_a_seed_draws_the_same_in_every_process(tokenizer, tmp_path):
    model = tmp_path / "pieces.model"
    model.write_bytes(tokenizer.file_bytes())
    program = (
        "import sys\n"
        "from luong_keras.text.sentencepiece_tokenizer import *\n"
        "from luong_keras.text.subword_sampling import SubwordSampler\n"
        "tokenizer = SentencePieceTokenizer(sys.argv[1])\n"
        "print(SubwordSampler(tokenizer, 0.3).encode(sys.argv[2:], 5))"
    )
    command = [sys.executable, "-c", program, str(model), *LINES[:3]]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = SubwordSampler(tokenizer, 0.3).encode(LINES[:3], 5)
    assert found.stdout.strip() == str(expected)


@pytest.mark.parametrize("bytes_too", [False, True])
def test_unknown_characters_are_those_of_the_usual_splitting(bytes_too):
    tokenizer = SentencePieceTokenizer.train(
        LINES, 560 if bytes_too else 300, byte_fallback=bytes_too
    )
    lines = ["猫犬 der 猫 x猫犬y", "  ½ ", LINES[0] + "猫", ""]
    drawn = SubwordSampler(tokenizer, 1e-9).encode(lines, 1)
    assert drawn == rows(tokenizer.encode(tf.constant(lines)))


@pytest.mark.parametrize("dropout", [1e-9, 0.5, 1 - 1e-9])
def test_symbols_of_the_user_are_never_split(dropout):
    symbols = ["<x>", "<xy", "er", "a.b"]
    tokenizer = SentencePieceTokenizer.train(
        LINES, 300, user_defined_symbols=symbols
    )
    lines = [*LINES[:20], "der<x>Hund <xy <x a.b axb 猫<x>猫 er", "<x>"]
    usual = rows(tokenizer.encode(tf.constant(lines)))
    drawn = SubwordSampler(tokenizer, dropout).encode(lines, 1)
    assert (drawn == usual) is (dropout < 0.1)
    own = {4, 5, 6, 7}  # the ids of the symbols
    assert {i for row in usual for i in row} >= own
    for row, expected in zip(drawn, usual, strict=True):
        found = [i for i in row if i in own]
        assert found == [i for i in expected if i in own]


def test_lines_are_drawn_one_by_one(tokenizer):
    drawn = SubwordSampler(tokenizer, 0.3).encode(LINES[:1] * 20, 1)
    assert len({tuple(row) for row in drawn}) > 10


def test_too_long_a_sentence_is_split_as_usual(tokenizer):
    usual = rows(tokenizer.encode(tf.constant(LINES)))
    longest = max(len(row) for row in usual)
    sampler = SubwordSampler(tokenizer, 0.3, max_length=longest)
    drawn = sampler.encode(LINES, 1)
    assert max(len(row) for row in drawn) <= longest
    same = [one == other for one, other in zip(drawn, usual, strict=True)]
    assert any(same) and not all(same)


def test_text_is_cleaned_as_the_tokenizer_does():
    tokenizer = SentencePieceTokenizer.train(LINES, 300, lowercase=True)
    sampler = SubwordSampler(tokenizer, 0.3)
    text = [LINES[0].upper().encode() + b" \xff", b""]
    drawn = sampler.encode(text, 1)
    said = tokenizer.decode(tf.ragged.constant(drawn)).numpy().tolist()
    usual = tokenizer.encode(tf.constant(text))
    assert said == tokenizer.decode(usual).numpy().tolist()
    assert drawn[1] == []


def test_only_merges_are_left_out(tmp_path):
    unigram = SentencePieceTokenizer.train(LINES, 300, model_type="unigram")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        vocab_size=20,
        model_type="char",
        minloglevel=2,
        **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
    )
    path = tmp_path / "pieces.model"
    path.write_bytes(model.getvalue())
    for tokenizer, kind in (
        (unigram, "'unigram'"),
        (SentencePieceTokenizer(path), "'char'"),
        (WordTokenizer.from_words(["a"]), "'words'"),
    ):
        with pytest.raises(ValueError, match=f"'bpe'.*Received: {kind}"):
            SubwordSampler(tokenizer, 0.1)


@pytest.mark.parametrize("dropout", [0, 1, -0.1, 1.5])
def test_the_probability_is_one(tokenizer, dropout):
    with pytest.raises(ValueError, match=f"Received: {dropout}"):
        SubwordSampler(tokenizer, dropout)
