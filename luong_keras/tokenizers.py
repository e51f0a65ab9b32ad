"""Tokenizers that run in the graph."""

from luong_keras.text.loading import load_tokenizer
from luong_keras.text.preprocessing import (
    Preprocessor,
    preprocessor,
    preprocessors,
)
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer

__all__ = [
    "Preprocessor",
    "SentencePieceTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "load_tokenizer",
    "preprocessor",
    "preprocessors",
]
