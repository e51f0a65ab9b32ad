"""Recognition of handwritten digits from the movements of the pen.

The digits are joined, in order, with about twelve movements each. Monotonic
attention can therefore count: with one state per twelve movements, digit t is
near position t. Global attention learns faster but fails on longer lines.
"""

import argparse

import keras
import numpy as np

from luong_keras import Encoder, InputFeedingLSTM, LocalAttention

CORNERS = "0020240400 031410 042422022000 0424122200 1402222422 2404022220 "
CORNERS += "240400202202 042410 220224040020 220204242000"  # x, y of 0 to 9
SHAPES = [np.reshape(list(map(int, c)), (-1, 2)) for c in CORNERS.split()]
START, END = 10, 10  # START is only read, END only written


def draw(digit: int, random) -> np.ndarray:
    """Return 8 to 16 movements (x, y); the first leaves the previous digit."""
    corners = np.append([(-0.5, 0)], SHAPES[digit], axis=0)
    corners *= random.uniform(0.6, 1.4, 2)
    corners += random.normal(0, 0.15, corners.shape)
    ends = np.append(0, np.cumsum(np.hypot(*np.diff(corners, axis=0).T)))
    at = np.linspace(0, ends[-1], random.integers(9, 18))
    return np.diff([np.interp(at, ends, xy) for xy in corners.T]).T


def make_data(count: int, seed: int, fewest: int = 6, most: int = 10):
    """Return lines of random digits, each followed by END."""
    random = np.random.default_rng(seed)
    pen = np.zeros((count, 16 * most, 2))
    digits = np.full((count, most + 1), END)
    for row in range(count):
        line = random.integers(0, 10, random.integers(fewest, most + 1))
        moves = np.concatenate([draw(digit, random) for digit in line])
        pen[row, : len(moves)], digits[row, : len(line)] = moves, line
    shifted = np.append(np.full((count, 1), START), digits[:, :-1], axis=1)
    return (pen, pen.any(axis=-1), shifted), digits


def make_model(attention, every: int) -> keras.Model:
    """Build a convolution with stride 4, an encoder and a decoder."""
    pen, mask = keras.Input((None, 2)), keras.Input((None,), dtype="bool")
    steps = keras.layers.Conv1D(48, 8, 4, "same", activation="relu")(pen)
    memory, *states = Encoder(48, bidirectional=True)(steps, mask=mask[:, ::4])
    call = {"initial_state": states}
    if attention:
        call |= {"memory": memory[:, ::every], "start_position": 0}
        call |= {"memory_mask": mask[:, :: 4 * every]}
    shifted = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(11, 16)(shifted)
    vectors = InputFeedingLSTM(48, attention=attention)(embedded, **call)
    return keras.Model([pen, mask, shifted], keras.layers.Dense(11)(vectors))


def share_wrong(model, inputs, digits) -> float:
    """Return the share of digits that are wrong at their position."""
    pen, mask, read = inputs
    for step in range(read.shape[1]):  # Reads its previous output.
        written = model.predict([pen, mask, read], 100, 0).argmax(axis=-1)
        read[:, step + 1 : step + 2] = written[:, step : step + 1]
    return (written != digits)[digits != END].mean()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, attention, every in (
        ("none", None, 1),
        ("general", "general", 1),
        ("local-m", LocalAttention("monotonic", half_width=2), 3),
    ):
        keras.utils.set_random_seed(1)
        model = make_model(attention, every)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(5e-3), loss)
        model.fit(*make_data(6_000, seed=1), 50, epochs=6, verbose=2)
        alike = share_wrong(model, *make_data(500, seed=2))
        longer = share_wrong(model, *make_data(200, 3, fewest=18, most=20))
        print(f"{name}: {alike:.1%} wrong, on longer lines {longer:.1%}")
