"""Weights from TensorFlow Addons and from the authors' program."""
