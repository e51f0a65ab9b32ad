from .text_translator import Translator as Translator
from .translation import ScoredTranslation as ScoredTranslation
from .translation import Translation as Translation
from .translation_graph import SearchOptions as SearchOptions
