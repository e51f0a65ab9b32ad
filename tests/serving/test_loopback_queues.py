"""Times and contents of batches in the double."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests.serving.doubling_session import (
    WAITS,
    batches,
    enqueued,
    together,
)


def test_incomplete_batches_run_after_their_timeout():
    batched, session = batches("batch_timeout_micros { value: 1000 }")
    (found,) = together(batched, np.ones([3, 1]))
    assert found.tolist() == [[2]] * 3 and session.sizes() == [3]


def test_task_without_room_opens_the_next_batch():
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
