"""The alert rules, checked by promtool."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.serving.proxy_process import EXPORT

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="needs promtool: apt-get install prometheus"
)
RULES = EXPORT / "alerts.yaml"
# Metrics in the source of the server and of TensorFlow, as the exporter writes
# their names.
METRICS = {
    ":tensorflow:serving:request_count",
    ":tensorflow:serving:request_latency_bucket",
    ":tensorflow:serving:batching_session:queuing_latency_bucket",
    ":tensorflow:cc:saved_model:load_attempt_count",
}


@pytest.fixture(scope="module")
def group():
    yaml = pytest.importorskip("yaml")
    (found,) = yaml.safe_load(RULES.read_text())["groups"]
    return found


def promtool(*arguments):
    """Run promtool, which must succeed, and return its output."""
    command = [PROMTOOL, *arguments]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@needs_promtool
def test_promtool_accepts_rules_and_configuration():
    assert "7 rules found" in promtool("check", "rules", RULES)
    promtool("check", "config", EXPORT / "prometheus.yaml")


@needs_promtool
def test_alerts_fire_as_alerts_test_yaml_expects(tmp_path):
    tests = Path(__file__).with_name("alerts_test.yaml").read_text()
    filled = tmp_path / "alerts_test.yaml"
    filled.write_text(tests.replace("RULES", str(RULES)))
    promtool("test", "rules", filled)


def test_rules_use_only_metrics_of_the_server(group):
    yaml = pytest.importorskip("yaml")
    expressions = "\n".join(rule["expr"] for rule in group["rules"])
    assert set(re.findall(r":tensorflow[:\w]*", expressions)) == METRICS
    config = yaml.safe_load((EXPORT / "prometheus.yaml").read_text())
    (job,) = config["scrape_configs"]
    assert f'job="{job["job_name"]}"' in group["rules"][0]["expr"]
    assert job["metrics_path"] in (EXPORT / "monitoring.config").read_text()


def test_every_alert_links_to_a_runbook_section(group):
    runbook = (EXPORT / "RUNBOOK.md").read_text()
    titles = re.findall(r"^## (.+)$", runbook, re.MULTILINE)
    anchors = {title.lower().replace(" ", "-") for title in titles}
    for rule in group["rules"]:
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (file, anchor in anchors) == ("RUNBOOK.md", True), anchor
