"""Word lists in the graph: the dictionary and the shortlist of a search."""

import re
import warnings

from luong_keras.alignment.dictionary import read_dictionary, read_lexicon
from luong_keras.config import DecodingConfig, ModelConfig
from luong_keras.decoding.unk_replacement import copied_positions
from luong_keras.inference.search_runner import Phrases, Request
from luong_keras.text.tokenizer import (
    Tokenizer,
    table_asset,
    vocabulary_of,
)
from luong_keras.with_tensorflow import tf

# The first words of the vocabulary that a shortlist has at least.
MIN_FREQUENT_WORDS = 256
MAX_TRANSLATIONS = 32  # the most probable ones of a source word
_BYTE = re.compile("<0x[0-9A-F]{2}>")


class UnknownWords(tf.Module):
    """Replacement of `<unk>` by source words or their translations.

    Args:
        dictionary: File of word translations for `read_dictionary`, whose
            result an export contains. Words that it lacks are copied, or all
            words if it is None.
        alignment_step: As in `DecodingConfig.alignment_step`.
        source_tokenizer: The tokenizer of the source words.
    """

    def __init__(
        self,
        dictionary: str | None,
        alignment_step: str = "produces",
        source_tokenizer: Tokenizer | None = None,
    ) -> None:
        super().__init__()
        self.alignment_step = alignment_step
        words = read_dictionary(dictionary) if dictionary else {}
        if words and source_tokenizer is not None:
            _check_spelling(dictionary, list(words), source_tokenizer)
        self._table = None
        if words:
            # A file, which exports contain as an asset.
            lines = (f"{word}\t{words[word]}\n" for word in words)
            content = "".join(lines).encode()
            self._asset = table_asset("dictionary.tsv", content)
            self._table = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(
                    self._asset.asset_path,
                    key_dtype=tf.string,
                    key_index=0,
                    value_dtype=tf.string,
                    value_index=1,
                ),
                default_value="",
            )

    def replace(self, ids, alignments, tokens, source_tokens) -> tf.Tensor:
        """Replace unknown words that have a source word in tokens (B, N, T).

        Args:
            ids: (B, N, T) target ids.
            alignments: (B, N, T, S) attention weights.
            tokens: (B, N, T) strings, the words of the ids.
            source_tokens: (B, S) strings.
        """
        positions = copied_positions(ids, alignments, self.alignment_step)
        shape = tf.shape(positions)
        flat = tf.reshape(tf.maximum(positions, 0), [shape[0], -1])
        copies = tf.reshape(tf.gather(source_tokens, flat, batch_dims=1), shape)
        if self._table is not None:
            translations = self._table.lookup(copies)
            copies = tf.where(translations == "", copies, translations)
        return tf.where(positions >= 0, copies, tokens)


def _check_spelling(dictionary, words, tokenizer):
    """Warn unless one of the words is a token, as it is spelled."""
    known = {*vocabulary_of(tokenizer)}
    if not known.isdisjoint(words):
        return
    # An unknown word may be a token too, after SentencePiece's mark of a word.
    tokens = [
        [token.decode() for token in row]
        for row in tokenizer.tokens(tf.constant(words)).to_list()
    ]
    if all(row[-1:] != [word] for row, word in zip(tokens, words, strict=True)):
        warnings.warn(
            f"No word of the dictionary {dictionary} is a source token, so it "
            "has no effect. Expected: tokens of the source tokenizer, such as "
            f"{tokens[0]}. Received: {words[0]!r}.",
            stacklevel=2,
        )


class Shortlist(tf.Module):
    """Target words that a lexicon selects for the source words of a batch.

    The words of a batch are the first words of the vocabulary, which are the
    most frequent words and the special tokens; the translations in the lexicon
    of all source words; and the words of prefixes and phrases. A search step
    multiplies only with the weights of these words, and normalises the
    probabilities over them.

    Args:
        decoding: The settings of the search, with a `shortlist`.
        config: The configuration of the model.
        source_tokenizer: Tokenizer of the source language.
        target_tokenizer: Tokenizer of the target language.
        num_hypotheses: The number of hypotheses of a strategy other than that
            of the settings.

    Raises:
        ValueError: If the lexicon has no token of the vocabularies, or if the
            target vocabulary has fewer tokens than the hypotheses plus 2.
    """

    def __init__(
        self,
        decoding: DecodingConfig,
        config: ModelConfig,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        num_hypotheses: int = 1,
    ) -> None:
        super().__init__()
        self.size = config.target_vocabulary_size
        special = config.target_pad_id, config.bos_id, config.eos_id
        # The first words include the special tokens, so that their places in
        # the shortlist are their ids.
        beam_size = decoding.max_beam_size or decoding.beam_size
        min_words = max(beam_size, num_hypotheses) + 2
        target_words = vocabulary_of(target_tokenizer)
        # SentencePiece places single bytes first.
        first = max(
            (i for i, x in enumerate(target_words, 1) if _BYTE.fullmatch(x)),
            default=0,
        )
        self.num_frequent = max(
            first + MIN_FREQUENT_WORDS, max(special) + 1, min_words
        )
        self.num_frequent = min(self.num_frequent, self.size)
        if self.num_frequent < min_words:
            raise ValueError(
                "A shortlist must have more words than a beam has hypotheses. "
                f"Expected: a vocabulary of at least {min_words} tokens. "
                f"Received: {self.size} tokens."
            )
        lexicon = read_lexicon(str(decoding.shortlist))
        ids = {word: i for i, word in enumerate(target_words)}
        rows = [
            [ids[x] for x in lexicon.get(word, ()) if x in ids][
                :MAX_TRANSLATIONS
            ]
            for word in vocabulary_of(source_tokenizer)
        ]
        if not any(rows):
            raise ValueError(
                f"The lexicon {decoding.shortlist} has no token of these "
                "vocabularies. Expected: tokens as the tokenizers show them. "
                "Write it by `luong-keras lexicon`."
            )
        table = tf.ragged.constant(rows, dtype=tf.int32).to_tensor(0)
        # A variable, so that the graph of an export does not contain it.
        self._table = tf.Variable(table, trainable=False, name="shortlist")

    def words(self, sources: tf.Tensor, *extra_ids: tf.Tensor) -> tf.Tensor:
        """Return the sorted ids of the words, (C,).

        Args:
            sources: Ids of source words, of any shape.
            *extra_ids: Ids of words that the result must contain.
        """
        rows = tf.gather(self._table, tf.reshape(sources, [-1]))
        id_lists = [tf.range(self.num_frequent), rows, *extra_ids]
        ids = tf.concat([tf.reshape(x, [-1]) for x in id_lists], axis=0)
        marks = tf.tensor_scatter_nd_update(
            tf.zeros([self.size], tf.bool),
            ids[:, None],
            tf.ones_like(ids, tf.bool),
        )
        return tf.cast(tf.where(marks)[:, 0], tf.int32)

    def restrict(
        self, sources: tf.Tensor, request: Request | None
    ) -> tuple[tf.Tensor, Request | None]:
        """Return the words, and a request with places among them for its ids.

        Args:
            sources: Ids of source words, of any shape.
            request: The request, whose words the shortlist must contain.
        """
        if request is None:
            return self.words(sources), None
        phrases = {k: x for k, x in request.items() if isinstance(x, Phrases)}
        words = self.words(sources, *(x.ids for x in phrases.values()))
        for name, (ids, lengths) in phrases.items():
            places = tf.searchsorted(words, tf.reshape(ids, [-1]))
            phrases[name] = Phrases(tf.reshape(places, tf.shape(ids)), lengths)
        return words, request | phrases
