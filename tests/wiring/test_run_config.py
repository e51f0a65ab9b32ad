"""Settings of data and training reach the parts of a run.

The recipe runs on a corpus of a few lines; the slow parts, `fit` and the
search, only record their arguments.
"""

import collections
import dataclasses
import random
import types

import keras
import numpy as np
import pytest

import luong_keras.cli.train as command_line
import luong_keras.recipe.preparation as preparation
import luong_keras.recipe.stages as recipe
import luong_keras.recipe.training as training_part
import luong_keras.recipe.vocabularies as vocabularies
from luong_keras.config import (
    DataConfig,
    FilterConfig,
    ModelConfig,
    RunConfig,
    SentencePieceConfig,
    TrainingConfig,
)
from luong_keras.config.values import with_values
from luong_keras.data import phrasebook
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.datasets import Datasets, load_datasets
from luong_keras.evaluation.metrics.registry import find_metric
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.devices import ONE_DEVICE
from luong_keras.recipe.vocabularies import SentencePieceTokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from tests.layer_checks import small_config
from tests.wiring.attribute_paths import at, changed, row, values_at

pytestmark = pytest.mark.tensorflow

TRAIN = [(f"a b n{i}", "x " * (1 + i % 5) + "y") for i in range(24)]
DEV = [("a b", "x"), ("A b a", "x Y"), ("b", "y x y")]
MODEL = small_config(6)
ENGLISH_GERMAN = {"source_language": "en", "target_language": "de"}
BASE_CONFIG = RunConfig(model=MODEL, data=DataConfig(**ENGLISH_GERMAN))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(TRAIN, tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run_of(tmp_path_factory, corpus):
    """Return a function that records what training gets of a configuration."""
    tokenizers = [
        WordTokenizer.from_words(["a", "b"]),
        WordTokenizer.from_words(["x", "y"]),
    ]
    translation_model = TranslationModel(MODEL)
    datasets = Datasets(lambda: TRAIN, "lines", DEV, DEV)

    def run(config):
        recorded = {}

        def record(model, batches, **options):
            recorded.update(options, model=model, batches=batches)

        folder = RunFolder(tmp_path_factory.mktemp("run"))
        batches = training_part.training_batches(corpus, tokenizers, config)
        made = training_part.PreparedRun(config, datasets, tokenizers, batches)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_part, "fit", record)
            train = training_part.train
            assert train(translation_model, made, folder, ONE_DEVICE)
        return Run(recorded, folder, translation_model)

    return run


class Run:
    """Arguments of `fit`, under names that the tables use."""

    def __init__(self, recorded, folder, translation_model):
        assert recorded["model"] is translation_model.training_model
        self.options = types.SimpleNamespace(**recorded)
        self.data = recorded["batches"].batches
        self.multiple = recorded["batches"].share["row_multiple"]
        self.microbatches = recorded["model"].microbatches
        self.parallel_microbatches = recorded["model"].parallel_microbatches
        self.optimizer = recorded["model"].optimizer
        self.jit_compile = recorded["model"].jit_compile
        self.loss = recorded["model"]._compile_loss._user_loss["word"]
        callbacks = recorded["callbacks"]
        self.kinds = [type(callback).__name__ for callback in callbacks]
        by_kind = dict(zip(self.kinds, callbacks, strict=True))
        self.validation = by_kind["TranslationValidation"]
        self.scorer = types.SimpleNamespace(**self.validation.scorer.keywords)
        translator = self.validation.translate.args[0].__self__
        self.decoding = translator.decoding
        self.source_text, self.target_text = (
            moses and moses.preprocessor
            for moses in (translator._source_moses, translator._target_moses)
        )
        self.tensorboard = by_kind["TensorBoard"]
        self.best = by_kind["BestWeights"]
        self.epochs = by_kind["EpochWeights"]
        self.plateau = by_kind["StopOnPlateau"]
        self.progress = by_kind["TrainingProgress"]
        self.nonfinite = by_kind["StopOnNonFinite"]
        self.schedule = callbacks[4]
        self.validation_batches = list(recorded["validation_data"])
        self.folder = folder


def prepared(lowercase, tokenize, source="en", target="de"):
    """Return the preprocessing of both sides in the validation's translator."""
    return {
        f"{side}_text.{name}": value
        for side, language in (("source", source), ("target", target))
        for name, value in (
            ("lowercase", lowercase),
            ("tokenize", tokenize),
            ("language", language),
        )
    }


