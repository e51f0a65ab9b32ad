"""Common part of our program and the naive ones: `fit` and compilation."""

import itertools

import keras
import numpy as np

from speed.batches import read_batches

ON_JAX = keras.backend.backend() == "jax"
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def policy(precision):
    """The Keras dtype policy of `"float32"` or `"bfloat16"`."""
    return precision if precision == "float32" else f"mixed_{precision}"


def fitted(model, path, targets):
    """A function that fits a compiled model on the batches of a file.

    Args:
        model: with inputs named as the batches' arrays.
        path: the file.
        targets: function of a batch: what `fit` takes as y.
    """
    batches = [(batch, targets(batch)) for batch in read_batches(path)]
    data = _dataset(batches) if ON_TENSORFLOW else _generator(batches)

    def run(steps):
        history = model.fit(
            data, steps_per_epoch=steps, shuffle=False, verbose=0
        )
        return {"loss": history.history["loss"][-1]}

    return run


def _generator(batches):
    """The batches over and over, without TensorFlow."""
    yield from itertools.cycle(batches)


def _dataset(batches):
    """The batches over and over, from memory, of whatever lengths."""
    import tensorflow as tf

    signature = keras.tree.map_structure(
        lambda array: tf.TensorSpec([None, None], array.dtype), batches[0]
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=signature
    )
    # Else the end of a `fit` waits until the thread that tunes wakes up.
    fixed = tf.data.Options()
    fixed.autotune.enabled = False
    return dataset.cache().repeat().prefetch(2).with_options(fixed)


def one_program(function, model, compiled=False):
    """The function in one program of the backend.

    `model` is what it computes with, `compiled` is whether XLA compiles it on
    TensorFlow. On JAX the variables are handed in at every call: captured, they
    would become constants of the program.
    """
    if not ON_JAX:
        import tensorflow as tf

        return tf.function(function, autograph=False, jit_compile=compiled)
    import jax

    def stateless(values, *arguments):
        scope = keras.StatelessScope(zip(model.variables, values, strict=True))
        with scope:
            return function(*arguments)

    program = jax.jit(stateless)
    values = [variable.value for variable in model.variables]
    return lambda *arguments: program(values, *arguments)


def ready(result):
    """Waits for a result and returns it as an array."""
    return np.asarray(keras.ops.convert_to_numpy(result))
