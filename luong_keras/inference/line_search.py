"""Searches over lines of text, batch by batch."""

import itertools

import numpy as np

from luong_keras.inference.search_options import (
    BEAM_OPTIONS,
    SEARCH_OPTIONS,
    option_column,
)
from luong_keras.inference.search_runner import ALL
from luong_keras.inference.translation import sentences_by_place
from luong_keras.inference.translation_graph import (
    MAX_PHRASES,
    TranslationGraph,
)
from luong_keras.inference.word_links import check_coverage
from luong_keras.progress import Advance
from luong_keras.text.threads import batches_at_once, map_in_threads
from luong_keras.with_tensorflow import tf


class LineSearch:
    """Runner of a translation graph on several batches of lines at once.

    Args:
        graph: The graph from text to text.
    """

    def __init__(self, graph: TranslationGraph) -> None:
        self._graph = graph
        self._configured_search = tf.function(
            lambda text, num_return_sequences: graph.translate_batch(
                text, num_return_sequences=num_return_sequences
            ),
            input_signature=[
                tf.TensorSpec([None], tf.string),
                tf.TensorSpec([], tf.int32),
            ],
            autograph=False,
        )
        # Graphs by the number of options, each traced at its first use.
        dtypes = [option.kind for option in SEARCH_OPTIONS.values()]
        self._option_searches = {
            count: tf.function(
                lambda text, *columns: graph.translate_batch(
                    text, dict(zip(SEARCH_OPTIONS, columns, strict=False))
                ),
                input_signature=[
                    tf.TensorSpec([None], dtype)
                    for dtype in (tf.string, *dtypes[:count])
                ],
                autograph=False,
            )
            for count in (len(BEAM_OPTIONS), len(SEARCH_OPTIONS))
        }

    def sentences(
        self,
        lines,
        options,
        cuts,
        advance: Advance | None = None,
        num_return_sequences=ALL,
    ):
        """Return the place and the results of each line, as they are found.

        Args:
            lines: The sentences, as `text_column` returns them.
            options: The search options by name.
            cuts: `TruncatedPlaces`, to which the lines are added.
            advance: Callback for the number of sentences of each batch.
            num_return_sequences: The number of translations to return per
                sentence in calls without options.
        """
        columns = self._columns(options, len(lines))

        def run_batch(places):
            text = tf.constant([lines[i] for i in places])
            if not columns:
                return self._configured_search(text, num_return_sequences)
            search = self._option_searches[len(columns)]
            return search(text, *(column[places] for column in columns))

        return sentences_by_place(
            run_batch,
            lines,
            self._graph.decoding.batch_size,
            advance,
            cuts,
            self._map_batches,
        )

    def _map_batches(self, run_batch, batches):
        # The first batch runs without threads, because it traces the graph and
        # Keras does not trace in threads. Eager functions need one thread, too.
        # Another thread leaves the scope of a strategy and would trace again.
        yield from map(run_batch, itertools.islice(batches, 1))
        is_sequential = (
            tf.config.functions_run_eagerly() or tf.distribute.has_strategy()
        )
        threads = 1 if is_sequential else batches_at_once()
        yield from map_in_threads(run_batch, batches, threads)

    def _columns(self, options, count):
        """Return one column per search option, or [] without options.

        If only options of a beam are given, only these have columns, for a
        smaller graph.
        """
        if unknown_names := [
            name for name in options if name not in SEARCH_OPTIONS
        ]:
            raise TypeError(
                f"Expected: options of a search, {', '.join(SEARCH_OPTIONS)}. "
                f"Received: {', '.join(unknown_names)}."
            )
        names = {name for name, value in options.items() if value is not None}
        if not names:
            return []
        is_sampling = self._graph.decoding.search == "sampling"
        is_beam_only = not is_sampling and names <= {*BEAM_OPTIONS}
        columns = {
            name: option_column(name, options.get(name), count)
            for name in (BEAM_OPTIONS if is_beam_only else SEARCH_OPTIONS)
        }
        for name, column in columns.items():
            _check_range(name, column, options.get(name))
        if "coverage_penalty" in columns:
            check_coverage(
                self._graph.translation_model, columns["coverage_penalty"]
            )
        self._check_counts(columns, names)
        return list(columns.values())

    def _check_counts(self, columns, names):
        """Check that the search reads the named options, and counts exist."""
        decoding, runner = self._graph.decoding, self._graph.search_runner
        beams, maximum = columns["beam_size"], runner.max_beam_size
        if np.max(beams, initial=0) > maximum:
            raise ValueError(
                f"Expected: beam_size of at most {maximum}. Received: "
                f"beam_size={np.max(beams)}. Make the translator with a larger "
                "decoding.beam_size or max_beam_size."
            )
        resolved = runner.resolve_options(columns)
        max_counts = resolved["beam_size"].numpy()
        if "temperature" in resolved:
            is_sampled = resolved["temperature"].numpy() > 0
            max_counts = np.where(is_sampled, maximum, max_counts)
            unread = names & {"seed", "top_k", "top_p"}
            if unread and len(is_sampled) and not is_sampled.any():
                raise ValueError(
                    "Expected: a temperature with options of samples. Received:"
                    f" {', '.join(sorted(unread))} without one, in a beam "
                    "search, which would ignore them."
                )
            is_counted = is_sampled & (columns["n_best"] > 0)
            if "beam_size" in names and len(is_counted) and is_counted.all():
                raise ValueError(
                    "Expected: beam_size in a beam search; n_best (1 in "
                    "`translate`) is the number of samples. Received: "
                    f"beam_size={np.max(beams)} in a search that samples. "
                    "Leave it out."
                )
            refused = is_sampled & columns["required"].astype(bool)
            for place in np.flatnonzero(refused)[:1]:
                raise ValueError(
                    "Expected: required phrases in a beam search; samples have "
                    f"none. Received: {columns['required'][place]!r} with a "
                    f"temperature of {resolved['temperature'][place]:g}. Leave "
                    "one of them out."
                )
        if decoding.stack_size is not None:
            max_counts = np.full_like(max_counts, decoding.stack_size)
        for place in np.flatnonzero(columns["n_best"] > max_counts)[:1]:
            is_extensible = (
                decoding.stack_size is None and max_counts[place] < maximum
            )
            advice = "Give beam_size too, or make" if is_extensible else "Make"
            raise ValueError(
                f"Expected: n_best of at most {max_counts[place]}, the "
                "translations that the search keeps. Received: n_best="
                f"{columns['n_best'][place]}. {advice} the translator with "
                "decoding.with_(n_best=…)."
            )


def _check_range(name, column, given):
    """Check that an option is None or within its range, for each line."""
    option = SEARCH_OPTIONS[name]
    if option.kind is object:
        for text in column if name in ("required", "forbidden") else ():
            phrases = tf.compat.as_text(text).split("\t")
            if (count := sum(map(bool, phrases))) > MAX_PHRASES:
                raise ValueError(
                    f"Expected: at most {MAX_PHRASES} phrases in `{name}`, "
                    f"separated by tabs. Received: {count}, {text!r:.200}."
                )
        return
    is_given = np.asarray(given, object) != np.array(None)
    outside = (column < option.low) | (column > option.high)
    for value in column[outside & is_given][:1]:
        raise ValueError(
            f"Expected: `{name}` from {option.low} to {option.high}, or None "
            f"for the setting. Received: {value}."
        )
