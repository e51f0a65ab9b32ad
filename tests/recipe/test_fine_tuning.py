"""Fine-tuning: runs that start with the weights of a parent run."""

import functools
import json
import logging
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.cli.main import main
from luong_keras.config import RunConfig, TrainingConfig
from luong_keras.config.values import (
    LEAVES,
    config_to_dict,
    override,
    with_values,
)
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.files.atomic_file import read_json_lines
from luong_keras.models.translation_model import TranslationModel
from luong_keras.presets import PRESETS
from luong_keras.recipe.fine_tuning import (
    _INHERITED,
    RESET_SETTINGS,
    freeze,
    inherited_settings,
    prepare_initial_weights,
)
from luong_keras.recipe.stored_settings import run_config
from luong_keras.recipe.vocabularies import print_unknown_tokens
from luong_keras.serving import export as export_module
from luong_keras.special_tokens import SPECIAL_TOKENS
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.recipe.quick_runs import (
    TINY,
    quick_runs,
    same,
    weights,
    write_tsv,
)

pytestmark = pytest.mark.tensorflow
SETTINGS = TINY | {"batch_size": 32, "epochs": 2}
PAIRS = [
    (f"a{i} b{i % 7} c{i % 5}", f"x{i % 5} y{i % 7} z{i}") for i in range(60)
]
OTHER = [(f"{s} new{i % 3}", f"{t} neu") for i, (s, t) in enumerate(PAIRS)]


TOKENIZERS = {
    "words": {"data.joint_vocabulary": False, "model.tied_embeddings": False},
    "sentencepiece": {"vocabulary_size": 40, "model.shared_embeddings": True},
}
both_tokenizers = pytest.mark.parametrize(
    "base",
    ["words", pytest.param("sentencepiece", marks=pytest.mark.slow)],
    indirect=True,
)


