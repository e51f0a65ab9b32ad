"""Greedy and beam search over a step function, whatever the model.

A step takes `ids` (B, K), `states` (a list of tensors (B, K, ...)) and the
0-based `position` and returns logits (B, K, V), the new states and attention
weights (B, K, S). K is the number of hypotheses: 1 in the first step, where a
beam has one only, and may differ from call to call.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
