"""What kernels are told about links, and what is read back from what their programs print."""

from collections.abc import Callable

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
def test_what_can_never_arrive_is_not_held_and_doubles_are_held_once(
    speak: Callable[..., str],
) -> None:
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
