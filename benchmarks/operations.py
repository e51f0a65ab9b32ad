"""Time of a training step or a search, operation by operation.

    python benchmarks/operations.py --config medium --data multi30k
    python benchmarks/operations.py --config medium --search 1

Profiles this library with TensorFlow's profiler. The time of an operation
excludes the operations that it calls. The rest of the total is Keras and the
scheduling of operations.
"""

import os
import tempfile
import time
from collections import Counter
from pathlib import Path

from speed import batches, driver, worker
from speed.command_line import make_parser
from speed.configurations import CONFIGURATIONS

PRODUCTS = "MatMul"  # in the names of all matrix products


def parse_options():
    """Parse the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument("--data", choices=batches.MAKERS, default="static")
    parser.add_argument(
        "--precision", choices=("float32", "bfloat16"), default="float32"
    )
    parser.add_argument(
        "--search",
        type=int,
        metavar="SENTENCES",
        help="a search of 30 words instead of training",
    )
    parser.add_argument("--beam-size", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--cores", type=int, default=1)
    return parser.parse_args()


def build(options, folder):
    """Build the work to profile."""
    from speed import ours_model

    if options.search:
        return ours_model.decoding(
            options.config,
            options.search,
            options.beam_size,
            30,
            options.precision,
        )
    os.environ.update(driver.MEMORY_POOL)
    path = Path(folder, "batches.npz")
    count = options.steps if options.data == "multi30k" else 1
    made = batches.MAKERS[options.data](options.config, count)
    batches.write_batches(path, made)
    return ours_model.training(options.config, path, options.precision)


def profile(work, steps, folder):
    """Return the CPU seconds of a run, and the profiler's record."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    work.run(steps)
    tf.profiler.experimental.start(folder)
    before = time.process_time()
    work.run(steps)
    seconds = time.process_time() - before
    tf.profiler.experimental.stop()
    record = xplane_pb2.XSpace()
    (path,) = Path(folder).rglob("*.xplane.pb")
    record.ParseFromString(path.read_bytes())
    return seconds, record


def own_times(line, names):
    """Sum picoseconds of a thread by event name, without inner events."""
    total, running = Counter(), []
    for event in sorted(
        line.events, key=lambda event: (event.offset_ps, -event.duration_ps)
    ):
        while running and running[-1][1] <= event.offset_ps:
            running.pop()
        if running:
            total[running[-1][0]] -= event.duration_ps
        name = names[event.metadata_id].name
        total[name] += event.duration_ps
        running.append((name, event.offset_ps + event.duration_ps))
    return total


def operation_of(name):
    """Return `MatMul` for the event `some/node:MatMul`, None for no node."""
    node, colon, operation = name.rpartition(":")
    return operation if colon and not node.endswith(":") else None


def main() -> None:
    """Print the table."""
    options = parse_options()
    worker.pin(options.cores)
    for name in ("INTRAOP", "INTEROP"):
        os.environ[f"TF_NUM_{name}_THREADS"] = str(options.cores)
    with tempfile.TemporaryDirectory() as folder:
        work = build(options, folder)
        seconds, record = profile(work, options.steps, folder)
    total = Counter()
    for plane in record.planes:
        for line in plane.lines:
            times = own_times(line, plane.event_metadata)
            for name, picoseconds in times.items():
                total[operation_of(name)] += picoseconds
    total.pop(None, None)
    milliseconds = 1000 * seconds / options.steps
    products = sum(time for name, time in total.items() if PRODUCTS in name)
    rows = [("matrix products", products)]
    rows += [row for row in total.most_common(20) if PRODUCTS not in row[0]]
    print(f"{milliseconds:.0f} ms of CPU time a step")
    for name, picoseconds in rows:
        time_of = picoseconds / 1e9 / options.steps
        print(f"{time_of:8.1f} ms {time_of / milliseconds:6.1%}  {name}")


if __name__ == "__main__":
    main()
