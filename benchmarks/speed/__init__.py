"""Peer programs for the speed benchmarks, and what times them by turns.

`worker.py` runs in every measured process and needs only NumPy; a file
`*_model.py` has one program and runs in that program's own environment.
"""
