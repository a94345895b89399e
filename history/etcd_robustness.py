"""Reader of clients' records from etcd's robustness tests, as operations on registers.

One JSON object per line and operation, of one client (``operations.json``) or of all below a report
folder (``client-N/operations.json``). A register here is one of etcd's keys:

- a put is a ``write``, a delete a ``write`` of nothing, a range of one key a ``read``;
- a transaction that puts a key if it has a certain revision is a ``cas``: the revision stands for
  the value that some answer shows it to have. Where none does, a transaction that succeeded is a
  ``write``, a refused one the read of its other branch, one without answer a ``write`` that may
  never have happened;
- an operation on several keys is taken apart by key: each register of an atomic store is atomic;
- an error leaves a write open (``info``); a read with one is left out, and so are reads of the past
  (a revision in the request), and operations without value (compaction, defragmentation);
- a lease may end at any time: each put with one is followed by an open ``write`` of nothing.

Each step only frees answers or moments, so a history of a correct store stays valid. Must never
call something a violation that the weaker view does not show. Source: etcd-io/etcd,
tests/robustness/model/types.go and report/client.go.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.history.errors import BrokenLines, HistoryError
from splitbrain.history.etcd_records import (
    Answers,
    Found,
    Recorded,
    Span,
    Step,
    Transaction,
    plain_text,
)
from splitbrain.history.formats import etcd_files
from splitbrain.history.identity import key_text
from splitbrain.history.json_problems import is_json
from splitbrain.history.opening import numbered_lines
from splitbrain.history.records import PairedOperation

#: Process of a piece that outlives its operation; replaced by a number of its own.
_NOBODY = -1
_LINE = msgspec.json.Decoder(Recorded)


class EtcdHistory(msgspec.Struct, frozen=True):
    """Operations on registers by invocation, and the reasons for omissions."""

    operations: list[PairedOperation]
    #: Number of omitted operations by reason.
    left_out: dict[str, int]


def read_etcd(path: Path, broken: BrokenLines) -> EtcdHistory:
    """Read the record of one client or of all.

    Raises:
        HistoryError: a file cannot be read, or a line is broken and none may be left out.
    """
    recorded = [line for file in etcd_files(path) for line in _read(file, broken)]
    recorded.sort(key=lambda record: record.call)
    reading = _Reading(recorded)
    pieces = [piece for record in recorded for piece in reading.pieces(record)]
    operations = [
        msgspec.structs.replace(
            piece, index=index, process=-1 - index if piece.process == _NOBODY else piece.process
        )
        for index, piece in enumerate(pieces)
    ]
    return EtcdHistory(operations, reading.left_out)


def _read(file: Path, broken: BrokenLines) -> Iterator[Recorded]:
    for line in numbered_lines(file):
        if not line.content.strip():
            continue
        try:
            recorded = _LINE.decode(line.content)
            _refuse_nonsense(recorded)
        except (ValueError, RecursionError) as error:
            if not line.whole and not is_json(line.content):
                broken.tear(len(line.content))
            else:
                broken.add_error(line.number, line.byte_offset, error, path=file)
        else:
            yield recorded


def _refuse_nonsense(recorded: Recorded) -> None:
    request = recorded.input
    if (request.type == "txn" and request.txn is None) or (
        request.type == "range" and request.range is None
    ):
        raise ValueError(f"Input says {request.type} and holds none")
    if recorded.client_id < 0:
        raise ValueError("ClientId is negative")
    if recorded.output.is_known and recorded.return_ <= recorded.call:
        raise ValueError("Return does not come after Call")


class _Reading:
    """Split of recorded operations by register, with the values of known revisions."""

    def __init__(self, recorded: Iterable[Recorded]) -> None:
        #: Value that some answer showed, by (key, revision).
        self._values: dict[tuple[str, int], Any] = {}
        self._keys: set[str] = set()
        self.left_out: dict[str, int] = {}
        for record in recorded:
            self._learn(record)

    def _learn(self, record: Recorded) -> None:
        txn, output = record.input.txn, record.output
        steps = [] if txn is None else [*(txn.operations_on_success or []), *_refused(txn)]
        self._keys.update(key for step in steps if (key := _key_of(step)))
        found = [output.range, *((output.txn.results or []) if output.txn else [])]
        for pairs in (answer.pairs for answer in found if answer is not None):
            for pair in pairs or []:
                self._keys.add(pair.key)
                self._values[pair.key, pair.mod_revision] = plain_text(pair.value)
        if txn is not None and output.txn is not None and output.is_known:
            for step in [] if output.txn.failure else txn.operations_on_success or []:
                if step.type == "put-operation":
                    self._values[step.put.key, output.revision] = plain_text(step.put.value)

    def pieces(self, record: Recorded) -> Iterator[PairedOperation]:
        """Yield the operation's effect on each register."""
        request, output = record.input, record.output
        if request.type == "range" and request.range is not None:
            if not output.is_known or output.range is None:
                self._leave_out("a read without an answer")
            elif request.range.revision or output.revision < 0:
                self._leave_out("a read of the past")
            else:
                yield from self._reads(record, request.range, output.range)
        elif request.type == "txn" and request.txn is not None:
            yield from self._transaction(record, request.txn)
        else:
            self._leave_out(f"a {request.type}")

    def _transaction(self, record: Recorded, txn: Transaction) -> Iterator[PairedOperation]:
        answer = record.output.txn if record.output.is_known else None
        if txn.conditions:
            cas = self._cas(record, txn, answer)
            if cas is not None:
                yield cas
                yield from _lease_ends(record, txn.operations_on_success or [])
                return
        refused = answer is not None and answer.failure
        branches = [_refused(txn)] if refused else [txn.operations_on_success or []]
        if answer is None and txn.conditions:
            branches.append(_refused(txn))
        for number, steps in enumerate(branches):
            results = [] if answer is None else answer.results or []
            for place, step in enumerate(steps):
                if step.type == "range-operation":
                    if place < len(results):
                        yield from self._reads(record, step.range, results[place])
                    continue
                value = plain_text(step.put.value) if step.type == "put-operation" else None
                wrote = _operation(record, "write", _key_of(step), value, known=answer is not None)
                # Only one branch is the client's; it has gone on with neither.
                yield _replaced(wrote) if number else wrote
            yield from _lease_ends(record, steps)

    def _cas(
        self, record: Recorded, txn: Transaction, answer: Answers | None
    ) -> PairedOperation | None:
        """Return a compare-and-set of one register's value, None if the transaction is not one."""
        conditions, steps = txn.conditions or [], txn.operations_on_success or []
        if len(conditions) != 1 or len(steps) != 1 or conditions[0].expected_version:
            return None
        key, revision = conditions[0].key, conditions[0].expected_revision
        if _key_of(steps[0]) != key or any(
            step.type != "range-operation" for step in _refused(txn)
        ):
            return None
        # Revision 0: the key does not exist.
        if revision and (key, revision) not in self._values:
            return None
        expected = self._values[key, revision] if revision else None
        new = plain_text(steps[0].put.value) if steps[0].type == "put-operation" else None
        if answer is not None and answer.failure:
            # The same value may have come back at another revision, so a refusal shows nothing of
            # the value; the read of the other branch does.
            return None
        argument = [expected, new]
        result = [*argument, True]
        return _operation(record, "cas", key, argument, known=answer is not None, result=result)

    def _reads(self, record: Recorded, span: Span, found: Found) -> Iterator[PairedOperation]:
        pairs = {pair.key: plain_text(pair.value) for pair in found.pairs or []}
        if not span.end:
            yield _operation(
                record, "read", span.start, None, known=True, result=pairs.get(span.start)
            )
            return
        whole = found.count <= len(pairs)
        absent = {key for key in self._keys if span.start <= key and _below(key, span.end)}
        for key in sorted(pairs | dict.fromkeys(absent if whole else ())):
            yield _operation(record, "read", key, None, known=True, result=pairs.get(key))

    def _leave_out(self, why: str) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + 1


