r"""Operations that a training step starts on a GPU, counted on a CPU.

    python benchmarks/launches.py
    KERAS_BACKEND=jax python benchmarks/launches.py

On a GPU, a recurrent step spends most of its time on starting small kernels.
The program counts, for this library and for the naive Keras cell, the
operations in the body of each loop over time, and those outside of all loops.
On TensorFlow they are the operations with a floating-point result in the traced
program, before Grappler, without operations that move no numbers (identities,
reshapes, list accesses, reads of variables). On JAX they are the instructions
of the compiled program, where a fusion counts as one; the program is compiled
for this machine's CPU, whose fusions differ from a GPU's. The step is the step
of `fit`: forward, backward, clipping, update. The loop of `word_losses` runs
over chunks of words after the first one, and is empty with one chunk.
"""

import os
import re
import tempfile
from collections import Counter
from pathlib import Path

from speed.command_line import make_parser

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from speed import batches, naive_model, ours_model
from speed.configurations import CONFIGURATIONS

# TensorFlow operations that start nothing on the device.
_FREE = re.compile(
    r"Identity|IdentityN|Const|Placeholder.*|Reshape|ExpandDims|Squeeze|"
    r"TensorList.*|EmptyTensorList|ReadVariableOp|_Arg|_Retval|"
    r"StopGradient|PreventGradient|ResourceGather.*Shape|VariableShape"
)
# Instructions of the compiled JAX program that start nothing.
_FREE_IN_HLO = {
    "parameter",
    "constant",
    "get-tuple-element",
    "tuple",
    "bitcast",
    "reshape",
    "while",
    "call",
    "conditional",
    "after-all",
    "partition-id",
    "iota",
}
_CHUNKS = "word_losses"  # in the name of a loop that is not over time
_FLOATS = ("half", "bfloat16", "float32", "float64")


def main() -> None:
    """Print a table of loops for each program."""
    parser = make_parser(__doc__)
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument(
        "--list", action="store_true", help="which operations they are"
    )
    options = parser.parse_args()
    import keras

    count = {"tensorflow": in_tensorflow, "jax": in_jax}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "batches.npz")
        made = batches.MAKERS["static"](options.config, 1)
        batches.write_batches(path, made)
        for name, module in (("ours", ours_model), ("naive", naive_model)):
            model, data = fitted_model(module, options.config, path)
            loops, outside = count[keras.backend.backend()](model, data)
            print(f"{name}, {keras.backend.backend()}")
            for loop, body in loops:
                show(f"  {loop}, each step", body, options.list)
            steps = sum(
                body.total() for loop, body in loops if _CHUNKS not in loop
            )
            print(f"  all loops over time, each step: {steps}")
            show("  outside of loops", outside, options.list)


def show(title, body, listed):
    """Print a total and, if `listed`, the counted operations."""
    print(f"{title}: {body.total()}")
    if listed:
        for operation, count in body.most_common():
            print(f"    {count:4} {operation}")


def fitted_model(module, configuration, path):
    """Return a model that `fit` has compiled, and a batch that it has seen."""
    import keras

    seen = []
    fit = keras.Model.fit

    def noted(model, data, **arguments):
        seen.append((model, next(iter(data))))
        return fit(model, data, **arguments)

    keras.Model.fit = noted
    try:
        module.training(configuration, str(path)).run(1)
    finally:
        keras.Model.fit = fit
    return seen[0]


def in_tensorflow(model, data):
    """Count the operations in the bodies of the loops, and outside."""
    import tensorflow as tf

    step = tf.function(model.train_step, autograph=False)
    graph = step.get_concrete_function(data).graph.as_graph_def()
    functions = {f.signature.name: f for f in graph.library.function}
    loops = []

    def counted(nodes, loops):
        found = Counter()
        for node in nodes:
            if node.op in ("While", "StatelessWhile"):
                body = functions[node.attr["body"].func.name]
                found_there = counted(body.node_def, loops)
                loops.append((node.name, found_there))
            elif node.op in ("PartitionedCall", "StatefulPartitionedCall"):
                inner = functions[node.attr["f"].func.name]
                found += counted(inner.node_def, loops)
            elif node.op in ("If", "StatelessIf"):
                # The branch of an ordinary step; the other is the exception.
                branches = []
                for name in ("then_branch", "else_branch"):
                    inner, own = functions[node.attr[name].func.name], []
                    branches.append((counted(inner.node_def, own), own))
                least = min(branches, key=lambda x: (len(x[1]), x[0].total()))
                found += least[0]
                loops += least[1]
            elif not _FREE.fullmatch(node.op) and is_float(node):
                found[node.op] += 1
        return found

    outside = counted(graph.node, loops)
    return loops, outside


def is_float(node):
    """Test whether a node has floating-point numbers."""
    import tensorflow as tf

    types = [
        tf.dtypes.as_dtype(node.attr[name].type).name
        for name in ("T", "dtype", "DstT", "Tparams")
        if name in node.attr and node.attr[name].type
    ]
    return any(name in _FLOATS for name in types)


def in_jax(model, data):
    """Count the same in the program that XLA has compiled."""
    import jax

    model._symbolic_build(data_batch=data)
    model.optimizer.build(model.trainable_variables)
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    program = jax.jit(model.train_step).lower(state, data).compile()
    bodies = computations(program.as_text())
    inner = {
        found[1]: found[2]
        for body in bodies.values()
        for line in body
        if (found := re.search(r'body=%?([\w.\-]+).*op_name="([^"]*)"', line))
    }
    loops = [(name, instructions(bodies[body])) for body, name in inner.items()]
    (entry,) = [name for name in bodies if name.startswith("ENTRY ")]
    return loops, instructions(bodies[entry])


def computations(text):
    """Return the lines of every computation of a program, by its name."""
    found, name = {}, None
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line)
        if head:
            name = (head[1] or "") + head[2]
            found[name] = []
        elif name is not None:
            found[name].append(line)
    return found


def instructions(lines):
    """Count the operations that a computation starts, by kind."""
    found = Counter()
    for line in lines:
        match = re.match(
            r"\s+(?:ROOT )?%?[\w.\-]+ = .*? ([a-z][\w\-]*)\(", line
        )
        if match and match[1] not in _FREE_IN_HLO:
            found[match[1]] += 1
    return found


if __name__ == "__main__":
    main()
