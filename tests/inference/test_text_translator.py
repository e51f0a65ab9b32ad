import dataclasses
import os

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.config import AttentionConfig
from luong_keras.decoding.ensemble import ModelEnsemble
from luong_keras.models.translation_model import TranslationModel
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.inference.variants import check_same, variant_of
from tests.serving.tiny_translator import (
    TARGET_WORDS,
    tiny_translator,
    write_run,
)

VOCABULARY = ["<pad>", "<unk>", "<s>", "</s>", *TARGET_WORDS]
SENTENCES = ["the cat sees a dog .", "a house .", "the dog sees the cat"]


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(stack_size=4, length_penalty=1.0, batch_size=2)


def word_losses(translator, source, ids, end):
    """Return the losses of a target and its end in the training model."""
    return translator.translation_model.training_model(
        [
            translator.source_tokenizer.encode([source]).to_tensor(),
            tf.constant([[2, *ids]]),
            tf.constant([[*ids, end]]),
        ]
    )["word"]


def test_repr_shows_the_weights_and_the_search(translator):
    weights = translator.translation_model.model.count_params()
    assert f"weights: {weights:,}" in repr(translator)
    assert f"<td>weights</td><td>{weights:,}</td>" in translator._repr_html_()
    assert "beam, beam size" in repr(translator)
    names = dir(translator)
    # Names of `tf.Module` are hidden.
    assert "translate" in names and "trainable_variables" not in names


@pytest.mark.slow
def test_translations_are_sorted_by_score(translator):
    found = translator.nbest(SENTENCES)
    for sentence, translations in zip(SENTENCES, found, strict=True):
        assert 1 <= len(translations) <= 4
        scores = [t.score for t in translations]
        assert scores == sorted(scores, reverse=True) and scores[0] < 0
        assert len({tuple(t.tokens) for t in translations}) == len(scores)
        for translation in translations:
            assert translation.source_tokens == sentence.split()
            shape = len(translation.tokens), len(sentence.split())
            assert translation.alignments.shape == shape
            np.testing.assert_allclose(
                translation.alignments.sum(-1), 1, rtol=1e-5
            )
    assert translator.translate(SENTENCES) == [t[0].text for t in found]
    check_same([translator.nbest([s])[0] for s in SENTENCES], found)


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 2])
def test_score_is_the_log_probability_of_words_and_end(eager, beam_size):
    translator = tiny_translator(
        beam_size=beam_size, replace_unknown=False, max_length_ratio=3
    )
    found = [t[0] for t in translator.nbest(SENTENCES)]
    for sentence, best in zip(SENTENCES, found, strict=True):
        ids = [VOCABULARY.index(token) for token in best.tokens]
        longest = (len(sentence.split()) + 1) * 3
        end = 3 if len(ids) < longest else 0  # `</s>`, or padding if cut
        losses = word_losses(translator, sentence, ids, end)
        np.testing.assert_allclose(
            best.score, -np.sum(losses), rtol=1e-5, atol=1e-5
        )


@pytest.mark.slow
def test_empty_input_has_empty_output(translator):
    assert translator.translate([]) == []
    for empty in ("", "   ", "\u00a0\t"):
        (best,) = translator.nbest([empty])[0]
        assert (best.text, best.score) == ("", 0.0)
        assert best.tokens == best.source_tokens == []
    found = translator.translate_batch(tf.constant([], tf.string))
    assert found["translations"].shape == (0, 4)
    assert found["scores"].shape == (0, 4)
    assert found["alignments"].shape[:2] == (0, 4)


def test_calls_after_a_fork_are_refused(translator, monkeypatch):
    forked = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: forked)
    for call in (
        lambda: translator.translate(["a"]),
        lambda: list(translator.translate_lines(["a"])),
        lambda: translator.nbest(["a"]),
        lambda: list(translator.best_by_place(["a"])),
        lambda: translator.score(["a"], ["b"]),
        lambda: translator.links(["a"], ["b"]),
    ):
        with pytest.raises(RuntimeError, match="in each process"):
            call()


def test_unknown_words_remain_without_attention(eager):
    translator = tiny_translator(
        unknown_logit=9.0, attention=AttentionConfig(kind="none")
    )
    (best, *_) = translator.nbest(["the cat"])[0]
    assert "<unk>" in best.tokens and best.links == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "attention",
    [AttentionConfig(kind="none"), AttentionConfig(half_width=2)],
)
def test_batches_equal_single_sentences_for_other_attentions(eager, attention):
    translator = tiny_translator(attention=attention)
    together = translator.nbest(SENTENCES)
    check_same([translator.nbest([s])[0] for s in SENTENCES], together)


