"""The settings of training, and of a whole run."""

from dataclasses import dataclass, field
from typing import Literal

from luong_keras.config.checks import (
    Settings,
    check_at_least,
    check_positive,
    check_share,
)
from luong_keras.config.data import DataConfig
from luong_keras.config.decoding import DecodingConfig
from luong_keras.config.model import ModelConfig
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """The settings of training."""

    batch_size: int = 128
    # parts of a batch that go through the model one after the other, to save
    # memory; their gradients are added up, so the step is that of the batch
    gradient_accumulation_steps: int = 1
    # parts that go through it at once, on TensorFlow, each on its share of the
    # cores of a CPU; as exact
    parallel_microbatches: int = 1
    epochs: int = 12  # 10 without dropout
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = 1.0
    clip_norm: float | None = 5.0
    # whether the embeddings' gradients count in the norm; they do not in the
    # authors' program, and are rescaled with the others all the same
    clip_counts_embeddings: bool = True
    # start: epochs first_halved_epoch and later begin with a halving (the
    # paper); after_epoch: halvings follow the batches of those epochs (the
    # authors' program)
    # by_iteration: their rule for epochs of iterations_per_epoch updates;
    # plateau: after an epoch that was not better by metric
    halving: Literal["start", "after_epoch", "by_iteration", "plateau"] = (
        "start"
    )
    iterations_per_epoch: int | None = None
    # counted from 1; 6 without dropout
    first_halved_epoch: int = 9
    halvings_per_epoch: int = 1
    # "sentence": sum over words, mean over sentences (the paper); "word"
    normalization: Literal["sentence", "word"] = "sentence"
    # sentence: a short last batch is divided by batch_size too, as in the
    # authors' program, not by its own size
    nominal_batch_size: bool = False
    label_smoothing: float = 0.0
    # how many words of the target vocabulary a step estimates its losses from,
    # other ones every time; for large vocabularies. All when None
    sampled_softmax: int | None = None
    # fine-tuning: the folder of another run, one of its weight files, such as
    # runs/base/checkpoints/epoch-007.weights.h5, or its export, whose weights,
    # vocabularies and preparation of text this run begins with
    init_from: str | None = None
    # weights that are not trained: patterns of their paths, such as encoder or
    # */bias*
    frozen: tuple[str, ...] = ()
    seed: int = 1
    snapshot_steps: int = 1000
    samples: int = 5  # translations shown after each epoch
    # steps with a NaN or an infinity in the gradient that are left out; the
    # next one stops the run, with its last finite snapshot
    max_skipped: int = 0
    # of how many epochs, the last ones, the weights stay in the run folder, as
    # checkpoints/epoch-007.weights.h5
    keep: int = 0
    # average.weights.h5: the mean of the weights of that many last epochs
    average_epochs: int | None = None
    # what chooses the best epoch: bleu (in the tokenization of the target
    # language, or in one of sacreBLEU's, as bleu:zh), chrf, ter, exact_match,
    # token_accuracy, loss, or one of your own. auto: bleu; where most
    # references are shorter than four tokens, exact_match or chrf. Of equal
    # epochs the one of less validation loss is the better
    metric: str = "auto"
    # epochs in a row without a better one that end the training
    patience: int | None = None
    # which weights are scored and exported at the end
    final_weights: Literal["best", "last", "average"] = "best"

    def __post_init__(self):
        super().__post_init__()
        check_at_least(
            self,
            1,
            "batch_size",
            "gradient_accumulation_steps",
            "parallel_microbatches",
            "epochs",
            "first_halved_epoch",
            "halvings_per_epoch",
            "iterations_per_epoch",
            "sampled_softmax",
            "snapshot_steps",
            "average_epochs",
            "patience",
        )
        check_share(self, "label_smoothing")
        check_at_least(
            self, 0, "learning_rate", "seed", "samples", "max_skipped"
        )
        check_positive(self, "clip_norm")
        check_averages(self)
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
    """Everything that one training run depends on."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def __post_init__(self):
        super().__post_init__()
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
        sizes = model.source_vocabulary_size, model.target_vocabulary_size
        if self.data.joint_vocabulary and sizes[0] != sizes[1]:
            raise ValueError(
                "joint_vocabulary=true means one vocabulary, so both sizes "
                f"must be equal. Received: {sizes[0]} and {sizes[1]}."
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


def check_averages(training) -> None:
    """Raises where the weights that a run writes contradict each other."""
    if training.keep < 0:
        raise ValueError(
            "keep is a number of epochs, 0 for none. Received: "
            f"keep={training.keep}."
        )
    if training.final_weights == "average" and training.average_epochs is None:
        raise ValueError(
            "final_weights='average' needs average_epochs, which writes these "
            "weights. Received: average_epochs=None."
        )
