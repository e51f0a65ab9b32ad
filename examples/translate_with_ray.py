"""Translate a text of any length with Ray Data (`pip install "ray[data]"`).

    python examples/translate_with_ray.py --run-dir runs/demo --workers 2 \
        text.txt translated.txt

Each worker is a process with its translator. Ray gives it the next lines when
it is ready, and restarts it if it dies. The output has one line for each input
line, in order. `text` may be a folder of files; a file is read as by
`luong-keras translate`, plain or compressed.

With `--score`, a line is source, tab, target, and the output is the
log-probability of each target. docs/scaling.md has the commands for a cluster.
"""

import argparse
import os
from pathlib import Path

import ray.data

from luong_keras.files.text_lines import find_text, read_lines


class Worker:
    """Translator or scorer of batches of lines."""

    def __init__(self, run_dirs, cores, score):
        os.environ["TF_NUM_INTRAOP_THREADS"] = str(cores)
        from luong_keras import Translator

        self.translator = Translator.from_run(run_dirs)
        self.answer = self.score if score else self.translator.translate

    def __call__(self, batch):
        return {"text": self.answer(batch["text"].tolist())}

    def score(self, lines):
        pairs = [line.split("\t") if line else ["", ""] for line in lines]
        if wrong := [pair for pair in pairs if len(pair) != 2]:
            raise ValueError(
                f"Expected: source, tab, target in a line. Received: {wrong[0]}"
            )
        found = self.translator.score(*zip(*pairs, strict=True))
        return [f"{each.log_probability:.6f}" for each in found]


def read_text(text):
    """Return the lines of a file, or of all files in a folder, in order."""
    files = sorted(filter(Path.is_file, text.rglob("*")))
    if not text.is_dir():
        files = [find_text(text)]

    def lines(row):
        return ({"text": line} for line in read_lines(row["item"]))

    paths = [str(file.resolve()) for file in files]
    return ray.data.from_items(paths).flat_map(lines)


def main():
    """Read, translate and write, all at the same time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--run-dir", type=Path, action="append", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cores", type=int, default=1, help="of a worker")
    parser.add_argument("--lines", type=int, default=1024, help="of a batch")
    parser.add_argument("--score", action="store_true")
    options = parser.parse_args()
    if "RAY_ADDRESS" not in os.environ:  # One machine: an extra core reads.
        ray.init(num_cpus=options.workers * options.cores + 1)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    run_dirs = [folder.resolve() for folder in options.run_dir]
    found = (
        read_text(options.text)
        .repartition(target_num_rows_per_block=options.lines)
        .map_batches(
            Worker,
            fn_constructor_args=(run_dirs, options.cores, options.score),
            compute=ray.data.ActorPoolStrategy(size=options.workers),
            num_cpus=options.cores,
            batch_size=options.lines,
        )
    )
    part = options.output.with_name(f"{options.output.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:
        for row in found.iter_rows():
            file.write(row["text"] + "\n")
    part.replace(options.output)


if __name__ == "__main__":
    main()
