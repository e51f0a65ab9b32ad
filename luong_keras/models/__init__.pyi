from .translation_model import TranslationModel as TranslationModel
