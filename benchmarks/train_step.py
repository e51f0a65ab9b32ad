r"""Time of a training step, against other programs, measured by turns.

    python benchmarks/train_step.py --python torch=PATH --python addons=PATH
    LUONG_KERAS_DATA=folder python benchmarks/train_step.py --data multi30k
    python benchmarks/train_step.py --cells gru bahdanau
    python benchmarks/train_step.py --programs ours --before CHECKOUT \
        --reference "before float32"

`static` batches are random words without padding. `multi30k` batches come from
the library's input pipeline and differ in length. Every program runs the same
batches from one file. All programs train the same model: LSTM encoder, decoder
with input feeding and general attention, output layer with bias. Only
`keras-attention` has no input feeding. The share of the peak is the rate of the
model's matrix products, relative to the fastest product of two large matrices
in TensorFlow or PyTorch in the same rounds. Keras on torch, also with the naive
cell:

    python benchmarks/train_step.py --precision float32 \
        --python torch=PATH --python keras-on-torch=PATH \
        --programs ours-on-torch naive-on-torch torch

`ours-sampled` estimates its losses from 4,096 words of the vocabulary.
`ours-compiled` is ours on TensorFlow with `jit_compile=True`, which compiles
every length; its first run includes that. `ours-in-parts` sends a batch through
the model in four parts (`memory.py` shows the use). `before` is ours of another
checkout.

`--cells` compares forms of this library instead: decoders of several cells,
with its backward loop and with automatic differentiation, in the whole training
step and only in the decoder, forward and backward.
"""

from pathlib import Path

from speed import batches, driver
from speed.configurations import CONFIGURATIONS

SAMPLED = 4096  # words of "ours-sampled"
OURS = driver.Program("ours", "ours_model:training")
TORCH = driver.Program("torch", "torch_model:training", python="torch")
NAIVE = driver.Program("naive", "naive_model:training")
# Keras on torch, for an environment that has both.
ON_TORCH = {
    "python": "keras-on-torch",
    "variables": {"KERAS_BACKEND": "torch"},
}
PROGRAMS = driver.by_name(
    OURS,
    driver.Program(
        "ours-sampled", OURS.make, {"settings": {"sampled": SAMPLED}}
    ),
    driver.Program("ours-compiled", OURS.make, {"compiled": True}),
    driver.Program("ours-in-parts", OURS.make, {"microbatches": 4}),
    TORCH,
    driver.Program("torch-compile", TORCH.make, {"compiled": True}, "torch"),
    driver.Program("addons", "addons_model:training", python="addons"),
    NAIVE,
    driver.Program("keras-attention", NAIVE.make, {"input_feeding": False}),
    driver.Program("ours-on-torch", OURS.make, **ON_TORCH),
    driver.Program("naive-on-torch", NAIVE.make, **ON_TORCH),
)
# Name of a cell -> settings of its model.
CELLS = {
    "lstm": {},
    "gru": {"recurrence": "gru"},
    "bahdanau": {
        "recurrence": "gru",
        "decoder": "bahdanau",
        "attention": {"kind": "global", "score_mode": "concat"},
    },
}
ENCODERS = {
    "forward": {},
    "reversed": {"reverse_source": True},
    "bidirectional": {"bidirectional": True},
}
AUTOMATIC = " automatic"
CELL_PROGRAMS = driver.by_name(
    *(
        driver.Program(
            f"{cell}{part}{way}",
            f"ours_model:{make}",
            {"settings": settings, "deferred": way != AUTOMATIC},
        )
        for cell, settings in CELLS.items()
        for part, make in (("", "training"), (" decoder", "decoder"))
        for way in ("", AUTOMATIC)
    )
)


def training_programs(options, path):
    """Return one program per name and supported precision."""
    table = PROGRAMS
    if options.cells:
        table = {
            name: program
            for name, program in CELL_PROGRAMS.items()
            if name.split()[0] in options.cells
        }
    names = options.programs or [
        name
        for name in table
        if table[name].python != ON_TORCH["python"]
        and name not in ("ours-sampled", "ours-compiled", "ours-in-parts")
        and (options.data == "static" or name != "torch-compile")
    ]
    common = {"configuration": options.config, "batches": str(path)}
    if options.encoder != "forward":
        common["settings"] = ENCODERS[options.encoder]
    programs = [table[name] for name in names]
    programs += driver.before(options, OURS)
    return driver.in_precisions(
        programs, options.precision, common, driver.MEMORY_POOL
    )


