"""Removal of TensorFlow's start-up messages; errors are kept."""

import os
import subprocess
import sys

import pytest

from luong_keras.cli.main import is_noise

NOISE = [
    "WARNING: All log messages before absl::InitializeLog() is called are "
    "written to STDERR",
    "I0000 00:00:1795374950.480834   19347 port.cc:153] oneDNN custom "
    "operations are on.",
    "W0000 00:00:1795374950.480834   19347 gpu_device.cc:2342] Skipping",
    "I1122 19:15:50.480834   19347 service.cc:145] XLA service 0x7f",
    "E0000 00:00:1795374976.708601   19347 util.cc:131] oneDNN supports "
    "DT_BOOL only on platforms with AVX-512.",
    "E0000 00:00:1795374976.708601   19347 cuda_fft.cc:485] Unable to "
    "register cuFFT factory: already registered",
]
NO_GPU = (
    "E0000 00:00:1795374964.375993   19347 cuda_platform.cc:52] failed call "
    "to cuInit: UNKNOWN ERROR (303)"
)
ERRORS = [
    "E0000 00:00:1795374964.375993   19347 allocator.cc:1] out of memory",
    "E1122 19:15:50.480834   19347 allocator.cc:1] out of memory",
    "F0000 00:00:1795374964.375993   19347 cpu_feature_guard.cc:1] AVX",
    "Illegal instruction",
    "a line of I0000 00:00:17.4 within",
]


@pytest.mark.parametrize("has_card", [True, False])
def test_missing_gpu_is_noise_only_on_a_machine_without_one(has_card):
    assert is_noise(NO_GPU.encode(), has_card) is not has_card


def status_and_errors(end, arguments=(), **environment):
    """Run a process that writes noise and errors, then the statement `end`."""
    program = (
        "import os, sys\n"
        "from luong_keras.cli.main import without_startup_noise\n"
        f"with without_startup_noise({list(arguments)}):\n"
        f"    os.write(2, {chr(10).join([*NOISE, *ERRORS, '']).encode()})\n"
        "    print('by Python', file=sys.stderr)\n"
        f"    {end}\n"
    )
    inherited = {k: v for k, v in os.environ.items() if k[:3] != "TF_"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        # As in the command, Keras is not imported before.
        env={**inherited, **environment, "LUONG_KERAS_LAZY": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    "end, environment",
    [
        ("sys.exit(3)", {}),
        *(("sys.exit(3)", {"TF_CPP_MIN_LOG_LEVEL": x}) for x in ("3", "")),
        # Worker processes keep standard error open until the command ends.
        pytest.param(
            "from luong_keras.data.corpus_writer import map_chunks\n"
            "    list(map_chunks(len, ['a'] * 9, processes=2))\n"
            "    sys.exit(3)",
            {},
            marks=pytest.mark.slow,
            id="workers",
        ),
        ("os.write(2, b'the end')", {}),
        ("os.abort()", {}),
    ],
)
def test_noise_is_removed_and_errors_are_kept(end, environment):
    status, lines = status_and_errors(end, **environment)
    if "abort" in end:
        assert status < 0 and set(ERRORS) < set(lines)
        return
    # The last line may lack a line end.
    last = ["the end"] * ("the end" in end)
    assert sorted(lines) == sorted([*ERRORS, "by Python", *last])
    assert status == (0 if last else 3)


@pytest.mark.parametrize(
    "arguments, environment",
    [(["--debug"], {}), ([], {"TF_CPP_MIN_LOG_LEVEL": "0"})],
)
def test_noise_is_kept_on_request(arguments, environment):
    _, lines = status_and_errors("pass", arguments, **environment)
    assert set(NOISE) < set(lines)
