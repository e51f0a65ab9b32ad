"""Speed of this library and PyTorch by turns on one GPU.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --tiny    # a quick test, also on a CPU
    python benchmarks/gpu.py --before CHECKOUT    # also another checkout
    python benchmarks/gpu.py --programs ours tensorflow tensorflow-xla

Needs a Python with JAX and PyTorch; "ours" and "before" run on JAX. With
TensorFlow, "tensorflow" is this library as a run compiles it, and
"tensorflow-xla" this library with `jit_compile=True`. The programs train the
paper's configuration (4 layers of 1000 units, 50,000 words, batches of 128
pairs of 25 words) and translate with a beam of 10; on a GPU both libraries may
round the factors of float32 products to TF32. PyTorch has no local attention,
so its decoder masks the scores outside the window.

The floor is an estimate of the shortest possible time of this model on this
card: the arithmetic at the measured rate of large products, the recurrent
weights read at every step at the measured bandwidth, and the measured latency
of the dependent products of the recurrence.
"""

from dataclasses import replace

from speed import batches, driver
from speed.configurations import CONFIGURATIONS

# Several libraries share the card.
ON_JAX = {
    "KERAS_BACKEND": "jax",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
ON_TENSORFLOW = {
    "KERAS_BACKEND": "tensorflow",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}
KINDS = ("ours", "torch", "torch-compile")
TENSORFLOW_KINDS = ("tensorflow", "tensorflow-xla")


def programs_of(options, task, arguments):
    """Return the programs of a task, in every precision."""
    ours = driver.Program("ours", f"ours_model:{task}", variables=ON_JAX)
    torch = driver.Program("torch", f"torch_model:{task}", python="torch")
    compiled = {"compiled": True}
    table = driver.by_name(
        ours,
        torch,
        replace(torch, name="torch-compile", arguments=compiled),
        replace(ours, name="tensorflow", variables=ON_TENSORFLOW),
        replace(
            ours,
            name="tensorflow-xla",
            arguments=compiled,
            variables=ON_TENSORFLOW,
        ),
        *driver.before(options, ours),
    )
    if task == "decoding":
        del table["torch-compile"]
    programs = [table[name] for name in options.programs if name in table]
    return driver.in_precisions(programs, options.precision, arguments)


def training_programs(options, attention, path):
    """Return the training programs of one attention."""
    return programs_of(
        options,
        "training",
        {
            "configuration": options.config,
            "batches": str(path),
            "attention": attention,
        },
    )


def decoding_programs(options, attention):
    """Return the search programs of one attention."""
    size = CONFIGURATIONS[options.config]
    return programs_of(
        options,
        "decoding",
        {
            "configuration": options.config,
            "attention": attention,
            "batch_size": size.batch_size,
            "beam_size": 10,
            "length": size.target_length,
        },
    )


def floor(options, written):
    """Print the rates of the card, and the floor of one training step."""
    size = CONFIGURATIONS[options.config]
    card = driver.Program("card", "torch_model:card", python="torch")
    sizes = {"batch_size": size.batch_size, "units": size.units}
    programs = driver.in_precisions([card], options.precision, sizes)
    results = driver.measure(programs, options)
    written.environments(results)
    shape = (size.batch_size, size.source_length, size.target_length)
    for name, found in results.items():
        rate, bandwidth, latency = (
            found.median(key) for key in ("rate", "bandwidth", "latency")
        )
        width = 2 if name.endswith("bfloat16") else 4
        # The forward and the backward pass run through the recurrence once.
        depth = size.sequential_products(shape) * 2
        parts = {
            "arithmetic": size.training_flops(shape) / rate,
            "weight reads": 2
            * width
            * size.recurrent_weight_reads(shape)
            / bandwidth,
            "loop latency": depth * latency,
        }
        written.say(
            f"{name}: {rate / 1e12:.3g} TFLOP/s, "
            f"{bandwidth / 1e9:.0f} GB/s, {latency * 1e6:.1f} us a dependent "
            "product; floor of a training step: "
            + ", ".join(f"{k} {1e3 * v:.2f} ms" for k, v in parts.items())
            + f", sum {1e3 * sum(parts.values()):.2f} ms"
        )
    written.say()


def main() -> None:
    """Print and write the tables."""
    parser = driver.parser(__doc__, 5, 10, "torch float32")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="paper")
    parser.add_argument("--tiny", action="store_true", help="--config tiny")
    driver.add_precision(parser)
    parser.add_argument(
        "--attention",
        nargs="+",
        choices=("global", "local"),
        default=["global", "local"],
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        choices=("train", "decode"),
        default=["train", "decode"],
    )
    parser.add_argument(
        "--programs",
        nargs="+",
        choices=KINDS + TENSORFLOW_KINDS,
        default=list(KINDS),
    )
    parser.add_argument(
        "--before", help="checkout of this project to compare with"
    )
    parser.set_defaults(cores=0)
    options = parser.parse_args()
    if options.before:
        options.programs.append("before")
    if options.tiny:
        options.config = "tiny"
    driver.finish(options, f"gpu-{options.config}", clock="wall")
    written = driver.Report(options)
    floor(options, written)
    made = batches.static_batches(options.config, 1)
    path = (options.output / f"{options.table}-batches.npz").resolve()
    batches.write_batches(path, made)
    size = CONFIGURATIONS[options.config]
    for attention in options.attention:
        if "train" in options.tasks:
            results = driver.measure(
                training_programs(options, attention, path), options
            )
            words = batches.count_words(made)
            report(written, f"train, {attention}", results, words)
        if "decode" in options.tasks:
            results = driver.measure(
                decoding_programs(options, attention), options
            )
            words = size.batch_size * size.target_length
            report(written, f"beam 10, {attention}", results, words)
    written.write(f"On one card, {options.config}")


def report(written, group, results, words):
    """Print and keep one table."""
    written.environments(results)
    columns = {
        "target words/s": lambda found: f"{words / found.median('wall'):,.0f}",
        "card's peak GB": lambda found: f"{found.first['card'] / 1e9:.1f}",
        "first run s": lambda found: (
            f"{found.first['wall'] * written.options.steps:.0f}"
        ),
    }
    written.times(group, results, columns)


if __name__ == "__main__":
    main()
