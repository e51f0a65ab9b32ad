"""What TensorFlow says at every start is left out; errors are not."""

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
NO_CARD = (
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


@pytest.mark.parametrize("line", NOISE)
def test_what_is_said_at_every_start_is_noise(line):
    assert is_noise(line.encode(), has_card=True)


@pytest.mark.parametrize("line", [*ERRORS, NO_CARD])
def test_an_error_is_none(line):
    assert not is_noise(line.encode(), has_card=True)


def test_a_machine_without_a_card_does_not_miss_one():
    assert is_noise(NO_CARD.encode(), has_card=False)


def said(end, arguments=(), **environment):
    """What a process says that writes noise, errors, and comes to an end."""
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
        # As for the command: Keras is not imported before.
        env={**inherited, **environment, "LUONG_KERAS_LAZY": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("asked", [{}, {"TF_CPP_MIN_LOG_LEVEL": "3"}])
def test_errors_are_seen_and_noise_is_not(asked):
    status, lines = said("sys.exit(3)", **asked)
    assert status == 3
    assert sorted(lines) == sorted([*ERRORS, "by Python"])


def test_a_command_whose_text_was_prepared_by_processes_ends():
    """Their helper processes hold its standard error until it has ended."""
    status, lines = said(
        "from luong_keras.data.corpus_writer import mapped\n"
        "    list(mapped(len, ['a'] * 9, processes=2))\n"
        "    sys.exit(3)"
    )
    assert status == 3
    assert sorted(lines) == sorted([*ERRORS, "by Python"])


def test_the_last_line_may_have_no_end():
    status, lines = said("os.write(2, b'the end')")
    assert status == 0
    assert lines[-1] == "the end"


def test_a_crash_is_seen():
    status, lines = said("os.abort()")
    assert status < 0
    assert set(ERRORS) < set(lines)


@pytest.mark.parametrize(
    "arguments, environment",
    [(["--debug"], {}), ([], {"TF_CPP_MIN_LOG_LEVEL": "0"})],
)
def test_who_asks_sees_all(arguments, environment):
    _, lines = said("pass", arguments, **environment)
    assert set(NOISE) < set(lines)
