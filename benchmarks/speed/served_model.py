"""This library as a server: a SavedModel behind a double of the server."""

import dataclasses
import itertools
import sys
from pathlib import Path

from luong_keras import DecodingConfig, Translator
from luong_keras.serving import export_saved_model
from luong_keras.tokenizers import WordTokenizer
from luong_keras_client import TranslationClient
from speed.batches import EOS_ID, read_sentences
from speed.ours_model import translation_model
from speed.worker import Work

# The double of the server is in the tests, which are not installed.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.serving.server_process import LoopbackProcess  # noqa: E402


class BatchingProcess(LoopbackProcess):
    """A process with `batching_server`."""

    module = "speed.batching_server"
    folder = Path(__file__).resolve().parents[1]


def export_untrained(configuration, folder, **decoding):
    """Export an untrained model of a configuration as version 1.

    Its words are named by their ids: `w4`, `w5`, ...
    """
    model = translation_model(
        configuration, "float32", "global", bidirectional=True
    )
    size = model.config.target_vocabulary_size
    tokenizer = WordTokenizer.from_words(
        (f"w{i}" for i in range(EOS_ID + 1, size)), pretokenized=True
    )
    settings = dataclasses.replace(DecodingConfig(), **decoding)
    translator = Translator(model, tokenizer, tokenizer, settings)
    return export_saved_model(translator, Path(folder) / "1")


def translating(models, sentences_file):
    """Return one request per step, to a server on this process's cores."""
    server = BatchingProcess(models, "--threads", "1")
    url, _, name = server.rest_url.partition("/v1/models/")
    client = TranslationClient(url, name)
    sentences = [
        (len(ids), " ".join(f"w{i}" for i in ids))
        for ids in read_sentences(sentences_file)
    ]
    endless = itertools.cycle(sentences)

    def run(steps):
        words = 0
        for expected, text in itertools.islice(endless, steps):
            length = len(client.translate([text])[0].split())
            if not 0 <= length - expected <= 1:
                raise ValueError(f"{length} words for {expected}")
            words += expected + 1
        return {"words": words}

    return Work(run)
