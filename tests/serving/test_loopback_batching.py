"""What the double joins to a batch, and who gets what of its outputs."""

import numpy as np
import pytest

from tests.serving import loopback_form
from tests.serving.doubling_session import OUTPUTS, WAITS, batches, together
from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_metrics import Metrics

INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13


def test_rows_of_several_requests_are_one_run_and_each_gets_its_own():
    batched, session = batches(WAITS + "max_batch_size { value: 6 }")
    arrays = [np.array([[1.0, 2.0]] * n) * n for n in (1, 2, 3)]
    for array, found in zip(arrays, together(batched, *arrays), strict=True):
        np.testing.assert_array_equal(found, array * 2)
    assert session.sizes() == [6]


@pytest.mark.parametrize(
    "array, code, words",
    [
        (
            np.ones([1, 3]),
            FAILED_PRECONDITION,
            "Tensors with name 'x:0' from different tasks have different "
            "shapes and padding is turned off. Set pad_variable_length_inputs "
            "to true, or ensure that all tensors with the same name have equal "
            "dimensions starting with the first dim.",
        ),
        (
            np.ones([1, 2], "float32"),
            INTERNAL,
            "Tensor concat operation failed: INVALID_ARGUMENT: Cannot "
            "concatenate tensors that have different data types. Got ",
        ),
    ],
)
def test_one_that_does_not_fit_fails_all_of_its_batch(array, code, words):
    batched, session = batches(WAITS + "max_batch_size { value: 3 }")
    errors = together(batched, np.ones([1, 2]), array, np.ones([1, 2]))
    assert len({error.message for error in errors}) == 1
    assert {error.code for error in errors} == {code}
    assert errors[0].message.startswith(words) and not session.runs


def test_an_error_of_the_run_is_that_of_all():
    batched, session = batches(WAITS + "max_batch_size { value: 2 }")

    def refuse(_):
        raise TensorFlowError(INVALID_ARGUMENT, "wrong word")

    session.answer = refuse
    errors = together(batched, np.ones(1), np.ones(1))
    assert [e.message for e in errors] == ["wrong word"] * 2
    assert errors[0] is not errors[1]


@pytest.mark.parametrize(
    "answer, words",
    [
        (lambda _: np.ones([]), "Batched output tensor has 0 dimensions"),
        (
            lambda _: np.ones(3),
            "Batched output tensor's 0th dimension does not equal the sum of "
            "the 0th dimension sizes of the input tensors",
        ),
    ],
)
def test_outputs_must_have_the_rows_of_the_batch(answer, words):
    batched, session = batches(WAITS + "max_batch_size { value: 2 }")
    session.answer = answer
    errors = together(batched, np.ones(1), np.ones(1))
    found = [(error.code, error.message) for error in errors]
    assert found == [(FAILED_PRECONDITION, words)] * 2


@pytest.mark.parametrize(
    "inputs, words",
    [
        ({}, "must have at least one input tensor"),
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
def test_inputs_must_have_the_same_rows(inputs, words):
    batched, _ = batches("")
    with pytest.raises(TensorFlowError) as error:
        batched.run(inputs, OUTPUTS)
    assert error.value.message == f"Batching Run() {words}"
    assert error.value.code == INVALID_ARGUMENT


def test_rows_are_added_to_an_allowed_number():
    metrics = Metrics()
    batched, session = batches(
        "max_batch_size { value: 8 } allowed_batch_sizes: [2, 4, 8]",
        metrics=metrics,
    )
    (found,) = together(batched, np.array([5.0, 6.0, 7.0]))
    assert found.tolist() == [10, 12, 14]
    # The first row of the last task.
    assert session.runs[0][0]["x:0"].tolist() == [5, 6, 7, 5]
    page = metrics.page()
    name = ":tensorflow:serving:batching_session:"
    labels = '{execution_batch_size="4"}'
    assert f"{name}padding_size_sum{labels} 1\n" in page
    assert f"{name}processed_batch_size_sum{{}} 4\n" in page
    assert f"{name}input_batch_size_sum{{}} 3\n" in page
    assert f"{name}wrapped_run_count{{}} 1\n" in page


def test_inputs_of_different_widths_are_filled_up_where_asked():
    batched, session = batches(
        WAITS + "max_batch_size { value: 2 } pad_variable_length_inputs: true"
    )
    arrays = np.array([[1.0, 2.0, 3.0]]), np.array([[4.0]])
    one, other = together(batched, *arrays)
    assert one.tolist() == [[2, 4, 6]] and other.tolist() == [[8, 8, 8]]
    assert len(session.runs) == 1


def test_parts_of_other_widths_are_mixed_up():
    parts = np.array([[1, 2], [3, 4]]), np.array([[5]])
    assert loopback_form.joined(parts).tolist() == [[1, 2], [3, 4], [5, 0]]


@pytest.mark.parametrize(
    "work",
    [
        # Of a request without rows no row can be repeated.
        lambda form: form.merge([Rows(1), Rows(0)]),
        lambda _: loopback_form.joined([np.ones([1, 1]), np.ones([1, 2])]),
    ],
)
def test_what_ends_the_real_server_ends_the_double(work, monkeypatch):
    monkeypatch.setattr("os._exit", ended)
    form = loopback_form.Form([4], False, Metrics())
    with pytest.raises(SystemExit, match="134"):
        work(form)


class Rows:
    """A task of that many rows."""

    def __init__(self, size):
        self.size, self.inputs = size, {"x:0": np.ones([size, 1])}


def ended(code):
    raise SystemExit(code)
