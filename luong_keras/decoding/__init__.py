"""Searches over a step function, whatever the model.

`ModelStep` makes the step function of a Keras decoder. `search` is the loop; a
`DecodingStrategy` chooses the words (`Greedy`, `Beam`, `ConstrainedBeam`,
`Sampling`), `Scorer`s change the ranks of words and
hypotheses. All of them may be your own.
"""

from luong_keras.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
