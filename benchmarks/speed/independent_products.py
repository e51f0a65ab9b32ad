"""Independent products of matrices."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from speed.worker import Work

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_SIZE = 1024


def at_once(count):
    """Return `count` products at the same time.

    Each product uses one thread if `ONE_THREAD` is in the environment.
    """
    matrices = [
        np.full((_SIZE, _SIZE), 1 / _SIZE, "float32") for _ in range(count)
    ]
    threads = ThreadPoolExecutor(count)

    def product(matrix):
        # NumPy releases the lock meanwhile.
        return float((matrix @ matrix)[0, 0])

    def run(steps):
        for _ in range(steps):
            found = list(threads.map(product, matrices))
        return {"loss": found[0]}

    return Work(run)
