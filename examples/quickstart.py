"""Local attention in your own model, in one minute on a CPU.

The task: write a sequence of digits backwards. Predictive local attention has
to learn where to look at each step.
"""

import argparse

import keras
import numpy as np

from luong_keras import Encoder, InputFeedingLSTM, LocalAttention

LENGTH, DIGITS, START = 12, 10, 10


def make_data(count: int, seed: int, length: int = LENGTH):
    """Return random digits and the reversed digits as targets."""
    digits = np.random.default_rng(seed).integers(0, DIGITS, (count, length))
    backwards = digits[:, ::-1]
    shifted = np.concatenate(
        [np.full((count, 1), START), backwards[:, :-1]], axis=1
    )
    return (digits, shifted), backwards


def make_model() -> keras.Model:
    """Build an encoder and a decoder with local attention and input feeding."""
    source = keras.Input((None,), dtype="int32", name="source")
    target_in = keras.Input((None,), dtype="int32", name="target_in")
    memory, h, c = Encoder(64, bidirectional=True)(
        keras.layers.Embedding(DIGITS, 32)(source)
    )
    vectors = InputFeedingLSTM(
        64, attention=LocalAttention("predictive", half_width=3)
    )(
        keras.layers.Embedding(DIGITS + 1, 32)(target_in),
        memory=memory,
        initial_state=[h, c],
    )
    return keras.Model([source, target_in], keras.layers.Dense(DIGITS)(vectors))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    keras.utils.set_random_seed(1)
    model = make_model()
    model.summary()
    model.compile(
        keras.optimizers.Adam(5e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=keras.backend.backend() == "jax",
    )
    inputs, targets = make_data(10_000, seed=1)
    model.fit(inputs, targets, batch_size=100, epochs=6, verbose=2)
    inputs, targets = make_data(1_000, seed=2)
    loss, accuracy = model.evaluate(inputs, targets, verbose=0)
    print(f"digits right on new sequences: {accuracy:.1%}")
