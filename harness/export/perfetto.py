"""Timeline as a trace for ui.perfetto.dev and chrome://tracing, event after event.

Source: Trace Event Format (JSON object format). Times are microseconds; a fraction keeps the
nanoseconds. A thread's number is one of the whole trace, for Perfetto takes the same number in
another process for a new thread.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from splitbrain.harness.export.timeline import CLIENTS, Instant, Span, Timeline

_NS_PER_US: Final = 1_000
_VIOLATIONS: Final = "violations"
#: Above every number of a process: a thread of the process' own number would be its main one.
_FIRST_THREAD: Final = 10_000


def perfetto_trace(timeline: Timeline) -> Iterator[bytes]:
    """Yield the parts of the JSON file."""
    plan = timeline.plan
    about = {
        "run": plan.run_id,
        "system": plan.experiment.system,
        "seed": str(plan.experiment.seed),
        "started": plan.started_at,
    }
    if timeline.results is not None:
        about["verdict"] = timeline.results.headline
        about["reproduce"] = timeline.results.reproduce
    yield b'{"displayTimeUnit":"ms","otherData":' + msgspec.json.encode(about)
    yield b',"traceEvents":[\n'
    tracks = _Tracks([str(node) for node in (*plan.nodes, *plan.observers)])
    separator = b""
    for event in _events(timeline, tracks):
        yield separator + msgspec.json.encode(event)
        separator = b",\n"
    yield b"\n]}\n"


def _events(timeline: Timeline, tracks: "_Tracks") -> Iterator[dict[str, Any]]:
    for span in timeline.spans():
        yield from tracks.named(span.owner, span.lane)
        yield _slice(span, tracks.of(span.owner, span.lane))
    for instant in timeline.instants():
        yield from tracks.named(_VIOLATIONS, _VIOLATIONS)
        yield _mark(instant, tracks.of(_VIOLATIONS, _VIOLATIONS))


def _slice(span: Span, track: dict[str, int]) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": span.name,
        "cat": f"{span.sort},bad" if span.is_bad else span.sort,
        "ts": span.start / _NS_PER_US,
        "dur": (span.end - span.start) / _NS_PER_US,
        **track,
        "args": span.details,
    }


def _mark(instant: Instant, track: dict[str, int]) -> dict[str, Any]:
    node = {} if instant.node is None else {"node": instant.node}
    return {
        "ph": "i",
        "s": "t",
        "name": instant.name,
        "cat": "violation",
        "ts": instant.time / _NS_PER_US,
        **track,
        "args": {**instant.details, **node},
    }


class _Tracks:
    """Numbers of processes, which are owners of lanes, and of threads, which are the lanes."""

    def __init__(self, nodes: list[str]) -> None:
        owners = (_VIOLATIONS, CLIENTS, *nodes)
        self._owners = {owner: number for number, owner in enumerate(owners, start=1)}
        self._named: set[str] = set()
        self._lanes: dict[tuple[str, str], int] = {}

    def of(self, owner: str, lane: str) -> dict[str, int]:
        """Return the fields that put an event there."""
        pid = self._owners.setdefault(owner, len(self._owners) + 1)
        tid = self._lanes.setdefault((owner, lane), _FIRST_THREAD + len(self._lanes))
        return {"pid": pid, "tid": tid}

    def named(self, owner: str, lane: str) -> Iterator[dict[str, Any]]:
        """Yield the names and places of what was not named yet."""
        if (owner, lane) in self._lanes:
            return
        track = self.of(owner, lane)
        if owner not in self._named:
            self._named.add(owner)
            yield _metadata("process_name", track, name=owner)
            yield _metadata("process_sort_index", track, sort_index=track["pid"])
        number = lane.rpartition(" ")[2]
        place = int(number) if number.isdigit() else 0
        yield _metadata("thread_name", track, name=lane)
        yield _metadata("thread_sort_index", track, sort_index=place)


def _metadata(sort: str, track: dict[str, int], **values: object) -> dict[str, Any]:
    return {"ph": "M", "name": sort, **track, "args": values}
