"""Rules of the kernel for the links of one node, as words for its programs, and read back.

Pure text: no program is run here. A link is named by the other end's address. Packets are lost, and
queued for user space, where they arrive; they are slowed, and delayed where the kernel has netem,
where they leave. So the two directions of a link are apart, and a sender never hears of a loss.

The rules of arrival are the whole of one table (``mangle`` of iptables, one of our own in nft),
which nothing else in a node's network uses, so it is replaced at once. Cuts and resets are in
another, behind it: a cut also drops what waits in the queue.

Sources: iptables-extensions(8), nft(8), tc-htb(8), tc-netem(8), tc-u32(8).
"""

import ipaddress
import re
from collections.abc import Mapping

#: Effects of one link, by the names of ``contracts.arms.Shape``; a missing one is off.
Quality = Mapping[str, float]

#: Number of the queue that the program in user space takes packets from.
QUEUE = 7
TABLE = "splitbrain_shape"
#: Effects of netem or of the program in user space.
HELD = ("delay_us", "jitter_us", "reorder", "duplicate")

_MILLION = 1_000_000
#: A packet waits at a slow link for at most this long; what comes later is dropped.
_PATIENCE_S = 0.4
_QUEUE_BYTES_MIN = 16_384
#: Faster than anything here: for links that are delayed and not slowed.
_UNLIMITED_KBIT = 32_000_000
_NETEM_PACKETS = 100_000
_UNITS_KBIT = {"": 0.001, "K": 1.0, "M": 1_000.0, "G": 1_000_000.0}
_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}


def is_held(quality: Quality) -> bool:
    """Whether packets have to wait, or to come twice."""
    return any(quality.get(name) for name in HELD)


# --- where packets arrive ---------------------------------------------------------------------


def iptables_rules(arriving: Mapping[str, Quality]) -> str:
    """All rules of the table, for ``iptables-restore``."""
    lines = ["*mangle", ":INPUT ACCEPT [0:0]"]
    for address, quality in sorted(arriving.items()):
        start = f"-A INPUT -s {address}/32"
        if quality.get("bytes_max"):
            sizes = f"{int(quality['bytes_max']) + 1}:65535"
            lines.append(f"{start} -m length --length {sizes} -j DROP")
        if quality.get("loss"):
            share = f"{quality['loss']:.6f}"
            lines.append(f"{start} -m statistic --mode random --probability {share} -j DROP")
        if is_held(quality):
            # Doubles come by the loopback interface and have waited already.
            lines.append(f"{start} ! -i lo -j NFQUEUE --queue-num {QUEUE} --queue-bypass")
    return "\n".join([*lines, "COMMIT", ""])


def nft_rules(arriving: Mapping[str, Quality]) -> str:
    """Return the same for ``nft -f``."""
    # Naming the table before makes its removal succeed where it is not there.
    lines = [f"table inet {TABLE}", f"delete table inet {TABLE}"]
    if not arriving:
        return "\n".join([*lines, ""])
    lines += [f"table inet {TABLE} {{", "chain input {"]
    lines.append("type filter hook input priority -150; policy accept;")
    for address, quality in sorted(arriving.items()):
        start = f"ip saddr {address}"
        if quality.get("bytes_max"):
            lines.append(f"{start} ip length > {int(quality['bytes_max'])} drop")
        if quality.get("loss"):
            share = round(quality["loss"] * _MILLION)
            lines.append(f"{start} numgen random mod {_MILLION} < {share} drop")
        if is_held(quality):
            lines.append(f'iifname != "lo" {start} queue num {QUEUE} bypass')
    return "\n".join([*lines, "}", "}", ""])


