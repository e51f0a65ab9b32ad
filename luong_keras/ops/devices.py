"""What the backend computes on."""

import keras
from keras import backend, ops


def has_gpu() -> bool:
    """Whether the backend has a GPU to compute on."""
    if backend.backend() == "torch":
        # Keras lists no devices there.
        return ops.convert_to_tensor(0.0).device.type == "cuda"
    return any("gpu" in name for name in keras.distribution.list_devices())