def peak_programs(precisions):
    """Return the products of large matrices, in both libraries."""
    programs = [
        driver.Program(
            f"peak {python}", f"{python}_model:matrix_product", python=python
        )
        for python in ("ours", "torch")
    ]
    return driver.in_precisions(programs, precisions, {})


def write_data(options):
    """Make the batches of all programs; return their file and the batches."""
    count = 1 if options.data == "static" else options.steps
    made = batches.MAKERS[options.data](options.config, count)
    path = options.output / f"{options.table}-batches.npz"
    batches.write_batches(path, made)
    return path.resolve(), made


def add_model_arguments(parser):
    """Add the arguments for model, data and programs."""
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument("--data", choices=batches.MAKERS, default="static")
    driver.add_precision(parser)
    parser.add_argument(
        "--programs",
        nargs="+",
        choices=PROGRAMS,
        help="default: all but those on-torch, ours-sampled, ours-compiled and "
        "ours-in-parts; torch-compile, which compiles each length anew, only "
        "on static data",
    )
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=())
    parser.add_argument(
        "--encoder",
        choices=ENCODERS,
        default="forward",
        help="other encoders need --programs ours",
    )
    parser.add_argument("--before", type=Path, help="another checkout")


def main() -> None:
    """Print and write the table."""
    parser = driver.parser(__doc__, 7, 10, "torch float32")
    add_model_arguments(parser)
    options = parser.parse_args()
    if options.encoder != "forward" and options.programs != ["ours"]:
        parser.error("--encoder needs --programs ours")
    kind = "cells" if options.cells else "train_step"
    driver.finish(options, f"{kind}-{options.config}-{options.data}")
    path, made = write_data(options)
    programs = training_programs(options, path)
    if options.cells:
        report_cells(options, driver.measure(programs, options))
        return
    programs += peak_programs(options.precision)
    measured = driver.measure(programs, options)
    peaks = {n: r for n, r in measured.items() if n.startswith("peak")}
    results = {n: r for n, r in measured.items() if n not in peaks}
    report(options, results, peaks, made)


def report(options, results, peaks, made):
    """Print and write the results on the batches `made`."""
    words = batches.count_words(made) / len(made)
    size = CONFIGURATIONS[options.config]
    flops = sum(
        size.training_flops(batches.batch_shape(batch)) for batch in made
    ) / len(made)
    written = driver.Report(options)
    written.environments(results)
    written.say(
        f"{options.config}, {options.data}: {words:.0f} target words and "
        f"{flops / 1e9:.1f} GFLOP of matrix products a step"
    )
    fastest = {}
    for name, found in peaks.items():
        rate = found.rounds[0]["flops"] / found.median("cpu")
        precision = name.split()[-1]
        fastest[precision] = max(fastest.get(precision, 0), rate)
        written.say(f"{name}: {rate / 1e9:.0f} GFLOP/s")
    written.say()

    def share(found):
        peak = fastest.get(found.program.name.split()[-1])
        return f"{flops / found.median('cpu') / peak:.0%}" if peak else "-"

    columns = {
        "words/s": lambda found: f"{words / found.median('wall'):,.0f}",
        "share of peak": share,
        "first run s": lambda found: (
            f"{found.first['wall'] * options.steps:.0f}"
        ),
        "loss": lambda found: f"{found.rounds[-1]['loss']:.3f}",
    }
    written.times(f"{options.config} {options.data}", results, columns)
    written.write(f"Training step, {options.config}, {options.data}")


def report_cells(options, results):
    """Print and write a table per cell, part and precision."""
    written = driver.Report(options)
    written.environments(results)
    for name in list(results):
        *words, precision = name.split()
        automatic = f"{' '.join(words)}{AUTOMATIC} {precision}"
        if automatic in results:
            options.reference = automatic
            pair = {n: results[n] for n in (automatic, name)}
            written.times(name, pair)
    written.write(f"Cells, {options.config}, {options.data}")


if __name__ == "__main__":
    main()
