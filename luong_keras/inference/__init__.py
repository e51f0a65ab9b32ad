"""Trained models from text to text, in one TensorFlow graph."""
