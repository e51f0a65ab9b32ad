"""All settings of a run, as frozen dataclasses with the paper's values.

The defaults come from Luong, Pham and Manning (2015), section 4.1, for their
best single model; `presets.py` has complete sets of settings. Each run writes
its resolved configuration into its folder.
"""

from luong_keras.config.data import (
    DataConfig,
    FilterConfig,
    SentencePieceConfig,
)
from luong_keras.config.decoding import (
    AlignmentStep,
    DecodingConfig,
    LengthPenaltyForm,
)
from luong_keras.config.model import AttentionConfig, ModelConfig, Precision
from luong_keras.config.training import Optimizer, RunConfig, TrainingConfig

__all__ = [
    "AlignmentStep",
    "AttentionConfig",
    "DataConfig",
    "DecodingConfig",
    "FilterConfig",
    "LengthPenaltyForm",
    "ModelConfig",
    "Optimizer",
    "Precision",
    "RunConfig",
    "SentencePieceConfig",
    "TrainingConfig",
]
