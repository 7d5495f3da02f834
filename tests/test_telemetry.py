"""What memory tells OpenTelemetry and the log: all that an operator asks for, and no word of what it holds."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import remegraph
from remegraph import MemoryKit, Settings, SummaryPolicy, telemetry
from remegraph.errors import LedgerUnavailableError, MissingExtraError, ModelUnavailableError, VectorIndexError
from remegraph.kit import OpenOptions
from remegraph.kit.health import LifeSign
from remegraph.ledger.index.embedders import HashedEmbedder
from remegraph.telemetry import EVENTS, METRICS, OPERATIONS
from remegraph.testing import FrozenClock, InMemoryVectorIndex, ScriptedChatModel
from tests.adapters.hosts import Host
from tests.talk import ANN, NOON, create, digest, packed, proposal, said

WORD = "canary-message-4711"
ANSWERS = {
    "DigestAnswer": digest("personal:Ann"),
    "ProposalAnswer": proposal(create(f"Ann loves {WORD}.", 1, f"I love {WORD}.")),
}
PAGE = Path(__file__).parents[1] / "docs" / "observability.md"


@dataclass(frozen=True)
class Told:
    """What the host's exporters got since the test began."""

    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    def spans(self) -> dict[str, ReadableSpan]:
        """All spans that ended, by name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def metrics(self) -> dict[str, list[tuple[float, dict[str, Any]]]]:
        """What was measured: sums, and how the numbers are marked."""
        found: dict[str, list[tuple[float, dict[str, Any]]]] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    points: Any = metric.data.data_points
                    found[metric.name] = [
                        (point.sum if hasattr(point, "sum") else point.value, dict(point.attributes))
                        for point in points
                    ]
        return found


@pytest.fixture(scope="session")
def exporters() -> Told:
    """The providers of this process: OpenTelemetry lets nobody set them twice."""
    told = Told(
        InMemorySpanExporter(),
        InMemoryMetricReader(dict.fromkeys((Counter, Histogram), AggregationTemporality.DELTA)),
    )
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(told.exporter))
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(MeterProvider([told.reader]))
    return told


@pytest.fixture
def told(exporters: Told) -> Iterator[Told]:
    """Nothing was told yet."""
    exporters.exporter.clear()
    exporters.reader.get_metrics_data()
    yield exporters
    exporters.exporter.clear()


def open_kit(home: Path, script: Mapping[str, Any] = ANSWERS, *, asked: bool = True, **options: Any) -> MemoryKit:
    settings = Settings(home=home, opentelemetry=asked, summary=SummaryPolicy(backoff=0, retries=0))
    given = {"index": InMemoryVectorIndex(), "embedder": None} | options
    return MemoryKit.open(
        settings=settings,
        model=ScriptedChatModel(script=dict(script)),
        clock=FrozenClock(NOON),
        **packed(given, OpenOptions),
    )


def talk(kit: MemoryKit) -> None:
    kit.add_messages([said(f"I love {WORD}.")], scope=ANN)


@pytest.mark.requirement("X18")
def test_no_word_is_told_of_what_is_said_off_the_record(tmp_path: Path, told: Told) -> None:
    """What a tracing backend has been told cannot be taken back."""
    with open_kit(tmp_path) as kit:
        Host(kit, "middleware").say(f"I love {WORD}.", {"configurable": {"thread_id": "1", "memory": "off"}})
    assert "remegraph.capture" in told.spans()
    assert WORD not in "".join(span.to_json() for span in told.exporter.get_finished_spans()) + str(told.metrics())


def test_nothing_is_told_unless_the_settings_ask(tmp_path: Path, told: Told) -> None:
    """A library that reports by itself is a leak; so is one that follows whatever its host has set up."""
    with open_kit(tmp_path, asked=False) as kit:
        talk(kit)
        kit.summarize(scope=ANN, close=True)
        assert (told.spans(), told.metrics()) == ({}, {})
    assert Settings.from_env({"REMEGRAPH_OPENTELEMETRY": "true"}).opentelemetry


def test_without_the_package_asking_for_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Somebody copies the settings and forgets the extra."""
    monkeypatch.setattr(telemetry, "_opentelemetry", telemetry._opentelemetry.__wrapped__)  # forget the one in use
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"remegraph\[otel\]"):
        open_kit(tmp_path)


