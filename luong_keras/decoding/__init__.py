"""Searches over a step function of any model.

`ModelStep` makes a step function from a Keras decoder. `search` runs the loop.
A `DecodingStrategy` chooses the words (`Greedy`, `Beam`, `ConstrainedBeam`,
`Sampling`), and `Scorer`s change the ranks of words and hypotheses. Step,
strategy and scorers may be user-defined.
"""

from luong_keras.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
