"""Wrapper that runs a trainer with its loop some steps at a time."""

import os
import threading
import traceback


class Paced:
    """Thread that runs `train(before_step)` and waits before every step.

    A step lasts from one call of `before_step` to the next, so it includes all
    work of the trainer between two batches.
    """

    def __init__(self, train):
        self.allowed = threading.Semaphore(0)
        self.finished = threading.Semaphore(0)
        threading.Thread(target=self._train, args=(train,), daemon=True).start()
        self.finished.acquire()  # waits until the first step

    def _train(self, train):
        try:
            train(self._before_step)
        except BaseException:
            traceback.print_exc()
        # End the process; otherwise the driver would wait forever.
        os._exit(1)

    def _before_step(self):
        self.finished.release()
        self.allowed.acquire()

    def run(self, steps):
        """Allow `steps` steps, and wait for them."""
        self.allowed.release(steps)
        for _ in range(steps):
            self.finished.acquire()
