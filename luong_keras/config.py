"""Every setting of a run, as frozen dataclasses with the paper's values.

The defaults are those of Luong, Pham and Manning (2015), section 4.1, for
their best single model; `PRESETS` has complete sets of settings. The
resolved configuration of a run is written into its folder.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class AttentionConfig:
    """Which attention a model has."""

    kind: Literal["none", "global", "local"] = "local"
    score_mode: Literal[
        "dot", "scaled_dot", "general", "concat", "location"
    ] = "general"
    # local: local-m or local-p (section 3.2)
    alignment: Literal["monotonic", "predictive"] = "predictive"
    half_width: int = 10  # local: D
    gaussian: Literal[
        "auto", "after_softmax", "renormalized", "inside_softmax", "none"
    ] = "auto"
    max_length: int = 50  # location: positions
    use_scale: bool = False
    dropout: float = 0.0  # of the attention weights

    __pydantic_config__ = {"extra": "forbid"}


@dataclass(frozen=True)
class ModelConfig:
    """Shape of a translation model."""

    source_vocabulary_size: int = 50_000  # special tokens counted
    target_vocabulary_size: int = 50_000
    source_features: int | None = None  # F: float features, no vocabulary
    embedding_size: int = 1000  # E
    units: int = 1000  # U
    encoder_layers: int = 4
    decoder_layers: int = 4
    recurrence: Literal["lstm", "gru"] = "lstm"
    bidirectional: bool = False  # each direction then has U / 2 units
    reverse_source: bool = True
    # "luong": attention after the recurrence; "bahdanau": before it
    decoder: Literal["luong", "bahdanau"] = "luong"
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    input_feeding: bool = True
    dropout: float = 0.2
    dropout_style: Literal["zaremba", "authors", "sequence"] = "zaremba"
    use_bias: bool = True  # of the gates; the authors' program has none
    output_bias: bool = False
    tied_embeddings: bool = False  # target embedding and output matrix
    initial_range: float | None = 0.1  # U[-r, r]; None: Keras' defaults
    # float32, mixed_bfloat16, mixed_float16 or float64
    precision: str = "float32"

    __pydantic_config__ = {"extra": "forbid"}

    def __post_init__(self):
        if self.reverse_source and self.bidirectional:
            raise ValueError(
                "reverse_source=True and bidirectional=True exclude each "
                "other: a bidirectional encoder reads both ways. Set one of "
                "them to false."
            )
        if self.bidirectional and self.units % 2:
            raise ValueError(
                "A bidirectional encoder splits `units` between its two "
                f"directions. Expected: an even number. Received: "
                f"units={self.units}."
            )
        if self.decoder == "bahdanau" and self.attention.kind == "none":
            raise ValueError(
                "decoder='bahdanau' feeds the context to the recurrence and "
                "needs attention. Received: attention.kind='none'."
            )


@dataclass(frozen=True)
class DataConfig:
    """What a model is trained on, and how text becomes ids."""

    # phrasebook (built in), files, or a tensorflow_datasets name
    dataset: str = "wmt14_translate"
    source_language: str = "en"
    target_language: str = "de"
    # files: path prefixes, language codes are appended (train -> train.en)
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    # WMT: sacrebleu test sets, and a file of line numbers to keep
    dev_set: str = "wmt13"
    test_set: str = "wmt14/full"
    test_subset: str | None = None
    train_size: int | None = None  # phrasebook: pairs
    tokenizer: Literal["words", "sentencepiece"] = "words"
    # one vocabulary for both languages
    joint_vocabulary: bool = False
    # sacremoses, before anything else; scores are then of such text
    lowercase: bool = False
    normalize_punctuation: bool = False
    tokenize: bool = False
    max_length: int = 50  # longer training pairs are filtered (section 4.1)
    over_long: Literal["drop", "cut"] = "drop"
    on_bad_line: Literal["error", "skip"] = "skip"

    __pydantic_config__ = {"extra": "forbid"}


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained."""

    batch_size: int = 128
    epochs: int = 12  # 10 without dropout
    optimizer: Literal["sgd", "adam"] = "sgd"
    learning_rate: float = 1.0
    clip_norm: float | None = 5.0
    # counted from 1; 6 without dropout
    first_halved_epoch: int = 9
    halvings_per_epoch: int = 1
    halving_factor: float = 0.5
    # "sentence": sum over words, mean over sentences (the paper); "word"
    normalization: Literal["sentence", "word"] = "sentence"
    label_smoothing: float = 0.0
    seed: int = 1
    snapshot_steps: int = 1000
    jit_compile: bool = False
    samples: int = 5  # translations shown after each epoch

    __pydantic_config__ = {"extra": "forbid"}


