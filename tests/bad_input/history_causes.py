"""Histories that say nothing about any system."""

import gzip
import json

from splitbrain.checker.names import history_models
from splitbrain.checker.transactions.levels import LEVELS, levels_of
from tests.bad_input.cause import Arrange, Chapter, Scene, causes, file

REPAIR = "Repair the line, or remove it with its whole operation; --skip-broken leaves it out"
KNOWN = "jsonl, edn, jepsen-log, kv, parquet, etcd-robustness"
PAIRS = "Each process runs one operation at a time; check how the history was recorded or imported"

TIMES = (
    "Write all times as whole numbers of one small unit, such as nanoseconds, "
    "or leave all of them out: the order of the lines stands in for them"
)
INVOKE = '{"process": 0, "type": "invoke", "f": "write", "value": 1}'
OK = '{"process": 0, "type": "ok", "f": "write", "value": 1}'
MODELS = ", ".join(history_models())
EDN_INVOKE = "{:process 0 :type :invoke :f :write :value 1}"
LEVELS_TEXT = ", ".join(LEVELS)
ROW_LEVELS_TEXT = ", ".join(levels_of("rows"))


def txn(f: str, value: int | None = None, end: str = "ok") -> list[str]:
    """Both lines of a transaction of one micro-operation."""
    parts = [[f, "x", value]]
    return [
        json.dumps({"process": 0, "type": type_, "f": "txn", "value": parts})
        for type_ in ("invoke", end)
    ]


TXN_DONE = txn("w", 1)
TXN_FAILED = txn("w", 1, "fail")
#: Where the third line begins.
TXN_BYTES = sum(len(line) + 1 for line in TXN_FAILED)
ROW_FAILED = txn("insert", 1, "fail")
ROW_BYTES = sum(len(line) + 1 for line in ROW_FAILED)


def lines(*text: str, name: str = "history.jsonl") -> Arrange:
    return file(name, "".join(f"{line}\n" for line in text))


def bomb(scene: Scene) -> None:
    """Next to no memory stands for next to no end."""
    scene.monkeypatch.setattr("splitbrain.harness.cli.bare_command.MEMORY_BUDGET_MIB", 1)
    scene.write("history.jsonl.gz", gzip.compress(f"{INVOKE}\n{OK}\n".encode(), mtime=0))


