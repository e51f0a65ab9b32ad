"""Greedy and beam search over a step function, whatever the model.

A step takes `ids` (B, K), `states` (a list of tensors (B, K, ...)) and the
0-based `position` and returns logits (B, K, V), the new states and attention
weights (B, K, S).
"""