@dataclass(frozen=True)
class DecodingConfig:
    """How a trained model translates."""

    beam_size: int = 10
    # finished hypotheses to collect; the beam size when None
    stack_size: int | None = None
    # 0: plain sum of log-probabilities; 1: their mean (score / length**x)
    length_penalty: float = 0.0
    # of the source length + 1
    min_length_ratio: float = 0.5
    max_length_ratio: float = 1.5
    replace_unknown: bool = True
    batch_size: int = 32
    max_source_length: int = 200  # longer sources are cut

    __pydantic_config__ = {"extra": "forbid"}


@dataclass(frozen=True)
class RunConfig:
    """Everything that one training run depends on."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    __pydantic_config__ = {"extra": "forbid"}


def config_to_dict(config) -> dict[str, Any]:
    """A configuration as plain nested dictionaries, ready for JSON."""
    return dataclasses.asdict(config)


def config_from_dict(values: dict[str, Any], kind: type = RunConfig):
    """The configuration of type `kind` with these values, each checked.

    Raises:
        ValueError: for an unknown name or a value of the wrong type; the
            message has the full name of each.
    """
    try:
        from pydantic import TypeAdapter, ValidationError
    except ImportError as error:
        raise ImportError(
            "Reading a configuration needs pydantic: "
            "`pip install luong-keras[train]`."
        ) from error
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}. "
            f"Received: {e['input']!r}"
            for e in error.errors()
        )
        raise ValueError(f"Wrong settings: {problems}") from None


def override(config: RunConfig, assignments: list[str]) -> RunConfig:
    """`config` with `key=value` assignments such as `model.units=512`.

    A value is read as JSON where it is JSON (`null`, `true`, `0.5`), as
    text otherwise.

    Example:
    >>> override(PRESETS["demo"], ["model.units=64"]).model.units
    64
    """
    values = config_to_dict(config)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        *path, last = name.strip().split(".")
        section = values
        for part in path:
            section = section.get(part) if isinstance(section, dict) else None
        if not equals or not isinstance(section, dict) or last not in section:
            raise ValueError(
                "Expected an assignment `section.name=value` such as "
                f"`model.units=512`. Received: {assignment!r}. The sections "
                f"are {', '.join(config_to_dict(config))}."
            )
        section[last] = _json_or_text(text.strip())
    return config_from_dict(values)


def _json_or_text(text: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


_PAPER = RunConfig()

# For tens of thousands of sentence pairs: chosen on Multi30k.
_SMALL = RunConfig(
    model=ModelConfig(
        source_vocabulary_size=8000,
        target_vocabulary_size=8000,
        embedding_size=256,
        units=512,
        encoder_layers=1,
        decoder_layers=1,
        bidirectional=True,
        reverse_source=False,
        attention=AttentionConfig(kind="global"),
        dropout=0.3,
        output_bias=True,
        tied_embeddings=True,
        # Validation BLEU after one epoch: 4.7 with Keras' defaults, 12.0 with
        # 0.08, 17.8 with 0.15.
        initial_range=0.15,
    ),
    data=DataConfig(
        dataset="files",
        tokenizer="sentencepiece",
        joint_vocabulary=True,
        max_length=80,
    ),
    training=TrainingConfig(
        batch_size=64,
        epochs=8,
        optimizer="adam",
        learning_rate=1e-3,
        clip_norm=1.0,
        first_halved_epoch=6,
        normalization="word",
        label_smoothing=0.1,
        snapshot_steps=200,
    ),
    decoding=DecodingConfig(length_penalty=1.0, max_length_ratio=2.0),
)

# For the built-in corpus: a few minutes on two cores.
_DEMO = RunConfig(
    model=ModelConfig(
        source_vocabulary_size=1000,
        target_vocabulary_size=1000,
        embedding_size=80,
        units=160,
        encoder_layers=1,
        decoder_layers=1,
        bidirectional=True,
        reverse_source=False,
        attention=AttentionConfig(kind="global"),
        dropout=0.0,
        output_bias=True,
        # So small a model needs larger weights: with 0.1 its first scores
        # are all but equal, and it finds the alignments epochs later.
        initial_range=0.25,
    ),
    data=DataConfig(dataset="phrasebook", train_size=24_000, max_length=100),
    training=TrainingConfig(
        batch_size=64,
        epochs=4,
        optimizer="adam",
        learning_rate=4e-3,
        clip_norm=1.0,
        first_halved_epoch=3,
        normalization="word",
        snapshot_steps=200,
        samples=2,
    ),
    decoding=DecodingConfig(beam_size=5, length_penalty=1.0),
)

PRESETS = {"paper": _PAPER, "small": _SMALL, "demo": _DEMO}
