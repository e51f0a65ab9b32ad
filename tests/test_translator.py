"""Training a translator by `Translator.fit`."""

import keras
import pytest

from luong_keras.callbacks import (
    LearningRateHalving,
    ReduceOnPlateau,
    StopOnPlateau,
)
from luong_keras.config.values import (
    config_from_dict,
    config_to_dict,
    with_values,
)
from luong_keras.data import phrasebook
from luong_keras.files.folder_lock import FolderInUseError
from luong_keras.presets import PRESETS
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.test_files_and_environment import first_cells

PAIRS = [(p.source, p.target) for p in phrasebook.split_pairs("train", 40)]
SETTINGS = {
    "units": 8,
    "embedding_size": 6,
    "batch_size": 64,  # more than there are pairs
    "beam_size": 1,
    "training.samples": 1,
    # Untrained models produce translations of the maximum length.
    "decoding.max_length_ratio": 0.0,
    "decoding.max_length_offset": 2,
}


@pytest.fixture
def exports(monkeypatch):
    """Replace the export, tested elsewhere, and record its folders."""
    folders = []

    def export(translator, folder, **_):
        folders.append(folder)
        folder.mkdir(parents=True)
        return folder

    monkeypatch.setattr("luong_keras.recipe.stages.export_saved_model", export)
    return folders


def test_fit_trains_on_pairs_and_writes_the_run_folder(
    tmp_path, exports, eager, capsys
):
    folder, words = tmp_path / "run", tmp_path / "words"
    words.write_text("▁door Tür 0.7\n", encoding="utf-8")
    settings = SETTINGS | {"decoding.dictionary": str(words)}
    # SentencePiece deletes zero width spaces.
    pairs = [*PAIRS, ("\u200b", "z")]
    translator = Translator.fit(
        pairs, "small", run_dir=folder, epochs=1, **settings
    )
    printed = capsys.readouterr().out
    assert "4 as data.dev and 4 as data.test" in printed
    assert "33 training pairs\n" in printed and "skipped" not in printed
    assert "subwords instead of 8000" in printed
    line = "1 batch an epoch; too long: 0 pairs left out, 0 cut"
    assert f"{line}; without tokens: 1\n" in printed
    # A table, not the JSON of results.jsonl.
    assert "\nperplexity  " in printed and "{" not in printed
    assert isinstance(translator, Translator)
    config = config_from_dict(RunFolder(folder).read_config())
    assert (config.training.epochs, config.model.units) == (1, 8)
    assert config.data.train == str(folder / "pairs" / "train.jsonl")
    again = Translator.from_run(folder)
    sources = [source for source, _ in PAIRS[:2]]
    assert translator.translate(sources) == again.translate(sources)
    assert len(exports) == 1
    written = {path.name for path in folder.iterdir()}
    assert len(written) > 20 and not written - first_cells("A run folder")
    # The run folder has a copy of the dictionary.
    assert config.decoding.dictionary == "dictionary.txt"
    copied = str(folder / "dictionary.txt")
    assert translator.decoding.dictionary == again.decoding.dictionary == copied
    # The same call does nothing; a call with other pairs is refused.
    for precision in ("float32", "auto"):  # "auto" keeps float32
        again = settings | {"precision": precision}
        Translator.fit(pairs, run_dir=folder, epochs=1, **again)
        printed = capsys.readouterr().out
        assert "is finished" in printed and "trained for" not in printed
        assert f"To repeat both, remove {folder / 'finished.json'}" in printed
        assert len(exports) == 1
    with pytest.raises(ValueError, match="training text .* are not those that"):
        Translator.fit(pairs[1:], run_dir=folder, epochs=1, **settings)
    capsys.readouterr()
    Translator.fit(pairs, run_dir=folder, epochs=2, verbose=0, **settings)
    printed = capsys.readouterr()
    assert printed.out == "" and "epoch" not in printed.err
    assert len(RunFolder(folder).log.read_text().splitlines()) == 2


@pytest.mark.slow
def test_train_only_postpones_evaluation_and_export(
    tmp_path, exports, eager, capsys
):
    folder = tmp_path / "run"
    settings = SETTINGS | {
        **{"preset": "small", "epochs": 1, "training.samples": 0},
        "model": {"attention": {"kind": "none"}},  # a section of settings
    }
    trained = Translator.fit(PAIRS, run_dir=folder, train_only=True, **settings)
    assert not trained.translation_model.has_attention
    assert not exports and not (folder / "results.jsonl").exists()
    lines = [source for source, _ in PAIRS[:2]]
    translations = trained.translate(lines)
    again = Translator.fit(PAIRS, run_dir=folder, **settings)
    assert again.translate(lines) == translations
    assert len(exports) == 1 and (folder / "results.jsonl").exists()


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"preset": "smal"},
            "'paper', 'authors', 'small', 'small-fast', 'tiny', 'demo'.*"
            "Received: preset='smal'. Did you mean small",
        ),
        ({"unit": 3}, "no setting 'unit'. Did you mean units"),
        ({"units": "many"}, "model.units: Expected int. Received: 'many'"),
        ({"epochs": 0}, "at least 1"),
        ({"validation": ["a", 3]}, "pairs of a source"),
        ({"verbose": 3}, "one of .'auto', 0, 1, 2"),
        ({"data.train_size": 9}, "train_size=9 with dataset='files'"),
    ],
)
def test_wrong_arguments_are_refused_before_training(
    tmp_path, settings, message
):
    with pytest.raises(ValueError, match=message):
        Translator.fit(PAIRS, run_dir=tmp_path / "run", **settings)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_translator_needs_a_run():
    with pytest.raises(ValueError, match="folder of a run.* Received: none"):
        Translator.from_run([])


