"""Parallel text: files, test sets, the corpus cache and training batches."""
