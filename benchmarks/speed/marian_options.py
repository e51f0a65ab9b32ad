"""Command lines of the peer Marian, and the reader of its log."""

import re

# Megabytes that Marian reserves at once.
_WORKSPACE = ["--workspace", "2000"]


def training(size, text, vocabulary, model, more):
    """Return the options to train a recurrent model into an `.npz` file.

    Args:
        size: A `Configuration`.
        text: The paths of both sides.
        vocabulary: SentencePiece model of both sides.
        model: The file to write.
        more: Further options, such as the duration.
    """
    shape = {
        "--type": "s2s",
        "--dim-emb": size.units,
        "--dim-rnn": size.units,
        # One bidirectional layer, with unidirectional layers above it.
        "--enc-type": "bi-unidirectional",
        "--enc-depth": size.layers,
        "--enc-cell": "lstm",
        "--dec-depth": size.layers,
        "--dec-cell": "lstm",
        # One cell before the attention and one after it, the minimum.
        "--dec-cell-base-depth": 2,
    }
    trained = {
        "--mini-batch": size.batch_size,
        "--mini-batch-round-up": "false",
        "--maxi-batch": 64,
        "--max-length": 80,
        "--optimizer": "adam",
        "--learn-rate": 0.001,
        "--clip-norm": 1,
        "--seed": 1,
    }
    given = [str(part) for pair in (shape | trained).items() for part in pair]
    files = ["--train-sets", *text, "--vocabs", vocabulary, vocabulary]
    return [
        "train",
        *map(str, files),
        "--model",
        str(model),
        *given,
        "--dim-vocabs",
        *[str(size.vocabulary_size)] * 2,
        # This version stops if only one of the two is given.
        "--precision",
        "float32",
        "float32",
        "--cpu-threads",
        "1",
        "--data-threads",
        "1",
        *_WORKSPACE,
        *map(str, more),
    ]


def decoding(model, vocabulary, beam_size, batch_size, threads=1):
    """Return the options to translate batches of similar lengths."""
    given = {
        "--models": model,
        "--beam-size": beam_size,
        "--mini-batch": batch_size,
        "--maxi-batch": 1 if batch_size == 1 else 100,
        "--maxi-batch-sort": "none" if batch_size == 1 else "src",
        "--normalize": 1,
        "--max-length-factor": 2,
        "--cpu-threads": threads,
        "--data-threads": 1,
    }
    return [
        *(str(part) for pair in given.items() for part in pair),
        "--vocabs",
        str(vocabulary),
        str(vocabulary),
        *_WORKSPACE,
    ]


def labels(log):
    """Return the target words, with `</s>`, in the log of a training run.

    Example:
        >>> labels("Cost 8.1 * 1,408 @ 640 after 11,408 : Time 1.96s : …")
        11408
    """
    counts = re.findall(r"Cost \S+ \* [\d,]+ @ [\d,]+ after ([\d,]+)", log)
    if not counts:
        raise ValueError("Marian's log counts no words.")
    return int(counts[-1].replace(",", ""))


def lexical_table(entries):
    """Yield the lines of a lexicon for Marian's `--shortlist`.

    Args:
        entries: (source, target, probability).

    Yields:
        Lines `target source probability`.
    """
    for source, target, probability in entries:
        yield f"{target} {source} {probability:g}\n"
