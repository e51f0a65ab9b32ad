r"""Time of training and search, against Marian, measured by turns.

    LUONG_KERAS_DATA=folder python benchmarks/marian.py --python marian=PATH

`training` runs the trainer of each program on Multi30k, with its batches of 64
pairs of similar length, Adam and a clipped gradient. The times are for 1,000
target words, with `</s>` and without padding. Marian cannot pause: each round
trains twice from the start, with a few updates and with `--steps` more, and
takes the difference, which excludes loading and saving.

`search` translates the test set of Multi30k with models that both programs
have trained for `--epochs` epochs (once, in `--output`; Marian takes most of
that time), so sentences have natural ends. The times are for 1,000 produced
words, including `</s>`, with the models loaded before. "shortlist" has equally
many words of one lexicon in both programs. Lower-cased BLEU shows that both
models translate. `--int8` adds Marian's weights in 8 bits, which in version
1.12.42 do not translate: they change a recurrent model, and its sentences do
not end.

Marian's model differs from ours: its attention is Bahdanau's inside a decoder
layer of two cells, without input feeding, its first encoder layer has all units
in each direction while ours has half of them, and a layer of the embeddings'
width precedes its output layer.
"""

import sys

from speed import batches, driver, trained
from speed.configurations import CONFIGURATIONS

from luong_keras.inference.word_lists import (
    MAX_TRANSLATIONS,
    MIN_FREQUENT_WORDS,
)

SEARCHES = {"beam 10": (10, 32), "beam 5, one": (5, 1), "greedy": (1, 32)}
PARTS = ("training", "search")


def main() -> None:
    """Print and write a table for each part."""
    parser = driver.parser(__doc__, 5, 40, "marian")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES)
    )
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--epochs", type=int, default=trained.EPOCHS)
    parser.add_argument(
        "--int8", action="store_true", help="also Marian's weights in 8 bits"
    )
    options = parser.parse_args()
    driver.finish(options, f"marian-{options.config}")
    models = trained.Trained(options, options.config, options.epochs)
    written = driver.Report(options)
    if "training" in options.parts:
        results = driver.measure(training_programs(options), options)
        report(written, results, f"{options.config}, training", options.steps)
    if "search" in options.parts:
        path = models.path("test_2016_flickr.de", options.sentences)
        references = path.read_text(encoding="utf-8").split("\n")
        columns = {"BLEU": driver.bleu_column(options, references)}
        options.steps = 1
        for name in options.searches:
            programs = search_programs(options, models, *SEARCHES[name])
            results = driver.measure(programs, options)
            group = f"{options.config}, {name}"
            report(written, results, group, options.steps, columns)
    written.write(f"Beside Marian, {options.config}")


def training_programs(options):
    """Return the trainers of both programs, on the same subwords."""
    folder = (options.output / "marian").resolve()
    folder.mkdir(exist_ok=True)
    size = CONFIGURATIONS[options.config]
    pairs = batches.multi30k_pairs()
    _, tokenizer = batches.training_batches(
        pairs, size.batch_size, folder / "ours"
    )
    vocabulary = folder / "vocabulary.spm"
    vocabulary.write_bytes(tokenizer.file_bytes())
    text = [folder / "train.en", folder / "train.de"]
    for path, side in zip(text, zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(side) + "\n", encoding="utf-8")
    marian = {
        "configuration": options.config,
        "text": list(map(str, text)),
        "vocabulary": str(vocabulary),
        "folder": str(folder),
    }
    ours = {
        "configuration": options.config,
        "folder": str(folder / "float32"),
        "precision": "float32",
    }
    return [
        driver.Program(
            "ours", "ours_epoch:epoch", ours, variables=driver.MEMORY_POOL
        ),
        driver.Program("marian", "marian_model:epoch", marian, "marian"),
    ]


def search_programs(options, models, beam_size, batch_size):
    """Return both programs, with shortlists too, and Marian in int8."""
    shortlist, table = models.shortlist()
    sentences = models.path("test_2016_flickr.en", options.sentences)
    common = {
        "sentences_file": str(sentences),
        "batch_size": batch_size,
        "beam_size": beam_size,
    }

    def program(name, make, python, **own):
        found = str(driver.found_file(options, name))
        arguments = common | {"found_file": found} | own
        return driver.Program(name, make, arguments, python)

    def ours(name, **own):
        run = str(models.run())
        return program(name, "ours_model:translating", "ours", run=run, **own)

    def marian(name, model, *more):
        return program(
            name,
            "marian_model:translating",
            "marian",
            model=str(model),
            vocabulary=str(models.vocabulary()),
            more=list(map(str, more)),
        )

    programs = [ours("ours"), ours("ours shortlist", shortlist=str(shortlist))]
    try:
        model = models.marian()
        rounded = models.marian_int8() if options.int8 else None
    except driver.ProgramFailed as failure:
        print(f"left out: {failure}", file=sys.stderr)
        return programs
    words = MIN_FREQUENT_WORDS, MAX_TRANSLATIONS, 0
    programs += [
        marian("marian", model),
        marian("marian shortlist", model, "--shortlist", table, *words),
    ]
    if rounded is not None:
        programs.append(marian("marian int8", rounded))
    return programs


def report(written, results, group, steps, columns=None):
    """Print one table, per 1,000 words."""
    written.environments(results)
    driver.per_words(results, steps, 1000)
    common = {
        "words/s": lambda found: f"{1000 / found.median('wall'):,.0f}",
        "words": lambda found: f"{sum(found.values('words')):,}",
    }
    written.times(group, results, common | (columns or {}), "1,000 words")


if __name__ == "__main__":
    main()
