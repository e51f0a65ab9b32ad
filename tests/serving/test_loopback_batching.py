"""How the double makes batches, with a session that tells what it ran."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from google.protobuf import text_format

from luong_keras.serving.saved_model_session import TensorFlowError
from tests.serving import loopback_form
from tests.serving.loopback_batching import Batching
from tests.serving.loopback_metrics import Metrics
from tests.serving.loopback_scheduler import sizes_of_parts
from tests.serving.server_protos import unpublished

INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 3, 8, 9
INTERNAL, UNAVAILABLE = 13, 14
# Only full batches run: 100 s are longer than a test.
WAITS = "batch_timeout_micros { value: 100000000 } "
OUTPUTS = {"sum": "sum:0"}


class Doubling:
    """A session that doubles and counts rows, and remembers its runs.

    Attributes:
        runs: the inputs, output names and milliseconds of each run.
        answer: gives an array for the inputs of a run.
        began: set by the first run.
        may_run: runs wait for it.
    """

    def __init__(self):
        self.runs, self.may_run = [], threading.Event()
        self.began = threading.Event()
        self.answer = lambda inputs: inputs["x:0"] * 2
        self.may_run.set()

    def run(self, inputs, outputs, milliseconds):
        self.began.set()
        assert self.may_run.wait(timeout=60)
        self.runs.append((inputs, set(outputs), milliseconds))
        return {name: self.answer(inputs) for name in outputs}

    def sizes(self):
        return [len(inputs["x:0"]) for inputs, *_ in self.runs]


def batches(parameters, session=None, metrics=None):
    """A session whose runs are joined, and the one that is run."""
    session = session or Doubling()
    proto = text_format.Parse(parameters, unpublished("BatchingParameters"))
    return Batching(proto, metrics or Metrics()).wrap(session), session


def together(batched, *arrays, outputs=OUTPUTS, milliseconds=0):
    """Answers to requests at the same time, or their errors."""

    def ask(array):
        try:
            return batched.run({"x:0": array}, outputs, milliseconds)["sum"]
        except TensorFlowError as error:
            return error

    with ThreadPoolExecutor(len(arrays)) as threads:
        return list(threads.map(ask, arrays))


def enqueued(batched, count):
    """Waits until so many tasks are in the queues."""
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


def test_rows_of_several_requests_are_one_run_and_each_gets_its_own():
    batched, session = batches(WAITS + "max_batch_size { value: 6 }")
    arrays = [np.array([[1.0, 2.0]] * n) * n for n in (1, 2, 3)]
    for array, found in zip(arrays, together(batched, *arrays), strict=True):
        np.testing.assert_array_equal(found, array * 2)
    assert session.sizes() == [6]


def test_a_batch_does_not_wait_for_ever_to_be_full():
    batched, session = batches("batch_timeout_micros { value: 1000 }")
    (found,) = together(batched, np.ones([3, 1]))
    assert found.tolist() == [[2]] * 3 and session.sizes() == [3]


def test_a_task_that_has_no_room_opens_the_next_batch():
    batched, session = batches(
        WAITS + "max_batch_size { value: 4 } num_batch_threads { value: 1 }"
    )
    session.may_run.clear()
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(together, batched, np.ones(3))
        enqueued(batched, 1)
        second = threads.submit(together, batched, np.ones(2))
        assert session.began.wait(timeout=60)
        third = threads.submit(together, batched, np.ones(2))
        session.may_run.set()
        for found in (first, second, third):
            assert found.result()[0].tolist()[0] == 2
    assert session.sizes() == [3, 4]


def test_other_outputs_are_another_batch():
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


def test_a_task_larger_than_a_batch_is_refused():
    batched, _ = batches("max_batch_size { value: 2 }")
    (error,) = together(batched, np.ones(3))
    assert (error.code, error.message) == (
        INVALID_ARGUMENT,
        "Task size 3 is larger than maximum input batch size 2",
    )


def test_a_full_queue_refuses_what_does_not_fit_into_its_open_batch():
    batched, session = batches(
        WAITS + "max_batch_size { value: 2 } max_enqueued_batches { value: 1 }"
    )
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(together, batched, np.ones(1))
        enqueued(batched, 1)
        (error,) = together(batched, np.ones(2))
        assert (error.code, error.message) == (
            UNAVAILABLE,
            "The batch scheduling queue to which this task was submitted is "
            "full; currently 1 batches enqueued and max_enqueued_batches is 1",
        )
        # There is room for one row still.
        together(batched, np.ones(1))
        assert waiting.result()[0].tolist() == [2]
    assert session.sizes() == [2]


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


@pytest.mark.parametrize(
    "parameters, words",
    [
        (
            "max_batch_size { value: 4 } allowed_batch_sizes: [2, 8]",
            "Last entry in allowed_batch_sizes must match max_batch_size; "
            "last entry was 8; expected 4",
        ),
        (
            "batch_timeout_micros { value: -1 }",
            "batch_timeout_micros must be non-negative; was -1",
        ),
        (
            "num_batch_threads { value: 0 }",
            "num_batch_threads must be positive; was 0",
        ),
    ],
)
def test_parameters_that_no_model_can_have_are_refused(parameters, words):
    with pytest.raises(TensorFlowError) as error:
        batches(parameters)
    assert error.value.message == words


def test_inputs_of_different_widths_are_filled_up_where_asked():
    batched, session = batches(
        WAITS + "max_batch_size { value: 2 } pad_variable_length_inputs: true"
    )
    arrays = np.array([[1.0, 2.0, 3.0]]), np.array([[4.0]])
    one, other = together(batched, *arrays)
    assert one.tolist() == [[2, 4, 6]] and other.tolist() == [[8, 8, 8]]
    assert len(session.runs) == 1


def test_a_large_task_is_cut_where_asked():
    assert sizes_of_parts(9, 1, 4) == [1, 4, 4]
    assert sizes_of_parts(6, 0, 4) == [4, 2]
    batched, session = batches(
        WAITS + "max_batch_size { value: 8 } max_execution_batch_size "
        "{ value: 2 } enable_large_batch_splitting { value: true } "
        "max_enqueued_batches { value: 3 }"
    )
    (found,) = together(batched, np.arange(6.0))
    assert found.tolist() == [0, 2, 4, 6, 8, 10]
    assert session.sizes() == [2, 2, 2]
    (error,) = together(batched, np.ones(7))
    assert (error.code, error.message) == (
        UNAVAILABLE,
        "The batch scheduling queue to which this task was submitted is full; "
        "task size is 7 but scheduling capacity is only 6 "
        "(num_enqueued_batches=1, max_enqueued_batches=3, open_batch_size=0, "
        "max_execution_batch_size=2)",
    )


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
    """A task of so many rows."""

    def __init__(self, size):
        self.size, self.inputs = size, {"x:0": np.ones([size, 1])}


def ended(code):
    raise SystemExit(code)


def test_a_request_without_rows_waits_for_one_that_has_some():
    batched, session = batches("batch_timeout_micros { value: 1 }")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(together, batched, np.ones([0]))
        enqueued(batched, 1)
        (queue,) = batched._queues.values()
        assert queue.seconds() is None
        together(batched, np.ones(1))
        assert waiting.result()[0].tolist() == []
    assert session.sizes() == [1]


def test_tasks_that_waited_too_long_are_refused():
    batched, session = batches(
        WAITS + "max_batch_size { value: 1 } num_batch_threads { value: 1 }"
    )
    session.may_run.clear()
    with ThreadPoolExecutor(2) as threads:
        busy = threads.submit(together, batched, np.ones(1))
        assert session.began.wait(timeout=60)
        late = threads.submit(together, batched, np.ones(1), milliseconds=1)
        enqueued(batched, 1)
        threading.Event().wait(0.05)
        session.may_run.set()
        (error,) = late.result()
        assert (error.code, error.message) == (
            RESOURCE_EXHAUSTED,
            "Run() timeout exceeded while waiting in batching queue",
        )
        assert busy.result()[0].tolist() == [2]
    assert session.sizes() == [1]


def test_a_batch_has_the_time_of_its_most_patient_task():
    batched, session = batches(WAITS + "max_batch_size { value: 2 }")
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(together, batched, np.ones(1), milliseconds=1)
        enqueued(batched, 1)
        threading.Event().wait(0.05)
        together(batched, np.ones(1), milliseconds=10**6)
        # Too late alone, but in time with the other.
        assert late.result()[0].tolist() == [2]
    (_, _, milliseconds), *_ = session.runs
    assert 0 < milliseconds <= 10**6
