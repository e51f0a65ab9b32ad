import numpy as np

from luong_keras.decoding.sampling import uniform


def hashed(*counters):
    """Compute one number of `uniform` with Python integers."""
    bits = 0x9E3779B9
    for counter in counters:
        bits = (bits + (counter % 2**32) * 0x9E3779B9) % 2**32
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            bits = (bits ^ (bits >> shift)) * factor % 2**32
        bits ^= bits >> 16
    return (bits >> 9) / 2**23


def test_numbers_match_the_reference():
    seeds = np.array([[0], [1], [-5], [2**31 - 1]], "int32")
    found = np.array(uniform(seeds, np.arange(3, dtype="int32"), 7))
    expected = [
        [hashed(int(seed), k, 7) for k in range(3)] for seed in seeds[:, 0]
    ]
    np.testing.assert_array_equal(found, np.array(expected, "float32"))


def test_numbers_are_uniform_and_uncorrelated():
    numbers = np.array(
        uniform(
            np.arange(50, dtype="int32")[:, None, None],
            np.arange(10, dtype="int32")[:, None],
            np.arange(100, dtype="int32"),
        )
    )
    counts, _ = np.histogram(numbers, bins=100, range=(0, 1))
    # 50,000 numbers in 100 bins: chi-square, 99 degrees of freedom, 99.99 %.
    assert ((counts - 500) ** 2 / 500).sum() < 161
    for axis, size in enumerate(numbers.shape):
        first, then = (
            np.take(numbers, range(start, size - 1 + start), axis)
            for start in (0, 1)
        )
        assert abs(np.corrcoef(first.ravel(), then.ravel())[0, 1]) < 0.02
