"""An untrained translator of a few words."""

import keras
import numpy as np

from luong_keras.config import AttentionConfig, DecodingConfig, RunConfig
from luong_keras.config.values import config_to_dict
from luong_keras.models.translation_model import TranslationModel
from luong_keras.special_tokens import UNK_ID
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.translator import Translator
from tests.layer_checks import small_config

SOURCE_WORDS = ["the", "cat", "sees", "a", "dog", ".", "house"]
TARGET_WORDS = ["die", "Katze", "sieht", "einen", "Hund", ".", "Haus", "das"]

# The limits of the authors' program.
LENGTHS = {"min_length_ratio": 0.5, "max_length_ratio": 1.5}


def tiny_translator(unknown_logit=0.0, attention=None, **decoding):
    """Create a translator with fixed weights and an adjustable `<unk>`."""
    keras.utils.set_random_seed(5)
    source = WordTokenizer.from_words(SOURCE_WORDS)
    target = WordTokenizer.from_words(TARGET_WORDS)
    config = small_config(
        source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
        embedding_size=6,
        units=8,
        attention=attention or AttentionConfig(kind="global"),
        dropout=0.0,
        output_bias=True,
        initial_range=1.0,
    )
    translation_model = TranslationModel(config)
    bias = np.zeros(target.vocabulary_size, "float32")
    bias[:4] = -5, unknown_logit - 1, -5, 0  # <pad>, <unk>, <s>, </s>
    assert UNK_ID == 1
    translation_model.projection.bias.assign(bias)
    settings = {"beam_size": 3, "max_source_length": 9} | LENGTHS | decoding
    return Translator(
        translation_model, source, target, DecodingConfig(**settings)
    )


def write_run(folder, translator, **sections):
    """Write the files of a run that a translator needs; return its path."""
    run, model = RunFolder(folder), translator.translation_model
    config = RunConfig(
        model=model.config, decoding=translator.decoding, **sections
    )
    run.write_config(config_to_dict(config))
    translator.source_tokenizer.save(run.path, "source_vocabulary")
    translator.target_tokenizer.save(run.path, "target_vocabulary")
    model.model.save_weights(run.best_weights)
    return run.path
