"""The devices of the backend."""

import keras
from keras import backend, ops


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
    """That of the first NVIDIA GPU; None where there is none."""
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
