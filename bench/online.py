"""Measures how soon a growing history's violation is seen: ``python -m bench.online``.

For each rate a history of list-append transactions is written in real time, as a run writes it, and
followed by the process that ``test --stop-on-violation`` uses. After some seconds two reads of one
key disagree. Printed are the lag from the line that completes the violation to the sentence on it,
and the process's processor time over the time of the load. The last line is one JSON object; the
exit code is 1 where a violation was not seen, or one was seen before.
"""

import argparse
import json
import os
import select
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.transaction_histories import USUAL, history
from splitbrain.checker.evidence import Evidence
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.run.beginning_judge import Task
from splitbrain.history.pairing import events_of
from splitbrain.history.process_budget import processor_seconds
from splitbrain.history.records import Event, PairedOperation
from splitbrain.history.writer import HistoryWriter

_MODULE: Final = "splitbrain.harness.run.beginning_judge"
_CHECKER: Final = "transactions:list-append:serializable"
_RATES: Final = (200, 2_000, 20_000)
_BATCH_S: Final = 0.01
_PATIENCE_S: Final = 30.0
#: Key of the two reads that disagree, which nobody else uses.
_KEY: Final = -1


def main() -> int:
    """Measure every rate; exit code 1 where one is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of load before the violation")
    options = parser.parse_args()
    found = [measure(rate, options.seconds) for rate in _RATES]
    for row in found:
        print(
            f"{row['rate']:>7,} transactions a second for {row['seconds']} s: seen after "
            f"{row['lag_s']} s, {row['cpu_share']} of a processor"
        )
    print(json.dumps({"online": found}))
    return 0 if all(row["lag_s"] is not None for row in found) else 1


def measure(rate: int, seconds: int) -> dict[str, Any]:
    """Write a history at this rate; follow it."""
    operations = history("list-append", USUAL, rate * seconds, seed=rate)
    events = iter(events_of(operations))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        began = time.monotonic_ns()
        writer = HistoryWriter(path, lambda: time.monotonic_ns() - began)
        child = FramedChild(_MODULE)
        child.send(Task(path, (_CHECKER,), Evidence(()), 20.0, 4096))
        try:
            for batch in _batches(events, 2 * rate):
                for event in batch:
                    _write(writer, event)
                if _sentence(child, 0.0) is not None:
                    return _row(rate, seconds, None, child, began)
            for event in events_of(_disagreement(len(operations))):
                _write(writer, event)
            written = time.monotonic()
            sentence = _sentence(child, _PATIENCE_S)
            lag_s = None if sentence is None else round(time.monotonic() - written, 2)
            return _row(rate, seconds, lag_s, child, began)
        finally:
            child.close()
            writer.close()


def _batches(events: Iterator[Event], events_per_second: int) -> Iterator[list[Event]]:
    """Yield events at a rate; where this process is slower, as fast as it can."""
    size = max(1, round(events_per_second * _BATCH_S))
    due = time.monotonic()
    while batch := [event for _, event in zip(range(size), events, strict=False)]:
        time.sleep(max(0.0, due - time.monotonic()))
        yield batch
        due += size / events_per_second


def _write(writer: HistoryWriter, event: Event) -> None:
    writer.append(event.process, event.type, event.f, value=event.value)


def _disagreement(number: int) -> list[PairedOperation]:
    steps: list[list[Any]] = [
        [["append", _KEY, 1]],
        [["append", _KEY, 2]],
        [["r", _KEY, [1, 2]]],
        [["r", _KEY, [2, 1]]],
    ]
    return [
        PairedOperation(
            index=number + place,
            process=9_000_000 + place,
            f="txn",
            key=None,
            argument=[
                [step[0], step[1], step[2] if step[0] == "append" else None] for step in each
            ],
            result=each,
            type="ok",
            start=(number + 200) * 1000 + place,
            end=(number + 300) * 1000 + place,
        )
        for place, each in enumerate(steps)
    ]


def _sentence(child: FramedChild, patience_s: float) -> str | None:
    """Return what the child has said by then; RuntimeError where it has ended."""
    deadline = time.monotonic() + patience_s
    while True:
        child.flush()
        if select.select([child.output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            child.receive()
            for sentence in child.arrived():
                return sentence
            if child.is_gone:
                message = f"the process that judges {child.end()}"
                raise RuntimeError(message)
        if time.monotonic() >= deadline:
            return None


def _row(
    rate: int, seconds: int, lag_s: float | None, child: FramedChild, began: int
) -> dict[str, Any]:
    used = processor_seconds(child.process_id)
    passed = (time.monotonic_ns() - began) / 1e9
    return {
        "rate": rate,
        "seconds": seconds,
        "lag_s": lag_s,
        "cpu_share": round(used / passed, 2),
        "processors": os.cpu_count(),
    }


if __name__ == "__main__":
    sys.exit(main())
