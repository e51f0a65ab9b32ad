"""Speed and error of 8-bit weights in the output product.

    python benchmarks/int8.py --rows 1 5 10 320

Multiplies that many rows of 512 numbers with the output matrix of 8,000 words,
on one core, in each form that TensorFlow has, by turns. For each form it prints
the median CPU time in milliseconds, the speed relative to float32, and the
largest error relative to the largest result. "int8" rounds the weights of a
word and the numbers of a row to 255 steps each and multiplies integers;
"widened" rounds only the weights and multiplies in float32; "hybrid" is
`UniformQuantizedDotHybrid`, "keras" a layer after `quantize("int8")`; "xla" is
compiled (`jit_compile`); "lite" is TensorFlow Lite's converter and interpreter,
which run no part of a SavedModel.
"""

import os
import statistics
import time

from speed.command_line import make_parser

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
UNITS, WORDS = 512, 8000


def main() -> None:
    """Print a table for each number of rows."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 5, 10, 320])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    drawn = np.random.default_rng(1)
    weights = drawn.normal(0, 0.05, (UNITS, WORDS)).astype("float32")
    forms = made_forms(weights)
    for rows in options.rows:
        x = drawn.normal(size=(rows, UNITS)).astype("float32")
        exact = x @ weights
        given = tf.constant(x)
        forms["lite"] = lite(weights, rows)
        times = {name: [] for name in forms}
        for _ in range(options.rounds):
            for name, form in forms.items():
                times[name].append(milliseconds(form, given))
        print(f"\n{rows} rows | ms | as fast as float32 | error")
        whole = times["float32"]
        for name, form in forms.items():
            ratios = [a / b for a, b in zip(whole, times[name], strict=True)]
            error = np.abs(form(given).numpy() - exact).max()
            print(
                f"{name} | {statistics.median(times[name]):.2f} | "
                f"{statistics.median(ratios):.2f} | "
                f"{error / np.abs(exact).max():.4f}"
            )


def milliseconds(form, x, least=3) -> float:
    """Return the CPU time of one product, averaged over a few."""
    form(x)
    start = time.process_time()
    for _ in range(least):
        form(x).numpy()
    return (time.process_time() - start) / least * 1e3


def made_forms(weights):
    """Return the forms of the product, as functions of the rows by name."""
    import keras
    import numpy as np
    import tensorflow as tf

    scale = np.abs(weights).max(axis=0) / 127
    rounded = tf.Variable(np.round(weights / scale).astype("int8"))
    whole = tf.Variable(weights)
    halved = tf.Variable(tf.cast(weights, tf.bfloat16))

    def float32(x):
        return tf.matmul(x, whole)

    def bfloat16(x):
        product = tf.matmul(tf.cast(x, tf.bfloat16), halved)
        return tf.cast(product, tf.float32)

    def widened(x):
        return tf.matmul(x, tf.cast(rounded, tf.float32)) * scale

    def int8(x):
        steps = tf.reduce_max(tf.abs(x), axis=1, keepdims=True) / 127
        whole_steps = tf.cast(tf.round(x / steps), tf.int8)
        product = tf.matmul(whole_steps, rounded, output_type=tf.int32)
        return tf.cast(product, tf.float32) * steps * scale

    def hybrid(x):
        return tf.raw_ops.UniformQuantizedDotHybrid(
            lhs=x,
            rhs=tf.bitcast(rounded, tf.qint8),
            rhs_scales=scale.astype("float32"),
            rhs_zero_points=tf.zeros([WORDS], tf.int32),
            Tout=tf.float32,
            rhs_quantization_min_val=-128,
            rhs_quantization_max_val=127,
            rhs_quantization_axis=1,
        )

    layer = keras.layers.Dense(WORDS, use_bias=False)
    layer.build((None, UNITS))
    layer.kernel.assign(weights)
    layer.quantize("int8")

    def of_keras(x):
        return layer(x)

    plain = {
        "float32": float32,
        "bfloat16": bfloat16,
        "widened": widened,
        "int8": int8,
        "hybrid": hybrid,
        "keras": of_keras,
    }
    made = {name: tf.function(form) for name, form in plain.items()}
    for name in ("float32", "widened", "int8", "keras"):
        made[f"{name}, xla"] = tf.function(plain[name], jit_compile=True)
    return made


def lite(weights, rows):
    """Return the product in TensorFlow Lite, with weights in 8 bits."""
    import warnings

    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([rows, UNITS])])
    def product(x):
        return tf.matmul(x, tf.constant(weights))

    made = tf.lite.TFLiteConverter.from_concrete_functions(
        [product.get_concrete_function()]
    )
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # will move to another package
        interpreter = tf.lite.Interpreter(
            model_content=made.convert(), num_threads=1
        )
    interpreter.allocate_tensors()
    (into,) = (x["index"] for x in interpreter.get_input_details())
    (out,) = (x["index"] for x in interpreter.get_output_details())

    def form(x):
        interpreter.set_tensor(into, x)
        interpreter.invoke()
        return tf.constant(interpreter.get_tensor(out))

    return form


if __name__ == "__main__":
    main()
