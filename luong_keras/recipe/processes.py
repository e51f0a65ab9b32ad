"""The processes of a run, as their environment names them.

No module of Keras is needed.
"""

import os
import re
from collections.abc import Mapping

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
