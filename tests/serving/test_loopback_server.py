"""Versions, configuration and addresses of the double."""

import shutil
import socket
import threading
import time

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tests.serving import loopback_server
from tests.serving.linux import needs_linux
from tests.serving.loopback_version import WARM_UP
from tests.serving.server_calls import Grpc, get, post
from tests.serving.server_process import LoopbackProcess

pytestmark = needs_linux
CONFIG = """
model_config_list {{
  config {{ name: "other" base_path: "/models/other" }}
  config {{
    name: "echo"
    base_path: "/models/echo"
    {}
  }}
}}
"""


class Echo(tf.Module):
    """A model that returns its input with the value of its variable."""

    def __init__(self):
        self.mark = tf.Variable("!")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def __call__(self, text):
        return {"text": text + self.mark}


@pytest.fixture(scope="module")
def double(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    tf.saved_model.save(Echo(), str(folder / "echo" / "1"))
    config = folder / "models.config"
    config.write_text(CONFIG.format(""))
    running = LoopbackProcess(
        folder / "echo",
        *("--poll-seconds", "0.05", "--config", str(config)),
    )
    yield running
    running.stop()


@pytest.fixture
def models(double):
    """Return the watched folder, and restore version 1 afterwards."""
    yield double.base_path
    (double.base_path.parent / "models.config").write_text(CONFIG.format(""))
    for path in double.base_path.iterdir():
        if path.name != "1":
            shutil.rmtree(path)
    wait_for(lambda: served(double) == {"1"})


def wait_for(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "The server has not done it."
        time.sleep(0.02)


def states(server):
    found = get(server.rest_url)[1]["model_version_status"]
    return {each["version"]: each["state"] for each in found}


def served(server):
    """Return the versions whose state is AVAILABLE."""
    return {v for v, state in states(server).items() if state == "AVAILABLE"}


def add_version(models, number, truncated=None):
    """Add a copy of version 1, optionally with one truncated file."""
    temporary = models / f".{number}-copy"
    shutil.copytree(models / "1", temporary)
    if truncated is not None:
        content = (temporary / truncated).read_bytes()
        (temporary / truncated).write_bytes(content[: len(content) // 2])
    temporary.rename(models / str(number))


def answering_version(server):
    """Return the version that answers over gRPC."""
    with Grpc(server) as calls:
        answer, _ = calls.predict(calls.request(text=["a"]))
        return answer.model_spec.version.value


def predict(server, path=""):
    """Return status and JSON of a prediction over REST."""
    return post(f"{server.rest_url}{path}:predict", {"instances": ["a"]})


def test_no_request_fails_while_versions_change(double, models):
    stop, codes = threading.Event(), []

    def predict_repeatedly():
        while not stop.is_set():
            codes.append(predict(double)[0])
            time.sleep(0.005)

    client = threading.Thread(target=predict_repeatedly)
    client.start()
    try:
        for number in (2, 10):
            add_version(models, number)
            wait_for(lambda n=number: served(double) == {str(n)})
            assert answering_version(double) == number
        for number, left in ((10, 2), (2, 1)):
            shutil.rmtree(models / str(number))
            wait_for(lambda n=left: served(double) == {str(n)})
            assert answering_version(double) == left
    finally:
        stop.set()
        client.join()
    assert set(codes) == {200}
    assert states(double) == {"1": "AVAILABLE", "2": "END", "10": "END"}


def test_incomplete_versions_are_not_served(double, models):
    policy = "model_version_policy { specific { versions: [1, 3, 4, 5] } }"
    (models.parent / "models.config").write_text(CONFIG.format(policy))
    truncated_files = {
        "3": "saved_model.pb",
        "4": "variables/variables.data-00000-of-00001",
        "5": "variables/variables.index",
    }
    for number, name in truncated_files.items():
        add_version(models, number, truncated=name)
    broken = dict.fromkeys(truncated_files, "LOADING")
    wait_for(lambda: broken.items() <= states(double).items())
    time.sleep(0.3)
    assert served(double) == {"1"} and answering_version(double) == 1
    for number, name in truncated_files.items():
        shutil.copy(models / "1" / name, models / number / name)
    wait_for(lambda: served(double) == {"1", *truncated_files})
    assert answering_version(double) == 5


def test_folders_without_a_number_as_name_are_ignored(double, models):
    for name in (".4-x1", "4.tmp", "latest"):
        shutil.copytree(models / "1", models / name)
    time.sleep(0.3)
    assert served(double) == {"1"}


def test_policy_and_labels_choose_versions(double, models):
    config = models.parent / "models.config"
    label = 'version_labels {{ key: "stable" value: {} }}'
    specific = "model_version_policy { specific { versions: [1, 5] } }"
    for number in (5, 6):
        add_version(models, number)
    wait_for(lambda: served(double) == {"6"})
    config.write_text(CONFIG.format(specific + label.format(1)))
    wait_for(lambda: served(double) == {"1", "5"})
    url = f"{double.rest_url}/labels/stable"
    assert get(f"{url}/metadata")[1]["model_spec"]["version"] == "1"
    assert predict(double, "/labels/stable")[0] == 200
    assert answering_version(double) == 5
    config.write_text(CONFIG.format(specific + label.format(5)))
    wait_for(lambda: get(f"{url}/metadata")[1]["model_spec"]["version"] == "5")
    config.write_text("half a config {")
    time.sleep(0.3)
    assert served(double) == {"1", "5"}
    latest = "model_version_policy { latest { num_versions: 2 } }"
    config.write_text(CONFIG.format(latest))
    wait_for(lambda: served(double) == {"5", "6"})
    assert predict(double, "/labels/stable")[0] == 400


@pytest.mark.parametrize("signature", ["serving_default", "sing"])
def test_warm_up_requests_run_before_a_version_serves(
    double, models, signature
):
    with Grpc(double) as calls:
        request = calls.request(signature, text=["a"])
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.CopyFrom(request)
    shutil.copytree(models / "1", models / "new")
    (models / "new" / WARM_UP).parent.mkdir()
    with tf.io.TFRecordWriter(str(models / "new" / WARM_UP)) as writer:
        writer.write(log.SerializeToString())
    (models / "new").rename(models / "7")
    if signature == "serving_default":
        wait_for(lambda: served(double) == {"7"})
    else:
        wait_for(lambda: states(double).get("7") == "LOADING")
        time.sleep(0.3)
        assert answering_version(double) == 1


def test_server_listens_only_at_127_0_0_1(double):
    for port in (double.rest_port, double.grpc_port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5)


@pytest.mark.slow
def test_server_needs_a_version_to_start(tmp_path, monkeypatch):
    command = ["server", "--base-path", str(tmp_path), "--name", "none"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="Expected: a version that can be"):
        loopback_server.main()
