"""Histories of formats other than JSON lines that say nothing about any system."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bad_input.cause import Arrange, Chapter, Scene, causes, file
from tests.bad_input.history_causes import EDN_INVOKE, INVOKE, OK, REPAIR, lines

ETCD = '{"ClientId": 1, "Input": {"Type": "range"}, "Call": 3, "Output": {}, "Return": 9}'
ROW = "Leave the row out, with --skip-broken too, or write the table again"
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
    causes(
        f"""
format-empty | an empty file | check history.edn
  could not read the history (history.edn): it is empty. Look whether it was copied whole, or name
  another file
format-empty-named | an empty file of a named format | check history.edn --format jepsen-log
  could not read the history (history.edn): it is empty. Look whether it was copied whole, or name
  another file
format-no-log | a log without operations | check some.log --format jepsen-log
  could not read the history (some.log): no line of it is an operation. Name the log of a test, or
  another --format
edn-half-character | half a character | check history.edn
  could not read the history (history.edn, line 1 at byte 0): half a character in a string. {REPAIR}
edn-long-number | a number without end | check history.edn
  could not read the history (history.edn, line 1 at byte 0): a number of 5,000 digits at character
  43. {REPAIR}
edn-torn | EDN with a torn line before the last | check history.edn
  could not read the history (history.edn, line 2 at byte 46): '{{' at character 0 is never closed.
  {REPAIR}
edn-whole-and-lacking | a last line of EDN without line feed that is whole and lacks its kind
  $ check history.edn
  could not read the history (history.edn, line 2 at byte 46): the map has no :f. {REPAIR}
edn-independent | a value without key among those with one | check history.edn
  could not read the history (history.edn, line 2 at byte 51): its value is no [key value], as the
  others are. {REPAIR}
kv-no-key | a kv file without keys | check history.txt --format kv --model kv
  could not read the history (history.txt, line 1 at byte 0): the map has no :key. {REPAIR}
kv-other-kind | a kv file that does something else | check history.txt --format kv --model kv
  could not read the history (history.txt, line 1 at byte 0): a kv file knows get, put and append,
  and no 'write'. {REPAIR}
cas-no-pair | a compare-and-set of one value | check history.jsonl
  could not read the history (history.jsonl, line 3 at byte 114): the cas of process 0, event 2: it
  is asked 5, which is not a pair [expected, new]. {REPAIR}
cas-odd-answer | an answer to a compare-and-set that says neither yes nor no | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): the cas of process 0, event 0: it
  answers [1, 2, 'perhaps'], which is no [expected, new, true or false]. {REPAIR}
cas-other-arguments | an answer to another compare-and-set than was asked | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): the cas of process 0, event 0: it is
  asked [1, 3] and answers [2, 3, True]. {REPAIR}
write-other-value | an answer to another write than was asked | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): the write of process 0, event 0: it
  is asked 1 and answers 2. {REPAIR}
contains-odd-answer | an answer to contains that is neither true nor false
  $ check history.jsonl --model set
  could not read the history (history.jsonl, line 1 at byte 0): the contains of process 0, event 0:
  the answer of contains is true or false, and not 'no'. {REPAIR}
outcome-odd-answer | an answer to another add than was asked, for a checker of outcomes
  $ check history.jsonl --model set-full
  could not read the history (history.jsonl, line 1 at byte 0): the add of process 0, event 0: it is
  asked 5 and answers 6. {REPAIR}
parquet-cut | a table that ends too early | check history.parquet
  could not read the history (history.parquet): it cannot be read as Parquet: Could not open Parquet
  input source 'history.parquet': Parquet magic bytes not found in footer. Either the file is
  corrupted or this is not a parquet file. Write or copy the table again
parquet-other | a table of something else | check history.parquet
  could not read the history (history.parquet): the table has no column process, f, type, start_ns.
  Write a table of paired operations, as `splitbrain docs history-format` tells
parquet-two-runs | a table of two runs | check history.parquet
  could not read the history (history.parquet): the table holds 2 runs. Write a table of one run
  alone
parquet-column-type | a column of another type | check history.parquet
  could not read the history (history.parquet): its column start_ns is of type string, not int64.
  Write the table again
parquet-fraction | times in seconds, in a table | check history.parquet
  could not read the history (history.parquet): its column start_ns holds fractions, or numbers that
  were rounded. Write the table again
parquet-rounded | nanoseconds since 1970 that were rounded, in a table | check history.parquet
  could not read the history (history.parquet): its column end_ns holds fractions, or numbers that
  were rounded. Write the table again
parquet-large-process | a process that no counter counts up to, in a table | check history.parquet
  could not read the history (history.parquet): in its column process: its process is too large.
  Write the table again
parquet-row | a row that makes no sense | check history.parquet
  could not read the history (history.parquet): row 2: it ends before it starts. {ROW}
parquet-no-end | an answered operation without an end | check history.parquet
  could not read the history (history.parquet): row 1: it is over and has no end_ns. {ROW}
parquet-overlap | a process that does two things at a time, in a table | check history.parquet
  could not read the history (history.parquet): row 2: its process is still at work on another
  operation. {ROW}
