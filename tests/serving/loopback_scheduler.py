"""Queues of tasks that the loopback server runs in batches.

Rules and refusals are those of TensorFlow's `shared_batch_scheduler.h`, as
version 2.21.0 installs it. A task is anything with a `size`, its rows.
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
    """How a queue makes batches, from a `BatchingParameters` proto."""

    task_limit: int = 1000
    batch_limit: int = 1000
    timeout: float = 0.0
    max_enqueued: int = 10
    splits: bool = False

    @classmethod
    def of(cls, parameters):
        """Those of the proto, whose absent fields have defaults.

        `GetQueueOptions`, bundle_factory_util.h, 2.20.0.
        """

        def given(name, default):
            present = parameters.HasField(name)
            return getattr(parameters, name).value if present else default

        limit = given("max_batch_size", cls.task_limit)
        splits = given("enable_large_batch_splitting", False)
        execution = given("max_execution_batch_size", limit)
        enqueued = given("max_enqueued_batches", cls.max_enqueued)
        options = cls(
            task_limit=limit,
            batch_limit=execution if splits else limit,
            timeout=given("batch_timeout_micros", 0) / 1e6,
            # Without splitting, none means one.
            max_enqueued=enqueued if splits else max(enqueued, 1),
            splits=splits,
        )
        options.check()
        return options

    def check(self):
        """Refuses what `AddQueue` of the server refuses."""
        if self.task_limit == 0:
            wrong = "input_batch_size_limit must be positive; was 0"
        elif self.timeout < 0:
            wrong = (
                "batch_timeout_micros must be non-negative; was "
                f"{round(self.timeout * 1e6)}"
            )
        elif self.max_enqueued == 0:
            wrong = "max_enqueued_batches must be positive; was 0"
        elif self.task_limit < self.batch_limit:
            wrong = (
                "When enable_large_batch_splitting is true, "
                "input_batch_size_limit must be greater than or equal to "
                f"max_execution_batch_size.1{self.task_limit}{self.batch_limit}"
            )
        else:
            return
        raise TensorFlowError(INVALID_ARGUMENT, wrong)


@dataclass
class Batch:
    """Tasks that run together; `began` is when the first one came."""

    tasks: list = field(default_factory=list)
    began: float = 0.0

    @property
    def size(self):
        """Rows of all tasks."""
        return sum(task.size for task in self.tasks)


class Queue:
    """Batches of one kind of tasks; the last batch is open for more.

    The scheduler's lock is held where its methods are called.

    Args:
        options: `QueueOptions`.
        process: runs a list of tasks.
        split: gives the parts of a task, from the list of their rows; only
            called where `options` has splitting.
    """

    def __init__(self, options, process, split=None):
        self.options, self.process, self._split = options, process, split
        self._batches = deque([Batch()])

    def add(self, task):
        """Puts a task into the open batch or the next one.

        Raises:
            TensorFlowError: where it is too large or the queue is full.
        """
        self._check_room(task)
        room = self.options.batch_limit - self._batches[-1].size
        tasks = [task]
        if self.options.splits and task.size > room:
            limit = self.options.batch_limit
            tasks = self._split(task, sizes_of_parts(task.size, room, limit))
        for part in tasks:
            if self._batches[-1].size + part.size > self.options.batch_limit:
                self._batches.append(Batch())
            if not self._batches[-1].tasks:
                self._batches[-1].began = time.monotonic()
            self._batches[-1].tasks.append(part)

    def _check_room(self, task):
        options, last = self.options, self._batches[-1]
        if task.size > options.task_limit:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"Task size {task.size} is larger than maximum input batch "
                f"size {options.task_limit}",
            )
        full = (
            "The batch scheduling queue to which this task was submitted is "
            "full; "
        )
        count = len(self._batches)
        if options.splits:
            room = options.max_enqueued - count + 1
            room = room * options.batch_limit - last.size
            if task.size > room:
                raise TensorFlowError(
                    UNAVAILABLE,
                    f"{full}task size is {task.size} but scheduling capacity "
                    f"is only {room} (num_enqueued_batches={count}, "
                    f"max_enqueued_batches={options.max_enqueued}, "
                    f"open_batch_size={last.size}, "
                    f"max_execution_batch_size={options.batch_limit})",
                )
        # The open batch counts, those that run do not.
        elif (
            last.size + task.size > options.task_limit
            and count >= options.max_enqueued
        ):
            raise TensorFlowError(
                UNAVAILABLE,
                f"{full}currently {count} batches enqueued and "
                f"max_enqueued_batches is {options.max_enqueued}",
            )

    def seconds(self):
        """How long until a batch may run; None if none is waiting."""
        if len(self._batches) > 1:
            return 0.0
        batch = self._batches[0]
        # A batch of tasks without rows is not waiting for anything: it
        # stays until a task with rows joins it.
        if not batch.size:
            return None
        if batch.size >= self.options.batch_limit:
            return 0.0
        return max(batch.began + self.options.timeout - time.monotonic(), 0.0)

    def take(self):
        """The tasks of the first batch, if it may run now, or None."""
        if self.seconds() != 0:
            return None
        if len(self._batches) == 1:
            self._batches.append(Batch())
        return self._batches.popleft().tasks


class Scheduler:
    """Threads that run the batches of all queues, in turn.

    Args:
        threads: as many as there are cores when None.
    """

    def __init__(self, threads=None):
        threads = (os.cpu_count() or 1) if threads is None else threads
        if threads < 1:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                f"num_batch_threads must be positive; was {threads}",
            )
        self._queues, self._changed = deque(), threading.Condition()
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def add_queue(self, queue):
        """Has its batches run, from now on."""
        with self._changed:
            self._queues.append(queue)

    def remove_queue(self, queue):
        """Forgets a queue without tasks."""
        with self._changed:
            self._queues.remove(queue)

    def schedule(self, queue, task):
        """Adds a task to a queue, or raises what `Queue.add` raises."""
        with self._changed:
            queue.add(task)
            # One thread waits anew, for no longer than this task may.
            self._changed.notify()

    def _work(self):
        while True:
            with self._changed:
                while (found := self._next()) is None:
                    self._changed.wait(self._seconds())
                # Another one watches the queues while this one is busy.
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


def sizes_of_parts(size, room, limit):
    """Rows of the parts of a task: what fits, full batches, and the rest.

    `input_split_metadata.h` of TensorFlow.
    """
    sizes = [room] if room else []
    while (left := size - sum(sizes)) > 0:
        sizes.append(min(left, limit))
    return sizes
