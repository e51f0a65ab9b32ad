"""Requests of the loopback server that run together in one batch.

What is checked, every refusal and what becomes of deadlines is as in
TensorFlow Serving (batching_session.cc and batching_util.h, 2.20.0).
"""

import threading
import time

import numpy as np

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_form import Form, joined
from tests.serving.loopback_scheduler import Queue, QueueOptions, Scheduler

INVALID_ARGUMENT, RESOURCE_EXHAUSTED, INTERNAL = 3, 8, 13
# Microseconds that stand for no timeout, some 36 minutes.
ENDLESS = 2**31 - 1


class Batching:
    """Batches of all models of a server, by one file.

    Args:
        parameters: the `BatchingParameters` proto.
        metrics: `Metrics`.

    Raises:
        TensorFlowError: where the server could not start with them.
    """

    def __init__(self, parameters, metrics):
        self._parameters, self._metrics = parameters, metrics
        threads = None
        if parameters.HasField("num_batch_threads"):
            threads = parameters.num_batch_threads.value
        self._scheduler = Scheduler(threads)

    def wrap(self, session):
        """A `BatchingSession` around a session.

        Raises:
            TensorFlowError: where no model can be loaded with the parameters.
        """
        options = QueueOptions.of(self._parameters)
        allowed = list(self._parameters.allowed_batch_sizes)
        # WrapSessionForBatching, bundle_factory_util.cc, 2.20.0.
        if allowed and allowed[-1] != options.task_limit:
            raise TensorFlowError(
                INVALID_ARGUMENT,
                "Last entry in allowed_batch_sizes must match max_batch_size; "
                f"last entry was {allowed[-1]}; expected {options.task_limit}",
            )
        pads = self._parameters.pad_variable_length_inputs
        form = Form(allowed, pads, self._metrics)
        return BatchingSession(session, self._scheduler, options, form)


class BatchingSession:
    """A session whose runs are joined: several threads call `run` at once.

    Args:
        session: what runs the batches.
        scheduler: the `Scheduler` that says when.
        options: `QueueOptions` of each of its queues.
        form: the `Form` of the batches.
    """

    def __init__(self, session, scheduler, options, form):
        self._session, self._scheduler = session, scheduler
        self._options, self._form = options, form
        self._lock, self._queues = threading.Lock(), {}

    def run(self, inputs, outputs, milliseconds=0):
        """As `SavedModelSession.run`; waits for its batch.

        Args:
            inputs: tensor name -> array.
            outputs: key -> tensor name.
            milliseconds: after which it is given up; 0 or less: never.
        """
        task = Task(inputs, set(outputs.values()), milliseconds)
        for array in inputs.values():
            self._form.metrics.input_batch_size.add(len(array))
        self._scheduler.schedule(self._queue(task), task)
        found = task.result()
        return {key: found[name] for key, name in outputs.items()}

    def close(self):
        """Forgets the queues; no task may wait in one."""
        for queue in self._queues.values():
            self._scheduler.remove_queue(queue)

    def _queue(self, task):
        """That of its input and output tensors, made when it is needed.

        Thus a request with an `output_filter` never joins one without.
        """
        key = frozenset(task.inputs), frozenset(task.outputs)
        with self._lock:
            if key not in self._queues:
                queue = Queue(self._options, self._process, split)
                self._scheduler.add_queue(queue)
                self._queues[key] = queue
            return self._queues[key]

    def _process(self, tasks):
        """Runs a batch; what fails fails for each of its tasks."""
        try:
            left = milliseconds_left(tasks, self._form.metrics)
            inputs = self._form.merge(tasks)
            outputs = {name: name for name in tasks[0].outputs}
            try:
                found = self._session.run(inputs, outputs, left)
            finally:
                self._form.metrics.wrapped_run_count.add()
            parts = self._form.split(found, tasks)
        except TensorFlowError as error:
            for task in tasks:
                task.fail(error)
        except Exception as error:
            # A mistake of the double must not leave threads waiting.
            for task in tasks:
                task.fail(TensorFlowError(INTERNAL, repr(error)))
            raise
        else:
            for task, part in zip(tasks, parts, strict=True):
                task.succeed(part)


class Task:
    """A request for a run, which waits in a queue.

    Args:
        inputs: tensor name -> array.
        outputs: names of tensors.
        milliseconds: after which it need not be run; 0 or less: never.
    """

    def __init__(self, inputs, outputs, milliseconds):
        self.inputs, self.outputs = inputs, outputs
        self.size = task_size(inputs)
        self.milliseconds, self.enqueued = milliseconds, time.monotonic()
        self._done, self._found, self._error = threading.Event(), None, None

    @property
    def deadline(self):
        """When it is too late to start it."""
        return self.enqueued + (
            self.milliseconds / 1e3 if self.milliseconds > 0 else ENDLESS / 1e6
        )

    def succeed(self, found):
        """Gives it its outputs."""
        self._found = found
        self._done.set()

    def fail(self, error):
        """Gives it an error instead."""
        self._error = error
        self._done.set()

    def result(self):
        """Its outputs, or an error, when it is done.

        The server waits without an end, also where its client has gone.
        """
        self._done.wait()
        if self._error is not None:
            # One of its own: other threads raise that of their tasks.
            raise TensorFlowError(self._error.code, self._error.message)
        return self._found


class PartialTask(Task):
    """Some rows of a task that was cut."""

    def __init__(self, inputs, whole):
        super().__init__(inputs, whole.outputs, whole.milliseconds)
        self.enqueued = whole.enqueued


def task_size(inputs):
    """Rows of a task.

    Raises:
        TensorFlowError: where its inputs have not equally many.
    """
    sizes = [array.shape[:1] for array in inputs.values()]
    if not sizes:
        wrong = "must have at least one input tensor"
    elif () in sizes:
        wrong = "input tensors must have at least one dimension"
    elif len(set(sizes)) > 1:
        wrong = "input tensors must have equal 0th-dimension size"
    else:
        return sizes[0][0]
    raise TensorFlowError(INVALID_ARGUMENT, f"Batching Run() {wrong}")


def milliseconds_left(tasks, metrics):
    """The longest time that a task of a batch has left.

    Raises:
        TensorFlowError: where all tasks have waited too long. The others of a
            batch are run although they are too late.
    """
    now = time.monotonic()
    for task in tasks:
        metrics.queuing_latency.add((now - task.enqueued) * 1e6, "")
    latest = max(task.deadline for task in tasks)
    if latest <= now:
        raise TensorFlowError(
            RESOURCE_EXHAUSTED,
            "Run() timeout exceeded while waiting in batching queue",
        )
    return int((latest - now) * 1e3)


def split(task, sizes):
    """Parts of a task, which is done when all of them are."""
    ends = np.cumsum(sizes).tolist()
    parts = [
        PartialTask(
            {name: x[end - size : end] for name, x in task.inputs.items()},
            task,
        )
        for size, end in zip(sizes, ends, strict=True)
    ]
    threading.Thread(target=gather, args=(task, parts), daemon=True).start()
    return parts


def gather(task, parts):
    """Joins the outputs of a task's parts."""
    try:
        found = [part.result() for part in parts]
    except TensorFlowError as error:
        task.fail(error)
    else:
        task.succeed(
            {name: joined([x[name] for x in found]) for name in task.outputs}
        )
