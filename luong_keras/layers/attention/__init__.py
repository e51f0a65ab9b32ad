"""Attention layers and their scores."""
