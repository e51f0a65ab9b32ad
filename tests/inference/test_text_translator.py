import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.config import AttentionConfig
from luong_keras.decoding.ensemble import ModelEnsemble
from luong_keras.inference.request_options import SearchOptions
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.models.translation_model import TranslationModel
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
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


def test_a_translator_says_what_it_is(translator):
    weights = translator.translation_model.model.count_params()
    assert f"weights: {weights:,}" in repr(translator)
    assert f"<td>weights</td><td>{weights:,}</td>" in translator._repr_html_()
    assert "beam, beam size" in repr(translator)
    names = dir(translator)
    # Nothing of `tf.Module`.
    assert "translate" in names and "trainable_variables" not in names


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
        assert all(found[number][0].tokens for number in (2, 3, 5))
        # A control character is a space, as in the training text.
        assert found[4][0].text == "" and not found[4][0].source_tokens


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


@pytest.mark.slow
def test_a_run_gives_its_translator(tmp_path, translator):
    from luong_keras.config import RunConfig
    from luong_keras.config.values import config_to_dict

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
    folded = Translator.from_run(run.path, fold_embedding=True)
    assert folded.translation_model.folded_embedding is not None
    for one, other in zip(
        folded.nbest(SENTENCES), translator.nbest(SENTENCES), strict=True
    ):
        same(one, other)
    # Other weights, folded again, reach what was traced with the first.
    model = folded.translation_model
    for variable in model.model.trainable_variables:
        variable.assign(variable.value[::-1])
    model.fold_embedding()
    changed = folded.nbest(SENTENCES)
    model.folded_embedding = None
    expected = Translator(
        model,
        folded.source_tokenizer,
        folded.target_tokenizer,
        folded.decoding,
    ).nbest(SENTENCES)
    for one, other in zip(changed, expected, strict=True):
        same(one, other)
    halved = Translator.from_run(run.path, precision="mixed_bfloat16")
    assert halved.translation_model.projection.compute_dtype == "bfloat16"
    for one, other in zip(
        halved.nbest(SENTENCES), translator.nbest(SENTENCES), strict=True
    ):
        np.testing.assert_allclose(one[0].score, other[0].score, rtol=0.05)


# What a request may choose.


def chosen(text, **changes):
    """Options for these sentences: as the translator has them, but for…"""
    return SearchOptions.columns(len(text), **changes)


def check_rows(found, expected, rows):
    """Some rows of an answer are those of another one."""
    for mine, its in rows:
        filled = expected["scores"][its].numpy() > ABSENT_SCORE
        count = int(filled.sum())
        assert (found["scores"][mine, count:].numpy() == ABSENT_SCORE).all()
        np.testing.assert_allclose(
            found["scores"][mine, :count],
            expected["scores"][its][filled],
            rtol=1e-4,
        )
        for name in ("translations", "lengths"):
            assert (
                found[name][mine, :count].numpy()
                == expected[name][its][filled].numpy()
            ).all(), name
        width = expected["alignments"].shape[2:]
        np.testing.assert_allclose(
            found["alignments"][mine, :count, : width[0], : width[1]],
            expected["alignments"][its][filled],
            atol=1e-5,
        )


def test_every_sentence_chooses_its_search(eager):
    settings = {"unknown_logit": 3.0, "length_penalty": 0.5}
    serving = tiny_translator(max_beam_size=4, **settings)
    text = [*SENTENCES, "the zebra sees a dog ."]
    found = serving.translate_batch(
        tf.constant(text),
        chosen(
            text,
            beam_size=[1, 4, 0, 9],
            length_penalty=[0.0, 1.0, -1.0, 1.0],
            replace_unknown=[-1, 1, -1, 0],
        ),
    )
    assert found["translations"].shape == (4, 4)
    alone = [
        {"beam_size": 1, "length_penalty": 0.0},
        {"beam_size": 4, "length_penalty": 1.0},
        {"beam_size": 3},
        {"beam_size": 4, "length_penalty": 1.0, "replace_unknown": False},
    ]
    for row, changes in enumerate(alone):
        translator = tiny_translator(**{**settings, **changes})
        expected = translator.translate_batch(tf.constant(text))
        check_rows(found, expected, [(row, row)])
    assert b"<unk>" in b" ".join(found["translations"][3].numpy())
    assert b"<unk>" not in b" ".join(found["translations"][:3].numpy().ravel())


