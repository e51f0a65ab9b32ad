"""Functions without weights: the mathematics, and what backends lack."""
