"""The double with batching and the shipped models.config."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tensorflow as tf

from tests.serving.linux import needs_linux
from tests.serving.server_calls import Grpc, post
from tests.serving.server_process import LoopbackProcess

pytestmark = needs_linux
EXPORT = Path(__file__).parents[2] / "export"
BATCHES = """
max_batch_size { value: 3 }
batch_timeout_micros { value: 100000000 }
max_enqueued_batches { value: 1 }
"""


class RowCounter(tf.Module):
    """A model that returns its input and the number of rows of its batch."""

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.float32, "numbers")]
    )
    def __call__(self, numbers):
        rows = tf.shape(numbers)[0]
        return {"numbers": numbers, "rows": tf.repeat(rows, rows)}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tf.saved_model.save(RowCounter(), str(folder / "translator" / "1"))
    (folder / "batching.config").write_text(BATCHES)
    return folder


@pytest.fixture(scope="module")
def double(models):
    """Start a double with batches of 3 rows that wait until they are full."""
    running = LoopbackProcess(
        models / "translator",
        *("--batching-parameters-file", str(models / "batching.config")),
        *("--config", str(EXPORT / "models.config")),
    )
    yield running
    running.stop()


def predict(double, rows):
    return post(f"{double.rest_url}:predict", {"instances": rows})


@pytest.mark.slow
def test_rest_and_grpc_requests_share_a_batch(double):
    with ThreadPoolExecutor(2) as threads, Grpc(double) as calls:
        one = threads.submit(predict, double, [[1.0]])
        other = threads.submit(predict, double, [[2.0]])
        answer, found = calls.predict(calls.request(numbers=[[3.5]]))
        assert answer.model_spec.version.value == 1
        assert (found["numbers"].tolist(), found["rows"]) == ([[3.5]], [3])
        for number, response in ((1.0, one), (2.0, other)):
            assert response.result() == (
                200,
                {"predictions": [{"numbers": [number], "rows": 3}]},
            )


@pytest.mark.slow
def test_wrong_shape_fails_the_whole_batch(double):
    with ThreadPoolExecutor(3) as threads:
        responses = [
            threads.submit(predict, double, [row])
            for row in ([1.0], [1.0, 2.0], [3.0])
        ]
        answers = [each.result() for each in responses]
    assert answers[0] == answers[1] == answers[2]
    code, answer = answers[0]
    assert code == 400
    assert answer["error"].startswith("Tensors with name 'serving_default_")
    assert "' from different tasks have different shapes" in answer["error"]


@pytest.mark.slow
def test_large_requests_and_full_queues_are_refused(double):
    assert predict(double, [[1.0]] * 4) == (
        400,
        {"error": "Task size 4 is larger than maximum input batch size 3"},
    )
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(predict, double, [[1.0]])
        # Until that request waits, three rows fill a batch.
        while (answer := predict(double, [[1.0]] * 3))[0] == 200:
            if waiting.done():  # It was the refused one.
                assert waiting.result()[0] == 503
                waiting = threads.submit(predict, double, [[1.0]])
        assert answer == (
            503,
            {
                "error": "The batch scheduling queue to which this task was "
                "submitted is full; currently 1 batches enqueued and "
                "max_enqueued_batches is 1"
            },
        )
        assert predict(double, [[2.0]] * 2)[0] == 200
        assert waiting.result()[0] == 200
