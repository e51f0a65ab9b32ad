"""Runs of two processes that are killed at random moments, and resumed.

`python -m tests.training.kills --seed 1 --count 20` trains once without a
kill. It then starts runs and, once their processes have connected, kills one
process or both at moments drawn from the seed. After each kill it starts the
same command again. It compares each finished run with the first one: the
weights bit for bit, and the log.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from luong_keras.training.snapshot import Snapshot

ROOT = Path(__file__).parents[2]
ADJECTIVES = {"red": "rote", "blue": "blaue", "old": "alte", "new": "neue"}
NOUNS = {"house": "Haus", "dog": "Hund", "cat": "Katze", "tree": "Baum"}
SETTINGS = [
    *("--preset", "demo", "--units", "16", "--embedding-size", "12"),
    *("--batch-size", "8", "--epochs", "2", "--optimizer", "sgd"),
    *("--learning-rate", "0.5", "--set", "training.snapshot_steps=7"),
    *("data.dataset=files", "decoding.beam_size=2"),
]
# Seconds within which the other process must notice that one was killed.
PATIENCE = 60


def write_text(folder):
    """Write files of short sentence pairs, all of one padded length."""
    drawn = random.Random(0)
    for name, count in (("train", 320), ("dev", 16), ("test", 16)):
        lines = []
        for _ in range(count):
            adjective = drawn.choice([*ADJECTIVES])
            noun = drawn.choice([*NOUNS])
            lines.append(
                f"the {adjective} {noun}\tdas {ADJECTIVES[adjective]} "
                f"{NOUNS[noun]}\n"
            )
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def environments(count):
    """Return the variables of each of several processes on this machine."""
    shared = {
        "KERAS_DISTRIBUTION_JOB_ADDRESSES": f"localhost:{free_port()}",
        "KERAS_DISTRIBUTION_NUM_PROCESSES": str(count),
    }
    name = "KERAS_DISTRIBUTION_PROCESS_ID"
    return [shared | {name: str(rank)} for rank in range(count)]


def start(folder, run, count=2, backend="jax", more=()):
    """Start the processes of a run."""
    text = [folder / f"{name}.tsv" for name in ("train", "dev", "test")]
    command = [sys.executable, "-m", "luong_keras", "train", text[0]]
    command += ["--dev", text[1], "--test", text[2], *SETTINGS]
    command += ["--run-dir", run, "--backend", backend, *more]
    command = [*map(str, command)]
    processes = []
    for rank, variables in enumerate(environments(count)):
        env = {**os.environ, **(variables if count > 1 else {})}
        with open(f"{run}.{rank}.log", "a") as log:
            process = subprocess.Popen(
                command, env=env, cwd=ROOT, stdout=log, stderr=log
            )
            processes.append(process)
    return processes


def wait_for_connection(processes, run):
    """Wait until the processes have connected.

    Before that, a process waits minutes for the other one to start.
    """
    logs = [Path(f"{run}.{rank}.log") for rank in range(len(processes))]
    before = [log.read_text(errors="replace").count("[Gloo]") for log in logs]
    while any(
        log.read_text(errors="replace").count("[Gloo]") == count
        for log, count in zip(logs, before, strict=True)
    ):
        assert all(process.poll() is None for process in processes), run
        time.sleep(0.1)


def wait(processes, seconds):
    """Wait for the processes and return whether all ended in time."""
    end = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return False
    return True


def kill(processes, ranks):
    """Kill some processes; return the seconds until the others ended."""
    for rank in ranks:
        processes[rank].send_signal(signal.SIGKILL)
    before = time.monotonic()
    if not wait(processes, PATIENCE):
        for process in processes:
            process.kill()
        wait(processes, PATIENCE)
        raise SystemExit(f"after {PATIENCE} s a process had not noticed")
    return time.monotonic() - before


def state(run):
    """Return the arrays and the log of a finished run."""
    snapshot = Snapshot.read(run / "snapshot.npz")
    lines = (run / "log.jsonl").read_text().splitlines()
    log = [json.loads(line) for line in lines]
    for line in log:
        line.pop("tokens_per_second")
    return snapshot.arrays, log


def difference(found, expected):
    """Return the largest difference of two states; 0 if all bits are equal."""
    assert set(found) == set(expected)
    return max(
        float(np.abs(found[name].astype("f8") - expected[name]).max())
        for name in expected
        if not name.startswith("metrics/")
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    given = parser.parse_args(argv)
    drawn = random.Random(given.seed)
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    write_text(folder)
    uninterrupted = folder / "uninterrupted"
    processes = start(folder, uninterrupted)
    wait_for_connection(processes, uninterrupted)
    began = time.monotonic()
    assert wait(processes, 600), "the uninterrupted run hangs"
    seconds = time.monotonic() - began
    arrays, log = state(uninterrupted)
    print(f"uninterrupted run: {seconds:.0f} s, {folder}", flush=True)
    number, kills, failed = 0, 0, 0
    while kills < given.count:
        number += 1
        run = folder / f"run-{number}"
        while True:
            processes = start(folder, run)
            wait_for_connection(processes, run)
            moment = drawn.uniform(0, seconds)
            if kills >= given.count or wait(processes, moment):
                assert wait(processes, 600), f"{run} hangs"
                break
            ranks = drawn.choice([[0], [1], [0, 1]])
            took = kill(processes, ranks)
            kills += 1
            print(
                f"kill {kills}: ranks {ranks} after {moment:.1f} s, the "
                f"others ended {took:.1f} s later",
                flush=True,
            )
        codes = [process.returncode for process in processes]
        found, lines = state(run)
        apart = difference(found, arrays)
        same = apart == 0 and lines == log and codes == [0, 0]
        failed += not same
        print(
            f"{run.name}: the weights differ by {apart}, the log is "
            f"{'the same' if lines == log else 'another'}, exit {codes}",
            flush=True,
        )
    print(f"{kills} kills, {number} runs, {failed} with other results")
    return failed


if __name__ == "__main__":
    sys.exit(main())
