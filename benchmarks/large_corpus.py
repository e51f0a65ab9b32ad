"""A generated corpus of any size, and the memory to prepare it."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path

import numpy as np
import psutil

# Numbers of different words in WMT14's English and German training text, and
# words per sentence; https://arxiv.org/abs/1508.04025, section 4.1.
_TYPES = (800_000, 1_700_000)
_MEAN_WORDS = (25.8, 24.4)
_PAIRS_PER_CALL = 20_000
_SYLLABLES = [a + b for a, b in itertools.product("bdfgklmnprstvz", "aeiou")]


def write_generated(path: Path, pairs: int, seed: int = 1) -> None:
    """Write sentence pairs of the paper's lengths into a `.tsv` file.

    Args:
        path: The file.
        pairs: Number of pairs.
        seed: Seed of the words and the lengths.
    """
    random = np.random.default_rng(seed)
    words = [
        np.array(list(itertools.islice(_words(), count)), object)
        for count in _TYPES
    ]
    with open(path, "w", encoding="utf-8") as file:
        for start in range(0, pairs, _PAIRS_PER_CALL):
            size = min(_PAIRS_PER_CALL, pairs - start)
            lengths = random.gamma(2.2, _MEAN_WORDS[0] / 2.2, size)
            ratio = _MEAN_WORDS[1] / _MEAN_WORDS[0]
            ratios = ratio * random.lognormal(0, 0.15, size)
            sides = [
                _sentences(own, np.clip(np.rint(count), 1, 150), random)
                for own, count in zip(
                    words, (lengths, lengths * ratios), strict=True
                )
            ]
            file.writelines(f"{s}\t{t}\n" for s, t in zip(*sides, strict=True))


def _words():
    """Yield words from short to long, because frequent words are short."""
    for length in itertools.count(1):
        for syllables in itertools.product(_SYLLABLES, repeat=length):
            yield "".join(syllables)


def _sentences(words, lengths, random):
    stops = np.cumsum(lengths.astype(np.int64))
    # Zipf's law: the logarithm of the rank has a uniform distribution.
    ranks = len(words) ** random.random(int(stops[-1]))
    drawn = words[ranks.astype(np.int64) - 1]
    starts = np.concatenate([[0], stops[:-1]])
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        yield " ".join(drawn[start:stop]) + " ."


class PeakMemory(threading.Thread):
    """Peak memory of this process and its child processes.

    Attributes:
        anonymous: Bytes that belong only to these processes, which the
            system cannot reclaim.
        resident: Bytes including the pages of mapped files, which the
            system reclaims if other processes need memory.
    """

    def __init__(self, interval: float = 0.2) -> None:
        super().__init__(daemon=True)
        self.interval = interval
        self.anonymous = self.resident = 0
        self._process = psutil.Process()
        self._stopped = threading.Event()

    def run(self) -> None:
        """Measure at each interval."""
        while not self._stopped.wait(self.interval):
            self.look()

    def look(self) -> tuple[int, int]:
        """Measure once, and return the current bytes."""
        anonymous = resident = 0
        children = self._process.children(recursive=True)
        for process in (self._process, *children):
            try:
                text = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                continue  # The process has ended.
            sizes = {
                line.split(":")[0]: int(line.split()[1]) * 1024
                for line in text.splitlines()
                if line.startswith(("RssAnon", "RssShmem", "VmRSS"))
            }
            anonymous += sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0)
            resident += sizes.get("VmRSS", 0)
        self.anonymous = max(self.anonymous, anonymous)
        self.resident = max(self.resident, resident)
        return anonymous, resident

    def stop(self) -> None:
        """End the measurement."""
        self._stopped.set()
        self.join()

    def begin_again(self) -> None:
        """Reset the peaks."""
        self.anonymous = self.resident = 0


class Stages:
    """Table with the time and the memory of each part of a run.

    Args:
        memory: The measured memory.
        base: Anonymous bytes of only the framework.
    """

    def __init__(self, memory: PeakMemory, base: int) -> None:
        self.memory, self.base = memory, base
        self.maximum = 0
        print(
            f"{'stage':<22} {'seconds':>8} {'CPU s':>8} {'per s':>10} "
            f"{'GB above the framework':>23}"
        )

    def __call__(self, name, function, count):
        """Run one part and print its line."""
        self.memory.begin_again()
        began, cpu_began = time.perf_counter(), _cpu_seconds()
        result = function()
        seconds = time.perf_counter() - began
        cpu = _cpu_seconds() - cpu_began
        above = max(self.memory.anonymous, self.memory.look()[0]) - self.base
        self.maximum = max(self.maximum, above)
        print(
            f"{name:<22} {seconds:>8.1f} {cpu:>8.1f} {count / seconds:>10,.0f} "
            f"{above / 1e9:>23.2f}",
            flush=True,
        )
        return result


def _cpu_seconds() -> float:
    """Return the CPU time of this process and its finished children."""
    times = psutil.Process().cpu_times()
    return sum(
        (times.user, times.system, times.children_user, times.children_system)
    )
