"""Load of an export behind a double of TensorFlow Serving.

    python benchmarks/serving.py load --run-dir runs/multi30k
    python benchmarks/serving.py curve --run-dir runs/multi30k
    python benchmarks/serving.py sizes

The double batches and prints like the stock server, and runs the model in a
TensorFlow session. `load` starts two servers of an export, with batching by
`export/batching.config` and without, and measures them by turns. Its clients
send sentences of the run's test set, one per request, without a pause. `curve`
tries the parameters of batching. `sizes` exports untrained models and prints
start-up time and memory. The bytes are the size of a response with 32
translations. Server and clients share the machine's cores.
"""

import dataclasses
import itertools
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from speed import driver
from speed.command_line import make_parser
from speed.configurations import CONFIGURATIONS
from speed.served_model import BatchingProcess, export_untrained
from speed.server_load import FORMS, answer_bytes
from speed.worker import pin, resident_megabytes

from luong_keras import Translator
from luong_keras.data import load_datasets
from luong_keras.recipe.stored_settings import run_config
from luong_keras.serving import export_saved_model

SHIPPED = Path(__file__).parents[1] / "export" / "batching.config"


def main() -> None:
    """Print and write one table."""
    options = parse_options()
    options.output.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if options.cores:
        pin(options.cores)
    report = driver.Report(options)
    rows = {"load": load, "curve": curve, "sizes": sizes}[options.what](
        options, report
    )
    report.table(list(rows[0]), [[*row.values()] for row in rows])
    path = report.write_text()
    driver.write_csv(path.with_suffix(".csv"), rows)
    print(f"written to {path}.txt and .csv")


