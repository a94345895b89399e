"""Asks Elle, the peer that the checker of transactions is measured against.

Elle runs in a JVM of its own by ``bench/elle/check.clj``, on a history that is written as EDN with
a Jepsen operation a line. Its class path is given; nothing here fetches or builds Elle. Must never
be needed by anything but the programs of this folder.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from splitbrain.checker.transactions.levels import STRICT_SERIALIZABLE, Kind
from splitbrain.history.records import Event

SCRIPT: Final = Path(__file__).parent / "elle" / "check.clj"
#: Runs on one history: the first one in a cold JVM, the last one in a warm one.
RUNS: Final = 5
_LIMIT_S: Final = 1800
#: Elle looks for a display where it is not told that there is none. This collector of garbage takes
#: less of the processor than the default one, and gives up where nearly all of it is collecting.
_JVM: Final = (
    "-Djava.awt.headless=true",
    "-XX:MaxRAMPercentage=50",
    "-XX:+UseParallelGC",
    "-XX:+ExitOnOutOfMemoryError",
)
#: Orders of a register's versions that Elle may take for granted, by the levels it is asked about.
#: Each follows from its level: a transaction's write is later than what it read, and in real time
#: one transaction's version than another's. Without the latter Elle knows nothing of blind writes;
#: with it, version 0.2.7 finds cycles where there are none (lacuna/bifurcan#59). So both ways.
_BY_READS: Final = ":wfr-keys? true"
_BY_TIME: Final = f"{_BY_READS} :linearizable-keys? true"
_OF_REGISTERS: Final = {
    "snapshot-isolation": (_BY_READS,),
    "serializable": (_BY_READS,),
    STRICT_SERIALIZABLE: (_BY_READS, _BY_TIME),
}
#: Transactions up to which it is asked by time, too: that takes the square of their number, of the
#: processor and of memory; 100,000 fill 12 GiB without an answer.
BY_TIME_MAX: Final = 10_000


class ElleError(Exception):
    """Elle cannot be run, or has ended without an answer; the text is one sentence."""


class ElleAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Elle's verdict on one history and its cost."""

    #: ``valid``, ``invalid`` or ``unknown``.
    verdict: str
    #: By Elle's names.
    anomalies: tuple[str, ...]
    #: CPU seconds of the process, from the file to operations in memory.
    reading_cpu_s: float
    #: The same of each run, from these to the verdict.
    runs_cpu_s: tuple[float, ...]


class Question(NamedTuple):
    """One of Elle's checkers, and its options as an EDN map."""

    checker: str
    options: str


def questions_of(kind: Kind, level: str, transactions: int) -> list[Question]:
    """Return the ways in which Elle is asked about a history; none about rows."""
    if kind == "rows" or level not in _OF_REGISTERS:
        return []
    model = f":consistency-models [:{level}]"
    if kind == "list-append":
        return [Question(f"elle.{kind}", f"{{{model}}}")]
    return [
        Question(f"elle.{kind}", f"{{{model} {orders}}}")
        for orders in _OF_REGISTERS[level]
        if orders != _BY_TIME or transactions <= BY_TIME_MAX
    ]


def write_edn(events: Iterable[Event], path: Path) -> None:
    """Write the events of a history for Elle."""
    with path.open("w") as file:
        file.writelines(map(edn_line, events))


def edn_line(event: Event) -> str:
    """Return an event of a transaction as a Jepsen operation."""
    parts = " ".join(f"[:{f} {_edn(key)} {_edn(value)}]" for f, key, value in event.value)
    return (
        f"{{:index {event.index} :time {event.time} :process {event.process}"
        f" :type :{event.type} :f :{event.f} :value [{parts}]}}\n"
    )


def _edn(value: Any) -> str:
    # JSON's numbers, texts and lists are EDN, to which commas are blanks.
    return "nil" if value is None else msgspec.json.encode(value).decode()


def load(class_path: str) -> None:
    """Raise ElleError where Elle cannot be loaded from a class path."""
    code, output, errors = _run(class_path, ())
    if code:
        reason = _reason(code, output, errors)
        raise ElleError(f"Elle cannot be loaded from the class path: {reason}")


def ask(class_path: str, question: Question, path: Path) -> ElleAnswer:
    """Return Elle's answer on the history in a file of EDN.

    Raises:
        ElleError: it ended without one.
    """
    code, output, errors = _run(class_path, (*question, str(path.absolute()), str(RUNS)))
    if code:
        raise ElleError(f"Elle ended without an answer: {_reason(code, output, errors)}")
    return answer_of(output)


def answer_of(output: str) -> ElleAnswer:
    """Return the answer in what the script printed: the last line, below what Elle logged."""
    return msgspec.json.decode(output.splitlines()[-1], type=ElleAnswer)


def _run(class_path: str, arguments: Sequence[str]) -> tuple[int, str, str]:
    places = os.pathsep.join(str(Path(place).absolute()) for place in class_path.split(os.pathsep))
    command = ["java", *_JVM, "-cp", places, "clojure.main", str(SCRIPT), *arguments]
    # A library of Elle's leaves classes where it runs.
    with TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_LIMIT_S, cwd=folder
            )
        except FileNotFoundError:
            raise ElleError("Elle needs java, which is not on the PATH") from None
        except subprocess.TimeoutExpired:
            raise ElleError(f"Elle has not answered within {_LIMIT_S} s") from None
    return done.returncode, done.stdout, done.stderr


def _reason(code: int, output: str, errors: str) -> str:
    """Return what the script gave as the reason, or the JVM where it did not come to that."""
    for line in reversed(output.splitlines()):
        if line.startswith('{"error"'):
            return json.loads(line)["error"]
    # Where the JVM was told options by the environment, it says so first; out of memory, it says
    # that on the output.
    lines = [line for line in (errors + output).splitlines() if line and "Picked up" not in line]
    return lines[0] if lines else f"it gave no reason, and exit code {code}"