parquet-value | a value of a table that is not valid JSON | check history.parquet
  could not read the history (history.parquet): row 2: its result is not valid JSON: it ends in the
  middle of a value. {ROW}
parquet-deep | a value of a table nested deeper than anybody can look at | check history.parquet
  could not read the history (history.parquet): row 2: its result is not valid JSON: it is nested
  too deeply. {ROW}
etcd-empty-input | a record of etcd's tests without its request | check operations.json
  could not read the history (operations.json, line 1 at byte 0): Input says range and holds none.
  {REPAIR}
etcd-report | a report of etcd's tests with a broken record | check report
  could not read the history (report/client-1/operations.json, line 1 at byte 0): Input says range
  and holds none. {REPAIR}
etcd-no-report | a folder that is no report of etcd's tests | check folder --format etcd-robustness
  --format is for bare histories, and folder is a folder. Leave it out: a run folder is judged as
  its plan says
skip-broken-of-a-run | leaving broken lines of a run out | check folder --skip-broken
  --skip-broken is for bare histories, and folder is a folder. Leave it out: a run folder is judged
  as its plan says
report-nowhere | a page in a folder that is not there | check history.jsonl --report pages/page.html
  --report pages/page.html cannot be written: there is no folder pages. Name a file in a folder that
  exists
report-on-history | a page in the place of the history
  $ check history.jsonl --report ./history.jsonl
  --report names the history itself. Name another file, it would be replaced
history-without-plan | a folder with a history and no plan | check folder
  folder has no plan.json, so that nothing says what it was meant to be. Judge its bare history:
  splitbrain check folder/history.jsonl --model MODEL
history-no-file | a device instead of a history | check /dev/null
  could not read the history (/dev/null): it is no regular file. Name a run folder or a history file
  that can be read
""",
        {
            "format-empty": file("history.edn", "\n"),
            "format-empty-named": file("history.edn", ""),
            "format-no-log": file("some.log", "INFO jepsen.core - begins\n"),
            "edn-half-character": lines(EDN_INVOKE.replace("1}", '"\\ud800"}'), name="history.edn"),
            "edn-long-number": lines(
                EDN_INVOKE.replace("1}", "9" * 5000 + "}"), name="history.edn"
            ),
            "edn-torn": file("history.edn", f"{EDN_INVOKE}\n{{:process 0 :ty\n{EDN_INVOKE}"),
            "edn-whole-and-lacking": file("history.edn", f"{EDN_INVOKE}\n{{:process 0 :type :ok}}"),
            "edn-independent": lines(
                "{:process 0 :type :invoke :f :read :value [7 nil]}",
                "{:process 1 :type :invoke :f :write :value 1}",
                name="history.edn",
            ),
            "kv-no-key": lines('{:process 0 :type :invoke :f :put :value "a"}', name="history.txt"),
            "kv-other-kind": lines(EDN_INVOKE, name="history.txt"),
            "cas-no-pair": lines(INVOKE, OK, CAS),
            "cas-odd-answer": lines(
                CAS.replace("5", "[1, 2]"),
                CAS.replace("5", '[1, 2, "perhaps"]').replace("invoke", "ok"),
            ),
            "cas-other-arguments": lines(
                CAS.replace("5", "[1, 3]"), CAS.replace("5", "[2, 3, true]").replace("invoke", "ok")
            ),
            "write-other-value": lines(INVOKE, OK.replace("1}", "2}")),
            "contains-odd-answer": lines(
                CAS.replace("cas", "contains"),
                CAS.replace("cas", "contains").replace("5", '"no"').replace("invoke", "ok"),
            ),
            "outcome-odd-answer": lines(
                CAS.replace("cas", "add"),
                CAS.replace("cas", "add").replace("5", "6").replace("invoke", "ok"),
            ),
            "parquet-cut": table(WHOLE, keep=100),
            "parquet-other": table({"a": [1]}),
            "parquet-two-runs": table({**WHOLE, "run_id": ["a", "b"]}),
            "parquet-column-type": table({**WHOLE, "start_ns": ["1", "2"]}),
            "parquet-fraction": table({**WHOLE, "start_ns": [0.25, 0.5]}),
            "parquet-rounded": table({**WHOLE, "end_ns": [1.7e18, 1.7e18]}),
            "parquet-large-process": table({**WHOLE, "process": ["a", "9999999999999999999"]}),
            "parquet-row": table({**WHOLE, "end_ns": [5, 1]}),
            "parquet-no-end": table(WHOLE),
            "parquet-overlap": table({**WHOLE, "process": [0, 0], "end_ns": [9, 9]}),
            "parquet-value": table({**WHOLE, "end_ns": [9, 9], "result": ["1", "["]}),
            "parquet-deep": table(
                {**WHOLE, "end_ns": [9, 9], "result": ["1", "[" * 900 + "]" * 900]}
            ),
            "etcd-empty-input": lines(ETCD, name="operations.json"),
            "etcd-report": report_folder,
            "etcd-no-report": file("folder/file", ""),
            "skip-broken-of-a-run": file("folder/plan.json", "{}"),
            **dict.fromkeys(("report-nowhere", "report-on-history"), lines(INVOKE, OK)),
            "history-without-plan": file("folder/history.jsonl", INVOKE),
        },
    ),
)
