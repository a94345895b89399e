"""Histories that say nothing about any system.

It is longer than 400 lines because it is a table, one entry for each way to be wrong.
"""

import gzip

from splitbrain.checker.names import history_models
from tests.bad_input.cause import Arrange, Cause, Chapter, Scene, file

REPAIR = "Repair the line, or remove it with its whole operation; --skip-broken leaves it out"
KNOWN = "jsonl, edn, jepsen-log, kv, parquet, etcd-robustness"
PAIRS = "Each process runs one operation at a time; check how the history was recorded or imported"

TIMES = (
    "Write all times as whole numbers of one small unit, such as nanoseconds, "
    "or leave all of them out: the order of the lines stands in for them"
)
INVOKE = '{"process": 0, "type": "invoke", "f": "write", "value": 1}'
OK = '{"process": 0, "type": "ok", "f": "write", "value": 1}'
CHECK = "check history.jsonl"
EDN = "check history.edn"
MODELS = ", ".join(history_models())
EDN_INVOKE = "{:process 0 :type :invoke :f :write :value 1}"


def lines(*text: str, name: str = "history.jsonl") -> Arrange:
    return file(name, "".join(f"{line}\n" for line in text))


def bomb(scene: Scene) -> None:
    """Next to no memory stands for next to no end."""
    scene.monkeypatch.setattr("splitbrain.harness.cli.bare_command.MEMORY_BUDGET_MIB", 1)
    scene.write("history.jsonl.gz", gzip.compress(f"{INVOKE}\n{OK}\n".encode(), mtime=0))


def unreadable(
    name: str,
    wrong: str,
    problem: str,
    arrange: Arrange,
    *,
    where: str = "history.jsonl, line 1 at byte 0",
    options: str = "",
    advice: str = REPAIR,
) -> Cause:
    """A history that cannot be read; ``where``: its file, and the place in it."""
    command = f"check {where.partition(',')[0]}{options}"
    says = f"could not read the history ({where}): {problem}. {advice}"
    return Cause(name, wrong, command, says, arrange=arrange)


