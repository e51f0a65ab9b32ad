from .evaluation import Evaluation as Evaluation
from .evaluation import preprocessor as preprocessor
from .evaluation import write_results as write_results