def test_what_finishes_first_may_end_the_search(eager):
    settings = {
        "stack_size": 1,
        "length_penalty": 2.0,
        "min_length_ratio": 0.0,
        "max_length_ratio": 3.0,
    }
    best, first = (
        tiny_translator(stack_keeps=keeps, **settings)
        for keeps in ("best", "first")
    )
    text = ["a house ."]
    for options in (None, chosen(text)):
        waits, ends = (
            translator.translate_batch(tf.constant(text), options)
            for translator in (best, first)
        )
        assert waits["scores"][0, 0] > ends["scores"][0, 0]
        assert waits["lengths"][0, 0] > ends["lengths"][0, 0]


def test_fewer_translations_are_the_first_ones(eager, translator):
    text = tf.constant(SENTENCES)
    all_of_them = translator.translate_batch(text)
    found = translator.translate_batch(
        text, chosen(SENTENCES, n_best=[1, 0, 9])
    )
    check_rows(found, all_of_them, [(1, 1), (2, 2)])
    for name in ("translations", "scores", "lengths"):
        assert found[name][0, 0] == all_of_them[name][0, 0]
    assert (found["scores"][0, 1:].numpy() == ABSENT_SCORE).all()
    for name in ("translations", "tokens"):
        assert (found[name][0, 1:].numpy() == b"").all()
    assert not found["alignments"][0, 1:].numpy().any()


def test_a_translation_begins_as_it_is_told(eager):
    # Long enough for the first translation to end: so all of it is scored.
    translator = tiny_translator(max_length_ratio=4)
    text = ["a house", "a house", "the dog", ""]
    prefix = ["das Haus", "Xaver sieht", "", "die"]
    found = translator.translate_batch(
        tf.constant(text), chosen(text, prefix=prefix)
    )
    best = [t.decode() for t in found["translations"][:, 0].numpy()]
    assert best[0].startswith("das Haus ")
    # What the model does not know is imposed as it is spelled.
    assert best[1].startswith("Xaver sieht")
    assert best[3] == ""
    check_rows(found, translator.translate_batch(tf.constant(text)), [(2, 2)])
    # The score is that of all words, and so the model's own of the whole.
    (scored,) = translator.score(text[:1], best[:1])
    np.testing.assert_allclose(
        scored.log_probability, found["scores"][0, 0], rtol=1e-4
    )


def test_a_prefix_longer_than_the_translation_would_be(eager):
    translator = tiny_translator()
    prefix = " ".join(["die Katze sieht"] * 2)
    found = translator.translate_batch(
        tf.constant(["cat"]), chosen(["cat"], prefix=[prefix])
    )
    assert found["translations"][0, 0].numpy().decode().startswith(prefix)


def test_a_given_translation_is_scored_word_by_word(translator):
    targets = ["die Katze sieht einen Hund .", "Haus", ""]
    found = translator.score(SENTENCES, targets)
    words = ["<pad>", "<unk>", "<s>", "</s>", *TARGET_WORDS]
    for source, target, scored in zip(SENTENCES, targets, found, strict=True):
        ids = [words.index(word) for word in target.split()]
        losses = translator.translation_model.training_model(
            [
                translator.source_tokenizer.encode([source]).to_tensor(),
                tf.constant([[2, *ids]]),
                tf.constant([[*ids, 3]]),
            ]
        )["word"]
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


