"""The commands of the README and the runbook of `export/`."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.serving.proxy_process import EXPORT, NEEDS_PROXY, ProxyProcess
from tests.serving.server_process import LoopbackProcess

pytestmark = [
    pytest.mark.slow,
    *NEEDS_PROXY,
    pytest.mark.skipif(not shutil.which("curl"), reason="needs curl"),
]
LABELS = """model_version_policy { specific { versions: [1, 2] } }
    version_labels { key: "stable" value: 1 }
    version_labels { key: "canary" value: 2 }"""
POLICY = "model_version_policy { latest { num_versions: 1 } }"
RELOAD = "exec proxy nginx -c /config/proxy/nginx.conf -s reload"


def commands(name):
    """Return the commands of a document in order, without `text` blocks."""
    found = []
    for kind, block in re.findall(
        r"^ *(?:\d+\. )?```(\w*)\n(.*?)^ *```$",
        (EXPORT / name).read_text(),
        re.MULTILINE | re.DOTALL,
    ):
        assert kind in ("", "text"), kind
        if not kind:
            joined = re.sub(r" *\\\n *", " ", block)
            found += [line.strip() for line in joined.splitlines()]
    return [command for command in found if command]


class Deployment:
    """A folder with the shipped files, a server and a proxy.

    The SavedModel `exported` replaces every export.
    """

    def __init__(self, folder, exported):
        self.folder, self.exported = folder, exported
        self.server = self.proxy = None
        shutil.copytree(EXPORT, folder / "export")
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(EXPORT.parent),
        }

    def run(self, command):
        """Run a command; return its output, None if it is replaced."""
        program, *arguments = command.split()
        if program == "kubectl" or command.startswith("luong-keras train"):
            return None
        if program == "docker":
            return self.docker(" ".join(arguments))
        if command.startswith("luong-keras export"):
            shutil.copytree(self.exported, self.folder / arguments[-1])
            return None
        return self.shell(command)

    def shell(self, command):
        """Run a command with the environment of the previous one."""
        if self.proxy is not None:
            port = str(self.proxy.port)
            command = command.replace("localhost:8443", f"localhost:{port}")
        script = f"set -eu\n{command}\nenv -0 > environment\n"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        lines = (self.folder / "environment").read_text().split("\0")
        self.environment = dict(x.split("=", 1) for x in lines if x)
        return done.stdout

    def docker(self, arguments):
        """Do with local processes what a docker command does."""
        if "up --detach --wait" in arguments:
            self.start()
        elif arguments.endswith(RELOAD):
            self.proxy.reload()
        elif arguments.endswith(" down"):
            self.stop()
        return None

    def start(self):
        self.server = LoopbackProcess(
            self.folder / "models" / "translator",
            *("--poll-seconds", "0.1"),
            *("--config", str(self.folder / "export" / "models.config")),
        )
        (self.folder / "nginx").mkdir()
        self.proxy = ProxyProcess(
            self.folder / "nginx",
            *(self.server.rest_port, self.server.grpc_port),
            secrets=self.folder / "secrets",
        )

    def stop(self):
        for process in filter(None, (self.proxy, self.server)):
            process.stop()
        self.proxy = self.server = None

    def states(self):
        """Return version -> state, by a command of the runbook."""
        every, end = commands("RUNBOOK.md"), "/v1/models/translator"
        (command,) = [each for each in every if each.endswith(end)]
        found = json.loads(self.run(command))["model_version_status"]
        states = {int(each["version"]): each["state"] for each in found}
        return {x: state for x, state in states.items() if state != "END"}

    def wait(self, *versions):
        """Wait until exactly these versions are served."""
        expected = dict.fromkeys(versions, "AVAILABLE")
        for _ in range(600):
            if self.states() == expected:
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.states()} instead of {expected}")


@pytest.fixture
def deployment(tmp_path, exported_models):
    found = Deployment(tmp_path, exported_models / "1")
    yield found
    found.stop()


def test_commands_of_the_documents_run(deployment):
    skipped = []

    def run(command):
        if command.startswith("promtool") and not shutil.which("promtool"):
            skipped.append(command)
            return None
        return deployment.run(command)

    readme = commands("README.md")
    (end,) = (i for i, line in enumerate(readme) if line.endswith(" down"))
    # The rest is for Kubernetes.
    recipe, shutdown = readme[:end], readme[end]
    assert recipe[0].startswith("luong-keras train")
    for command in recipe:
        printed = run(command)
        if command.endswith("translator:predict"):
            assert json.loads(printed)["predictions"][0]["translation"]
        if command.endswith("models/translator/2"):
            deployment.wait(2)
        if command.endswith("models/withdrawn-2"):
            deployment.wait(1)
    assert (deployment.folder / "secrets" / "key").stat().st_mode & 0o77 == 0
    # The runbook assumes the deployment of the README.
    runbook = commands("RUNBOOK.md")
    config = deployment.folder / "export" / "models.config"
    latest = config.read_text()
    config.write_text(latest.replace(POLICY, LABELS))
    for command in runbook:
        if command.startswith("mv "):
            config.write_text(latest)
        printed = run(command)
        if command.startswith("luong-keras export"):
            deployment.wait(1, 2)
        if command.endswith("labels/canary:predict"):
            assert json.loads(printed)["predictions"][0]["translation"]
        if command.startswith("mv "):
            deployment.wait(1)
        if command.endswith("-enddate"):
            assert printed.startswith("notAfter=")
    # The tokens were replaced: the old one is refused.
    old = deployment.environment["LUONG_KERAS_TOKEN"]
    path = "/v1/models/translator"
    tokens = (deployment.folder / "secrets/tokens").read_text()
    (new,) = re.findall(r'"Bearer (\w+)" you;', tokens)
    for _ in range(200):  # until the old workers have ended
        if deployment.proxy.get(path, token=old).status_code == 401:
            break
        time.sleep(0.05)
    assert deployment.proxy.get(path, token=new).status_code == 200
    run(shutdown)
    assert deployment.server is None
    if skipped:
        pytest.skip("all but: " + "; ".join(skipped))


def test_documents_use_only_known_programs():
    documented = commands("README.md") + commands("RUNBOOK.md")
    assert len(documented) > 25
    programs = {command.split()[0] for command in documented}
    assert programs == {
        *("luong-keras", "mkdir", "openssl", "echo", "chmod", "export"),
        *("curl", "mv", "sed", "python", "promtool", "docker", "kubectl"),
    }
    # The test replaces only commands of this compose file.
    for command in documented:
        if command.startswith("docker"):
            assert command.startswith("docker compose -f export/compose.yaml ")


def test_labels_of_the_test_are_in_the_runbook():
    runbook = (EXPORT / "RUNBOOK.md").read_text()
    for line in LABELS.splitlines():
        assert line.strip() in runbook
    assert POLICY in (EXPORT / "models.config").read_text()