async def test_a_turn_is_one_trace_and_its_figures_are_those_of_the_reports(tmp_path: Path, told: Told) -> None:
    """Who pays for calls compares the bill with the metrics; who waits looks for where, in the trace of their request."""
    tracer = trace.get_tracer("host")
    with open_kit(tmp_path) as kit:
        with tracer.start_as_current_span("request"):
            await kit.aadd_messages([said(f"I love {WORD}.")], scope=ANN)
            report = await kit.asummarize(scope=ANN, close=True)
            found = await kit.arecall(WORD, scope=ANN)
            kit.retention.maintain(scope=ANN)
            kit.capture([said(f"I love {WORD}.", thread="other")], scope=ANN, thread="other")
        spans, measured = told.spans(), told.metrics()
    calls = [span for span in told.exporter.get_finished_spans() if span.kind is trace.SpanKind.CLIENT]
    assert spans.keys() - {calls[0].name} == {"request", *(f"remegraph.{name}" for name in OPERATIONS)}
    assert {span.context.trace_id for span in spans.values() if span.context} == {spans["request"].context.trace_id}
    summarize = spans["remegraph.summarize"]
    assert {span.parent.span_id for span in calls if span.parent} == {summarize.context.span_id}
    tokens = {marks["gen_ai.token.type"]: number for number, marks in measured["gen_ai.client.token.usage"]}
    assert tokens == {"input": report.usage.input_tokens, "output": report.usage.output_tokens}
    assert len(calls) == len(report.usage.calls) == 2
    assert (calls[0].attributes or {})["gen_ai.operation.name"] == "chat"
    assert (summarize.attributes or {})["remegraph.memories.created"] == report.created == 1
    assert (spans["remegraph.recall"].attributes or {})["remegraph.recall.hits"] == len(found.memories)
    counted = {name: points[0][0] for name, points in measured.items() if METRICS[name].kind == "counter"}
    assert counted["remegraph.messages.added"] == 2
    assert counted["remegraph.blocks.summarized"] == counted["remegraph.memories.created"] == 1
    assert counted["remegraph.vectors.written"] == 2  # a memory and an index entry
    timed = {marks["remegraph.operation"] for _, marks in measured["remegraph.operation.duration"]}
    assert timed == set(OPERATIONS)


def test_no_word_and_no_name_is_told(tmp_path: Path, told: Told, caplog: pytest.LogCaptureFixture) -> None:
    """Traces, metrics and logs go to other people and other machines than memories do: failures, too."""
    down = {"DigestAnswer": ConnectionError(f"I could not digest {WORD}")}
    with caplog.at_level(logging.DEBUG, logger="remegraph"):
        with open_kit(tmp_path / "well") as kit:
            talk(kit)
            kit.summarize(scope=ANN, close=True)
            assert WORD in kit.recall(WORD, scope=ANN).context
        with open_kit(tmp_path / "down", down) as kit:
            talk(kit)
            with pytest.raises(ModelUnavailableError):
                kit.summarize(scope=ANN, close=True)
            kit.context.health.note("capture", KeyError(WORD))
    failed = told.spans()["remegraph.summarize"]
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "ModelUnavailableError"
    measured = told.metrics()
    assert measured["remegraph.failures"] == [(1, {"remegraph.surface": "capture"})]
    told_of = "".join(span.to_json() for span in told.exporter.get_finished_spans()) + json.dumps(measured)
    records = "".join(repr(vars(record)) for record in caplog.records)
    assert [word for word in (WORD, "'ann'", '"ann"', str(tmp_path)) if word in told_of + records] == []


def test_each_log_record_names_its_event_and_an_operation_its_figures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Alerts are set on names, not on sentences, and without OpenTelemetry, too."""
    with caplog.at_level(logging.DEBUG, logger="remegraph"), open_kit(tmp_path, asked=False) as kit:
        talk(kit)
        kit.summarize(scope=ANN, close=True)
        kit.context.health.note("capture", VectorIndexError("The index failed."))
    fields = [vars(record) for record in caplog.records if record.name.startswith("remegraph")]
    assert {each["event.name"] for each in fields} == {"remegraph.operation.done", "remegraph.host.spared"}
    (add, summarize, spared) = fields
    assert (add["remegraph.operation"], add["remegraph.messages.added"]) == ("add_messages", 1)
    assert (summarize["remegraph.memories.created"], spared["error.type"]) == (1, "VectorIndexError")


def test_gauges_tell_what_waits_until_the_kit_closes(tmp_path: Path, told: Told) -> None:
    """A queue that grows and an index that falls behind are seen before users notice; a closed ledger is not asked."""
    index = InMemoryVectorIndex()
    with open_kit(tmp_path, index=index) as kit:
        kit.context.background.close()  # what is captured waits
        kit.capture([said(f"I love {WORD}."), said("Bye.", minutes=1)], scope=ANN)
        kit.end_session(scope=ANN)
        waiting = told.metrics()
        kit.summarize(scope=ANN, close=True)
        done = told.metrics()
    names = ("remegraph.index.lag", "remegraph.queue.depth", "remegraph.blocks.pending")
    depth = {attributes["remegraph.state"]: number for number, attributes in waiting["remegraph.queue.depth"]}
    assert depth == {
        "asleep": 0,
        "later": 1,
        "waiting": 1,
        "running": 0,
        "dead": 0,
    }  # later it is looked whether more was said
    assert waiting["remegraph.queue.depth"][0][1].keys() == {"remegraph.ledger", "remegraph.state"}
    assert [waiting[name][0][0] for name in names if name != "remegraph.queue.depth"] == [0, 1]
    assert [done[name][0][0] for name in names if name != "remegraph.queue.depth"] == [0, 0]
    assert not told.metrics().keys() & set(names)


def test_a_ledger_that_stands_still_keeps_no_other_figure_from_the_exporter(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry gives up on all metrics of a process after ten seconds: an outage would be seen by their absence."""
    still = threading.Event()
    with open_kit(tmp_path) as kit:
        kit.add_messages([said("I love tea.")], scope=ANN)
        database = kit.context.parts().archive.database

        def stand_still() -> NoReturn:
            still.wait(3)
            raise LedgerUnavailableError("The ledger cannot be used: it is down.")

        with monkeypatch.context() as down:
            down.setattr(database, "_connected", stand_still)
            with pytest.raises(LedgerUnavailableError):
                kit.capture([said("I love cake.")], scope=ANN)
            began = time.monotonic()
            during = told.metrics()
            took = time.monotonic() - began
            still.set()
        assert took < 3
        assert during["remegraph.messages.added"][0][0] == 1
        assert {number for number, _ in during["remegraph.threads.unrecorded"]} == {0, 1}
        assert "remegraph.queue.age" not in during


