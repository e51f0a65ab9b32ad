"""Where sentence pairs come from: a module a kind, listed in `registry`."""
