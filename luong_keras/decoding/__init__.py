"""Greedy and beam search over a step function, whatever the model.

A step takes `ids` (B, K), `states` (a list of tensors (B, K, ...)) and the
0-based `position` and returns logits (B, K, V), the new states and attention
weights (B, K, S). K is the number of hypotheses: 1 in the first step, where a
beam has one only, and may differ from call to call.
"""