MONITORS = ("best", "plateau", "progress")


def monitored(key, mode):
    """Return the metric of all parts that monitor it."""
    found = {f"{part}.monitor": key for part in MONITORS}
    return found | {f"{part}.mode": mode for part in MONITORS}


EXPECTED = {
    **at("data", batch_size=128, seed=1, max_length=50, over_long="drop"),
    **at("data", batching="sorted_pools", pool_batches=64),
    **at("options", epochs=12, snapshot_steps=1000),
    "optimizer": "ClippedSGD",
    "schedule": "LearningRateHalving",
    **at("optimizer", clip_norm=5.0, count_embeddings=True),
    **at("optimizer", on_nonfinite="note"),
    **at("loss", normalization="sentence", nominal_batch_size=None),
    "jit_compile": False,
    "multiple": 1,
    "microbatches": 1,
    "parallel_microbatches": 1,
    **at("validation", samples=5, name="val_bleu"),
    "tensorboard.histogram_freq": 0,
    "scorer.lowercase": False,
    **prepared(None, None, None, None),
    **at("decoding", beam_size=1, stack_size=None, search="beam"),
    **at("decoding", length_penalty=0.0),
    **monitored("val_bleu", "max"),
    "epochs.keep": 0,
    "plateau.patience": None,
}


def values_of_run(run):
    found = values_at(run, EXPECTED)
    for name in ("optimizer", "schedule"):
        found[name] = type(getattr(run, name)).__name__
    return found


# Field: its value with other necessary settings, and the changed values. The
# learning rate has its own table.
TRAINING_ROWS = {
    # Both act before training: see tests/recipe/test_fine_tuning.py.
    **changed("init_from", "runs/base"),
    **changed("frozen", ("encoder",)),
    **changed("batch_size", 7, "data.batch_size"),
    **changed("gradient_accumulation_steps", 3, "microbatches", "multiple"),
    "parallel_microbatches": (
        {"parallel_microbatches": 2, "gradient_accumulation_steps": 3},
        {"parallel_microbatches": 2, "microbatches": 6, "multiple": 6},
    ),
    **changed("epochs", 3, "options.epochs"),
    **row("optimizer", "adam", {"optimizer": "ClippedAdam"}),
    **changed("learning_rate", 0.25),
    **changed("clip_norm", 2.0, "optimizer.clip_norm"),
    **changed("clip_counts_embeddings", False, "optimizer.count_embeddings"),
    **row("halving", "plateau", {"schedule": "ReduceOnPlateau"}),
    "iterations_per_epoch": (
        {"halving": "by_iteration", "iterations_per_epoch": 3},
        {},
    ),
    **changed("first_halved_epoch", 2),
    **changed("halvings_per_epoch", 2),
    **changed("normalization", "word", "loss.normalization"),
    "nominal_batch_size": (
        {"nominal_batch_size": True, "batch_size": 9},
        {"loss.nominal_batch_size": 9, "data.batch_size": 9},
    ),
    **changed("label_smoothing", 0.1),
    **changed("sampled_softmax", 4),
    **changed("seed", 5, "data.seed"),
    **changed("snapshot_steps", 17, "options.snapshot_steps"),
    **changed("samples", 2, "validation.samples"),
    **changed("keep", 3, "epochs.keep"),
    **row(
        *("metric", "ter"),
        {"validation.name": "val_ter", "scorer.lowercase": None}
        | monitored("val_ter", "min"),
    ),
    **changed("patience", 2, "plateau.patience"),
    # Used after training.
    **changed("final_weights", "last"),
}
DATA_ROWS = {
    **changed("max_length", 4, "data.max_length"),
    **changed("over_long", "truncate_source_left", "data.over_long"),
    **row(
        *("batching", "authors"),
        at("data", batching="authors", pool_batches=100),
    ),
    **row(
        *("lowercase", True),
        {"scorer.lowercase": True, **prepared(True, False)},
    ),
    **row("tokenize", True, prepared(False, True)),
}
DECODING_ROWS = {
    "length_penalty": (
        {"length_penalty": 0.5, "search": "sampling"}
        | {"beam_size": 4, "stack_size": 9},
        {"decoding.length_penalty": 0.5},
    )
}
TABLES = {
    "training": TRAINING_ROWS,
    "data": DATA_ROWS,
    "decoding": DECODING_ROWS,
}
ROWS = [
    pytest.param(
        {f"{section}.{field}": value for field, value in values.items()},
        differences,
        id=f"{section}.{name}",
    )
    for section, rows in TABLES.items()
    for name, (values, differences) in rows.items()
    if differences
]


