from .text_translator import TextTranslator as TextTranslator
from .text_translator import TruncationWarning as TruncationWarning
from .translation import ScoredTranslation as ScoredTranslation
from .translation import Translation as Translation
