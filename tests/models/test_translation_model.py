import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.config import AttentionConfig
from luong_keras.layers.encoder import Encoder
from luong_keras.layers.rnn.attention_rnn import AttentionRNN
from luong_keras.models.translation_model import TranslationModel
from luong_keras.special_tokens import PAD_ID
from luong_keras.training.losses import TranslationLoss
from tests.layer_checks import (
    BACKEND,
    assert_all_close,
    dtype_of,
    few_at_first,
    gradients,
    int8_rounded,
    random,
    randomize,
    small_config,
    to_numpy,
)

tensorflow = pytest.mark.tensorflow

# Large weights make every mistake visible.
SMALL = small_config(
    layers=2,
    source_vocabulary_size=11,
    attention=AttentionConfig(half_width=2),
    dropout=0.0,
    initial_range=0.8,
)
SOURCE = np.array([[4, 5, 6, 7, 8], [9, 10, 4, 0, 0], [7, 0, 0, 0, 0]], "int32")
TARGET_IN = np.array([[2, 4, 5, 6], [2, 7, 8, 0], [2, 0, 0, 0]], "int32")
TARGET_OUT = np.array([[4, 5, 6, 3], [7, 8, 3, 0], [3, 0, 0, 0]], "int32")
REAL = TARGET_OUT != PAD_ID


def make(attention=None, label_smoothing=0.0, **changes):
    kind = {"attention": AttentionConfig(half_width=2, **(attention or {}))}
    config = dataclasses.replace(SMALL, **kind, **changes)
    return TranslationModel(config, label_smoothing)


def logits_of(translation_model, *inputs, **options):
    return to_numpy(translation_model.model(list(inputs), **options))


GRU = {"recurrence": "gru", "bidirectional": True, "reverse_source": False}
GLOBAL, NONE = {"kind": "global"}, {"kind": "none"}
CONCAT = GLOBAL | {"score_mode": "concat"}
COMBINATIONS = {
    "local-p feeding lstm": ({}, {}),
    "concat feeding gru bidirectional": (CONCAT, GRU),
    "location lstm": (
        GLOBAL | {"score_mode": "location"},
        {"input_feeding": False},
    ),
    "local-m gru": (
        {"alignment": "monotonic", "score_mode": "dot"},
        {"input_feeding": False, "recurrence": "gru", "use_bias": False},
    ),
    "none lstm": (NONE, {"output_bias": True}),
    "none without feeding": (
        NONE,
        {"input_feeding": False, "reverse_source": False},
    ),
    "scaled dot tied bridge": (
        GLOBAL | {"score_mode": "scaled_dot", "use_scale": True},
        {"tied_embeddings": True, "encoder_layers": 1},
    ),
    "bahdanau local-p lstm": (
        {"gaussian": "inside_softmax"},
        {"decoder": "bahdanau"},
    ),
    "bahdanau general gru bridge": (
        GLOBAL,
        {"decoder": "bahdanau", "recurrence": "gru", "decoder_layers": 1},
    ),
}


def each_of(combinations, everywhere):
    """Parametrise; all but the first combinations need TensorFlow."""
    return pytest.mark.parametrize(
        "attention, changes",
        [
            pytest.param(
                *pair, id=name, marks=tensorflow if i >= everywhere else ()
            )
            for i, (name, pair) in enumerate(combinations.items())
        ],
    )


@each_of(COMBINATIONS, everywhere=2)
def test_training_form_equals_step_form(attention, changes):
    translation_model = make(attention, **changes)
    expected = logits_of(translation_model, SOURCE, TARGET_IN)

    memory, mask, states = translation_model.encode(SOURCE)
    step = translation_model.decoding_step(memory, mask)
    # Two hypotheses per sentence: the first reads the targets; the second reads
    # other words and must not matter.
    states = [ops.stack([state, 0 * state], axis=1) for state in states]
    others = np.random.default_rng(0).integers(0, 9, TARGET_IN.shape)
    weights = []
    for t in range(TARGET_IN.shape[1]):
        ids = ops.cast(np.stack([TARGET_IN[:, t], others[:, t]], 1), "int32")
        logits, states, alignments = step(ids, states, t)
        rows = REAL[:, t]
        found = to_numpy(logits)[rows, 0]
        np.testing.assert_allclose(found, expected[rows, t], atol=2e-5)
        weights.append(to_numpy(alignments)[:, 0])
    weights = np.stack(weights, 1)
    if translation_model.decoder.cell.attention is None:
        assert (weights == 0).all()
        return
    assert (weights[1, :, 3:] == 0).all() and (weights[2, :, 1:] == 0).all()
    memory, mask, states = translation_model.encode(SOURCE)
    _, forced = AttentionRNN(translation_model.decoder.cell)(
        translation_model.target_embedding(TARGET_IN),
        initial_state=states,
        start_position=0,
        memory=memory,
        memory_mask=mask,
        return_attention_scores=True,
    )
    forced = to_numpy(forced)
    np.testing.assert_allclose(forced[REAL], weights[REAL], atol=2e-5)


