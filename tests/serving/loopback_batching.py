"""Requests of the loopback server that run together in one batch.

What is checked, and every refusal, is as in TensorFlow Serving
(batching_session.cc and batching_util.h, 2.20.0).
"""

import threading

import numpy as np

from tests.serving.loopback_error import TensorFlowError
from tests.serving.loopback_scheduler import Queue, QueueOptions, Scheduler

INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13


class Batching:
    """Batches of all models of a server, by one file.

    Args:
        parameters: the `BatchingParameters` proto.
    """

    def __init__(self, parameters):
        threads = None
        if parameters.HasField("num_batch_threads"):
            threads = parameters.num_batch_threads.value
        self._options = QueueOptions.of(parameters)
        self._scheduler = Scheduler(threads)

    def wrap(self, session):
        """A `BatchingSession` around a session."""
        return BatchingSession(session, self._scheduler, self._options)


class BatchingSession:
    """A session whose runs are joined: several threads call `run` at once.

    Args:
        session: what runs the batches.
        scheduler: the `Scheduler` that says when.
        options: `QueueOptions` of each of its queues.
    """

    def __init__(self, session, scheduler, options):
        self._session, self._scheduler = session, scheduler
        self._options = options
        self._lock, self._queues = threading.Lock(), {}

    def run(self, inputs, outputs):
        """As `SavedModelSession.run`; waits for its batch.

        Args:
            inputs: tensor name -> array.
            outputs: key -> tensor name.
        """
        task = Task(inputs, set(outputs.values()))
        self._scheduler.schedule(self._queue(task), task)
        found = task.result()
        return {key: found[name] for key, name in outputs.items()}

    def _queue(self, task):
        """That of its input and output tensors, made when it is needed.

        Thus a request with an `output_filter` never joins one without.
        """
        key = frozenset(task.inputs), frozenset(task.outputs)
        with self._lock:
            if key not in self._queues:
                queue = Queue(self._options, self._process)
                self._scheduler.add_queue(queue)
                self._queues[key] = queue
            return self._queues[key]

    def _process(self, tasks):
        """Runs a batch; what fails fails for each of its tasks."""
        try:
            inputs = {name: merged(name, tasks) for name in tasks[0].inputs}
            outputs = {name: name for name in tasks[0].outputs}
            found = self._session.run(inputs, outputs)
        except TensorFlowError as error:
            for task in tasks:
                task.fail(error)
        except Exception as error:
            # A mistake of the double must not leave threads waiting.
            for task in tasks:
                task.fail(TensorFlowError(INTERNAL, repr(error)))
            raise
        else:
            end = 0
            for task in tasks:
                start, end = end, end + task.size
                task.succeed({key: x[start:end] for key, x in found.items()})


class Task:
    """A request for a run, which waits in a queue.

    Args:
        inputs: tensor name -> array.
        outputs: names of tensors.
    """

    def __init__(self, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs
        self.size = task_size(inputs)
        self._done, self._found, self._error = threading.Event(), None, None

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


def task_size(inputs):
    """Rows of a task.

    Raises:
        TensorFlowError: where its inputs have not equally many.
    """
    sizes = [array.shape[:1] for array in inputs.values()]
    if () in sizes:
        wrong = "input tensors must have at least one dimension"
    elif len(set(sizes)) > 1:
        wrong = "input tensors must have equal 0th-dimension size"
    else:
        return sizes[0][0]
    raise TensorFlowError(INVALID_ARGUMENT, f"Batching Run() {wrong}")


def merged(name, tasks):
    """The rows of all tasks of one input."""
    arrays = [task.inputs[name] for task in tasks]
    if len({array.shape[1:] for array in arrays}) > 1:
        raise TensorFlowError(
            FAILED_PRECONDITION,
            f"Tensors with name '{name}' from different tasks have different "
            "shapes and padding is turned off. Set pad_variable_length_inputs "
            "to true, or ensure that all tensors with the same name have equal "
            "dimensions starting with the first dim.",
        )
    return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