def test_all_fields_of_training_are_tested():
    usual = {f.name: f.default for f in dataclasses.fields(TrainingConfig)}
    assert set(TRAINING_ROWS) == set(usual)
    for name, (values, _) in TRAINING_ROWS.items():
        assert values[name] != usual[name]


def test_default_training(run_of):
    run = run_of(BASE_CONFIG)
    assert values_of_run(run) == EXPECTED
    assert run.kinds == [
        "LambdaCallback",  # compares the snapshots of all processes
        "StopOnNonFinite",
        "TokensPerSecond",
        "TranslationValidation",
        "LearningRateHalving",
        "StopOnPlateau",
        "BestWeights",
        "EpochWeights",
        "JsonLinesLog",
        "TensorBoard",
        "TrainingProgress",
        "LambdaCallback",  # records this call in the sessions
        "StopOnSignal",
    ]
    assert run.options.snapshot_path == run.folder.snapshot
    assert run.validation.output_folder == run.folder.samples
    assert run.best.path == run.folder.best_weights
    assert run.epochs.folder == run.folder.checkpoints
    # The saved weights are of the model that is served.
    assert run.best._saved_model.name == "translator"
    assert run.epochs._saved_model.name == "translator"
    assert run.validation.sources == [source for source, _ in DEV]
    assert run.validation.references == [target for _, target in DEV]
    assert run.folder.last_weights.exists()


@pytest.mark.parametrize(
    "metric, key, mode",
    [
        ("loss", "val_loss", "min"),
        ("token_accuracy", "val_hits_accuracy", "max"),
    ],
)
def test_validation_results_can_be_the_metric(run_of, metric, key, mode):
    """Check that BLEU is still computed."""
    run = run_of(with_values(BASE_CONFIG, {"training.metric": metric}))
    assert values_of_run(run) == EXPECTED | monitored(key, mode)


def test_final_weights_are_scored_with_the_gold_links(monkeypatch, tmp_path):
    links = ["0-0"] * len(DEV)

    def score(evaluation, *given):
        assert evaluation.translator == (tmp_path, "last")
        assert given == (DEV, [target for _, target in DEV], links)
        raise InterruptedError

    monkeypatch.setattr(recipe, "load_run", lambda *given: given)
    monkeypatch.setattr(recipe, "TextTranslator", lambda *given: given)
    monkeypatch.setattr(recipe.Evaluation, "all_scores", score)
    config = with_values(BASE_CONFIG, {"training.final_weights": "last"})
    datasets = Datasets(list, "", [], DEV, links)
    with pytest.raises(InterruptedError):
        recipe.score_and_export(datasets, config, RunFolder(tmp_path))


@pytest.mark.slow_after_first
@pytest.mark.parametrize("changes, differences", ROWS)
def test_settings_change_only_these_parts_of_a_run(
    run_of, changes, differences
):
    run = run_of(with_values(BASE_CONFIG, changes))
    assert values_of_run(run) == EXPECTED | differences


def test_loss_has_the_dtype_of_the_model():
    for precision in ("float32", "float64"):
        config = with_values(BASE_CONFIG, {"model.precision": precision})
        assert training_part.translation_loss(config).dtype == precision


@pytest.mark.parametrize("precision", ["mixed_float16", "mixed_bfloat16"])
def test_loss_is_scaled_only_for_float16_gradients(precision):
    config = with_values(BASE_CONFIG, {"model.precision": precision})
    made = training_part.build_optimizer(config)
    scaled = precision == "mixed_float16"
    assert isinstance(made, keras.optimizers.LossScaleOptimizer) == scaled
    inner = made.inner_optimizer if scaled else made
    assert (inner.clip_norm, float(inner.learning_rate)) == (5.0, 1.0)


