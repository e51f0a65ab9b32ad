"""The checked text and the vocabularies of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from luong_keras.config import RunConfig
from luong_keras.data.corpus import Corpus
from luong_keras.data.corpus_writer import open_or_write_corpus
from luong_keras.data.datasets import Datasets, corpus_key
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.preprocessing import preprocessors
from luong_keras.text.sentencepiece_tokenizer import (
    SentencePieceTokenizer,
    VocabularyTooLargeError,
)
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder


def prepare_corpus(
    datasets: Datasets, config: RunConfig, run: RunFolder
) -> Corpus:
    """The checked training text, cached in the run folder."""
    preprocess_source, preprocess_target = preprocessors(config.data)
    corpus = open_or_write_corpus(
        datasets.train,
        run.corpus,
        corpus_key(datasets, config.data),
        preprocess_source=preprocess_source,
        preprocess_target=preprocess_target,
        on_bad_line=config.data.on_bad_line,
    )
    if datasets.note is not None:
        print(datasets.note)
    print(f"{len(corpus)} training pairs; skipped: {corpus.skipped}")
    return corpus


def prepare_tokenizers(corpus: Corpus, config: RunConfig, run: RunFolder):
    """Source and target tokenizer, of the run or trained on the corpus."""
    names = ("source_vocabulary", "target_vocabulary")
    if all((run.path / f"{name}.json").exists() for name in names):
        return [load_tokenizer(run.path, name) for name in names]
    data, model = config.data, config.model
    sizes = (model.source_vocabulary_size, model.target_vocabulary_size)
    sides = (["source"], ["target"])
    if data.joint_vocabulary:
        sides = (["source", "target"],) * 2
    tokenizers: list[Tokenizer] = []
    for name, size, parts in zip(names, sizes, sides, strict=True):
        if data.joint_vocabulary and tokenizers:
            tokenizer = tokenizers[0]
        elif data.tokenizer == "sentencepiece":
            tokenizer = _subwords(corpus, parts, size)
        else:
            tokenizer = WordTokenizer.train(
                _lines(corpus, parts), size, pretokenized=data.tokenize
            )
        tokenizer.save(run.path, name)
        tokenizers.append(tokenizer)
    return tokenizers


def _lines(corpus: Corpus, sides: Sequence[str]) -> Iterator[str]:
    return (line for side in sides for line in corpus.side_lines(side))


def _subwords(
    corpus: Corpus, sides: Sequence[str], size: int
) -> SentencePieceTokenizer:
    """As many subwords as were asked for, or as many as the text has."""
    try:
        return SentencePieceTokenizer.train(_lines(corpus, sides), size)
    except VocabularyTooLargeError as error:
        print(
            f"the {' and '.join(sides)} text is small: {error.most} subwords "
            f"instead of {size}"
        )
        return SentencePieceTokenizer.train(_lines(corpus, sides), error.most)


def fit_vocabulary_sizes(config: RunConfig, source, target) -> RunConfig:
    """A small corpus may have fewer words than were asked for."""
    model = dataclasses.replace(
        config.model,
        source_vocabulary_size=source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
    )
    return dataclasses.replace(config, model=model)
