"""A dictionary from word alignments, and its effect on unknown words.

    LUONG_KERAS_DATA=folder python benchmarks/dictionary.py
    LUONG_KERAS_DATA=folder python benchmarks/dictionary.py \
        --run-dir runs/wmt10k --train

`folder/wmt10k` holds the tokenised pairs train.10k and valid.100 as `.en.gz`
and `.de.gz`, and train.10k.align.gz with German-English links. Without a run
the dictionary is English-German. With a run it has the run's direction, and the
100 pairs are translated and scored by tokenised BLEU with unknown words kept,
copied, and translated by the dictionary. `--train` first trains the run, or
continues it: preset `small-fast` with words as tokens. The 100 pairs also
choose the model, so only the differences between the three scores are
meaningful.
"""

import dataclasses
import subprocess
import sys
from pathlib import Path

from speed.command_line import data_folder, make_parser

from luong_keras import PRESETS, override
from luong_keras.alignment.aer import parse_alignments
from luong_keras.alignment.dictionary import (
    aligned_word_pairs,
    read_dictionary,
    write_dictionary,
)
from luong_keras.data.text_files import read_pairs
from luong_keras.files.text_lines import read_lines
from luong_keras.recipe.stored_settings import run_config
from luong_keras.special_tokens import UNK

# The mark between the parts of a compound in the text of WMT.
HYPHEN = " ##AT##-##AT## "


def main() -> None:
    """Build the dictionary and, with a run, score its use."""
    parser = make_parser(__doc__)
    parser.add_argument("--run-dir")
    parser.add_argument("--train", action="store_true", help="train it first")
    parser.add_argument("--min-count", type=int, default=10)
    parser.add_argument("--output", default="runs/dictionary.txt")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE"
    )
    arguments = parser.parse_args()
    if arguments.train and not arguments.run_dir:
        sys.exit("--train needs --run-dir.")
    corpus = data_folder("wmt10k")
    if arguments.train:
        train(corpus, Path(arguments.run_dir), arguments.set)
    languages = "en", "de"
    if arguments.run_dir:
        config = run_config(arguments.run_dir)
        languages = config.data.source_language, config.data.target_language
    pairs = word_pairs(corpus, languages, arguments.min_count)
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_dictionary(output, pairs)
    words = read_dictionary(output)
    show(pairs, words)
    print(f"written to {output}")
    if arguments.run_dir:
        score(corpus, arguments.run_dir, config, words)


def sides(corpus, part, languages):
    """Return the source and target lines of `train.10k` or `valid.100`."""
    paths = [corpus / f"{part}.{language}.gz" for language in languages]
    sources, targets = zip(*read_pairs(*paths), strict=True)
    return sources, targets


def word_pairs(corpus, languages, min_count):
    """Return the aligned word pairs of the training text."""
    sources, targets = sides(corpus, "train.10k", languages)
    lines = read_lines(corpus / "train.10k.align.gz")
    links = [row.possible for row in parse_alignments(lines)]
    if languages[0] == "en":
        links = [[(i, j) for j, i in row] for row in links]
    sentences = zip(
        [line.split() for line in sources],
        [line.split() for line in targets],
        links,
        strict=True,
    )
    return aligned_word_pairs(sentences, min_count=min_count)


def show(pairs, words, rows=10):
    """Print the dictionary's size and its most frequent pairs."""
    print(f"{len(pairs)} word pairs, {len(words)} source words")
    print("count  p(t|s)  pair")
    for pair in sorted(pairs, key=lambda pair: -pair.count)[:rows]:
        print(
            f"{pair.count:5}  {pair.probability:6.3f}  "
            f"{pair.source} - {pair.target}"
        )


def train(corpus, run_dir, assignments):
    """Train the preset `small-fast` on words separated by spaces."""
    from luong_keras.text.word_tokenizer import WordTokenizer

    settings = [
        f"data.train={corpus / 'train.10k'}",
        f"data.dev={corpus / 'valid.100'}",
        f"data.test={corpus / 'valid.100'}",
        "data.tokenizer=words",
        "data.joint_vocabulary=false",
        *assignments,
    ]
    config = override(PRESETS["small-fast"], settings)
    data, model = config.data, config.model
    lines = sides(
        corpus, "train.10k", (data.source_language, data.target_language)
    )
    sizes = model.source_vocabulary_size, model.target_vocabulary_size
    # Training uses the vocabularies that it finds in the run folder.
    for name, side, size in zip(
        ("source_vocabulary", "target_vocabulary"), lines, sizes, strict=True
    ):
        if not (run_dir / f"{name}.json").exists():
            tokenizer = WordTokenizer.train(side, size, pretokenized=True)
            tokenizer.save(run_dir, name)
    command = [sys.executable, "-m", "luong_keras", "train"]
    command += ["--preset", "small-fast", "--run-dir", str(run_dir)]
    subprocess.run([*command, "--set", *settings], check=True)


def score(corpus, run_dir, config, dictionary):
    """Print BLEU of the 100 pairs for each treatment of unknown words."""
    from sacrebleu.metrics.bleu import BLEU

    from luong_keras import Translator

    if config.data.tokenizer != "words":
        sys.exit(f"{run_dir} has subwords, which know no unknown words.")
    decoding = dataclasses.replace(config.decoding, replace_unknown=False)
    translator = Translator.from_run(run_dir, decoding=decoding)
    languages = config.data.source_language, config.data.target_language
    sources, targets = sides(corpus, "valid.100", languages)
    references = [
        " ".join(line.split()).replace(HYPHEN, "-") for line in targets
    ]
    best = [found[0] for found in translator.nbest(sources)]
    ways = {
        "none": [t.tokens for t in best],
        "copied": [replaced(t, {}) for t in best],
        "dictionary": [replaced(t, dictionary) for t in best],
    }
    unknown = [each for t in best for each in source_words(t) if each]
    translated = sum(word in dictionary for word in unknown)
    kept = sum(line.count(UNK) for line in ways["copied"])
    print(
        f"{sum(len(t.tokens) for t in best)} words, of them unknown: "
        f"{translated} in the dictionary, {len(unknown) - translated} not, "
        f"{kept} without a link"
    )
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    for name, lines in ways.items():
        hypotheses = [" ".join(words).replace(HYPHEN, "-") for words in lines]
        score = bleu.corpus_score(hypotheses, [references]).score
        print(f"{name:>10}  BLEU {score:5.2f}  {bleu.get_signature()}")


def source_words(translation):
    """Return the linked source word of every unknown word, else None."""
    source = translation.source_tokens
    links = {j: source[i] for i, j in translation.links}
    return [
        links.get(j) if word == UNK else None
        for j, word in enumerate(translation.tokens)
    ]


def replaced(translation, dictionary):
    """Return the translation with unknown words translated or copied."""
    return [
        word if source is None else dictionary.get(source, source)
        for word, source in zip(
            translation.tokens, source_words(translation), strict=True
        )
    ]


if __name__ == "__main__":
    main()
