"""What the service measures, for Prometheus."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The metrics of one service. A label `model` is the name of a loaded model, or empty."""

    def __init__(self):
        disable_created_metrics()
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        names = ("model", "status")
        self.requests = Counter("nmt_requests", "Requests to predict, by HTTP status", names, registry=registry)
        self.rows = Counter("nmt_rows", "Rows (sentences) in answered requests", ("model",), registry=registry)
        self.seconds = Histogram(
            "nmt_request_seconds",
            "Seconds from the headers of a request to its response",
            ("model",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.model_seconds = Histogram(
            "nmt_batch_seconds", "Seconds in which a batch was computed", buckets=_SECONDS, registry=registry
        )
        self.batch_rows = Histogram("nmt_batch_rows", "Rows of the computed batches", buckets=_ROWS, registry=registry)
        self.waiting = Gauge("nmt_rows_waiting", "Rows in the queue", registry=registry)
        self.running = Gauge("nmt_rows_running", "Rows being computed", registry=registry)
        self.left = Counter("nmt_clients_left", "Requests whose client left before the response", registry=registry)
        self.version = Gauge("nmt_model_version", "Version of a model that is served", ("model",), registry=registry)

    def text(self) -> bytes:
        """Returns the metrics in the format of Prometheus."""
        return generate_latest(self._registry)