def rates(**settings):
    """Return the learning rate of each batch, as the callback sets it."""
    training = TrainingConfig(learning_rate=8.0, **settings)
    optimizer = training_part.build_optimizer(RunConfig(training=training))
    holder = types.SimpleNamespace(
        learning_rate=float(optimizer.learning_rate),
        get_config=lambda: {"learning_rate": holder.learning_rate},
    )
    schedule = training_part.learning_rate_schedule(
        training, find_metric(training.metric)
    )
    model = types.SimpleNamespace(optimizer=holder, steps_per_execution=1)
    schedule.set_model(model)
    schedule.set_params({"steps": 4})
    schedule.on_train_begin()
    found = []
    for epoch in range(4):
        schedule.on_epoch_begin(epoch)
        for batch in range(4):
            schedule.on_train_batch_begin(batch)
            found.append(holder.learning_rate)
        # The scores are worse after each epoch.
        scores = {"val_bleu": 9.0 - epoch, "val_ter": 9.0 + epoch}
        schedule.on_epoch_end(epoch, {**scores, "loss": -epoch})
    return found


@pytest.mark.parametrize(
    "halving, iterations, first, halvings, expected",
    [
        ("start", None, 3, 1, [8] * 8 + [4] * 4 + [2] * 4),
        ("start", None, 4, 2, [8] * 12 + [4] * 2 + [2] * 2),
        # Halved after epoch 3, so epoch 4 has the first smaller rate.
        ("after_epoch", None, 3, 1, [8] * 12 + [4] * 4),
        ("after_epoch", None, 3, 2, [8] * 10 + [4] * 2 + [2] * 2 + [1] * 2),
        # Epochs of five updates: the second ends after ten.
        ("by_iteration", 5, 3, 1, [8] * 10 + [4] * 5 + [2]),
        (
            "by_iteration",
            6,
            2,
            2,
            [8] * 6 + [4] * 3 + [2] * 3 + [1] * 3 + [0.5],
        ),
    ],
)
def test_learning_rate_follows_its_settings(
    halving, iterations, first, halvings, expected
):
    found = rates(
        halving=halving,
        iterations_per_epoch=iterations,
        first_halved_epoch=first,
        halvings_per_epoch=halvings,
    )
    assert found == expected


@pytest.mark.parametrize("metric", ["auto", "ter"])
def test_learning_rate_falls_on_a_plateau(metric):
    expected = [8] * 8 + [4] * 4 + [2] * 4
    assert rates(halving="plateau", metric=metric) == expected


# Validation data is preprocessed and cut like the input of the search.


def test_validation_preprocesses_and_cuts_like_the_search(run_of):
    changes = {
        "training.batch_size": 2,
        "data.lowercase": True,
        "decoding.max_source_length": 2,
    }
    run = run_of(with_values(BASE_CONFIG, changes))
    assert [len(x["source"]) for x, _ in run.validation_batches] == [2, 1]

    def ids(batch):
        return [tuple(i for i in row if i) for row in batch.numpy().tolist()]

    # a = 4, b = 5 and x = 4, y = 5; three words are cut to two.
    sources, targets = set(), set()
    for inputs, outputs in run.validation_batches:
        sources.update(ids(inputs["source"]))
        targets.update(ids(outputs["word"]))
    assert sources == {(4, 5), (5,)}
    assert targets == {(4, 3), (4, 5, 3), (5, 4, 3)}


# Training text.


def test_all_fields_of_data_are_tested():
    """Check that each field is in a table above or in a test named here."""
    elsewhere = {
        "tests/data/test_datasets.py": {
            *("dataset", "source_language", "target_language"),
            *("train", "dev", "test"),
        },
        test_columns_setting: {"columns"},
        test_weights_reach_the_batches: {"weights"},
        test_filters_and_processes_reach_the_corpus: {"filters", "processes"},
        test_phrasebook_size_setting: {"train_size"},
        test_tokenizer_settings: {
            "tokenizer",
            "joint_vocabulary",
            "pretokenized",
        },
        test_new_words_setting: {"new_words"},
        test_sentencepiece_settings: {"sentencepiece"},
        test_corpus_preprocessing_settings: {"normalize_punctuation"},
        test_max_skipped_setting: {"max_skipped"},
    }
    named = set().union(DATA_ROWS, *elsewhere.values())
    assert named == {field.name for field in dataclasses.fields(DataConfig)}


