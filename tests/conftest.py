import gc
import os
import sys
from pathlib import Path

import filelock
import pytest

# Here because only this file is read by a process that hands out the tests;
# which starts sooner without Keras.
from tests.golden.summary import pytest_terminal_summary  # noqa: F401

pytest_plugins = ["tests.browser_pages"]
TESTS = Path(__file__).parent
# What reads text, batches it or serves it runs on TensorFlow alone.
TENSORFLOW_ONLY = (
    *("data", "text", "inference", "serving", "client", "recipe"),
    *("examples", "cli", "report", "reproduction", "test_translator.py"),
    # Of these, which read the files of the project or start processes of
    # their own, one run is enough.
    *("test_mutations.py", "test_architecture.py", "test_public_names.py"),
    *("test_distribution.py", "test_editors.py", "test_private_apis.py"),
    *("test_files_and_environment.py", "test_errors_page.py"),
    "test_notebooks.py",
)


# The files that take longest, first where processes share the tests: they then
# end together. One process alone runs them as they were asked for.
LONGEST_FIRST = (
    # The first one exports what the others of serving wait for.
    *("client", "inference", "golden", "models", "serving", "test_translator"),
    *("layers", "saved_model", "decoding"),
)
# These load the runtime of the server, which disables XLA in their process.
LAST = (
    "test_hostile_texts.py",
    "test_loopback_codes.py",
    "test_loopback_options.py",
)


def pytest_collection_modifyitems(items):
    """Says which tests need TensorFlow, and their order."""

    shared = "PYTEST_XDIST_WORKER" in os.environ
    jax = os.environ.get("KERAS_BACKEND") == "jax"

    def place(item):
        folder = item.path.relative_to(TESTS).parts[0].removesuffix(".py")
        if item.path.name in LAST:
            return len(LONGEST_FIRST) + 1
        if shared and folder in LONGEST_FIRST:
            return LONGEST_FIRST.index(folder)
        return len(LONGEST_FIRST)

    for item in items:
        path = item.path.relative_to(TESTS)
        if path.parts[0] in TENSORFLOW_ONLY:
            item.add_marker(pytest.mark.tensorflow)
        # Each would be compiled; `make golden` and `make test-all` run all.
        slow_here = item.get_closest_marker("slow_on_jax")
        if jax and (path.parts[0] == "golden" or slow_here):
            item.add_marker(pytest.mark.slow)
    items.sort(key=place)  # Within a folder the order is as it was.


def pytest_collection_finish():
    """What was imported stays: nobody need look for garbage in it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(autouse=True, scope="session")
def _quick_compilation():
    import keras

    # As the environment says; `make test-optimized` has what a user gets.
    said = "JAX_DISABLE_MOST_OPTIMIZATIONS" in os.environ
    if keras.backend.backend() == "jax" and not said:
        import jax

        # The programs are tiny: compiling them takes longer than running them.
        jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(autouse=True, scope="session")
def _results_as_arrays():
    """Lets NumPy read tensors of torch that have a gradient.

    Elsewhere it reads every result; torch wants `detach` written. The library
    itself, whose users have no such fixture, must write it.
    """
    import keras

    if keras.backend.backend() != "torch":
        yield
        return
    import torch

    refusing = torch.Tensor.__array__

    def read(tensor, *arguments, **options):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if not caller.startswith("luong_keras"):
            tensor = tensor.detach()
        return refusing(tensor, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "__array__", read)
        yield


@pytest.fixture(autouse=True)
def seeds():
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture
def float64():
    """Lets `dtype="float64"` mean it, for a comparison with NumPy."""
    from tests.layer_checks import double_precision

    with double_precision():
        yield


@pytest.fixture
def real_data():
    """Finds real data, which are not shipped, or skips the test."""

    def find(*names):
        folder = os.environ.get("LUONG_KERAS_DATA")
        if not folder:
            pytest.skip("set LUONG_KERAS_DATA to the folder of the real data")
        path = Path(folder, *names)
        if not path.exists():
            pytest.skip(f"LUONG_KERAS_DATA has no {'/'.join(names)}")
        return path

    return find


# For the folders of what serves and of what asks.


@pytest.fixture(scope="session")
def exported_models(tmp_path_factory):
    """`MODELS/tiny`, with the tiny translator as version 1; read only."""
    # Not above: these need TensorFlow, and JAX is tested without it.
    from luong_keras.serving.export import export_saved_model, write_warmup
    from tests.serving.tiny_translator import tiny_translator

    def warm_one_up(folder, requests):
        name = "serving_default"
        write_warmup(folder, {name: requests[name]})

    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # That of all processes: one of them exports.
    folder = base / "models" / "tiny"
    with filelock.FileLock(base / "models.lock"):
        if not folder.exists():
            # The server is the check; test_export.py has that of an export,
            # which loads the model once more, and warms all signatures up:
            # 20 seconds of CPU at every start of a server.
            with pytest.MonkeyPatch.context() as patch:
                export = "luong_keras.serving.export."
                patch.setattr(export + "check_saved_model", lambda *_: None)
                patch.setattr(export + "write_warmup", warm_one_up)
                export_saved_model(tiny_translator(), folder / "1")
    return folder


@pytest.fixture(scope="session")
def server(request):
    """What serves a translator: the double, or the server named outside.

    `LUONG_KERAS_SERVING_URL` names a running TensorFlow Serving with the
    export of any translator. Both have `rest_url` (…/v1/models/NAME),
    `grpc_target`, `kill()` and `restart()`; the latter also revives a killed
    one, at the same ports. The double serves the tiny translator.
    """
    from tests.serving.real_server import RealServer
    from tests.serving.server_process import LoopbackProcess

    url = os.environ.get("LUONG_KERAS_SERVING_URL")
    if url:
        running = RealServer(url)
    elif not sys.platform.startswith("linux"):
        pytest.skip("the double runs the Linux libraries of TensorFlow")
    else:
        running = LoopbackProcess(
            request.getfixturevalue("exported_models"),
            # Tests ask 16 things at once, on machines of few cores too.
            *("--grpc-max-threads", "32"),
        )
    yield running
    running.stop()
