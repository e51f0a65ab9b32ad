"""Answers of the double as bytes, written by hand from the server's source."""

import numpy as np
import pytest

from tests.serving.loopback_answers import write
from tests.serving.loopback_error import TensorFlowError
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


def test_columns_have_a_line_for_each_value():
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
        (np.zeros([0, 2], int), True, b'"predictions": []'),
        (np.zeros([2, 0], int), True, b'"predictions": [[], []\n    ]'),
        (
            [[[True]], [[False]]],
            True,
            b'"predictions": [[[true]], [[false]]\n    ]',
        ),
        ([1, 2], False, b'"outputs": [\n        1,\n        2\n    ]'),
        (3, False, b'"outputs": 3'),
        ([], False, b'"outputs": []'),
        (
            np.zeros([2, 0]),
            False,
            b'"outputs": [\n        [],\n        []\n    ]',
        ),
    ],
)
def test_one_output_stands_without_its_name(array, in_rows, expected):
    written = write({"name": np.asarray(array)}, in_rows)
    assert written == b"{\n    " + expected + b"\n}"


def test_strings_are_bytes_or_base64_by_their_name():
    texts = np.array([[b"\xe2\x82\xac"], [b'\x80\x1f\n"\\/\x7f']], object)
    assert write({"text": texts}, True) == (
        b'{\n    "predictions": [["\xe2\x82\xac"], '
        b'["\x80\\u001F\\n\\"\\\\/\x7f"]\n    ]\n}'
    )
    assert write({"text_bytes": texts[:1]}, True) == (
        b'{\n    "predictions": [[{\n'
        b'                "b64": "4oKs"\n'
        b"            }]\n    ]\n}"
    )
    assert write({"text_bytes": texts[:1, 0]}, False) == (
        b'{\n    "outputs": [\n'
        b"        {\n"
        b'            "b64": "4oKs"\n'
        b"        }\n"
        b"    ]\n}"
    )


def test_numbers_have_six_digits_or_all():
    numbers = [
        *((0, "0.0"), (-0.0, "-0.0"), (5, "5.0"), (0.5, "0.5"), (0.1, "0.1")),
        *((9e6, "9e+06"), (999999, "999999.0"), (1e5, "100000.0")),
        *((3e-4, "0.0003"), (3e-5, "3e-05"), (1234567, "1234567.0")),
        *((2.0**24, "16777216.0"), (2.0**31, "2.14748365e+09")),
        *((2 / 3, "0.666666687"), (1e-40, "9.99995e-41")),
        *((np.inf, "Infinity"), (-np.inf, "-Infinity"), (np.nan, "NaN")),
    ]
    array = np.array([number for number, _ in numbers], "float32")
    found = [text.decode() for text in decimals(array).numpy()]
    assert found == [text for _, text in numbers]
    doubles = np.array([0.1, 2 / 3, 2.0**53, 1e17, 123456.5, 5e-324])
    assert [text.decode() for text in decimals(doubles).numpy()] == [
        *("0.1", "0.66666666666666663", "9007199254740992.0", "1e+17"),
        *("123456.5", "4.94066e-324"),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_numbers_are_printed_as_one_by_one(dtype):
    random = np.random.default_rng(0)
    bits = random.integers(0, 256, 8 * 5000, np.uint8).view(dtype)
    short = random.integers(-(10**6), 10**6, 5000)
    short = (short * 10.0 ** random.integers(-30, 30, 5000)).astype(dtype)
    for array in (bits, short, np.nextafter(short, np.array(0, dtype))):
        with np.errstate(invalid="ignore"):
            texts = decimals(array).numpy()
        for number, text in zip(array, texts, strict=True):
            assert text.decode() == printed_alone(number), number.hex()


def printed_alone(number):
    """`WriteDecimal` for one number."""
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return f"{number}".replace("inf", "Infinity")
    digits = 9 if number.dtype == np.float32 else 17
    text = f"{float(number):.6g}"
    if number.dtype.type(text) != number:
        text = f"{float(number):.{digits}g}"
    return text if "." in text or "e" in text else f"{text}.0"


@pytest.mark.parametrize(
    "arrays, words",
    [
        (
            {"a": np.zeros(2), "b": np.zeros(1)},
            "Tensor name: b has inconsistent batch size: 1 expecting: 2",
        ),
        ({"a": np.zeros([])}, "Tensor name: a has no shape information "),
        ({}, "Cannot convert empty tensor map to JSON"),
    ],
)
def test_rows_that_do_not_fit_together_are_refused(arrays, words):
    with pytest.raises(TensorFlowError) as error:
        write(arrays, True)
    assert (error.value.code, error.value.message) == (3, words)
