"""Signatures of an exported translator, with the batch first everywhere.

`docs/serving_contract.md` describes all inputs and outputs.
"""

from collections.abc import Callable, Mapping

from luong_keras.inference.search_options import (
    BEAM_OPTIONS,
    SEARCH_OPTIONS,
)
from luong_keras.inference.search_runner import ALL
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.inference.translation_graph import (
    MAX_BYTES_PER_TOKEN,
    TranslationGraph,
)
from luong_keras.serving.limits import (
    OK,
    TEXT_TOO_LONG,
    TOO_MANY_ROWS,
    ServingLimits,
)
from luong_keras.with_tensorflow import tf

CONTRACT_VERSION = 3
_OPTIONS = {
    name: tf.as_dtype(option.kind) for name, option in SEARCH_OPTIONS.items()
}
# Signature -> names and types of its inputs, all (B,). A request that names no
# signature gets the first one.
INPUTS = {
    "serving_default": {"text": tf.string},
    "translate": {"text": tf.string},
    "translate_with_options": {
        "text": tf.string,
        **{name: _OPTIONS[name] for name in BEAM_OPTIONS},
    },
    "search": {"text": tf.string, **_OPTIONS},
    "align": {
        "text": tf.string,
        "rank": tf.int32,
        **{name: _OPTIONS[name] for name in BEAM_OPTIONS if name != "n_best"},
    },
    "score": {"source": tf.string, "target": tf.string},
    "align_pair": {"source": tf.string, "target": tf.string},
    "encode": {"text": tf.string},
    "contract": {"text": tf.string},
}
# Outputs that `score` leaves out, because attention weights are large.
_ALIGNMENT = ("alignments", "source_tokens", "source_lengths")
# Outputs of a search that have one value per rank.
_OF_A_RANK = ("translations", "scores", "tokens", "lengths", "alignments")


def signatures(
    graph: TranslationGraph,
    limits: ServingLimits | None = None,
    traced: bool = True,
) -> dict[str, Callable]:
    """Create a function for each name of `INPUTS`, in the same order.

    Args:
        graph: The graph that computes the results.
        limits: The limits of a batch; the default limits when None.
        traced: Whether to trace the functions here. Otherwise TensorFlow would
            trace each function several times for the signatures.
    """
    numbers = contract_numbers(graph, limits or ServingLimits())

    def trace(function, name, *more):
        if not traced:
            return function
        return tf.function(
            function, input_signature=[*specs(name), *more], autograph=False
        ).get_concrete_function()

    samples = graph.decoding.search == "sampling"

    def search_with_options(text, *options):
        columns = dict(zip(SEARCH_OPTIONS, options, strict=False))
        if samples:  # A beam would ignore the exported search.
            columns = unset_options(tf.shape(text)) | columns
        return graph.translate_batch(text, columns)

    # Each of these is one graph, which two signatures share.
    configured_search = trace(
        lambda text, count: graph.translate_batch(
            text, num_return_sequences=count
        ),
        "translate",
        tf.TensorSpec([], tf.int32),
    )
    beam_search = trace(search_with_options, "translate_with_options")
    scores = trace(graph.score_batch, "score")

    option_search = trace(search_with_options, "search")

    def align(text, rank, beam_size, length_penalty, prefix, replace_unknown):
        rank = tf.clip_by_value(rank, 0, numbers["n_best"] - 1)
        # Of samples, 0 draws all that the rank is counted among.
        n_best = tf.zeros_like(rank) if samples else rank + 1
        outputs = beam_search(
            text, beam_size, n_best, length_penalty, prefix, replace_unknown
        )
        return _select_rank(outputs, rank)

    functions = {
        "serving_default": lambda text: _best_outputs(
            configured_search(text, tf.constant(1))
        ),
        "translate": lambda text: _text_outputs(
            configured_search(text, tf.constant(ALL))
        ),
        "translate_with_options": lambda *inputs: _text_outputs(
            beam_search(*inputs)
        ),
        "search": lambda *inputs: _text_outputs(option_search(*inputs)),
        "align": align,
        "score": lambda *pairs: {
            name: output
            for name, output in scores(*pairs).items()
            if name not in _ALIGNMENT
        },
        "align_pair": scores,
        "encode": trace(graph.encode_batch, "encode"),
    }
    limited = {
        name: within_limits(
            function, numbers["max_rows"], numbers["max_text_bytes"]
        )
        for name, function in functions.items()
    }

    def contract(text):
        return {
            name: tf.fill(tf.shape(text)[:1], tf.constant(number, tf.int32))
            for name, number in numbers.items()
        }

    return {**limited, "contract": contract}


def contract_numbers(
    graph: TranslationGraph, limits: ServingLimits
) -> dict[str, int]:
    """Return the numbers in the signature `contract`."""
    decoding, maximum = graph.decoding, graph.search_runner.max_beam_size
    return {
        "version": CONTRACT_VERSION,
        "max_rows": limits.max_rows,
        "max_text_bytes": MAX_BYTES_PER_TOKEN * decoding.max_source_length,
        "max_source_tokens": decoding.max_source_length,
        "max_beam_size": maximum,
        # Without `stack_size`, a sentence has as many as its beam.
        "n_best": decoding.stack_size or maximum,
        "beam_size": decoding.beam_size,
        "stack_size": decoding.stack_size or 0,
        "samples": int(decoding.search == "sampling"),
    }


def specs(name: str) -> list[tf.TensorSpec]:
    """Return the `TensorSpec`s of the inputs of a signature."""
    return [
        tf.TensorSpec([None], dtype, name=key)
        for key, dtype in INPUTS[name].items()
    ]


