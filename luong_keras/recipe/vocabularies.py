"""The vocabularies of a run, and the token ids of its text."""

import collections
import dataclasses
import json
from collections.abc import Iterator, Sequence

import numpy as np

from luong_keras.config import DataConfig, RunConfig
from luong_keras.config.data import SentencePieceConfig
from luong_keras.config.values import with_values
from luong_keras.data.batch_order import shuffled_indices
from luong_keras.data.corpus import SIDES, Corpus
from luong_keras.data.token_ids import PairSelection, token_ids
from luong_keras.files.atomic_file import write_text
from luong_keras.files.path_checks import no_link, safe_join
from luong_keras.missing_package import needs
from luong_keras.progress import progress_bar, with_bar
from luong_keras.special_tokens import UNK_ID
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.preprocessing import Preprocessor, preprocessors
from luong_keras.text.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    VocabularySizeError,
)
from luong_keras.text.threads import batches_of
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder

# SentencePiece holds all its lines in memory, so it learns from a sample of a
# larger text. The sample is the same for every seed of a run.
SUBWORD_LINES = 2_000_000
_LINES_PER_CALL = 8192
# Tokens by which the maximum length exceeds 99.9 % of the training pairs.
_LIMIT_ROOM = 10
# The file, next to the text, that records what the vocabularies depend on.
_ORIGIN_FILE = "vocabularies.json"
# Fixed: the vocabulary must not depend on the seed of the training.
_SAMPLE_SEED = (0, 0)


def prepare_tokenizers(corpus: Corpus, config: RunConfig, run: RunFolder):
    """Load the two tokenizers of the run, or train them on the corpus."""
    names = ("source_vocabulary", "target_vocabulary")
    data, model = config.data, config.model
    is_saved = all((run.path / f"{name}.json").exists() for name in names)
    inherited = config.training.init_from is not None
    sizes = (model.source_vocabulary_size, model.target_vocabulary_size)
    # Everything that the vocabularies depend on.
    origin = json.dumps([corpus.fingerprint, sizes, dataclasses.asdict(data)])
    origin_path = no_link(run.corpus / _ORIGIN_FILE)
    if run.config.exists():
        is_current = True
    elif inherited:
        is_current = not data.new_words
    else:
        # An earlier, interrupted call may have had other settings.
        is_current = (
            origin_path.exists()
            and origin_path.read_text(encoding="utf-8") == origin
        )
    if is_saved and is_current:
        return [load_tokenizer(run.path, name) for name in names]
    origin_path.unlink(missing_ok=True)
    sides = (["source"], ["target"])
    if data.joint_vocabulary:
        sides = (["source", "target"],) * 2
    tokenizers: list[Tokenizer] = []
    for name, size, parts in zip(names, sizes, sides, strict=True):
        if data.joint_vocabulary and tokenizers:
            tokenizer = tokenizers[0]
        elif is_saved and inherited:
            path = safe_join(run.path, f"{name}{WordTokenizer.file_suffix}")
            old = WordTokenizer(path).words
            text_tokenizer = _train_word_tokenizer(corpus, parts, None, data)
            words = list(dict.fromkeys([*old, *text_tokenizer.words]))
            tokenizer = WordTokenizer.from_words(
                words[: len(old) + data.new_words], **text_tokenizer.options
            )
        elif data.tokenizer == "sentencepiece":
            tokenizer = _train_subword_tokenizer(corpus, parts, size, data)
        else:
            tokenizer = _train_word_tokenizer(corpus, parts, size, data)
        tokenizer.save(run.path, name)
        tokenizers.append(tokenizer)
    write_text(origin_path, origin)
    return tokenizers


