"""When the double runs a batch, and what its queues refuse."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.serving.doubling_session import (
    WAITS,
    batches,
    enqueued,
    together,
)
from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_scheduler import sizes_of_parts

INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNAVAILABLE = 3, 8, 14


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
