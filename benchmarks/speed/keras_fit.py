"""Common part of the Keras programs: `fit`, passes and compilation."""

import itertools

import keras
import numpy as np

from speed.batches import read_batches

ON_JAX = keras.backend.backend() == "jax"
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def policy(precision):
    """Return the Keras dtype policy of `"float32"` or `"bfloat16"`."""
    return precision if precision == "float32" else f"mixed_{precision}"


def fitted(model, path, targets):
    """Return a function that fits a model on the batches of a file.

    Args:
        model: Compiled model with inputs named as the batches' arrays.
        path: The file.
        targets: Function from a batch to the y of `fit`.
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
    """Yield the batches over and over, without TensorFlow."""
    yield from itertools.cycle(batches)


def _dataset(batches):
    """Return a dataset that repeats the batches, of any lengths."""
    import tensorflow as tf

    signature = keras.tree.map_structure(
        lambda array: tf.TensorSpec([None, None], array.dtype), batches[0]
    )
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=signature
    )
    # Otherwise the end of `fit` waits until the tuning thread wakes up.
    fixed = tf.data.Options()
    fixed.autotune.enabled = False
    return dataset.cache().repeat().prefetch(2).with_options(fixed)


def passes(call, layer, inputs, memory, input_signature=None):
    """Return passes forward and backward, on TensorFlow.

    Args:
        call: Function from inputs and memory to vectors.
        layer: Its layer, which has weights.
        inputs: Float tensor (B, T, U).
        memory: Float tensor (B, S, U).
        input_signature: Their shapes, if one graph serves several.
    """
    import tensorflow as tf

    @tf.function(autograph=False, input_signature=input_signature)
    def step(inputs, memory):
        with tf.GradientTape() as tape:
            tape.watch([memory, inputs])
            vectors = tf.cast(call(inputs, memory), "float32")
            loss = tf.reduce_sum(tf.square(vectors))
        weights = [v.value for v in layer.trainable_variables]
        return loss, tape.gradient(
            loss, [memory, inputs, *weights], unconnected_gradients="zero"
        )

    def run(steps):
        for _ in range(steps):
            loss, _ = step(inputs, memory)
        return {"loss": float(loss)}

    return run


def one_program(function, model, compiled=False):
    """Compile a function to one program of the backend.

    `model` has the variables of the function. `compiled` tells whether XLA
    compiles it on TensorFlow. On JAX each call passes the variables, because
    captured variables would become constants of the program.
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
    """Wait for a result and return it as an array."""
    return np.asarray(keras.ops.convert_to_numpy(result))
