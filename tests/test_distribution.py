"""Contents of the wheel and of the source distribution."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Hidden, large or generated files are not copied for the build.
LEFT_OUT = shutil.ignore_patterns(
    ".*", "*.egg-info", "__pycache__", "build", "dist", "runs"
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build a source distribution and from it a wheel; return the folder."""
    pytest.importorskip("build")
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.partition(".")[0]) < 77:
        pytest.skip("needs setuptools 77, as pyproject.toml says")
    folder = tmp_path_factory.mktemp("distribution")
    shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT)
    shutil.copy(ROOT / ".pre-commit-config.yaml", folder / "source")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir"]
    command += [str(folder), str(folder / "source")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def files_of(folder):
    """Yield the files of a folder, relative to the root of the checkout."""
    for path in sorted((ROOT / folder).rglob("*")):
        parent = path.parent.name
        hidden = parent[0] in "._" or parent.endswith(".egg-info")
        hidden |= "docs/generated/" in path.as_posix()
        if path.is_file() and not hidden and path.suffix != ".pyc":
            yield path.relative_to(ROOT).as_posix()


def test_wheel_contains_only_the_package(wheel):
    inside = {n for n in wheel.namelist() if ".dist-info/" not in n}
    assert inside == {*files_of("luong_keras"), "luong_keras_command.py"}
    assert "luong_keras/py.typed" in inside
    assert "luong_keras/serving/warmup.txtpb" in inside
    assert "luong_keras/__init__.pyi" in inside


def test_source_distribution_is_complete(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    folders = "luong_keras", "tests", "docs", "examples", "export", "benchmarks"
    for folder in folders:
        assert set(files_of(folder)) <= inside
    assert {"Makefile", "LICENSE", "CHANGELOG.md", "SECURITY.md"} <= inside
    assert not [name for name in inside if name.endswith(".pyc")]


def test_metadata_of_the_wheel(wheel, built):
    (name,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    needs = [
        line.partition(";")[0] for line in metadata.get_all("Requires-Dist")
    ]
    assert any(line.startswith("lazy_loader") for line in needs)
    subwords = [
        line
        for line in metadata.get_all("Requires-Dist")
        if line.startswith("tensorflow-text")
    ]
    for extra in ("text", "reproduction", "dev"):
        assert any(f'extra == "{extra}"' in line for line in subwords)
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["License-Expression"] == "Apache-2.0"
    page = metadata.get_payload(decode=True).decode()
    assert "# luong_keras" in page
    # A package index shows the page without the files that it links.
    assert re.findall(r"\]\((?!https?://)[^)]*\)", page) == []
    pytest.importorskip("twine")
    files = [str(path) for path in built.glob("luong_keras-*")]
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
