"""Training on several devices of one machine, by `tf.distribute`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import keras

from luong_keras.config.checks import check_integers

if TYPE_CHECKING:
    import tensorflow as tf


def mirrored(devices: int | None = None) -> tf.distribute.Strategy:
    """Return a strategy whose devices hold copies of the weights.

    Build and compile the model, and call `fit`, inside the strategy's
    `scope()`. Give `fit` batches whose number of rows is a multiple of
    `num_replicas_in_sync`, the `row_multiple` of
    `luong_keras.data.TrainingBatches.dataset`. Each device computes its share
    of the rows. A step equals that of one device with all rows.

    Args:
        devices: The number of GPUs or, on a machine without GPUs, of parts of
            the CPU. `None` takes all GPUs, or the CPU as one device.

    Returns:
        A `tf.distribute.MirroredStrategy`.

    Raises:
        ValueError: If Keras runs on another backend, `devices` is below 1, or
            too few devices exist.

    Example:
        >>> on_tensorflow = keras.backend.backend() == "tensorflow"
        >>> mirrored(1).num_replicas_in_sync if on_tensorflow else 1
        1
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "Mirrored training is TensorFlow's. Expected: Keras on "
            f"TensorFlow. Received: on {keras.backend.backend()}. Set "
            "KERAS_BACKEND=tensorflow."
        )
    check_integers(optional=True, devices=devices)
    import tensorflow as tf

    # Listing logical devices starts TensorFlow; no CPU can be divided later.
    gpus = tf.config.list_physical_devices("GPU")
    gpus = gpus and tf.config.list_logical_devices("GPU")
    num_devices = devices or max(len(gpus), 1)
    if gpus and num_devices > len(gpus):
        raise ValueError(
            f"`devices` must be at most the number of GPUs, {len(gpus)}. "
            f"Received: devices={devices}. Leave it out to use them all."
        )
    if not gpus:
        _split_cpu(num_devices)
    return _make_strategy("GPU" if gpus else "CPU", num_devices)


@functools.cache  # Two strategies in a process take each other's messages.
def _make_strategy(kind: str, devices: int) -> tf.distribute.Strategy:
    import tensorflow as tf

    reduction = None  # TensorFlow's choice, NCCL
    if kind == "CPU":
        reduction = tf.distribute.ReductionToOneDevice()
    names = [f"{kind}:{number}" for number in range(devices)]
    return tf.distribute.MirroredStrategy(names, reduction)


def _split_cpu(parts: int) -> None:
    """Divide the CPU into logical devices, before TensorFlow starts."""
    import tensorflow as tf

    (cpu, *_) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or [0]) >= parts:
        return
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * parts
        )
    except RuntimeError as error:
        raise ValueError(
            "The CPU can be divided only before TensorFlow has started. "
            f"Received: devices={parts}, after its start. Call `mirrored` "
            "first in the process."
        ) from error


def check_strategy(model: keras.Model) -> None:
    """Check that this library can train under the model's strategy.

    Args:
        model: A compiled model, before `fit`.

    Raises:
        ValueError: If the model was built, or `fit` is called, under a
            strategy for several machines or with central variables; or
            under several replicas with scaled losses or compiled by XLA.
    """
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    strategy = model.distribute_strategy
    # Under the first one `fit` fails inside Keras; the others are untested.
    refused = {
        "MultiWorkerMirroredStrategy": (
            tf.distribute.MultiWorkerMirroredStrategy
        ),
        "ParameterServerStrategy": tf.distribute.ParameterServerStrategy,
        "experimental.CentralStorageStrategy": (
            tf.distribute.experimental.CentralStorageStrategy
        ),
    }
    for name, kind in refused.items():
        if isinstance(strategy, kind):
            raise ValueError(
                "Expected: no strategy, or `tf.distribute.MirroredStrategy`, "
                "for several devices of one machine. Received: `tf."
                f"distribute.{name}`, which is not supported. For several "
                "machines start `luong-keras train --backend jax` as several "
                "processes."
            )
    if strategy.num_replicas_in_sync > 1:
        _check_replicas(model, strategy.num_replicas_in_sync)


def _check_replicas(model: keras.Model, replicas: int) -> None:
    if isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer):
        raise ValueError(
            "The optimizer that scales the loss looks for overflows on the "
            "first replica only. Expected: under several replicas a model "
            "of float32, float64 or mixed_bfloat16. Received: a "
            f"LossScaleOptimizer and {replicas} replicas."
        )
    if model.jit_compile:
        raise ValueError(
            "XLA compiles a step for one device. Expected: under several "
            "replicas `compile(jit_compile=False)`. Received: jit_compile=True "
            f"and {replicas} replicas."
        )
