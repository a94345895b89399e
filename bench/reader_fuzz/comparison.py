"""Holds what the readers make of a file against what the plain ones make of it.

Values and keys are compared up to identity: two are the same to the reader exactly where they are
the same to the plain one. Processes likewise, and times by their order. A reader may refuse what
is rare (``Reading.doubts``), but what it reads it must read right.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.reader_fuzz.drawn import DrawnFile
from bench.reader_fuzz.judging_here import Way, in_blocks, judged
from bench.reader_fuzz.plain_etcd import read_etcd_plainly
from bench.reader_fuzz.plain_history import PlainOperation, Reading
from bench.reader_fuzz.plain_judgement import FUNCTIONS, is_linearizable
from bench.reader_fuzz.plain_lines import read_plainly
from bench.reader_fuzz.plain_table import read_table_plainly
from bench.reader_fuzz.plain_values import items_of
from splitbrain.checker.linearizability.column_history import split_columns
from splitbrain.checker.models.model import call_of
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.bare_judging import sense_of
from splitbrain.history import importers
from splitbrain.history.column_reader import read_columns
from splitbrain.history.formats import guess_format
from splitbrain.history.records import PairedOperation
from splitbrain.history.value_shapes import wrong_shape

_REFUSALS = (HarnessError, UsageError)
_ANSWERLESS = frozenset({"write", "add", "remove", "put", "append"})


class Finding(NamedTuple):
    """A difference."""

    #: In one or two words; shrinking keeps it.
    kind: str
    way: str
    detail: str


class Compared(NamedTuple):
    """The outcome of one file."""

    findings: tuple[Finding, ...]
    #: Whether readers and plain readers both gave operations.
    read: bool
    #: Whether it was read into columns.
    as_columns: bool
    #: Whether the plain reader's operations have an order; None where it gave none.
    linearizable: bool | None
    #: Doubts that a reader made use of.
    doubts: frozenset[str]


class _Refused(NamedTuple):
    why: str


def compared(file: DrawnFile, path: Path) -> Compared:
    """Everything that differs; the file is written to the path."""
    try:
        return _compared(file, path)
    except Exception as error:  # noqa: BLE001 - one file must not end the night
        crash = Finding("crash", "plain reader", f"{type(error).__name__}: {error}")
        return Compared((crash,), False, False, None, frozenset())


def _compared(file: DrawnFile, path: Path) -> Compared:
    path.write_bytes(file.stored)
    expected = _plainly(file, path, apart=False)
    alternative = None
    if "numbers of two spellings" in expected.doubts:
        apart = _plainly(file, path, apart=True)
        alternative = apart if apart.refused is None else None
    doubts = _doubts(file, path, expected)
    findings: list[Finding] = []
    outcomes: list[bool] = []
    for way in Way if file.format == "jsonl" else (Way.OBJECTS, Way.COLUMNS):
        given = _guarded(lambda way=way: _operations(file, path, way))
        if given is not None:
            outcomes.append(not isinstance(given, _Refused))
            findings += _differences(file, way, expected, alternative, given, doubts)
    linearizable = None
    if expected.refused is None:
        # A process that goes on before its ``info`` has two orders at equal times.
        is_odd = "a process that goes on before its info" in doubts
        linearizable = is_linearizable(expected.operations, file.model, by_process=not is_odd)
    for way in Way if file.format == "jsonl" else (Way.OBJECTS, Way.COLUMNS):
        results = _guarded(lambda way=way: judged(path, file, way))
        findings += _verdict_differences(way, file, expected, linearizable, results, doubts)
    return Compared(
        tuple(findings),
        read=any(outcomes) and expected.refused is None,
        as_columns=len(outcomes) > 1,
        linearizable=linearizable,
        doubts=doubts if outcomes and not outcomes[0] else frozenset(),
    )


def _plainly(file: DrawnFile, path: Path, *, apart: bool) -> Reading:
    if file.format == "parquet":
        return read_table_plainly(path, apart=apart)
    if file.format == "etcd-robustness":
        return read_etcd_plainly(file.content, skip_broken=file.skip_broken)
    return read_plainly(file.content, file.format, skip_broken=file.skip_broken, apart=apart)


def _doubts(file: DrawnFile, path: Path, expected: Reading) -> frozenset[str]:
    """Why a reader may refuse this file."""
    doubts = set(expected.doubts) - {"numbers of two spellings"}
    if not file.named:
        try:
            if guess_format(path) != file.format:
                doubts.add("a beginning that shows no format")
        except _REFUSALS:
            doubts.add("a beginning that shows no format")
    if not expected.operations:
        doubts.add("no operation")
    known = FUNCTIONS[file.model]
    if any(o.type != "fail" and o.f not in known for o in expected.operations):
        doubts.add("a function that the model does not know")
    if file.model == "set" and any(map(_is_odd_read, expected.operations)):
        doubts.add("a set that is read as no list")
    return frozenset(doubts)


def _is_odd_read(operation: PlainOperation) -> bool:
    shown = operation.result
    if operation.f != "read" or operation.type != "ok" or shown is None:
        return False
    return shown[0] not in ("list", "set")


def _guarded(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except _REFUSALS as error:
        return _Refused(str(error))
    # A crash is what is looked for.
    except Exception as error:  # noqa: BLE001
        return error


def _operations(file: DrawnFile, path: Path, way: Way) -> list[PairedOperation] | None:
    """The operations handed to the judging; None where this reader leaves the file to another."""
    named = file.format if file.named else None
    with in_blocks(file):
        if way is Way.OBJECTS:
            checker = f"linearizability:{file.model}"
            loaded = importers.load(
                path, named, skip_broken=file.skip_broken, problem_with=sense_of(checker)
            )
            return loaded.operations
        if way is Way.RANGES or file.skip_broken:
            return None
        columns = read_columns(path, named)
    if columns is None:
        return None
    if split_columns(columns, model_named(file.model), wrong_shape) is None:
        return None
    return columns.operations()


def _differences(
    file: DrawnFile,
    way: Way,
    expected: Reading,
    alternative: Reading | None,
    given: Any,
    doubts: frozenset[str],
) -> Iterator[Finding]:
    name = way.value
    if isinstance(given, _Refused):
        if expected.refused is None and not doubts:
            yield Finding("refused", name, given.why)
    elif isinstance(given, Exception):
        yield Finding("crash", name, f"{type(given).__name__}: {given}")
    elif expected.refused is not None:
        if not file.skip_broken:
            yield Finding("accepted", name, expected.refused)
    elif file.skip_broken and doubts:
        # Lines that may be refused may have been left out.
        return
    elif way is not Way.OBJECTS and expected.torn:
        yield Finding("accepted", name, "a torn file, in columns")
    else:
        unlike = _unlike(expected.operations, given, file.model)
        if unlike and (alternative is None or _unlike(alternative.operations, given, file.model)):
            yield Finding(unlike[0], name, unlike[1])


def _unlike(
    plain: Sequence[PlainOperation], given: Sequence[PairedOperation], model: str
) -> tuple[str, str] | None:
    """Return the first difference between operations: its kind, and what differs."""
    if len(plain) != len(given):
        return "operations", f"{len(given)} operations instead of {len(plain)}"
    for place, (mine, theirs) in enumerate(zip(plain, given, strict=True)):
        for field in ("f", "type", "node", "position", "final", "error"):
            wanted, found = getattr(mine, field), getattr(theirs, field)
            if wanted not in (found, "?"):
                return field, f"operation {place}: {found!r} instead of {wanted!r}"
    relations = (
        ("processes", [(m.process, t.process) for m, t in zip(plain, given, strict=True)]),
        ("keys", [(None, None), *((m.key, t.key) for m, t in zip(plain, given, strict=True))]),
        ("values", list(_values(plain, given, model))),
    )
    for kind, pairs in relations:
        problem = _no_bijection(pairs)
        if problem is not None:
            return kind, problem
    if _ranks([(m.start, m.end) for m in plain]) != _ranks([(t.start, t.end) for t in given]):
        return "times", "the order of the times is another one"
    return None


def _values(
    plain: Sequence[PlainOperation], given: Sequence[PairedOperation], model: str
) -> Iterator[tuple[Any, Any]]:
    """Yield the operations handed to the judging, beside those of the plain reader."""
    yield None, None
    for mine, theirs in zip(plain, given, strict=True):
        call = call_of(theirs, model_named(model))
        pairs = [(mine.argument, call.argument)]
        if mine.type == "ok" and mine.f not in _ANSWERLESS:
            pairs.append((mine.result, call.result))
        for wanted, found in pairs:
            # Yes and no are answers, and no values; a wrong one is a wrong verdict.
            if mine.f == "contains" and wanted is mine.result:
                continue
            inner = (items_of(wanted) or ())[:2] if mine.f == "cas" else None
            if not inner or not isinstance(found, tuple):
                yield wanted, found
            else:
                yield from zip(inner, found, strict=False)  # pyright: ignore[reportUnknownArgumentType]


def _no_bijection(pairs: Sequence[tuple[Any, Any]]) -> str | None:
    """Why two columns do not tell the same things apart; None where they do."""
    forth: dict[Any, Any] = {}
    back: dict[Any, Any] = {}
    for mine, theirs in pairs:
        try:
            if forth.setdefault(mine, theirs) != theirs:
                return f"{mine!r} is {forth[mine]!r} and {theirs!r}"
            if back.setdefault(theirs, mine) != mine:
                return f"{back[theirs]!r} and {mine!r} are both {theirs!r}"
        except TypeError as error:
            return f"{theirs!r}: {error}"
    return None


def _ranks(spans: Sequence[tuple[Any, Any]]) -> list[tuple[int, int | None]]:
    times = sorted({time for span in spans for time in span if time is not None})
    rank = {time: place for place, time in enumerate(times)}
    return [(rank[start], None if end is None else rank[end]) for start, end in spans]


def _verdict_differences(
    way: Way,
    file: DrawnFile,
    expected: Reading,
    linearizable: bool | None,
    results: Any,
    doubts: frozenset[str],
) -> Iterator[Finding]:
    name = f"verdict by {way.value}"
    if isinstance(results, _Refused):
        if expected.refused is None and not doubts:
            yield Finding("refused", name, results.why)
        return
    if isinstance(results, Exception):
        yield Finding("crash", name, f"{type(results).__name__}: {results}")
        return
    found: Results = results
    allowed = _allowed(file, expected, linearizable, doubts)
    if found.verdict not in allowed:
        wanted = " or ".join(sorted(verdict.value for verdict in allowed)) or "a refusal"
        kind = "accepted" if not allowed else "verdict"
        yield Finding(kind, name, f"{found.verdict.value} instead of {wanted}")
    if found.exit_code == 0 and not expected.operations:
        yield Finding("verdict", name, "nothing is valid")


def _allowed(
    file: DrawnFile, expected: Reading, linearizable: bool | None, doubts: frozenset[str]
) -> set[Verdict]:
    """Verdicts that may be given; none where the file has to be refused."""
    if expected.refused is not None:
        return {Verdict.UNKNOWN} if file.skip_broken else set()
    if expected.broken:
        return {Verdict.UNKNOWN}
    if expected.torn:
        return {Verdict.UNKNOWN, Verdict.UNKNOWN if linearizable else Verdict.INVALID}
    allowed = {Verdict.VALID if linearizable else Verdict.INVALID}
    if doubts or "numbers of two spellings" in expected.doubts:
        allowed.add(Verdict.UNKNOWN)
    return allowed
