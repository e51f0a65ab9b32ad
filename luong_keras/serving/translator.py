"""Strings in, translations out, in one TensorFlow graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from luong_keras.config import DecodingConfig, RunConfig, config_from_dict
from luong_keras.decoding.beam_search import beam_search
from luong_keras.decoding.greedy import greedy_search
from luong_keras.decoding.unk_replacement import copied_positions
from luong_keras.evaluation.aer import best_links
from luong_keras.models.translation_model import TranslationModel
from luong_keras.special_tokens import PAD_ID
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.text.translation_dictionary import read_dictionary
from luong_keras.training.run_folder import RunFolder


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: the detokenised translation.
        score: its log-probability, normalised as the search was told.
        tokens: its words or subwords, unknown ones replaced if asked for.
        source_tokens: those of the source, as far as it was read.
        alignments: (T, S) attention weights, after the softmax.
        links: `(source position, target position)` of the largest weight of
            each token, in the step that `alignment_step` names.
    """

    text: str
    score: float
    tokens: list[str]
    source_tokens: list[str]
    alignments: np.ndarray
    links: list[tuple[int, int]]


class Translator(tf.Module):
    """A trained model with its tokenizers and its search.

    Everything from the string to the string runs in the TensorFlow graph, so
    that what is served is what was evaluated.

    Args:
        translation_model: the trained `TranslationModel`.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language.
        decoding: the settings of the search.

    Raises:
        ValueError: where a tokenizer has not the vocabulary of the model.
    """

    def __init__(
        self,
        translation_model: TranslationModel,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
    ) -> None:
        super().__init__(name="translator")
        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                "A Translator needs Keras' TensorFlow backend. Received: "
                f"{keras.backend.backend()!r}. Set KERAS_BACKEND=tensorflow."
            )
        config = translation_model.config
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
        self.translation_model = translation_model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.decoding = decoding or DecodingConfig()
        self._dictionary = _word_table(self.decoding.dictionary)
        self._translate = tf.function(
            self.translate_batch,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    @classmethod
    def from_run(
        cls,
        run_folder: str | Path,
        weights: str = "best",
        decoding: DecodingConfig | None = None,
        precision: str | None = None,
    ) -> Translator:
        """The translator that a training run has made.

        Args:
            run_folder: the folder of the run.
            weights: `"best"` or `"last"`.
            decoding: the search; that of the run when None.
            precision: of the computation, as `ModelConfig.precision`; that
                of the run when None. `"mixed_bfloat16"` translates batches
                faster where the processor multiplies bfloat16, with scores
                of two or three digits and, now and then, another word. A
                greedy search of single sentences is slower: every call
                rounds the weights.
        """
        if not Path(run_folder).is_dir():
            raise FileNotFoundError(
                "Expected: the folder of a training run. Received: "
                f"{run_folder}, which does not exist."
            )
        run = RunFolder(run_folder)
        config: RunConfig = config_from_dict(run.read_config())
        model_config = config.model
        if precision is not None:
            model_config = dataclasses.replace(
                model_config, precision=precision
            )
        translation_model = TranslationModel(model_config)
        path = run.best_weights if weights == "best" else run.last_weights
        if not path.exists():
            raise FileNotFoundError(
                f"Expected: the weights {path}. Received: no such file. Has "
                "the run finished its first epoch?"
            )
        translation_model.model.load_weights(path)
        return cls(
            translation_model,
            load_tokenizer(run.path, "source_vocabulary"),
            load_tokenizer(run.path, "target_vocabulary"),
            decoding or config.decoding,
        )

    # In the graph.

    def translate_batch(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """The n best translations of (B,) UTF-8 strings.

        Returns a dict, batch first: `translations` (B, N) and `scores`
        (B, N), the best first; `tokens` (B, N, T), `lengths` (B, N) and
        `alignments` (B, N, T, S); `source_tokens` (B, S). An empty sentence
        has an empty translation, and `-inf` marks ranks that the search did
        not fill.
        """
        batch = tf.shape(text)[0]
        # Keras' recurrent layers fail on a batch of none.
        fill = tf.fill([tf.cast(batch == 0, tf.int32)], "")
        ids, source_tokens, lengths = self._read(tf.concat([text, fill], 0))
        memory, mask, states = self.translation_model.encode(ids)
        found = self._search(memory, mask, states, lengths)
        tokens = self.target_tokenizer.lookup(found.ids)
        if self.decoding.replace_unknown:
            tokens = self._copy_unknown(found, tokens, source_tokens)
        results = {
            "translations": self._join(tokens, found.lengths),
            "scores": found.scores,
            "tokens": tokens,
            "lengths": found.lengths,
            "alignments": found.alignments,
            "source_tokens": source_tokens,
        }
        return {name: result[:batch] for name, result in results.items()}

    def _read(self, text):
        """Ids (B, S), surface tokens (B, S) and lengths (B,)."""
        limit = self.decoding.max_source_length
        ids = self.source_tokenizer.encode(text)[:, :limit]
        tokens = self.source_tokenizer.tokens(text)[:, :limit]
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        width = tf.maximum(tf.reduce_max(tf.pad(lengths, [[0, 1]])), 1)
        batch = tf.shape(lengths)[0]
        return (
            ids.to_tensor(PAD_ID, shape=[batch, width]),
            tokens.to_tensor("", shape=[batch, width]),
            lengths,
        )

    def _search(self, memory, mask, states, lengths):
        decoding, config = self.decoding, self.translation_model.config
        step = self.translation_model.decoding_step(memory, mask)
        read = tf.cast(lengths + 1, tf.float32)  # S + 1, as in the paper's
        most = tf.cast(read * decoding.max_length_ratio, tf.int32)
        most = tf.where(lengths > 0, tf.maximum(most, 2), 0)
        least = tf.cast(read * decoding.min_length_ratio, tf.int32)
        limits = {
            "max_lengths": most,
            "max_steps": tf.reduce_max(tf.pad(most, [[0, 1]])),
            "min_lengths": tf.minimum(least, most - 1),
            "length_penalty": decoding.length_penalty,
            "bos_id": config.bos_id,
            "eos_id": config.eos_id,
            "pad_id": config.target_pad_id,
        }
        if decoding.beam_size == 1 and decoding.stack_size in (None, 1):
            return greedy_search(step, states, **limits)
        return beam_search(
            step,
            states,
            beam_size=decoding.beam_size,
            stack_size=decoding.stack_size,
            **limits,
        )

    def _copy_unknown(self, found, tokens, source_tokens):
        positions = copied_positions(
            found.ids, found.alignments, self.decoding.alignment_step
        )
        shape = tf.shape(positions)
        flat = tf.reshape(tf.maximum(positions, 0), [shape[0], -1])
        copies = tf.reshape(tf.gather(source_tokens, flat, batch_dims=1), shape)
        if self._dictionary is not None:
            known = self._dictionary.lookup(copies)
            copies = tf.where(known == "", copies, known)
        return tf.where(positions >= 0, copies, tokens)

    def _join(self, tokens, lengths):
        shape = tf.shape(tokens)
        rows = tf.reshape(tokens, [shape[0] * shape[1], shape[2]])
        ragged = tf.RaggedTensor.from_tensor(rows, tf.reshape(lengths, [-1]))
        return tf.reshape(self.target_tokenizer.join(ragged), shape[:2])

    # In Python.

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The best translation of every line, in order."""
        return [nbest[0].text for nbest in self.nbest(lines)]

    def nbest(self, lines: Sequence[str]) -> list[list[Translation]]:
        """The n best translations of every line, in order."""
        results: list[list[Translation]] = [[] for _ in lines]
        for places in self._batches(lines):
            found = self._translate(tf.constant([lines[i] for i in places]))
            arrays = {name: t.numpy() for name, t in found.items()}
            for row, place in enumerate(places):
                results[place] = _translations(
                    arrays, row, self.decoding.alignment_step
                )
        return results

    def alignments(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        with_end: bool = False,
    ) -> list[np.ndarray]:
        """Attention weights (T, S) of given translations.

        The decoder is forced to produce each target; row t has the weights
        of the step that produces its word t. Tokens are those of the
        tokenizers, cut at `max_source_length`. `with_end` adds the row of
        the step that reads the last word and produces `</s>`.
        """
        from luong_keras.data.evaluation_batches import EvaluationBatches

        batches = EvaluationBatches(
            sources,
            self.source_tokenizer,
            self.decoding.batch_size,
            self.decoding.max_source_length,
            targets,
            self.target_tokenizer,
        )
        results: list[np.ndarray] = [np.empty((0, 0))] * len(sources)
        model = self.translation_model.alignment_model
        for batch in batches:
            weights = model.predict_on_batch(
                [batch["source"], batch["target_in"]]
            )
            for row, place in enumerate(batch["indices"]):
                words = int(np.sum(batch["target_out"][row] != PAD_ID))
                words -= not with_end
                length = int(np.sum(batch["source"][row] != PAD_ID))
                results[place] = weights[row, :words, :length]
        return results

    def _batches(self, lines: Sequence[str]) -> Iterator[list[int]]:
        """Places of lines of like length, so that little is padded."""
        order = sorted(range(len(lines)), key=lambda i: len(lines[i]))
        size = self.decoding.batch_size
        for start in range(0, len(order), size):
            yield order[start : start + size]


def _word_table(path: str | None) -> tf.lookup.StaticHashTable | None:
    """The dictionary's words, and "" for all others."""
    if path is None:
        return None
    words = read_dictionary(path).words
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            list(words), list(words.values()), tf.string, tf.string
        ),
        default_value="",
    )


def _translations(arrays: dict[str, np.ndarray], row: int, step: str):
    source = [t.decode() for t in arrays["source_tokens"][row] if t]
    found = []
    for rank, score in enumerate(arrays["scores"][row]):
        if np.isneginf(score):
            break
        length = arrays["lengths"][row, rank]
        tokens = arrays["tokens"][row, rank, :length]
        # With the row of the step that reads the last word, if there is one.
        weights = arrays["alignments"][row, rank, : length + 1, : len(source)]
        if not weights[length:].any():
            weights = weights[:length]
        found.append(
            Translation(
                arrays["translations"][row, rank].decode(),
                float(score),
                [token.decode() for token in tokens],
                source,
                weights[:length],
                sorted(best_links(weights, len(source), length, step)),
            )
        )
    return found
