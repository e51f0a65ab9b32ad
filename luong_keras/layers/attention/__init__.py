"""The attention layers and their scores."""
