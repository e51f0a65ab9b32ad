"""Translation from strings to strings in one TensorFlow graph."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from luong_keras.config import DecodingConfig
from luong_keras.data.sources.source_kinds import BYTE_ORDER_MARK, CONTROL
from luong_keras.decoding.forced import forced_decoding
from luong_keras.decoding.scorers import Scorer
from luong_keras.decoding.strategy import DecodingStrategy, Hypotheses
from luong_keras.inference.search_runner import (
    ALL,
    Phrases,
    SearchRunner,
    resolve_option,
)
from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.inference.word_lists import (
    Shortlist,
    UnknownWords,
)
from luong_keras.special_tokens import EOS, UNK_ID
from luong_keras.text.moses import MosesGraph
from luong_keras.text.preprocessing import Preprocessor
from luong_keras.truncation import TruncatedPlaces
from luong_keras.with_tensorflow import tf

# A text is cut at this many bytes per token of the limit, so that a line of
# megabytes costs no more than any other line.
MAX_BYTES_PER_TOKEN = 64
# Limits of the required and of the forbidden phrases of a sentence.
MAX_PHRASES = 8
MAX_PHRASE_TOKENS = 16


class _Tokenized(NamedTuple):
    """Tokenised texts, cut at the limit."""

    ids: tf.RaggedTensor
    tokens: tf.RaggedTensor
    lengths: tf.Tensor
    truncated: tf.Tensor


class TranslationGraph(tf.Module):
    """All steps from strings to strings, which run in the graph.

    Each function accepts batches of any bytes, also empty batches. Without a
    shortlist, the text of one sentence never changes the result of another.

    Args:
        translation_model: `TranslationModel` or `ModelEnsemble`.
        source_tokenizer: Tokenizer of the source language.
        target_tokenizer: Tokenizer of the target language.
        decoding: The settings of the search.
        source_preprocessor: The preprocessor of the source text that the
            model was trained on, or None for unprepared text.
        target_preprocessor: The same for the target text.
        strategy: Decoding strategy to use instead of the search of `decoding`.
        scorers: Additional scorers of words and hypotheses.
    """

    def __init__(
        self,
        translation_model,
        source_tokenizer,
        target_tokenizer,
        decoding,
        source_preprocessor: Preprocessor | None = None,
        target_preprocessor: Preprocessor | None = None,
        strategy: DecodingStrategy | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> None:
        super().__init__(name="translator")
        self.translation_model = translation_model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.decoding: DecodingConfig = decoding
        self.search_runner = SearchRunner(
            decoding, translation_model, strategy, scorers
        )
        self._source_moses = source_preprocessor and MosesGraph(
            source_preprocessor
        )
        self._target_moses = target_preprocessor and MosesGraph(
            target_preprocessor
        )
        self.shortlist = None
        if decoding.shortlist is not None:
            self.shortlist = Shortlist(
                decoding,
                translation_model.config,
                source_tokenizer,
                target_tokenizer,
                getattr(strategy, "num_hypotheses", 1),
            )
        self.unknown_words = UnknownWords(
            decoding.dictionary, decoding.alignment_step, source_tokenizer
        )

    def translate_batch(
        self,
        text: tf.Tensor,
        options: Mapping[str, tf.Tensor] | None = None,
        num_return_sequences: tf.Tensor | None = None,
    ) -> dict[str, tf.Tensor]:
        """Return the n best translations of (B,) UTF-8 strings.

        Args:
            text: The sentences.
            options: The search options of the sentences by name, (B,) each:
                all of `SEARCH_OPTIONS`, or all of `BEAM_OPTIONS`.
            num_return_sequences: Int32, the number of translations to return
                per sentence, without options; all that the search keeps when
                None.

        Returns a dict, batch first: `translations` (B, N) and `scores`
        (B, N), the best first; `tokens` (B, N, T), `lengths` (B, N) and
        `alignments` (B, N, T, S); `source_tokens` (B, S) and
        `source_lengths` (B,); `truncated` (B,), whether source, prefix or
        phrases were cut or phrases left out; `unfinished` (B, N), whether a
        translation was cut at its maximum length, without `</s>`. An empty
        sentence has an empty translation. A rank that the search did not fill
        has no tokens and the score -1e30.
        """
        columns = options or {}
        batch, (text, *padded) = _pad_empty_batch(text, *columns.values())
        options = dict(zip(columns, padded, strict=True)) or None
        source = self._read_source(text)
        source_tokens = _to_dense(source.tokens, "")
        request, prefix, truncated = None, None, source.truncated
        if options is not None:
            prefix = self._read_target(options["prefix"])
            request, cut = self._read_request(options, prefix)
            truncated |= cut
        limits = self.search_runner.limits(source.lengths, request)
        hypotheses = self._search(
            text, source, limits, request, num_return_sequences
        )
        maximum = limits["max_lengths"][:, None]
        counts = ALL if num_return_sequences is None else num_return_sequences
        if options is not None:
            counts = tf.where(options["n_best"] > 0, options["n_best"], ALL)
        count = tf.reduce_max(counts)
        hypotheses = Hypotheses(*(x[:, :count] for x in hypotheses))
        tokens = self._target_tokens(hypotheses, source_tokens, options, prefix)
        ranks = tf.range(tf.shape(hypotheses.scores)[1])
        is_filled = hypotheses.scores > ABSENT_SCORE
        is_filled &= ranks < tf.reshape(counts, [-1, 1])
        lengths = tf.where(is_filled, hypotheses.lengths, 0)
        word_mask = tf.sequence_mask(lengths, tf.shape(tokens)[2])
        tokens = tf.where(word_mask, tokens, "")
        results = {
            "translations": self._join_tokens(tokens, lengths),
            "scores": tf.where(is_filled, hypotheses.scores, ABSENT_SCORE),
            "tokens": tokens,
            "lengths": lengths,
            "alignments": tf.where(
                is_filled[..., None, None], _float32(hypotheses.alignments), 0
            ),
            "source_tokens": source_tokens,
            "source_lengths": source.lengths,
            "truncated": truncated,
            "unfinished": is_filled & (lengths >= maximum) & (maximum > 0),
        }
        return {name: result[:batch] for name, result in results.items()}

    def score_batch(
        self, source: tf.Tensor, target: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Score given translations, from (B,) sources and (B,) targets.

        Returns a dict, batch first: `log_probability` (B,), the sum of
        `word_log_probabilities` (B, T); `tokens` (B, T), including `</s>`,
        and their number `lengths` (B,); `alignments` (B, T, S);
        `source_tokens` (B, S) and `source_lengths` (B,); `truncated` (B,),
        whether source or target was cut at the limit.
        """
        batch, (source, target) = _pad_empty_batch(source, target)
        tokenized = self._read_source(source)
        target_tokens = self._read_target(target)
        config = self.translation_model.config
        ends = tf.ones_like(target_tokens.lengths)[:, None]
        ids = tf.concat([target_tokens.ids, ends * config.eos_id], axis=1)
        tokens = tf.concat(
            [target_tokens.tokens, tf.fill(tf.shape(ends), EOS)], axis=1
        )
        memory, mask, states = self._encode(tokenized)
        scored = forced_decoding(
            self.translation_model.decoding_step(memory, mask),
            states,
            ids.to_tensor(config.target_pad_id),
            target_tokens.lengths + 1,
            config.bos_id,
        )
        results = {
            "log_probability": tf.reduce_sum(scored.log_probabilities, axis=1),
            "word_log_probabilities": scored.log_probabilities,
            "tokens": tokens.to_tensor(""),
            "lengths": target_tokens.lengths + 1,
            "alignments": _float32(scored.alignments),
            "source_tokens": _to_dense(tokenized.tokens, ""),
            "source_lengths": tokenized.lengths,
            "truncated": tokenized.truncated | target_tokens.truncated,
        }
        return {name: result[:batch] for name, result in results.items()}

    def encode_batch(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the encoder outputs of (B,) strings.

        Returns a dict: `memory` (B, S, M), for an ensemble the concatenated
        memories of its models; `lengths` (B,), the number of source words;
        `truncated` (B,), whether the source was cut at the limit.
        """
        batch, (text,) = _pad_empty_batch(text)
        tokenized = self._read_source(text)
        memory, _, _ = self._encode(tokenized)
        memories = memory if isinstance(memory, list) else [memory]
        results = {
            "memory": tf.concat([*map(_float32, memories)], axis=-1),
            "lengths": tokenized.lengths,
            "truncated": tokenized.truncated,
        }
        return {name: result[:batch] for name, result in results.items()}

    # Parts.

    def _truncated_places(self) -> TruncatedPlaces:
        """Create an empty record of the lines that are cut."""
        limit = self.decoding.max_source_length
        return TruncatedPlaces(f"{limit} tokens (`decoding.max_source_length`)")

    def _read_source(self, text):
        return self._read(text, self._source_moses, self.source_tokenizer)

    def _read_target(self, text):
        return self._read(text, self._target_moses, self.target_tokenizer)

    def _read(self, text, moses, tokenizer):
        limit = self.decoding.max_source_length
        size = MAX_BYTES_PER_TOKEN * limit
        truncated = tf.strings.length(text) > size
        # Without a character that the cut has divided.
        cut = tf.strings.unicode_transcode(
            tf.strings.substr(text, 0, size), "UTF-8", "UTF-8", "ignore"
        )
        text = tf.where(truncated, cut, text)
        # As `one_line` with training text.
        text = tf.strings.regex_replace(text, BYTE_ORDER_MARK, "")
        text = tf.strings.regex_replace(text, CONTROL.pattern, " ")
        if moses is not None:
            text = moses.prepare(text)
        ids, tokens = tokenizer.encode(text), tokenizer.tokens(text)
        truncated |= ids.row_lengths() > limit
        ids = ids[:, :limit]
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        return _Tokenized(ids, tokens[:, :limit], lengths, truncated)

    def _encode(self, tokenized):
        padding = self.translation_model.config.source_pad_id
        return self.translation_model.encode(_to_dense(tokenized.ids, padding))

    def _search(self, text, source, limits, request, num_return_sequences):
        words = None
        if self.shortlist is not None:
            words, request = self.shortlist.restrict(
                source.ids.flat_values, request
            )
        memory, mask, states = self._encode(source)
        step = self.translation_model.decoding_step(memory, mask, words)
        width = tf.shape(_to_dense(source.ids, 0))[1]
        word_mask = tf.sequence_mask(source.lengths, width)
        if request is None:
            hypotheses = self.search_runner.run_configured(
                step, states, text, word_mask, limits, num_return_sequences
            )
        else:
            hypotheses = self.search_runner.run_requested(
                step, states, text, word_mask, limits, request
            )
        if words is None:
            return hypotheses
        return hypotheses._replace(ids=tf.gather(words, hypotheses.ids))

    def _read_request(self, options, prefix):
        """Return the request, and a mask of sentences with cuts."""
        padding = self.translation_model.config.target_pad_id
        ids = _to_dense(prefix.ids, padding)
        request = {**options, "prefix": Phrases(ids, prefix.lengths)}
        if "required" not in options:
            return request, prefix.truncated
        request["required"], required_cut = self._read_phrases(
            options["required"], known_only=True
        )
        request["forbidden"], forbidden_cut = self._read_phrases(
            options["forbidden"], known_only=False
        )
        numbers = self.search_runner.resolve_options(options)
        # Samples have no required phrases.
        required_cut |= (numbers["temperature"] > 0) & (
            options["required"] != ""
        )
        return request, prefix.truncated | required_cut | forbidden_cut

    def _read_phrases(self, text, known_only):
        """Read tab-separated phrases; also return where some were left out.

        With `known_only`, phrases with unknown words are left out.
        """
        text = tf.strings.regex_replace(text, "\t+", "\t")
        text = tf.strings.regex_replace(text, "^\t|\t$", "")
        phrases = tf.strings.split(text, "\t")
        cut = phrases.row_lengths() > MAX_PHRASES
        phrases = phrases[:, :MAX_PHRASES]
        tokenized = self._read_target(phrases.flat_values)
        lengths = tokenized.lengths
        # A phrase that is too long is left out: its first words would be
        # another phrase.
        left_out = tokenized.truncated | (lengths > MAX_PHRASE_TOKENS)
        if known_only:
            left_out |= tf.reduce_any(tokenized.ids == UNK_ID, axis=1)
        lengths = tf.where(left_out, 0, lengths)
        lengths = phrases.with_flat_values(lengths).to_tensor(0)
        # All phrases together must fit into a translation.
        fits = tf.cumsum(lengths, axis=1) <= self.decoding.max_source_length
        cut |= ~tf.reduce_all(fits, axis=1)
        cut |= tf.reduce_any(phrases.with_flat_values(left_out), axis=1)
        ids = _to_dense(tokenized.ids[:, :MAX_PHRASE_TOKENS], 0)
        ids = phrases.with_flat_values(ids).to_tensor(0)
        return Phrases(ids, tf.where(fits, lengths, 0)), cut

    def _target_tokens(self, hypotheses, source_tokens, options, prefix):
        """Return the words of hypotheses, with replacements if requested."""
        tokens = self.target_tokenizer.lookup(hypotheses.ids)
        if options is None and not self.decoding.replace_unknown:
            return tokens
        replaced = self.unknown_words.replace(
            hypotheses.ids, hypotheses.alignments, tokens, source_tokens
        )
        if options is None:
            return replaced
        choice = resolve_option(
            "replace_unknown",
            options["replace_unknown"],
            self.decoding.replace_unknown,
        )
        tokens = tf.where(choice[:, None, None] > 0, replaced, tokens)
        # Words of the prefix appear as they were given, known or not.
        batch, _, steps = tf.unstack(tf.shape(tokens))
        prefix_tokens = prefix.tokens.to_tensor("", shape=[batch, steps])
        prefix_mask = tf.sequence_mask(prefix.lengths, steps)
        return tf.where(prefix_mask[:, None], prefix_tokens[:, None], tokens)

    def _join_tokens(self, tokens, lengths):
        shape = tf.shape(tokens)
        rows = tf.reshape(tokens, [shape[0] * shape[1], shape[2]])
        ragged = tf.RaggedTensor.from_tensor(rows, tf.reshape(lengths, [-1]))
        text = self.target_tokenizer.join(ragged)
        if self._target_moses is not None:
            text = self._target_moses.finish(text)
        return tf.reshape(text, shape[:2])


def _pad_empty_batch(*tensors):
    """Return the batch size, and the tensors with at least one row.

    The recurrent layers of Keras fail on an empty batch.
    """
    batch = tf.shape(tensors[0])[0]
    missing = tf.cast(batch == 0, tf.int32)
    return batch, [
        tf.concat([tensor, tf.zeros([missing], tensor.dtype)], 0)
        for tensor in tensors
    ]


def _float32(tensor):
    """Cast a tensor to float32, because JSON has no bfloat16."""
    return tf.cast(tensor, tf.float32)


def _to_dense(ragged, padding):
    """Return a dense tensor with at least one column."""
    dense = ragged.to_tensor(padding)
    missing = tf.maximum(1 - tf.shape(dense)[1], 0)
    return tf.pad(dense, [[0, 0], [0, missing]], constant_values=padding)