@pytest.mark.parametrize("score_mode", ["general", "concat"])
def test_half_precision_projects_the_same_keys_in_a_step(score_mode):
    attention = GLOBAL | {"score_mode": score_mode}
    translation_model = make(attention, precision="mixed_bfloat16")
    memory, mask, _ = translation_model.encode(SOURCE)
    step = translation_model.decoding_step(memory, mask)
    keys, _ = step.projected_memory
    assert dtype_of(memory) == dtype_of(keys) == "bfloat16"


@pytest.mark.slow_after_first
@tensorflow
@pytest.mark.parametrize("attention, changes", [({}, {}), (CONCAT, GRU)])
def test_padding_changes_no_logit(attention, changes):
    translation_model = make(attention, **changes)
    batched = logits_of(translation_model, SOURCE, TARGET_IN)
    for row, (source, target) in enumerate([(5, 4), (3, 3), (1, 1)]):
        single = logits_of(
            translation_model,
            SOURCE[row : row + 1, :source],
            TARGET_IN[row : row + 1, :target],
        )
        np.testing.assert_allclose(batched[row, :target], single[0], atol=2e-5)


@pytest.mark.parametrize(
    "recurrence", ["lstm", pytest.param("gru", marks=tensorflow)]
)
def test_reversed_source_is_read_from_its_last_word(recurrence):
    lengths = [5, 3, 1]
    x = random(3, 5, 4).astype("float32")
    mask = np.arange(5) < np.array(lengths)[:, None]
    options = {"num_layers": 2, "recurrence": recurrence}
    encoder = Encoder(6, reverse=True, **options)
    memory, *states = encoder(x, mask=mask)
    plain = Encoder(6, **options)
    plain.build(x.shape)
    plain.set_weights(encoder.get_weights())
    for row, length in enumerate(lengths):
        backwards = x[row : row + 1, :length][:, ::-1]
        outputs, *last = plain(backwards)
        # The memory is in the order of the words again.
        found = to_numpy(memory)[row, :length]
        np.testing.assert_allclose(found, to_numpy(outputs)[0, ::-1], atol=1e-6)
        found = [to_numpy(state)[row : row + 1] for state in states]
        assert_all_close(found, last, atol=1e-6)
    # The highest h after the first word is the memory of the first word.
    top = states[-1] if recurrence == "gru" else states[-2]
    np.testing.assert_allclose(to_numpy(top), to_numpy(memory)[:, 0], atol=1e-6)


@pytest.mark.slow_after_first
@tensorflow
@pytest.mark.parametrize("recurrence", ["lstm", "gru"])
def test_bridge_connects_stacks_of_unequal_depth(recurrence):
    translation_model = make(
        encoder_layers=2,
        decoder_layers=3,
        recurrence=recurrence,
        bidirectional=True,
        reverse_source=False,
    )
    randomize(translation_model.bridge)
    embedded = translation_model.source_embedding(SOURCE)
    _, *last = translation_model.encoder(embedded, mask=SOURCE != PAD_ID)
    _, _, states = translation_model.encode(SOURCE)
    count = 2 if recurrence == "lstm" else 1
    assert (len(last), len(states)) == (2 * count, 3 * count + 1)
    projections = translation_model.bridge.projections
    for i, projection in enumerate(projections):
        kernel, bias = map(to_numpy, projection.weights)
        # Hidden states come from hidden states, carries from carries.
        top = to_numpy(last[count + i % count])
        expected = np.tanh(top @ kernel + bias)
        np.testing.assert_allclose(to_numpy(states[i]), expected, atol=1e-5)
    assert len(projections) == 3 * count


