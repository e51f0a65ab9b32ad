"""Installation of the wheel in an empty folder and a new environment."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(
    ".*", "*.egg-info", "__pycache__", "build", "dist", "runs", "tests"
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect these tests unless `-m` names their marker."""
    if "stranger" in (config.getoption("markexpr") or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("stranger")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


class Stranger:
    """Empty folder and an environment that has only the wheel."""

    def __init__(self, folder: Path):
        self.folder = folder / "home"
        self.environment = folder / "environment"
        self.folder.mkdir()

    def run(self, *command, text=None, check=True):
        """Run a program of the environment in the folder."""
        # Without this checkout and the settings of this process.
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "KERAS_", "LUONG_", "PYTEST_"))
        }
        done = subprocess.run(
            [str(self.environment / "bin" / command[0]), *command[1:]],
            cwd=self.folder,
            env={**kept, "TF_CPP_MIN_LOG_LEVEL": "3"},
            input=text,
            capture_output=True,
            text=True,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    def python(self, program, **options):
        """Run a Python program, given as text; return its output."""
        return self.run("python", "-c", program, **options).stdout


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stranger")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    probe = [*pip, "download", "--no-deps", "-d", str(folder), "lazy_loader"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("pip has no index here")
    shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT)
    command = [*pip, "wheel", "--no-deps", "-w", str(folder)]
    done = subprocess.run(
        [*command, str(folder / "source")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("luong_keras-*.whl")
    stranger = Stranger(folder)
    venv.create(stranger.environment, with_pip=True)
    packages = [f"{wheel}[train,text]"]
    # A file of versions, such as tests/versions/colab.txt.
    if constraints := os.environ.get("LUONG_KERAS_CONSTRAINTS"):
        packages += ["--constraint", constraints]
    stranger.run("pip", "install", "--quiet", *packages)
    return stranger
