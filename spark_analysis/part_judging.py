"""Child side of ``part_process``: judges a part that comes as Arrow rows of ``operations``.

Run as ``python -m splitbrain.spark_analysis.part_judging DESCRIPTOR SECONDS MIB``. It ends with its
parent, also while a part is computing. Must not import pyspark: it starts anew after each killed
part.
"""

import functools
import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa

from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.part.parts import split, undecided_part
from splitbrain.checker.models.registry import model_named
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.errors import UsageError
from splitbrain.history.identity import operations_apart
from splitbrain.history.process_budget import ProcessBudget
from splitbrain.history.records import PairedOperation

#: Columns of ``operations`` that a judgement needs.
COLUMNS: Final = (
    *("index", "process", "f", "key", "argument", "result", "type", "start_ns", "end_ns"),
    *("node", "error", "position_epoch", "position_offset"),
)
#: Verdict, algorithm, reason.
Judgement = tuple[str, str, str]

#: Texts of values kept decoded; most operations repeat one.
_VALUES_MAX: Final = 1 << 16


def stream_of(rows: pa.Table) -> bytes:
    """Return the rows as an Arrow stream; a pickle would hold all of a buffer that they share."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def judged(stream: bytes, key: str | None, model_name: str, budget: Budget) -> Judgement:
    """Return the checker's judgement of one part.

    Args:
        stream: ``COLUMNS`` of all its operations that did not fail, in any order.
        key: of the part; None where the run is one part.
        model_name: of a built-in model.
        budget: polled.
    """
    rows = pa.ipc.open_stream(stream).read_all()
    try:
        (part,) = split(_operations(rows), model_named(model_name))
    except UsageError as error:
        why = str(error).splitlines()[0].rstrip(".")
        result = undecided_part(key, rows.num_rows, why, {})
    else:
        result = check_part(part, model_name, budget)
    return result.verdict.value, result.algorithm, result.reason


@functools.lru_cache(_VALUES_MAX)
def _value(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def _operations(rows: pa.Table) -> list[PairedOperation]:
    columns = (rows.column(name).to_pylist() for name in COLUMNS)
    read = [_operation(*row) for row in zip(*columns, strict=True)]
    return [*operations_apart(read)[0]]


def _operation(
    index: int,
    process: int,
    f: str,
    key: str | None,
    argument: str | None,
    result: str | None,
    outcome: Literal["ok", "info"],
    start: int,
    end: int | None,
    node: str | None,
    error: str | None,
    epoch: int | None,
    offset: int | None,
) -> PairedOperation:
    position = None if epoch is None or offset is None else (epoch, offset)
    return PairedOperation(
        index=index,
        process=process,
        f=f,
        key=key,
        argument=_value(argument),
        result=_value(result),
        type=outcome,
        start=start,
        end=end,
        node=node,
        error=error,
        position=position,
    )


def work(
    connection: Connection, answer_to: Callable[[Any, Budget], Any], seconds: float, mib: int
) -> None:
    """Report readiness, then answer each question until the connection ends."""
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, questions), daemon=True).start()
    connection.send(("ready", None))
    while True:
        question = pickle.loads(questions.get())  # noqa: S301 - from our own parent
        try:
            answer = ("done", answer_to(question, ProcessBudget(seconds, mib)))
        except MemoryError:
            answer = ("failed", "ran out of memory")
        # Any exception of a checker becomes a value: the part is unknown, and the next goes on.
        except Exception as error:  # noqa: BLE001
            answer = ("failed", f"crashed: {type(error).__name__}: {error}")
        connection.send(answer)


def _read(connection: Connection, questions: "queue.SimpleQueue[bytes]") -> None:
    try:
        while True:
            questions.put(connection.recv_bytes())
    except (EOFError, OSError):
        # The parent is gone or needs no more answers.
        os._exit(0)


def _answer(question: tuple[bytes, str | None, str], budget: Budget) -> Judgement:
    return judged(*question, budget)


def main() -> None:
    """Run a fresh interpreter's main loop."""
    work(Connection(int(sys.argv[1])), _answer, float(sys.argv[2]), int(sys.argv[3]))


if __name__ == "__main__":
    main()
