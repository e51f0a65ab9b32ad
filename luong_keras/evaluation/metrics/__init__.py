"""Metrics that select the best epoch."""
