"""Writes version_0_1_0.keras: a model saved by version 0.1.0.

Run with version 0.1.0 of luong_keras installed, on either backend.
"""

from pathlib import Path

import keras
import numpy as np

from luong_keras import (
    Encoder,
    InputFeedingLSTM,
    LocalAttention,
    MaskedSparseCategoricalCrossentropy,
    OutputProjection,
    WordAccuracy,
    __version__,
)

TARGET = Path(__file__).with_name("version_0_1_0.keras")


def build():
    source = keras.Input((None, 3), name="source")
    mask = keras.Input((None,), dtype="bool", name="mask")
    target = keras.Input((None, 2), name="target")
    memory, hidden, carry = Encoder(4, bidirectional=True)(source, mask=mask)
    vectors = InputFeedingLSTM(
        4, attention=LocalAttention("predictive", half_width=2)
    )(
        target,
        memory=memory,
        memory_mask=mask,
        initial_state=[hidden, carry],
    )
    logits = OutputProjection(5)(vectors)
    model = keras.Model([source, mask, target], logits)
    model.compile(
        optimizer="sgd",
        loss=MaskedSparseCategoricalCrossentropy(),
        metrics=[WordAccuracy()],
    )
    return model


def main():
    assert __version__ == "0.1.0"
    generator = np.random.default_rng(1)
    model = build()
    for variable in model.weights:
        if "seed" not in variable.path:
            variable.assign(0.7 * generator.normal(size=variable.shape))
    model.save(TARGET)


if __name__ == "__main__":
    main()
