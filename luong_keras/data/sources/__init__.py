"""Sources of sentence pairs: a module for each kind, see `registry`."""
