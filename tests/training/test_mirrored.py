"""Runs of `mirrored_run` on several devices of one machine, against one."""

import functools
import subprocess
import sys

import keras
import numpy as np
import pytest

from luong_keras.training.mirrored import check_strategy, mirrored
from luong_keras.training.optimizers import make_optimizer
from luong_keras.training.snapshot import Snapshot
from tests.training.processes import ROOT, answers, in_a_process

pytestmark = pytest.mark.tensorflow
STEPS = 10  # per epoch, as in `small_runs`, which imports TensorFlow
FEW = "compare,tensorflow,global,float64,sgd,word"
PARTS = "compare,2,global,float64,sgd,word,2"
CLOSE = {"float32": 1e-5, "float64": 1e-12}
MANY = [
    "compare,1+2+4,global,float32,sgd,sentence",
    "compare,1+2+4,global,float32,adam,nominal",
    "compare,1+2+4,local,float32,adam,word",
    "compare,1+2+4,global,float64,adam,nominal",
    "compare,1+2+4,local,float64,sgd,sentence",
    "compare,1+2+4,local,float64,adam,word",
    "compare,2,global,float64,sgd,sentence,2",
]
start = functools.partial(
    in_a_process, "mirrored_run", TF_CPP_MIN_LOG_LEVEL="3"
)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    names = [FEW, "steps,sgd,skip", "steps,adam,skip", "steps,sgd,note"]
    names += ["plateau", "shares", "refused"]
    folder = tmp_path_factory.mktemp("few")
    return answers(start(folder, *names))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    return answers(start(folder, *MANY, PARTS, "resumed"))


def check_equal_training(found, precision):
    expected = found["logs"]
    assert found["clipped"] > 0.8 * 5 * STEPS
    losses = []
    for count in ("1", "2", "4", "tensorflow"):
        if count not in found:
            continue
        several = found[count]
        assert several["weights"] < CLOSE[precision]
        for name in ("word_perplexity", "word_count", "hits_accuracy"):
            np.testing.assert_allclose(
                several["logs"][name], expected[name], rtol=1e-5
            )
        losses.append(several["logs"]["loss"])
    # The loss of a batch is weighted by its rows, padding rows included.
    for loss in losses[1:]:
        np.testing.assert_allclose(loss, losses[0], rtol=1e-5)
    np.testing.assert_allclose(losses[0], expected["loss"], rtol=0.05)


def test_two_devices_train_as_one_device(few):
    check_equal_training(few[FEW], "float64")


@pytest.mark.slow
def test_two_devices_train_in_parts_as_one_device(many):
    check_equal_training(many[PARTS], "float64")


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_several_devices_train_as_one_device(many, name):
    check_equal_training(many[name], name.split(",")[3])


def test_the_summed_gradient_is_clipped(few):
    # The norm of (3, 4, 12) is 13, the clip norm half of it.
    first, _, last = few["steps,sgd,skip"]
    np.testing.assert_allclose(first["kernel"], [[-1.5, -2.0]] * 2)
    np.testing.assert_allclose(first["table"], [[[0.0], [-6.0], [0.0]]] * 2)
    # includes the weight decay of 1 %
    np.testing.assert_allclose(last["kernel"], [[-2.985, -3.98]] * 2, 1e-6)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_all_replicas_skip_a_nan_of_one_replica(few, name):
    before, skipped, after = few[f"steps,{name},skip"]
    for part in ("kernel", "table"):
        assert skipped[part] == before[part]
    assert skipped["steps"] == after["steps"] == [1, 1]
    assert skipped["first"] == after["first"] == [1, 1]
    assert after["iterations"] == [3, 3]
    kernel, table = one_device(name)
    for copy in (0, 1):
        np.testing.assert_allclose(after["kernel"][copy], kernel, rtol=1e-12)
        np.testing.assert_allclose(after["table"][copy], table, rtol=1e-12)