def test_vocabularies_must_fit_the_model(translator):
    other = WordTokenizer.from_words(["one"])
    parts = [translator.translation_model, translator.source_tokenizer]
    with pytest.raises(ValueError, match="target .* 12 tokens. Received: 5"):
        Translator(*parts, other)
    with pytest.raises(ValueError, match="source .* 11 tokens. Received: 5"):
        Translator(parts[0], other, translator.target_tokenizer)


@pytest.mark.slow
def test_translators_are_loaded_from_runs(tmp_path, translator):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Translator.from_run(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    run = write_run(tmp_path / "run", translator)
    again = Translator.from_run(run)
    assert again.decoding == translator.decoding
    check_same(again.nbest(SENTENCES), translator.nbest(SENTENCES))
    halved = Translator.from_run(run, precision="mixed_bfloat16")
    assert halved.translation_model.projection.compute_dtype == "bfloat16"
    for one, other in zip(
        halved.nbest(SENTENCES), translator.nbest(SENTENCES), strict=True
    ):
        np.testing.assert_allclose(one[0].score, other[0].score, rtol=0.05)
    RunFolder(run).best_weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"best\.weights\.h5"):
        Translator.from_run(run)


def test_given_translations_are_scored_word_by_word(translator):
    targets = ["die Katze sieht einen Hund .", "Haus", ""]
    found = translator.score(SENTENCES, targets)
    for source, target, scored in zip(SENTENCES, targets, found, strict=True):
        ids = [VOCABULARY.index(word) for word in target.split()]
        losses = word_losses(translator, source, ids, 3)
        np.testing.assert_allclose(
            scored.word_log_probabilities, -losses[0], rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            scored.log_probability, -np.sum(losses), rtol=1e-4
        )
        assert scored.tokens == [*target.split(), "</s>"]
        assert scored.source_tokens == source.split()
    with pytest.raises(ValueError, match="as many targets"):
        translator.score(SENTENCES, targets[:2])


@pytest.mark.slow
def test_ensembles_average_logits(eager):
    one, other = tiny_translator(), tiny_translator()
    for variable in other.translation_model.model.trainable_variables:
        variable.assign(variable * 1.2)
    models = [one.translation_model, other.translation_model]
    together = variant_of(one, models)
    (scored,) = together.score(SENTENCES[:1], ["die Katze sieht"])
    source = one.source_tokenizer.encode(SENTENCES[:1]).to_tensor()
    read = tf.constant([[2, 4, 5, 6]])
    logits = np.mean(
        [model.model([source, read])[0].numpy() for model in models], axis=0
    )
    expected = tf.nn.log_softmax(logits).numpy()[range(4), [4, 5, 6, 3]]
    np.testing.assert_allclose(
        scored.word_log_probabilities, expected, rtol=1e-5
    )
    memory = together.encode_batch(tf.constant(SENTENCES))["memory"]
    assert memory.shape == (3, 6, 16)
    # The same model twice is that model.
    twice = variant_of(one, [models[0], models[0]])
    check_same(twice.nbest(SENTENCES), one.nbest(SENTENCES))
    with pytest.raises(ValueError, match="two models or more"):
        ModelEnsemble(models[:1])


@pytest.mark.slow
def test_ensembles_may_mix_attentions_and_precisions(eager):
    attending = tiny_translator()
    without = tiny_translator(attention=AttentionConfig(kind="none"))
    config = dataclasses.replace(
        attending.translation_model.config, precision="mixed_bfloat16"
    )
    models = [x.translation_model for x in (attending, without)]
    together = variant_of(attending, [*models, TranslationModel(config)])
    (scored,) = together.score(SENTENCES[:1], ["die Katze"])
    np.testing.assert_allclose(scored.alignments.sum(-1), 1, rtol=0.01)
    memory = together.encode_batch(tf.constant(SENTENCES))["memory"]
    assert memory.shape == (3, 6, 24) and memory.dtype == tf.float32


def test_dictionaries_translate_unknown_words(eager, tmp_path):
    path = tmp_path / "en-de"
    path.write_text("two fields\n")
    settings = {"unknown_logit": 3.0}
    with pytest.raises(ValueError, match="Line 1 of .* three fields"):
        tiny_translator(dictionary=str(path), **settings)
    path.write_text("\n")
    empty = tiny_translator(dictionary=str(path), **settings)
    copying = tiny_translator(**settings)
    lines = ["the zebra sees .", "Xylophon"]
    copied = copying.translate(lines)
    assert empty.translate(lines) == copied
    path.write_text("zebra Gnu 0.9\nXylophon Marimba 0.5\n")
    full = tiny_translator(dictionary=str(path), **settings)
    assert full.translate(lines) != copied
    assert full.translate(lines) == [
        text.replace("zebra", "Gnu").replace("Xylophon", "Marimba")
        for text in copied
    ]
