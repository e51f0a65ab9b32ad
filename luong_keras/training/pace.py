"""How fast a training goes."""

from __future__ import annotations

import math

_WINDOW = 60.0  # seconds


class Pace:
    """The speed of the last minute of steps.

    It is measured between the ends of steps, so that what comes before the
    first of them, compilation, does not count.

    Example:
        >>> pace = Pace()
        >>> for step, now in ((1, 60.0), (2, 61.0), (3, 63.0)):
        ...     pace.add(now, step, 100 * step)
        >>> pace.seconds_a_step, pace.tokens_a_second
        (1.5, 66.66666666666667)
    """

    def __init__(self) -> None:
        #: None before the second step.
        self.seconds_a_step: float | None = None
        #: The same, and where no tokens are counted.
        self.tokens_a_second: float | None = None
        self._seen: list[tuple[float, int, float]] = []

    def pause(self) -> None:
        """Forget when the last step was: what comes now is no step."""
        self._seen.clear()

    def add(self, now: float, step: int, tokens: float = math.nan) -> None:
        """Note the end of a step.

        Args:
            now: The time in seconds.
            step: The batches so far.
            tokens: The target tokens so far, NaN where they are not counted.
        """
        seen = self._seen
        # The first one, the last one, and one a second between them.
        if len(seen) > 1 and now - seen[-2][0] < 1:
            seen.pop()
        seen.append((now, step, tokens))
        while len(seen) > 2 and now - seen[1][0] > _WINDOW:
            seen.pop(0)
        began, first, tokens_before = seen[0]
        if step == first or now <= began:
            return
        self.seconds_a_step = (now - began) / (step - first)
        counted = tokens - tokens_before
        if not math.isnan(counted):
            self.tokens_a_second = counted / (now - began)
