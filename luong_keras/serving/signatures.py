"""What a served translator can be asked; batch first everywhere."""

from __future__ import annotations

from collections.abc import Callable

from luong_keras.inference.translation_graph import (
    SearchOptions,
    TranslationGraph,
)
from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

# Name -> the names and types of its inputs, all (B,). The first one is asked
# where a request names none.
INPUTS = {
    "serving_default": {"text": tf.string},
    "translate": {"text": tf.string},
    "translate_with_options": {
        "text": tf.string,
        "beam_size": tf.int32,
        "n_best": tf.int32,
        "length_penalty": tf.float32,
        "prefix": tf.string,
        "replace_unknown": tf.int32,
    },
    "score": {"source": tf.string, "target": tf.string},
    "encode": {"text": tf.string},
}


def as_it_is(function: Callable) -> Callable:
    """The function itself."""
    return function


def signatures(
    graph: TranslationGraph,
    reading: Callable[[Callable], Callable] = as_it_is,
    traced: bool = True,
) -> dict[str, Callable]:
    """A function for each name of `INPUTS`, in its order.

    Args:
        graph: what answers.
        reading: what each of its functions is wrapped in, for weights that
            are not read as they are.
        traced: whether the functions are graphs already. For a signature
            TensorFlow would trace each several times.
    """

    def made(function, name):
        function = reading(function)
        if not traced:
            return function
        return tf.function(
            function, input_signature=specs(name), autograph=False
        ).get_concrete_function()

    def with_options(text, *options):
        return graph.translate_batch(text, SearchOptions(*options))

    translate = made(graph.translate_batch, "translate")

    def serving_default(text):
        found = translate(text)
        return {
            "translation": found["translations"][:, 0],
            "score": found["scores"][:, 0],
        }

    functions = (
        serving_default,
        translate,
        made(with_options, "translate_with_options"),
        made(graph.score_batch, "score"),
        made(graph.encode_batch, "encode"),
    )
    return dict(zip(INPUTS, functions, strict=True))


def specs(name: str) -> list[tf.TensorSpec]:
    """The inputs of a signature as TensorFlow describes them."""
    return [
        tf.TensorSpec([None], dtype, name=key)
        for key, dtype in INPUTS[name].items()
    ]


def probes(sentences: list[bytes]) -> dict[str, dict[str, tf.Tensor]]:
    """Inputs for every signature that are made of these sentences."""
    text = tf.constant(sentences, tf.string)
    count = len(sentences)
    with_options = {
        "text": text,
        "beam_size": tf.range(count) % 3,
        "n_best": tf.range(count) % 2,
        "length_penalty": tf.cast(tf.range(count) % 3 - 1, tf.float32),
        "prefix": tf.where(tf.range(count) % 2 == 0, "", text),
        "replace_unknown": tf.range(count) % 3 - 1,
    }
    return {
        "serving_default": {"text": text},
        "translate": {"text": text},
        "translate_with_options": with_options,
        "score": {"source": text, "target": tf.reverse(text, [0])},
        "encode": {"text": text},
    }