def test_the_encoder_gives_its_memory(eager, translator):
    text = ["the cat sees", "", "the dog sees the cat"]
    found = translator.encode_batch(tf.constant(text))
    assert found["lengths"].numpy().tolist() == [3, 0, 5]
    ids = translator.source_tokenizer.encode(text).to_tensor()
    memory, _, _ = translator.translation_model.encode(ids)
    np.testing.assert_allclose(found["memory"], memory, atol=1e-6)
    nothing = translator.encode_batch(tf.constant([], tf.string))
    assert nothing["memory"].shape[::2] == (0, 8)


def test_what_was_cut_is_told(eager):
    translator = tiny_translator(unknown_logit=9.0)
    text = ["cat " * 9, "cat " * 10, "x" * 1_000_000, "a" + " " * 1000]
    found = translator.translate_batch(tf.constant(text))
    assert found["truncated"].numpy().tolist() == [False, True, True, True]
    assert found["source_lengths"].numpy().tolist() == [9, 9, 1, 1]
    # A word of a megabyte is copied as far as it was read.
    assert b"xxx" in found["translations"][2, 0].numpy()
    assert max(map(len, found["translations"].numpy().ravel())) < 10_000


def test_models_translate_together(eager):
    one, other = tiny_translator(), tiny_translator()
    for variable in other.translation_model.model.trainable_variables:
        variable.assign(variable * 1.2)
    models = [one.translation_model, other.translation_model]
    tokenizers = one.source_tokenizer, one.target_tokenizer
    together = Translator(models, *tokenizers, one.decoding)
    target = "die Katze sieht"
    (scored,) = together.score(SENTENCES[:1], [target])
    source = tokenizers[0].encode(SENTENCES[:1]).to_tensor()
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
    twice = Translator([models[0], models[0]], *tokenizers, one.decoding)
    same(twice.nbest(SENTENCES)[0], one.nbest(SENTENCES)[0])
    with pytest.raises(ValueError, match="two models or more"):
        ModelEnsemble(models[:1])


def test_models_that_attend_in_other_ways_translate_together(eager):
    attending = tiny_translator()
    without = tiny_translator(attention=AttentionConfig(kind="none"))
    config = dataclasses.replace(
        attending.translation_model.config, precision="mixed_bfloat16"
    )
    parts = [
        attending.translation_model,
        without.translation_model,
        TranslationModel(config),
    ]
    together = Translator(
        parts,
        attending.source_tokenizer,
        attending.target_tokenizer,
        attending.decoding,
    )
    (scored,) = together.score(SENTENCES[:1], ["die Katze"])
    np.testing.assert_allclose(scored.alignments.sum(-1), 1, rtol=0.01)
    memory = together.encode_batch(tf.constant(SENTENCES))["memory"]
    assert memory.shape == (3, 6, 24) and memory.dtype == tf.float32


def test_a_prefix_that_was_cut_is_told(eager, translator):
    text = tf.constant(["cat"])
    for count, cut in ((9, False), (10, True)):
        found = translator.translate_batch(
            text, chosen(["cat"], prefix=["die " * count])
        )
        assert found["truncated"].numpy().tolist() == [cut]
        assert found["tokens"][0, 0].numpy().tolist()[:9] == [b"die"] * 9


def test_a_dictionary_without_words_copies(eager, tmp_path):
    path = tmp_path / "en-de"
    path.write_text("two fields\n")
    settings = {"unknown_logit": 3.0}
    with pytest.raises(ValueError, match="Line 1 of .* three fields"):
        tiny_translator(dictionary=str(path), **settings)
    path.write_text("\n")
    empty = tiny_translator(dictionary=str(path), **settings)
    copying = tiny_translator(**settings)
    assert empty.translate(["Xylophon"]) == copying.translate(["Xylophon"])


@pytest.mark.parametrize("least, words", [(0.0, 1), (0.5, 3)])
def test_a_short_answer_is_let_through(eager, least, words):
    translator = tiny_translator(min_length_ratio=least)
    bias = np.zeros(translator.translation_model.projection.bias.shape)
    bias[3] = 50  # `</s>`
    translator.translation_model.projection.bias.assign(bias)
    ((best, *_),) = translator.nbest(["the cat sees a dog"])
    assert len(best.tokens) == words and not best.truncated
