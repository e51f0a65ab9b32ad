"""Settings of the text that a run is trained on."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from luong_keras.config.checks import (
    AtLeastOne,
    Count,
    Coverage,
    Natural,
    Settings,
    Share,
)
from luong_keras.special_tokens import SPECIAL_TOKENS


@dataclass(frozen=True)
class FilterConfig(Settings):
    """Filters of training pairs.

    Training counts the pairs that each filter drops, and shows examples.
    """

    # drop pairs with one side more than this many times as long as the other,
    # such as 3
    length_ratio: AtLeastOne | None = None
    # unit of length_ratio: words between white space, or characters, for
    # scripts without white space
    length_unit: Literal["words", "characters"] = "words"
    identical: bool = False  # drop pairs whose sides are the same
    duplicates: bool = False  # drop repeated pairs, found by a 64-bit hash

    # Unicode scripts of the source and the target, such as Latin, Cyrillic or
    # Han+Hiragana+Katakana: drop pairs with fewer than half of a side's
    # letters in its script
    scripts: tuple[str, str] | None = None


@dataclass(frozen=True)
class SentencePieceConfig(Settings):
    """Settings of the subwords that SentencePiece learns."""

    # byte pair encoding, a unigram language model, or single characters
    model_type: Literal["bpe", "unigram", "char"] = "bpe"
    # nfkc: Unicode's compatibility form, which turns … into three dots and
    # half-width kana into full-width; nmt_ also drops control characters and
    # turns the zero width non-joiner of Persian into a space; _cf also folds
    # case. identity changes only runs of spaces
    normalization: Literal[
        "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"
    ] = "nmt_nfkc"
    # share of the text's characters that get a subword, such as 0.9995 for
    # scripts of thousands of characters; other characters become <unk>
    character_coverage: Coverage = 1.0
    # split a character without a subword into its UTF-8 bytes, which take 256
    # ids of the vocabulary, instead of <unk>
    byte_fallback: bool = False
    # symbols such as <x> that are always one token; each takes an id of the
    # vocabulary
    user_defined_symbols: tuple[str, ...] = ()

    def _check(self) -> None:
        symbols = self.user_defined_symbols
        for index, symbol in enumerate(symbols):
            if (
                symbol in SPECIAL_TOKENS
                or symbol in symbols[:index]
                # No white space, even in SentencePiece's form, or byte.
                or not re.fullmatch(r"(?!<0x..>$)[^\s\u2581]+", symbol)
            ):
                raise ValueError(
                    "user_defined_symbols are different words without white "
                    f"space, none of {', '.join(SPECIAL_TOKENS)} and no byte "
                    f"such as <0x41>. Received: {symbol!r}."
                )


@dataclass(frozen=True)
class DataConfig(Settings):
    """Settings of the training text and its tokenizers.

    `luong-keras train --help-all` and the comments beside the fields describe
    them.
    """

    # phrasebook (built in), files, or a tensorflow_datasets name
    dataset: str = "wmt14_translate"
    # code of the source language, such as de. If None, files have the languages
    # that name their columns; without such names, only Chinese, Japanese,
    # Korean and languages without spaces between words are recognised, by the
    # script of the files; named data sets are then English and German
    source_language: str | None = None
    target_language: str | None = None  # code of the target language, likewise
    # files: a file of both sides (.tsv, .csv, .jsonl, .tmx), the paths of a
    # source and a target file, or a prefix to which the language codes are
    # appended (train -> train.en), each plain or compressed (.gz, .xz, .zst
    # or .bz2); a list of several
    train: str | tuple[str | tuple[str, str], ...] | None = None
    # pairs that choose the best epoch: files as for train, held out of train if
    # None. WMT: sacreBLEU's name of a test set, wmt13 by default
    dev: str | tuple[str, str] | None = None
    # pairs to score at the end, likewise; WMT: wmt14/full by default, and wmt14
    # is the filtered set
    test: str | tuple[str, str] | None = None
    # source and target column of files of both sides: names in the first
    # line, JSON keys, TMX languages, or numbers from 1; guessed if None
    columns: tuple[str, str] | None = None
    # relative share of each epoch per source, such as 3 and 1, if train lists
    # several sources; if None, each epoch has every pair once
    weights: tuple[float, ...] | None = None
    train_size: Count | None = None  # phrasebook: pairs, at most 24,000
    # whole words, or subwords
    tokenizer: Literal["words", "sentencepiece"] = "words"
    sentencepiece: SentencePieceConfig = field(
        default_factory=SentencePieceConfig
    )
    # one vocabulary for both languages
    joint_vocabulary: bool = False
    # with tokenizer=words and training.init_from: the maximum number of words
    # to add to each vocabulary, the most frequent of this text that it lacks
    new_words: Natural = 0
    # write all letters in lower case; scores then ignore case
    lowercase: bool = False
    # write quotes, dashes and the like in one form, as sacremoses does; of the
    # scores, only bleu_tokenized then has references prepared in this way
    normalize_punctuation: bool = False
    # separate words from punctuation by spaces, as sacremoses does;
    # translations are joined again before they are scored
    tokenize: bool = False
    # the text is already tokenised: spaces separate its tokens, which are not
    # split or joined, and scores are of tokenised text
    pretokenized: bool = False
    max_length: Count = 50  # longer training pairs are filtered (section 4.1)
    # truncate: after max_length tokens; truncate_source_left: instead cut the
    # source's first tokens, so that a reversed source keeps what the authors'
    # program keeps
    over_long: Literal["drop", "truncate", "truncate_source_left"] = "drop"
    # sorted_pools: shuffle the corpus every epoch, then sort pools of 64
    # batches by length; authors: keep the order of the file and sort chunks
    # of 100 batches by target length
    batching: Literal["sorted_pools", "authors"] = "sorted_pools"
    # filters of training pairs; dropped pairs are counted and shown by examples
    filters: FilterConfig = field(default_factory=FilterConfig)
    # CPU cores that prepare the text, all by default; the result does not
    # depend on the number
    processes: Count | None = None
    # share of the training pairs that may be bad and are left out; with 0 the
    # first bad pair stops the run
    max_skipped: Share = 0.05

    @property
    def languages(self) -> tuple[str, str]:
        """Language codes used to find data sets, files and columns."""
        source, target = self.source_language, self.target_language
        return (
            source or ("de" if target == "en" else "en"),
            target or ("en" if source == "de" else "de"),
        )

    def _check(self) -> None:
        check_text(self)
        check_tokenizer(self)
        if self.new_words and self.tokenizer != "words":
            raise ValueError(
                "new_words adds whole words, and subwords spell new words "
                "already. Expected: tokenizer='words'. Received: "
                f"new_words={self.new_words} with tokenizer={self.tokenizer!r}."
            )


def check_tokenizer(data) -> None:
    """Check that the settings of the tokenizers are consistent."""
    subwords = data.sentencepiece
    kind = f"tokenizer={data.tokenizer!r}"
    if data.tokenizer == "words" and subwords != SentencePieceConfig():
        raise ValueError(
            "The settings of sentencepiece are those of subwords. Expected: "
            f"tokenizer='sentencepiece'. Received: {subwords} with {kind}."
        )
    names = ("tokenize", "normalize_punctuation")
    conflicts = [f"{name}=True" for name in names if getattr(data, name)]
    conflicts += [kind] * (data.tokenizer != "words")
    if data.pretokenized and conflicts:
        raise ValueError(
            "The tokens of pretokenized text stay as they are. Expected: "
            "tokenizer='words', without tokenize and normalize_punctuation. "
            f"Received: pretokenized=True with {' and '.join(conflicts)}."
        )


def check_text(data) -> None:
    """Check that the settings of the text fit the data set."""
    names = ["train"] * (data.dataset != "files")
    names += ["dev", "test"] * (data.dataset == "phrasebook")
    for name in names:
        if getattr(data, name) is not None:
            raise ValueError(
                f"The data set {data.dataset!r} would not use `{name}`. "
                "Expected: dataset='files'. Received: "
                f"{name}={getattr(data, name)!r:.200}."
            )
    weights = data.weights
    if weights is None:
        return
    if not weights or not all(0 < weight < math.inf for weight in weights):
        raise ValueError(
            "weights are positive, finite numbers, one for each source of "
            f"train. Received: weights={list(weights)}."
        )
    count = 1 if isinstance(data.train, str | None) else len(data.train)
    if len(weights) != count:
        raise ValueError(
            "weights must have one weight per source of train. Received: "
            f"{len(weights)} weights and train={data.train!r}."
        )
    if data.batching == "authors":
        raise ValueError(
            "batching='authors' takes the lines in their order, so no source "
            "can come more often. Received: weights with it. Leave one out."
        )