def one_device(name):
    """Apply the steps of `mirrored_run` on one device."""
    import tensorflow as tf

    kernel = keras.Variable(np.zeros(2), dtype="float64", name="kernel")
    table = keras.Variable(np.zeros((3, 1)), dtype="float64", name="embeddings")
    optimizer = make_optimizer(name, 1.0, 6.5, weight_decay=0.01)
    for bad in (False, True, False):
        if bad:
            optimizer.iterations.assign_add(1)
            continue
        rows = tf.constant([[4.0], [2.0]] * 2, "float64")
        rows = tf.IndexedSlices(rows, tf.constant([1] * 4), tf.constant([3, 1]))
        gradient = tf.constant([3.0, 4.0], "float64")
        optimizer.apply([gradient, rows], [kernel, table])
    return kernel.numpy(), table.numpy()


def test_all_replicas_note_a_nan_of_one_replica(few):
    before, noted, _ = few["steps,sgd,note"]
    assert before["steps"] == [0, 0] and before["first"] == [-1, -1]
    assert noted["steps"] == noted["first"] == [1, 1]
    assert np.isnan(noted["kernel"]).all()


def test_keras_has_the_hook_that_sums_the_gradients():
    # Without it Keras would sum twice; see docs/private_apis.md.
    base = keras.optimizers.SGD
    assert callable(base._all_reduce_sum_gradients)


def test_the_learning_rate_is_reduced_on_a_plateau(few):
    assert few["plateau"] == [1.0, 0.5, 0.25]


def test_replicas_receive_rows_in_order(few):
    (batch,) = few["shares"]["1"]
    assert len(batch) == 3
    batch.append([0] * 5)
    assert few["shares"]["2"] == [batch[:2], batch[2:]]
    assert few["shares"]["4"] == [[row] for row in batch]


def test_strategies_of_several_machines_are_refused(few):
    text = few["refused"]["several machines"]
    assert "Received: `tf.distribute.MultiWorkerMirroredStrategy`" in text
    assert "luong-keras train --backend jax" in text


@pytest.mark.parametrize(
    "name", ["ParameterServerStrategy", "CentralStorageStrategy"]
)
def test_other_strategies_are_refused(name):
    import tensorflow as tf

    kind = getattr(tf.distribute.experimental, name)

    class Model:
        distribute_strategy = kind.__new__(kind)

    with pytest.raises(ValueError, match=f"`tf.distribute.*{name}`"):
        check_strategy(Model())


def test_loss_scaling_and_jit_with_several_replicas_are_refused(few):
    assert "LossScaleOptimizer and 2 replicas" in few["refused"]["scaled"]
    assert "jit_compile=True and 2 replicas" in few["refused"]["compiled"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["2-None", "None-2", "2-4"])
def test_runs_continue_with_another_number_of_devices(many, name):
    found, expected = many["resumed"][name], many["resumed"]["logs"]
    assert found["position"] == STEPS + 3
    assert found["weights"] < 1e-12 and found["best"] < 1e-12
    for key, values in expected.items():
        rtol = 0.05 if key == "loss" else 1e-5
        np.testing.assert_allclose(found["logs"][key], values[1:], rtol=rtol)


@pytest.mark.parametrize("devices", [0, 100])
def test_wrong_numbers_of_devices_are_refused(devices):
    keras.ops.zeros(1)  # TensorFlow initialises its devices.
    with pytest.raises(ValueError, match=f"devices={devices}"):
        mirrored(devices)


@pytest.mark.slow
def test_the_command_continues_with_other_devices(tmp_path):
    positions = [0]
    for devices in ("2", None, "4"):
        shared = ["--strategy", "mirrored", "--devices", devices]
        done = subprocess.run(
            [sys.executable, "-m", "luong_keras", "train", "--preset", "demo"]
            + ["--units", "8", "--layers", "1", "--run-dir", tmp_path / "run"]
            + ["--stop-after", "1s", *(shared if devices else [])],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        assert "The same command continues from there" in done.stdout
        snapshot = Snapshot.read(tmp_path / "run" / "snapshot.npz")
        positions.append(snapshot.position)
    assert positions == sorted(set(positions))
