"""`luong-keras lexicon`: the translations of words, for a shortlist."""

from dataclasses import dataclass
from pathlib import Path

from luong_keras.cli.parsing import Option
from luong_keras.config.checks import check_at_least
from luong_keras.files.path_checks import output_file
from luong_keras.tables import pluralize
from luong_keras.training.run_folder import RunFolder


@dataclass(frozen=True)
class Lexicon:
    """Write the target words or subwords that translate each source word.

    The file is for `--shortlist` of other commands and for the setting
    decoding.shortlist: a search then multiplies only with the weights of these
    words. The words are counted in the training text of the run, which the
    trained model aligns.
    """

    # the folder of the run
    run_dir: Path
    # the file to write; default: shortlist.txt in the folder of the run
    output: Option[Path | None] = None
    # maximum number of training pairs to count in, spread over the text
    pairs: int = 100_000
    # minimum number of times that two words must be aligned
    min_count: int = 1
    # best, last, or an epoch such as epoch-7; default: the weights
    # that the run scored and exported, by default the best
    weights: Option[str | None] = None


def run(arguments: Lexicon) -> int:
    """Count aligned words, write the file, and print its path."""
    check_at_least(
        1,
        **{"--pairs": arguments.pairs, "--min-count": arguments.min_count},
    )
    from luong_keras.alignment.dictionary import (
        aligned_word_pairs,
        write_dictionary,
    )
    from luong_keras.data.corpus import Corpus
    from luong_keras.recipe.aligned_text import model_links
    from luong_keras.translator import Translator

    folder = RunFolder(arguments.run_dir)
    output = output_file(arguments.output or folder.shortlist)
    translator = Translator.from_run(arguments.run_dir, arguments.weights)
    corpus = Corpus.open(folder.corpus)
    sentences = model_links(translator, corpus, arguments.pairs)
    pairs = aligned_word_pairs(sentences, min_count=arguments.min_count)
    if not pairs:
        raise ValueError(
            "Expected: words that are linked at least "
            f"{pluralize(arguments.min_count, 'time')} (--min-count). "
            "Received: none, so the shortlist would be empty. Give more text, "
            "or a smaller --min-count."
        )
    write_dictionary(output, pairs)
    words = len({pair.source for pair in pairs})
    print(
        f"{pluralize(len(pairs), 'pair')} of "
        f"{pluralize(words, 'source token')}: {output}"
    )
    return 0
