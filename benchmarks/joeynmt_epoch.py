"""Time of an epoch of Multi30k, against Joey NMT's trainer, by turns.

    LUONG_KERAS_DATA=folder python benchmarks/joeynmt_epoch.py \
        --python joeynmt=PATH

Both train a model of the same size on the same subwords with the same batch
size and optimizer, and use their input pipelines. Both have LSTM layers,
general attention and input feeding. The encoder is bidirectional with half of
the units each way, because Joey NMT 2.3 runs with no other. Joey NMT's decoder
has a bias in eq. 5 and none in the output layer, and its batches are random,
while ours have sentences of similar length. The times are for 1,000 target
words, without padding.
"""

import json

from speed import batches, driver
from speed.configurations import CONFIGURATIONS
from speed.joeynmt_config import run_config

EPOCH = 29_000  # pairs
SPECIAL = 4  # `<pad>`, `<unk>`, `<s>`, `</s>`


def write_text(folder, batch_size):
    """Write the subwords of Multi30k for Joey NMT."""
    pairs = batches.multi30k_pairs()
    _, tokenizer = batches.training_batches(pairs, batch_size, folder / "ours")
    words = tokenizer.lookup(range(tokenizer.vocabulary_size)).numpy()
    vocabulary = [word.decode() for word in words[SPECIAL:]]
    (folder / "vocabulary.txt").write_text(
        "\n".join(vocabulary) + "\n", encoding="utf-8"
    )
    for language, side in zip(
        ("en", "de"), zip(*pairs, strict=True), strict=True
    ):
        lines = [
            " ".join(word.decode() for word in row)
            for row in tokenizer.tokens(list(side)).to_list()
        ]
        for part, count in (("train", len(lines)), ("dev", 10)):
            text = "\n".join(lines[:count]) + "\n"
            (folder / f"{part}.{language}").write_text(text, encoding="utf-8")


def write_config(folder, size):
    """Write Joey NMT's configuration of the same model and training."""
    config = run_config(
        size,
        folder / "model",
        folder / "train",
        folder / "dev",
        {"level": "word", "voc_file": str(folder / "vocabulary.txt")},
        {
            "epochs": 100,
            # Only training is timed.
            "validation_freq": 10**9,
            "logging_freq": 10**9,
        },
    )
    (folder / "model").mkdir(exist_ok=True)
    path = folder / "config.yaml"
    # JSON is YAML too.
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    return path


def main() -> None:
    """Print and write the table."""
    parser = driver.parser(__doc__, None, 10, "joeynmt")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument(
        "--batches", type=int, help="how many; default: one epoch"
    )
    options = parser.parse_args()
    driver.finish(options, f"joeynmt_epoch-{options.config}")
    size = CONFIGURATIONS[options.config]
    wanted = options.batches or -(-EPOCH // size.batch_size)
    options.rounds = options.rounds or max(wanted // options.steps, 1)
    folder = (options.output / "joeynmt").resolve()
    folder.mkdir(exist_ok=True)
    write_text(folder, size.batch_size)
    programs = [
        driver.Program(
            "joeynmt",
            "joeynmt_model:epoch",
            {"config_file": str(write_config(folder, size))},
            "joeynmt",
        ),
        *(
            driver.Program(
                f"ours {precision}",
                "ours_epoch:epoch",
                {
                    "configuration": options.config,
                    "folder": str(folder / precision),
                    "precision": precision,
                },
                variables=driver.MEMORY_POOL,
            )
            for precision in ("float32", "bfloat16")
        ),
    ]
    report(options, driver.measure(programs, options))


def report(options, results):
    """Print and write the results."""
    written = driver.Report(options)
    written.environments(results)
    driver.per_words(results, options.steps, 1000)
    columns = {
        "words/s": lambda found: f"{1000 / found.median('wall'):,.0f}",
        "target words": lambda found: f"{sum(found.values('words')):,}",
    }
    group = f"{options.config}, {options.rounds * options.steps} batches"
    written.times(group, results, columns, unit="1,000 target words")
    written.write(f"Training on Multi30k, {group}")


if __name__ == "__main__":
    main()
