"""The configuration files of the real server."""

import os
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from luong_keras.serving.limits import ServingLimits
from tests.serving.proxy_process import EXPORT


@pytest.fixture(scope="module")
def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((EXPORT / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def service(compose):
    return compose["services"]["translator"]


def test_models_config_serves_the_translator():
    text = (EXPORT / "models.config").read_text()
    config = model_server_config_pb2.ModelServerConfig()
    (model,) = text_format.Parse(text, config).model_config_list.config
    assert model.name == "translator"
    assert model.base_path == "/models/translator"
    assert model.model_platform == "tensorflow"
    assert not model.version_labels


def test_commented_label_example_is_valid():
    text = (EXPORT / "models.config").read_text()
    example = "\n".join(re.findall(r"^#   (.*)$", text, re.MULTILINE))
    model = text_format.Parse(example, model_server_config_pb2.ModelConfig())
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}
    assert model.model_version_policy.specific.versions == [1, 2]


def test_batching_matches_export_limits_and_threads(service, monkeypatch):
    monkeypatch.syspath_prepend(EXPORT.parent / "benchmarks")
    from speed.server_batching import read_parameters

    batching = read_parameters((EXPORT / "batching.config").read_text())
    assert batching["enable_large_batch_splitting"] is False
    # The default limit of an export; a thread for each row that may wait.
    rows = batching["max_batch_size"]
    assert rows == ServingLimits().max_rows
    batches = batching["max_enqueued_batches"] + batching["num_batch_threads"]
    for option in ("rest_api_num_threads", "grpc_max_threads"):
        assert f"--{option}={rows * batches}" in service["command"]
    assert 0 < batching["batch_timeout_micros"] <= 10_000
    assert batching["max_enqueued_batches"] > 0


def test_metrics_are_enabled_at_their_path():
    # A `MonitoringConfig`, which tensorflow-serving-api lacks.
    text = (EXPORT / "monitoring.config").read_text()
    path = '"/monitoring/prometheus/metrics"'
    expected = f"prometheus_config {{ enable: true path: {path} }}"
    assert re.sub("#.*", "", text).split() == expected.split()


def test_server_flags_name_existing_files(service):
    flags = dict(flag.split("=") for flag in service["command"])
    files = [flags[name] for name in flags if name.endswith("_file")]
    assert len(files) == 3
    for path in files:
        assert (EXPORT / path.removeprefix("/config/")).is_file()
    assert flags["--enable_batching"] == "true"
    # The page has the same origin as the proxy.
    assert "--rest_api_enable_cors_support" not in flags
    mounts = [mount.rsplit(":", 2)[1:] for mount in service["volumes"]]
    assert mounts == [["/models", "ro"], ["/config", "ro"]]
    assert re.fullmatch(r"tensorflow/serving:\d+\.\d+\.\d+", service["image"])


def test_only_the_proxy_is_reachable(compose):
    services = compose["services"]
    assert "ports" not in services["translator"]
    assert services["translator"]["networks"] == ["inside"]
    assert compose["networks"]["inside"] == {"internal": True}
    assert services["proxy"]["ports"] == ["${ADDRESS:-127.0.0.1}:8443:8443"]
    assert services["prometheus"]["ports"] == ["127.0.0.1:9090:9090"]
    assert services["prometheus"]["profiles"] == ["monitoring"]


@pytest.mark.parametrize("name", ["translator", "proxy", "prometheus"])
def test_containers_have_minimal_privileges(compose, name):
    service = compose["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"] and "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] == "${RUN_AS:-1000:1000}"
    assert not service.get("privileged")
    limits = service["deploy"]["resources"]["limits"]
    assert {"cpus", "memory", "pids"} <= limits.keys()
    for mount in service["volumes"]:
        assert mount.endswith(":ro")
    assert re.search(r":v?\d+\.\d+", service["image"])


def test_one_token_cannot_exhaust_the_proxy(compose):
    text = (EXPORT / "proxy" / "nginx.conf").read_text()
    names = ("worker_processes", "client_max_body_size")
    names += ("proxy_max_temp_file_size", "limit_conn client_connections")
    workers, body, response, connections = (
        int(re.search(rf"{name} (\d+)m?;", text)[1]) for name in names
    )
    proxy = compose["services"]["proxy"]
    (disk,) = re.findall(r"/tmp:size=(\d+)m", proxy["tmpfs"][0])
    assert connections * (body + response) <= int(disk)
    # A reload doubles the workers.
    assert 1 + 2 * workers <= proxy["deploy"]["resources"]["limits"]["pids"]


def test_secrets_are_files_outside_the_repository(compose):
    volumes = compose["services"]["proxy"]["volumes"]
    assert "${SECRETS:-../secrets}:/run/secrets:ro" in volumes
    nginx = (EXPORT / "proxy" / "nginx.conf").read_text()
    named = re.findall(r"/run/secrets/(\w+);", nginx)
    assert sorted(named) == ["certificate", "key", "tokens"]
    ignored = (EXPORT.parent / ".gitignore").read_text().splitlines()
    assert "secrets/" in ignored


@pytest.mark.slow
def test_compose_file_follows_its_schema():
    pytest.importorskip("check_jsonschema")
    # The schema is part of the tool.
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    command += "vendor.compose-spec", str(EXPORT / "compose.yaml")
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_health_check_requests_the_model(service, server):
    assert service["environment"] == {"MODEL_NAME": "${MODEL_NAME:-translator}"}
    command, *shell, script = service["healthcheck"]["test"]
    assert command == "CMD"
    address = urlsplit(server.rest_url)
    name = address.path.rpartition("/")[2]
    for old, new in (
        ("127.0.0.1", address.hostname),
        ("8501", str(address.port)),
        ("$$", "$"),  # as compose reads it
    ):
        assert old in script
        script = script.replace(old, new)
    for model, healthy in ((name, True), ("no-model", False)):
        environment = {**os.environ, "MODEL_NAME": model}
        found = subprocess.run([*shell, script], env=environment)
        assert (found.returncode == 0) == healthy
