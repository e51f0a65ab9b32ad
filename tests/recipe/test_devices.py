"""Devices and processes of a run, from the environment."""

import builtins
import functools

import numpy as np
import pytest

from luong_keras.recipe.devices import (
    ONE_DEVICE,
    Devices,
    LostProcessError,
    _join_processes,
    process_arguments,
    report_lost_processes,
    share_rows,
    tensorflow_devices,
)

ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
PROCESSES = "KERAS_DISTRIBUTION_NUM_PROCESSES"
PROCESS = "KERAS_DISTRIBUTION_PROCESS_ID"


def plain(process="1", processes="2", addresses="host:1234,other:1"):
    return {ADDRESSES: addresses, PROCESSES: processes, PROCESS: process}


def joined(process):
    return {
        "coordinator_address": "host:1234",
        "num_processes": 2,
        "process_id": process,
        # JAX must ask neither Slurm nor Kubernetes.
        "cluster_detection_method": "deactivate",
    }


def slurm(per_node):
    return {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_TASKS_PER_NODE": per_node}


def mpi(per_node):
    return {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": per_node}


ALL_GPUS = {"local_device_ids": []}


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({}, None),
        (plain(), joined(1)),
        (plain("0", "1"), None),
        ({**plain(), **slurm("1(x4)")}, joined(1)),
        # In a pod of an indexed job, the Keras variable has precedence.
        ({**plain(process=""), "JOB_COMPLETION_INDEX": "1"}, joined(1)),
        ({**plain(process="0"), "JOB_COMPLETION_INDEX": "1"}, joined(0)),
        ({"JOB_COMPLETION_INDEX": "1"}, None),
        # JAX gives each of several processes on a node one GPU.
        (slurm("4"), {}),
        (slurm("1(x2),2"), {}),
        (slurm("1(x4)"), ALL_GPUS),
        ({"SLURM_STEP_NUM_TASKS": "1"}, None),
        # a Slurm allocation in which one process was started
        ({"SLURM_NTASKS": "8"}, None),
        (mpi("2"), {}),
        (mpi("1"), ALL_GPUS),
    ],
)
def test_processes_are_read_from_the_environment(environment, expected):
    assert process_arguments(environment) == expected


@pytest.mark.parametrize(
    "environment, message",
    [
        ({PROCESS: "1"}, f"Received: {ADDRESSES}=, {PROCESSES}=, {PROCESS}=1"),
        ({ADDRESSES: "a:1", PROCESSES: "2"}, f"{PROCESS}=[.]"),
        (plain("2"), f"{PROCESS}=2"),
        (plain("-1"), f"{PROCESS}=-1"),
        (plain("one"), f"{PROCESS}=one"),
        (plain(processes="two"), f"{PROCESSES}=two"),
        ({"SLURM_STEP_NUM_TASKS": "x"}, "SLURM_STEP_NUM_TASKS=x"),
        (plain(addresses="host"), f"{ADDRESSES}=host,"),
    ],
)
def test_errors_name_the_wrong_environment_variable(environment, message):
    with pytest.raises(ValueError, match="Expected: .*" + message):
        process_arguments(environment)


def test_several_processes_need_a_jax_that_leaves_sigterm(monkeypatch):
    jax = pytest.importorskip("jax")

    def update(name, value):
        raise AttributeError(f"Unrecognized config option: {name}")

    monkeypatch.setattr(jax.config, "update", update)
    with pytest.raises(ImportError, match="JAX 0.8.2 or later. Received: JAX"):
        _join_processes(plain())


