"""Timeline as OpenTelemetry spans: requests of OTLP/HTTP in JSON, batch after batch.

Source: OpenTelemetry protocol 1.x, JSON encoding: ids are hex, whole numbers of 64 bits are
strings, enumerations are numbers. A run is a trace, and its id makes all ids: what is sent twice is
the same trace.
"""

import datetime as dt
import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.export.timeline import Instant, Span, Timeline

#: Path of traces below a collector's address.
TRACES_PATH: Final = "/v1/traces"
_BATCH: Final = 1_000
_NS_PER_S: Final = 1_000_000_000
_INTERNAL, _CLIENT = 1, 3
_STATUS_ERROR: Final = 2
_TRACE_DIGITS, _SPAN_DIGITS = 32, 16


def otlp_requests(timeline: Timeline) -> Iterator[bytes]:
    """Yield the bodies of the requests, each of at most 1,000 spans; the run's own span is last.

    Raises:
        HarnessError: the plan does not say when the run began.
    """
    began = _began_ns(timeline)
    run_id = str(timeline.plan.run_id)
    trace = hashlib.sha256(f"splitbrain {run_id}".encode()).hexdigest()[:_TRACE_DIGITS]
    root = _span_id(trace, "run")

    def spans() -> Iterator[dict[str, Any]]:
        for span in timeline.spans():
            yield {"traceId": trace, "parentSpanId": root, **_span(span, trace, began)}
        yield {"traceId": trace, **_run_span(timeline, root, began)}

    resource = {"attributes": _attributes(_about(timeline))}
    scope = {"name": "splitbrain", "version": timeline.plan.tool_version}
    left = spans()
    while batch := list(islice(left, _BATCH)):
        scoped = {"scope": scope, "spans": batch}
        yield msgspec.json.encode(
            {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}
        )


def _began_ns(timeline: Timeline) -> int:
    try:
        moment = dt.datetime.fromisoformat(timeline.plan.started_at)
    except ValueError as error:
        path, problem = str(timeline.folder.plan), "its started_at is not a time"
        next_step = "A trace needs the run's day; export it as perfetto, which does not."
        raise HarnessError("export the run", path, problem, next_step) from error
    since = moment.astimezone(dt.UTC) - dt.datetime.fromtimestamp(0, dt.UTC)
    return (since // dt.timedelta(microseconds=1)) * 1_000


def _about(timeline: Timeline) -> dict[str, object]:
    experiment = timeline.plan.experiment
    return {
        "service.name": f"splitbrain/{experiment.system}",
        "splitbrain.run": str(timeline.plan.run_id),
        "splitbrain.workload": timeline.plan.workload,
        "splitbrain.nemesis": experiment.nemesis,
        "splitbrain.runtime": experiment.runtime,
        "splitbrain.seed": experiment.seed,
    }


def _span(span: Span, trace: str, began: int) -> dict[str, Any]:
    about: dict[str, object] = {"splitbrain.sort": span.sort, "splitbrain.lane": span.lane}
    # Of an operation it says which node answered.
    if span.sort != "operation":
        about["splitbrain.node"] = span.owner
    about |= {f"splitbrain.{name.replace(' ', '_')}": value for name, value in span.details.items()}
    # An incarnation of a node leads an epoch once; a fault meets a node once.
    key = (span.sort, span.owner, span.name, span.start, span.details.get("index"))
    status = {"code": _STATUS_ERROR, "message": span.details["outcome"]} if span.is_bad else {}
    return {
        "spanId": _span_id(trace, *key),
        "name": span.name,
        "kind": _CLIENT if span.sort == "operation" else _INTERNAL,
        "startTimeUnixNano": str(began + span.start),
        "endTimeUnixNano": str(began + span.end),
        "attributes": _attributes(about),
        "status": status,
    }


def _run_span(timeline: Timeline, span_id: str, began: int) -> dict[str, Any]:
    results, instants = timeline.results, timeline.instants()
    end = max([timeline.end, *(instant.time for instant in instants)])
    about: dict[str, object] = {}
    status: dict[str, Any] = {}
    if results is not None:
        about = {"splitbrain.verdict": results.headline, "splitbrain.reproduce": results.reproduce}
        status = {"code": _STATUS_ERROR, "message": results.headline} if results.exit_code else {}
    return {
        "spanId": span_id,
        "name": f"{timeline.plan.test} {timeline.plan.run_id}",
        "kind": _INTERNAL,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(began + end),
        "attributes": _attributes(about),
        "events": [_event(instant, began) for instant in instants],
        "status": status,
    }


def _event(instant: Instant, began: int) -> dict[str, Any]:
    details = {**instant.details, **({} if instant.node is None else {"node": instant.node})}
    return {
        "name": instant.name,
        "timeUnixNano": str(began + instant.time),
        "attributes": _attributes({f"splitbrain.{name}": it for name, it in details.items()}),
    }


def _span_id(trace: str, *key: object) -> str:
    return hashlib.sha256(f"{trace} {key!r}".encode()).hexdigest()[:_SPAN_DIGITS]


def _attributes(values: dict[str, object]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}
