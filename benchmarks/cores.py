r"""Speed-up of training steps and searches by several cores.

    python benchmarks/cores.py --python torch=PATH --python addons=PATH

Each program runs on one core and, in another process, on `--many` cores, by
turns. Independent matrix products measure the machine itself: one product on
one core, and one per core at the same time. Virtual cores that share a
processor's units gain less than their number, and so does every program on
them. "ours-parallel" trains on one micro-batch per core at the same time
(`training.parallel_microbatches`).
"""

import dataclasses
import statistics

from decode import PROGRAMS as SEARCHES
from speed import batches, driver
from speed.configurations import CONFIGURATIONS
from speed.independent_products import ONE_THREAD
from speed.worker import available_cores
from train_step import PROGRAMS as STEPS

PRODUCTS = "products"
PARALLEL = "ours-parallel"
NAMES = ("ours", PARALLEL, "torch", "addons", "naive")


def programs_of(options, path):
    """Return all programs, on one core and on many."""
    search = {
        "configuration": options.config,
        "batch_size": 32,
        "beam_size": 10,
        "length": 30,
    }
    steps = {"configuration": options.config, "batches": str(path)}
    made = []
    for cores in (1, options.many):
        parallel = driver.by_name(
            driver.Program(
                PARALLEL,
                STEPS["ours"].make,
                {"parallel_microbatches": cores},
            )
        )
        made.append(
            driver.Program(
                named(PRODUCTS, cores),
                "independent_products:at_once",
                {"count": cores},
                variables=ONE_THREAD,
                cores=cores,
            )
        )
        for what, table, arguments in (
            ("training", STEPS | parallel, steps),
            ("beam 10", SEARCHES, search),
        ):
            for name in options.programs:
                if name in table:
                    made.append(
                        dataclasses.replace(
                            table[name],
                            name=named(f"{what}, {name}", cores),
                            arguments=arguments | table[name].arguments,
                            variables=variables_of(what, name),
                            cores=cores,
                        )
                    )
    return made


def variables_of(what, name):
    """Return the environment variables of a program."""
    if what != "training":
        return {}
    threads = {"TF_NUM_INTRAOP_THREADS": "1"} if name == PARALLEL else {}
    return driver.MEMORY_POOL | threads


def named(what, cores):
    """Return the name of a program on that many cores."""
    return f"{what} on {cores}"


def speed_ups(results, many):
    """Return the speed-up by many cores, by name and round.

    For the products, it is the ratio of the products per time.
    """
    found = {}
    for name, one in results.items():
        what = name.removesuffix(" on 1")
        several = results.get(named(what, many))
        if what == name or several is None:
            continue
        work = many if what == PRODUCTS else 1
        pairs = zip(one.values("wall"), several.values("wall"), strict=True)
        found[what] = [work * a / b for a, b in pairs]
    return found


def main() -> None:
    """Print and write the table."""
    parser = driver.parser(__doc__, 7, 5, "")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument(
        "--many", type=int, default=available_cores(), help="default: all"
    )
    parser.add_argument("--programs", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    driver.finish(options, f"cores-{options.config}", "wall")
    path = options.output / f"{options.table}-batches.npz"
    batches.write_batches(path, batches.MAKERS["static"](options.config, 1))
    results = driver.measure(programs_of(options, path.resolve()), options)
    report(options, results)


def report(options, results):
    """Print and write the results."""
    written = driver.Report(options)
    written.environments(results)
    found = speed_ups(results, options.many)
    machine = statistics.median(found[PRODUCTS])
    rows = []
    for what, ratios in found.items():
        one, several = (
            results[named(what, cores)] for cores in (1, options.many)
        )
        rows.append(
            [
                what,
                *(f"{1e3 * x.median('wall'):.1f}" for x in (one, several)),
                driver.spread(ratios, ".2f"),
                f"{statistics.median(ratios) / machine:.0%}",
            ]
        )
        for found_rounds in (one, several):
            name = found_rounds.program.name
            written.keep(options.config, name, found_rounds, speed_up=ratios)
        written.shown.setdefault(options.config, {})[what] = ratios
    head = ["program", "ms on 1 core", f"on {options.many}", "speed-up"]
    written.table([*head, "of the products' gain"], rows)
    written.write(
        f"{options.many} cores over one, {options.config}", "times as fast"
    )


if __name__ == "__main__":
    main()
