"""Peer programs for the speed benchmarks, and the driver that times them.

`worker.py` runs in every measured process and needs only NumPy. Each file
`*_model.py` has one program and runs in the environment of that program.
"""
