"""Alignment error rate of a trained run on hand-aligned sentences.

    LUONG_KERAS_DATA=folder python benchmarks/alignment.py --run-dir RUN

`folder/alignments` holds europarl100 as `.en.gz` and `.de.gz` with
German-English links, 0-based and all sure: out of the domain of a run trained
on other text. The run's decoder is forced to produce each target, and each
target token is linked to the source token of its largest attention weight, in
the step that produces it and in the one that reads it; links of subwords are
links of their words. Sentences whose tokens are not their text are counted and
left out.
"""

import argparse
import os
import sys
from pathlib import Path

from luong_keras import Translator, config_from_dict
from luong_keras.alignment.aer import (
    AlignmentLinks,
    alignment_error_rate,
    best_links,
    parse_alignments,
)
from luong_keras.alignment.word_positions import word_positions
from luong_keras.data.parallel_text import read_lines
from luong_keras.tokenizers import preprocessors
from luong_keras.training import RunFolder


def main() -> None:
    """Prints the rate for each of the two choices of a step."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run-dir", required=True)
    arguments = parser.parse_args()
    if "LUONG_KERAS_DATA" not in os.environ:
        sys.exit("Set LUONG_KERAS_DATA to the folder that has alignments/.")
    data = config_from_dict(RunFolder(arguments.run_dir).read_config()).data
    translator = Translator.from_run(arguments.run_dir)
    languages = data.source_language, data.target_language
    sources, targets, gold = read_gold(languages)
    prepared = [
        [(prepare or str)(line) for line in lines]
        for prepare, lines in zip(
            preprocessors(data), (sources, targets), strict=True
        )
    ]
    tokens = [
        tokens_of(tokenizer, lines)
        for tokenizer, lines in zip(
            (translator.source_tokenizer, translator.target_tokenizer),
            prepared,
            strict=True,
        )
    ]
    weights = translator.alignments(sources, targets, with_end=True)
    for step in ("produces", "reads"):
        found, references, left_out = [], [], 0
        for row, matrix in enumerate(weights):
            try:
                places = [
                    word_positions(side[row], text[row].split())
                    for side, text in zip(tokens, prepared, strict=True)
                ]
            except ValueError:
                left_out += 1
                continue
            links = best_links(matrix, matrix.shape[1], len(matrix) - 1, step)
            found.append({(places[0][i], places[1][j]) for i, j in links})
            references.append(gold[row])
        rate = alignment_error_rate(found, references)
        print(
            f"{'-'.join(languages)}, step that {step} a word: AER "
            f"{100 * rate:.1f} % on {len(found)} sentences, {left_out} left out"
        )


def read_gold(languages):
    """Both sides and the links, source first."""
    folder = Path(os.environ["LUONG_KERAS_DATA"], "alignments")
    text = {
        language: list(read_lines(folder / f"europarl100.{language}.gz"))
        for language in ("de", "en")
    }
    links = parse_alignments(read_lines(folder / "europarl100.de-en.gz"))
    if languages == ("en", "de"):
        links = [
            AlignmentLinks(*({(j, i) for i, j in part} for part in both))
            for both in links
        ]
    return *(text[language] for language in languages), links


def tokens_of(tokenizer, lines):
    """The tokens of every line, as text."""
    return [
        [token.decode() for token in row]
        for row in tokenizer.tokens(lines).to_list()
    ]


if __name__ == "__main__":
    main()