@pytest.mark.slow
@tensorflow
def test_tied_embedding_is_one_matrix():
    free, tied = make(), make(tied_embeddings=True)
    # An output matrix of V x U, or one of U x E and the embedding.
    fewer = free.model.count_params() - tied.model.count_params()
    assert fewer == 9 * 6 - 6 * 5
    before = logits_of(tied, SOURCE, TARGET_IN)
    table = tied.target_embedding.embeddings
    changed = to_numpy(table)
    changed[8] = 0
    table.assign(changed)
    after = logits_of(tied, SOURCE, TARGET_IN)
    # The first steps read words 2, 4 and 5, whose vectors did not change.
    np.testing.assert_array_equal(after[0, :, :8], before[0, :, :8])
    assert (after[0, :, 8] == 0).all() and (before[0, :, 8] != 0).all()


@pytest.mark.slow
@tensorflow
def test_shared_embedding_serves_source_and_target():
    same = {"source_vocabulary_size": 9, "tied_embeddings": True}
    separate, shared = make(**same), make(**same, shared_embeddings=True)
    assert shared.source_embedding is shared.target_embedding
    assert separate.model.count_params() - shared.model.count_params() == 9 * 5
    table = shared.source_embedding.embeddings
    changed = to_numpy(table)
    changed[7] += 1
    source = np.where(SOURCE == 7, 7, np.minimum(SOURCE, 4))
    memory = to_numpy(shared.encode(source)[0])
    # The source lacks word 7: only the decoder reads or writes the change.
    before = logits_of(shared, np.minimum(SOURCE, 4), TARGET_IN)
    table.assign(changed)
    assert (to_numpy(shared.encode(source)[0]) != memory)[[0, 2]].any()
    after = logits_of(shared, np.minimum(SOURCE, 4), TARGET_IN)
    others = np.arange(9) != 7
    np.testing.assert_array_equal(after[0][:, others], before[0][:, others])
    # The second sentence reads word 7 in its second step.
    np.testing.assert_array_equal(after[1, 0][others], before[1, 0][others])
    assert (after[1, 1] != before[1, 1]).all()
    assert (after[:, :, 7] != before[:, :, 7])[REAL].all()


ALTERED = {
    "free": {},
    "tied": {"tied_embeddings": True},
    "shared": {
        "source_vocabulary_size": 9,
        "tied_embeddings": True,
        "shared_embeddings": True,
    },
    "bridge": {"encoder_layers": 1},
}


def altered(changes):
    """Return two equal models, and the embeddings of each."""
    models = [make(**changes) for _ in range(2)]
    models[1].model.set_weights(models[0].model.get_weights())
    return models, [
        dict.fromkeys((each.source_embedding, each.target_embedding))
        for each in models
    ]


def check_altered(model, expected, source):
    """Check that all parts of a model compute as those of `expected`."""
    expected_logits = logits_of(expected, source, TARGET_IN)
    found = logits_of(model, source, TARGET_IN)
    np.testing.assert_allclose(found, expected_logits, atol=1e-5)
    found, losses = (
        each.training_model([source, TARGET_IN, TARGET_OUT])["word"]
        for each in (model, expected)
    )
    np.testing.assert_allclose(found, losses, atol=1e-5)
    shortlist, first = np.array([2, 4, 5, 8]), TARGET_IN[:, :1]
    for words, ids, first_logits in (
        (None, first, expected_logits[:, 0]),
        (shortlist, 0 * first, expected_logits[:, 0, shortlist]),
    ):
        memory, mask, states = model.encode(source)
        step = model.decoding_step(memory, mask, words)
        states = [ops.expand_dims(state, 1) for state in states]
        logits = to_numpy(step(ids, states, 0)[0])
        np.testing.assert_allclose(logits[:, 0], first_logits, atol=1e-5)


