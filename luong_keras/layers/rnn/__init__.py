"""Decoder cells, the layers that run them over time, and their loops."""
