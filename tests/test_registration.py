"""When the layers are registered, with a package in the place of Keras."""

import subprocess
import sys

import pytest

import luong_keras

ROOT = luong_keras.__path__[0].rpartition("/")[0]
# What `register` would import is not there: it says what it was called for.
WATCHED = """
import sys
sys.path[:0] = [{folder!r}, {root!r}]
from luong_keras import registration
def register():
    spec = sys.modules["keras"].__spec__
    print("registered", hasattr(sys.modules["keras"], "complete"))
registration.register = register
"""
CASES = {
    "keras is imported later": (
        "",
        "import luong_keras, keras, keras.sub, luong_keras.config",
        ["registered True"],
    ),
    "a failed import is tried again": (
        "import os\nif not os.environ.pop('WORKS', ''): os.environ['WORKS'] "
        "= '1'; raise ImportError('no backend')\n",
        "try:\n    import keras\nexcept ImportError as error:\n"
        "    print(error)\nimport keras",
        ["no backend", "registered True"],
    ),
    "keras imports the package itself": (
        "from luong_keras.registration import register_with_keras\n"
        "register_with_keras()\n",
        "registration._FINDER.waiting = False  # as before its own import\n"
        "import keras\nprint('here')\nimport keras.sub",
        ["here", "registered True"],
    ),
    "reloaded": (
        "",
        "import importlib, luong_keras, keras\n"
        "importlib.reload(keras)\nimportlib.reload(luong_keras)",
        ["registered True", "registered True"],
    ),
    "another thread imports keras meanwhile": (
        "import time\ntime.sleep(0.2)\n",
        "import threading, time\n"
        "thread = threading.Thread(target=__import__, args=('keras',))\n"
        "registration._FINDER.waiting = False\n"
        "thread.start()\n"
        "while 'keras' not in sys.modules: time.sleep(0.01)\n"
        "registration.register_with_keras()\n"
        "thread.join()",
        ["registered True"],
    ),
    "without keras": ("", "import luong_keras, json.tool", []),
}


@pytest.mark.parametrize("case", CASES)
def test_it_registers_right_after_keras(case, tmp_path):
    inside, program, expected = CASES[case]
    folder = tmp_path / "keras"
    folder.mkdir()
    (folder / "__init__.py").write_text(f"{inside}complete = True\n")
    (folder / "sub.py").touch()
    watched = WATCHED.format(folder=str(tmp_path), root=ROOT)
    done = subprocess.run(
        [sys.executable, "-c", watched + program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


def test_our_import_hook_leaves_the_loader_of_keras_as_it_was():
    import keras

    assert "exec_module" not in vars(keras.__spec__.loader)
