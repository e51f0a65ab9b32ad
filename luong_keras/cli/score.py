"""`luong-keras score`: the probability of given translations."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from luong_keras.cli.parsing import Option
from luong_keras.cli.settings_flags import override_search
from luong_keras.data.text_files import read_given_pairs
from luong_keras.recipe.stored_settings import run_config
from luong_keras.tables import pluralize


@dataclass(frozen=True)
class Score:
    """Print the probability of given translations under a trained run.

    Each pair gives one line of columns separated by tabs: the log-probability,
    the number of words or subwords with the end of the sentence, and the
    perplexity. Standard error gets the perplexity of all pairs together, and
    the number of pairs that were cut.
    """

    # one file of both sides (.tsv, .csv, .jsonl, .tmx), or a source and a
    # target file; plain or compressed (.gz, .xz, .zst, .bz2)
    files: Positional[tuple[Path, ...]]
    # the folder of the run
    run_dir: Path
    # best, last, or an epoch such as epoch-7; default: the weights
    # that the run scored and exported, by default the best
    weights: Option[str | None] = None
    # maximum number of words or subwords to read per side; default: the run's
    # decoding.max_source_length
    max_source_length: Option[int | None] = None


def run(arguments: Score) -> int:
    """Score the pairs and print one line per pair."""
    # Fails early if the run does not exist.
    config = run_config(arguments.run_dir)
    decoding = override_search(
        config.decoding,
        max_source_length=arguments.max_source_length,
    )
    pairs = list(read_given_pairs(arguments.files, config.data))
    from luong_keras.recipe.evaluation import Evaluation
    from luong_keras.translator import Translator

    translator = Translator.from_run(
        arguments.run_dir, arguments.weights, decoding
    )
    evaluation = Evaluation(translator, config.data)
    # Without the attention weights, which a million pairs have no room for.
    scores = evaluation.forced(pairs, alignments=False)
    for score in scores:
        words = len(score.tokens)
        perplexity = math.exp(-score.log_probability / words)
        print(f"{score.log_probability:.4f}\t{words}\t{perplexity:.3f}")
    words = sum(len(score.tokens) for score in scores)
    perplexity = evaluation.perplexity(scores)
    print(
        f"perplexity {perplexity:.3f} of "
        f"{pluralize(words, 'word')} in {pluralize(len(scores), 'pair')}",
        file=sys.stderr,
    )
    return 0
