"""Kernel rules of links, programs' output, and the program that holds packets."""

import random
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.runtimes.pod_tools import pod_tool

rules = pod_tool("link_rules")
PEER, OTHER = "10.77.0.2", "10.77.0.3"
ALL = {"bytes_max": 600, "loss": 0.25, "delay_us": 50_000}
#: As kernel and programs print what ``ALL`` makes.
IPTABLES = """
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
-A INPUT -s 10.77.0.2/32 -m length --length 601:65535 -j DROP
-A INPUT -s 10.77.0.2/32 -m statistic --mode random --probability 0.25000000000 -j DROP
-A INPUT -s 10.77.0.2/32 ! -i lo -j NFQUEUE --queue-num 7 --queue-bypass
COMMIT
"""
NFT = """
\tchain input {
\t\ttype filter hook input priority mangle; policy accept;
\t\tip saddr 10.77.0.2 ip length > 600 drop
\t\tip saddr 10.77.0.2 numgen random mod 1000000 < 250000 drop
\t\tiifname != "lo" ip saddr 10.77.0.2 queue flags bypass to 7
\t}
"""
FILTERS = """
filter protocol ip pref 1 u32 chain 0
filter protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1
filter protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:2 not_in_hw
  match 0a4d0002/ffffffff at 16
filter protocol ip pref 1 u32 chain 0 fh 800::801 order 2049 key ht 800 bkt 0 flowid 1:3 not_in_hw
  match 0a4d0003/ffffffff at 16
"""
CLASSES = """
class htb 1:2 root leaf 8001: prio 0 rate 512Kbit ceil 512Kbit burst 1600b cburst 1600b
class htb 1:3 root leaf 8002: prio 0 rate 32Gbit ceil 32Gbit burst 0b cburst 0b
"""
QUEUES = """
qdisc htb 1: root refcnt 2 r2q 10 default 0 direct_packets_stat 0 direct_qlen 1000
qdisc bfifo 8001: parent 1:2 limit 25600b
qdisc netem 8002: parent 1:3 limit 100000 delay 1.2s  50ms reorder 10% duplicate 5% gap 1
"""


@pytest.mark.parametrize("shown", [IPTABLES, NFT])
def test_what_is_in_force_is_read_back(shown: str) -> None:
    assert rules.arriving_in_force(shown) == {PEER: {"bytes_max": 600, "loss": 0.25, "queued": 1}}


@pytest.mark.parametrize("speak", [rules.iptables_rules, rules.nft_rules])
def test_what_is_told_is_what_is_read_back(speak: Callable[..., str]) -> None:
    told = speak({PEER: ALL, OTHER: {"loss": 0.5}})
    expected = {PEER: {"bytes_max": 600, "loss": 0.25, "queued": 1}, OTHER: {"loss": 0.5}}
    assert rules.arriving_in_force(told) == expected
    assert rules.arriving_in_force(speak({})) == {}


@pytest.mark.parametrize("speak", [rules.iptables_rules, rules.nft_rules])
def test_lost_packets_are_not_held_and_doubles_are_held_once(speak: Callable[..., str]) -> None:
    lines = [line for line in speak({PEER: ALL}).splitlines() if PEER in line]
    assert [
        word in line.lower() for word, line in zip(("length", "0", "queue"), lines, strict=True)
    ]
    assert "bypass" in lines[2]
    assert "lo" in lines[2].replace('"', " ").split()


def test_rates_and_netem_are_read_back_by_address() -> None:
    assert rules.leaving_in_force(CLASSES, QUEUES, FILTERS) == {
        PEER: {"rate_kbit": 512},
        OTHER: {"delay_us": 1_200_000, "jitter_us": 50_000, "reorder": 0.1, "duplicate": 0.05},
    }
    assert rules.leaving_in_force("", "qdisc noqueue 0: root refcnt 2", "") == {}


def test_a_slow_link_drops_what_would_wait_too_long() -> None:
    commands = "\n".join(rules.departure_commands("eth0", {PEER: {"rate_kbit": 512}}))
    assert "rate 512kbit" in commands
    assert "bfifo limit 25600" in commands
    assert f"match ip dst {PEER}/32 flowid 1:2" in commands
    assert "netem" not in commands


def test_netem_holds_what_leaves_with_and_without_a_rate() -> None:
    late = {"delay_us": 100_000, "jitter_us": 20_000, "reorder": 0.1, "duplicate": 0.05}
    commands = rules.departure_commands("eth0", {PEER: late, OTHER: {"rate_kbit": 64, **late}})
    words = "delay 100000us 20000us reorder 10.0000% duplicate 5.0000%"
    assert [words in command for command in commands if "netem" in command] == [True, True]
    assert any("rate 64kbit" in command for command in commands)


def test_nothing_is_told_where_nothing_is_wanted() -> None:
    assert rules.departure_commands("eth0", {}) == []


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
    held.let_on(time.monotonic_ns())
    assert kernel.passed == [11, 12]
    assert held.due_in_s() > 1
    held.let_on(None)
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
