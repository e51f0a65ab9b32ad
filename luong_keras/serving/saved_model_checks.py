"""Checks that TensorFlow Serving can serve a SavedModel.

Each check raises `SavedModelError` with the cause; `check_saved_model` runs
all checks.
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import numpy as np

from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.missing_package import private_name
from luong_keras.serving import warmup
from luong_keras.serving.saved_model_session import (
    Answer,
    Call,
    SavedModelError,
    read_meta_graph,
    run_in_server_runtime,
)
from luong_keras.serving.signatures import INPUTS
from luong_keras.with_tensorflow import tf

# Operations that have a kernel in this process, but not in a server.
_REFUSAL_REASONS = {
    "PyFunc": "calls Python",
    "PyFuncStateless": "calls Python",
    "EagerPyFunc": "calls Python",
    "XlaCallModule": "is a program of XLA, as JAX exports",
    "XlaLaunch": "is a program of XLA",
}
# Strings may differ only where the scores of two translations are this near.
NEAR_TIE = 1e-4
TOLERANCE = 1e-5


def check_saved_model(
    folder: str | Path,
    expected: Iterable[tuple[Call, Answer]] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Check that TensorFlow Serving can load a SavedModel, and its answers.

    Args:
        folder: The SavedModel.
        expected: Calls, with the results of the model in this process; those
            of `translate` show in which rows of all calls there are near ties.
        say: Function called with one line per passed check.

    Raises:
        SavedModelError: If a check fails, with the cause.
    """
    folder = Path(folder)
    meta_graph = read_meta_graph(folder)
    _check_signatures(meta_graph)
    say("checked: signatures")
    _check_operations(meta_graph)
    say("checked: operations")
    _check_answers(folder, expected)
    say("checked: answers of another process")


def _check_signatures(meta_graph):
    signatures = meta_graph.signature_def
    missing = [name for name in INPUTS if name not in signatures]
    if missing:
        raise SavedModelError(
            f"Expected: the signatures {list(INPUTS)}. Received: a SavedModel "
            f"without {missing}. Write it with `export_saved_model`."
        )
    for name in INPUTS:
        tensors = {**signatures[name].inputs, **signatures[name].outputs}
        for key, tensor in tensors.items():
            sizes = [dim.size for dim in tensor.tensor_shape.dim]
            if not sizes or sizes[0] != -1:
                raise SavedModelError(
                    "A server puts requests together along the first axis, so "
                    f"it must be a batch of any size. Received: {sizes} for "
                    f"{key!r} of {name!r}."
                )


def _check_operations(meta_graph):
    functions = meta_graph.graph_def.library.function
    function_names = {function.signature.name for function in functions}
    nodes = list(meta_graph.graph_def.node)
    for function in functions:
        nodes += function.node_def
        if function.attr["_XlaMustCompile"].b:
            raise SavedModelError(
                f"The function {function.signature.name!r} asks for "
                "compilation by XLA, which the stock server switches off. "
                "Export it without `jit_compile=True`."
            )
    for name in sorted({node.op for node in nodes} - function_names):
        reason = _REFUSAL_REASONS.get(name)
        if reason is None and not _has_cpu_kernel(name):
            reason = "has no kernel for a CPU in TensorFlow or tensorflow-text"
        if reason is not None:
            raise SavedModelError(
                f"The operation {name!r} {reason}; the stock server does not "
                "run it. Replace it by operations of TensorFlow."
            )


def _has_cpu_kernel(name):
    kernels_of = private_name(
        "tensorflow.python.framework.kernels.get_registered_kernels_for_op"
    )
    device_types = {kernel.device_type for kernel in kernels_of(name).kernel}
    return not device_types.isdisjoint(("CPU", "DEFAULT"))


def _check_answers(folder, expected):
    """Run warm-up requests and expected calls as a server would."""
    expected_answers: list[tuple[str, Answer]] = []
    try:
        requests = list(warmup.read_warmup(folder))
    except tf.errors.OpError as error:
        raise SavedModelError(
            f"The warm-up requests {folder / warmup.FILE} are missing or "
            f"damaged: {error.message}. Write the folder again with "
            "`export_saved_model`."
        ) from error
    if not requests:
        raise SavedModelError(
            f"Expected: warm-up requests to {list(INPUTS)}. Received: none in "
            f"{folder / warmup.FILE}."
        )

    def calls():
        """Yield all calls, and compute the answers while a process starts."""
        yield from requests
        for call, answer in expected:
            expected_answers.append((call[0], answer))
            yield call

    answers = run_in_server_runtime(folder, calls())
    tied = {
        row
        for name, expected_answer in expected_answers
        if name == "translate"
        for row, scores in enumerate(expected_answer["scores"])
        if _has_near_scores(scores)
    }
    for (name, expected_answer), answer in zip(
        expected_answers, answers[len(requests) :], strict=True
    ):
        compare_answers(name, answer, expected_answer, tied)


def compare_answers(
    name: str, answer: Answer, expected: Answer, tied: Collection[int] = ()
) -> None:
    """Check that the answers of a server are those of the model.

    Args:
        name: Name of the signature.
        answer: The answers of the server.
        expected: The answers of the model.
        tied: Rows whose translations have near scores, which are not compared
            if the answers have only one of these scores.
    """
    for key, expected_array in expected.items():
        if answer[key].shape != expected_array.shape:
            raise _difference_error(
                name, key, answer[key].shape, expected_array.shape
            )
    for row in range(len(next(iter(expected.values())))):
        different = [
            key
            for key, array in expected.items()
            if not _is_close(answer[key][row], array[row])
        ]
        if different and not _is_tie(answer, expected, row, tied):
            key = different[0]
            raise _difference_error(
                name, key, answer[key][row], expected[key][row]
            )


def _is_close(answer, expected):
    expected = np.asarray(expected)
    if expected.dtype.kind in "OS":
        return np.array_equal(answer, expected)
    return np.allclose(answer, expected, TOLERANCE, TOLERANCE)


def _is_tie(answer, expected, row, tied):
    """Test whether translations of near scores may have changed places."""
    if "scores" not in expected:
        return "score" in expected and row in tied
    scores = expected["scores"][row]
    return _has_near_scores(scores) and _is_close(
        np.sort(answer["scores"][row]), np.sort(scores)
    )


def _has_near_scores(scores):
    return any(np.diff(np.sort(scores[scores > ABSENT_SCORE])) < NEAR_TIE)


def _difference_error(name, key, value, expected):
    return SavedModelError(
        f"The answer of the signature {name!r} in another process differs "
        "from that of the model itself. Expected: "
        f"{key} = {expected}. Received: {value}."
    )
