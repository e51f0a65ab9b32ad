"""Devices of the backend: abilities, generators and the faster precision."""

import functools
import sys
import timeit
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import backend, ops

from luong_keras.config import Precision

# Least speed-up of a product for mixed precision: the states, the softmax and
# the loss of a step stay in float32, and conversions are added.
_MIN_SPEEDUP = 1.5
_MIN_SECONDS = 0.005  # a shorter time measures the start, too
_REPETITIONS = 5


def has_gpu() -> bool:
    """Test whether the backend has a GPU to compute on."""
    if backend.backend() == "torch":
        # Keras lists no devices on torch.
        return ops.convert_to_tensor(0.0).device.type == "cuda"
    return any("gpu" in name for name in keras.distribution.list_devices())


def _compute_capability() -> float | None:
    """Return the compute capability of an NVIDIA GPU; None without one."""
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        for gpu in tf.config.get_visible_devices("GPU"):
            details = tf.config.experimental.get_device_details(gpu)
            major, minor = details.get("compute_capability", (8, 0))
            return major + minor / 10
    elif backend.backend() == "jax":
        import jax

        # An AMD GPU has a name, such as gfx942, and a CPU has none.
        capability = str(getattr(jax.devices()[0], "compute_capability", ""))
        return float(capability) if capability[:1].isdecimal() else None
    elif has_gpu():
        import torch

        major, minor = torch.cuda.get_device_capability()
        return major + minor / 10
    return None


def generator_states() -> list[np.ndarray]:
    """Return the states of torch's generators; [] on other backends.

    Keras draws from them for a layer without a seed.
    """
    return [x.get_state().numpy() for x in _torch_generators()]


def set_generator_states(states: Sequence[np.ndarray]) -> None:
    """Restore the states of torch's generators."""
    for generator, state in zip(_torch_generators(), states, strict=False):
        import torch

        generator.set_state(torch.from_numpy(state))


def _torch_generators() -> list[Any]:
    if backend.backend() != "torch":
        return []
    import torch

    return [torch.default_generator, *torch.cuda.default_generators]


def check_one_replica(model: keras.Model | None = None) -> None:
    """Refuse a `tf.distribute` strategy that divides a batch.

    Args:
        model: The model that is trained; without it, the strategy is that of
            the scope.

    Raises:
        ValueError: If the strategy has several replicas.
    """
    if backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    strategy = getattr(model, "distribute_strategy", None)
    strategy = strategy or tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if replicas > 1:
        raise ValueError(
            f"Expected: one replica. Received: {replicas}, of a "
            f"{type(strategy).__name__}. Several devices train with JAX: set "
            "KERAS_BACKEND=jax, or luong-keras train --backend jax --devices "
            f"{replicas}."
        )


def resolve_precision(precision: Precision) -> Precision:
    """Resolve `"auto"` for this machine; return other precisions unchanged.

    A product of matrices is timed in float32 and in bfloat16, once per
    process. Processors without bfloat16 instructions take several times as
    long with it; processors with them, and GPUs, half the time or less. On a
    GPU without bfloat16, such as a T4, float16 is timed instead. The times and
    the choice are printed on the standard error.

    Args:
        precision: As `ModelConfig.precision`.

    Returns:
        For `"auto"`, `"mixed_bfloat16"` or `"mixed_float16"` if its product
        takes at most two thirds of the float32 time, otherwise `"float32"`.
    """
    return _faster_precision() if precision == "auto" else precision


@functools.cache
def _faster_precision() -> Precision:
    size = 512
    while (seconds := product_seconds(size, "float32")) < _MIN_SECONDS:
        size *= 2
    # NVIDIA GPUs multiply bfloat16 from compute capability 8 on.
    capability = _compute_capability()
    is_old = capability is not None and capability < 8
    half = "float16" if is_old else "bfloat16"
    half_seconds = product_seconds(size, half)
    precision: Precision = "float32"
    if seconds >= _MIN_SPEEDUP * half_seconds:
        precision = "mixed_bfloat16" if half == "bfloat16" else "mixed_float16"
    print(
        f"precision: {precision}, for a product of {size} x {size} matrices "
        f"takes {1000 * seconds:.1f} ms in float32 and "
        f"{1000 * half_seconds:.1f} ms in {half}",
        file=sys.stderr,
    )
    return precision


def product_seconds(size: int, dtype: str) -> float:
    """Return the shortest of several times of a product of matrices."""
    matrix = ops.cast(np.full((size, size), 0.5, "float32"), dtype)

    def multiply() -> None:
        # Reading a number waits for the product, on each backend.
        number = ops.matmul(matrix, matrix)[0, 0]
        ops.convert_to_numpy(ops.cast(number, "float32"))

    # The first one warms up.
    return min(timeit.repeat(multiply, number=1, repeat=_REPETITIONS + 1)[1:])
