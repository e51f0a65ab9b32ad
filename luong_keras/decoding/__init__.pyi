from .beam import beam_search as beam_search
from .ensemble import ensemble_step as ensemble_step
from .forced import forced_decoding as forced_decoding
from .greedy import greedy_search as greedy_search
from .hypotheses import Hypotheses as Hypotheses
from .unk_replacement import replace_unknown_words as replace_unknown_words
