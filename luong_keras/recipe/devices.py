"""The devices that a run is trained on, and the processes that share them."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from luong_keras.ops.devices import has_gpu
from luong_keras.tables import counted
from luong_keras.training.mirrored import mirrored

# The names are those that `keras.distribution.initialize` reads.
_ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
_PROCESSES = "KERAS_DISTRIBUTION_NUM_PROCESSES"
_PROCESS = "KERAS_DISTRIBUTION_PROCESS_ID"
# A process that has said nothing for so long is dead.
_HEARTBEAT_SECONDS = 30
# The exit status of a training that the same command continues: EX_TEMPFAIL,
# by which schedulers tell it from an error.
EXIT_STOPPED = 75


@dataclass(frozen=True)
class Devices:
    """The devices and processes of a run.

    Attributes:
        rank: this process, from 0; the first one writes.
        world: how many processes there are.
        count: the devices of all processes.
        on_jax: whether JAX trains, for which each shape of a batch is a
            program of its own, so that there should be few.
        scope: where the model is made and trained.
    """

    rank: int = 0
    world: int = 1
    count: int = 1
    on_jax: bool = False
    scope: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext

    @property
    def writes(self) -> bool:
        """Whether this process writes into the run folder."""
        return self.rank == 0

    def wait(self, what: str) -> None:
        """Waits until all processes have come so far."""
        if self.world > 1:
            from jax.experimental import multihost_utils

            multihost_utils.sync_global_devices(what)

    def any(self, here: bool) -> bool:
        """Returns whether `here` is True in any process; all must call it."""
        if self.world == 1:
            return here
        from jax.experimental import multihost_utils

        return bool(multihost_utils.process_allgather(np.array(here)).any())

    def from_first(self, value: float) -> float:
        """The value of the first process; all must call this."""
        if self.world == 1:
            return value
        from jax.experimental import multihost_utils

        # As two float32, the default type of JAX. The
        # difference of a Python float and a float32 would be a float32.
        high = np.float32(value)
        parts = np.array([high, np.float64(value) - high], np.float32)
        parts = multihost_utils.broadcast_one_to_all(parts)
        return float(np.float64(parts[0]) + np.float64(parts[1]))

    def check_alike(self, number: int, what: str) -> None:
        """Checks that all processes have the same; all must ask.

        Raises:
            ValueError: where they do not, with what each of them has.
        """
        if self.world == 1:
            return
        from jax.experimental import multihost_utils

        found = multihost_utils.process_allgather(np.array(number))
        if len(set(found.tolist())) > 1:
            raise ValueError(
                f"Expected: {what} the same in all processes. Received, by "
                f"process: {', '.join(map(str, found.tolist()))}. Do all of "
                "them see the same run folder, and what was written last? "
                "Start them again."
            )


ONE_DEVICE = Devices()


class LostProcessError(OSError):
    """Another process of the same training has ended."""

    exit_status = EXIT_STOPPED


@contextlib.contextmanager
def report_lost_processes(devices: Devices) -> Iterator[None]:
    """Report a lost connection as `LostProcessError`.

    Raises:
        LostProcessError: with the reason.
    """
    try:
        yield
    except Exception as error:
        if devices.world == 1:
            raise
        lost = _is_lost_connection(error)
        # At its end JAX would wait for the others, and abort.
        atexit.register(_leave, EXIT_STOPPED if lost else 1)
        if not lost:
            raise
        raise LostProcessError(
            f"Process {devices.rank} of {devices.world} lost the others: one "
            "of them has ended, and its own output says why. Nothing is lost: "
            "start the same command again in all, and the run continues from "
            f"its last snapshot. ({str(error).splitlines()[0][:200]})"
        ) from error


def _is_lost_connection(error: Exception) -> bool:
    import jax

    words = ("gloo", "nccl", "heartbeat", "coordination", "socket")
    text = str(error).lower()
    return isinstance(error, jax.errors.JaxRuntimeError) or any(
        word in text for word in words
    )


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def device_names(devices: Devices) -> list[str]:
    """The names of the devices, each kind with its count."""
    if devices.on_jax:
        import jax

        kinds = [f"{d.device_kind} ({d.platform})" for d in jax.devices()]
    else:
        import tensorflow as tf

        cards = tf.config.list_physical_devices("GPU")
        kinds = [
            tf.config.experimental.get_device_details(card).get(
                "device_name", "GPU"
            )
            for card in cards
        ]
    used = kinds[: devices.count] or ["cpu"] * devices.count
    return [f"{used.count(kind)} × {kind}" for kind in dict.fromkeys(used)]


def tensorflow_devices(strategy: str | None, count: int | None) -> Devices:
    """One device of TensorFlow, or several of a strategy.

    Args:
        strategy: `"mirrored"`, or None.
        count: how many devices, see `luong_keras.training.mirrored`.

    Raises:
        ValueError: where several are wanted without it.
    """
    if strategy == "mirrored":
        made = mirrored(count)
        return Devices(count=made.num_replicas_in_sync, scope=made.scope)
    if count not in (None, 1):
        raise ValueError(
            "Expected: for several devices --backend jax, or --strategy "
            f"mirrored. Received: --devices {count} without either."
        )
    if has_gpu():
        print(
            "On a GPU, --backend jax trains a new run about six times as fast "
            "(docs/scaling.md)."
        )
    return ONE_DEVICE


def jax_devices(count: int | None) -> Devices:
    """Gives Keras the devices of this process, or of all of them.

    To be called before anything is computed.

    Args:
        count: how many of this process's devices; all where None. Where the
            machine has no accelerator, as many are made of its processor.

    Raises:
        ValueError: where there are fewer.
    """
    import jax

    _keep_tensorflow_off()
    if count is not None:
        # Of use only where there is nothing better than the processor.
        jax.config.update("jax_num_cpu_devices", count)
    _join_processes(os.environ)
    here = jax.local_devices()
    if count is not None and count > len(here):
        raise ValueError(
            f"Expected: at most {counted(len(here), 'device')}, as this "
            f"process has. Received: --devices {count}."
        )
    if count is not None and count < len(here) and jax.process_count() > 1:
        raise ValueError(
            "Several processes use all the devices that each of them sees. "
            f"Received: --devices {count} of {len(here)}. Leave it out, or "
            "show a process fewer (CUDA_VISIBLE_DEVICES)."
        )
    alone = jax.process_count() == 1
    return share_rows(jax.devices()[: count if alone else None])


def share_rows(devices: Sequence[Any]) -> Devices:
    """Has Keras divide the rows of every batch among devices of JAX."""
    import jax

    distribution = None
    if len(devices) > 1:
        distribution = keras.distribution.DataParallel(
            devices=[f"{device.platform}:{device.id}" for device in devices],
            auto_shard_dataset=False,
        )
    keras.distribution.set_distribution(distribution)
    return Devices(jax.process_index(), jax.process_count(), len(devices), True)


def leave_processes(devices: Devices) -> None:
    """Takes leave of the other processes, when all have come to the end."""
    if devices.world > 1:
        import jax

        jax.distributed.shutdown()


def _keep_tensorflow_off() -> None:
    """TensorFlow reads the text, and would take the cards' memory."""
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")


