"""Complete sets of settings, by name."""

from luong_keras.config import (
    AttentionConfig,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    RunConfig,
    TrainingConfig,
)
from luong_keras.config.values import with_values

_PAPER = RunConfig(data=DataConfig(source_language="en", target_language="de"))

# For tens of thousands of sentence pairs: trains in less than half the time of
# `small`. Chosen on Multi30k.
_SMALL_FAST = RunConfig(
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
    decoding=DecodingConfig(
        length_penalty=1.0,
        # Slightly more than in training: the cost of a search grows with the
        # square of the length.
        max_source_length=100,
    ),
)

# The same model with more epochs over the small text and more dropout. It
# translates better (docs/recipes.md).
_SMALL = with_values(
    _SMALL_FAST,
    {
        "model.dropout": 0.5,
        "training.epochs": 27,
        "training.first_halved_epoch": 23,
    },
)

# For hundreds to thousands of pairs: fewer weights, smaller batches, and more
# epochs.
_TINY = with_values(
    _SMALL,
    {
        "model.source_vocabulary_size": 500,
        "model.target_vocabulary_size": 500,
        "model.embedding_size": 128,
        "model.units": 256,
        "model.dropout": 0.2,
        # With a smaller vocabulary a sentence has more subwords.
        "data.max_length": 200,
        "decoding.max_source_length": 250,
        "training.batch_size": 32,
        "training.epochs": 60,
        "training.first_halved_epoch": 50,
        # Five would fill a thousand lines of output.
        "training.samples": 1,
    },
)
# Texts of at least this many pairs use `small`.
TINY_PAIRS = 10_000
# Characters of text per subword: a rarer subword has too few examples.
_CHARACTERS_OF_A_SUBWORD = 200

# For the built-in corpus: trains in a few minutes on two cores.
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
        # A model this small needs larger weights: with 0.1 its first scores
        # are almost equal, and it learns the alignments epochs later.
        initial_range=0.25,
    ),
    data=DataConfig(
        dataset="phrasebook",
        source_language="en",
        target_language="de",
        train_size=24_000,
        max_length=100,
    ),
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

# The paper's model with every detail of the authors' program.
_AUTHORS = RunConfig(
    model=ModelConfig(
        attention=AttentionConfig(
            concat_form="query_only", mask_location=False
        ),
        dropout_style="authors",
        use_bias=False,
        cell_clip=50.0,
        gradient_clip=1000.0,
    ),
    data=DataConfig(
        source_language="en",
        target_language="de",
        over_long="truncate_source_left",
        batching="authors",
    ),
    training=TrainingConfig(
        clip_counts_embeddings=False,
        halving="after_epoch",
        first_halved_epoch=9,
        nominal_batch_size=True,
    ),
    decoding=DecodingConfig(
        stack_size=100,
        stack_keeps="first",
        min_length_ratio=0.5,
        max_length_ratio=1.5,
        alignment_step="reads",
    ),
)


def for_user_text(config: RunConfig) -> RunConfig:
    """Return the preset without the languages of its text, for user text.

    Example:
        >>> for_user_text(PRESETS["paper"]).data.target_language is None
        True
    """
    names = ("source_language", "target_language")
    return with_values(config, {f"data.{name}": None for name in names})


def preset_for(pairs: int, characters: int) -> tuple[str, dict[str, int]]:
    """Return the preset for a text of this size.

    Args:
        pairs: Number of sentence pairs for training.
        characters: Number of characters on both sides.

    Returns:
        A name in `PRESETS`, and the vocabulary sizes if they depend on the
        text: one subword per 200 characters, because a small text cannot
        teach more.

    Example:
        >>> preset_for(700, 20_000)
        ('tiny', {'model.source_vocabulary_size': 100,
        'model.target_vocabulary_size': 100})
        >>> preset_for(29_000, 4_000_000)
        ('small', {})
    """
    if pairs >= TINY_PAIRS:
        return "small", {}
    maximum = _SMALL.model.source_vocabulary_size
    size = min(max(characters // _CHARACTERS_OF_A_SUBWORD, 50), maximum)
    sides = ("source", "target")
    return "tiny", {f"model.{side}_vocabulary_size": size for side in sides}


PRESETS = {
    "paper": _PAPER,
    "authors": _AUTHORS,
    "small": _SMALL,
    "small-fast": _SMALL_FAST,
    "tiny": _TINY,
    "demo": _DEMO,
}
