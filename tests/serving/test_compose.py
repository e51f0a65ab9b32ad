"""The files that start the real server, as far as they can be read here."""

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from tests.serving.server_protos import read_text, unpublished

EXPORT = Path(__file__).parents[2] / "export"


def read(name, message):
    return read_text(EXPORT / name, message)


@pytest.fixture(scope="module")
def service():
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((EXPORT / "compose.yaml").read_text())
    (found,) = compose["services"].values()
    return found


def test_the_model_is_the_one_of_the_guide():
    config = read("models.config", model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path) == ("demo", "/models/demo")
    assert model.model_platform == "tensorflow"
    assert not model.version_labels


def test_the_labels_of_the_comment_are_a_config_too():
    text = (EXPORT / "models.config").read_text()
    example = "\n".join(re.findall(r"^#   (.*)$", text, re.MULTILINE))
    model = text_format.Parse(example, model_server_config_pb2.ModelConfig())
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}
    assert model.model_version_policy.specific.versions == [1, 2]


def test_batches_are_never_split():
    batching = read("batching.config", unpublished("BatchingParameters"))
    assert batching.HasField("enable_large_batch_splitting")
    assert not batching.enable_large_batch_splitting.value
    assert batching.max_batch_size.value >= 32
    assert 0 < batching.batch_timeout_micros.value <= 10_000
    assert batching.max_enqueued_batches.value > 0


def test_metrics_stand_where_prometheus_looks():
    monitoring = read("monitoring.config", unpublished("MonitoringConfig"))
    assert monitoring.prometheus_config.enable
    assert monitoring.prometheus_config.path == "/monitoring/prometheus/metrics"


def test_flags_name_files_that_are_there(service):
    flags = dict(flag.split("=") for flag in service["command"])
    files = {
        name: value for name, value in flags.items() if name.endswith("_file")
    }
    assert len(files) == 3
    for path in files.values():
        assert (EXPORT / path.removeprefix("/config/")).is_file()
    assert flags["--enable_batching"] == "true"
    mounts = [mount.rsplit(":", 2)[1:] for mount in service["volumes"]]
    assert mounts == [["/models", "ro"], ["/config", "ro"]]
    assert re.fullmatch(r"tensorflow/serving:\d+\.\d+\.\d+", service["image"])
    assert service["ports"] == [
        "127.0.0.1:8500:8500",
        "127.0.0.1:8501:8501",
    ]


def test_the_health_check_asks_for_the_model(service, server):
    command, *arguments = service["healthcheck"]["test"]
    assert command == "CMD"
    address = urlsplit(server.rest_url)
    for suffix, healthy in (("", True), ("-of-nobody", False)):
        *shell, script = arguments
        for old, new in (
            ("127.0.0.1", address.hostname),
            ("8501", str(address.port)),
            ("/v1/models/demo", address.path + suffix),
        ):
            assert old in script
            script = script.replace(old, new)
        assert (subprocess.run([*shell, script]).returncode == 0) == healthy
