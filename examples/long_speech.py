"""Local attention on long input: sounds in recordings of 2,000 frames.

The task: label every frame with its sound. A single frame is mostly noise, so
the model needs its neighbours. Global attention compares each frame with all
2,000, monotonic local attention only with 2 D + 1 neighbours, in less time and
memory. Each form runs in a separate process, which measures its peak memory,
as Linux counts it.
"""

import argparse
import resource
import subprocess
import sys
import time

import keras
import numpy as np

from luong_keras import LocalAttention, LuongAttention

FRAMES, FEATURES, SOUNDS, NOISE = 2_000, 16, 12, 3.0
ATTENTIONS = {
    "none": None,
    "global": LuongAttention("general"),
    "local-m": LocalAttention("monotonic", half_width=20),
}


def make_data(count: int, seed: int):
    """Return recordings of 1,200 to 2,000 frames; a sound lasts 20 to 60."""
    random = np.random.default_rng(seed)
    typical = np.random.default_rng(0).normal(size=(SOUNDS, FEATURES))
    sounds = np.zeros((count, FRAMES), "int32")
    for row in sounds:
        ends = np.cumsum(random.integers(20, 61, FRAMES // 20))
        spoken = random.integers(0, SOUNDS, len(ends))
        row[:] = spoken[np.searchsorted(ends, np.arange(FRAMES), "right")]
    mask = np.arange(FRAMES) < random.integers(1_200, FRAMES + 1, (count, 1))
    frames = typical[sounds] + random.normal(0, NOISE, (*mask.shape, FEATURES))
    frames[~mask] = 0
    return (frames, mask), sounds, mask.astype("float32")


def make_model(attention) -> keras.Model:
    """Build a convolution, attention over all frames and sound logits."""
    frames = keras.Input((None, FEATURES))
    mask = keras.Input((None,), dtype="bool")
    hidden = keras.layers.Conv1D(32, 5, 1, "same", activation="relu")(frames)
    hidden = keras.layers.Dense(32)(hidden)
    if attention is not None:
        context = attention(hidden, hidden, value_mask=mask)
        hidden = keras.layers.Concatenate()([context, hidden])
    hidden = keras.layers.Dense(64, "relu")(hidden)
    return keras.Model([frames, mask], keras.layers.Dense(SOUNDS)(hidden))


def measure(name: str) -> None:
    """Train one form of attention and print time, memory and accuracy."""
    keras.utils.set_random_seed(1)
    model = make_model(ATTENTIONS[name])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = keras.optimizers.Adam(3e-3)
    model.compile(adam, loss, weighted_metrics=["accuracy"])
    inputs, sounds, weights = make_data(160, seed=1)
    model.fit(inputs, sounds, 4, 1, 0, sample_weight=weights)  # also compiles
    start = time.perf_counter()
    model.fit(inputs, sounds, 4, 2, 0, sample_weight=weights)
    step = (time.perf_counter() - start) / 80
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux
    inputs, sounds, weights = make_data(40, seed=2)
    _, right = model.evaluate(inputs, sounds, 4, 0, sample_weight=weights)
    print(f"{name:8} {1e3 * step:6.0f} ms {peak:6.0f} MB {right:6.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attention", nargs="?", choices=ATTENTIONS)
    if chosen := parser.parse_args().attention:
        measure(chosen)
    else:
        print("attention, a training step, peak of memory, frames right")
        for name in ATTENTIONS:
            subprocess.run([sys.executable, __file__, name], check=True)
