"""Lets a trainer that owns its loop run a number of steps at a time."""

import os
import threading
import traceback


class Paced:
    """Runs `train(before_step)` in a thread that waits before every step.

    A step lasts from one call of `before_step` to the next, so it holds
    whatever the trainer does between two batches.
    """

    def __init__(self, train):
        self.allowed = threading.Semaphore(0)
        self.finished = threading.Semaphore(0)
        threading.Thread(target=self._train, args=(train,), daemon=True).start()
        self.finished.acquire()  # all that comes before the first step

    def _train(self, train):
        try:
            train(self._before_step)
        except BaseException:
            traceback.print_exc()
        # Nobody else would tell the driver that there is nothing to wait for.
        os._exit(1)

    def _before_step(self):
        self.finished.release()
        self.allowed.acquire()

    def run(self, steps):
        """Lets `steps` steps run, and waits for them."""
        self.allowed.release(steps)
        for _ in range(steps):
            self.finished.acquire()
