"""The double as a server with batches and the shipped settings."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tensorflow as tf

from tests.serving.server_calls import Grpc, post
from tests.serving.server_process import LoopbackProcess
from tests.serving.test_loopback_server import pytestmark as pytestmark

EXPORT = Path(__file__).parents[2] / "export"
BATCHES = """
max_batch_size { value: 3 }
batch_timeout_micros { value: 100000000 }
max_enqueued_batches { value: 1 }
"""


class Teller(tf.Module):
    """Gives back its numbers, and how many rows ran together."""

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.float32, "numbers")]
    )
    def __call__(self, numbers):
        rows = tf.shape(numbers)[0]
        return {"numbers": numbers, "rows": tf.repeat(rows, rows)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    tf.saved_model.save(Teller(), str(folder / "translator" / "1"))
    (folder / "batching.config").write_text(BATCHES)
    return folder


@pytest.fixture(scope="module")
def double(models):
    """With batches of 3 rows, which wait until they are full."""
    running = LoopbackProcess(
        models / "translator",
        *("--batching-parameters-file", str(models / "batching.config")),
        *("--config", str(EXPORT / "models.config")),
    )
    yield running
    running.stop()


def ask(double, rows):
    return post(f"{double.rest_url}:predict", {"instances": rows})


def test_requests_of_both_interfaces_run_together(double):
    with ThreadPoolExecutor(2) as threads, Grpc(double) as calls:
        one = threads.submit(ask, double, [[1.0]])
        other = threads.submit(ask, double, [[2.0]])
        answer, found = calls.predict(calls.request(numbers=[[3.5]]))
        assert answer.model_spec.version.value == 1
        assert (found["numbers"].tolist(), found["rows"]) == ([[3.5]], [3])
        for number, asked in ((1.0, one), (2.0, other)):
            assert asked.result() == (
                200,
                {"predictions": [{"numbers": [number], "rows": 3}]},
            )


def test_one_of_another_shape_fails_the_others_of_its_batch(double):
    with ThreadPoolExecutor(3) as threads:
        asked = [
            threads.submit(ask, double, [row])
            for row in ([1.0], [1.0, 2.0], [3.0])
        ]
        answers = [each.result() for each in asked]
    assert answers[0] == answers[1] == answers[2]
    code, answer = answers[0]
    assert code == 400
    assert answer["error"].startswith("Tensors with name 'serving_default_")
    assert "' from different tasks have different shapes" in answer["error"]


def test_what_is_too_much_is_refused(double):
    assert ask(double, [[1.0]] * 4) == (
        400,
        {"error": "Task size 4 is larger than maximum input batch size 3"},
    )
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, double, [[1.0]])
        # Until it waits, three rows are a batch of their own.
        while (answer := ask(double, [[1.0]] * 3))[0] == 200:
            if waiting.done():  # It was what was too much.
                assert waiting.result()[0] == 503
                waiting = threads.submit(ask, double, [[1.0]])
        assert answer == (
            503,
            {
                "error": "The batch scheduling queue to which this task was "
                "submitted is full; currently 1 batches enqueued and "
                "max_enqueued_batches is 1"
            },
        )
        assert ask(double, [[2.0]] * 2)[0] == 200
        assert waiting.result()[0] == 200