@pytest.mark.slow
@tensorflow
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize("changes", ALTERED.values(), ids=list(ALTERED))
def test_quantized_model_uses_the_rounded_tables(changes, tmp_path):
    (model, rounded), (_, embeddings) = altered(changes)
    source = np.minimum(SOURCE, 8)
    before = logits_of(model, source, TARGET_IN)
    for embedding in embeddings:
        table = embedding.embeddings
        table.assign(int8_rounded(to_numpy(table)))
    model.model.quantize("int8")
    codes = [v for v in model.model.weights if v.dtype == "int8"]
    assert len(codes) == len(embeddings)
    check_altered(model, rounded, source)
    after = logits_of(model, source, TARGET_IN)
    assert 0 < np.abs(after - before).max() < 0.02 * np.abs(before).max()
    model.model.save(tmp_path / "model.keras")
    for again in (
        keras.saving.load_model(tmp_path / "model.keras"),
        keras.models.clone_model(model.model),
    ):
        again.set_weights(model.model.get_weights())
        np.testing.assert_array_equal(again([source, TARGET_IN]), after)


@pytest.mark.slow
@tensorflow
@pytest.mark.parametrize("changes", ALTERED.values(), ids=list(ALTERED))
def test_model_with_lora_uses_the_adapted_tables(changes):
    (model, merged), both = altered(changes)
    source = np.minimum(SOURCE, 8)
    for embedding, other in zip(*both, strict=True):
        before = logits_of(model, source, TARGET_IN)
        embedding.enable_lora(2)
        a, b = embedding.lora_embeddings_a, embedding.lora_embeddings_b
        found = logits_of(model, source, TARGET_IN)
        np.testing.assert_array_equal(found, before)
        b.assign(0.5 * random(*b.shape))
        other.embeddings.assign_add(to_numpy(a) @ to_numpy(b))
    check_altered(model, merged, source)
    # Training changes the small matrices.
    assert not any(
        v is embedding.embeddings
        for v in model.training_model.trainable_variables
        for embedding in both[0]
    )


@pytest.mark.slow
@tensorflow
@pytest.mark.parametrize("part", ["model", "training_model"])
@pytest.mark.parametrize("changes", ALTERED.values(), ids=list(ALTERED))
def test_clones_have_the_same_tied_weights(part, changes):
    model = getattr(make(**changes), part)
    inputs = [np.minimum(SOURCE, 8), TARGET_IN, TARGET_OUT][: len(model.inputs)]
    clone = keras.models.clone_model(model)
    assert len(clone.trainable_variables) == len(model.trainable_variables)
    clone.set_weights(model.get_weights())
    found, expected = (keras.tree.flatten(m(inputs)) for m in (clone, model))
    assert_all_close(found, expected, rtol=0)


@pytest.mark.slow
@tensorflow
def test_float_features_replace_source_words():
    translation_model = make(source_features=3)
    features = random(3, 5, 3).astype("float32")
    mask = SOURCE != PAD_ID
    logits = logits_of(translation_model, features, mask, TARGET_IN)
    assert logits.shape == (3, 4, 9)
    features[~mask] = 9
    found = logits_of(translation_model, features, mask, TARGET_IN)
    np.testing.assert_array_equal(found, logits)
    assert translation_model.source_embedding is None
    outputs = translation_model.training_model(
        [features, mask, TARGET_IN, TARGET_OUT]
    )
    assert tuple(outputs["word"].shape) == (3, 4)


SAVED = {
    "tied": ({}, {"tied_embeddings": True, "encoder_layers": 1}),
    "shared": ({}, ALTERED["shared"]),
    "bidirectional": (CONCAT, GRU | {"output_bias": True}),
    "features": (GLOBAL, {"decoder": "bahdanau", "source_features": 3}),
}


@each_of(SAVED, everywhere=1)
def test_saved_model_is_loaded_unchanged(tmp_path, attention, changes):
    translation_model = make(attention, **changes)
    inputs = [np.minimum(SOURCE, 8), TARGET_IN]
    if "source_features" in changes:
        inputs = [random(3, 5, 3).astype("float32"), SOURCE != 0, TARGET_IN]
    expected = logits_of(translation_model, *inputs)
    translation_model.model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(loaded(inputs)), expected)
    # Tied weights stay tied: there are no more parameters.
    assert loaded.count_params() == translation_model.model.count_params()
    other = make(attention, **changes)
    path = tmp_path / "model.weights.h5"
    translation_model.model.save_weights(path)
    other.model.load_weights(path)
    np.testing.assert_array_equal(logits_of(other, *inputs), expected)


