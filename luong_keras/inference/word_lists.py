"""Word lists in the graph: the dictionary and the shortlist of a search."""

from __future__ import annotations

import tempfile
from pathlib import Path

from luong_keras.alignment.dictionary import read_dictionary, read_lexicon
from luong_keras.config import DecodingConfig, ModelConfig
from luong_keras.decoding.unk_replacement import copied_positions
from luong_keras.inference.request_options import RequestOptions
from luong_keras.text.tokenizer import Tokenizer, vocabulary_of
from luong_keras.with_tensorflow import tf

# Of every batch the first words of the vocabulary may occur, and of each
# source word the most probable translations.
FREQUENT = 256
TRANSLATIONS = 32


class UnknownWords(tf.Module):
    """Puts source words, or their translations, in place of `<unk>`.

    Args:
        dictionary: a file of word translations, as `read_dictionary` reads;
            an export carries what is needed of it. Words that it lacks are
            copied, as are all where it is None.
        alignment_step: as `DecodingConfig.alignment_step`.
    """

    def __init__(
        self, dictionary: str | None, alignment_step: str = "produces"
    ) -> None:
        super().__init__()
        self.alignment_step = alignment_step
        words = read_dictionary(dictionary) if dictionary else {}
        self._table = self._make_table(words) if words else None

    def replace(self, ids, alignments, tokens, source_tokens) -> tf.Tensor:
        """Tokens (B, N, T) without unknown words that have a source word.

        Args:
            ids: (B, N, T).
            alignments: (B, N, T, S).
            tokens: (B, N, T) strings, the names of the ids.
            source_tokens: (B, S) strings.
        """
        positions = copied_positions(ids, alignments, self.alignment_step)
        shape = tf.shape(positions)
        flat = tf.reshape(tf.maximum(positions, 0), [shape[0], -1])
        copies = tf.reshape(tf.gather(source_tokens, flat, batch_dims=1), shape)
        if self._table is not None:
            known = self._table.lookup(copies)
            copies = tf.where(known == "", copies, known)
        return tf.where(positions >= 0, copies, tokens)

    def _make_table(self, words):
        """A table of a file of its own, which exports carry as an asset."""
        self._folder = tempfile.TemporaryDirectory(prefix="luong_keras_words_")
        file = Path(self._folder.name) / "dictionary.tsv"
        lines = (
            f"{word}\t{translation}\n" for word, translation in words.items()
        )
        file.write_bytes("".join(lines).encode())
        self._asset = tf.saved_model.Asset(str(file))
        return tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                self._asset.asset_path,
                key_dtype=tf.string,
                key_index=0,
                value_dtype=tf.string,
                value_index=1,
            ),
            default_value="",
        )


class Shortlist(tf.Module):
    """Chooses words by the source, from a lexicon.

    The words of a batch are the first of the vocabulary, which are the most
    frequent ones and the special tokens, those that the lexicon has for a
    word of any of its sources, and what the sentences ask for by name. A step
    of a search multiplies with the weights of these alone, and probabilities
    are among them.

    Args:
        decoding: the settings, with a `shortlist`.
        config: of the model.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language.

    Raises:
        ValueError: where the lexicon has none of the vocabularies' tokens, or
            a vocabulary is smaller than the beam.
    """

    def __init__(
        self,
        decoding: DecodingConfig,
        config: ModelConfig,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
    ) -> None:
        super().__init__()
        self.size = config.target_vocabulary_size
        special = config.target_pad_id, config.bos_id, config.eos_id
        # Their places are their ids, so that a search knows them.
        least = (decoding.max_beam_size or decoding.beam_size) + 2
        self.first = max(FREQUENT, max(special) + 1, least)
        self.first = min(self.first, self.size)
        if self.first < least:
            raise ValueError(
                "A shortlist must have more words than a beam hypotheses. "
                f"Expected: a vocabulary of {least} tokens at least. Received: "
                f"{self.size} tokens."
            )
        rows = self._rows(
            read_lexicon(str(decoding.shortlist)),
            vocabulary_of(source_tokenizer),
            {word: i for i, word in enumerate(vocabulary_of(target_tokenizer))},
            TRANSLATIONS,
        )
        if not any(rows):
            raise ValueError(
                f"The lexicon {decoding.shortlist} has no token of these "
                "vocabularies. Expected: tokens as the tokenizers show them. "
                "Write it by `luong-keras lexicon`."
            )
        table = tf.ragged.constant(rows, dtype=tf.int32).to_tensor(0)
        # A variable: the graph of an export should not carry it.
        self._table = tf.Variable(table, trainable=False, name="shortlist")

    @staticmethod
    def _rows(lexicon, sources, targets, maximum):
        """The ids that translate each source id."""
        return [
            [
                targets[word]
                for word in lexicon.get(source, ())
                if word in targets
            ][:maximum]
            for source in sources
        ]

    def words(self, sources: tf.Tensor, *wanted: tf.Tensor) -> tf.Tensor:
        """The ids, in their order, (C,).

        Args:
            sources: ids of source words, of any shape.
            *wanted: ids of words that must be among them.
        """
        rows = tf.gather(self._table, tf.reshape(sources, [-1]))
        ids = [tf.range(self.first), tf.reshape(rows, [-1])]
        ids += [tf.reshape(each, [-1]) for each in wanted]
        found = tf.concat(ids, axis=0)
        marks = tf.tensor_scatter_nd_update(
            tf.zeros([self.size], tf.bool),
            found[:, None],
            tf.ones_like(found, tf.bool),
        )
        return tf.cast(tf.where(marks)[:, 0], tf.int32)


def named_words(request: RequestOptions | None) -> list[tf.Tensor]:
    """The ids that sentences ask for, or refuse."""
    if request is None:
        return []
    phrases = [request.required, request.forbidden]
    return [request.prefix, *(each.ids for each in phrases if each is not None)]


def restrict_to_shortlist(
    words: tf.Tensor, request: RequestOptions | None
) -> RequestOptions | None:
    """The same request with places among the words instead of ids."""
    if request is None:
        return None

    def places(ids):
        found = tf.searchsorted(words, tf.reshape(ids, [-1]))
        return tf.reshape(found, tf.shape(ids))

    required, forbidden = (
        None if each is None else each._replace(ids=places(each.ids))
        for each in (request.required, request.forbidden)
    )
    return request._replace(
        prefix=places(request.prefix), required=required, forbidden=forbidden
    )