HISTORIES = Chapter(
    "Bare histories",
    (
        Cause(
            "history-missing",
            "a history that is not there",
            CHECK,
            "there is no history.jsonl. Name a run folder or a history file",
        ),
        Cause(
            "history-folder",
            "a folder that is no run folder",
            "check folder",
            "folder is no run folder: it has no plan.json. Name a folder below runs/, or "
            "runs/latest",
            arrange=file("folder/file", ""),
        ),
        Cause(
            "history-binary",
            "bytes that are no text",
            CHECK,
            "could not read the history (history.jsonl): it looks like none of the known "
            f"formats. Name its format with --format: {KNOWN}",
            arrange=file("history.jsonl", bytes(range(1, 256))),
            as_process=True,
        ),
        unreadable(
            "history-text",
            "some text",
            "it looks like none of the known formats",
            lines("Dear diary,", "nothing happened."),
            where="history.jsonl",
            advice=f"Name its format with --format: {KNOWN}",
        ),
        unreadable(
            "history-gzip",
            "a packed history that ends too early",
            "its gzip packing ends too early",
            file("history.jsonl.gz", gzip.compress(INVOKE.encode(), mtime=0)[:-9]),
            where="history.jsonl.gz",
            advice="Copy it again, or judge what is left: gzip -dc FILE > REST",
        ),
        unreadable(
            "history-utf-16",
            "another encoding",
            "it is UTF-16",
            file("history.jsonl", INVOKE.encode("utf-16")),
            where="history.jsonl",
            advice="Save it as UTF-8",
        ),
        unreadable(
            "history-byte-order-mark",
            "a byte order mark",
            "it begins with a byte order mark",
            lines("\ufeff" + INVOKE),
            where="history.jsonl",
            advice="Save it as UTF-8 without one",
        ),
        unreadable(
            "history-one-list",
            "one list of events",
            "it is one JSON list, not one event a line",
            lines(f"[{INVOKE},{OK}]"),
            where="history.jsonl",
            advice="Write one event a line: jq -c '.[]' FILE",
        ),
        unreadable(
            "history-broken-middle",
            "a broken line in the middle",
            "it ends in the middle of a value",
            lines(INVOKE, '{"process": 0, "type"', OK),
            where="history.jsonl, line 2 at byte 59",
        ),
        unreadable(
            "history-garbled-line",
            "a line that is no JSON",
            "it is no JSON: invalid character at byte 0",
            lines(INVOKE, "what?", OK),
            where="history.jsonl, line 2 at byte 59",
        ),
        unreadable(
            "history-unknown-type",
            "an event of no known type",
            "type cannot be 'okay'",
            lines(INVOKE, OK.replace("ok", "okay")),
            where="history.jsonl, line 2 at byte 59",
        ),
        unreadable(
            "history-no-f",
            "an event without f",
            "it has no field 'f'",
            lines('{"process": 0, "type": "invoke"}'),
        ),
        unreadable(
            "history-no-process",
            "an event of nobody",
            "it has no field 'process'",
            lines('{"f": "read", "type": "invoke"}'),
        ),
        unreadable(
            "history-no-utf-8",
            "invalid UTF-8 in a value",
            "it is not UTF-8: it holds the byte 0xff",
            file("history.jsonl", INVOKE.replace("1", '"\u00ff"').encode("latin-1") + b"\n"),
        ),
        unreadable(
            "history-huge-number",
            "a time too large for any clock",
            "it holds a number that is too large",
            lines(INVOKE.replace("}", ', "time": 1e999}')),
        ),
        unreadable(
            "history-nan",
            "a value that JSON does not have",
            "it is no JSON: invalid character at byte 56",
            lines(INVOKE.replace("1}", "NaN}")),
        ),
        unreadable(
            "history-deep",
            "a value nested without end",
            "it is nested too deeply",
            lines(INVOKE.replace("1}", "[" * 50_000), OK),
        ),
        unreadable(
            "history-deep-and-whole",
            "a value nested deeper than anybody can look at",
            "it is nested too deeply",
            lines(INVOKE.replace("1}", "[" * 900 + "]" * 900 + "}"), OK),
        ),
        unreadable(
            "history-gzip-bomb",
            "a packed history that takes more memory than there is for it",
            "unpacked, it takes more than the memory budget of 1 MiB",
            bomb,
            where="history.jsonl.gz",
            advice="Look what it holds, and judge it unpacked: gzip -dc FILE > HISTORY",
        ),
        unreadable(
            "history-endless-time",
            "a time that no clock tells",
            "its time is too large",
            lines(INVOKE.replace("}", f', "time": {10**25}}}')),
        ),
        unreadable(
            "edn-endless-time",
            "a time that no clock tells, in EDN",
            "its time is too large",
            lines(EDN_INVOKE.replace("}", f" :time {10**25}}}"), name="history.edn"),
            where="history.edn, line 1 at byte 0",
        ),
        unreadable(
            "history-some-times",
            "times in some lines only",
            "only some of the lines have a field 'time'",
            lines(INVOKE.replace("}", ', "time": 5}'), OK),
            where="history.jsonl, line 2 at byte 70",
        ),
        unreadable(
            "history-no-invocation",
            "an answer that nobody asked for",
            "process 0 completes write but has invoked nothing",
            lines(OK),
            where="history.jsonl, line 1 at byte 0, event 0",
            advice=PAIRS,
        ),
        unreadable(
            "history-two-open",
            "two operations of one process at a time",
            "process 0 invokes write while its write of index 0 is open",
            lines(INVOKE, INVOKE),
            where="history.jsonl, line 2 at byte 59, event 1",
            advice=PAIRS,
        ),
        unreadable(
            "history-process-back",
            "a process that goes on before its last answer",
            "process 0 invokes write at 5 ns, and its last operation was over at 9 ns",
            lines(
                *(
                    event.replace("}", f', "time": {time}}}')
                    for event, time in ((INVOKE, 1), (OK, 9), (INVOKE, 5), (OK, 10))
                )
            ),
            where="history.jsonl, line 3 at byte 136, event 2",
            advice=PAIRS,
        ),
        unreadable(
            "edn-process-back",
            "the same in EDN",
            "process 0 invokes write at 5 ns, and its last operation was over at 9 ns",
            lines(
                *(
                    EDN_INVOKE.replace("invoke", type_).replace("}", f" :time {time}}}")
                    for type_, time in (("invoke", 1), ("ok", 9), ("invoke", 5), ("ok", 10))
                ),
                name="history.edn",
            ),
            where="history.edn, line 3 at byte 104, event 2",
            advice=PAIRS,
        ),
        unreadable(
            "history-late-answer",
            "an answer that comes after its process gave it up",
            "process 0 completes write but has invoked nothing",
            lines(INVOKE, OK.replace("ok", "info"), OK),
            where="history.jsonl, line 3 at byte 116, event 2",
            advice=PAIRS,
        ),
        unreadable(
            "history-fraction-time",
            "times in seconds",
            "its time is 0.25, which is no whole number",
            lines(INVOKE.replace("}", ', "time": 0.25}')),
            advice=TIMES,
        ),
        unreadable(
            "history-rounded-time",
            "a time in nanoseconds since 1970 with a point, which is rounded",
            "its time is 1.7e+18, which is rounded",
            lines(INVOKE.replace("}", ', "time": 1700000000000000000.0}')),
            advice=TIMES,
        ),
        unreadable(
            "history-time-text",
            "a time in a text",
            "time must be a whole number or a number or null, not text",
            lines(INVOKE.replace("}", ', "time": "1.5"}')),
        ),
        unreadable(
            "edn-fraction-time",
            "EDN with times in seconds",
            "its time is 0.25, which is no whole number",
            lines(EDN_INVOKE.replace("}", " :time 0.25}"), name="history.edn"),
            where="history.edn, line 1 at byte 0",
            advice=TIMES,
        ),
        unreadable(
            "history-half-process",
            "a process with a fraction",
            "its process is 0.5, which is no whole number",
            lines(INVOKE.replace("0", "0.5")),
        ),
        unreadable(
            "history-null-process",
            "no process",
            "process must be a whole number or a number or text, not null",
            lines(INVOKE.replace("0", "null")),
        ),
        unreadable(
            "history-negative-and-names",
            "names of processes beside numbers below zero, which names are given",
            "some processes have names, and others a number below zero",
            lines(INVOKE.replace("0", "-1"), INVOKE.replace("0", '"client-7"')),
            where="history.jsonl, line 2 at byte 60",
        ),
        unreadable(
            "history-other-answer",
            "the answer to another question",
            "process 0 completes read, but invoked write at index 0",
            lines(INVOKE, OK.replace("write", "read")),
            where="history.jsonl, line 2 at byte 59, event 1",
            advice=PAIRS,
        ),
        unreadable(
            "history-time-back",
            "an answer before its question",
            "completed at 3 ns, before its invocation at 9 ns",
            lines(INVOKE.replace("}", ', "time": 9}'), OK.replace("}", ', "time": 3}')),
            where="history.jsonl, line 2 at byte 70, event 1",
            advice=PAIRS,
        ),
        unreadable(
            "history-index-back",
            "an index that goes back",
            "index 3 does not come after index 9",
            lines(INVOKE.replace("}", ', "index": 9}'), OK.replace("}", ', "index": 3}')),
            where="history.jsonl, line 2 at byte 71, event 3",
            advice=PAIRS,
        ),
        unreadable(
            "edn-truncated",
            "EDN that ends too early",
            "'{' at character 0 is never closed",
            lines(EDN_INVOKE, "{:process 0 :type :ok", name="history.edn"),
            where="history.edn, line 2 at byte 46",
        ),
        unreadable(
            "edn-no-map",
            "EDN that is no map",
            "it is no map, as an operation is",
            lines(EDN_INVOKE, "(1 2 3)", name="history.edn"),
            where="history.edn, line 2 at byte 46",
        ),
        unreadable(
            "edn-no-process",
            "EDN without a process",
            "the map has no :process",
            lines("{:type :invoke :f :read}", name="history.edn"),
            where="history.edn, line 1 at byte 0",
        ),
        unreadable(
            "edn-bad-time",
            "EDN with a time in words",
            "its time is no number",
            lines(EDN_INVOKE.replace("}", ' :time "noon"}'), name="history.edn"),
            where="history.edn, line 1 at byte 0",
        ),
        unreadable(
            "edn-unknown-type",
            "EDN of no known type",
            ":type cannot be 'ask'",
            lines(EDN_INVOKE.replace(":invoke", ":ask"), name="history.edn"),
            where="history.edn, line 1 at byte 0",
        ),
        unreadable(
            "jepsen-log-broken",
            "a broken line of a Jepsen log",
            "'[' at character 0 is never closed",
            lines("INFO jepsen.util - 3\t:invoke\t:write\t[", name="jepsen.log"),
            where="jepsen.log, line 1 at byte 0",
        ),
        Cause(
            "unknown-model",
            "no such model",
            f"{CHECK} --model registr",
            f"there is no model called 'registr' for a bare history. Choose one of: {MODELS}",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "model-needs-more",
            "a checker that needs more than a history",
            f"{CHECK} --model split-brain",
            f"there is no model called 'split-brain' for a bare history. Choose one of: {MODELS}",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "own-model-missing",
            "a model of one's own that is not there",
            f"{CHECK} --model models/mine.py:Mine",
            "there is no file models/mine.py. Name a Python file that holds a model",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "own-model-broken",
            "a model of one's own that is no Python",
            f"{CHECK} --model history.py:Mine",
            "history.py cannot be run: SyntaxError: '(' was never closed (history.py, line 1). "
            "Repair the file; it is Python",
            arrange=lines("class Mine(", name="history.py"),
        ),
        Cause(
            "bank-total",
            "a total that is no number",
            f"{CHECK} --model bank:total=ten",
            "the total in 'bank:total=ten' is no whole number. Write it as in bank:total=100",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "check-jobs-zero",
            "a history judged by nobody",
            f"{CHECK} --jobs 0",
            "--jobs cannot be 0. Choose a number between 1 and 256",
            arrange=lines(INVOKE, OK),
        ),
        Cause(
            "unknown-format",
            "no such format",
            f"{CHECK} --format xml",
            f"there is no history format called 'xml'. Choose one of: {KNOWN}",
            arrange=lines(INVOKE, OK),
        ),
        unreadable(
            "wrong-format",
            "another format than the file's",
            "it is no map, as an operation is",
            lines("hello", name="history.jsonl"),
            options=" --format edn",
        ),
    ),
)
