"""Forecast of the next day from the last two or three days.

Each series repeats a different daily pattern. The best forecast reads the same
hour of the previous days: attention finds it, but a state of 32 numbers cannot
hold all hours. Encoder and decoder take float features (B, S, F) with a mask.
"""

import argparse

import keras
import numpy as np
from matplotlib.figure import Figure

from luong_keras import Encoder, InputFeedingLSTM

DAY, PAST, UNITS, NOISE = 24, 72, 32, 0.3


def make_data(count: int, seed: int):
    """Return noisy repetitions of random days, with 48 to 72 past hours."""
    random = np.random.default_rng(seed)
    hours = random.integers(0, DAY, (count, 1)) + np.arange(PAST + DAY)
    values = random.normal(size=(count, DAY))
    values = np.take_along_axis(values, hours % DAY, axis=1)
    values += random.normal(0, NOISE, values.shape)
    angle = hours * 2 * np.pi / DAY
    features = np.stack([np.sin(angle), np.cos(angle), values], axis=-1)
    past = np.zeros((count, PAST, 3))
    lengths = random.integers(2 * DAY, PAST + 1, count)
    for row, length in enumerate(lengths):  # The last `length`, right-padded.
        past[row, :length] = features[row, PAST - length : PAST]
    mask = np.arange(PAST) < lengths[:, None]
    return (past, mask, features[:, PAST:, :2]), values[:, PAST:, None]


def plain(clock, memory, mask, states):
    """Build an LSTM that has only the encoder's last states."""
    lstm = keras.layers.LSTM(UNITS, return_sequences=True)
    return lstm(clock, initial_state=states), None


def keras_attention(clock, memory, mask, states):
    """Add the attention of Keras to that LSTM, without input feeding."""
    hidden, _ = plain(clock, memory, mask, states)
    context = keras.layers.Attention()([hidden, memory], mask=[None, mask])
    both = keras.layers.Concatenate()([context, hidden])
    return keras.layers.Dense(UNITS, "tanh")(both), None


def input_feeding(clock, memory, mask, states):
    """Build general attention with input feeding; return the alignments too."""
    decoder = InputFeedingLSTM(UNITS, attention="general")
    call = {"memory": memory, "memory_mask": mask, "initial_state": states}
    return decoder(clock, return_attention_scores=True, **call)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    past, clock = keras.Input((None, 3)), keras.Input((None, 2))
    mask = keras.Input((None,), dtype="bool")
    new, future = make_data(1_000, seed=2)
    for decoder in (plain, keras_attention, input_feeding):
        keras.utils.set_random_seed(1)
        memory, *states = Encoder(UNITS)(past, mask=mask)
        vectors, alignments = decoder(clock, memory, mask, states)
        forecast = keras.layers.Dense(1)(vectors)
        model = keras.Model([past, mask, clock], forecast)
        model.compile(keras.optimizers.Adam(5e-3), "mse")
        model.fit(*make_data(5_000, seed=1), 50, epochs=6, verbose=2)
        error = model.evaluate(new, future, verbose=0)
        print(f"{decoder.__name__}: mean squared error {error:.3f}", flush=True)
    values, ends = new[0][..., 2], new[1].sum(axis=1)[:, None]
    hours = [ends - days * DAY + np.arange(DAY) for days in (1, 2)]
    same = [np.take_along_axis(values, place, axis=1) for place in hours]
    error = np.square(np.mean(same, axis=0) - future[..., 0]).mean()
    print(f"the mean of the same hour of two days: {error:.3f}")
    print(f"the noise alone: {NOISE**2:.3f}")
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.imshow(keras.Model(model.inputs, alignments).predict(new)[0])
    axes.set(xlabel="hour of the past", ylabel="hour of the forecast")
    figure.savefig("time_series.png")
