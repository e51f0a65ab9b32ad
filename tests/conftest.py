import gc
import os
import sys
import tempfile
from pathlib import Path

import filelock
import pytest

pytest_plugins = ["tests.browser_pages"]
TESTS = Path(__file__).parent
# Reading, batching and serving text need TensorFlow.
TENSORFLOW_ONLY = (
    *("data", "text", "inference", "serving", "client", "recipe"),
    *("examples", "cli", "report", "reproduction", "test_translator.py"),
    # These read the files of the project or start other processes, so the
    # run on one backend is enough.
    *("test_mutations.py", "test_architecture.py", "test_public_names.py"),
    *("test_distribution.py", "test_editors.py", "test_private_apis.py"),
    *("test_files_and_environment.py", "test_errors_page.py"),
    "test_committed_notebooks.py",
)
# The translator between the epochs of JAX, in a folder of the former.
JAX_ONLY = ("test_jax_translator.py",)


# With several processes the longest folders run first, so that all processes
# end at about the same time. A single process keeps the given order.
LONGEST_FIRST = (
    # The first one exports the models for which the serving tests wait.
    *("client", "inference", "golden", "models", "serving", "test_translator"),
    *("layers", "saved_model", "decoding"),
)
# These load the server's runtime, which disables XLA in the process.
LAST = (
    "test_hostile_texts.py",
    "test_saved_model_session.py",
)


def pytest_collection_modifyitems(items):
    """Mark the tests that need TensorFlow or are slow on JAX; order all."""
    shared = "PYTEST_XDIST_WORKER" in os.environ
    jax = os.environ.get("KERAS_BACKEND") == "jax"

    def position(item):
        folder = item.path.relative_to(TESTS).parts[0].removesuffix(".py")
        if item.path.name in LAST:
            return len(LONGEST_FIRST) + 1
        if shared and folder in LONGEST_FIRST:
            return LONGEST_FIRST.index(folder)
        return len(LONGEST_FIRST)

    seen = set()
    for item in items:
        path = item.path.relative_to(TESTS)
        if path.parts[0] in TENSORFLOW_ONLY and path.name not in JAX_ONLY:
            item.add_marker(pytest.mark.tensorflow)
        # JAX compiles each one; `make golden` and `make test-all` run them.
        slow_here = item.get_closest_marker("slow_on_jax")
        if jax and (path.parts[0] == "golden" or slow_here):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow"):
            continue
        function = item.path, item.originalname
        if item.get_closest_marker("slow_after_first") and function in seen:
            item.add_marker(pytest.mark.slow)
        seen.add(function)
    items.sort(key=position)  # Stable: keeps the order within a folder.


def pytest_collection_finish():
    """Exclude the imported modules from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True, scope="session")
def _quick_compilation():
    import keras

    # `make test-optimized` sets the variable to test with full optimisation.
    configured = "JAX_DISABLE_MOST_OPTIMIZATIONS" in os.environ
    if keras.backend.backend() == "jax" and not configured:
        import jax

        # Compiling the tiny programs takes longer than running them.
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True, scope="module")
def _few_compiled_programs():
    """Keep JAX's programs within the number of mappings that Linux allows.

    A process has at most 65,530 by default. LLVM crashes without room for more.
    """
    yield
    maps = Path("/proc/self/maps")
    if "jax" in sys.modules and maps.exists():
        with maps.open("rb") as file:
            if sum(1 for _ in file) > 30_000:
                sys.modules["jax"].clear_caches()


@pytest.fixture(autouse=True, scope="session")
def _results_as_arrays():
    """Let NumPy read torch tensors that require gradients.

    On other backends NumPy reads every result; torch requires `detach`. The
    library must call it, because its users have no such fixture.
    """
    import keras

    if keras.backend.backend() != "torch":
        yield
        return
    import torch

    original = torch.Tensor.__array__

    def read(tensor, *arguments, **options):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if not caller.startswith("luong_keras"):
            tensor = tensor.detach()
        return original(tensor, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "__array__", read)
        yield


@pytest.fixture(autouse=True, scope="session")
def _temporary_files(tmp_path_factory):
    """Keep the files of examples, which nobody removes, with the others."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("temporary")
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


@pytest.fixture(autouse=True)
def seeds():
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture
def float64():
    """Enable float64 for a comparison with NumPy."""
    from tests.layer_checks import double_precision

    with double_precision():
        yield


@pytest.fixture
def eager():
    """Run functions of TensorFlow eagerly, as building graphs takes longer."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def real_data():
    """Find real data, which are not shipped, or skip the test."""

    def find(*names):
        folder = os.environ.get("LUONG_KERAS_DATA")
        if not folder:
            pytest.skip("set LUONG_KERAS_DATA to the folder of the real data")
        path = Path(folder, *names)
        if not path.exists():
            pytest.skip(f"LUONG_KERAS_DATA has no {'/'.join(names)}")
        return path

    return find


# For the tests of servers and clients.


@pytest.fixture(scope="session")
def exported_models(tmp_path_factory):
    """Export the tiny translator as version 1 of `models/tiny`; read only."""
    # Imported here because the JAX run has no TensorFlow.
    from luong_keras.serving.export import export_saved_model, write_warmup
    from tests.serving.tiny_translator import tiny_translator

    def warm_up_one_signature(folder, requests):
        name = "serving_default"
        write_warmup(folder, {name: requests[name]})

    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # Shared: only one process exports.
    folder = base / "models" / "tiny"
    with filelock.FileLock(base / "models.lock"):
        if not folder.exists():
            # test_export.py checks exports. That would load the model once
            # more, and warming all signatures up would take 20 seconds of CPU
            # at every start of a server.
            with pytest.MonkeyPatch.context() as patch:
                export = "luong_keras.serving.export."
                patch.setattr(export + "check_saved_model", lambda *_: None)
                patch.setattr(export + "write_warmup", warm_up_one_signature)
                export_saved_model(tiny_translator(), folder / "1")
    return folder


@pytest.fixture(scope="session")
def server(request):
    """Start the test double of a server, or connect to a real one.

    `LUONG_KERAS_SERVING_URL` names a running TensorFlow Serving with the
    export of any translator. Both servers have `rest_url` (…/v1/models/NAME),
    `grpc_target`, `kill()` and `restart()`, which also starts a killed server
    again, at the same ports. The double serves the tiny translator.
    """
    from tests.serving.real_server import RealServer
    from tests.serving.server_process import LoopbackProcess

    url = os.environ.get("LUONG_KERAS_SERVING_URL")
    if url:
        running = RealServer(url)
    elif not sys.platform.startswith("linux"):
        pytest.skip("the double runs the Linux libraries of TensorFlow")
    else:
        running = LoopbackProcess(request.getfixturevalue("exported_models"))
    yield running
    running.stop()
