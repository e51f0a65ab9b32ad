"""Searches over a step function, whatever the model.

`search` is the loop; a `Choice` chooses the words (`Greedy`, `Beam`,
`ConstrainedBeam`, `Sampling`, `StochasticBeam`), `Scorer`s change the ranks of
words and hypotheses. Both may be your own.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