def _refused(txn: Transaction) -> list[Step]:
    return txn.operations_on_failure or []


def _key_of(step: Step) -> str:
    if step.type == "range-operation":
        return step.range.start
    return step.put.key if step.type == "put-operation" else step.delete.key


def _below(key: str, end: str) -> bool:
    """Return whether a key lies before the end of a range; etcd writes no end as a zero byte."""
    return end == "\0" or key < end


def _lease_ends(record: Recorded, steps: Iterable[Step]) -> Iterator[PairedOperation]:
    for step in steps:
        if step.type == "put-operation" and step.put.lease:
            yield _replaced(_operation(record, "write", step.put.key, None, known=False))


def _replaced(operation: PairedOperation) -> PairedOperation:
    return msgspec.structs.replace(operation, process=_NOBODY)


def _operation(
    record: Recorded, f: str, key: str, argument: Any, *, known: bool, result: Any = None
) -> PairedOperation:
    return PairedOperation(
        index=0,
        process=record.client_id,
        f=f,
        key=key_text(key),
        argument=argument,
        result=result if known else None,
        type="ok" if known else "info",
        start=record.call,
        end=record.return_ if known else None,
        error=None if known else record.output.error or record.output.client_error or "unknown",
    )


def refuse_no_files(path: Path) -> None:
    """Raise HistoryError for a folder without records."""
    if path.is_dir() and not etcd_files(path):
        next_step = "Name the report's folder of one run, or one operations.json"
        raise HistoryError(str(path), "the folder holds no client-*/operations.json", next_step)