@pytest.mark.slow
def test_losses_and_hits_match_the_logits():
    translation_model = make(label_smoothing=0.1)
    logits = logits_of(translation_model, SOURCE, TARGET_IN)
    logits -= logits.max(-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_p, TARGET_OUT[..., None], -1)[..., 0]
    inputs = [SOURCE, TARGET_IN, TARGET_OUT]
    outputs = translation_model.training_model(inputs)
    # Outside training nothing is smoothed.
    np.testing.assert_allclose(outputs["word"], -chosen * REAL, atol=1e-5)
    hits = (log_p.argmax(-1) == TARGET_OUT) & REAL
    np.testing.assert_array_equal(outputs["hits"], hits)
    smoothed = translation_model.training_model(inputs, training=True)
    expected = -(0.9 * chosen + 0.1 * log_p.mean(-1)) * REAL
    np.testing.assert_allclose(smoothed["word"], expected, atol=1e-5)


@pytest.mark.slow
@tensorflow
@pytest.mark.parametrize("style", ["zaremba", "authors", "sequence"])
def test_dropout_acts_only_in_training(style):
    translation_model = make(dropout=0.5, dropout_style=style)
    without_dropout = logits_of(translation_model, SOURCE, TARGET_IN)
    np.testing.assert_array_equal(
        logits_of(translation_model, SOURCE, TARGET_IN), without_dropout
    )
    first_draw = logits_of(translation_model, SOURCE, TARGET_IN, training=True)
    second_draw = logits_of(translation_model, SOURCE, TARGET_IN, training=True)
    assert np.isfinite(first_draw).all()
    assert np.abs(first_draw - without_dropout).max() > 1e-3
    assert np.abs(first_draw - second_draw).max() > 1e-3
    for part in (translation_model.encoder, translation_model.decoder):
        assert (part.dropout, part.dropout_style) == (0.5, style)


@tensorflow
def test_dropout_style_decides_the_dropout_of_the_memory():
    x = random(40, 10, 20).astype("float32")
    for style in ("zaremba", "authors", "sequence"):
        encoder = Encoder(8, dropout=0.4, dropout_style=style)
        memory = to_numpy(encoder(x, training=True)[0])
        dropped = memory == 0
        if style == "authors":
            assert not dropped.any()
        elif style == "zaremba":
            assert abs(dropped.mean() - 0.4) < 0.05
        else:  # One mask for all positions.
            assert (dropped == dropped[:, :1]).all() and dropped.any()


@tensorflow
def test_initial_weights_are_uniform_in_their_range():
    translation_model = make(
        units=40, encoder_layers=1, output_bias=True, initial_range=0.1
    )
    matrices = [w for w in translation_model.model.weights if w.ndim == 2]
    assert len(matrices) > 10
    values = [to_numpy(matrix) for matrix in matrices]
    for matrix, value in zip(matrices, values, strict=True):
        assert np.abs(value).max() <= 0.1, matrix.path
        assert np.abs(value).max() > 0.09, matrix.path
        # The standard deviation of U[-r, r], up to chance.
        error = abs(value.std() / (0.1 / np.sqrt(3)) - 1)
        assert error < 2 / np.sqrt(value.size), matrix.path


@tensorflow
def test_initial_weights_differ():
    for changes in ({"initial_range": 0.1}, {"initial_range": None}):
        drawn = {}
        for weight in make(**changes).model.weights:
            value = to_numpy(weight).ravel()
            if weight.ndim == 2:  # Compared up to the scale of the range.
                start = tuple(np.round(value[:5] / value[5], 3))
                assert start not in drawn, (weight.path, drawn[start])
                drawn[start] = weight.path


DIFFERENTIATED = {
    "Luong": ({}, {"encoder_layers": 1, "output_bias": True}),
    "Bahdanau": (
        CONCAT | {"use_scale": True},
        GRU | {"decoder": "bahdanau", "tied_embeddings": True},
    ),
}


