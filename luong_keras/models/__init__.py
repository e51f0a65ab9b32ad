"""Functional models composed of the layers."""
