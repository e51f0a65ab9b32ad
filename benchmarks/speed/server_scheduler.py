"""Queues of tasks that the batching server runs in batches.

Rules and messages are those of TensorFlow's `shared_batch_scheduler.h` (2.21.0)
without splitting of large tasks. A task is any object with a `size`, its number
of rows.
"""

import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field

from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT, UNAVAILABLE = 3, 14


@dataclass(frozen=True)
class QueueOptions:
    """Settings of a queue."""

    batch_limit: int = 1000
    timeout: float = 0.0
    max_enqueued: int = 10

    @classmethod
    def of(cls, parameters):
        """Create options from the fields of a `BatchingParameters` proto.

        Absent fields have the defaults of `GetQueueOptions`
        (bundle_factory_util.h, 2.20.0).
        """
        assert not parameters.get("enable_large_batch_splitting", False)
        return cls(
            parameters.get("max_batch_size", cls.batch_limit),
            parameters.get("batch_timeout_micros", 0) / 1e6,
            parameters.get("max_enqueued_batches", cls.max_enqueued),
        )


@dataclass
class Batch:
    """Tasks that run together; `began` is the arrival of the first one."""

    tasks: list = field(default_factory=list)
    began: float = 0.0

    @property
    def size(self):
        """Number of rows of all tasks."""
        return sum(task.size for task in self.tasks)


class Queue:
    """Batches of one kind of tasks; the last batch is open.

    The caller of a method must hold the scheduler's lock.

    Args:
        options: `QueueOptions`.
        process: Function that runs a list of tasks.
    """

    def __init__(self, options, process):
        self.options, self.process = options, process
        self._batches = deque([Batch()])

    def add(self, task):
        """Add a task to the open batch or the next one.

        Raises:
            TensorFlowError: If the task is too large or the queue is full.
        """
        limit, count = self.options.batch_limit, len(self._batches)
        if task.size > limit:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"Task size {task.size} is larger than maximum input batch "
                f"size {limit}",
            )
        if self._batches[-1].size + task.size > limit:
            # The open batch counts as enqueued, running batches do not.
            if count >= self.options.max_enqueued:
                raise TensorFlowError(
                    UNAVAILABLE,
                    "The batch scheduling queue to which this task was "
                    f"submitted is full; currently {count} batches enqueued "
                    f"and max_enqueued_batches is {self.options.max_enqueued}",
                )
            self._batches.append(Batch())
        if not self._batches[-1].tasks:
            self._batches[-1].began = time.monotonic()
        self._batches[-1].tasks.append(task)

    def seconds(self):
        """Return the seconds until a batch may run, None without tasks."""
        if len(self._batches) > 1:
            return 0.0
        batch = self._batches[0]
        if not batch.tasks:
            return None
        if batch.size >= self.options.batch_limit:
            return 0.0
        return max(batch.began + self.options.timeout - time.monotonic(), 0.0)

    def take(self):
        """Return the tasks of a batch that may run now, or None."""
        if self.seconds() != 0:
            return None
        if len(self._batches) == 1:
            self._batches.append(Batch())
        return self._batches.popleft().tasks


class Scheduler:
    """Threads that run the batches of all queues, in turn.

    Args:
        threads: Number of threads; one per core when None.
    """

    def __init__(self, threads=None):
        self._queues, self._changed = deque(), threading.Condition()
        for _ in range(threads or os.cpu_count() or 1):
            threading.Thread(target=self._work, daemon=True).start()

    def add_queue(self, queue):
        """Run the batches of a queue from now on."""
        with self._changed:
            self._queues.append(queue)

    def schedule(self, queue, task):
        """Add a task to a queue; raises the errors of `Queue.add`."""
        with self._changed:
            queue.add(task)
            # A waiting thread computes its timeout again.
            self._changed.notify()

    def _work(self):
        while True:
            with self._changed:
                while (found := self._next()) is None:
                    self._changed.wait(self._seconds())
                # Another thread watches the queues while this one is busy.
                self._changed.notify()
            process, tasks = found
            process(tasks)
            del process, tasks, found

    def _next(self):
        for _ in range(len(self._queues)):
            queue = self._queues[0]
            self._queues.rotate(-1)
            tasks = queue.take()
            if tasks is not None:
                return queue.process, tasks
        return None

    def _seconds(self):
        waits = [queue.seconds() for queue in self._queues]
        return min((wait for wait in waits if wait is not None), default=None)
