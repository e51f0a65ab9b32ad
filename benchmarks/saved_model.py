"""Translations of a test set by a SavedModel and by its model.

    python benchmarks/saved_model.py --run-dir runs/multi30k

A TensorFlow session in a separate process runs each export, without XLA as in
the stock server. Its translations are compared with the translations of the
model. A different translation is a near-tie if both scores differ by less than
1e-4.
"""

import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np
from speed.command_line import make_parser

from luong_keras import Translator
from luong_keras.data import load_datasets
from luong_keras.evaluation import corpus_bleu
from luong_keras.recipe.stored_settings import run_config
from luong_keras.serving import SavedModelSession, export_saved_model
from luong_keras.serving.saved_model_checks import NEAR_TIE
from luong_keras.serving.saved_model_session import read_meta_graph


def main() -> None:
    """Print the results of the model and of its export."""
    parser = make_parser(__doc__)
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("--beam-size", type=int, help="default: the run's")
    arguments = parser.parse_args()
    config = run_config(arguments.run_dir)
    decoding = config.decoding
    if arguments.beam_size is not None:
        decoding = dataclasses.replace(
            decoding, beam_size=arguments.beam_size, stack_size=None
        )
    translator = Translator.from_run(arguments.run_dir, decoding=decoding)
    sources, references = map(
        list, zip(*load_datasets(config.data).test, strict=True)
    )
    own = [best[0] for best in translator.nbest(sources)]
    texts = [translation.text for translation in own]
    scores = np.array([translation.score for translation in own])

    def bleu(translations):
        found = corpus_bleu(
            translations,
            references,
            lowercase=config.data.lowercase,
        )
        return f"BLEU {found.score:.2f} ({found.signature})"

    print(f"the model itself: {bleu(texts)}")
    with tempfile.TemporaryDirectory() as folder:
        exported = export_saved_model(translator, Path(folder) / "1")
        files = [f for f in exported.rglob("*") if f.is_file()]
        size = sum(f.stat().st_size for f in files)
        began = time.perf_counter()
        served, served_scores = translate(
            exported, sources, decoding.batch_size
        )
        seconds = time.perf_counter() - began
    different = np.array(served) != np.array(texts)
    near = different & (np.abs(served_scores - scores) < NEAR_TIE)
    print(
        f"export: {size / 1e6:.1f} MB, {bleu(served)}; of "
        f"{len(texts)} translations {np.sum(~different)} equal the "
        f"model's, {np.sum(near)} are near-ties and "
        f"{np.sum(different & ~near)} differ; largest difference of a "
        f"score {np.abs(served_scores - scores)[~different].max():.1e}; "
        f"{seconds:.0f} s"
    )


def translate(folder, lines, batch_size):
    """Return the best translations and their scores, in order."""
    session = SavedModelSession(folder)
    signature = read_meta_graph(folder).signature_def["serving_default"]
    text = signature.inputs["text"].name
    outputs = {key: info.name for key, info in signature.outputs.items()}
    # Batches of similar length, as the model makes them.
    order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
    texts, scores = [""] * len(lines), np.zeros(len(lines))
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        batch = np.array([lines[i].encode() for i in places], object)
        found = session.run({text: batch}, outputs)
        scores[places] = found["score"]
        for place, translation in zip(
            places, found["translation"], strict=True
        ):
            texts[place] = translation.decode()
    session.close()
    return texts, scores


if __name__ == "__main__":
    main()
