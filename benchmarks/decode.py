r"""Time of beam and greedy search against other programs, by turns.

    python benchmarks/decode.py --python torch=PATH --python addons=PATH

Every program translates random sentences of `--length` words into exactly as
many words: no sentence may end earlier. Ours returns words, scores and the
attention weights of every hypothesis, the peers return words and scores.
"shortlist" is ours with 2,000 words, including the gather of their weights,
"before" ours of another checkout:

    python benchmarks/decode.py --before ../luong-keras-0.1 \
        --programs ours --reference "before float32"
"""

from pathlib import Path

from speed import driver
from speed.configurations import CONFIGURATIONS

OURS = driver.Program("ours", "ours_model:decoding")
PROGRAMS = driver.by_name(
    OURS,
    driver.Program("shortlist", OURS.make, {"shortlist": 2000}),
    driver.Program("torch", "torch_model:decoding", python="torch"),
    driver.Program("addons", "addons_model:decoding", python="addons"),
)


def decoding_programs(options, batch_size, beam_size):
    """Return one program per name and supported precision."""
    arguments = {
        "configuration": options.config,
        "batch_size": batch_size,
        "beam_size": beam_size,
        "length": options.length,
    }
    programs = [PROGRAMS[name] for name in options.programs]
    programs += driver.before(options, OURS)
    return driver.in_precisions(programs, options.precision, arguments)


def main() -> None:
    """Print and write one table per batch size and beam size."""
    parser = driver.parser(__doc__, 7, 3, "torch float32")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--beam-sizes", type=int, nargs="+", default=[1, 10])
    driver.add_precision(parser)
    parser.add_argument(
        "--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS)
    )
    parser.add_argument(
        "--before", type=Path, help="checkout of this project to compare with"
    )
    options = parser.parse_args()
    driver.finish(options, f"decode-{options.config}")
    written = driver.Report(options)
    for beam_size in options.beam_sizes:
        for batch_size in options.batch_sizes:
            programs = decoding_programs(options, batch_size, beam_size)
            results = driver.measure(programs, options)
            written.environments(results)
            report(options, written, results, batch_size, beam_size)
    written.write(f"Search, {options.config}, {options.length} words")


def report(options, written, results, batch_size, beam_size):
    """Print and keep one table."""
    for name, found in results.items():
        length = found.rounds[-1]["length"]
        if length != options.length:
            written.say(f"{name} has stopped after {length} words")
    words = batch_size * options.length
    columns = {
        "words/s": lambda found: f"{words / found.median('wall'):,.0f}",
        "first run s": lambda found: (
            f"{found.first['wall'] * options.steps:.0f}"
        ),
    }
    search = "greedy" if beam_size == 1 else f"beam {beam_size}"
    group = f"{options.config}, batch {batch_size}, {search}"
    written.times(group, results, columns)


if __name__ == "__main__":
    main()
