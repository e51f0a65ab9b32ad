"""JSON responses of the double; the bytes follow the server's source."""

import numpy as np
import pytest

from tests.serving.loopback_answers import write
from tests.serving.loopback_numbers import decimals

TWO_OUTPUTS = {
    "weights": np.array([[0.5, 1 / 30], [2, 1e6]], "float32"),
    "count": np.array([10**12, -1]),
}


def test_rows_of_several_outputs_are_objects_with_lists_on_one_line():
    assert write(TWO_OUTPUTS, True) == (
        b"{\n"
        b'    "predictions": [\n'
        b"        {\n"
        b'            "weights": [0.5, 0.0333333351],\n'
        b'            "count": 1000000000000\n'
        b"        },\n"
        b"        {\n"
        b'            "weights": [2.0, 1e+06],\n'
        b'            "count": -1\n'
        b"        }\n"
        b"    ]\n"
        b"}"
    )


def test_columns_have_one_value_per_line():
    assert write(TWO_OUTPUTS, False) == (
        b"{\n"
        b'    "outputs": {\n'
        b'        "weights": [\n'
        b"            [\n"
        b"                0.5,\n"
        b"                0.0333333351\n"
        b"            ],\n"
        b"            [\n"
        b"                2.0,\n"
        b"                1e+06\n"
        b"            ]\n"
        b"        ],\n"
        b'        "count": [\n'
        b"            1000000000000,\n"
        b"            -1\n"
        b"        ]\n"
        b"    }\n"
        b"}"
    )


@pytest.mark.parametrize(
    "array, in_rows, expected",
    [
        ([[1, 2], [3, 4]], True, b'"predictions": [[1, 2], [3, 4]\n    ]'),
        ([1, 2], True, b'"predictions": [1, 2\n    ]'),
        (np.zeros([2, 0], int), True, b'"predictions": [[], []\n    ]'),
        (
            [[[True]], [[False]]],
            True,
            b'"predictions": [[[true]], [[false]]\n    ]',
        ),
        ([1, 2], False, b'"outputs": [\n        1,\n        2\n    ]'),
        ([], False, b'"outputs": []'),
        (
            np.zeros([2, 0], int),
            False,
            b'"outputs": [\n        [],\n        []\n    ]',
        ),
    ],
)
def test_single_output_has_no_name(array, in_rows, expected):
    written = write({"name": np.asarray(array)}, in_rows)
    assert written == b"{\n    " + expected + b"\n}"


def test_strings_are_escaped_bytes():
    texts = np.array([[b"\xe2\x82\xac"], [b'\x80\x1f\n"\\/\x7f']], object)
    assert write({"text": texts}, True) == (
        b'{\n    "predictions": [["\xe2\x82\xac"], '
        b'["\x80\\u001F\\n\\"\\\\/\x7f"]\n    ]\n}'
    )


def test_floats_have_six_or_all_nine_digits():
    numbers = [
        *((0, "0.0"), (-0.0, "-0.0"), (5, "5.0"), (0.5, "0.5"), (0.1, "0.1")),
        *((9e6, "9e+06"), (999999, "999999.0"), (1e5, "100000.0")),
        *((3e-4, "0.0003"), (3e-5, "3e-05"), (1234567, "1234567.0")),
        *((2.0**24, "16777216.0"), (2.0**31, "2.14748365e+09")),
        *((2 / 3, "0.666666687"), (1e-40, "9.99995e-41")),
    ]
    array = np.array([number for number, _ in numbers], "float32")
    found = [text.decode() for text in decimals(array).numpy()]
    assert found == [text for _, text in numbers]


def test_printing_many_floats_equals_printing_each():
    random = np.random.default_rng(0)
    bits = random.integers(0, 256, 8 * 5000, np.uint8).view("float32")
    short = random.integers(-(10**6), 10**6, 5000)
    short = (short * 10.0 ** random.integers(-30, 30, 5000)).astype("float32")
    for array in (
        bits[np.isfinite(bits)],
        short,
        np.nextafter(short, np.float32(0)),
    ):
        texts = decimals(array).numpy()
        for number, text in zip(array, texts, strict=True):
            assert text.decode() == format_float(number), number.hex()


def format_float(number):
    """Format one number like `WriteDecimal`."""
    text = f"{number:.6g}"
    if np.float32(text) != number:
        text = f"{number:.9g}"
    return text if "." in text or "e" in text else f"{text}.0"