@pytest.fixture(autouse=True, scope="module")
def quick():
    with quick_runs():
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a function that trains one run per tokenizer."""

    @functools.cache
    def run(tokenizer):
        settings = SETTINGS | TOKENIZERS[tokenizer]
        settings |= {"data.tokenizer": tokenizer}
        folder = tmp_path_factory.mktemp(tokenizer)
        Translator.fit(PAIRS, run_dir=folder, preset="small", **settings)
        return folder

    return run


@pytest.fixture
def base(request, tmp_path, trained):
    """Copy a trained run; by default its tokens are words."""
    source = trained(getattr(request, "param", "words"))
    return shutil.copytree(source, tmp_path / "base")


def change(base, values):
    """Change the written settings of a run, and return them."""
    config = with_values(run_config(base, resolve_paths=False), values)
    RunFolder(base).config.write_text(json.dumps(config_to_dict(config)))
    return config


def tune(base, pairs=OTHER, folder="tuned", **settings):
    """Fine-tune the base run on the other text."""
    run = RunFolder(base.parent / folder)
    settings = {"init_from": str(base), **settings}
    Translator.fit(pairs, run_dir=run.path, **settings)
    return run


@pytest.mark.slow
@both_tokenizers
def test_runs_start_with_the_weights_of_the_parent(base, capsys):
    """Keep model and vocabularies unchanged with a learning rate of 0."""
    (base / "LICENSE.txt").write_text("by the parent's terms")
    (base / "LICENSES").mkdir(exist_ok=True)
    run = tune(base, learning_rate=0.0, epochs=1)
    old = RunFolder(base)
    assert same(run.last_weights, old.best_weights)
    vocabulary = run.source_vocabulary.read_bytes()
    assert vocabulary == old.source_vocabulary.read_bytes()
    line = [PAIRS[0][0]]
    found = Translator.from_run(run.path).score(line, line)
    expected = Translator.from_run(base).score(line, line)
    assert found[0].log_probability == expected[0].log_probability
    after = run_config(run.path)
    assert after.model == run_config(base).model
    # The printed score before the first step equals the score of epoch 1.
    log = read_json_lines(run.log)
    key = f"val_{after.training.metric.split(':')[0]}"
    printed = capsys.readouterr().out
    assert f"{key} after epoch 0: {log[0][key]:.2f}" in printed
    licence = (run.path / "LICENSE.txt").read_text()
    assert licence == "by the parent's terms"
    parent = json.loads(run.parent.read_text())
    assert parent["run"] == str(base) and len(parent["sha256"]) == 64


def test_runs_start_with_the_final_weights_of_the_parent(base):
    parent = RunFolder(base)
    change(base, {"training.final_weights": "last"})
    parent.last_weights.write_bytes(b"the last")
    run = RunFolder(base.parent / "tuned")
    values = {"training.init_from": str(base)}
    prepare_initial_weights(with_values(inherited_settings(base), values), run)
    assert run.initial_weights.read_bytes() == b"the last"
    parent.checkpoints.mkdir(exist_ok=True)
    epoch = parent.checkpoints / "epoch-001.weights.h5"
    epoch.touch()
    assert inherited_settings(epoch) == inherited_settings(base)


def test_each_setting_of_the_text_is_inherited_reset_or_free():
    decided = "|".join(map(re.escape, (*_INHERITED, *RESET_SETTINGS)))
    free = "dataset|max_length|over_long|batching|processes|max_skipped"
    pattern = rf"{decided}|data\.({free}|filters\..*)"
    data = [name for name in LEAVES if name.startswith("data.")]
    assert [name for name in data if not re.fullmatch(pattern, name)] == []


def test_settings_of_the_text_of_the_parent_are_reset(base):
    before = inherited_settings(base)
    values = {
        "data.train": ("a", "b"),
        "data.weights": (3.0, 1.0),
        "data.columns": ("b", "1"),
        "training.frozen": ("encoder",),
        "decoding.dictionary": "a.txt",
        "decoding.shortlist": "b.txt",
    }
    # The default maximum is 2.
    values |= {
        "decoding.min_length_ratio": 3.0,
        "decoding.max_length_ratio": 3.0,
    }
    change(base, values)
    assert inherited_settings(base) == before


def test_subwords_of_a_preset_do_not_replace_those_of_the_parent(base):
    subwords = "data.sentencepiece.normalization"
    values = {"data.tokenizer": "sentencepiece", subwords: "identity"}
    config = change(base, values)
    child = inherited_settings(base, PRESETS["small"])
    assert child.data.sentencepiece == config.data.sentencepiece
    with pytest.raises(ValueError, match=f"{subwords}: 'identity' → 'nfkc'"):
        tune(base, **{subwords: "nfkc"})


def test_settings_that_weights_do_not_need_are_those_of_the_preset(base):
    change(base, {"model.dropout": 0.9})
    model = inherited_settings(base, PRESETS["small"]).model
    assert (model.dropout, model.units) == (PRESETS["small"].model.dropout, 8)


def test_later_calls_do_not_reuse_the_parent_of_a_stopped_call(base):
    run = RunFolder(base.parent / "stopped")
    values = {"training.init_from": str(base)}
    config = with_values(inherited_settings(base), values)
    prepare_initial_weights(config, run)
    assert run.initial_weights.exists() and run.source_vocabulary.exists()
    prepare_initial_weights(with_values(config, {"init_from": None}), run)
    assert not run.initial_weights.exists() and not run.parent.exists()
    assert not run.source_vocabulary.exists()


@pytest.mark.slow
def test_resumed_runs_do_not_read_the_parent_again(base):
    whole = tune(base)
    tune(base, folder="again", epochs=1)
    for file in base.glob("*.weights.h5"):
        file.unlink()
    again = tune(base, folder="again", epochs=2)
    assert same(whole.last_weights, again.last_weights)
    assert not same(whole.last_weights, whole.initial_weights)


@pytest.mark.slow
def test_frozen_weights_do_not_change(base):
    run = tune(base, **{"training.frozen": ["encoder", "*/bias_0"]})
    before, after = weights(run.initial_weights), weights(run.last_weights)
    moved = {n for n in after if not np.array_equal(before[n], after[n])}
    assert moved and not any("encoder" in name for name in moved)
    assert any("cell" in name for name in moved)


@pytest.mark.parametrize(
    "settings, pattern",
    [
        ([], "decoder/input_feeding_lstm_cell/local_attention"),
        (["attention.kind=global"], "*lstm_cell/luong_attention"),
        (["recurrence=gru"], "decoder/input_feeding_gru_cell"),
        (["decoder=bahdanau", "attention.kind=global"], "*/bahdanau_lstm_cell"),
    ],
)
def test_patterns_of_frozen_weights_fit_every_model(settings, pattern):
    """Keras numbers the names of layers that were not named before."""
    sizes = ["units=4", "embedding_size=4", "source_vocabulary_size=9"]
    settings = [*sizes, "target_vocabulary_size=9", *settings]
    config = override(PRESETS["paper"], [f"model.{s}" for s in settings]).model
    for _ in range(2):
        model = TranslationModel(config).model
        freeze(model, [pattern])
        with pytest.raises(ValueError, match="one of .*decoder/.*_kernel, .*"):
            freeze(model, ["decoder/wrong"])


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"units": 16}, "model.units: 8 → 16"),
        *(
            ({f"data.{name}": True}, f"data.{name}: False → True")
            for name in (
                *("lowercase", "normalize_punctuation", "tokenize"),
                "pretokenized",
            )
        ),
        ({"training.frozen": ["encoders"]}, "Did you mean encoder?"),
        ({"training.frozen": ["*"]}, "must leave weights to train"),
    ],
)
def test_settings_that_conflict_with_the_parent_are_refused(
    base, settings, message
):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        tune(base, **settings)
    # The next call may give other settings.
    assert not RunFolder(base.parent / "tuned").config.exists()


def test_the_metric_is_chosen_for_the_new_text(base):
    """The parent's references have three words, too few for BLEU."""
    assert run_config(base).training.metric == "chrf"
    pairs = [(s, f"{t} neu .") for s, t in PAIRS]
    tuned = tune(base, pairs, init_from=base, epochs=1)
    assert run_config(tuned.path).training.metric == "bleu:13a"