def requested_sizes(run: RunFolder) -> tuple[int, int] | None:
    """Return the sizes from which the vocabularies were learnt, if known."""
    origin_path = no_link(run.corpus / _ORIGIN_FILE)
    try:
        _, sizes, _ = json.loads(origin_path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return tuple(sizes)


def check_symbols(data: DataConfig) -> None:
    """Check that the text preparation leaves the user's symbols unchanged.

    Raises:
        ValueError: If it changes a symbol, which no text would then contain.
    """
    for prepare in filter(None, preprocessors(data)):
        for symbol in data.sentencepiece.user_defined_symbols:
            prepared = prepare(symbol)
            if prepared != symbol:
                raise ValueError(
                    "data.sentencepiece.user_defined_symbols are symbols of "
                    f"the prepared text. Received: {symbol!r}, which "
                    "data.lowercase, data.normalize_punctuation or "
                    f"data.tokenize turns into {prepared!r}. Leave one out."
                )


def count_lengths(
    corpus: Corpus, tokenizers: Sequence[Tokenizer], config: RunConfig
) -> None:
    """Write the ids of all sentences, whose lengths determine the batches."""
    with progress_bar("encoding sentences", 2 * len(corpus)) as progress:
        for side, tokenizer in zip(SIDES, tokenizers, strict=True):
            token_ids(corpus, side, tokenizer, config.data.processes, progress)


def _train_word_tokenizer(
    corpus: Corpus,
    sides: Sequence[str],
    size: int | None,
    data: DataConfig,
) -> WordTokenizer:
    """Train a tokenizer on the most frequent words, or on all words."""
    lines = (line for side in sides for line in corpus.side_lines(side))
    what = f"counting words of the {' and '.join(sides)} text"
    return WordTokenizer.train(
        with_bar(lines, what, len(sides) * len(corpus)),
        size,
        pretokenized=data.tokenize or data.pretokenized,
        threads=data.processes,
    )


def _train_subword_tokenizer(
    corpus: Corpus, sides: Sequence[str], size: int, data: DataConfig
) -> SentencePieceTokenizer:
    """Train on the requested number of subwords, or the nearest possible."""
    options = dataclasses.asdict(data.sentencepiece)
    total = len(sides) * len(corpus)
    lines = min(total, SUBWORD_LINES)
    if lines < total:
        print(
            f"subwords are learnt from a sample: {lines:,} of {total:,} lines"
        )
    sampled = sampled_lines(corpus, sides, lines)
    try:
        return SentencePieceTokenizer.train(
            with_bar(sampled, "reading lines for subwords", lines),
            size,
            **options,
        )
    except VocabularySizeError as error:
        why = "is small" if error.nearest < size else "has many characters"
        if error.nearest > size and data.sentencepiece.byte_fallback:
            why += ", and there are 256 bytes"
        print(
            f"the {' and '.join(sides)} text {why}: {error.nearest} subwords "
            f"instead of {size}"
        )
        return SentencePieceTokenizer.train(
            sampled_lines(corpus, sides, lines), error.nearest, **options
        )


def sampled_lines(
    corpus: Corpus, sides: Sequence[str], maximum: int
) -> Iterator[str]:
    """Yield a sample of lines in order; it is always the same sample.

    Args:
        corpus: The text.
        sides: `"source"`, `"target"` or both.
        maximum: The number of lines; all lines if the sides have fewer.
    """
    count = len(corpus)
    total = len(sides) * count
    places = np.arange(min(maximum, total))
    chosen = np.sort(shuffled_indices(places, total, _SAMPLE_SEED))
    for index, side in enumerate(sides):
        start, stop = index * count, (index + 1) * count
        numbers = chosen[(chosen >= start) & (chosen < stop)] - start
        for part in batches_of(numbers, _LINES_PER_CALL):
            lines = corpus.side(side, np.array(part))
            yield from (line.decode() for line in lines)


def print_rewritten_references(
    references: Sequence[str], config: RunConfig
) -> None:
    """Print how many references no translation can equal, and why.

    The translations of a model have only normalized punctuation and, with
    subwords, only normalized characters. Case does not count.

    Args:
        references: The references of the validation.
        config: The settings, with the languages.
    """
    data, rule = config.data, SentencePieceConfig().normalization
    texts = [
        " ".join((line.lower() if data.lowercase else line).split())
        for line in references
    ]
    if data.normalize_punctuation:
        prepare = Preprocessor(data.target_language, tokenize=False)
        normal = [" ".join(prepare(text).split()) for text in texts]
        _print_changes(
            texts,
            normal,
            "data.normalize_punctuation rewrites",
            "data.normalize_punctuation=false",
        )
        texts = normal
    if (
        data.tokenizer != "sentencepiece"
        or data.sentencepiece.normalization != rule
    ):
        return
    with needs("sentencepiece"):
        import sentencepiece

    def normalized_by(rule: str) -> list[str]:
        normalizer = sentencepiece.SentencePieceNormalizer(
            rule_name=rule, escape_whitespaces=False
        )
        return [normalizer.normalize(text).strip() for text in texts]

    keeping = "nfkc" if normalized_by("nfkc") == texts else "identity"
    _print_changes(
        texts,
        normalized_by(rule),
        "the subwords rewrite",
        f"data.sentencepiece.normalization={keeping}",
    )


def _print_changes(
    texts: Sequence[str], rewritten: Sequence[str], cause: str, setting: str
) -> None:
    changes = [
        pair for pair in zip(texts, rewritten, strict=True) if len({*pair}) > 1
    ]
    for before, after in changes[:1]:
        print(
            f"{len(changes):,} of {len(texts):,} references of data.dev have "
            f"characters that {cause}, so no translation has them: "
            f"{before[:40]!r} becomes {after[:40]!r}. To keep them: --set "
            f"{setting}"
        )


def print_unknown_tokens(
    corpus: Corpus, tokenizers: Sequence[Tokenizer], config: RunConfig
) -> None:
    """Print the share of tokens that the parent's vocabularies lack."""
    if config.training.init_from is None:
        return
    subwords = config.data.tokenizer == "sentencepiece"
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        ids = token_ids(corpus, side, tokenizer)
        if not (count := ids.count(UNK_ID)):
            continue
        lines = corpus.side(side, np.arange(min(len(corpus), 10_000)))
        unknown = tokenizer.encode(lines).flat_values.numpy() == UNK_ID
        tokens = tokenizer.tokens(lines).flat_values.numpy()[unknown]
        common = collections.Counter(tokens.tolist()).most_common(5)
        share = count / ids.lengths.sum()
        amount = f"{share:.1%}" if share >= 0.001 else f"{count:,}"
        examples = ", ".join(repr(token.decode()) for token, _ in common)
        print(
            f"{amount} of the {side} tokens are unknown to the parent, which "
            f"can neither read nor write them{': ' * bool(common)}{examples}. "
            + (
                "A parent with data.sentencepiece.byte_fallback knows all."
                if subwords
                else "data.new_words adds words."
            )
        )


def fit_vocabulary_sizes(config: RunConfig, source, target) -> RunConfig:
    """Return settings with the vocabulary sizes of the tokenizers."""
    return with_values(
        config,
        {
            "model.source_vocabulary_size": source.vocabulary_size,
            "model.target_vocabulary_size": target.vocabulary_size,
        },
    )


def fit_length_limit(config: RunConfig, pairs: PairSelection) -> RunConfig:
    """Return settings with the maximum length of translations.

    Without `max_length_ratio`, a x S + b is fitted to the S source and T
    target tokens of the training pairs. a is 1.5 x the slope of the
    least-squares line of T over S, but at least `min_length_ratio` and 0. b
    covers 99.9 % of the pairs, plus 10 tokens.
    """
    decoding = config.decoding
    if decoding.max_length_ratio is not None:
        return config
    source = pairs.source_lengths[pairs.lines].astype("float64")
    target = pairs.target_lengths[pairs.lines]
    spread = source - source.mean()
    slope = spread @ target / (spread @ spread or 1)
    ratio = max(round(1.5 * slope, 4), decoding.min_length_ratio, 0.0)
    over = np.quantile(target - ratio * source, 0.999, method="higher")
    offset = round(max(0.0, float(over)) + _LIMIT_ROOM, 4)
    print(f"translations end at {ratio} x source tokens + {offset} symbols")
    return with_values(
        config,
        {
            "decoding.max_length_ratio": ratio,
            "decoding.max_length_offset": offset,
        },
    )