def _join_processes(environment: Mapping[str, str]) -> None:
    """Joins the processes of the run, where the environment names several.

    By the variables that Keras has for it; in a job step of SLURM or under
    Open MPI they need not be set.
    """
    import jax

    arguments = process_arguments(environment)
    if arguments is None:
        return
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            **arguments, heartbeat_timeout_seconds=_HEARTBEAT_SECONDS
        )
    except (RuntimeError, ValueError) as error:
        raise LostProcessError(
            "The processes did not find each other. Expected: all of them "
            f"started, with the same address of the first. Received: {error}"
        ) from error


def process_arguments(environment: Mapping[str, str]) -> dict | None:
    """Arguments that join this process to the others, or None.

    Args:
        environment: the variables of the process.

    Returns:
        Arguments of `jax.distributed.initialize`: none where JAX finds out.

    Raises:
        ValueError: where a variable is missing or is no number.

    Example:
        >>> process_arguments({}) is None
        True
        >>> process_arguments({"SLURM_STEP_NUM_TASKS": "8"})
        {}
    """
    names = (_ADDRESSES, _PROCESSES, _PROCESS)
    # An indexed job of Kubernetes numbers its pods.
    own = environment.get("JOB_COMPLETION_INDEX", "")
    if environment.get(_ADDRESSES) and not environment.get(_PROCESS):
        environment = {**environment, _PROCESS: own}
    given = [name for name in names if environment.get(name)]
    if not given:
        for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"):
            if int(environment.get(name) or 1) > 1:
                return {}
        return None
    if len(given) < len(names):
        raise ValueError(
            f"Expected: {', '.join(names)}, all of them. Received: "
            f"{', '.join(given)} only."
        )
    first, *_ = environment[_ADDRESSES].split(",")
    try:
        processes, process = (int(environment[name]) for name in names[1:])
    except ValueError:
        processes, process = 0, 0
    if ":" not in first or not 0 <= process < processes:
        raise ValueError(
            f"Expected: in {_ADDRESSES} the address HOST:PORT of the first "
            f"process, in {_PROCESSES} how many there are, and in {_PROCESS} "
            "which one this is, from 0. Received: "
            + ", ".join(f"{name}={environment[name]}" for name in names)
            + "."
        )
    if processes == 1:
        return None
    return {
        "coordinator_address": first,
        "num_processes": processes,
        "process_id": process,
    }
