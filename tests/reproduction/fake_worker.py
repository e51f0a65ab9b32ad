"""Stands in for the worker: no Keras, and records that were made up.

What a task's training is called decides what becomes of it: `FAKE_FAILS` and
`FAKE_WAITS` in the environment name one that fails and one that waits for a
signal, `FAKE_KILLED` one that is killed.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main(path):
    task = json.loads(Path(path).read_text())
    if task["teacher"] is not None:
        for run in task["runs"]:
            assert Path(run, "trained").exists(), run
        note(task, "taught", *[Path(run).name for run in task["runs"]])
    if task["prepare"] is not None:
        name = Path(task["text"]).name
        if os.environ.get("FAKE_FAILS") in ("text", name):
            print("no such corpus")
            return 1
        Path(task["text"]).mkdir(parents=True, exist_ok=True)
        note(task, "prepared", Path(task["text"]).name)
        return 0
    names = [Path(run).name for run in task["runs"]]
    if task["train"] is not None:
        (name,) = names
        if name == os.environ.get("FAKE_FAILS"):
            print("the memory is full\n")
            return 1
        if name == os.environ.get("FAKE_KILLED"):
            os.kill(os.getpid(), signal.SIGKILL)
        if name == os.environ.get("FAKE_WAITS"):
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
            note(task, "waits", name)
            time.sleep(60)
        note(task, "trained", name)
        Path(task["runs"][0]).mkdir(exist_ok=True)
        Path(task["runs"][0], "trained").touch()
    for run in task["runs"]:
        assert Path(run, "trained").exists(), run
    for row in task["rows"]:
        note(task, "scored", row, *names)
    return 0


def note(task, *words):
    """Adds a line to what the test reads."""
    threads = os.environ["TF_NUM_INTRAOP_THREADS"]
    line = " ".join([*words, f"threads={threads}"])
    with Path(task["records"], "notes").open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
