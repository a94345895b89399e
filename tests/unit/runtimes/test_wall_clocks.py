"""Programs that can have a clock of their own, and readings of it."""

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.runtimes import wall_clocks
from tests.unit.runtimes.pod_tools import pod_tool

PT_LOAD, PT_INTERP = 1, 3


def elf(*segments: int) -> bytes:
    """The head of a 64-bit little-endian program with these kinds of segments."""
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    return ident + header + b"".join(struct.pack("<I", kind).ljust(56, b"\0") for kind in segments)


def narrow_elf(*segments: int) -> bytes:
    """The same, 32-bit and big-endian."""
    ident = b"\x7fELF\x01\x02\x01".ljust(16, b"\0")
    header = struct.pack(">HHIIIIIHHHHHH", 2, 8, 1, 0, 52, 0, 0, 52, 32, len(segments), 0, 0, 0)
    table = b"".join(struct.pack(">I", kind).ljust(32, b"\0") for kind in segments)
    return ident + header + table + bytes(16)


@pytest.mark.parametrize("make", [elf, narrow_elf])
def test_a_program_is_dynamic_that_names_a_loader(make: Callable[..., bytes]) -> None:
    assert wall_clocks.is_dynamic(make(PT_LOAD, PT_INTERP))
    assert not wall_clocks.is_dynamic(make(PT_LOAD, PT_LOAD))


def test_this_interpreter_is_judged_by_its_file() -> None:
    with Path(os.path.realpath(sys.executable)).open("rb") as file:
        assert wall_clocks.is_dynamic(file.read(wall_clocks.HEAD_BYTES))


def test_what_is_no_program_is_not_dynamic() -> None:
    assert not wall_clocks.is_dynamic(b"")
    assert not wall_clocks.is_dynamic(b"#!/bin/sh\nexec true\n" * 10)
    assert not wall_clocks.is_dynamic(elf(PT_INTERP)[:64])


@pytest.mark.parametrize(
    ("head", "is_loaded", "words"),
    [
        (elf(PT_INTERP), True, None),
        (elf(PT_LOAD), False, "linked statically"),
        (elf(PT_INTERP), False, "did not take libfaketime"),
        (elf(PT_INTERP) + b'\0Go build ID: "x/y"', True, "made by Go"),
    ],
)
def test_a_program_without_clock_is_told(head: bytes, is_loaded: bool, words: str | None) -> None:
    problem = wall_clocks.why_no_clock(head, is_loaded)
    assert problem is None if words is None else words in (problem or "")


@pytest.mark.parametrize(
    ("printed", "offset_ms"),
    [
        ("1000000000\n4601002000\n1000004000\n", 3_601),
        ("5000000000\n1000000000\n5000000000", -4_000),
        ("", None),
        ("date: not found", None),
        ("1\n2\n", None),
    ],
)
def test_a_reading_is_a_faked_time_between_true_ones(printed: str, offset_ms: int | None) -> None:
    assert wall_clocks.offset_of_reading(printed) == offset_ms


@pytest.mark.parametrize(
    ("offset_ms", "drift_ppm", "elapsed_ns", "line"),
    [
        (0, 0, 5, "+0.000000\n"),
        (1_500, 0, 5, "+1.500000\n"),
        (-250, 0, 5, "-0.250000\n"),
        (0, 500_000, 2_000_000_000, "+1.000000\n"),
        (1_000, -500_000, 3_000_000_000, "-0.500000\n"),
    ],
)
def test_a_clock_is_ahead_by_offset_and_drift(
    offset_ms: int, drift_ppm: int, elapsed_ns: int, line: str
) -> None:
    assert wall_clocks.offset_line(offset_ms * 1000, drift_ppm, elapsed_ns) == line


def test_what_a_program_preloads_itself_stays() -> None:
    ours = wall_clocks.clock_environment("/lib/ours.so", "/now", {"LD_PRELOAD": "/lib/own.so"})
    assert ours["LD_PRELOAD"] == "/lib/ours.so:/lib/own.so"
    assert wall_clocks.clock_environment("/lib/ours.so", "/now", {})["LD_PRELOAD"] == "/lib/ours.so"
    # A monotonic clock that went wrong would be another fault.
    assert ours["FAKETIME_DONT_FAKE_MONOTONIC"] == "1"
    assert ours["FAKETIME_FORCE_MONOTONIC_FIX"] == "0"


def test_the_tool_writes_once_for_a_jump_and_goes_on_for_a_drift(tmp_path: Path) -> None:
    file = tmp_path / "now"
    program = str(pod_tool("clock").__file__)
    environment = {**os.environ, "PYTHONPATH": str(Path(program).parents[2])}

    def set_clock(*words: str) -> None:
        command = [sys.executable, program, "set", str(file), *words]
        subprocess.run(command, check=True, env=environment)

    set_clock("2000000", "0")
    assert file.read_text() == "+2.000000\n"
    assert not (tmp_path / "now-ticker").exists()
    set_clock("0", "900000")
    try:
        first = file.read_text()
        while file.read_text() == first:
            pass
    finally:
        set_clock("0", "0")
    assert file.read_text() == "+0.000000\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["now"]


def test_the_tool_does_nothing_where_a_node_has_no_clock(tmp_path: Path) -> None:
    pod_tool("clock").set_clock(tmp_path / "missing" / "now", 5, 5)
    assert list(tmp_path.iterdir()) == []


def test_the_tool_ends_no_process_that_is_no_ticker_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "now-ticker").write_text(str(os.getpid()))
    pod_tool("clock").set_clock(tmp_path / "now", 0, 0)
    assert (tmp_path / "now").read_text() == "+0.000000\n"
