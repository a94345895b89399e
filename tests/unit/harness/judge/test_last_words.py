"""Each runtime's last words are recognised, with the line on which they stand."""

from pathlib import Path

import pytest

from splitbrain.harness.judge import last_words as module
from splitbrain.harness.judge.last_words import last_words


def said(
    root: Path, content: bytes | str, exit_code: int | None = 1, name: str = "node.log"
) -> str:
    folder = root / "nodes" / "n1"
    folder.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(data)
    found = last_words(root, "n1", exit_code)
    return "nothing" if found is None else f"{found.place}: {found.text}"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "ok\npanic: runtime error: index out of range [3]\n\ngoroutine 1 [running]:\n",
            "2: panic: runtime error: index out of range [3]",
        ),
        (
            "ok\n2026/11/22 18:00:01 fatal error: all goroutines are asleep - deadlock!\n",
            "2: 2026/11/22 18:00:01 fatal error: all goroutines are asleep - deadlock!",
        ),
        (
            '{"level":"info"}\n{"level":"fatal","msg":"failed to open WAL"}\n',
            '2: {"level":"fatal","msg":"failed to open WAL"}',
        ),
        (
            'x\nException in thread "main" java.io.IOException: no quorum\n\tat A.b(A.java:1)\n',
            '2: Exception in thread "main" java.io.IOException: no quorum',
        ),
        (
            (
                "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"
                "#  SIGSEGV (0xb) at pc=0x00007f, pid=1, tid=2\n#\n"
            ),
            (
                "2: # A fatal error has been detected by the Java Runtime Environment: "
                "SIGSEGV (0xb) at pc=0x00007f, pid=1, tid=2"
            ),
        ),
        (
            "Terminating due to java.lang.OutOfMemoryError: Java heap space\n",
            "1: Terminating due to java.lang.OutOfMemoryError: Java heap space",
        ),
        (
            "=CRASH REPORT==== 22-Nov-2026\nx\nKernel pid terminated (application_controller)\n",
            "3: Kernel pid terminated (application_controller)",
        ),
        (
            "ok\n=ERROR REPORT==== 22-Nov-2026::18:00:00 ===\nno disc\n",
            "2: =ERROR REPORT==== 22-Nov-2026::18:00:00 ===: no disc",
        ),
        (
            (
                'a\nTraceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'
                '  File "x.py", line 2, in g\nValueError: no such offset\n'
            ),
            "2: ValueError: no such offset",
        ),
        (
            (
                'a\n{"event": "crash", "text": "Traceback (most recent call last):\\n  File x\\n'
                'KeyError: 7"}\n'
            ),
            "2: KeyError: 7",
        ),
        (
            "thread 'main' panicked at src/main.rs:2:5:\nattempt to divide by zero\nnote: run\n",
            "1: thread 'main' panicked at src/main.rs:2:5: attempt to divide by zero",
        ),
        (
            "thread 'raft-3' panicked at 'index out of bounds', src/log.rs:9:1\n",
            "1: thread 'raft-3' panicked at 'index out of bounds', src/log.rs:9:1",
        ),
        (
            (
                "terminate called after throwing an instance of 'std::out_of_range'\n"
                "  what():  vector::_M_range_check\nAborted (core dumped)\n"
            ),
            (
                "1: terminate called after throwing an instance of 'std::out_of_range': "
                "what():  vector::_M_range_check"
            ),
        ),
        (
            "node: log.c:42: append: Assertion `offset >= 0' failed.\nAborted\n",
            "1: node: log.c:42: append: Assertion `offset >= 0' failed.",
        ),
        ("*** stack smashing detected ***: terminated\n",) * 1
        + ("1: *** stack smashing detected ***: terminated",),
        (
            "1:M 22 Nov 2026 18:00:00.000 # Redis 7.0.15 crashed by signal: 11, si_code: 0\n",
            "1: 1:M 22 Nov 2026 18:00:00.000 # Redis 7.0.15 crashed by signal: 11, si_code: 0",
        ),
        (
            "ok\n./run.sh: line 3:  9 Segmentation fault\n",
            "2: ./run.sh: line 3:  9 Segmentation fault",
        ),
        (
            "a\n2026-11-22 FATAL [main] could not bind\n",
            "2: 2026-11-22 FATAL [main] could not bind",
        ),
        ("n1  | panic: boom\n", "1: n1  | panic: boom"),
        ("starting\nlistening\n", "2: listening"),
        ("starting\nlistening", "2: listening"),
    ],
)
def test_the_words_of_each_runtime(tmp_path: Path, log: str, expected: str) -> None:
    assert said(tmp_path, log) == f"nodes/n1/node.log:{expected}"
    # Whatever the line ends with.
    assert said(tmp_path, log.replace("\n", "\r\n")) == f"nodes/n1/node.log:{expected}"