HISTORIES = Chapter(
    "Bare histories",
    causes(
        f"""
history-missing | a history that is not there | check history.jsonl
  there is no history.jsonl. Name a run folder or a history file
history-folder | a folder that is no run folder | check folder
  folder is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
history-binary | bytes that are no text | check history.jsonl | process
  could not read the history (history.jsonl): it looks like none of the known formats. Name its
  format with --format: {KNOWN}
history-text | some text | check history.jsonl
  could not read the history (history.jsonl): it looks like none of the known formats. Name its
  format with --format: {KNOWN}
history-gzip | a packed history that ends too early | check history.jsonl.gz
  could not read the history (history.jsonl.gz): its gzip packing ends too early. Copy it again, or
  judge what is left: gzip -dc FILE > REST
history-utf-16 | another encoding | check history.jsonl
  could not read the history (history.jsonl): it is UTF-16. Save it as UTF-8
history-byte-order-mark | a byte order mark | check history.jsonl
  could not read the history (history.jsonl): it begins with a byte order mark. Save it as UTF-8
  without one
history-one-list | one list of events | check history.jsonl
  could not read the history (history.jsonl): it is one JSON list, not one event a line. Write one
  event a line: jq -c '.[]' FILE
history-broken-middle | a broken line in the middle | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 59): it ends in the middle of a value.
  {REPAIR}
history-garbled-line | a line that is not valid JSON | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 59): it is not valid JSON: invalid
  character at byte 0. {REPAIR}
history-unknown-type | an event of no known type | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 59): type cannot be 'okay'. {REPAIR}
history-no-f | an event without f | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it has no field 'f'. {REPAIR}
history-no-process | an event of nobody | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it has no field 'process'. {REPAIR}
history-no-utf-8 | invalid UTF-8 in a value | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it is not UTF-8: it holds the byte
  0xff. {REPAIR}
history-huge-number | a time too large for any clock | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it holds a number that is too large.
  {REPAIR}
history-nan | a value that JSON does not have | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it is not valid JSON: invalid
  character at byte 56. {REPAIR}
history-deep | a value nested without end | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it is nested too deeply. {REPAIR}
history-deep-and-whole | a value nested deeper than anybody can look at | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): it is nested too deeply. {REPAIR}
history-gzip-bomb | a packed history that takes more memory than there is for it
  $ check history.jsonl.gz
  could not read the history (history.jsonl.gz): unpacked, it takes more than the memory budget of 1
  MiB. Look what it holds, and judge it unpacked: gzip -dc FILE > HISTORY
history-endless-time | a time that no clock tells | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): its time is too large. {REPAIR}
edn-endless-time | a time that no clock tells, in EDN | check history.edn
  could not read the history (history.edn, line 1 at byte 0): its time is too large. {REPAIR}
history-some-times | times in some lines only | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 70): only some of the lines have a field
  'time'. {REPAIR}
history-no-invocation | an answer that nobody asked for | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0, event 0): process 0 completes write
  but has invoked nothing. {PAIRS}
history-two-open | two operations of one process at a time | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 59, event 1): process 0 invokes write
  while its write of index 0 is open. {PAIRS}
history-process-back | a process that goes on before its last answer | check history.jsonl
  could not read the history (history.jsonl, line 3 at byte 136, event 2): process 0 invokes write
  at 5 ns, and its last operation was over at 9 ns. {PAIRS}
edn-process-back | the same in EDN | check history.edn
  could not read the history (history.edn, line 3 at byte 104, event 2): process 0 invokes write at
  5 ns, and its last operation was over at 9 ns. {PAIRS}
history-late-answer | an answer that comes after its process gave it up | check history.jsonl
  could not read the history (history.jsonl, line 3 at byte 116, event 2): process 0 completes write
  but has invoked nothing. {PAIRS}
history-fraction-time | times in seconds | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): its time is 0.25, which is no whole
  number. {TIMES}
history-rounded-time | a time in nanoseconds since 1970 with a point, which is rounded
  $ check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): its time is 1.7e+18, which is
  rounded. {TIMES}
history-time-text | a time in a text | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): time must be a whole number or a
  number or null, not text. {REPAIR}
edn-fraction-time | EDN with times in seconds | check history.edn
  could not read the history (history.edn, line 1 at byte 0): its time is 0.25, which is no whole
  number. {TIMES}
history-half-process | a process with a fraction | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): its process is 0.5, which is no
  whole number. {REPAIR}
history-null-process | no process | check history.jsonl
  could not read the history (history.jsonl, line 1 at byte 0): process must be a whole number or a
  number or text, not null. {REPAIR}
history-negative-and-names | names of processes beside numbers below zero, which names are given
  $ check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 60): some processes have names, and
  others a number below zero. {REPAIR}
history-other-answer | the answer to another question | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 59, event 1): process 0 completes read,
  but invoked write at index 0. {PAIRS}
history-time-back | an answer before its question | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 70, event 1): completed at 3 ns, before
  its invocation at 9 ns. {PAIRS}
history-index-back | an index that goes back | check history.jsonl
  could not read the history (history.jsonl, line 2 at byte 71, event 3): index 3 does not come
  after index 9. {PAIRS}
edn-truncated | EDN that ends too early | check history.edn
  could not read the history (history.edn, line 2 at byte 46): '{{' at character 0 is never closed.
  {REPAIR}
edn-no-map | EDN that is no map | check history.edn
  could not read the history (history.edn, line 2 at byte 46): it is no map, as an operation is.
  {REPAIR}
edn-no-process | EDN without a process | check history.edn
  could not read the history (history.edn, line 1 at byte 0): the map has no :process. {REPAIR}
edn-bad-time | EDN with a time in words | check history.edn
  could not read the history (history.edn, line 1 at byte 0): its time is no number. {REPAIR}
edn-unknown-type | EDN of no known type | check history.edn
  could not read the history (history.edn, line 1 at byte 0): :type cannot be 'ask'. {REPAIR}
jepsen-log-broken | a broken line of a Jepsen log | check jepsen.log
  could not read the history (jepsen.log, line 1 at byte 0): '[' at character 0 is never closed.
  {REPAIR}
unknown-model | no such model | check history.jsonl --model registr
  there is no model called 'registr' for a bare history. Choose one of: {MODELS}
model-needs-more | a checker that needs more than a history
  $ check history.jsonl --model split-brain
  there is no model called 'split-brain' for a bare history. Choose one of: {MODELS}
transactions-unknown-function | a micro-operation that no list knows
  $ check history.jsonl --model list-append
  could not read the history (history.jsonl, line 1 at byte 0): the txn of process 0, event 0: the
  micro-operations of list-append are r and append, and not 'incr'. {REPAIR}
transactions-no-list | a read of a list that is none
  $ check history.jsonl --model list-append
  could not read the history (history.jsonl, line 1 at byte 0): the txn of process 0, event 0: a
  read of list-append answers a list, and not 3. {REPAIR}
transactions-written-twice | a value that is written to a key twice
  $ check history.jsonl --model rw-register
  could not read the history (history.jsonl, line 3 at byte {TXN_BYTES}): the txn of process 0,
  event 2: 1 is written to key 'x' a second time (first by event 0), so a read of it could not tell
  its writer. {REPAIR}
rows-unknown-function | a micro-operation that no row knows
  $ check history.jsonl --model rows
  could not read the history (history.jsonl, line 1 at byte 0): the txn of process 0, event 0: the
  micro-operations of rows are insert, delete and range, and not 'append'. {REPAIR}
rows-no-list | a range that is no list
  $ check history.jsonl --model rows
  could not read the history (history.jsonl, line 1 at byte 0): the txn of process 0, event 0: a
  range answers a list of rows, and not 3. {REPAIR}
rows-inserted-twice | a row that is inserted twice
  $ check history.jsonl --model rows
  could not read the history (history.jsonl, line 3 at byte {ROW_BYTES}): the txn of process 0,
  event 2: row 1 of group 'x' is inserted a second time (first by event 0), so a range without it
  could not tell when. {REPAIR}
rows-of-commit-orders | a level of isolation that knows no predicates
  $ check history.jsonl --model rows --level causal
  the isolation level 'causal' is defined for reads of single keys, and rows are read by a
  predicate. Choose one of: {ROW_LEVELS_TEXT}
level-unknown | no such isolation level
  $ check history.jsonl --model list-append --level atomic
  there is no isolation level called 'atomic'. Choose one of: {LEVELS_TEXT}
level-of-registers | an isolation level for what is no transaction
  $ check history.jsonl --model register --level serializable
  --level is for transactions, and register is no model of any. Leave it out, or choose --model
  list-append or rw-register or rows
own-model-missing | a model of one's own that is not there
  $ check history.jsonl --model models/mine.py:Mine
  there is no file models/mine.py. Name a Python file that holds a model
own-model-broken | a model of one's own that is no Python
  $ check history.jsonl --model history.py:Mine
  history.py cannot be run: SyntaxError: '(' was never closed (history.py, line 1). Repair the file;
  it is Python
bank-total | a total that is no number | check history.jsonl --model bank:total=ten
  the total in 'bank:total=ten' is no whole number. Write it as in bank:total=100
check-jobs-zero | a history judged by nobody | check history.jsonl --jobs 0
  --jobs cannot be 0. Choose a number between 1 and 256
unknown-format | no such format | check history.jsonl --format xml
  there is no history format called 'xml'. Choose one of: {KNOWN}
wrong-format | another format than the file's | check history.jsonl --format edn
  could not read the history (history.jsonl, line 1 at byte 0): it is no map, as an operation is.
  {REPAIR}
""",
        {
            "history-folder": file("folder/file", ""),
            "history-binary": file("history.jsonl", bytes(range(1, 256))),
            "history-text": lines("Dear diary,", "nothing happened."),
            "history-gzip": file("history.jsonl.gz", gzip.compress(INVOKE.encode(), mtime=0)[:-9]),
            "history-utf-16": file("history.jsonl", INVOKE.encode("utf-16")),
            "history-byte-order-mark": lines("\ufeff" + INVOKE),
            "history-one-list": lines(f"[{INVOKE},{OK}]"),
            "history-broken-middle": lines(INVOKE, '{"process": 0, "type"', OK),
            "history-garbled-line": lines(INVOKE, "what?", OK),
            "history-unknown-type": lines(INVOKE, OK.replace("ok", "okay")),
            "history-no-f": lines('{"process": 0, "type": "invoke"}'),
            "history-no-process": lines('{"f": "read", "type": "invoke"}'),
            "history-no-utf-8": file(
                "history.jsonl", INVOKE.replace("1", '"\u00ff"').encode("latin-1") + b"\n"
            ),
            "history-huge-number": lines(INVOKE.replace("}", ', "time": 1e999}')),
            "history-nan": lines(INVOKE.replace("1}", "NaN}")),
            "history-deep": lines(INVOKE.replace("1}", "[" * 50_000), OK),
            "history-deep-and-whole": lines(INVOKE.replace("1}", "[" * 900 + "]" * 900 + "}"), OK),
            "history-gzip-bomb": bomb,
            "history-endless-time": lines(INVOKE.replace("}", f', "time": {10**25}}}')),
            "edn-endless-time": lines(
                EDN_INVOKE.replace("}", f" :time {10**25}}}"), name="history.edn"
            ),
            "history-some-times": lines(INVOKE.replace("}", ', "time": 5}'), OK),
            "history-no-invocation": lines(OK),
            "history-two-open": lines(INVOKE, INVOKE),
            "history-process-back": lines(
                *(
                    event.replace("}", f', "time": {time}}}')
                    for event, time in ((INVOKE, 1), (OK, 9), (INVOKE, 5), (OK, 10))
                )
            ),
            "edn-process-back": lines(
                *(
                    EDN_INVOKE.replace("invoke", type_).replace("}", f" :time {time}}}")
                    for type_, time in (("invoke", 1), ("ok", 9), ("invoke", 5), ("ok", 10))
                ),
                name="history.edn",
            ),
            "history-late-answer": lines(INVOKE, OK.replace("ok", "info"), OK),
            "history-fraction-time": lines(INVOKE.replace("}", ', "time": 0.25}')),
            "history-rounded-time": lines(INVOKE.replace("}", ', "time": 1700000000000000000.0}')),
            "history-time-text": lines(INVOKE.replace("}", ', "time": "1.5"}')),
            "edn-fraction-time": lines(EDN_INVOKE.replace("}", " :time 0.25}"), name="history.edn"),
            "history-half-process": lines(INVOKE.replace("0", "0.5")),
            "history-null-process": lines(INVOKE.replace("0", "null")),
            "history-negative-and-names": lines(
                INVOKE.replace("0", "-1"), INVOKE.replace("0", '"client-7"')
            ),
            "history-other-answer": lines(INVOKE, OK.replace("write", "read")),
            "history-time-back": lines(
                INVOKE.replace("}", ', "time": 9}'), OK.replace("}", ', "time": 3}')
            ),
            "history-index-back": lines(
                INVOKE.replace("}", ', "index": 9}'), OK.replace("}", ', "index": 3}')
            ),
            "edn-truncated": lines(EDN_INVOKE, "{:process 0 :type :ok", name="history.edn"),
            "edn-no-map": lines(EDN_INVOKE, "(1 2 3)", name="history.edn"),
            "edn-no-process": lines("{:type :invoke :f :read}", name="history.edn"),
            "edn-bad-time": lines(EDN_INVOKE.replace("}", ' :time "noon"}'), name="history.edn"),
            "edn-unknown-type": lines(EDN_INVOKE.replace(":invoke", ":ask"), name="history.edn"),
            "jepsen-log-broken": lines(
                "INFO jepsen.util - 3\t:invoke\t:write\t[", name="jepsen.log"
            ),
            **dict.fromkeys(
                (
                    "unknown-model",
                    "model-needs-more",
                    "own-model-missing",
                    "bank-total",
                    "check-jobs-zero",
                    "unknown-format",
                ),
                lines(INVOKE, OK),
            ),
            "transactions-unknown-function": lines(*txn("incr", 1)),
            "transactions-no-list": lines(txn("r")[0], txn("r", 3)[1]),
            "transactions-written-twice": lines(*TXN_FAILED, *TXN_DONE),
            "rows-unknown-function": lines(*txn("append", 1)),
            "rows-no-list": lines(txn("range")[0], txn("range", 3)[1]),
            "rows-inserted-twice": lines(*ROW_FAILED, *txn("insert", 1)),
            "rows-of-commit-orders": lines(*txn("insert", 1)),
            **dict.fromkeys(("level-unknown", "level-of-registers"), lines(*TXN_DONE)),
            "own-model-broken": lines("class Mine(", name="history.py"),
            "wrong-format": lines("hello", name="history.jsonl"),
        },
    ),
)