def test_columns_setting(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("source,target,b,c\n1,2,3,4\n")
    files = {part: str(path) for part in ("train", "dev", "test")}
    for columns, pair in ((None, ("1", "2")), (("c", "b"), ("4", "3"))):
        found = load_datasets(DataConfig("files", **files, columns=columns))
        assert [*found.train(), *found.dev, *found.test] == [pair] * 3


def test_weights_reach_the_batches(run_of):
    data = DataConfig("files", train=("a.tsv",), weights=(2.0,))
    run = run_of(RunConfig(model=MODEL, data=data))
    assert run.data._mixture.weights == (2.0,)
    assert run_of(BASE_CONFIG).data._mixture is None


def test_filters_and_processes_reach_the_corpus(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        *(preparation, "open_or_write_corpus"),
        lambda *_, **options: calls.append(options),
    )
    filters = FilterConfig(length_ratio=2.0)
    datasets = Datasets(lambda: TRAIN, "lines", DEV, DEV)
    data = DataConfig(filters=filters, processes=3)
    preparation.prepare_corpus(datasets, RunConfig(data=data), tmp_path)
    assert (calls[0]["filters"], calls[0]["processes"]) == (filters, 3)


def test_subwords_are_trained_on_a_limited_sample(
    corpus, tmp_path, monkeypatch
):
    learned = []

    def train(lines, size, **options):
        learned.append(list(lines))
        return WordTokenizer.from_words(["a"])

    monkeypatch.setattr(vocabularies.SentencePieceTokenizer, "train", train)
    for number, lines in enumerate((99, 48, 10, 10)):
        monkeypatch.setattr(vocabularies, "SUBWORD_LINES", lines)
        data = DataConfig(tokenizer="sentencepiece", joint_vocabulary=True)
        training = TrainingConfig(seed=number)
        config = RunConfig(model=MODEL, data=data, training=training)
        run = RunFolder(tmp_path / str(number))
        vocabularies.prepare_tokenizers(corpus, config, run)
    text = [*corpus.side_lines("source"), *corpus.side_lines("target")]
    assert learned[0] == learned[1] == text
    # A sample of both sides in the text's order, independent of the seed.
    assert learned[2] == learned[3] and len(learned[2]) == 10
    rest = iter(text)
    assert all(line in rest for line in learned[2])
    assert {line[0] for line in learned[2]} == {"a", "x"}


@pytest.mark.parametrize("size", [30, 9999])
def test_sentencepiece_settings(corpus, tmp_path, monkeypatch, size):
    calls = []
    original_train = vocabularies.SentencePieceTokenizer.train

    def train(lines, size, **options):
        calls.append(options)
        return original_train(lines, size, **options)

    monkeypatch.setattr(vocabularies.SentencePieceTokenizer, "train", train)
    subwords = SentencePieceConfig("unigram", "identity", 0.99, False, ("n",))
    data = DataConfig(tokenizer="sentencepiece", sentencepiece=subwords)
    config = RunConfig(model=ModelConfig(size, size), data=data)
    vocabularies.prepare_tokenizers(corpus, config, RunFolder(tmp_path))
    # Also after the size was adjusted.
    assert len(calls) > 2
    assert calls == [dataclasses.asdict(subwords)] * len(calls)


def test_phrasebook_size_setting():
    pairs = [(p.source, p.target) for p in phrasebook.split_pairs("train", 20)]
    for languages in (("en", "de"), ("de", "en")):
        data = DataConfig("phrasebook", *languages, train_size=20)
        assert list(load_datasets(data).train()) == pairs
        pairs = [pair[::-1] for pair in pairs]


def corpus_of(tmp_path, pairs, **changes):
    config = RunConfig(data=DataConfig(**ENGLISH_GERMAN, **changes))
    datasets = Datasets(lambda: pairs, "lines", DEV, DEV)
    corpus = preparation.prepare_corpus(datasets, config, tmp_path)
    return [list(corpus.side_lines(side)) for side in ("source", "target")]


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, [["A «b», c."], ["X «y», z."]]),
        ({"lowercase": True}, [["a «b», c."], ["x «y», z."]]),
        # the comma as in English
        ({"normalize_punctuation": True}, [['A "b," c.'], ['X "y", z.']]),
        # In German, a letter and a dot are an abbreviation.
        ({"tokenize": True}, [["A « b » , c ."], ["X « y » , z."]]),
    ],
)
def test_corpus_preprocessing_settings(tmp_path, changes, expected):
    pytest.importorskip("sacremoses")
    pair = ("A «b», c.", "X «y», z.")
    assert corpus_of(tmp_path, [pair], **changes) == expected


