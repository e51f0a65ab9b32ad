"""Saved layers, exchanged between versions of the libraries.

    python -m tests.versions.exchange write FOLDER
    python -m tests.versions.exchange read FOLDER

`write` saves a model of every layer as `.keras` and `.weights.h5`, on
TensorFlow also as a checkpoint, with its outputs. `read` loads the files in
FOLDER, compares the outputs and lists the differences. An older Keras skips
`.keras` files that it cannot read: those of Keras 3.15, because of their
initializers, and the model with a Keras embedding.
"""

import json
import pathlib
import sys

import keras
import numpy as np

from tests.layer_checks import BACKEND, KERAS, LAYERS, UNITS, random, randomize

WITH_EMBEDDING = "OutputProjection tied"


def model_of(name):
    make, apply = LAYERS[name]
    query = keras.Input((3, UNITS), name="query")
    memory = keras.Input((5, UNITS), name="memory")
    layer = make("float32")
    result = apply(layer, query, memory)
    # Keras before 3.14 needs every input to be connected to an output.
    outputs = [*keras.tree.flatten(result), query[:, 0], memory[:, 0]]
    return randomize(layer), keras.Model([query, memory], outputs)


def inputs():
    return [
        random(2, 3, UNITS).astype("float32"),
        random(2, 5, UNITS, seed=1).astype("float32"),
    ]


def outputs_of(model):
    found = keras.tree.flatten(model(inputs()))
    return [np.asarray(keras.ops.convert_to_numpy(each)) for each in found]


def write(folder):
    folder.mkdir(parents=True)
    (folder / "version.json").write_text(json.dumps(KERAS))
    for name in LAYERS:
        layer, model = model_of(name)
        path = folder / name.replace(" ", "-")
        np.savez(f"{path}.npz", *outputs_of(model))
        model.save(f"{path}.keras")
        model.save_weights(f"{path}.weights.h5")
        if BACKEND == "tensorflow":
            import tensorflow as tf

            tf.train.Checkpoint(layer=layer).write(f"{path}.checkpoint")


def read(folder):
    """Return the files that cannot be read or give other outputs."""
    wrong = []
    writer = tuple(json.loads((folder / "version.json").read_text()))
    for name in LAYERS:
        newer = writer >= (3, 15) > KERAS
        if name == WITH_EMBEDDING:
            newer = writer > KERAS
        path = folder / name.replace(" ", "-")
        for kind in ("keras", "weights.h5", "checkpoint"):
            if kind == "keras" and newer:
                continue
            if kind == "checkpoint" and BACKEND != "tensorflow":
                continue
            try:
                outputs = outputs_of(_loaded(name, path, kind))
            except Exception as error:  # reported at the end
                wrong.append(f"{path.name}.{kind}: {error}")
                continue
            with np.load(f"{path}.npz") as expected:
                if not all(
                    np.allclose(one, expected[f"arr_{i}"], atol=1e-6)
                    for i, one in enumerate(outputs)
                ):
                    wrong.append(f"{path.name}.{kind}: other numbers")
    return wrong


def _loaded(name, path, kind):
    if kind == "keras":
        return keras.models.load_model(f"{path}.keras")
    layer, model = model_of(name)
    for variable in layer.weights:
        variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
    if kind == "weights.h5":
        model.load_weights(f"{path}.weights.h5")
        return model
    import tensorflow as tf

    status = tf.train.Checkpoint(layer=layer).read(f"{path}.checkpoint")
    status.assert_consumed()
    return model


if __name__ == "__main__":
    action, place = sys.argv[1], pathlib.Path(sys.argv[2])
    if action == "write":
        write(place)
    elif problems := read(place):
        sys.exit("\n".join(problems))
