"""A session that doubles numbers in batches and records its runs."""

import threading
from concurrent.futures import ThreadPoolExecutor

from google.protobuf import text_format

from tests.serving.loopback_batching import Batching
from tests.serving.loopback_error import TensorFlowError
from tests.serving.server_protos import unpublished

# Only full batches run: the timeout of 100 s is longer than a test.
WAITS = "batch_timeout_micros { value: 100000000 } "
OUTPUTS = {"sum": "sum:0"}


class Doubling:
    """A session that doubles its input and records its runs.

    Attributes:
        runs: Inputs and output names of each run.
        answer: Function from the inputs of a run to an output.
        began: Event that the first run sets.
        may_run: Event for which runs wait.
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
    """Return a batching session and the session that runs its batches."""
    session = Doubling()
    proto = text_format.Parse(parameters, unpublished("BatchingParameters"))
    return Batching(proto).wrap(session), session


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