def test_max_skipped_setting(tmp_path):
    pairs = [("a", "x"), ("", "y")]
    kept = corpus_of(tmp_path / "skip", pairs, max_skipped=0.5)
    assert kept == [["a"], ["x"]]
    with pytest.raises(ValueError, match=r"50\.0%. Expected: at most 49\.0%"):
        corpus_of(tmp_path / "many", pairs, max_skipped=0.49)
    with pytest.raises(ValueError, match="Pair 2 cannot be used"):
        corpus_of(tmp_path / "error", pairs, max_skipped=0.0)


@pytest.mark.parametrize(
    "data, sizes, pretokenized",
    [
        ({}, (7, 6), False),
        ({"tokenize": True}, (7, 6), True),
        ({"pretokenized": True}, (7, 6), True),
        ({"joint_vocabulary": True}, (8, 8), False),
        ({"tokenizer": "sentencepiece"}, (22, 9), None),
    ],
)
def test_tokenizer_settings(corpus, tmp_path, data, sizes, pretokenized):
    config = RunConfig(data=DataConfig(**data), model=ModelConfig(*sizes))
    made = vocabularies.prepare_tokenizers(corpus, config, RunFolder(tmp_path))
    kind = SentencePieceTokenizer if "tokenizer" in data else WordTokenizer
    assert [type(tokenizer) for tokenizer in made] == [kind, kind]
    assert tuple(tokenizer.vocabulary_size for tokenizer in made) == sizes
    for tokenizer in made:
        assert getattr(tokenizer, "pretokenized", None) == pretokenized
    known = [{*t.lookup(np.arange(4, 6)).numpy().tolist()} for t in made]
    if data.get("joint_vocabulary"):
        assert known[0] == known[1]
    elif "tokenizer" not in data:
        assert known == [{b"a", b"b"}, {b"x", b"y"}]
    model = vocabularies.fit_vocabulary_sizes(BASE_CONFIG, *made).model
    found = (model.source_vocabulary_size, model.target_vocabulary_size)
    assert found == sizes


@pytest.mark.parametrize("count", [1, 5])
def test_new_words_setting(corpus, tmp_path, count):
    for name in ("source_vocabulary", "target_vocabulary"):
        WordTokenizer.from_words(["y"]).save(tmp_path, name)
    training = TrainingConfig(init_from="runs/base")
    config = RunConfig(data=DataConfig(new_words=count), training=training)
    made = vocabularies.prepare_tokenizers(corpus, config, RunFolder(tmp_path))
    counts = [
        collections.Counter(w for line in side for w in line.split())
        for side in zip(*TRAIN, strict=True)
    ]
    for tokenizer, found in zip(made, counts, strict=True):
        new = sorted(set(found) - {"y"}, key=lambda w: (-found[w], w))
        assert tokenizer.words == ["y", *new[:count]]


@pytest.mark.parametrize(
    "name, value", [("label_smoothing", 0.125), ("sampled_softmax", 4)]
)
def test_command_line_settings_reach_the_model(
    tmp_path, monkeypatch, name, value
):
    """Check the loss, seed, sizes and text of a command."""
    for part in ("train", "dev", "test"):
        for language, lines in (("en", "a b\nb a\n"), ("fr", "x\ny x z\n")):
            (tmp_path / f"{part}.{language}").write_text(lines)
    command = ["--preset", "demo", "--run-dir", str(tmp_path / "run"), "--set"]
    command += [
        f"data.{part}={tmp_path / part}" for part in ("train", "dev", "test")
    ]
    command += ["data.dataset=files", "data.tokenizer=words", "training.seed=7"]
    command += ["data.target_language=fr", f"training.{name}={value}"]
    command += ["model.dropout=0.25", "model.units=4", "model.embedding_size=3"]
    arguments, seeds = [], []
    monkeypatch.setattr(
        recipe, "train", lambda *given, **_: arguments.extend(given)
    )
    monkeypatch.setattr(random, "seed", seeds.append)
    command_line.run(command_line.parse(command))
    translation_model, prepared, run, *_ = arguments
    config, datasets, tokenizers, batches = prepared
    assert seeds == [7]
    assert getattr(translation_model, name) == value
    assert translation_model.config == config.model
    assert [t.vocabulary_size for t in tokenizers] == [6, 7]
    assert (config.model.source_vocabulary_size, config.model.units) == (6, 4)
    assert config.model.target_vocabulary_size == 7
    assert batches.pairs_per_epoch == len(datasets.dev) == 2
    assert run.read_config()["training"][name] == value
