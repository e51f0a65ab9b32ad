"""Cluster files, as far as they can be tested without a cluster."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

yaml = pytest.importorskip("yaml")
EXAMPLES = Path(__file__).parents[2] / "examples"
CLUSTER = EXAMPLES / "cluster"
VERSION = "1.31"  # of Kubernetes; its schemas come with the validator


def documents(name):
    return list(yaml.safe_load_all((CLUSTER / name).read_text()))


def validate(document):
    validator = pytest.importorskip("kubernetes_validate")
    validator.validate(document, VERSION, strict=True)


def test_training_job_is_valid_and_consistent():
    """Check that numbers, names and addresses in the file agree."""
    service, job = documents("train.yaml")
    validate(service)
    validate(job)
    spec = job["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    values = {each["name"]: each["value"] for each in container["env"]}
    count = int(values["KERAS_DISTRIBUTION_NUM_PROCESSES"])
    assert count == spec["completions"] == spec["parallelism"]
    address, _ = values["KERAS_DISTRIBUTION_JOB_ADDRESSES"].split(":")
    name = job["metadata"]["name"]
    assert address == f"{name}-0.{pod['subdomain']}"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name}
    failing = spec["podFailurePolicy"]["rules"][-1]["onExitCodes"]
    assert failing["containerName"] == container["name"]
    assert failing["values"] == [1, 2]


def test_translation_pods_are_valid():
    (job,) = documents("translate_with_ray.yaml")
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
        validate(pod | {"spec": group["template"]["spec"]})


def run_slurm_job(folder, interpreter, srun, train):
    """Run the job with programs in place of the commands; return its status."""
    requeue = f'echo "$@" > {folder}/scontrol.txt'
    for name, line, program in (
        ("srun", interpreter, srun),
        ("luong-keras", interpreter, train),
        ("scontrol", "/bin/sh", requeue),
    ):
        (folder / name).write_text(f"#!{line}\n{program}\n")
        (folder / name).chmod(0o755)
    return subprocess.run(
        ["bash", CLUSTER / "train.sbatch", "a b.tsv", "--preset", "paper"],
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "RUN_DIR": f"{folder}/my run",
            "SLURM_JOB_ID": "7",
        },
    ).returncode


@pytest.mark.parametrize(
    "of_process, of_srun, requeued",
    [
        *((status, status, False) for status in (0, 1, 2)),
        *((status, status, True) for status in (75, 137, 143)),
        # After an error srun ends the other processes by SIGTERM.
        *((status, 143, False) for status in (1, 2)),
        (0, 137, True),  # srun itself was killed
    ],
)
def test_slurm_job_is_requeued_after_interruptions(
    tmp_path, of_process, of_srun, requeued
):
    srun = f'echo "$1" > {tmp_path}/srun.txt; shift; "$@"; exit {of_srun}'
    train = f'printf "%s\\n" "$@" > {tmp_path}/arguments.txt; exit {of_process}'
    assert run_slurm_job(tmp_path, "/bin/sh", srun, train) == of_srun
    assert (tmp_path / "srun.txt").read_text() == "--kill-on-bad-exit=1\n"
    arguments = (tmp_path / "arguments.txt").read_text().splitlines()
    expected = ["train", "a b.tsv", "--preset", "paper", "--run-dir"]
    assert arguments == [*expected, f"{tmp_path}/my run", "--backend", "jax"]
    command = tmp_path / "scontrol.txt"
    assert command.exists() == requeued
    assert not requeued or command.read_text() == "requeue 7\n"
    assert not list(tmp_path.glob("*failed*"))


def test_slurm_job_waits_for_the_snapshot_after_a_signal(tmp_path):
    """Slurm signals all processes of a step, before the time limit."""
    train = f"""
import pathlib, signal, sys, time
def stop(*_):
    time.sleep(0.5)
    pathlib.Path("{tmp_path}/snapshot").touch()
    sys.exit(75)
signal.signal(signal.SIGTERM, stop)
pathlib.Path("{tmp_path}/ready").touch()
time.sleep(60)
"""
    srun = f"""
import os, pathlib, signal, subprocess, sys, time
step = subprocess.Popen(sys.argv[2:], start_new_session=True)
while not pathlib.Path("{tmp_path}/ready").exists():
    time.sleep(0.01)
os.killpg(step.pid, signal.SIGTERM)
status = step.wait()
assert pathlib.Path("{tmp_path}/snapshot").exists()
sys.exit(status if status >= 0 else 128 - status)
"""
    assert run_slurm_job(tmp_path, sys.executable, srun, train) == 75
    assert (tmp_path / "scontrol.txt").read_text() == "requeue 7\n"


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)
def test_ray_translates_correctly_although_a_worker_dies(tmp_path):
    from luong_keras import Translator

    pairs = [(f"a{i % 5} b{i % 7}", f"x{i % 7} y{i % 5}") for i in range(60)]
    settings = {"units": 8, "epochs": 2, "vocabulary_size": 24, "beam_size": 2}
    translator = Translator.fit(
        pairs, "small", run_dir=tmp_path / "run", train_only=True, **settings
    )
    sources = [source for source, _ in pairs] * 50 + ["", "ä\u2028ß\x0c", ""]
    text, output = tmp_path / "text.txt", tmp_path / "translated.txt"
    text.write_text("".join(f"{line}\n" for line in sources))
    program = [sys.executable, EXAMPLES / "translate_with_ray.py"]
    program += ["--lines", "50", "--run-dir", tmp_path / "run"]
    process = subprocess.Popen([*program, text, output])
    part = tmp_path / "translated.txt.part"
    while not (part.exists() and part.stat().st_size):
        assert process.poll() is None
        time.sleep(0.05)
    found = subprocess.check_output(["pgrep", "-f", "ray::MapWorker"])
    os.kill(int(found.split()[0]), signal.SIGKILL)
    assert process.wait() == 0
    assert output.read_text().splitlines() == translator.translate(sources)

    text.write_text("".join(f"{s}\t{t}\n" for s, t in pairs))
    subprocess.run([*program, "--score", text, output], check=True)
    found = [float(line) for line in output.read_text().splitlines()]
    scored = translator.score(*zip(*pairs, strict=True))
    expected = [one.log_probability for one in scored]
    np.testing.assert_allclose(found, expected, atol=1e-4)