def test_the_last_of_several_deaths_is_told(tmp_path: Path) -> None:
    log = "panic: first\n" + "working\n" * 3 + "panic: second\n\ngoroutine 1 [running]:\nFATAL\n"
    assert said(tmp_path, log) == "nodes/n1/node.log:5: panic: second"


def test_what_only_mentions_a_panic_is_none(tmp_path: Path) -> None:
    log = "we do not panic: at all, and this is a long sentence about panic: recovery\nready\n"
    assert said(tmp_path, log) == "nodes/n1/node.log:2: ready"
    assert said(tmp_path, "Assertion made; it held\nready\n").endswith(": ready")
    assert said(tmp_path, "NOTFATAL\nAbortedTransactions 3\n").endswith("AbortedTransactions 3")


@pytest.mark.parametrize("exit_code", [137])
def test_what_was_killed_has_no_words_of_its_own(tmp_path: Path, exit_code: int) -> None:
    assert said(tmp_path, "panic: of an earlier life\nready\n", exit_code) == "nothing"
    assert said(tmp_path, "java.lang.OutOfMemoryError: heap\n", exit_code).endswith(": heap")
    assert said(tmp_path, "x\nOut of memory: Killed process 7 (node)\n", exit_code).endswith(
        "(node)"
    )


@pytest.mark.parametrize("exit_code", [0, 143])
def test_what_ended_in_order_died_of_nothing(tmp_path: Path, exit_code: int) -> None:
    log = "panic: of an earlier life\nstopped\n"
    assert said(tmp_path, log, exit_code) == "nodes/n1/node.log:2: stopped"


def test_the_most_telling_of_all_logs_is_told(tmp_path: Path) -> None:
    said(tmp_path, "panic: boom\n", name="b.log")
    assert said(tmp_path, "FATAL: hint\n", name="a.log") == "nodes/n1/b.log:1: panic: boom"
    assert said(tmp_path, "last\n", name="c.err") == "nodes/n1/b.log:1: panic: boom"


@pytest.mark.parametrize(
    "content", [b"", b"\n\n \n", b"\xff\xfe\x00" * 9, b"\x00" * 100_000, b"{" * 100_000]
)
def test_anything_may_stand_in_a_log(tmp_path: Path, content: bytes) -> None:
    words = said(tmp_path, content)
    assert len(words) < 250
    assert words.isprintable()


def test_words_amid_bytes_that_are_no_text(tmp_path: Path) -> None:
    assert said(tmp_path, b"\xff\xfe\npanic: \xff boom\x1b[31m\n\xff") == (
        "nodes/n1/node.log:2: panic: \ufffd boom [31m"
    )


def test_a_long_log_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEARCHED_BYTES_MAX", 10_000)
    before = b"panic: long ago\n" + b"working\n" * 50_000
    assert said(tmp_path, before + b"panic: now\nx\n") == "nodes/n1/node.log:50002: panic: now"
    assert said(tmp_path, before) == "nodes/n1/node.log:50001: working"


def test_a_line_without_end_costs_little(tmp_path: Path) -> None:
    long = b"a" * 3_000_000 + b" panicked at " + b"b" * 3_000_000
    assert len(said(tmp_path, long)) < 250


def test_no_log_no_words(tmp_path: Path) -> None:
    assert last_words(tmp_path, "n1", 1) is None
