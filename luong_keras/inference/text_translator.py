"""Translation from text to text with a trained model."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Unpack

import keras

from luong_keras.alignment.links import Link
from luong_keras.config import DecodingConfig
from luong_keras.decoding.ensemble import ModelEnsemble
from luong_keras.decoding.scorers import Scorer
from luong_keras.decoding.strategy import DecodingStrategy
from luong_keras.inference.line_search import LineSearch
from luong_keras.inference.search_options import (
    NbestSettings,
    SearchSettings,
    check_single_values,
    pair_columns,
    refuse_one_line,
    text_column,
)
from luong_keras.inference.translation import (
    NBest,
    ScoredTranslation,
    Translation,
    best_of,
    best_text_of,
    in_order,
    scored_translation_of,
    sentences_by_place,
    translations_of,
)
from luong_keras.inference.translation_graph import TranslationGraph
from luong_keras.inference.word_links import aligned_pairs, check_coverage
from luong_keras.models.translation_model import TranslationModel
from luong_keras.progress import Advance
from luong_keras.tables import html_table
from luong_keras.text.preprocessing import Preprocessor
from luong_keras.text.threads import batches_of
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.truncation import TruncationWarning as TruncationWarning
from luong_keras.truncation import cut_pairs
from luong_keras.with_tensorflow import tf

_BATCHES_AHEAD = 100  # batches that are sorted by length together


class TextTranslator(TranslationGraph):
    """A trained model, or an ensemble, with tokenizers and a search.

    All steps run in one TensorFlow graph, the same in evaluation and export.

    Args:
        translation_model: The trained `TranslationModel`, or an ensemble of
            several with the same vocabularies.
        source_tokenizer: Tokenizer of the source language.
        target_tokenizer: Tokenizer of the target language.
        decoding: The settings of the search.
        source_preprocessor: The preprocessor of the source training text, or
            None. The translator prepares its input in the same way; tokens
            and alignments are those of prepared text.
        target_preprocessor: The same for the target text; translations are
            turned back into running text.
        strategy: `DecodingStrategy`, possibly user-defined, to use instead of
            the search of `decoding` in calls without options; with options,
            the search is always a beam or sampling.
        scorers: Additional `Scorer`s. An export contains strategy and scorers.

    Raises:
        ValueError: If the vocabulary of a tokenizer does not fit the model.
    """

    def __init__(
        self,
        translation_model: TranslationModel | Sequence[TranslationModel],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
        source_preprocessor: Preprocessor | None = None,
        target_preprocessor: Preprocessor | None = None,
        strategy: DecodingStrategy | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                "A translator needs Keras' TensorFlow backend. Received: "
                f"{keras.backend.backend()!r}. Set KERAS_BACKEND=tensorflow."
            )
        models = translation_model
        if not isinstance(models, Sequence):
            models = [models]
        model = models[0] if len(models) == 1 else ModelEnsemble(models)
        config = model.config
        for side, tokenizer, size in (
            ("source", source_tokenizer, config.source_vocabulary_size),
            ("target", target_tokenizer, config.target_vocabulary_size),
        ):
            if tokenizer.vocabulary_size != size:
                raise ValueError(
                    f"The {side} vocabulary does not fit the model. "
                    f"Expected: {size} tokens. Received: "
                    f"{tokenizer.vocabulary_size}."
                )
        if decoding is not None:
            check_coverage(model, decoding.coverage_penalty)
        super().__init__(
            model,
            source_tokenizer,
            target_tokenizer,
            decoding or DecodingConfig(),
            source_preprocessor,
            target_preprocessor,
            strategy,
            scorers,
        )
        self._process = os.getpid()
        text = tf.TensorSpec([None], tf.string)
        self._line_search = LineSearch(self)
        self._score = tf.function(
            self.score_batch, input_signature=[text, text], autograph=False
        )

    def __dir__(self) -> list[str]:
        # Leave out the names that every TensorFlow module has.
        return sorted({*super().__dir__()} - {*dir(tf.Module)} | {*dir(object)})

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}: {value}" for name, value in self._facts())
        return f"<{type(self).__name__} {facts}>"

    def _repr_html_(self) -> str:
        return html_table(self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """Return names and values that describe the model and the search."""
        model, search = self.translation_model, self.decoding
        config = model.config
        attention = [config.attention.kind]
        if config.attention.kind == "local":
            attention.append(config.attention.alignment)
        if model.has_attention:
            attention.append(config.attention.score_mode)
        models = getattr(model, "models", [model])
        return [
            ("models", str(len(models))),
            (
                "layers",
                f"{config.encoder_layers} and {config.decoder_layers} of "
                f"{config.units} {config.recurrence.upper()} units",
            ),
            ("attention", " ".join(attention)),
            ("source vocabulary", f"{config.source_vocabulary_size:,} tokens"),
            ("target vocabulary", f"{config.target_vocabulary_size:,} tokens"),
            ("weights", f"{sum(m.model.count_params() for m in models):,}"),
            ("search", f"{search.search}, beam size {search.beam_size}"),
        ]

    def translate(
        self,
        lines: Sequence[str],
        *,
        advance: Advance | None = None,
        **options: Unpack[SearchSettings],
    ) -> list[str]:
        """Return the best translation of each line, in order.

        Lines longer than `decoding.max_source_length` are cut. One
        `TruncationWarning` per call reports them, and the translations that
        were cut at their maximum length.

        Args:
            lines: The sentences.
            advance: Callback for a progress bar, called with the number of
                sentences of each finished batch.
            **options: Search options, one value for all lines or one each.

        Example:
            >>> translator.translate(
            ...     ["the house", "a cat"], required=["Haus", ""], beam_size=5
            ... )  # doctest: +SKIP
        """
        cuts = self._truncated_places()
        results = self._best_translations(lines, options, cuts, advance)
        cuts.warn(stacklevel=2)
        return results

    def _best_translations(self, lines, options, cuts, advance=None):
        names = {name for name, value in options.items() if value is not None}
        if "n_best" in names:
            raise TypeError(
                "`translate` returns the best translation of each line. "
                f"Received: n_best={options['n_best']!r}. Use `nbest` for "
                "several."
            )
        self._check_process()
        if names and self.decoding.search == "beam":
            # If a sentence chooses samples, draw only one.
            options = options | {"n_best": 1}
        lines = text_column(lines, "lines", cuts.start)
        sentences = self._line_search.sentences(
            lines, options, cuts, advance, num_return_sequences=1
        )
        return in_order((place, best_text_of(s)) for place, s in sentences)

    def _check_process(self):
        if os.getpid() != self._process:
            raise RuntimeError(
                "Expected: a translator in the process that made it. Received: "
                "a call after a fork, which TensorFlow's threads do not "
                "survive. Make a translator in each process."
            )

    def translate_lines(
        self, lines: Iterable[str], **options: Unpack[SearchSettings]
    ) -> Iterator[str]:
        r"""Translate any number of lines in order, in bounded memory.

        Some thousand lines are read before their translations are returned,
        because lines of similar length are translated together.

        Args:
            lines: Sentences, such as the lines of an open file.
            **options: The options of `translate`, one value each.

        Example:
            >>> with open("text.en") as file:  # doctest: +SKIP
            ...     print(*translator.translate_lines(file), sep="\n")
        """
        refuse_one_line(lines)
        check_single_values(options)
        return self._translate_in_parts(iter(lines), options)

    def _translate_in_parts(self, lines, options):
        size = _BATCHES_AHEAD * self.decoding.batch_size
        cuts = self._truncated_places()
        try:
            for part in batches_of(lines, size):
                yield from self._best_translations(part, options, cuts)
                cuts.start += len(part)
        finally:
            cuts.warn(stacklevel=2)

    def nbest(
        self,
        lines: Sequence[str],
        *,
        advance: Advance | None = None,
        **options: Unpack[NbestSettings],
    ) -> NBest:
        """Return the n best translations of each line, in order.

        The result is a list with one list of `Translation`s per line. It
        prints as a table, also in a notebook.

        Args:
            lines: The sentences.
            advance: As in `translate`.
            **options: As in `translate`, and `n_best`, the number of
                translations to return; all that the search keeps by default.
        """
        self._check_process()
        cuts = self._truncated_places()
        texts = text_column(lines, "lines")
        sentences = self._line_search.sentences(texts, options, cuts, advance)
        step = self.decoding.alignment_step
        results = NBest(
            in_order(
                (place, translations_of(s, step)) for place, s in sentences
            )
        )
        cuts.warn(stacklevel=2)
        return results

    def best_by_place(
        self, lines: Iterable[str], advance: Advance | None = None
    ) -> Iterator[tuple[int, Translation]]:
        """Yield the place and the best translation of each line, by batches.

        Unlike `nbest`, which returns all of them with their alignments at once.
        """
        self._check_process()
        cuts = self._truncated_places()
        sentences = self._line_search.sentences(
            text_column(lines, "lines"),
            {},
            cuts,
            advance,
            num_return_sequences=1,
        )
        step = self.decoding.alignment_step
        for place, sentence in sentences:
            yield place, best_of(translations_of(sentence, step))
        cuts.warn(stacklevel=2)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        advance: Advance | None = None,
    ) -> list[ScoredTranslation]:
        """Score given translations, in order.

        The decoder is forced to produce each target (forced decoding). Both
        texts are cut at `max_source_length`, which `truncated` of a result
        reports. `advance` is as in `translate`.
        """
        return in_order(
            self.scored_by_place(*pair_columns(sources, targets), advance)
        )

    def scored_by_place(
        self,
        sources: Sequence[str | bytes],
        targets: Sequence[str | bytes],
        advance: Advance | None = None,
    ) -> Iterator[tuple[int, ScoredTranslation]]:
        """Yield the place and the score of each pair, batch by batch."""
        self._check_process()

        def score_pairs(places):
            texts = [[side[i] for i in places] for side in (sources, targets)]
            return self._score(*map(tf.constant, texts))

        for place, sentence in sentences_by_place(
            score_pairs, targets, self.decoding.batch_size, advance
        ):
            yield place, scored_translation_of(sentence)

    def links(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        step: str | None = None,
    ) -> list[list[Link]]:
        """Link the words of given translations, in order.

        Args:
            sources: Texts, whose words are separated by white space.
            targets: The translations of the sources.
            step: `"produces"` or `"reads"`, the step whose weights belong to
                a word, as in `luong_keras.alignment.best_links`;
                `decoding.alignment_step` when None.

        Returns:
            The links `(source word, target word)` of each pair, from 0. Both
            texts are cut at `max_source_length`: later words have no links,
            and each call warns once (`TruncationWarning`).

        Raises:
            ValueError: For a model without attention.

        Example:
            >>> translator.links(
            ...     ["the house."], ["das Haus."]
            ... )  # doctest: +SKIP
            [[(0, 0), (1, 1)]]
        """
        pairs = aligned_pairs(self, sources, targets, step)
        cut_pairs(pairs).warn(stacklevel=2)
        return [sorted(pair.links) for pair in pairs]

    def join(self, tokens: Sequence[Sequence[str]]) -> list[str]:
        """Join the tokens of translations to prepared text, in order.

        If the training text was prepared, words and punctuation are still
        separated in this text; `Translation.text` is running text.
        """
        joined = self.target_tokenizer.join(
            tf.ragged.constant(tokens, tf.string, ragged_rank=1)
        )
        return [line.decode() for line in joined.numpy()]
