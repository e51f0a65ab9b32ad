"""A session that doubles numbers in batches and tells what it ran."""

import threading
from concurrent.futures import ThreadPoolExecutor

from google.protobuf import text_format

from tests.serving.loopback_batching import Batching
from tests.serving.loopback_error import TensorFlowError
from tests.serving.server_protos import unpublished

# Only full batches run: 100 s are longer than a test.
WAITS = "batch_timeout_micros { value: 100000000 } "
OUTPUTS = {"sum": "sum:0"}


class Doubling:
    """A session that doubles and counts rows, and remembers its runs.

    Attributes:
        runs: the inputs and output names of each run.
        answer: gives an array for the inputs of a run.
        began: set by the first run.
        may_run: runs wait for it.
    """

    def __init__(self):
        self.runs, self.may_run = [], threading.Event()
        self.began = threading.Event()
        self.answer = lambda inputs: inputs["x:0"] * 2
        self.may_run.set()

    def run(self, inputs, outputs):
        self.began.set()
        assert self.may_run.wait(timeout=60)
        self.runs.append((inputs, set(outputs)))
        return {name: self.answer(inputs) for name in outputs}

    def sizes(self):
        return [len(inputs["x:0"]) for inputs, _ in self.runs]


def batches(parameters):
    """A session whose runs are joined, and the one that is run."""
    session = Doubling()
    proto = text_format.Parse(parameters, unpublished("BatchingParameters"))
    return Batching(proto).wrap(session), session


def together(batched, *arrays, outputs=OUTPUTS):
    """Answers to requests at the same time, or their errors."""

    def ask(array):
        try:
            return batched.run({"x:0": array}, outputs)["sum"]
        except TensorFlowError as error:
            return error

    with ThreadPoolExecutor(len(arrays)) as threads:
        return list(threads.map(ask, arrays))


def enqueued(batched, count):
    """Waits until that many tasks are in the queues."""
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
