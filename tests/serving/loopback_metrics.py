"""Counters and histograms of the loopback server, in Prometheus' format.

Names, labels and buckets are those of TensorFlow Serving, so that a rule
written for the real server can be tried.
"""

import threading
from bisect import bisect_right

# util/prometheus_exporter.cc, 2.20.0: where no path is configured.
DEFAULT_PATH = "/monitoring/prometheus/metrics"
# TensorFlow's status codes as the label `status` of the requests has them.
CODE_NAMES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED"),
    *("NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED"),
    *("RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
    "UNAUTHENTICATED",
)


class Counter:
    """A number for each combination of labels.

    Args:
        name: with colons, as it is exported.
        labels: their names.
    """

    def __init__(self, name, *labels):
        self.name, self.labels = name, labels
        self._lock, self._counts = threading.Lock(), {}

    def add(self, *values):
        """Counts one more with these values of the labels."""
        with self._lock:
            self._counts[values] = self._counts.get(values, 0) + 1

    def lines(self):
        """What is exported."""
        with self._lock:
            counts = dict(self._counts)
        yield f"# TYPE {self.name} counter"
        for values, count in counts.items():
            yield f"{self.name}{{{written(self.labels, values)}}} {count}"


class Sampler:
    """A histogram for each combination of labels.

    Args:
        name: with colons, as it is exported.
        labels: their names.
        scale, growth, count: the buckets' limits: `count` numbers, each
            `growth` times the one before, the first is `scale`. One more
            bucket has all that is larger.
    """

    def __init__(self, name, *labels, scale, growth, count):
        self.name, self.labels = name, labels
        self._limits = [scale * growth**i for i in range(count)]
        self._lock, self._cells = threading.Lock(), {}

    def add(self, value, *values):
        """Adds a value with these values of the labels."""
        with self._lock:
            buckets, total = self._cells.get(
                values, ([0] * (len(self._limits) + 1), 0.0)
            )
            # A limit itself is in the bucket above it.
            buckets[bisect_right(self._limits, value)] += 1
            self._cells[values] = buckets, total + value

    def lines(self):
        """What is exported."""
        with self._lock:
            cells = [(v, list(b), s) for v, (b, s) in self._cells.items()]
        yield f"# TYPE {self.name} histogram"
        limits = [*(f"{limit:g}" for limit in self._limits), "+Inf"]
        for values, buckets, total in cells:
            labels, count = written(self.labels, values), 0
            comma = "," if labels else ""
            for limit, inside in zip(limits, buckets, strict=True):
                count += inside
                yield (
                    f'{self.name}_bucket{{{labels}{comma}le="{limit}"}} {count}'
                )
            yield f"{self.name}_sum{{{labels}}} {total:g}"
            yield f"{self.name}_count{{{labels}}} {count}"


class Metrics:
    """What is counted while requests are answered.

    Latencies are in microseconds.
    """

    def __init__(self):
        # servables/tensorflow/util.cc, 2.20.0.
        latency = {"scale": 10, "growth": 1.8, "count": 33}
        serving = ":tensorflow:serving:"
        self.request_count = Counter(
            serving + "request_count", "model_name", "status"
        )
        self.request_latency = Sampler(
            serving + "request_latency",
            *("model_name", "API", "entrypoint"),
            **latency,
        )
        self.runtime_latency = Sampler(
            serving + "runtime_latency",
            *("model_name", "API", "runtime"),
            **latency,
        )
        # batching/batching_session.cc and batching_util.h, 2.20.0.
        sizes = {"scale": 1, "growth": 2, "count": 14}
        batching = serving + "batching_session:"
        self.queuing_latency = Sampler(
            batching + "queuing_latency",
            "thread_pool_name",
            **{"scale": 100, "growth": 1.2, "count": 52},
        )
        self.wrapped_run_count = Counter(batching + "wrapped_run_count")
        self.input_batch_size = Sampler(batching + "input_batch_size", **sizes)
        self.processed_batch_size = Sampler(
            batching + "processed_batch_size", **sizes
        )
        self.padding_size = Sampler(
            batching + "padding_size", "execution_batch_size", **sizes
        )

    def request(self, model_name, code, latency=None):
        """Counts a request.

        Args:
            model_name: the label.
            code: TensorFlow's status code of the answer.
            latency: (microseconds, API, entrypoint). Only requests that
                succeed have one, as in the real server.
        """
        self.request_count.add(model_name, CODE_NAMES[code])
        if code == 0 and latency is not None:
            microseconds, *labels = latency
            self.request_latency.add(microseconds, model_name, *labels)

    def page(self):
        """All of them, sorted by name."""
        metrics = sorted(vars(self).values(), key=lambda each: each.name)
        lines = [line for metric in metrics for line in metric.lines()]
        return "\n".join(lines) + "\n"


def written(names, values):
    """Labels in braces, backslashes and quotes escaped."""
    escaped = (
        str(value).replace("\\", "\\\\").replace('"', '\\"') for value in values
    )
    return ",".join(
        f'{name}="{value}"' for name, value in zip(names, escaped, strict=True)
    )
