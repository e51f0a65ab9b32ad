"""Text prepared in the graph, compared with sacremoses line by line.

    LUONG_KERAS_DATA=folder python benchmarks/preparation.py

`folder` holds `multi30k` and `wmt10k`. For each corpus, language and choice
of settings the program prints the number of lines that both prepare
differently, the number of prepared lines that they finish differently, some
examples of differences, and the lines per second of both.
"""

import itertools
import time

import tensorflow as tf
from speed.command_line import data_folder, make_parser

from luong_keras.files.text_lines import read_lines
from luong_keras.text.moses import MosesGraph
from luong_keras.text.preprocessing import Preprocessor
from luong_keras.text.threads import batches_of
from luong_keras.text.tokenizer import LINES_PER_CALL

SETTINGS = ("lowercase", "normalize_punctuation", "tokenize")


def main() -> None:
    """Print two lines for each corpus, language and choice of settings."""
    parser = make_parser(__doc__)
    parser.add_argument("--examples", type=int, default=5)
    arguments = parser.parse_args()
    for corpus, language in itertools.product(
        ("multi30k", "wmt10k"), ("en", "de", "cs", "fr")
    ):
        paths = sorted(data_folder(corpus).glob(f"*.{language}.gz"))
        lines = [line for path in paths for line in read_lines(path)]
        if not lines:
            continue
        for chosen in itertools.product((False, True), repeat=len(SETTINGS)):
            settings = dict(zip(SETTINGS, chosen, strict=True))
            if any(chosen):
                name = "+".join(key for key in SETTINGS if settings[key])
                print(f"{corpus} {language} {name}")
                compare(language, settings, lines, arguments.examples)


def compare(language, settings, lines, examples) -> None:
    """Print the differences for one choice of settings."""
    preprocessor = Preprocessor(language, **settings)
    graph = MosesGraph(preprocessor)
    prepared = step("prepare", preprocessor, graph.prepare, lines, examples)
    step("finish", preprocessor.postprocess, graph.finish, prepared, examples)


def step(name, in_python, in_graph, lines, examples) -> list[str]:
    """Print the differences, and return the output of sacremoses."""
    function = tf.function(
        in_graph,
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    function(tf.constant(lines[:1]))  # Trace it and compile its patterns.
    began = time.perf_counter()
    expected = [in_python(line) for line in lines]
    python_seconds = time.perf_counter() - began
    began = time.perf_counter()
    found = [
        line.decode()
        for batch in batches_of(lines, LINES_PER_CALL)
        for line in function(tf.constant(batch)).numpy()
    ]
    graph_seconds = time.perf_counter() - began
    different = [
        triple
        for triple in zip(lines, expected, found, strict=True)
        if triple[1] != triple[2]
    ]
    print(
        f"  {name:<7} {len(lines) - len(different)} lines equal, "
        f"{len(different)} different; lines a second: sacremoses "
        f"{len(lines) / python_seconds:.0f}, graph "
        f"{len(lines) / graph_seconds:.0f}",
        flush=True,
    )
    for texts in different[:examples]:
        for label, text in zip(
            ("line", "sacremoses", "graph"), texts, strict=True
        ):
            print(f"    {label:<10} {text!r}")
    return expected


if __name__ == "__main__":
    main()
