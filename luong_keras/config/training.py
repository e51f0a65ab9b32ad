"""Settings of training, and of a whole run: its four sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from luong_keras.config.checks import (
    Count,
    Fraction,
    Natural,
    NonNegative,
    Positive,
    Seed,
    Settings,
)
from luong_keras.config.data import DataConfig
from luong_keras.config.decoding import DecodingConfig
from luong_keras.config.model import ModelConfig
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID

Optimizer: TypeAlias = Literal["sgd", "adam"]


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Settings of training.

    `luong-keras train --help-all` and the comments beside the fields describe
    them.
    """

    batch_size: Count = 128  # pairs per step
    # number of micro-batches computed one after the other, to save memory; the
    # step uses the sum of their gradients, so it equals that of the whole batch
    gradient_accumulation_steps: Count = 1
    # number of micro-batches computed at once, on TensorFlow, each on its share
    # of the CPU cores; the step is equally exact
    parallel_microbatches: Count = 1
    # total number of epochs, including those of earlier calls; the paper has 10
    # without dropout
    epochs: Count = 12
    optimizer: Optimizer = "sgd"  # optimizer of the weights
    learning_rate: NonNegative = 1.0  # learning rate of the first epoch
    # maximum norm of the gradient of all weights; larger ones are rescaled
    clip_norm: Positive | None = 5.0
    # include the embeddings' gradients in the norm; the authors' program
    # excludes them. They are rescaled in either case
    clip_counts_embeddings: bool = True
    # start: epochs from first_halved_epoch on begin with a halving (the paper);
    # after_epoch: halvings follow the batches of those epochs (the authors'
    # program); by_iteration: the authors' rule for epochs of
    # iterations_per_epoch updates; plateau: after an epoch that is not better
    # by metric
    halving: Literal["start", "after_epoch", "by_iteration", "plateau"] = (
        "start"
    )
    # by_iteration: number of updates that count as an epoch
    iterations_per_epoch: Count | None = None
    # the epoch of the first halving, counted from 1; the paper has 6 without
    # dropout
    first_halved_epoch: Count = 9
    # number of halvings of each epoch from first_halved_epoch on
    halvings_per_epoch: Count = 1
    # "sentence": sum over words, mean over sentences (the paper); "word": mean
    # over words
    normalization: Literal["sentence", "word"] = "sentence"
    # sentence: divide a short last batch by batch_size, as the authors' program
    # does, instead of by its number of sentences
    nominal_batch_size: bool = False
    # probability that the loss spreads over all words (Szegedy et al. 2016)
    label_smoothing: Fraction = 0.0
    # number of target words, drawn anew per step, that the losses of a step
    # are estimated from, for large vocabularies; all words if None
    sampled_softmax: Count | None = None
    # fine-tuning: the parent run, whose weights, vocabularies and preparation
    # of text this run begins with: its folder, one of its weight files, such as
    # runs/base/checkpoints/epoch-007.weights.h5, or its export
    init_from: str | None = None
    # patterns of paths of weights that are not trained, such as encoder
    # or */bias*
    frozen: tuple[str, ...] = ()
    # seed of the initial weights, the dropout and the order of the pairs
    seed: Seed = 1
    # number of steps between snapshots, from which a run can continue
    snapshot_steps: Count = 1000
    samples: Natural = 5  # translations shown after each epoch
    # number of latest epochs whose weights stay in the run folder, as
    # checkpoints/epoch-007.weights.h5
    keep: Natural = 0
    # metric that chooses the best epoch: bleu (in the tokenization of the
    # target language, or in one of sacreBLEU's, as bleu:zh), chrf, ter,
    # exact_match, token_accuracy, loss, or a user-defined one. auto: bleu, or
    # exact_match or chrf if most references are shorter than four tokens. The
    # lower validation perplexity decides between equal epochs
    metric: str = "auto"
    # number of epochs in a row without a better one after which training ends
    patience: Count | None = None
    # weights that are scored and exported at the end
    final_weights: Literal["best", "last"] = "best"

    def _check(self) -> None:
        if self.sampled_softmax is not None and self.label_smoothing:
            raise ValueError(
                "label_smoothing needs the logits of all words. Received: "
                f"label_smoothing={self.label_smoothing} and "
                f"sampled_softmax={self.sampled_softmax}. Set one to 0, or "
                "the other to null."
            )
        if self.nominal_batch_size and self.normalization == "word":
            raise ValueError(
                "nominal_batch_size=true belongs to normalization='sentence'. "
                "Received: normalization='word'."
            )
        if (self.halving == "by_iteration") != bool(self.iterations_per_epoch):
            raise ValueError(
                "halving='by_iteration' and iterations_per_epoch go together. "
                f"Received: halving={self.halving!r}, "
                f"iterations_per_epoch={self.iterations_per_epoch}."
            )


@dataclass(frozen=True)
class RunConfig(Settings):
    """All settings of one training run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def _check(self) -> None:
        model = self.model
        ids = (
            model.source_pad_id,
            model.target_pad_id,
            model.bos_id,
            model.eos_id,
        )
        if ids != (PAD_ID, PAD_ID, BOS_ID, EOS_ID):
            raise ValueError(
                "A run's text has the ids of this library's tokenizers. "
                "Expected: source_pad_id, target_pad_id, bos_id, eos_id = "
                f"{(PAD_ID, PAD_ID, BOS_ID, EOS_ID)}. Received: {ids}. Other "
                "ids are for a TranslationModel of your own data."
            )
        if model.source_features is not None:
            raise ValueError(
                "The source of a run is text. Expected: source_features=None. "
                f"Received: source_features={model.source_features}. Features "
                "are for a TranslationModel of your own data."
            )
        sizes = model.source_vocabulary_size, model.target_vocabulary_size
        if self.data.joint_vocabulary and sizes[0] != sizes[1]:
            raise ValueError(
                "data.joint_vocabulary=true means one vocabulary. Expected: "
                "equal model.source_vocabulary_size and "
                f"model.target_vocabulary_size. Received: {sizes[0]} and "
                f"{sizes[1]}. Make them equal, or set "
                "data.joint_vocabulary=false."
            )
        if self.decoding.coverage_penalty and model.attention.kind == "none":
            raise ValueError(
                "decoding.coverage_penalty needs attention weights. Received: "
                f"coverage_penalty={self.decoding.coverage_penalty} with "
                "model.attention.kind=none. Set it to 0."
            )
        if self.data.new_words and self.training.init_from is None:
            raise ValueError(
                "new_words adds words to the vocabularies of "
                "training.init_from. Received: "
                f"new_words={self.data.new_words} and init_from=None."
            )
        if model.shared_embeddings and not self.data.joint_vocabulary:
            raise ValueError(
                "shared_embeddings=true means that an id is the same word on "
                "both sides. Expected: data.joint_vocabulary=true. Received: "
                "false."
            )
