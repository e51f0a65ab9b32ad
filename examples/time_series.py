"""The same layers on numbers: forecasting a noisy wave of changing pitch.

Encoder and decoder take float features (B, S, F) with a mask, as for speech
or handwriting; here F = 1 and the decoder reads its own last value.
"""

import keras
import numpy as np

from luong_keras import Encoder, InputFeedingLSTM, LuongAttention

PAST, FUTURE = 60, 20


def make_data(count: int, seed: int):
    """Waves whose period is to be found in the past; lengths differ."""
    random = np.random.default_rng(seed)
    period = random.uniform(8, 20, (count, 1))
    phase = random.uniform(0, 2 * np.pi, (count, 1))
    wave = np.sin(np.arange(PAST + FUTURE) * 2 * np.pi / period + phase)
    wave += random.normal(0, 0.1, wave.shape)
    lengths = random.integers(PAST // 2, PAST + 1, count)
    past = np.zeros((count, PAST, 1), "float32")
    for row, length in enumerate(lengths):  # right-padded: the last `length`
        past[row, :length, 0] = wave[row, PAST - length : PAST]
    mask = np.arange(PAST) < lengths[:, None]
    last = wave[:, PAST - 1 : -1, None].astype("float32")
    return (past, mask, last), wave[:, PAST:, None].astype("float32")


past = keras.Input((None, 1), name="past")
mask = keras.Input((None,), dtype="bool", name="mask")
last = keras.Input((None, 1), name="last")
memory, h, c = Encoder(48)(past, mask=mask)
vectors = InputFeedingLSTM(48, attention=LuongAttention("general"))(
    last, memory=memory, initial_state=[h, c], memory_mask=mask
)
model = keras.Model([past, mask, last], keras.layers.Dense(1)(vectors))

if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    model.compile("adam", "mse", jit_compile=keras.backend.backend() == "jax")
    model.fit(*make_data(4_000, seed=1), batch_size=50, epochs=4, verbose=2)
    error = model.evaluate(*make_data(500, seed=2), verbose=0)
    print(f"mean squared error {error:.3f}; noise alone has 0.010")
