from .aer import LinkScores as LinkScores
from .aer import alignment_error_rate as alignment_error_rate
from .aer import best_links as best_links
from .aer import parse_alignments as parse_alignments
from .dictionary import aligned_word_pairs as aligned_word_pairs
from .dictionary import read_dictionary as read_dictionary
from .dictionary import write_dictionary as write_dictionary
from .symmetrization import symmetrize as symmetrize
