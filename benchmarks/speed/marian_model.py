"""Peer Marian, with its trainer and its translator."""

import resource
import subprocess
import sys
import time
from pathlib import Path

import pymarian

from speed import marian_options
from speed.configurations import CONFIGURATIONS
from speed.worker import Work

FEW = 5  # updates of the training run whose time is subtracted


def epoch(configuration, text, vocabulary, folder):
    """Return training by the real program, without its start and its end.

    A run of some steps is two equal training runs of different lengths: `FEW`
    updates, and `FEW` updates plus the steps. The difference is the result.
    """
    size = CONFIGURATIONS[configuration]

    def trained(updates):
        """Train; return CPU seconds, wall seconds and target words."""
        model = Path(folder, f"{updates}.npz")
        more = [
            *("--after-batches", updates, "--disp-freq", updates),
            *("--no-reload", "--overwrite", "--tempdir", folder),
        ]
        given = marian_options.training(size, text, vocabulary, model, more)
        cpu, wall = _of_children(), time.perf_counter()
        found = subprocess.run(
            [sys.executable, "-m", "pymarian", *given],
            capture_output=True,
            text=True,
            check=False,
        )
        cpu, wall = _of_children() - cpu, time.perf_counter() - wall
        if found.returncode:
            sys.exit(found.stderr)
        for file in Path(folder).glob(f"{updates}.npz*"):
            file.unlink()
        return cpu, wall, marian_options.labels(found.stdout + found.stderr)

    def run(steps):
        few, many = trained(FEW), trained(FEW + steps)
        cpu, wall, words = (b - a for a, b in zip(few, many, strict=True))
        return {"cpu": cpu, "wall": wall, "words": words, "start": few[0]}

    return Work(run)


def _of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def translating(
    model, vocabulary, sentences_file, batch_size, beam_size, found_file, more
):
    """Return translations of a file by a trained model; write them once.

    The model is loaded before the measurement. `more` are further options.
    """
    given = marian_options.decoding(model, vocabulary, beam_size, batch_size)
    # Subwords, to count them; joining them takes almost no time.
    given += ["--quiet", "--quiet-translation", "--no-spm-decode", *more]
    translator = pymarian.Translator(" ".join(given))
    text = Path(sentences_file).read_text(encoding="utf-8")
    found = [line.split() for line in translator.translate(text).split("\n")]
    words = sum(len(line) + 1 for line in found)
    lines = ["".join(line).replace("▁", " ").strip() for line in found]
    Path(found_file).write_text("\n".join(lines), encoding="utf-8")

    def run(steps):
        for _ in range(steps):
            translator.translate(text)
        return {"words": steps * words}

    return Work(run)
