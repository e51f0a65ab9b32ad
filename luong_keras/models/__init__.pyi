from .training_model import TrainingModel as TrainingModel
from .translation_model import TranslationModel as TranslationModel