def _best_outputs(outputs):
    return {
        "translation": outputs["translations"][:, 0],
        "score": outputs["scores"][:, 0],
        "truncated": outputs["truncated"] | outputs["unfinished"][:, 0],
    }


def _text_outputs(outputs):
    # Whether a sentence or its translation was cut.
    truncations = outputs["truncated"][:, None] | outputs["unfinished"]
    return {
        "translations": outputs["translations"],
        "scores": outputs["scores"],
        "truncations": truncations,
        "truncated": truncations[:, 0],
    }


def _select_rank(outputs, rank):
    """Return the results of one translation per sentence.

    T is the largest length plus 1, for the step that produces `</s>`.
    """
    last = tf.shape(outputs["scores"])[1] - 1
    selected_rank = tf.minimum(rank, last)
    selected = {
        name: tf.gather(outputs[name], selected_rank, axis=1, batch_dims=1)
        for name in _OF_A_RANK
    }
    # Searches with a small beam have fewer ranks.
    selected = {
        name: empty_rows(name, result, rank > last)
        for name, result in selected.items()
    }
    steps = tf.reduce_max(selected["lengths"]) + 1
    return {
        "translation": selected["translations"],
        "score": selected["scores"],
        "tokens": selected["tokens"][:, :steps],
        "lengths": selected["lengths"],
        "alignments": selected["alignments"][:, :steps],
        "source_tokens": outputs["source_tokens"],
        "source_lengths": outputs["source_lengths"],
        "truncated": outputs["truncated"]
        | tf.gather(outputs["unfinished"], selected_rank, batch_dims=1)
        & (rank <= last),
    }


def unset_options(shape: tf.Tensor) -> dict[str, tf.Tensor]:
    """Return columns of all options with the values that keep the settings."""
    return {
        name: tf.fill(shape, tf.constant(option.unset, _OPTIONS[name]))
        for name, option in SEARCH_OPTIONS.items()
    }


def probes(sentences: list[bytes]) -> dict[str, dict[str, tf.Tensor]]:
    """Create inputs for all signatures from these sentences."""
    text = tf.constant(sentences, tf.string)
    count = len(sentences)
    even = tf.range(count) % 2 == 0
    # Every second sentence leaves most options unset.
    options = unset_options(tf.shape(text)) | {
        "beam_size": tf.range(count) % 3,
        "n_best": tf.range(count) % 2,
        "rank": tf.range(count) % 2,
        "length_penalty": tf.cast(tf.range(count) % 3 - 1, tf.float32),
        "prefix": tf.where(even, "", text),
        "replace_unknown": tf.range(count) % 3 - 1,
        "coverage_penalty": tf.where(even, -1.0, 0.2),
        "forbidden": tf.where(even, text, ""),
        "temperature": tf.cast(tf.range(count) % 4 == 3, tf.float32),
    }
    pair = {"source": text, "target": tf.reverse(text, [0])}
    columns = {"text": text, **options, **pair}
    return {
        name: {key: columns[key] for key in inputs}
        for name, inputs in INPUTS.items()
    }


# Rejected rows have -1e30 in these outputs, and 0 or "" in all others.
_SCORES = ("score", "scores", "log_probability")


def within_limits(
    function: Callable[..., Mapping[str, tf.Tensor]],
    max_rows: int,
    max_text_bytes: int,
) -> Callable[..., dict[str, tf.Tensor]]:
    """Wrap a function so that it receives only rows within the limits.

    Args:
        function: Function of columns (B,), texts and others, that returns a
            dict of tensors (B, ...).
        max_rows: Maximum number of rows that the function receives.
        max_text_bytes: The longest text that the function receives; if a text
            is longer, all texts of its row are replaced by "".

    Returns:
        A function of the same columns that returns the same results and
        `status` (B,), with one row for each of the B rows.
    """

    def limited(*columns):
        sizes = tf.stack([tf.shape(column)[0] for column in columns])
        same_size = tf.debugging.assert_equal(
            sizes,
            sizes[0],
            message="Expected: equally many values of every input. Received:",
        )
        with tf.control_dependencies([same_size]):
            rows = tf.range(sizes[0])
        columns = [column[:max_rows] for column in columns]
        texts = [column for column in columns if column.dtype == tf.string]
        too_long = tf.reduce_any(
            [tf.strings.length(text) > max_text_bytes for text in texts], axis=0
        )
        outputs = function(
            *(
                tf.where(too_long, "", column)
                if column.dtype == tf.string
                else column
                for column in columns
            )
        )
        # Rows beyond the limit repeat the last one, and are emptied.
        places = tf.minimum(rows, max_rows - 1)
        status = tf.gather(tf.where(too_long, TEXT_TOO_LONG, OK), places)
        status = tf.where(rows < max_rows, status, TOO_MANY_ROWS)
        results = {
            name: empty_rows(name, tf.gather(result, places), status != OK)
            for name, result in outputs.items()
        }
        return {**results, "status": status}

    return limited


def empty_rows(name: str, result: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Empty some rows of a result.

    Args:
        name: Name of the output.
        result: (B, ...) tensor.
        rows: (B,) mask, True for the rows to empty.
    """
    shape = [-1] + [1] * (result.shape.rank - 1)
    absent = tf.zeros([], result.dtype)
    if name in _SCORES:
        absent = tf.constant(ABSENT_SCORE, result.dtype)
    return tf.where(tf.reshape(rows, shape), absent, result)
