import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.config import AttentionConfig
from luong_keras.serving.translator import Translator
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from tests.serving.tiny_translator import TARGET_WORDS, tiny_translator

SENTENCES = ["the cat sees a dog .", "a house .", "the dog sees the cat"]


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(stack_size=4, length_penalty=1.0, batch_size=2)


@pytest.fixture
def eager():
    """Saves the time in which each new translator's graph is built."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def same(one, other):
    """Whether two lists of translations are equal, up to rounding."""
    assert [t.text for t in one] == [t.text for t in other]
    assert [t.tokens for t in one] == [t.tokens for t in other]
    np.testing.assert_allclose(
        [t.score for t in one], [t.score for t in other], rtol=1e-4
    )


def test_translations_come_best_first_and_in_order(translator):
    found = translator.nbest(SENTENCES)
    for sentence, translations in zip(SENTENCES, found, strict=True):
        assert 1 <= len(translations) <= 4
        scores = [t.score for t in translations]
        assert scores == sorted(scores, reverse=True) and scores[0] < 0
        assert len({tuple(t.tokens) for t in translations}) == len(scores)
        length = len(sentence.split())
        for translation in translations:
            assert translation.source_tokens == sentence.split()
            words = len(translation.tokens)
            # 0.5 to 1.5 times the source's length + 1, `</s>` counted.
            assert (length + 1) // 2 <= words <= 1.5 * (length + 1)
            assert translation.alignments.shape == (words, length)
            np.testing.assert_allclose(
                translation.alignments.sum(-1), 1, rtol=1e-5
            )
    assert translator.translate(SENTENCES) == [t[0].text for t in found]
    for sentence, translations in zip(SENTENCES, found, strict=True):
        same(translator.nbest([sentence])[0], translations)


@pytest.mark.parametrize("settings", [{"beam_size": 1}, {"beam_size": 2}])
def test_a_score_is_the_probability_of_words_and_end(eager, settings):
    translator = tiny_translator(
        replace_unknown=False, max_length_ratio=3, **settings
    )
    found = [t[0] for t in translator.nbest(SENTENCES)]
    words = ["<pad>", "<unk>", "<s>", "</s>", *TARGET_WORDS]
    for sentence, best in zip(SENTENCES, found, strict=True):
        ids = [words.index(token) for token in best.tokens]
        longest = (len(sentence.split()) + 1) * 3
        ends = [3] if len(ids) < longest else []
        losses = translator.translation_model.training_model(
            [
                translator.source_tokenizer.encode([sentence]).to_tensor(),
                tf.constant([[2, *ids]]),
                tf.constant([[*ids, *(ends or [0])]]),
            ]
        )["word"]
        np.testing.assert_allclose(
            best.score, -np.sum(losses), rtol=1e-5, atol=1e-5
        )


def test_nothing_in_gives_nothing_out(translator):
    assert translator.translate([]) == []
    for empty in ("", "   ", "\u00a0\t"):
        (best,) = translator.nbest([empty])[0]
        assert (best.text, best.score) == ("", 0.0)
        assert best.tokens == best.source_tokens == []
    found = translator.translate_batch(tf.constant([], tf.string))
    assert found["translations"].shape == (0, 4)
    assert found["scores"].shape == (0, 4)
    assert found["alignments"].shape[:2] == (0, 4)


def test_a_strange_sentence_leaves_its_neighbours_alone(eager, translator):
    expected = translator.nbest(SENTENCES)
    strange = ["", b"\xff\xfe caf\xe9 \xc3", "cat " * 40, "\0", "\U0001f600 "]
    mixed = [SENTENCES[0], *strange, *SENTENCES[1:]]
    for batch_size in (2, 32):
        settings = dataclasses.replace(
            translator.decoding, batch_size=batch_size
        )
        found = Translator(
            translator.translation_model,
            translator.source_tokenizer,
            translator.target_tokenizer,
            settings,
        ).nbest(mixed)
        for place, number in enumerate([0, 6, 7]):
            same(found[number], expected[place])
        assert found[1][0].text == ""
        assert found[2][0].source_tokens == [
            "\ufffd\ufffd",
            "caf\ufffd",
            "\ufffd",
        ]
        assert all(found[number][0].tokens for number in (2, 3, 4, 5))


def test_what_is_too_long_is_cut(translator):
    words = ["the", "cat", "sees"] * 4
    cut, short = translator.nbest([" ".join(words), " ".join(words[:9])])
    same(cut, short)
    assert cut[0].source_tokens == words[:9]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_unknown_word_is_copied_from_the_source(eager, beam_size):
    settings = {"unknown_logit": 3.0, "beam_size": beam_size}
    plain = tiny_translator(replace_unknown=False, **settings)
    copying = tiny_translator(**settings)
    sentences = ["the zebra sees Kuala Lumpur .", "Xylophon", "a cat"]
    copied = set()
    for one, other in zip(
        plain.nbest(sentences), copying.nbest(sentences), strict=True
    ):
        for before, after in zip(one, other, strict=True):
            np.testing.assert_allclose(before.score, after.score, rtol=1e-6)
            expected = [
                before.source_tokens[before.alignments[i].argmax()]
                if token == "<unk>"
                else token
                for i, token in enumerate(before.tokens)
            ]
            assert after.tokens == expected
            assert "<unk>" not in after.text
            copied |= set(expected) - set(before.tokens)
    # Both known and unknown words of the source, in their own spelling.
    assert copied & {"zebra", "Kuala", "Lumpur", "Xylophon"}


@pytest.mark.parametrize("step", ["produces", "reads"])
def test_a_dictionary_translates_what_would_be_copied(eager, step, tmp_path):
    settings = {"unknown_logit": 3.0, "alignment_step": step}
    path = tmp_path / "en-de"
    path.write_text("zebra Zebra 0.9\n. ! 0.1\nXylophon Marimba 0.5\n")
    words = {"zebra": "Zebra", ".": "!", "Xylophon": "Marimba"}
    copying = tiny_translator(**settings)
    translating = tiny_translator(dictionary=str(path), **settings)
    plain = tiny_translator(replace_unknown=False, **settings)
    sentences = ["the zebra sees .", "Xylophon"]
    for kept, copied, translated in zip(
        *(t.nbest(sentences) for t in (plain, copying, translating)),
        strict=True,
    ):
        for raw, before, after in zip(kept, copied, translated, strict=True):
            # The links say what is copied.
            links = {j: raw.source_tokens[i] for i, j in raw.links}
            expected = [
                links[j] if token == "<unk>" else token
                for j, token in enumerate(raw.tokens)
            ]
            assert before.tokens == expected
            assert after.tokens == [
                words.get(new, new) if token == "<unk>" else new
                for token, new in zip(raw.tokens, expected, strict=True)
            ]


def test_without_attention_an_unknown_word_stays(eager):
    translator = tiny_translator(
        unknown_logit=9.0, attention=AttentionConfig(kind="none")
    )
    (best, *_) = translator.nbest(["the cat"])[0]
    assert "<unk>" in best.tokens and best.links == []
    with pytest.raises(ValueError, match="has no alignments"):
        translator.alignments(["the cat"], ["die"])


@pytest.mark.parametrize(
    "attention",
    [AttentionConfig(kind="none"), AttentionConfig(half_width=2)],
)
def test_other_attentions_translate_as_well(eager, attention):
    translator = tiny_translator(attention=attention)
    together = translator.nbest(SENTENCES)
    for sentence, translations in zip(SENTENCES, together, strict=True):
        same(translator.nbest([sentence])[0], translations)


def test_alignments_of_given_translations(translator):
    targets = ["die Katze sieht einen Hund .", "Haus", ""]
    found = translator.alignments(SENTENCES, targets)
    assert [weights.shape for weights in found] == [(6, 6), (1, 3), (0, 5)]
    # The best translation is aligned as the search saw it.
    best = [nbest[0] for nbest in translator.nbest(SENTENCES)]
    known = [
        (sentence, t)
        for sentence, t in zip(SENTENCES, best, strict=True)
        if set(t.tokens) <= {*TARGET_WORDS}
    ]
    assert known
    forced = translator.alignments(
        [sentence for sentence, _ in known],
        [" ".join(t.tokens) for _, t in known],
    )
    for weights, (_, t) in zip(forced, known, strict=True):
        # A forced target is cut, as a source is.
        np.testing.assert_allclose(weights, t.alignments[:9], atol=1e-5)


def test_vocabularies_must_be_those_of_the_model(translator):
    other = WordTokenizer.from_words(["one"])
    parts = [translator.translation_model, translator.source_tokenizer]
    with pytest.raises(ValueError, match="target .* 12 tokens. Received: 5"):
        Translator(*parts, other)
    with pytest.raises(ValueError, match="source .* 11 tokens. Received: 5"):
        Translator(parts[0], other, translator.target_tokenizer)


def test_a_run_gives_its_translator(tmp_path, translator):
    from luong_keras.config import RunConfig, config_to_dict

    with pytest.raises(FileNotFoundError, match="does not exist"):
        Translator.from_run(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    run = RunFolder(tmp_path / "run")
    model = translator.translation_model
    config = RunConfig(model=model.config, decoding=translator.decoding)
    run.write_config(config_to_dict(config))
    translator.source_tokenizer.save(run.path, "source_vocabulary")
    translator.target_tokenizer.save(run.path, "target_vocabulary")
    with pytest.raises(FileNotFoundError, match=r"best\.weights\.h5"):
        Translator.from_run(run.path)
    model.model.save_weights(run.best_weights)
    again = Translator.from_run(run.path)
    assert again.decoding == translator.decoding
    for one, other in zip(
        again.nbest(SENTENCES), translator.nbest(SENTENCES), strict=True
    ):
        same(one, other)
    halved = Translator.from_run(run.path, precision="mixed_bfloat16")
    assert halved.translation_model.projection.compute_dtype == "bfloat16"
    for one, other in zip(
        halved.nbest(SENTENCES), translator.nbest(SENTENCES), strict=True
    ):
        np.testing.assert_allclose(one[0].score, other[0].score, rtol=0.05)