def test_languages_that_the_parent_lacks_are_refused_only_for_rules(base):
    paths = [str(base.parent / f"text.{code}") for code in ("en", "de")]
    for path, lines in zip(paths, zip(*OTHER, strict=True), strict=True):
        Path(path).write_text("\n".join(lines))
    data = run_config(tune(base, paths, epochs=1).path).data
    assert (data.source_language, data.target_language) == ("en", "de")
    change(base, {"data.tokenize": True})
    with pytest.raises(ValueError, match="target_language: None → 'de'"):
        tune(base, paths, "rules", epochs=1)


@pytest.mark.slow
@both_tokenizers
def test_unknown_tokens_are_reported(base, capsys):
    """Report words, or the letters that the parent's subwords lack."""
    tune(base, [(f"{s} ÄÖ", target) for s, target in OTHER], epochs=1)
    printed = capsys.readouterr().out
    if run_config(base).data.tokenizer == "words":
        # 2 of 5 words are unknown, and so are words that the parent held out.
        share = re.findall(r"([\d.]+)% of the source tokens are unk", printed)
        assert 40 <= float(share[0]) < 45
        assert "'ÄÖ', 'new" in printed and "data.new_words" in printed
        assert "% of the target tokens are unknown" in printed
    else:
        assert "of the source tokens are unknown to the parent" in printed
        assert "ÄÖ" in printed and "byte_fallback" in printed


def test_rare_unknown_tokens_are_counted(tmp_path, capsys):
    """Only the first 10,000 lines are searched for examples."""
    pairs = [("a", "b")] * 10_000 + [("new", "b")] * 2
    corpus = write_corpus(pairs, tmp_path / "corpus")
    (tmp_path / "words").write_text("\n".join([*SPECIAL_TOKENS, "a", "b"]))
    tokenizer = WordTokenizer(tmp_path / "words")
    config = RunConfig(training=TrainingConfig(init_from="runs/base"))
    print_unknown_tokens(corpus, (tokenizer, tokenizer), config)
    assert capsys.readouterr().out == (
        "2 of the source tokens are unknown to the parent, which can neither "
        "read nor write them. data.new_words adds words.\n"
    )


@both_tokenizers
def test_new_words_are_appended_to_the_vocabulary(base, capsys):
    if run_config(base).data.tokenizer == "sentencepiece":
        with pytest.raises(ValueError, match="subwords spell new words"):
            tune(base, **{"data.new_words": 2})
        return
    settings = {"training.frozen": "source_*", "data.new_words": 2}
    run = tune(base, learning_rate=0.0, epochs=1, **settings)
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if "rows of new words" in line)
    assert line.startswith("source_embedding/embeddings: ")
    old = RunFolder(base).source_words.read_text()
    new = run.source_words.read_text()
    added = new.removeprefix(old).split()
    assert new.startswith(old) and set(added) < {"new0", "new1", "new2"}
    size = run_config(base).model.source_vocabulary_size
    assert run_config(run.path).model.source_vocabulary_size == size + 2
    before, after = weights(run.initial_weights), weights(run.last_weights)
    for name, array in before.items():
        inside = tuple(map(slice, array.shape))
        np.testing.assert_array_equal(after[name][inside], array)
    # The tokenizer of the run knows the new words.
    tokenizer = Translator.from_run(run.path).source_tokenizer
    assert tokenizer.encode(added).to_list() == [[size], [size + 1]]


