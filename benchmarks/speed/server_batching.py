"""Batching of requests in the batching server.

Checks and messages are those of TensorFlow Serving (batching_session.cc and
batching_util.h, 2.20.0).
"""

import json
import re
import threading
import traceback
from concurrent.futures import Future

import numpy as np

from speed.server_scheduler import Queue, QueueOptions, Scheduler
from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13
# Fields of `BatchingParameters` (session_bundle_config.proto, 2.20.0), which
# tensorflow-serving-api lacks.
PARAMETERS = {
    "max_batch_size",
    "batch_timeout_micros",
    "max_enqueued_batches",
    "num_batch_threads",
    "enable_large_batch_splitting",
}


def read_parameters(text):
    """Read a `BatchingParameters` proto in text format: field -> value."""
    text = re.sub("#.*", "", text)
    assert re.fullmatch(r"\s*(\w+ { value: (\d+|true|false) }\s*)*", text), text
    fields = re.findall(r"(\w+) { value: (\w+) }", text)
    found = {name: json.loads(value) for name, value in fields}
    assert len(fields) == len(found) and found.keys() <= PARAMETERS, fields
    return found


class Batching:
    """Batching of all models of a server.

    Args:
        parameters: The result of `read_parameters`.
    """

    def __init__(self, parameters):
        self._options = QueueOptions.of(parameters)
        self._scheduler = Scheduler(parameters.get("num_batch_threads"))

    def wrap(self, session):
        """Return a `BatchingSession` around a session."""
        return BatchingSession(session, self._scheduler, self._options)


class BatchingSession:
    """A session that runs concurrent requests in batches.

    Args:
        session: The session that runs the batches.
        scheduler: The `Scheduler` of the batches.
        options: `QueueOptions` of all queues of the session.
    """

    def __init__(self, session, scheduler, options):
        self._session, self._scheduler = session, scheduler
        self._options = options
        self._lock, self._queues = threading.Lock(), {}

    def run(self, inputs, outputs):
        """Run a request in a batch, like `SavedModelSession.run`.

        Args:
            inputs: Tensor name -> array.
            outputs: Key -> tensor name.
        """
        task = Task(inputs, set(outputs.values()))
        self._scheduler.schedule(self._queue(task), task)
        found = task.result()
        return {key: found[name] for key, name in outputs.items()}

    def close(self):
        """Free the model, like `SavedModelSession.close`."""
        self._session.close()

    def _queue(self, task):
        """Return the queue of the task's input and output tensors.

        A request with an `output_filter` never shares a batch with one without.
        """
        key = frozenset(task.inputs), frozenset(task.outputs)
        with self._lock:
            if key not in self._queues:
                queue = Queue(self._options, self._process)
                self._scheduler.add_queue(queue)
                self._queues[key] = queue
            return self._queues[key]

    def _process(self, tasks):
        """Run a batch; an error becomes the error of every task."""
        try:
            inputs = {name: merged(name, tasks) for name in tasks[0].inputs}
            outputs = {name: name for name in tasks[0].outputs}
            found = self._session.run(inputs, outputs)
        except Exception as error:
            # A bug of the double must not leave threads waiting, nor end one.
            code, message = INTERNAL, repr(error)
            if isinstance(error, TensorFlowError):
                code, message = error.code, error.message
            else:
                traceback.print_exc()
            for task in tasks:
                # A new object, as each thread raises its own.
                task.set_exception(TensorFlowError(code, message))
        else:
            end = 0
            for task in tasks:
                start, end = end, end + task.size
                rows = {key: x[start:end] for key, x in found.items()}
                task.set_result(rows)


class Task(Future):
    """A request that waits in a queue.

    `result` has no timeout: like the real server, it does not notice that a
    client has left.

    Args:
        inputs: Tensor name -> array.
        outputs: Names of the output tensors.
    """

    def __init__(self, inputs, outputs):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.size = task_size(inputs)


def task_size(inputs):
    """Return the number of rows of a task.

    Raises:
        TensorFlowError: If its inputs differ in the number of rows.
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
    """Concatenate the rows of one input of all tasks."""
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
