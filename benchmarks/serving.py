"""Latency and throughput of an export behind the loopback server.

    python benchmarks/serving.py --run-dir runs/multi30k
    python benchmarks/serving.py --config paper --requests 20

For each beam size the run, or an untrained model of a configuration, is
exported and served by the loopback double of TensorFlow Serving: the same
runtime and protocol, requests not joined into batches. Clients send sentences
of the run's test set, or random ones of 25 words, by REST or gRPC: one client
with batches, then several clients at once with a sentence a request. Latency
is that of a request, seen by the client, after as many unmeasured requests
as there are clients.
"""

import argparse
import csv
import dataclasses
import itertools
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from speed import driver
from speed.batches import random_words
from speed.configurations import CONFIGURATIONS
from speed.served_model import LoopbackProcess, export_untrained
from speed.worker import pin, resident_megabytes

from luong_keras import (
    TranslationClient,
    Translator,
    config_from_dict,
)
from luong_keras.data import load_datasets
from luong_keras.serving import export_saved_model
from luong_keras.training import RunFolder

RANDOM_SENTENCES, RANDOM_LENGTH = 200, 25


def main() -> None:
    """Prints and writes one table a beam size."""
    options = parse_options()
    if options.cores:
        pin(options.cores)
    report, rows = driver.Report(options), []
    for beam_size in options.beam_sizes:
        with tempfile.TemporaryDirectory() as folder:
            models = Path(folder) / "model"
            began = time.perf_counter()
            texts = export(options, models, beam_size)
            exported = time.perf_counter() - began
            began = time.perf_counter()
            # All clients are answered at once.
            threads = str(max(options.clients, default=1) + 1)
            server = LoopbackProcess(
                models,
                *("--rest-api-num-threads", threads),
                *("--grpc-max-threads", threads),
            )
            started = time.perf_counter() - began
            try:
                loaded = resident_megabytes("VmRSS", server.process.pid)
                found = measure(options, server, texts)
                peak = resident_megabytes("VmHWM", server.process.pid)
            finally:
                server.stop()
        report.say(
            f"{options.run_dir or options.config}, beam {beam_size}: exported "
            f"and checked in {exported:.0f} s, served after {started:.1f} s; "
            f"memory of the server {loaded:,.0f} MB when loaded, at most "
            f"{peak:,.0f} MB"
        )
        head = ["clients", "batch", "p50 ms", "p95 ms", "p99 ms", "sentences/s"]
        report.table(head, [[*row.values()] for row in found])
        rows += [{"beam": beam_size, **row} for row in found]
    path = options.output / options.table
    path.with_suffix(".txt").write_text("\n".join(report.lines) + "\n")
    with open(path.with_suffix(".csv"), "w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"written to {path}.txt and .csv")


def parse_options():
    """The command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--run-dir", help="a trained run")
    model.add_argument("--config", choices=CONFIGURATIONS, help="untrained")
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument(
        "--batch-sizes", type=int, nargs="+", default=[1, 8, 32]
    )
    parser.add_argument("--clients", type=int, nargs="*", default=[4, 16])
    parser.add_argument("--requests", type=int, default=200, help="of each row")
    parser.add_argument("--protocol", choices=("rest", "grpc"), default="rest")
    parser.add_argument("--cores", type=int, default=0, help="0: all")
    parser.add_argument("--output", type=Path, default=Path("runs/benchmarks"))
    options = parser.parse_args()
    options.table = f"serving-{options.config or Path(options.run_dir).name}"
    options.output.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return options


def export(options, models, beam_size):
    """Exports version 1 and returns sentences for it."""
    if options.config:
        export_untrained(options.config, models, beam_size=beam_size)
        size = CONFIGURATIONS[options.config]
        ids = random_words(size, RANDOM_SENTENCES, RANDOM_LENGTH)
        return [" ".join(f"w{i}" for i in row) for row in ids]
    config = config_from_dict(RunFolder(options.run_dir).read_config())
    decoding = dataclasses.replace(
        config.decoding, beam_size=beam_size, stack_size=None
    )
    translator = Translator.from_run(options.run_dir, decoding=decoding)
    export_saved_model(translator, models / "1")
    return [source for source, _ in load_datasets(config.data).test]


def measure(options, server, texts):
    """One row for each number of clients and batch size."""
    settings = [(1, size) for size in options.batch_sizes]
    settings += [(clients, 1) for clients in options.clients]
    return [load(options, server, texts, *setting) for setting in settings]


def load(options, server, texts, clients, batch_size):
    """Latencies and throughput of clients that ask without a pause."""
    url, _, name = server.rest_url.partition("/v1/models/")
    if options.protocol == "grpc":
        url = f"grpc://{server.grpc_target}"
    endless = itertools.cycle(texts)
    requests = [
        list(itertools.islice(endless, batch_size))
        for _ in range(clients + options.requests)
    ]

    def ask(lines):
        began = time.perf_counter()
        client.translate(lines)
        return time.perf_counter() - began

    with (
        TranslationClient(
            url, name, timeout=600, batch_size=batch_size
        ) as client,
        ThreadPoolExecutor(clients) as threads,
    ):
        list(threads.map(ask, requests[:clients]))
        began = time.perf_counter()
        latencies = list(threads.map(ask, requests[clients:]))
        seconds = time.perf_counter() - began
    p50, p95, p99 = 1000 * np.percentile(latencies, [50, 95, 99])
    return {
        "clients": clients,
        "batch": batch_size,
        "p50 ms": f"{p50:.1f}",
        "p95 ms": f"{p95:.1f}",
        "p99 ms": f"{p99:.1f}",
        "sentences/s": f"{options.requests * batch_size / seconds:.1f}",
    }


if __name__ == "__main__":
    main()
