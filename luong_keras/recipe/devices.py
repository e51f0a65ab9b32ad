"""The devices and processes that train a run.

Keras is imported inside functions: it must not run before the command has read
its arguments and its backend.
"""

import atexit
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luong_keras.tables import pluralize

# A process without a heartbeat for this time counts as dead.
_HEARTBEAT_SECONDS = 30
# The exit status of a training run that the same command can continue:
# EX_TEMPFAIL, which schedulers distinguish from an error.
EXIT_STOPPED = 75
# The variables that `keras.distribution.initialize` reads.
_ADDRESSES = "KERAS_DISTRIBUTION_JOB_ADDRESSES"
_PROCESSES = "KERAS_DISTRIBUTION_NUM_PROCESSES"
_PROCESS = "KERAS_DISTRIBUTION_PROCESS_ID"
# The variables with the number of processes, in all and per node.
_LAUNCHERS = {
    "SLURM_STEP_NUM_TASKS": "SLURM_STEP_TASKS_PER_NODE",
    "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}
_ONE_PER_NODE = re.compile(r"1(\(x\d+\))?")  # such as 1(x4), of four nodes


@dataclass(frozen=True)
class Devices:
    """The devices and processes of a run.

    Every process must call the methods at the same points of the program,
    because they wait for all processes. The properties do not wait.

    Attributes:
        rank: The number of this process, from 0; process 0 writes.
        world: The number of processes.
        count: The number of devices of all processes.
        on_jax: Whether JAX trains. JAX compiles one program per batch shape,
            which should therefore be few.
    """

    rank: int = 0
    world: int = 1
    count: int = 1
    on_jax: bool = False

    @property
    def writes(self) -> bool:
        """True if this process writes into the run folder."""
        return self.rank == 0

    def wait(self, what: str) -> None:
        """Wait until all processes have reached this point."""
        if self.world > 1:
            from jax.experimental import multihost_utils

            multihost_utils.sync_global_devices(what)

    def any(self, here: bool) -> bool:
        """Test whether `here` is True in any process."""
        return bool(self._gather(here).any())

    def from_first(self, value: float) -> float:
        """Return the value of the first process."""
        # JAX has no float64 by default, so its bits are sent as integers.
        bits = self._gather(np.array([value], np.float64).view(np.uint32))
        return float(bits[0].view(np.float64)[0])

    def check_alike(self, number: int, what: str) -> None:
        """Check that all processes have the same number.

        Raises:
            ValueError: If they differ, with the number of each process.
        """
        numbers = self._gather(number).tolist()
        if len(set(numbers)) > 1:
            raise ValueError(
                f"Expected: {what}, the same in all processes. Received, by "
                f"process: {', '.join(map(str, numbers))}. Check that all of "
                "them see the same run folder, with its newest files, and "
                "start them again."
            )

    def _gather(self, value: Any) -> np.ndarray:
        """Return the values of all processes, in their order."""
        if self.world == 1:
            return np.array([value])
        from jax.experimental import multihost_utils

        return multihost_utils.process_allgather(np.array(value))


ONE_DEVICE = Devices()


class LostProcessError(OSError):
    """The end of another process of the same training run."""

    exit_status = EXIT_STOPPED


@contextlib.contextmanager
def report_lost_processes(devices: Devices) -> Iterator[None]:
    """Report a lost connection as `LostProcessError`.

    Raises:
        LostProcessError: With the reason.
    """
    try:
        yield
    except Exception as error:
        if devices.world == 1:
            raise
        lost = _is_lost_connection(error)
        status = 1
        if lost:
            status = EXIT_STOPPED
        elif isinstance(error, (ValueError, OSError, ImportError)):
            status = 2  # as the command returns
        # At exit, JAX would wait for the other processes and abort.
        atexit.register(_exit_process, status)
        if not lost:
            raise
        raise LostProcessError(
            f"Process {devices.rank} of {devices.world} lost its connection "
            "to the others: one of them has ended, and its output says why. "
            "Nothing is lost: start the same command again in all processes, "
            "and the run continues from its last snapshot. "
            f"({str(error).splitlines()[0][:200]})"
        ) from error


def _is_lost_connection(error: Exception) -> bool:
    """Test whether an error means that another process has ended."""
    import jax

    text = str(error).lower()
    if isinstance(error, jax.errors.JaxRuntimeError):
        # Status codes of errors that occur again after a restart.
        return not text.startswith(("resource_exhausted", "invalid_argument"))
    words = ("gloo", "nccl", "heartbeat", "coordination", "socket")
    return not isinstance(error, OSError) and any(w in text for w in words)


def _exit_process(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def device_names(devices: Devices) -> list[str]:
    """Return the name of each kind of device with its count."""
    if devices.on_jax:
        import jax

        kinds = [f"{d.device_kind} ({d.platform})" for d in jax.devices()]
    else:
        import tensorflow as tf

        cards = tf.config.get_visible_devices("GPU")
        kinds = [
            tf.config.experimental.get_device_details(card).get(
                "device_name", "GPU"
            )
            for card in cards
        ]
    used = kinds[: devices.count] or ["cpu"] * devices.count
    return [f"{used.count(kind)} × {kind}" for kind in dict.fromkeys(used)]


def tensorflow_devices(count: int | None) -> Devices:
    """Return one TensorFlow device.

    Args:
        count: The requested number of devices.

    Raises:
        ValueError: If several devices are requested.
    """
    if count not in (None, 1):
        raise ValueError(
            "Expected: for several devices --backend jax. Received: --devices "
            f"{count} without it."
        )
    from luong_keras.ops.devices import has_gpu

    if has_gpu():
        print(
            "On a GPU, --backend jax trains a new run four to six times as "
            "fast (docs/scaling.md)."
        )
    return ONE_DEVICE


def jax_devices(count: int | None) -> Devices:
    """Make Keras use the devices of this process, or of all processes.

    Call this before any computation.

    Args:
        count: The number of this process's devices; all when None. Without an
            accelerator, the processor is divided into this many devices.

    Raises:
        ValueError: If this process has fewer devices, or if one of several
            processes would use only some of its devices.
    """
    import jax
    import tensorflow as tf

    # Hide the GPUs from TensorFlow, which would take their memory.
    tf.config.set_visible_devices([], "GPU")
    if count is not None:
        # This matters only on a machine without an accelerator.
        jax.config.update("jax_num_cpu_devices", count)
    _join_processes(os.environ)
    local_devices = jax.local_devices()
    if count is not None and count > len(local_devices):
        raise ValueError(
            f"Expected: at most {pluralize(len(local_devices), 'device')}, as "
            f"this process has. Received: --devices {count}."
        )
    is_alone = jax.process_count() == 1
    if count is not None and count < len(local_devices) and not is_alone:
        raise ValueError(
            "With several processes, each uses all the devices that it sees. "
            f"Received: --devices {count} of {len(local_devices)}. Leave it "
            "out, or make fewer devices visible (CUDA_VISIBLE_DEVICES)."
        )
    return share_rows(jax.devices()[: count if is_alone else None])


def share_rows(devices: Sequence[Any]) -> Devices:
    """Make Keras divide the rows of each batch among JAX devices."""
    import jax
    import keras

    distribution = None
    if len(devices) > 1 and not hasattr(jax, "shard_map"):
        raise ImportError(
            "Training on several devices needs JAX 0.6.1 or later. Received: "
            f"JAX {jax.__version__}. Install a later JAX, or give --devices 1."
        )
    if len(devices) > 1:
        distribution = keras.distribution.DataParallel(
            devices=[f"{device.platform}:{device.id}" for device in devices],
            auto_shard_dataset=False,
        )
    keras.distribution.set_distribution(distribution)
    return Devices(jax.process_index(), jax.process_count(), len(devices), True)


def leave_processes(devices: Devices) -> None:
    """Disconnect from the other processes when all have finished."""
    if devices.world > 1:
        import jax

        jax.distributed.shutdown()


def process_arguments(
    environment: Mapping[str, str] = os.environ,
) -> dict | None:
    """Return the arguments that join this process to the others, or None.

    Args:
        environment: The environment variables of the process.

    Returns:
        Arguments of `jax.distributed.initialize`, which detects those that are
        missing; None for a single process.

    Raises:
        ValueError: If a variable is missing or invalid.

    Example:
        >>> process_arguments({}) is None
        True
        >>> process_arguments({"SLURM_STEP_NUM_TASKS": "8"})
        {}
    """
    names = (_ADDRESSES, _PROCESSES, _PROCESS)
    # An indexed Kubernetes job numbers its pods.
    pod_index = environment.get("JOB_COMPLETION_INDEX", "")
    if environment.get(_ADDRESSES) and not environment.get(_PROCESS):
        environment = {**environment, _PROCESS: pod_index}
    if not any(map(environment.get, names)):
        for name, per_node in _LAUNCHERS.items():
            tasks = environment.get(name) or "1"
            if not tasks.isdecimal():
                raise ValueError(
                    f"Expected: in {name} the number of processes. Received: "
                    f"{name}={tasks}. Unset it."
                )
            if int(tasks) > 1:
                # JAX would use one GPU per process. [] stands for all.
                count = environment.get(per_node, "")
                is_alone = _ONE_PER_NODE.fullmatch(count)
                return {"local_device_ids": []} if is_alone else {}
        return None
    addresses, *numbers = (environment.get(name, "") for name in names)
    coordinator, *_ = addresses.split(",")
    try:
        processes, process = map(int, numbers)
    except ValueError:
        processes, process = 0, 0
    if ":" not in coordinator or not 0 <= process < processes:
        raise ValueError(
            f"Expected: in {_ADDRESSES} the address HOST:PORT of the first "
            f"process, in {_PROCESSES} how many there are, and in {_PROCESS} "
            "which one this is, from 0. Received: "
            + ", ".join(f"{name}={environment.get(name, '')}" for name in names)
            + "."
        )
    if processes == 1:
        return None
    return {
        "coordinator_address": coordinator,
        "num_processes": processes,
        "process_id": process,
        # JAX would ask Kubernetes, or use one GPU per process of SLURM.
        "cluster_detection_method": "deactivate",
    }


def _join_processes(environment: Mapping[str, str]) -> None:
    """Join the processes of the run if the environment names several.

    The variables are those of Keras. They need not be set in a SLURM job step
    or under Open MPI.
    """
    import jax

    arguments = process_arguments(environment)
    if arguments is None:
        return
    try:
        # The service would take SIGTERM, which stops a run with a snapshot.
        jax.config.update("jax_enable_preemption_service", False)
    except AttributeError as error:
        raise ImportError(
            "Training in several processes needs JAX 0.8.2 or later. Received: "
            f"JAX {jax.__version__}. Install a later JAX, or start one process."
        ) from error
    try:
        jax.distributed.initialize(
            **arguments, heartbeat_timeout_seconds=_HEARTBEAT_SECONDS
        )
    except ValueError as error:  # A new start would not mend it.
        raise ValueError(
            "Expected: all processes of the run named by the variables "
            "KERAS_DISTRIBUTION_*, a SLURM job step or Open MPI. Received: "
            f"{error}"
        ) from error
    except RuntimeError as error:
        raise LostProcessError(
            "The processes did not find each other. Expected: all of them "
            f"started, with the same address of the first. Received: {error}"
        ) from error