def parse_options():
    """Parse the options of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("load", "curve", "sizes"))
    parser.add_argument("--run-dir", help="a trained run, of load and curve")
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument(
        "--clients", type=int, nargs="+", default=[1, 4, 16, 64]
    )
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=["rows"])
    parser.add_argument(
        "--configs", nargs="+", choices=CONFIGURATIONS, default=["small"]
    )
    # Options of `curve`.
    parser.add_argument(
        "--max-batch-sizes", type=int, nargs="+", default=[8, 32]
    )
    parser.add_argument(
        "--batch-timeouts", type=int, nargs="+", default=[2000, 10_000]
    )
    parser.add_argument(
        "--batch-threads", type=int, nargs="+", default=[1, 2, 4]
    )
    parser.add_argument("--requests", type=int, default=320, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=0, help="0: all")
    parser.add_argument("--output", type=Path, default=Path("runs/benchmarks"))
    options = parser.parse_args()
    if options.what != "sizes" and not options.run_dir:
        parser.error(f"{options.what} needs --run-dir")
    options.table = f"serving-{options.what}"
    return options


def load(options, report):
    """Return rows per beam, form and number of clients, off and on."""
    rows = []
    for beam_size in options.beam_sizes:
        with tempfile.TemporaryDirectory() as folder:
            models = Path(folder) / "model"
            texts = export(options.run_dir, models, beam_size)
            servers = {
                "off": server(models),
                "on": server(models, SHIPPED),
            }
            try:
                sizes_told = {
                    form: answer_bytes(servers["on"], form, texts[:32])
                    for form in FORMS
                }
                report.say(f"beam {beam_size}, bytes of 32: {sizes_told}")
                for form, clients in itertools.product(
                    options.forms, options.clients
                ):
                    rows += compared(
                        options, servers, texts, beam_size, form, clients
                    )
            finally:
                for each in servers.values():
                    each.stop()
    return rows


def compared(options, servers, texts, beam_size, form, clients):
    """Measure both servers by turns; return rows of medians and ratios."""
    found = {batching: [] for batching in servers}
    for turn in range(options.rounds + 1):
        for batching, each in servers.items():
            measured = ask(each, form, texts, clients, options.requests)
            if turn:  # The first round warms up.
                found[batching].append(measured)
    pairs = list(zip(found["off"], found["on"], strict=True))
    gain = statistics.median(on["rate"] / off["rate"] for off, on in pairs)
    slower = statistics.median(on["p99"] / off["p99"] for off, on in pairs)
    rows = []
    for batching, rounds in found.items():
        row = {
            "beam": beam_size,
            "form": form,
            "clients": clients,
            "batching": batching,
        }
        row |= {
            name: f"{statistics.median(r[name] for r in rounds):.{digits}f}"
            for name, digits in (("p50", 0), ("p95", 0), ("p99", 0))
        }
        row["sentences/s"] = (
            f"{statistics.median(r['rate'] for r in rounds):.1f}"
        )
        row["on/off"] = f"{gain:.2f}" if batching == "on" else ""
        row["p99 on/off"] = f"{slower:.2f}" if batching == "on" else ""
        rows.append(row)
        print(row, flush=True)
    return rows


def curve(options, report):
    """Return rows of sentences per second and p99 by batching parameters."""
    rows = []
    clients = max(options.clients)
    parameters = {
        "max_batch_size": options.max_batch_sizes,
        "batch_timeout_micros": options.batch_timeouts,
        "num_batch_threads": options.batch_threads,
    }
    for beam_size in options.beam_sizes:
        with tempfile.TemporaryDirectory() as folder:
            models = Path(folder) / "model"
            texts = export(options.run_dir, models, beam_size)
            for values in itertools.product(*parameters.values()):
                chosen = dict(zip(parameters, values, strict=True))
                file = Path(folder) / "batching.config"
                file.write_text(
                    "".join(
                        f"{k} {{ value: {v} }}\n" for k, v in chosen.items()
                    )
                    + "max_enqueued_batches { value: 64 }\n"
                )
                each = server(models, file)
                try:
                    rounds = [
                        ask(each, "rows", texts, clients, options.requests)
                        for _ in range(options.rounds + 1)
                    ][1:]
                finally:
                    each.stop()
                rate = statistics.median(r["rate"] for r in rounds)
                p99 = statistics.median(r["p99"] for r in rounds)
                row = {"beam": beam_size, "clients": clients, **chosen}
                row |= {"p99": f"{p99:.0f}", "sentences/s": f"{rate:.1f}"}
                rows.append(row)
                print(row, flush=True)
    return rows


def sizes(options, report):
    """Return rows of start-up time and memory by model size and beam."""
    rows = []
    for name, beam_size in itertools.product(
        options.configs, options.beam_sizes
    ):
        with tempfile.TemporaryDirectory() as folder:
            models = Path(folder) / "model"
            began = time.perf_counter()
            export_untrained(name, models, beam_size=beam_size)
            exported = time.perf_counter() - began
            began = time.perf_counter()
            each = server(models)
            started = time.perf_counter() - began
            loaded = resident_megabytes("VmRSS", each.process.pid)
            each.stop()
            size = sum(
                path.stat().st_size
                for path in models.rglob("*")
                if path.is_file()
            )
        row = {
            "size": name,
            "beam": beam_size,
            "export MB": f"{size / 1e6:.1f}",
            "exported and checked s": f"{exported:.0f}",
            "served after s": f"{started:.1f}",
            "loaded MB": f"{loaded:,.0f}",
        }
        rows.append(row)
        print(row, flush=True)
    return rows


def server(models, batching=None):
    """Start the double, which has a thread for each client."""
    options = []
    if batching is not None:
        options += ["--batching-parameters-file", str(batching)]
    return BatchingProcess(models, *options)


def export(run_dir, models, beam_size):
    """Export version 1 and return sentences for it."""
    config = run_config(run_dir)
    decoding = dataclasses.replace(
        config.decoding, beam_size=beam_size, stack_size=None
    )
    translator = Translator.from_run(run_dir, decoding=decoding)
    export_saved_model(translator, models / "1")
    return [source for source, _ in load_datasets(config.data).test]


def ask(each, form, texts, clients, count):
    """Return latencies in ms and sentences per second of busy clients."""
    endless = itertools.cycle(texts)
    lines = list(itertools.islice(endless, count))
    sender = FORMS[form](each)

    def timed(line):
        began = time.perf_counter()
        sender([line])
        return time.perf_counter() - began

    with ThreadPoolExecutor(clients) as threads:
        began = time.perf_counter()
        latencies = list(threads.map(timed, lines))
        seconds = time.perf_counter() - began
    p50, p95, p99 = 1000 * np.percentile(latencies, [50, 95, 99])
    return {"p50": p50, "p95": p95, "p99": p99, "rate": count / seconds}


if __name__ == "__main__":
    main()
