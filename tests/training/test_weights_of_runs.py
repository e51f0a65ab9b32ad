"""Weights of recent epochs, and early stopping."""

import keras
import pytest

from luong_keras.training import weight_callbacks
from luong_keras.training.fit import fit
from luong_keras.training.monitoring import StopOnPlateau
from luong_keras.training.optimizers import make_optimizer
from luong_keras.training.snapshot import Snapshot
from luong_keras.training.weight_callbacks import EpochWeights
from tests.layer_checks import assert_all_close
from tests.training.fit_helpers import JIT, Kill, Rows, state_of

ROWS = Rows(steps_per_epoch=3, width=2)
# The fourth epoch is the best, the fifth and the sixth are equal.
BLEU = [1.0, 5.0, 3.0, 6.0, 4.0, 4.0, 2.0, 9.0, 1.0, 1.0]
ENDS_AFTER = 7  # with a patience of 3


class Bleu(keras.callbacks.Callback):
    """Callback that sets the score of each epoch."""

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = BLEU[epoch]


def build_model():
    keras.utils.set_random_seed(1)
    # Only a part of the model is saved, as with a translation model.
    saved = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model = keras.Sequential(
        # Without a seed, torch draws from its own generator.
        [saved, keras.layers.Dropout(0.2), keras.layers.Dense(1)]
    )
    model.compile(make_optimizer("adam", 0.1), "mse", jit_compile=JIT)
    return model


def run(folder, *others, patience=3, keep=2, epochs=10):
    """Train, and return the model and the numbers of the epochs."""
    model = build_model()
    saved = model.layers[0]
    weights = EpochWeights(folder / "checkpoints", keep, model=saved)
    history = fit(
        model,
        ROWS,
        epochs=epochs,
        callbacks=[Bleu(), weights, StopOnPlateau(patience), *others],
        snapshot_path=folder / "snapshot.npz",
        snapshot_steps=2,
        verbose=0,
    )
    return model, history.epoch


def read(path):
    """Return the weights in a file."""
    model = build_model().layers[0]
    model.load_weights(path)
    return model.get_weights()


def names(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def epochs_kept(folder):
    return [int(name[6:9]) for name in names(folder)]


def check_equal_runs(folder, other, model, other_model):
    """Check that two runs have equal weights, optimizers and files."""
    assert_all_close(state_of(model), state_of(other_model), rtol=0)
    assert names(folder) == names(other)
    for name in names(folder):
        path = f"checkpoints/{name}"
        assert_all_close(read(folder / path), read(other / path), rtol=0)
    ours, theirs = (Snapshot.read(f / "snapshot.npz") for f in (folder, other))
    assert ours.callbacks == theirs.callbacks


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    model, epochs = run(folder)
    assert epochs == list(range(ENDS_AFTER))
    return folder, model


@pytest.mark.parametrize("keep", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_last_epochs_are_kept(tmp_path, keep):
    model, _ = run(tmp_path, keep=keep)
    assert epochs_kept(tmp_path) == [4, 5, 6, 7][-keep:]
    last = tmp_path / "checkpoints" / "epoch-007.weights.h5"
    assert_all_close(read(last), model.layers[0].get_weights(), rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill", [Kill(4, batch=1), Kill(7), Kill(5), Kill(1, batch=0)]
)
def test_killed_runs_resume_to_the_same_files_and_epoch(
    tmp_path, uninterrupted, kill
):
    folder, model = uninterrupted
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, kill)
    resumed, epochs = run(tmp_path)
    assert epochs == list(range(kill.epoch - 1, ENDS_AFTER))
    check_equal_runs(tmp_path, folder, resumed, model)
    again, epochs = run(tmp_path)  # It has finished.
    assert epochs == []
    check_equal_runs(tmp_path, folder, again, model)


@pytest.mark.slow
def test_failed_writes_are_repeated_on_resuming(
    tmp_path, uninterrupted, monkeypatch
):
    folder, model = uninterrupted
    original, calls = weight_callbacks.save_weights, []

    def call(*arguments):
        calls.append(arguments)
        if len(calls) == 5:
            raise OSError("the disk is full")
        return original(*arguments)

    monkeypatch.setattr(weight_callbacks, "save_weights", call)
    with pytest.raises(OSError, match="the disk is full"):
        run(tmp_path)
    resumed, _ = run(tmp_path)
    check_equal_runs(tmp_path, folder, resumed, model)


@pytest.mark.slow
def test_runs_resumed_with_more_patience_equal_new_runs(
    tmp_path, uninterrupted
):
    more = tmp_path / "more"
    whole, epochs = run(more, patience=4, epochs=9)
    assert epochs == list(range(9))  # The eighth is the best.
    ended = tmp_path / "ended"
    run(ended)
    resumed, epochs = run(ended, patience=4, epochs=9)
    assert epochs == [7, 8]
    check_equal_runs(ended, more, resumed, whole)


def test_a_second_run_forgets_the_epochs_of_the_first():
    callbacks = [Bleu(), StopOnPlateau(3)]
    for _ in range(2):
        history = fit(
            build_model(), ROWS, epochs=10, callbacks=callbacks, verbose=0
        )
        assert history.epoch == list(range(ENDS_AFTER))


def test_more_epochs_of_an_ended_run_are_reported(tmp_path, capsys):
    run(tmp_path)
    capsys.readouterr()
    for epochs in (ENDS_AFTER, 12):
        assert run(tmp_path, epochs=epochs)[1] == []
    assert capsys.readouterr().out.splitlines() == [
        f"ended by its patience after epoch {ENDS_AFTER}; a larger patience "
        "continues the run"
    ]


@pytest.mark.slow
def test_patience_set_on_resuming_counts_all_epochs(tmp_path):
    run(tmp_path, patience=None, epochs=6)
    _, epochs = run(tmp_path)
    assert epochs == [6]  # the third without a better score
    # Runs end only at the end of an epoch.
    other = tmp_path / "other"
    with pytest.raises(KeyboardInterrupt):
        run(other, Kill(8, batch=1), patience=None)
    position = Snapshot.read(other / "snapshot.npz").position
    assert position == 7 * ROWS.steps_per_epoch + 1
    _, epochs = run(other, epochs=9)
    assert epochs == [7, 8]  # The eighth is the best.


def test_other_files_are_not_removed(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    others = [
        *("epoch-001.weights.h5.copy", "epoch-001-good.weights.h5"),
        *("epoch-009.weights.h5", "notes.txt", "epoch-.weights.h5"),
    ]
    for name in others:
        (folder / name).touch()
    (folder / "epoch-001.weights.h5").touch()
    callback = EpochWeights(folder, keep=1)
    callback.set_model(build_model())
    callback.on_epoch_end(1)
    assert names(tmp_path) == sorted([*others, "epoch-002.weights.h5"])
    EpochWeights(folder, keep=0).on_epoch_end(1)
    assert "epoch-002.weights.h5" in names(tmp_path)
    EpochWeights(folder, keep=0).on_epoch_end(2)
    assert names(tmp_path) == sorted(others)