def test_several_devices_need_a_jax_with_shard_map(monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.delattr(jax, "shard_map", raising=False)
    with pytest.raises(ImportError, match=r"0\.6\.1 or later.*--devices 1"):
        share_rows([None, None])


@pytest.mark.parametrize("error", [ValueError, RuntimeError])
def test_only_processes_that_may_come_are_waited_for(monkeypatch, error):
    """Schedulers start a call with status 75 again, others not."""
    jax = pytest.importorskip("jax")

    def initialize(**_):
        raise error("coordinator_address should be defined.")

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    expected = ValueError if error is ValueError else LostProcessError
    with pytest.raises(expected, match="Expected.*Received: coordinator_add"):
        _join_processes({"OMPI_COMM_WORLD_SIZE": "2"})


def test_a_single_process_does_not_communicate():
    assert ONE_DEVICE.writes
    assert ONE_DEVICE.any(True) is True and ONE_DEVICE.any(False) is False
    assert ONE_DEVICE.from_first(0.1) == 0.1
    ONE_DEVICE.wait("nobody")
    ONE_DEVICE.check_alike(3, "nothing")
    with (
        pytest.raises(ValueError, match="^as it is$"),
        report_lost_processes(ONE_DEVICE),
    ):
        raise ValueError("as it is")


@pytest.fixture
def gather(monkeypatch):
    """Return a function that replaces the exchange between processes."""
    utils = pytest.importorskip("jax.experimental.multihost_utils")
    return functools.partial(monkeypatch.setattr, utils, "process_allgather")


def test_processes_take_the_value_of_the_first_process(gather):
    sent = []

    def exchange(bits):
        assert bits.dtype == np.uint32  # JAX has no float64.
        sent.append(bits)
        # Process 0 gathers first, so its value is known to process 1.
        return np.stack([sent[0], bits])

    gather(exchange)
    for rank, number in enumerate([23.456789012345, 0.0]):
        found = Devices(rank=rank, world=2).from_first(number)
        assert found == 23.456789012345


def test_a_process_hears_of_a_true_value_in_any_other(gather):
    gather(lambda here: np.stack([here, True]))
    assert Devices(rank=0, world=2).any(False) is True


def test_several_tensorflow_devices_are_refused():
    assert tensorflow_devices(None) == ONE_DEVICE
    assert tensorflow_devices(1) == ONE_DEVICE
    message = "--backend jax. Received: --devices 2"
    with pytest.raises(ValueError, match=message):
        tensorflow_devices(2)


@pytest.mark.parametrize("found", [False, True])
def test_jax_is_recommended_on_a_gpu(found, monkeypatch, capsys):
    monkeypatch.setattr("luong_keras.ops.devices.has_gpu", lambda: found)
    tensorflow_devices(None)
    printed = capsys.readouterr().out
    assert ("--backend jax trains a new run four to six" in printed) is found


@pytest.mark.parametrize(
    "kind, text, expected",
    [
        ("ValueError", "UNKNOWN: Gloo all-reduce failed: Connection", 75),
        ("ValueError", "training.epochs must be at least 1", 2),
        ("FileNotFoundError", "No such file: websockets/train.tsv", 2),
        ("JaxRuntimeError", "UNAVAILABLE: heartbeat timeout", 75),
        ("JaxRuntimeError", "RESOURCE_EXHAUSTED: Out of memory", 1),
    ],
)
def test_errors_explain_a_lost_connection(kind, text, expected, monkeypatch):
    lost = expected == 75
    jax = pytest.importorskip("jax")
    raised = getattr(jax.errors, kind, None) or getattr(builtins, kind)
    leaving = []
    monkeypatch.setattr("atexit.register", lambda *call: leaving.append(call))
    with (
        pytest.raises(LostProcessError if lost else raised) as caught,
        report_lost_processes(Devices(rank=1, world=2)),
    ):
        raise raised(text)
    assert text[:20] in str(caught.value)
    assert ("Process 1 of 2 lost" in str(caught.value)) == lost
    # At exit, JAX would wait for the other processes.
    ((_, status),) = leaving
    assert status == expected


def test_processes_must_start_with_equal_values(gather):
    gather(lambda own: np.array([own, 5]))
    devices = Devices(rank=0, world=2)
    devices.check_alike(5, "the steps")
    with pytest.raises(ValueError, match="the steps, the same .* 7, 5"):
        devices.check_alike(7, "the steps")
