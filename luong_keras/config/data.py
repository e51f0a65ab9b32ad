"""The settings of the text that a run is trained on."""

from dataclasses import dataclass, field
from typing import Literal

from luong_keras.config.checks import check_at_least_one, check_share


@dataclass(frozen=True)
class FilterConfig:
    """Filters of training pairs.

    What each leaves out is counted and shown by examples.
    """

    # one side longer than that many times the other, such as 3
    length_ratio: float | None = None
    # white space sets words apart; characters for scripts without it
    length_unit: Literal["words", "characters"] = "words"
    identical: bool = False  # both sides are the same
    duplicates: bool = False  # a pair that came before, by a hash of 64 bits
    # of the source and of the target, a Unicode script such as Latin or
    # Cyrillic, or several, as in Han+Hiragana+Katakana: fewer than half of a
    # side's letters are of it
    scripts: tuple[str, str] | None = None

    __pydantic_config__ = {"extra": "forbid"}

    def __post_init__(self):
        ratio = self.length_ratio
        if ratio is not None and ratio < 1:
            raise ValueError(
                "length_ratio is the longer side by the shorter one. "
                f"Expected: at least 1, such as 3. Received: {ratio}."
            )


@dataclass(frozen=True)
class DataConfig:
    """The training text and its tokenizers."""

    # phrasebook (built in), files, or a tensorflow_datasets name
    dataset: str = "wmt14_translate"
    # codes such as de; where None, the script of files tells Chinese, Japanese,
    # Korean and the languages without spaces between words, and nothing else
    # is known. Data sets by name are then English and German
    source_language: str | None = None
    target_language: str | None = None
    # files: a file of both sides (.tsv, .csv, .jsonl, .tmx), the paths of a
    # source and a target file, or a prefix to which the language codes are
    # appended (train -> train.en), each plain or packed (.gz, .xz, .zst,
    # .bz2); of train several of these; without dev or test, pairs of train are
    # held out
    train: str | tuple[str | tuple[str, str], ...] | None = None
    dev: str | tuple[str, str] | None = None
    test: str | tuple[str, str] | None = None
    # source and target column of such files: names in their first line, keys
    # of JSON, languages of TMX, or numbers from 1; guessed where None
    columns: tuple[str, str] | None = None
    # several sources in train: how much of an epoch is of each, relative to
    # the others, such as 3 and 1; where None, every pair comes once an epoch
    weights: tuple[float, ...] | None = None
    # WMT: sacrebleu test sets, and a file of line numbers to keep
    dev_set: str = "wmt13"
    test_set: str = "wmt14/full"
    test_subset: str | None = None
    train_size: int | None = None  # phrasebook: pairs, at most 24,000
    tokenizer: Literal["words", "sentencepiece"] = "words"
    # one vocabulary for both languages
    joint_vocabulary: bool = False
    # words, with training.init_from: the most frequent words of this text that
    # its vocabularies lack are added to them, at most that many to each
    new_words: int = 0
    # sacremoses, before anything else; scores are then of such text
    lowercase: bool = False
    normalize_punctuation: bool = False
    tokenize: bool = False
    max_length: int = 50  # longer training pairs are filtered (section 4.1)
    # truncate: after max_length tokens; truncate_source_left: the source's
    # first tokens go instead, so that a reversed source keeps what the authors'
    # program keeps
    over_long: Literal["drop", "truncate", "truncate_source_left"] = "drop"
    # sorted_pools: the corpus shuffled anew every epoch, pools of 64 batches
    # sorted by length; authors: in the order of the file, chunks of 100
    # batches sorted by target length
    batching: Literal["sorted_pools", "authors"] = "sorted_pools"
    # training pairs that are left out, counted and shown by examples
    filters: FilterConfig = field(default_factory=FilterConfig)
    # lines from which subwords are learnt; a sample of them, the same for
    # every seed, where there are more, for they are all in memory at once
    subword_lines: int | None = 2_000_000
    # sentencepiece: each merge of two pieces is left out with this
    # probability, anew every epoch, so that the words of the training text are
    # split in many ways (BPE-dropout, Provilkov et al. 2020; theirs 0.1)
    subword_dropout: float = 0.0
    # cores that prepare the text, all of them where None; the result is the
    # same
    processes: int | None = None
    on_bad_line: Literal["error", "skip"] = "skip"
    max_skipped: float = 0.05  # share of the training pairs

    __pydantic_config__ = {"extra": "forbid"}

    @property
    def languages(self) -> tuple[str, str]:
        """Those that data sets, files and columns are looked for by."""
        source, target = self.source_language, self.target_language
        return (
            source or ("de" if target == "en" else "en"),
            target or ("en" if source == "de" else "de"),
        )

    def __post_init__(self):
        check_at_least_one(
            self, "max_length", "train_size", "subword_lines", "processes"
        )
        check_text(self)
        check_share(self, "subword_dropout")
        if self.subword_dropout and self.tokenizer != "sentencepiece":
            raise ValueError(
                "subword_dropout leaves out merges of subwords. Expected: "
                "tokenizer='sentencepiece'. Received: "
                f"subword_dropout={self.subword_dropout} with "
                f"tokenizer={self.tokenizer!r}."
            )
        if self.new_words < 0 or (self.new_words and self.tokenizer != "words"):
            raise ValueError(
                "new_words is a number of words, and subwords spell new words "
                "already. Expected: at least 0, and tokenizer='words'. "
                f"Received: new_words={self.new_words} with "
                f"tokenizer={self.tokenizer!r}."
            )
        if not 0 <= self.max_skipped <= 1:
            raise ValueError(
                "max_skipped is a share of the training pairs. Expected: 0 "
                f"to 1. Received: max_skipped={self.max_skipped}."
            )
        if self.test_subset and self.dataset in ("phrasebook", "files"):
            raise ValueError(
                "test_subset names lines of a WMT test set. Received: "
                f"test_subset={self.test_subset!r} with "
                f"dataset={self.dataset!r}. Leave it out."
            )


def check_text(data) -> None:
    """Raises where the sources of the text contradict each other."""
    weights = data.weights
    if weights is None:
        return
    if min(weights, default=0) <= 0:
        raise ValueError(
            "weights are positive numbers, one for each source of train. "
            f"Received: weights={list(weights)}."
        )
    count = 1 if isinstance(data.train, str | None) else len(data.train)
    if len(weights) != count:
        raise ValueError(
            "weights must be as many as the sources of train. Received: "
            f"{len(weights)} weights and train={data.train!r}."
        )
    if data.batching == "authors":
        raise ValueError(
            "batching='authors' takes the lines in their order, so no source "
            "can come more often. Received: weights with it. Leave one out."
        )