def test_gauges_tell_nothing_while_the_ledger_does_not_answer_and_fill_no_log(
    tmp_path: Path, told: Told, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenTelemetry logs a traceback of 130 lines for each gauge that fails, at every export of an outage."""
    with open_kit(tmp_path) as kit:
        database = kit.context.parts().archive.database

        def refuse() -> NoReturn:
            raise LedgerUnavailableError("The ledger cannot be used: it is down.")

        with monkeypatch.context() as down:
            down.setattr(database, "_connected", refuse)
            during = told.metrics()
        assert "remegraph.queue.age" not in during
        assert "remegraph.queue.age" in told.metrics()
    assert [each for each in caplog.records if each.levelno > logging.DEBUG] == []


def test_a_recall_that_has_to_do_without_vectors_is_counted(tmp_path: Path, told: Told) -> None:
    """Answers get worse silently while an embedder is down; the counter is what an operator sees of it."""
    with open_kit(tmp_path) as kit:
        talk(kit)
        kit.summarize(scope=ANN, close=True)
    with open_kit(tmp_path, embedder=HashedEmbedder(64), reindex=True) as kit:
        assert kit.recall(WORD, scope=ANN).degraded
    assert told.metrics()["remegraph.degraded"] == [
        (1, {"remegraph.operation": "recall", "remegraph.missed": "vectors"})
    ]


def test_gauges_tell_how_many_workers_live_and_how_long_one_is_silent(tmp_path: Path, told: Told) -> None:
    """That a worker hangs is otherwise seen on its own machine alone."""
    with open_kit(tmp_path) as kit:
        home = kit.context.parts().settings.home
        before = told.metrics()
        sign = LifeSign(home, 300, lambda error: pytest.fail(str(error)))
        sign.give()
        fresh = told.metrics()
        (file,) = (home / "workers").iterdir()
        os.utime(file, (time.time() - 400,) * 2)
        silent = told.metrics()
        sign.close()
    assert before["remegraph.workers.alive"][0][0] == 0
    assert "remegraph.workers.silence" not in before
    assert [each["remegraph.workers.alive"][0][0] for each in (fresh, silent)] == [1, 0]
    assert fresh["remegraph.workers.silence"][0][0] < 60
    assert silent["remegraph.workers.silence"][0][0] > 399


def test_every_call_of_a_logger_names_an_event_that_is_listed() -> None:
    """Who greps the code or the page for an event finds it in both."""
    sources = [path.read_text(encoding="utf-8") for path in Path(remegraph.__file__).parent.rglob("*.py")]
    calls = [
        node
        for source in sources
        if "_log." in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_log.")
        if not ast.unparse(node.func).endswith("isEnabledFor")
    ]
    assert [ast.unparse(call) for call in calls if "extra" not in {keyword.arg for keyword in call.keywords}] == []
    named = {name for source in sources for name in re.findall(r"\bevent\(\s*\"([a-z.]+)\"", source)}
    assert {f"remegraph.{name}" for name in named} == EVENTS.keys()


def test_the_page_lists_what_is_told_and_nothing_else() -> None:
    """Dashboards are built from the page."""
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    told_of = {cells[0].strip("`"): cells[1:] for cells in rows}
    expected: dict[str, list[str]] = {f"remegraph.{name}": [what] for name, what in OPERATIONS.items()}
    expected |= {name: [metric.kind, f"`{metric.unit}`", metric.what] for name, metric in METRICS.items()}
    expected |= {name: [what] for name, what in EVENTS.items()}
    assert {name: cells[: len(expected[name])] for name, cells in told_of.items() if name in expected} == expected
    assert told_of.keys() - expected.keys() == {"chat MODEL"}
