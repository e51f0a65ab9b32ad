from .evaluation import Evaluation as Evaluation
from .evaluation import write_results as write_results
from .stages import run_recipe as run_recipe
