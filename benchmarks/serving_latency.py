"""Latency of single sentences, against other programs, by turns.

    LUONG_KERAS_DATA=folder python benchmarks/serving_latency.py \
        --python torch=PATH --python joeynmt=PATH

Untrained models of one size and vocabulary translate sentences of Multi30k's
test set, one at a time. The sentences have as many subwords as their
references, and every program produces exactly as many words as the reference,
and `</s>`. Ours is a REST request to an export behind the loopback server, from
text to text, on the same core as its client. Every other program is called in
its own process, from ids to ids. The times are for one produced word, with the
median over the sentences.
"""

import os
import tempfile

from speed import batches, driver
from speed.configurations import CONFIGURATIONS


def main() -> None:
    """Print and write one table."""
    parser = driver.parser(__doc__, 60, 1, "joeynmt")
    parser.add_argument("--config", choices=CONFIGURATIONS, default="small")
    parser.add_argument("--beam-size", type=int, default=5)
    options = parser.parse_args()
    # Wall time covers both processes, the server and its client.
    driver.finish(options, f"serving_latency-{options.config}", "wall")
    from speed.served_model import export_untrained

    sentences = (options.output / "sentences.json").resolve()
    batches.write_sentences(
        sentences, batches.equal_length_sentences(options.rounds)
    )
    with tempfile.TemporaryDirectory() as folder:
        models = os.path.join(folder, "untrained")
        export_untrained(
            options.config,
            models,
            beam_size=options.beam_size,
            min_length_ratio=1.0,
            max_length_ratio=1.0,
        )
        given = {"sentences_file": str(sentences)}
        sized = {
            "configuration": options.config,
            "beam_size": options.beam_size,
        }
        programs = [
            driver.Program(
                "ours served",
                "served_model:translating",
                {**given, "models": models},
            ),
            *(
                driver.Program(
                    name, f"{name}_model:translating", given | sized, name
                )
                for name in ("joeynmt", "torch")
            ),
        ]
        results = driver.measure(programs, options)
    written = driver.Report(options)
    written.environments(results)
    driver.per_words(results, options.steps, 1)
    columns = {
        "words": lambda found: f"{sum(found.values('words')):,}",
    }
    group = f"{options.config}, one sentence, beam {options.beam_size}"
    written.times(group, results, columns, unit="a produced word")
    written.write(f"Serving, {options.config}")


if __name__ == "__main__":
    main()
