"""Batches of requests in the double."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.serving.loopback_batching import Batching, read_parameters
from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL, UNAVAILABLE = 3, 9, 13, 14
# Only full batches run: the timeout of 100 s is longer than a test.
WAITS = "batch_timeout_micros { value: 100000000 } "
OUTPUTS = {"sum": "sum:0"}


class Doubling:
    """A session that doubles its input and records its runs.

    Attributes:
        runs: Inputs and output names of each run.
        error: Error that runs raise, if not None.
        began: Event that the first run sets.
        may_run: Event for which runs wait.
    """

    def __init__(self):
        self.runs, self.error = [], None
        self.began, self.may_run = threading.Event(), threading.Event()
        self.may_run.set()

    def run(self, inputs, outputs):
        self.began.set()
        assert self.may_run.wait(timeout=60)
        if self.error is not None:
            raise self.error
        self.runs.append((inputs, set(outputs)))
        return {name: inputs["x:0"] * 2 for name in outputs}

    def sizes(self):
        return [len(inputs["x:0"]) for inputs, _ in self.runs]


def batches(parameters):
    """Return a batching session and the session that runs its batches."""
    session = Doubling()
    return Batching(read_parameters(parameters)).wrap(session), session


def together(batched, *arrays, outputs=OUTPUTS):
    """Send requests at the same time; return their outputs or errors."""

    def ask(array):
        try:
            return batched.run({"x:0": array}, outputs)["sum"]
        except TensorFlowError as error:
            return error

    with ThreadPoolExecutor(len(arrays)) as threads:
        return list(threads.map(ask, arrays))


def enqueued(batched, count):
    """Wait until the queues hold `count` tasks."""
    waited = threading.Event()
    for _ in range(6000):
        found = sum(
            len(batch.tasks)
            for queue in batched._queues.values()
            for batch in list(queue._batches)
        )
        if found == count:
            return
        waited.wait(0.01)
    raise AssertionError(f"{found} tasks are waiting.")


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


@pytest.mark.parametrize(
    "error, code, words",
    [
        (TensorFlowError(INVALID_ARGUMENT, "no"), INVALID_ARGUMENT, "no"),
        (TypeError("a bug of the double"), INTERNAL, "TypeError"),
    ],
)
def test_failed_run_fails_every_request_of_its_batch(error, code, words):
    batched, session = batches(
        WAITS + "max_batch_size { value: 2 } num_batch_threads { value: 1 }"
    )
    session.error = error
    one, other = together(batched, np.ones(1), np.ones(1))
    assert one is not other
    for found in (one, other):
        assert (found.code, words in found.message) == (code, True)
    # The thread runs the next batch.
    session.error = None
    assert together(batched, np.ones(2))[0].tolist() == [2, 2]


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


def test_incomplete_batches_run_after_their_timeout():
    batched, session = batches("batch_timeout_micros { value: 1000 }")
    (found,) = together(batched, np.ones([3, 1]))
    assert found.tolist() == [[2]] * 3 and session.sizes() == [3]


def test_requests_without_room_open_the_next_batch_or_are_refused():
    batched, session = batches(
        WAITS + "max_batch_size { value: 4 } num_batch_threads { value: 1 } "
        "max_enqueued_batches { value: 2 }"
    )
    session.may_run.clear()
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(together, batched, np.ones(4))]
        assert session.began.wait(timeout=60)
        for size, rows in ((3, 1), (2, 2), (2, 3)):
            waiting.append(threads.submit(together, batched, np.ones(size)))
            enqueued(batched, rows)
        too_large, too_many = (
            together(batched, np.ones(size))[0] for size in (5, 1)
        )
        session.may_run.set()
        for found in waiting:
            assert found.result()[0].tolist()[0] == 2
    assert session.sizes() == [4, 3, 4]
    assert (too_large.code, too_large.message) == (
        INVALID_ARGUMENT,
        "Task size 5 is larger than maximum input batch size 4",
    )
    assert (too_many.code, too_many.message) == (
        UNAVAILABLE,
        "The batch scheduling queue to which this task was submitted is full; "
        "currently 2 batches enqueued and max_enqueued_batches is 2",
    )


def test_requests_for_other_outputs_are_batched_separately():
    batched, session = batches("max_batch_size { value: 2 }" + WAITS)
    both = {"sum": "sum:0", "more": "more:0"}
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(together, batched, np.ones(1))
        enqueued(batched, 1)
        found = together(batched, np.ones(1), np.ones(1), outputs=both)
        assert [x.tolist() for x in found] == [[2], [2]]
        assert session.runs[0][1] == {"sum:0", "more:0"}
        together(batched, np.ones(1))
        waiting.result()