def test_the_command_fine_tunes_a_run(base, tmp_path, capsys):
    text = write_tsv(tmp_path / "other.tsv", OTHER)
    call = ["train", text, "--run-dir", str(tmp_path / "tuned")]
    call += ["--init-from", str(base / "last.weights.h5"), "--epochs", "1"]
    assert main(call) == 0
    run = RunFolder(tmp_path / "tuned")
    assert same(run.initial_weights, base / "last.weights.h5")
    assert main(call) == 0  # The same command continues.
    capsys.readouterr()
    call[call.index("--run-dir") + 1] = str(tmp_path / "more")
    call[call.index("--init-from") + 1] = str(tmp_path / "nowhere")
    assert main(call) == 2
    error = capsys.readouterr().err
    assert "Expected: the folder of a training run" in error
    assert error.count("\n") == 1
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "saved_model.pb").touch()
    assert main(call) == 2
    assert "Name the run that was exported." in capsys.readouterr().err


@pytest.fixture
def records():
    """Record the log of TensorFlow at the level that notebooks use."""
    logger, found = tf.get_logger(), []
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addFilter(found.append)  # returns None, which hides the record
    yield found
    logger.removeFilter(found.append)
    logger.setLevel(level)


@pytest.mark.slow
@pytest.mark.parametrize("base", ["words", "sentencepiece"], indirect=True)
def test_exports_replace_a_deleted_parent_run(
    base, tmp_path, monkeypatch, records
):
    """Read weights, vocabularies and licence."""

    def one_signature(*arguments, **options):
        name = "serving_default"
        return {name: functions(*arguments, **options)[name]}

    functions = export_module.signatures
    monkeypatch.setattr(export_module, "signatures", one_signature)
    monkeypatch.setattr(export_module, "check_saved_model", lambda *_: None)
    (base / "LICENSE").write_text("by the parent's terms")
    tf.config.run_functions_eagerly(False)
    translator = Translator.from_run(base)
    export = translator.export(tmp_path / "served" / "1")
    assert not [r for r in records if "written to" in r.getMessage()]
    assert tf.get_logger().level == logging.INFO
    tf.config.run_functions_eagerly(True)
    kept = export / "assets.extra" / "parent"
    assert str(tmp_path) not in (kept / "config.json").read_text()
    expected = weights(RunFolder(base).best_weights)
    vocabulary = RunFolder(base).source_vocabulary.read_bytes()
    shutil.rmtree(base)
    run = tune(export, learning_rate=0.0, epochs=1)
    found = weights(run.initial_weights)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert run.source_vocabulary.read_bytes() == vocabulary
    assert (run.path / "LICENSE").read_text() == "by the parent's terms"
    assert same(run.last_weights, run.initial_weights)
    # An export whose model has further weights, such as those of LoRA.
    names = json.loads((kept / "weights.json").read_text())["paths"]
    for wrong in (names[1:], names[::-1], [*names, names[0]]):
        (kept / "weights.json").write_text(json.dumps({"paths": wrong}))
        weight = r"(no more|\S+ \(.*\))\."
        message = f"Expected: {weight} Received: {weight}"
        with pytest.raises(ValueError, match=message):
            tune(export, folder="wrong")


def test_exports_of_several_runs_cannot_be_parents(base, tmp_path, monkeypatch):
    change(base, {"training.init_from": "/home/me", "data.train": "/home/me"})
    parents = []
    monkeypatch.setattr(
        "luong_keras.translator.export_saved_model",
        lambda *arguments: parents.append(arguments[-1]),
    )
    Translator.from_run([base, base]).export(tmp_path / "1")
    Translator.from_run([base]).export(tmp_path / "2")
    assert parents[0] is None
    assert b"/home/me" not in parents[1]["parent/config.json"]
