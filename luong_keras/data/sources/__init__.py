"""Sources of sentence pairs: one module per kind, see `registry`."""
