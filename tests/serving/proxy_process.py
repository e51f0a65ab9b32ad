"""nginx with the shipped configuration, in front of a local server."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

EXPORT = Path(__file__).parents[2] / "export"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
OPENSSL = shutil.which("openssl")
NEEDS_PROXY = [
    pytest.mark.skipif(NGINX is None, reason="needs nginx: apt-get install"),
    pytest.mark.skipif(OPENSSL is None, reason="needs openssl"),
]
TOKEN, OTHER_TOKEN = "0" * 63 + "a", "0" * 63 + "b"
CERTIFICATE = (
    *("req", "-x509", "-newkey", "ec", "-pkeyopt"),
    *("ec_paramgen_curve:prime256v1", "-nodes", "-days", "365"),
    *("-subj", "/CN=localhost", "-addext"),
    "subjectAltName=DNS:localhost,IP:127.0.0.1",
)


def free_port():
    """Return a port that is free at present."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def write_secrets(folder):
    """Write a certificate, its key and tokens of the clients a and b."""
    command = [OPENSSL, *CERTIFICATE, "-keyout", folder / "key"]
    command += "-out", folder / "certificate"
    subprocess.run(command, check=True, capture_output=True)
    lines = f'"Bearer {TOKEN}" a;\n"Bearer {OTHER_TOKEN}" b;\n'
    (folder / "tokens").write_text(lines)


def proxy_of(server, folder):
    """Start a proxy in front of the double or of a real server."""
    rest = urlsplit(server.rest_url)
    grpc_port = server.grpc_target.rpartition(":")[2]
    changed = {"/v1/models/translator": rest.path}
    return ProxyProcess(folder, rest.port, grpc_port, changed=changed)


class ProxyProcess:
    """A process of nginx with `export/proxy/nginx.conf`.

    Args:
        folder: Empty folder for the secrets and the files of nginx.
        rest, grpc: Ports of the server, by default the same.
        changed: Texts of the file -> their replacements.
        secrets: Folder of certificate, key and tokens; None to write new ones
            into `folder`.

    Attributes:
        url: `https://127.0.0.1:PORT`.
        certificate: Path of the certificate that a client trusts.
    """

    def __init__(self, folder, rest, grpc=None, changed=(), secrets=None):
        self.folder, self.port = folder, free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.secrets = secrets or folder
        self.certificate = str(self.secrets / "certificate")
        if secrets is None:
            write_secrets(folder)
        config = folder / "nginx.conf"
        config.write_text(self._filled(rest, grpc or rest, dict(changed)))
        self.command = [NGINX, "-c", str(config)]
        if os.getuid() == 0:  # The default user of workers is another.
            self.command += ["-g", f"user {getpass.getuser()};"]
        self.start()

    def _filled(self, rest, grpc, changed):
        text = (EXPORT / "proxy" / "nginx.conf").read_text()
        for old, new in {
            # First, because the folder may be in /tmp.
            " /tmp/": f" {self.folder}/",
            "listen 8443 ": f"listen 127.0.0.1:{self.port} ",
            "translator:8501": f"127.0.0.1:{rest}",
            "translator:8500": f"127.0.0.1:{grpc}",
            "/run/secrets/": f"{self.secrets}/",
            "/config/demo": str(EXPORT / "demo"),
            "/dev/stdout": f"{self.folder}/log",
            "/dev/stderr": f"{self.folder}/errors",
            **changed,
        }.items():
            assert old in text, old
            text = text.replace(old, new)
        return text

    def start(self):
        """Start nginx and wait until it answers."""
        self.process = subprocess.Popen(
            self.command, stderr=subprocess.PIPE, text=True
        )
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stderr.read())
            try:
                self.get("/healthz", token=None)
                return
            except requests.ConnectionError:
                time.sleep(0.05)
        raise RuntimeError("nginx does not answer.")

    def request(self, method, path, token=TOKEN, **options):
        """Send a request, with a token unless it is None."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= options.pop("headers", {})
        options = {"verify": self.certificate, "timeout": 60, **options}
        return requests.request(
            method, self.url + path, headers=headers, **options
        )

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, json, **options):
        return self.request("POST", path, json=json, **options)

    def log(self):
        return (self.folder / "log").read_text()

    def reload(self):
        subprocess.run([*self.command, "-s", "reload"], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stop nginx after its current requests."""
        self.process.send_signal(3)  # SIGQUIT, as in compose.yaml
        self.process.wait(timeout=30)
        self.process.stderr.close()