@pytest.mark.slow
@each_of(DIFFERENTIATED, everywhere=1)
def test_gradients_reach_every_variable(attention, changes):
    translation_model = make(attention, **changes)
    model = translation_model.training_model
    inputs = [SOURCE, TARGET_IN, TARGET_OUT]
    variables = model.trainable_variables
    found = gradients(lambda: ops.sum(model(inputs)["word"]), variables)
    for variable, gradient in zip(variables, found, strict=True):
        assert np.isfinite(gradient).all(), variable.path
        assert np.abs(gradient).max() > 0, variable.path
    embedding = translation_model.source_embedding.embeddings
    (rows,) = (
        gradient
        for variable, gradient in zip(variables, found, strict=True)
        if variable is embedding
    )
    assert (rows[PAD_ID] == 0).all()


def test_bidirectional_encoder_cannot_be_reversed():
    with pytest.raises(ValueError, match="units=6, reverse=True"):
        Encoder(6, bidirectional=True, reverse=True)


def test_encoder_with_loose_clipping_equals_the_plain_encoder():
    x = random(3, 5, 4).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    options = {"num_layers": 2, "bidirectional": True}
    clipped = Encoder(6, cell_clip=1e3, gradient_clip=1e3, **options)
    plain = Encoder(6, **options)
    plain.build(x.shape)
    found = clipped(x, mask=mask)
    plain.set_weights(clipped.get_weights())
    assert_all_close(found, plain(x, mask=mask), atol=1e-6)


def test_encoder_clips_its_cells():
    x = 9 * random(2, 5, 4).astype("float32")
    _, _, carry = Encoder(6, cell_clip=0.25)(x)
    assert np.abs(ops.convert_to_numpy(carry)).max() == 0.25
    with pytest.raises(ValueError, match="recurrence='gru'.*cell_clip=1.0"):
        Encoder(6, recurrence="gru", cell_clip=1.0)


def test_given_dropout_masks_replace_drawn_ones():
    x = random(2, 5, 4).astype("float32")
    encoder = Encoder(6, num_layers=2, dropout=0.5, reverse=True)
    masks = {
        "inputs": np.full((1, 2, 4), 2.0),
        "layer_1": np.full((5, 2, 6), 0.5),
        "outputs": np.full((1, 2, 6), 3.0),
    }
    memory, *_ = encoder(x, training=True, dropout_masks=masks)
    first, second = (directions[0] for directions in encoder.stacks)
    below, *_ = first(2.0 * x[:, ::-1])
    above = to_numpy(second(0.5 * below)[0])
    np.testing.assert_allclose(memory, 3.0 * above[:, ::-1], atol=1e-6)


LEARNING = {
    "no attention": (NONE, {}),
    "cosine": (GLOBAL | {"score_mode": "cosine"}, {}),
    "Bahdanau": (CONCAT, GRU | {"decoder": "bahdanau"}),
    "authors": (
        {
            "score_mode": "concat",
            "concat_form": "query_only",
            "alignment": "monotonic",
            "clamp_position": False,
        },
        {
            "use_bias": False,
            "attentional_bias": True,
            "cell_clip": 50.0,
            "gradient_clip": 1000.0,
            "dropout": 0.5,
            "dropout_style": "authors",
        },
    ),
}
# JAX takes a third of TensorFlow's time.
QUICK = [] if BACKEND == "tensorflow" else ["authors"]


@pytest.mark.parametrize("name", few_at_first(LEARNING, QUICK))
def test_all_kinds_of_models_learn(name):
    attention, changes = LEARNING[name]
    model = make(attention, **changes).training_model
    model.compile(
        keras.optimizers.Adam(0.02),
        loss={"word": TranslationLoss(), "hits": None},
        jit_compile=BACKEND == "jax",
    )
    batch = [SOURCE, TARGET_IN, TARGET_OUT]
    # Other random weights and masks, as on torch, may need more steps.
    for _ in range(200 if BACKEND == "torch" else 100):
        model.train_on_batch(batch, {"word": TARGET_OUT, "hits": TARGET_OUT})
    outputs = model(batch)
    # All words are learned by heart; the first depends only on the source.
    np.testing.assert_array_equal(to_numpy(outputs["hits"]), REAL)
    assert to_numpy(outputs["word"]).max() < 0.5