def test_other_backends_are_refused_before_the_text_is_read(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="Received: KERAS_BACKEND=jax"):
        Translator.fit(PAIRS, "small", run_dir=tmp_path / "run")
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert written == {"pairs", ".pairs.lock"}


def test_metrics_may_be_functions_in_a_section(tmp_path, monkeypatch):
    def agreement(translations, references):
        return 1.0

    metrics = []

    def recipe(config, folder, **others):
        metrics.append(config.training.metric)
        return False

    monkeypatch.setattr("luong_keras.translator.run_recipe", recipe)
    for given in (
        {"metric": agreement},
        {"training": {"metric": agreement}},
    ):
        with pytest.raises(InterruptedError):
            Translator.fit(PAIRS, run_dir=tmp_path / "run", **given)
    assert metrics[0] == metrics[1] == "agreement"


def test_a_missing_file_leaves_no_folder(tmp_path):
    for files in (tmp_path / "a.tsv", (tmp_path / "a.en", tmp_path / "a.de")):
        with pytest.raises(FileNotFoundError):
            Translator.fit(files, run_dir=tmp_path / "run")
    assert not any(tmp_path.iterdir())


def test_a_second_call_leaves_the_pairs_of_the_first(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")

    def recipe(*given, **others):
        before = (run.pairs / "train.jsonl").read_bytes()
        with pytest.raises(FolderInUseError, match="pairs is in use by"):
            Translator.fit(PAIRS[1:], run_dir=run.path)
        assert (run.pairs / "train.jsonl").read_bytes() == before
        return False

    monkeypatch.setattr("luong_keras.translator.run_recipe", recipe)
    with pytest.raises(InterruptedError):
        Translator.fit(PAIRS, run_dir=run.path)


def test_stopped_training_raises_interrupted_error(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "luong_keras.translator.run_recipe", lambda *given, **others: False
    )
    with pytest.raises(InterruptedError, match="same call continues"):
        Translator.fit(PAIRS, run_dir=tmp_path / "run")


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        (
            keras.callbacks.LearningRateScheduler(lambda epoch: 1.0),
            "LearningRateScheduler.* set training.halving",
        ),
        (keras.callbacks.ReduceLROnPlateau(), "set training.halving"),
        (LearningRateHalving(1), "LearningRateHalving.*training.halving"),
        (ReduceOnPlateau("val_bleu", "max"), "set training.halving"),
        (keras.callbacks.EarlyStopping(), "set training.patience"),
        (StopOnPlateau(1, "val_bleu", "max"), "set training.patience"),
        (print, "objects of keras.callbacks.Callback. Received: <built-in"),
    ],
)
def test_callbacks_that_settings_replace_are_refused(
    tmp_path, callback, expected
):
    callbacks = [keras.callbacks.CSVLogger(tmp_path / "log.csv"), callback]
    with pytest.raises(ValueError, match=expected):
        Translator.fit(PAIRS, run_dir=tmp_path / "run", callbacks=callbacks)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("one", [True, False])
def test_one_callback_or_none_is_a_list(tmp_path, monkeypatch, one):
    received, callback = [], keras.callbacks.Callback() if one else None

    def recipe(config, folder, callbacks, train_only):
        received.extend(callbacks)
        return False

    monkeypatch.setattr("luong_keras.translator.run_recipe", recipe)
    with pytest.raises(InterruptedError):
        Translator.fit(PAIRS, run_dir=tmp_path / "run", callbacks=callback)
    assert received == [callback] * one


@pytest.mark.parametrize("how", ["init_from", "languages"])
def test_records_are_read_in_the_direction_of_the_run(
    tmp_path, monkeypatch, how
):
    given = {"source_language": "de", "target_language": "en"}
    if how == "init_from":
        base, names = RunFolder(tmp_path / "base"), [*given]
        values = {f"data.{name}": given[name] for name in names}
        base.path.mkdir()
        base.write_config(config_to_dict(with_values(PRESETS["small"], values)))
        base.best_weights.touch()
        given = {"init_from": base.path}
    else:
        given = {f"data.{name}": value for name, value in given.items()}
    received = []
    monkeypatch.setattr(
        "luong_keras.translator.run_recipe",
        lambda config, *_, **others: received.append(config.data),
    )
    records = [{"en": "a cat", "de": "eine Katze"}] * 2
    with pytest.raises(InterruptedError):
        Translator.fit(records, run_dir=tmp_path / "run", **given)
    (data,) = received
    assert data.languages == ("de", "en")
    written = (tmp_path / "run" / "pairs" / "train.jsonl").read_text()
    assert written == '["eine Katze", "a cat"]\n' * 2


def test_files_are_passed_to_the_recipe(tmp_path, monkeypatch):
    received, callback = [], keras.callbacks.Callback()

    def recipe(config, folder, callbacks, train_only):
        received.append(config.data)
        assert callbacks == [callback] and not train_only
        return False

    monkeypatch.setattr("luong_keras.translator.run_recipe", recipe)
    with pytest.raises(InterruptedError):
        Translator.fit(
            (tmp_path / "a.en", tmp_path / "a.fr"),
            "small",
            run_dir=tmp_path / "run",
            validation=tmp_path / "dev.tsv",
            callbacks=[callback],
        )
    (data,) = received
    assert data.train == (str(tmp_path / "a.en"), str(tmp_path / "a.fr"))
    assert (data.dev, data.test) == (str(tmp_path / "dev.tsv"), None)
    assert data.target_language == "fr"
