"""Generator of addons_fixtures.npz: numbers that TensorFlow Addons computes.

Run with Python 3.11, in a separate environment:

    pip install tensorflow==2.15.1 tensorflow-addons==0.23.0
    pip install "typeguard<3" "numpy<2"

Every array is named CASE/KIND/NAME. The kinds:

    weights   a variable of the case; NAME is `v.name`, or the name in a
              checkpoint if the case ends in `_checkpoint`
    inputs    the arguments; those of the case `shared` (memory,
              memory_lengths, queries, inputs, hidden, carry) serve all cases
    outputs   the results: context and alignments (B, T, ...); for a
              wrapper outputs and alignments (B, T, ...), and the final states
              hidden_0, carry_0, ..., attention (B, U)
    versions  of the packages (the case `shared`)
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa

TARGET = Path(__file__).with_name("addons_fixtures.npz")
UNITS, DEPTH = 4, 3
generator = np.random.default_rng(20)


def random(*shape):
    return generator.normal(size=shape).astype("float32")


SHARED = {
    "memory": random(3, 5, 6),
    "memory_lengths": np.array([5, 3, 1], "int32"),
    "queries": random(3, 2, UNITS),
    "inputs": random(3, 4, 5),
    "hidden": random(3, UNITS),
    "carry": random(3, UNITS),
}
LUONG = partial(tfa.seq2seq.LuongAttention, UNITS)
BAHDANAU = partial(tfa.seq2seq.BahdanauAttention, DEPTH)
MECHANISMS = {
    "luong": LUONG,
    "luong_scale": partial(LUONG, scale=True),
    "bahdanau": BAHDANAU,
    "bahdanau_normalize": partial(BAHDANAU, normalize=True),
}


def lstm():
    return tf.keras.layers.LSTMCell(UNITS)


def memory_after_construction(make):
    """Make a mechanism and set its memory afterwards."""
    mechanism = make()
    mechanism.setup_memory(SHARED["memory"], SHARED["memory_lengths"])
    return mechanism


def memory_at_construction(make):
    """Make a mechanism with a memory; its kernels have other names."""
    return make(
        memory=SHARED["memory"], memory_sequence_length=SHARED["memory_lengths"]
    )


def randomize(layer):
    """Assign small random weights.

    Zeros and ones would hide mistakes; large weights amplify rounding.
    """
    for variable in layer.variables:
        variable.assign(0.4 * random(*variable.shape))


def weights_of(layer):
    return {variable.name: variable.numpy() for variable in layer.variables}


def weights_in_checkpoint(layer):
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(decoder=layer).write(f"{folder}/weights")
        reader = tf.train.load_checkpoint(path)
        return {
            name: reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
            if name.startswith("decoder/")
        }


def attend(mechanism):
    """Return the context and the alignments of every query."""
    state = tf.zeros(SHARED["memory"].shape[:2])
    queries = list(SHARED["queries"].swapaxes(0, 1))
    mechanism([queries[0], state])
    randomize(mechanism)
    # The keys are computed from the memory and the present weights.
    mechanism.setup_memory(SHARED["memory"], SHARED["memory_lengths"])
    found = [mechanism([query, state])[0].numpy() for query in queries]
    alignments = np.stack(found, 1)
    context = alignments @ mechanism.values.numpy()
    return {"context": context, "alignments": alignments}


def decode(cell, mechanism):
    """Return the wrapper with the outputs of all steps and the last states."""
    wrapper = tfa.seq2seq.AttentionWrapper(
        cell, mechanism, attention_layer_size=UNITS, alignment_history=True
    )
    steps = list(SHARED["inputs"].swapaxes(0, 1))
    start = wrapper.get_initial_state(batch_size=3, dtype=tf.float32)
    wrapper(steps[0], start)
    randomize(wrapper)
    mechanism.setup_memory(SHARED["memory"], SHARED["memory_lengths"])
    start = wrapper.get_initial_state(batch_size=3, dtype=tf.float32)
    # Every layer of the cell starts from the same states.
    pattern = ["hidden"] if "gru" in cell.name else ["hidden", "carry"]
    count = len(tf.nest.flatten(start.cell_state))
    names = pattern * (count // len(pattern))
    tensors = [tf.convert_to_tensor(SHARED[name]) for name in names]
    cell_state = tf.nest.pack_sequence_as(start.cell_state, tensors)
    state = start.clone(cell_state=cell_state)
    outputs = []
    for step in steps:
        output, state = wrapper(step, state)
        outputs.append(output.numpy())
    pairs = zip(names, tf.nest.flatten(state.cell_state), strict=True)
    states = {
        f"{name}_{i // len(pattern)}": value.numpy()
        for i, (name, value) in enumerate(pairs)
    }
    return wrapper, {
        "outputs": np.stack(outputs, 1),
        "alignments": state.alignment_history.stack().numpy().swapaxes(0, 1),
        "attention": state.attention.numpy(),
        **states,
    }


def main():
    arrays = {
        "shared/versions/tensorflow": np.array(tf.__version__),
        "shared/versions/tensorflow_addons": np.array(tfa.__version__),
    }

    def add(case, kind, values):
        for name, value in values.items():
            arrays[f"{case}/{kind}/{name}"] = value

    add("shared", "inputs", SHARED)
    for name, make in MECHANISMS.items():
        mechanism = memory_after_construction(make)
        add(name, "outputs", attend(mechanism))
        add(name, "weights", weights_of(mechanism))
    stack = tf.keras.layers.StackedRNNCells([lstm(), lstm()])
    gru = tf.keras.layers.GRUCell(UNITS)
    for name, cell, mechanism in [
        *(
            (name, lstm(), memory_after_construction(m))
            for name, m in MECHANISMS.items()
        ),
        ("construction", lstm(), memory_at_construction(BAHDANAU)),
        ("stack", stack, memory_after_construction(LUONG)),
        ("gru", gru, memory_after_construction(LUONG)),
    ]:
        wrapper, outputs = decode(cell, mechanism)
        add(f"wrapper_{name}", "outputs", outputs)
        add(f"wrapper_{name}", "weights", weights_of(wrapper))
        if name == "stack":
            saved = weights_in_checkpoint(wrapper)
            add("wrapper_stack_checkpoint", "weights", saved)
    np.savez_compressed(TARGET, **arrays)


if __name__ == "__main__":
    main()