def arriving_in_force(shown: str) -> dict[str, dict[str, float]]:
    """Read what ``iptables-save`` or ``nft list`` printed; ``queued`` marks what waits."""
    found: dict[str, dict[str, float]] = {}
    for line in shown.splitlines():
        source = re.search(r"(?:-s|saddr) (\d+\.\d+\.\d+\.\d+)", line)
        if source is None:
            continue
        quality = found.setdefault(source[1], {})
        if longer := re.search(r"--length (\d+):", line):
            quality["bytes_max"] = int(longer[1]) - 1
        elif longer := re.search(r"ip length > (\d+)", line):
            quality["bytes_max"] = int(longer[1])
        elif share := re.search(r"--probability ([0-9.]+)", line):
            quality["loss"] = round(float(share[1]), 6)
        elif share := re.search(r"mod (\d+) < (\d+)", line):
            quality["loss"] = int(share[2]) / int(share[1])
        elif "queue" in line.lower():
            quality["queued"] = 1
    return found


# --- where packets leave ----------------------------------------------------------------------


def departure_commands(device: str, leaving: Mapping[str, Quality]) -> list[str]:
    """Commands for ``tc -batch`` that make all of it, on a device that has no such thing yet."""
    if not leaving:
        return []
    # A packet of no class is not slowed.
    commands = [f"qdisc add dev {device} root handle 1: htb"]
    for address, quality in sorted(leaving.items()):
        number = int(ipaddress.IPv4Address(address)) & 0xFFFF
        name = f"1:{number:x}"
        rate = int(quality.get("rate_kbit") or _UNLIMITED_KBIT)
        commands.append(
            f"class add dev {device} parent 1: classid {name} htb rate {rate}kbit quantum 1514"
        )
        if is_held(quality):
            commands.append(f"qdisc add dev {device} parent {name} {netem(quality)}")
        else:
            room = max(_QUEUE_BYTES_MIN, int(rate * 125 * _PATIENCE_S))
            commands.append(f"qdisc add dev {device} parent {name} bfifo limit {room}")
        match = f"u32 match ip dst {address}/32"
        commands.append(
            f"filter add dev {device} parent 1: protocol ip prio 1 {match} flowid {name}"
        )
    return commands


def netem(quality: Quality) -> str:
    """Return the words for netem. Only what has a delay can be overtaken."""
    parts = [f"netem limit {_NETEM_PACKETS} delay {int(quality.get('delay_us', 0))}us"]
    if quality.get("jitter_us"):
        parts.append(f"{int(quality['jitter_us'])}us")
    if quality.get("reorder"):
        parts.append(f"reorder {quality['reorder']:.4%}")
    if quality.get("duplicate"):
        parts.append(f"duplicate {quality['duplicate']:.4%}")
    return " ".join(parts)


def leaving_in_force(classes: str, queues: str, filters: str) -> dict[str, dict[str, float]]:
    """Read what ``tc class show``, ``tc qdisc show`` and ``tc filter show`` printed."""
    addresses: dict[str, str] = {}
    for name, address in re.findall(
        r"flowid (\S+).*?match ([0-9a-f]{8})/ffffffff", filters, re.DOTALL
    ):
        addresses[name] = str(ipaddress.IPv4Address(int(address, 16)))
    found: dict[str, dict[str, float]] = {}
    for name, rate, unit in re.findall(r"class htb (\S+) .*?rate (\d+)([KMG]?)bit", classes):
        if name in addresses:
            kbit = int(int(rate) * _UNITS_KBIT[unit])
            found[addresses[name]] = {} if kbit >= _UNLIMITED_KBIT else {"rate_kbit": kbit}
    for name, options in re.findall(r"qdisc netem \S+ parent (\S+) (.*)", queues):
        if name in addresses:
            found.setdefault(addresses[name], {}).update(_netem_in_force(options))
    return found


def _netem_in_force(options: str) -> dict[str, float]:
    quality: dict[str, float] = {}
    times = re.search(r"delay ([\d.]+)(us|ms|s)(?:\s+([\d.]+)(us|ms|s))?", options)
    if times is not None:
        quality["delay_us"] = round(float(times[1]) * _UNITS_US[times[2]])
        if times[3]:
            quality["jitter_us"] = round(float(times[3]) * _UNITS_US[times[4]])
    for name in ("reorder", "duplicate"):
        if share := re.search(rf"{name} ([\d.]+)%", options):
            quality[name] = round(float(share[1]) / 100, 6)
    return quality
