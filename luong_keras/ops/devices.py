"""The backend's devices: their abilities, replicas, the faster precision.

Replicas are those of a `tf.distribute` strategy. Everywhere else, and on other
backends, there is one replica.
"""

import functools
import sys
import time

import keras
import numpy as np
from keras import backend, ops

from luong_keras.config import Precision

# The rest of a step, states, softmax and loss, is in float32 in either
# precision, and mixed precision adds its conversions.
_PAYS = 1.5
_SHORTEST = 0.005  # seconds: below, starting a product counts as well
_REPETITIONS = 5


def has_gpu() -> bool:
    """Whether the backend has a GPU to compute on."""
    if backend.backend() == "torch":
        # Keras lists no devices there.
        return ops.convert_to_tensor(0.0).device.type == "cuda"
    return any("gpu" in name for name in keras.distribution.list_devices())


def has_bfloat16() -> bool:
    """Whether the device of the backend multiplies bfloat16.

    NVIDIA's GPUs do since compute capability 8; older ones, such as the T4,
    multiply float16.
    """
    capability = _compute_capability()
    return capability is None or capability >= 8


def _compute_capability() -> float | None:
    """Compute capability of the first NVIDIA GPU; None without one."""
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        for gpu in tf.config.list_physical_devices("GPU"):
            details = tf.config.experimental.get_device_details(gpu)
            major, minor = details.get("compute_capability", (8, 0))
            return major + minor / 10
    elif backend.backend() == "jax":
        import jax

        # AMD's have names, such as gfx942, and a CPU has none.
        found = str(getattr(jax.devices()[0], "compute_capability", ""))
        return float(found) if found[:1].isdecimal() else None
    elif has_gpu():
        import torch

        major, minor = torch.cuda.get_device_capability()
        return major + minor / 10
    return None


def replica_count():
    """The number of replicas that share a batch."""
    if backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def _context():
    """This replica's context; None where one is alone or all are meant."""
    if replica_count() == 1:
        return None
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def sum_over_replicas(values):
    """The sums over the replicas, the same on each.

    Args:
        values: list of tensors, of TensorFlow's sparse slices and of None,
            which stays.

    Returns:
        A list; of sparse slices those of all replicas, one after the other.
    """
    context = _context()
    if context is None:
        return list(values)
    given = [value for value in values if value is not None]
    summed = iter(context.all_reduce("SUM", given))
    return [None if value is None else next(summed) for value in values]


def cond_of_replicas(condition, yes, no, arguments):
    """`ops.cond` for functions that write variables.

    TensorFlow refuses that in a branch of one replica: the branches begin
    where the replicas have met.

    Args:
        condition: a scalar, the same on each replica.
        yes: a function of the arguments.
        no: another.
        arguments: list of what each replica has.
    """
    context = _context()
    if context is None:
        ops.cond(condition, lambda: yes(*arguments), lambda: no(*arguments))
        return

    def met(strategy, condition, *arguments):
        def on_each(function):
            strategy.extended.call_for_each_replica(function, arguments)

        (condition, *_) = strategy.experimental_local_results(condition)
        ops.cond(condition, lambda: on_each(yes), lambda: on_each(no))

    context.merge_call(met, (condition, *arguments))


def decided(precision: Precision) -> Precision:
    """Resolves `"auto"` for this machine; others stay as they are.

    A product of matrices is timed in float32 and in bfloat16, once in a
    process. Processors without instructions for bfloat16 take several times
    as long with it; those that have them, and cards, a half or less. On a GPU
    without bfloat16, such as a T4, float16 takes its place. What was found and
    chosen is said on the standard error.

    Args:
        precision: as `ModelConfig.precision`.

    Returns:
        `"mixed_bfloat16"`, or `"mixed_float16"`, where its product takes at
        most two thirds of the time, else `"float32"`, for `"auto"`.
    """
    return _faster() if precision == "auto" else precision


@functools.cache
def _faster() -> Precision:
    size = 512
    while (seconds := product_seconds(size, "float32")) < _SHORTEST:
        size *= 2
    half = "bfloat16" if has_bfloat16() else "float16"
    rounded = product_seconds(size, half)
    chosen: Precision = "float32"
    if seconds >= _PAYS * rounded:
        chosen = "mixed_bfloat16" if half == "bfloat16" else "mixed_float16"
    print(
        f"precision: {chosen}, for a product of {size} x {size} matrices "
        f"takes {1000 * seconds:.1f} ms in float32 and {1000 * rounded:.1f} "
        f"ms in {half}",
        file=sys.stderr,
    )
    return chosen


def product_seconds(size: int, dtype: str) -> float:
    """The time of one product of square matrices: the shortest of several."""
    matrix = ops.cast(np.full((size, size), 0.5, "float32"), dtype)
    times = []
    for _ in range(_REPETITIONS + 1):  # the first one warms up
        start = time.perf_counter()
        # To read a number is to wait for it, on every backend.
        number = ops.matmul(matrix, matrix)[0, 0]
        ops.convert_to_numpy(ops.cast(number, "float32"))
        times.append(time.perf_counter() - start)
    return min(times[1:])
