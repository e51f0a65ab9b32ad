"""Memory of training steps against other programs, one process at a time.

    python benchmarks/memory.py --python torch=PATH --python addons=PATH

The rise is the peak of resident memory during training steps minus the resident
memory after the model and the optimizer are built. The first run compiles and
warms up, later runs only train. The table also has the total, with imports.
"""

import statistics

from speed import driver
from train_step import add_model_arguments, training_programs, write_data


def main() -> None:
    """Print and write the table."""
    parser = driver.parser(__doc__, 2, 5, "torch float32")
    add_model_arguments(parser)
    options = parser.parse_args()
    driver.finish(options, f"memory-{options.config}-{options.data}")
    path, _ = write_data(options)
    programs = training_programs(options, path)
    results = {}
    for program in programs:
        results.update(driver.measure([program], options))
    report(options, results)


def report(options, results):
    """Print and write the results."""
    written = driver.Report(options)
    written.environments(results)
    group = f"{options.config} {options.data}"
    rises = {
        name: [peak - found.first["resident"] for peak in found.values("peak")]
        for name, found in results.items()
    }
    reference = driver.reference_of(results, options)
    rows = []
    for name, found in results.items():
        rise = statistics.median(rises[name])
        written.keep(group, name, found, rise=rises[name])
        rows.append(
            [
                name,
                f"{rise:.0f}",
                f"{rise / statistics.median(rises[reference]):.2f}",
                f"{found.first['peak'] - found.first['resident']:.0f}",
                f"{found.first['resident']:.0f}",
                f"{max(found.values('peak')):.0f}",
            ]
        )
    written.shown[group] = rises
    written.table(
        [
            "program",
            "rise MB",
            f"to {reference}",
            "rise of the first run MB",
            "built MB",
            "total peak MB",
        ],
        rows,
    )
    written.write(f"Memory of training, {group}", "rise, MB")


if __name__ == "__main__":
    main()
