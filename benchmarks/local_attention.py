"""Time of local attention by source length, measured by turns.

    python benchmarks/local_attention.py --python torch=PATH

One forward and backward pass through a decoder of one LSTM layer with input
feeding ("loop"), or only through the attention for all target steps at once
("parallel"). All programs use local-p, except "monotonic". `dense` scores the
whole source and masks it, `gather` reads the window of 2 D + 1 words. Ours
chooses between them.

    python benchmarks/local_attention.py --before ../luong-keras-0.1

compares ours with another checkout instead, with a table for each program. With
`--unknown-lengths` the graph does not know S and T, as in `model.fit` on
sentences of any length.
"""

from pathlib import Path

from speed import driver

SIZES = (32, 256, 20, 10)  # B, U, T, D


def our_programs(
    source_length, sizes, begin="ours", variables=None, unknown_lengths=False
):
    """Return the programs of this library, or of another checkout."""
    return [
        driver.Program(
            f"{begin} {prefix}{method}",
            "local_model:local_attention",
            {
                "source_length": source_length,
                "sizes": sizes,
                "method": method,
                "alignment": alignment,
                "unknown_lengths": unknown_lengths,
            },
            variables=variables or {},
        )
        for alignment, prefix in (
            ("predictive", ""),
            ("monotonic", "monotonic "),
        )
        for method in ("loop", "parallel")
    ]


def programs_by_table(length, options):
    """Return the programs that take turns, by the name of their table."""
    unknown = options.unknown_lengths
    ours = our_programs(length, options.sizes, unknown_lengths=unknown)
    if options.before is None:
        theirs = torch_programs(length, options.sizes)
        return {f"S = {length}": [*ours, *theirs]}
    before = our_programs(
        *(length, options.sizes, "before"),
        driver.of_checkout(options.before),
        unknown,
    )
    return {
        f"S = {length}, {own.name}": [other, own]
        for own, other in zip(ours, before, strict=True)
    }


def torch_programs(source_length, sizes):
    """Return the programs of PyTorch: masked sources, gathered windows."""
    arguments = {"source_length": source_length, "sizes": sizes}
    return [
        driver.Program(
            f"torch {kind} {'parallel' if parallel else 'loop'}",
            "torch_model:local_attention",
            {**arguments, "gather": kind == "gather", "parallel": parallel},
            "torch",
        )
        for parallel in (False, True)
        for kind in ("dense", "gather")
    ]


def main() -> None:
    """Print and write a table per length, and the growth of the times."""
    parser = driver.parser(__doc__, 7, 3, "torch dense loop")
    parser.add_argument(
        "--source-lengths", type=int, nargs="+", default=[50, 256, 1024, 4096]
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs=4,
        default=SIZES,
        metavar=("B", "U", "T", "D"),
        help="default: 32 256 20 10",
    )
    parser.add_argument(
        "--before", type=Path, help="checkout of this project to compare with"
    )
    parser.add_argument("--unknown-lengths", action="store_true")
    options = parser.parse_args()
    driver.finish(options, "local_attention")
    written = driver.Report(options)
    times = {}
    for length in options.source_lengths:
        for title, programs in programs_by_table(length, options).items():
            results = driver.measure(programs, options)
            written.environments(results)
            written.times(title, results)
            for name, found in results.items():
                times.setdefault(name, {})[length] = found.median("cpu")
    written.say("CPU ms by source length, and the last over the others")
    written.table(
        ["program", *options.source_lengths, "last / each"],
        [
            [
                name,
                *(f"{1e3 * found[s]:.1f}" for s in options.source_lengths),
                " ".join(
                    f"{found[options.source_lengths[-1]] / found[s]:.1f}"
                    for s in options.source_lengths[:-1]
                ),
            ]
            for name, found in times.items()
            if len(found) == len(options.source_lengths)
        ],
    )
    written.write("Local attention, forward and backward")


if __name__ == "__main__":
    main()
