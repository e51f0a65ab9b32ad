"""What a finished run leaves: scores, samples, a figure, an export."""

from __future__ import annotations

import json
import time

from luong_keras.config import RunConfig
from luong_keras.data import phrasebook
from luong_keras.data.datasets import Datasets
from luong_keras.evaluation.plots import plot_alignment
from luong_keras.files.atomic_file import write_text
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.progress import bar_of_lines
from luong_keras.recipe.evaluation import Evaluation, write_results
from luong_keras.recipe.run_reading import load_run
from luong_keras.serving.export import export_saved_model
from luong_keras.training.run_folder import RunFolder
from luong_keras.truncation import TruncationInParts

# The lines that an export tells of its checks, for the bar.
CHECKS = 7


def report(datasets: Datasets, config: RunConfig, run: RunFolder) -> None:
    """Scores the final weights on the test pairs, exports, shows samples."""
    weights = config.training.final_weights
    translator = TextTranslator(*load_run(run.path, weights))
    evaluation = Evaluation(translator, config.data, config.training.metric)
    sources, references = map(list, zip(*datasets.test, strict=True))
    results, translations = evaluation.scores(sources, references)
    results["perplexity"] = evaluation.perplexity(datasets.test)
    has_attention = translator.translation_model.has_attention
    if has_attention and datasets.test_links is not None:
        results["aer"] = evaluation.alignment_error_rate(
            datasets.test, datasets.test_links
        )
    if config.data.dataset == "phrasebook":
        results["bleu_word_for_word"] = phrasebook.word_for_word_bleu(
            config.data.languages
        )
    write_text(run.translations, "".join(f"{t}\n" for t in translations))
    for i in range(0, len(sources), max(len(sources) // 5, 1)):
        print(f"source       {sources[i]}")
        print(f"reference    {references[i]}")
        print(f"translation  {translations[i]}\n")
    if has_attention and sources[0].strip():
        with TruncationInParts():  # Told with the scores.
            best = translator.nbest(sources[:1])[0][0]
        run.plots.mkdir(exist_ok=True)
        plot_alignment(
            best.source_tokens,
            best.tokens,
            best.alignments,
            run.plots / "alignment.png",
        )
    write_results(run.results, {"set": "test", "weights": weights, **results})
    print(json.dumps(results, indent=2, ensure_ascii=False))
    version = run.export / str(int(time.time()))
    with bar_of_lines("writing and checking the export", CHECKS) as say:
        folder = export_saved_model(translator, version, say=say)
    print("exported to", folder)
