"""OpenTelemetry, where the settings ask for it: spans and metrics of what memory does, and names for what it logs.

Otherwise nothing is imported and nothing is done. All data goes to the providers of the host, which alone decide where
it ends up. Names, numbers and kinds of errors are recorded: no words of a conversation, of a memory or of an
error, and no person's name.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from remegraph.errors import LedgerUnavailableError, MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation
    from opentelemetry.trace import SpanKind

__all__ = [
    "EVENTS",
    "METRICS",
    "OPERATIONS",
    "SILENT",
    "Attributes",
    "Gauges",
    "Metric",
    "Reading",
    "Telemetry",
    "event",
    "telemetry_of",
]

Attributes = dict[str, str | int | float | bool]

_log = logging.getLogger(__name__)

Reading = Callable[[], Mapping[str, int]]
"""Reads a metric now: how many or how much, by state; without states, under an empty name."""

Gauges = Mapping[str, Reading]


class Metric(NamedTuple):
    """A metric."""

    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    what: str
    buckets: tuple[float, ...] = ()


OPERATIONS: Mapping[str, str] = {
    "add_messages": "Messages are made durable.",
    "capture": "A turn is written back: its messages are made durable, and blocks are cut.",
    "summarize": "What is new becomes blocks and memories; also in the background.",
    "recall": "A query is answered.",
    "maintain": "A scope is tidied up; also in the background.",
    "sync": "The vector index is brought up to date: texts are embedded, and vectors written.",
}
"""Operations with a span, `remegraph.` before its name, and a duration. A call of a chat model has one, too: `chat MODEL`."""

METRICS: Mapping[str, Metric] = {
    "gen_ai.client.operation.duration": Metric(
        "histogram", "s", "How long calls of a chat model take.", tuple(0.01 * 2**step for step in range(14))
    ),
    "gen_ai.client.token.usage": Metric(
        "histogram", "{token}", "Tokens of a call, sent and received.", tuple(4.0**step for step in range(14))
    ),
    "remegraph.operation.duration": Metric(
        "histogram", "s", "How long operations take.", tuple(0.001 * 2**step for step in range(20))
    ),
    "remegraph.messages.added": Metric("counter", "{message}", "Messages that became durable."),
    "remegraph.blocks.summarized": Metric("counter", "{block}", "Blocks that were summarised."),
    "remegraph.memories.created": Metric("counter", "{memory}", "Memories that summaries made."),
    "remegraph.memories.updated": Metric("counter", "{memory}", "New versions of memories that summaries made."),
    "remegraph.memories.refused": Metric("counter", "{statement}", "Statements that an owner's rules refused."),
    "remegraph.memories.moved": Metric("counter", "{memory}", "Memories whose status maintenance changed."),
    "remegraph.vectors.written": Metric("counter", "{vector}", "Records that were indexed."),
    "remegraph.degraded": Metric("counter", "{operation}", "Operations that had to do without something."),
    "remegraph.failures": Metric(
        "counter", "{failure}", "Failures that a host did not notice, or that happened in the background."
    ),
    "remegraph.refused": Metric("counter", "{call}", "Calls that a limit of a tenant or a user refused."),
    "remegraph.index.lag": Metric("gauge", "{record}", "Records that the vector index does not know yet."),
    "remegraph.queue.depth": Metric("gauge", "{job}", "Jobs that are not done."),
    "remegraph.queue.age": Metric("gauge", "s", "How long the oldest job that is due has waited."),
    "remegraph.queue.foreign": Metric("gauge", "{job}", "Jobs that are due, left to workers with other settings."),
    "remegraph.workers.alive": Metric(
        "gauge", "{worker}", "Workers of this machine with this home that gave a sign of life within a lease."
    ),
    "remegraph.workers.silence": Metric(
        "gauge", "s", "How long the quietest worker of this machine with this home has been silent."
    ),
    "remegraph.threads.unrecorded": Metric(
        "gauge", "{thread}", "Conversations with a turn that this process could not record yet."
    ),
    "remegraph.blocks.pending": Metric("gauge", "{block}", "Blocks that wait to be summarised."),
    "remegraph.blocks.failed": Metric(
        "gauge", "{block}", "Blocks that failed, wholly or for a topic, and are not retried automatically."
    ),
}

EVENTS: Mapping[str, str] = {
    "remegraph.access.answered": "A server answered a caller, known by the digest of the token.",
    "remegraph.access.refused": "A server refused a caller, known by the digest of the token; also callers without one.",
    "remegraph.access.tokens": "The tokens of a server were read again; if they cannot be, the former ones stay valid.",
    "remegraph.block.failed": "Blocks could not be learned, wholly or in part; they are not retried automatically.",
    "remegraph.gauge.silent": "A gauge is not reported, as the ledger does not answer.",
    "remegraph.operation.done": "An operation ended, with its figures and its seconds.",
    "remegraph.host.spared": "Recall, capture or background work failed, and the host continues.",
    "remegraph.host.warned": "Something waits that this process does not do, or could not record; logged for the first one.",
    "remegraph.index.behind": "Records have no vector yet; they are found by their words.",
    "remegraph.index.copied": "The ledger is a copy, and does not touch the collections of its original.",
    "remegraph.index.damaged": "A collection of the index is damaged and rebuilt.",
    "remegraph.index.failed": "The index failed a search; SQL is searched until it answers again.",
    "remegraph.index.unexamined": "The index could not be examined after an unclean stop.",
    "remegraph.index.unsealed": "The state of the index could not be recorded; it is examined at the next open.",
    "remegraph.journal.key": "The journal is sealed with another key than those given; nothing can be written.",
    "remegraph.ledger.back": "The ledger answers again, after an outage that failed a turn or background work.",
    "remegraph.limit.refused": "A limit refused a capture, a memory tool, or background work, and the host continues.",
    "remegraph.schema.changed": "The schema of the ledger is no longer that of this release; nothing more is written.",
    "remegraph.search.words": "Something was searched or listed without vectors.",
    "remegraph.settings.unknown": "An environment variable begins with REMEGRAPH_, but is not one of remegraph's.",
    "remegraph.tool.failed": "A memory tool could not do what its model asked for.",
}
"""Log events: each record names its event in `event.name`."""


def event(name: str, error: BaseException | None = None, **figures: float | str) -> dict[str, Any]:
    """Return the fields of a log record, for `extra`.

    Args:
        name: One of `EVENTS`, without `remegraph.`.
        error: What went wrong; its kind is recorded.
        figures: Numbers and names, by key.
    """
    fields = {"event.name": f"remegraph.{name}", **{f"remegraph.{key}": value for key, value in figures.items()}}
    return fields if error is None else fields | _kind(error)


class Telemetry:
    """Records nothing: the default, unless settings ask for more."""

    def operation(self, name: str) -> AbstractContextManager[Attributes]:  # noqa: ARG002 - see _OpenTelemetry
        """Record an operation: its span, how long it takes, how it fails.

        Args:
            name: One of `OPERATIONS`.

        Returns:
            Where to put its figures by name; those of counters are counted.
        """
        return nullcontext({})

    def chat(self, provider: str, model: str) -> AbstractContextManager[Attributes]:  # noqa: ARG002
        """Record a call of a chat model.

        Args:
            provider: Whose it is.
            model: Its name.

        Returns:
            Where to put the tokens, as `gen_ai.usage.input_tokens` and `gen_ai.usage.output_tokens`.
        """
        return nullcontext({})

    def count(self, metric: str, number: int, **attributes: str) -> None:
        """Add to a counter.

        Args:
            metric: One of `METRICS`.
            number: How many.
            attributes: By name, to which `remegraph.` is prefixed.
        """

    def watch(self, ledger: str, gauges: Gauges) -> Callable[[], None]:  # noqa: ARG002
        """Have gauges read whenever the host's exporter asks, until the returned function is called.

        Args:
            ledger: Distinguishes ledgers; it does not say where they are.
            gauges: How to read them, by metric.
        """
        return _nothing


SILENT = Telemetry()


def telemetry_of(*, asked: bool) -> Telemetry:
    """Return what records, or `SILENT`.

    Args:
        asked: Whether the settings ask for OpenTelemetry.

    Raises:
        MissingExtraError: They do, and it is not installed.
    """
    return _opentelemetry() if asked else SILENT


class _OpenTelemetry(Telemetry):
    """Records with the providers of the process. A process has one of it, as it has one of them."""

    def __init__(self) -> None:
        from opentelemetry import metrics, trace

        self._trace = trace
        self._tracer = trace.get_tracer("remegraph")
        meter = metrics.get_meter("remegraph")
        self._observation = metrics.Observation
        self._watched: dict[int, tuple[str, Gauges]] = {}
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._unwatch)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, metric in METRICS.items():
            if metric.kind == "counter":
                self._counters[name] = meter.create_counter(name, metric.unit, metric.what)
            elif metric.kind == "histogram":
                self._histograms[name] = meter.create_histogram(
                    name, metric.unit, metric.what, explicit_bucket_boundaries_advisory=metric.buckets
                )
            else:
                meter.create_observable_gauge(name, [partial(self._read, name)], metric.unit, metric.what)

    @contextmanager
    def operation(self, name: str) -> Iterator[Attributes]:
        about: Attributes = {"remegraph.operation": name}
        with self._span(
            f"remegraph.{name}", self._trace.SpanKind.INTERNAL, about, "remegraph.operation.duration"
        ) as figures:
            yield figures
            for metric, counter in self._counters.items():
                if number := figures.get(metric):
                    counter.add(int(number))

    @contextmanager
    def chat(self, provider: str, model: str) -> Iterator[Attributes]:
        about: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        with self._span(
            f"chat {model}", self._trace.SpanKind.CLIENT, about, "gen_ai.client.operation.duration"
        ) as figures:
            try:
                yield figures
            finally:
                for kind in ("input", "output"):
                    if number := figures.get(f"gen_ai.usage.{kind}_tokens"):
                        usage = self._histograms["gen_ai.client.token.usage"]
                        usage.record(float(number), about | {"gen_ai.token.type": kind})

    def count(self, metric: str, number: int, **attributes: str) -> None:
        self._counters[metric].add(number, {f"remegraph.{name}": value for name, value in attributes.items()})

    def watch(self, ledger: str, gauges: Gauges) -> Callable[[], None]:
        watched = (ledger, gauges)
        with self._lock:
            self._watched[id(watched)] = watched

        def leave() -> None:
            with self._lock:  # a reader of them finishes first
                del self._watched[id(watched)]

        return leave

    def _unwatch(self) -> None:
        """Read nothing in a forked child: its parent's gauges are not its own."""
        self._watched, self._lock = {}, threading.Lock()

    @contextmanager
    def _span(self, name: str, kind: SpanKind, about: Attributes, duration: str) -> Iterator[Attributes]:
        """Record something while it is done. An error is recorded by its kind: its words may be a conversation's."""
        figures: Attributes = {}
        failed: Attributes = {}
        began = time.perf_counter()
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=about, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield figures
            except BaseException as error:
                failed = _kind(error)
                span.set_status(self._trace.StatusCode.ERROR)
                raise
            finally:
                span.set_attributes(figures | failed)
                self._histograms[duration].record(time.perf_counter() - began, about | failed)

    def _read(self, metric: str, _: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            return [
                self._observation(number, _about(ledger, state))
                for ledger, gauges in self._watched.values()
                for state, number in _counted(metric, gauges[metric]).items()
            ]


@cache
def _opentelemetry() -> Telemetry:
    try:
        return _OpenTelemetry()
    except ImportError as error:
        raise MissingExtraError("OpenTelemetry is not installed.", "Run: pip install 'remegraph[otel]'.") from error


def _counted(metric: str, gauge: Reading) -> Mapping[str, int]:
    """Return what a gauge reads; nothing while the ledger does not answer: OpenTelemetry would log a traceback each time."""
    try:
        return gauge()
    except (LedgerUnavailableError, TimeoutError) as error:
        _log.debug("%s is not reported: %s", metric, error, extra=event("gauge.silent", error))
        return {}


def _about(ledger: str, state: str) -> dict[str, str]:
    return {"remegraph.ledger": ledger} | ({"remegraph.state": state} if state else {})


def _kind(error: BaseException) -> Attributes:
    return {"error.type": type(error).__name__}


def _nothing() -> None:
    """Do nothing."""
