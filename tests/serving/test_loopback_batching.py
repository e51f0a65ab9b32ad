"""Inputs and outputs of batches in the double."""

import threading

import numpy as np
import pytest

from tests.serving.doubling_session import OUTPUTS, WAITS, batches, together
from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13


def test_each_request_of_a_batch_gets_its_own_rows():
    batched, session = batches(WAITS + "max_batch_size { value: 6 }")
    arrays = [np.array([[1.0, 2.0]] * n) * n for n in (1, 2, 3)]
    for array, found in zip(arrays, together(batched, *arrays), strict=True):
        np.testing.assert_array_equal(found, array * 2)
    assert session.sizes() == [6]


def test_request_of_another_shape_fails_its_whole_batch():
    batched, session = batches(WAITS + "max_batch_size { value: 3 }")
    errors = together(
        batched, np.ones([1, 2]), np.ones([1, 3]), np.ones([1, 2])
    )
    assert {(error.code, error.message) for error in errors} == {
        (
            FAILED_PRECONDITION,
            "Tensors with name 'x:0' from different tasks have different "
            "shapes and padding is turned off. Set pad_variable_length_inputs "
            "to true, or ensure that all tensors with the same name have equal "
            "dimensions starting with the first dim.",
        )
    }
    assert not session.runs


def test_failed_run_fails_every_request_of_its_batch():
    batched, session = batches(WAITS + "max_batch_size { value: 2 }")

    def refuse(_):
        raise TensorFlowError(INVALID_ARGUMENT, "wrong word")

    session.answer = refuse
    errors = together(batched, np.ones(1), np.ones(1))
    assert [e.message for e in errors] == ["wrong word"] * 2
    assert errors[0] is not errors[1]


def test_unexpected_error_leaves_the_thread_to_the_next_batch():
    batched, session = batches(
        "max_batch_size { value: 1 } num_batch_threads { value: 1 }"
    )
    session.answer = {}.__getitem__
    (error,) = together(batched, np.ones(1))
    assert (error.code, "TypeError" in error.message) == (INTERNAL, True)
    session.answer = lambda inputs: inputs["x:0"]
    session.began.clear()
    next_call = {"inputs": {"x:0": np.ones(1)}, "outputs": OUTPUTS}
    threading.Thread(target=batched.run, kwargs=next_call, daemon=True).start()
    assert session.began.wait(timeout=60)


@pytest.mark.parametrize(
    "inputs, words",
    [
        (
            {"x:0": np.ones([])},
            "input tensors must have at least one dimension",
        ),
        (
            {"x:0": np.ones(2), "y:0": np.ones(3)},
            "input tensors must have equal 0th-dimension size",
        ),
    ],
)
def test_inputs_without_equal_numbers_of_rows_are_refused(inputs, words):
    batched, _ = batches("")
    with pytest.raises(TensorFlowError) as error:
        batched.run(inputs, OUTPUTS)
    assert error.value.message == f"Batching Run() {words}"
    assert error.value.code == INVALID_ARGUMENT
