"""Histories of formats other than JSON lines that say nothing about any system."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bad_input.cause import Arrange, Cause, Chapter, Scene, file
from tests.bad_input.history_causes import EDN_INVOKE, INVOKE, OK, REPAIR, lines, unreadable

ETCD = '{"ClientId": 1, "Input": {"Type": "range"}, "Call": 3, "Output": {}, "Return": 9}'
AGAIN = "Write or copy the table again"
ROW = "Leave the row out, with --skip-broken too, or write the table again"
TABLE = "check history.parquet"
CAS = '{"process": 0, "type": "invoke", "f": "cas", "value": 5}'
WHOLE = {"process": [0, 1], "f": ["read", "read"], "type": ["ok", "ok"], "start_ns": [1, 2]}


def table(columns: dict[str, list[object]], keep: int | None = None) -> Arrange:
    """A Parquet file of these columns, or its first bytes."""
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written)
    return file("history.parquet", written.getvalue()[:keep])


def report_folder(scene: Scene) -> None:
    scene.write("report/client-1/operations.json", ETCD + "\n")


FORMATS = Chapter(
    "Histories of other formats",
    (
        unreadable(
            "format-empty",
            "an empty file",
            "it is empty",
            file("history.edn", "\n"),
            where="history.edn",
            advice="Look whether it was copied whole, or name another file",
        ),
        unreadable(
            "format-empty-named",
            "an empty file of a named format",
            "it is empty",
            file("history.edn", ""),
            where="history.edn",
            options=" --format jepsen-log",
            advice="Look whether it was copied whole, or name another file",
        ),
        unreadable(
            "format-no-log",
            "a log without operations",
            "no line of it is an operation",
            file("some.log", "INFO jepsen.core - begins\n"),
            where="some.log",
            options=" --format jepsen-log",
            advice="Name the log of a test, or another --format",
        ),
        unreadable(
            "edn-half-character",
            "half a character",
            "half a character in a string",
            lines(EDN_INVOKE.replace("1}", '"\\ud800"}'), name="history.edn"),
            where="history.edn, line 1 at byte 0",
        ),
        unreadable(
            "edn-long-number",
            "a number without end",
            "a number of 5,000 digits at character 43",
            lines(EDN_INVOKE.replace("1}", "9" * 5000 + "}"), name="history.edn"),
            where="history.edn, line 1 at byte 0",
        ),
        unreadable(
            "edn-torn",
            "EDN with a torn line before the last",
            "'{' at character 0 is never closed",
            file("history.edn", f"{EDN_INVOKE}\n{{:process 0 :ty\n{EDN_INVOKE}"),
            where="history.edn, line 2 at byte 46",
        ),
        unreadable(
            "edn-whole-and-lacking",
            "a last line of EDN without line feed that is whole and lacks its kind",
            "the map has no :f",
            file("history.edn", f"{EDN_INVOKE}\n{{:process 0 :type :ok}}"),
            where="history.edn, line 2 at byte 46",
        ),
        unreadable(
            "edn-independent",
            "a value without key among those with one",
            "its value is no [key value], as the others are",
            lines(
                "{:process 0 :type :invoke :f :read :value [7 nil]}",
                "{:process 1 :type :invoke :f :write :value 1}",
                name="history.edn",
            ),
            where="history.edn, line 2 at byte 51",
        ),
        unreadable(
            "kv-no-key",
            "a kv file without keys",
            "the map has no :key",
            lines('{:process 0 :type :invoke :f :put :value "a"}', name="history.txt"),
            where="history.txt, line 1 at byte 0",
            options=" --format kv --model kv",
        ),
        unreadable(
            "kv-other-kind",
            "a kv file that does something else",
            "a kv file knows get, put and append, and no 'write'",
            lines(EDN_INVOKE, name="history.txt"),
            where="history.txt, line 1 at byte 0",
            options=" --format kv --model kv",
        ),
        unreadable(
            "cas-no-pair",
            "a compare-and-set of one value",
            "the cas of process 0, event 2: it is asked 5, which is no pair [expected, new]",
            lines(INVOKE, OK, CAS),
            where="history.jsonl, line 3 at byte 114",
        ),
        unreadable(
            "cas-odd-answer",
            "an answer to a compare-and-set that says neither yes nor no",
            "the cas of process 0, event 0: it answers [1, 2, 'perhaps'], which is no "
            "[expected, new, true or false]",
            lines(
                CAS.replace("5", "[1, 2]"),
                CAS.replace("5", '[1, 2, "perhaps"]').replace("invoke", "ok"),
            ),
        ),
        unreadable(
            "cas-other-arguments",
            "an answer to another compare-and-set than was asked",
            "the cas of process 0, event 0: it is asked [1, 3] and answers [2, 3, True]",
            lines(
                CAS.replace("5", "[1, 3]"), CAS.replace("5", "[2, 3, true]").replace("invoke", "ok")
            ),
        ),
        unreadable(
            "write-other-value",
            "an answer to another write than was asked",
            "the write of process 0, event 0: it is asked 1 and answers 2",
            lines(INVOKE, OK.replace("1}", "2}")),
        ),
        unreadable(
            "contains-odd-answer",
            "an answer to contains that is neither true nor false",
            "the contains of process 0, event 0: the answer of contains is true or false, and "
            "not 'no'",
            lines(
                CAS.replace("cas", "contains"),
                CAS.replace("cas", "contains").replace("5", '"no"').replace("invoke", "ok"),
            ),
            options=" --model set",
        ),
        unreadable(
            "outcome-odd-answer",
            "an answer to another add than was asked, for a checker of outcomes",
            "the add of process 0, event 0: it is asked 5 and answers 6",
            lines(
                CAS.replace("cas", "add"),
                CAS.replace("cas", "add").replace("5", "6").replace("invoke", "ok"),
            ),
            options=" --model set-full",
        ),
        unreadable(
            "parquet-cut",
            "a table that ends too early",
            "it cannot be read as Parquet: Could not open Parquet input source "
            "'history.parquet': Parquet magic bytes not found in footer",
            table(WHOLE, keep=100),
            where="history.parquet",
            advice=f"Either the file is corrupted or this is not a parquet file. {AGAIN}",
        ),
        unreadable(
            "parquet-other",
            "a table of something else",
            "the table has no column process, f, type, start_ns",
            table({"a": [1]}),
            where="history.parquet",
            advice="Write a table of paired operations, as docs/history-format.md tells",
        ),
        unreadable(
            "parquet-two-runs",
            "a table of two runs",
            "the table holds 2 runs",
            table({**WHOLE, "run_id": ["a", "b"]}),
            where="history.parquet",
            advice="Write a table of one run alone",
        ),
        unreadable(
            "parquet-column-type",
            "a column of another type",
            "its column start_ns is of type string, not int64",
            table({**WHOLE, "start_ns": ["1", "2"]}),
            where="history.parquet",
            advice="Write the table again",
        ),
        unreadable(
            "parquet-fraction",
            "times in seconds, in a table",
            "its column start_ns holds fractions, or numbers that were rounded",
            table({**WHOLE, "start_ns": [0.25, 0.5]}),
            where="history.parquet",
            advice="Write the table again",
        ),
        unreadable(
            "parquet-rounded",
            "nanoseconds since 1970 that were rounded, in a table",
            "its column end_ns holds fractions, or numbers that were rounded",
            table({**WHOLE, "end_ns": [1.7e18, 1.7e18]}),
            where="history.parquet",
            advice="Write the table again",
        ),
        unreadable(
            "parquet-large-process",
            "a process that no counter counts up to, in a table",
            "in its column process: its process is too large",
            table({**WHOLE, "process": ["a", "9999999999999999999"]}),
            where="history.parquet",
            advice="Write the table again",
        ),
        unreadable(
            "parquet-row",
            "a row that makes no sense",
            "row 2: it ends before it starts",
            table({**WHOLE, "end_ns": [5, 1]}),
            where="history.parquet",
            advice=ROW,
        ),
        unreadable(
            "parquet-no-end",
            "an answered operation without an end",
            "row 1: it is over and has no end_ns",
            table(WHOLE),
            where="history.parquet",
            advice=ROW,
        ),
        unreadable(
            "parquet-overlap",
            "a process that does two things at a time, in a table",
            "row 2: its process is still at work on another operation",
            table({**WHOLE, "process": [0, 0], "end_ns": [9, 9]}),
            where="history.parquet",
            advice=ROW,
        ),
        unreadable(
            "parquet-value",
            "a value of a table that is no JSON",
            "row 2: its result is no JSON: it ends in the middle of a value",
            table({**WHOLE, "end_ns": [9, 9], "result": ["1", "["]}),
            where="history.parquet",
            advice=ROW,
        ),
        unreadable(
            "parquet-deep",
            "a value of a table nested deeper than anybody can look at",
            "row 2: its result is no JSON: it is nested too deeply",
            table({**WHOLE, "end_ns": [9, 9], "result": ["1", "[" * 900 + "]" * 900]}),
            where="history.parquet",
            advice=ROW,
        ),
        unreadable(
            "etcd-empty-input",
            "a record of etcd's tests without its request",
            "Input says range and holds none",
            lines(ETCD, name="operations.json"),
            where="operations.json, line 1 at byte 0",
        ),
        Cause(
            "etcd-report",
            "a report of etcd's tests with a broken record",
            "check report",
            "could not read the history (report/client-1/operations.json, line 1 at byte 0): "
            f"Input says range and holds none. {REPAIR}",
            arrange=report_folder,
        ),
        Cause(
            "etcd-no-report",
            "a folder that is no report of etcd's tests",
            "check folder --format etcd-robustness",
            "--format is for bare histories, and folder is a folder. Leave it out: a run "
            "folder is judged as its plan says",
            arrange=file("folder/file", ""),
        ),
        Cause(
            "skip-broken-of-a-run",
            "leaving broken lines of a run out",
            "check folder --skip-broken",
            "--skip-broken is for bare histories, and folder is a folder. Leave it out: a run "
            "folder is judged as its plan says",
            arrange=file("folder/plan.json", "{}"),
        ),
        Cause(
            "report-nowhere",
            "a page in a folder that is not there",
            "check history.jsonl --report pages/page.html",
            "--report pages/page.html cannot be written: there is no folder pages. Name a file "
            "in a folder that exists",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "report-on-history",
            "a page in the place of the history",
            "check history.jsonl --report ./history.jsonl",
            "--report names the history itself. Name another file, it would be replaced",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "history-without-plan",
            "a folder with a history and no plan",
            "check folder",
            "folder has no plan.json, so that nothing says what it was meant to be. Judge its "
            "bare history: splitbrain check folder/history.jsonl --model MODEL",
            arrange=file("folder/history.jsonl", INVOKE),
        ),
        Cause(
            "history-no-file",
            "a device instead of a history",
            "check /dev/null",
            "could not read the history (/dev/null): it is no regular file. Name a run folder "
            "or a history file that can be read",
        ),
    ),
)
