"""The program that holds packets: whom it holds for how long, and the kernel's messages."""

import random
import socket
import struct
from typing import Any

from tests.unit.runtimes.pod_tools import pod_tool

queue = pod_tool("packet_queue")

SENDER = socket.inet_aton("10.77.0.1")
MILLISECOND = 1_000_000


def fates(**quality: float) -> list[tuple[int, bool]]:
    table = queue.Table()
    table.replace({"10.77.0.1": quality})
    chance = random.Random(1)
    return [table.fate(SENDER, chance) for _ in range(2000)]


def test_packets_of_nobody_in_the_table_pass_at_once() -> None:
    table = queue.Table()
    table.replace({"10.77.0.2": {"delay_us": 100_000}})
    assert table.fate(SENDER, random.Random(1)) == (0, False)


def test_a_delay_is_exact_and_a_jitter_spreads_evenly_around_it() -> None:
    assert set(fates(delay_us=100_000)) == {(100 * MILLISECOND, False)}
    waits = [wait / MILLISECOND for wait, _ in fates(delay_us=100_000, jitter_us=50_000)]
    assert 50 <= min(waits) < 55
    assert 145 < max(waits) <= 150
    assert 97 < sum(waits) / len(waits) < 103


def test_overtaking_packets_do_not_wait_and_doubled_ones_come_twice() -> None:
    overtaking = [wait for wait, _ in fates(delay_us=100_000, reorder=0.2) if wait == 0]
    assert 340 < len(overtaking) < 460
    doubled = [wait for wait, is_doubled in fates(duplicate=0.2) if is_doubled]
    assert 340 < len(doubled) < 460


def message(kind: int, *attributes: tuple[int, bytes]) -> bytes:
    body = bytes(4) + b"".join(
        struct.pack("=HH", 4 + len(value), number) + value + bytes(-len(value) % 4)
        for number, value in attributes
    )
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_number_and_bytes_of_a_packet_are_found_among_other_attributes() -> None:
    header = struct.pack(">IHB", 4711, 0x0800, 1)
    came = message(3 << 8, (1, header), (5, b"\0\0\0\2"), (10, b"whole packet"))
    assert queue._packet(came) == (4711, b"whole packet")


def test_other_messages_of_the_kernel_hold_no_packet() -> None:
    assert queue._packet(message(2)) == (None, b"")


def test_a_verdict_is_a_request_or_the_kernel_ignores_it() -> None:
    verdict = queue.Queue._verdict(type("Numbered", (), {"_number": 7})(), 4711)
    length, kind, flags = struct.unpack_from("=IHH", verdict)
    assert (length, kind, flags & 1) == (len(verdict), 3 << 8 | 1, 1)
    assert verdict[18:20] == (7).to_bytes(2)
    assert verdict[-8:] == struct.pack(">II", 1, 4711)


class _Kernel:
    """Takes verdicts, as the kernel's end of the queue."""

    def __init__(self) -> None:
        self.passed: list[int] = []

    def send(self, verdicts: bytes) -> None:
        self.passed += [number for (number,) in struct.iter_unpack(">28xI", verdicts)]


def waiting(*packets: tuple[int, int, str]) -> tuple[Any, _Kernel]:
    """A queue in which packets wait: when each is due, its number, its sender."""
    held, kernel = queue.Queue.__new__(queue.Queue), _Kernel()
    held._number, held.socket, held.table = 7, kernel, queue.Table()
    held._waiting = [
        (due, number, socket.inet_aton(sender), b"") for due, number, sender in packets
    ]
    return held, kernel


def test_what_is_due_passes_and_the_rest_waits() -> None:
    held, kernel = waiting((1, 11, "10.0.0.1"), (2, 12, "10.0.0.1"), (1 << 62, 13, "10.0.0.1"))
    held.release()
    assert kernel.passed == [11, 12]
    assert held.due_in_s() > 1
    held.release_all()
    assert kernel.passed == [11, 12, 13]
    assert held.due_in_s() is None


def test_packets_of_a_link_that_has_no_shape_any_more_pass_in_their_order() -> None:
    late = 1 << 62
    held, kernel = waiting(
        (late, 11, "10.0.0.1"), (late, 12, "10.0.0.2"), (late + 1, 13, "10.0.0.1")
    )
    held.replace({"10.0.0.2": {"delay_us": 10_000}})
    assert kernel.passed == [11, 13]
    held.replace({})
    assert kernel.passed == [11, 13, 12]
