"""Metrics that select the best epoch, one module each."""
