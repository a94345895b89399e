#!/usr/bin/env python3
"""Give the links of one node a quality; run inside the node's network.

Usage: ``links.py means``    what this kernel can do, a JSON list
       ``links.py set PLAN`` replace what is in force by a plan
       ``links.py show``     what is in force, in the form of a plan
       ``links.py clear``    as it was before

A plan is JSON: ``{"arriving": {ADDRESS: QUALITY}, "leaving": {ADDRESS: QUALITY}, "whole": BOOL}``,
where ``whole`` says that packets shall be as large as they are on a wire: a virtual network passes
on what it was told to send, up to 64 KiB at once, and a loss or a limit of size would hit that.
Doing anything twice is the same as doing it once. Exit codes: 0 done, 1 the kernel refuses (one
line says why), 64 bad usage.
"""

import array
import errno
import fcntl
import json
import socket
import struct
import subprocess
import sys
from pathlib import Path

import link_rules
import packet_queue

from splitbrain.runtimes.system_programs import CannotError, run_tool

DEVICE = "eth0"
#: Rules of a trial of resets, and how to remove them, for the programs in the order above.
_RESET_TRIAL = (
    "*filter\n:SPLITBRAIN-TRIAL - [0:0]\n"
    "-A SPLITBRAIN-TRIAL -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n"
)
_RESET_TRIAL_END = "*filter\n-F SPLITBRAIN-TRIAL\n-X SPLITBRAIN-TRIAL\nCOMMIT\n"
_RESET_TRIAL_NFT = (
    "table inet splitbrain_trial {\nchain input {\n"
    "type filter hook input priority 10; policy accept;\n"
    "ip saddr 192.0.2.1 meta l4proto tcp reject with tcp reset\n}\n}\n"
)
_TRIAL_ADDRESS = "192.0.2.1"
_TRIAL_QUEUE = 65_000

#: Programs that speak to the firewall: how to load rules, and how to show them.
_DIALECTS = (
    (("iptables-restore",), ("iptables-save", "-t", "mangle")),
    (("nft", "-f", "-"), ("nft", "list", "ruleset")),
    # Kernels without nf_tables have the older interface. Only to look there makes tables.
    (("iptables-legacy-restore",), ("iptables-legacy-save", "-t", "mangle")),
)

_SIOCETHTOOL = 0x8946
#: Read and set: segments made by the device, and by the kernel before it.
_OFFLOADS = ((0x1E, 0x1F), (0x23, 0x24))


# --- where packets arrive ---------------------------------------------------------------------


def load(arriving: dict[str, dict[str, float]]) -> None:
    """Replace all rules."""
    command = _dialect()[0]
    is_nft = command[0] == "nft"
    rules = (link_rules.nft_rules if is_nft else link_rules.iptables_rules)(arriving)
    run_tool(command, rules)


def _dialect() -> tuple[tuple[str, ...], str]:
    """How to load rules with the first program that works here, and those that it shows."""
    problems: list[str] = []
    for command, show in _DIALECTS:
        try:
            return command, run_tool(show)
        except CannotError as error:
            problems.append(str(error))
    raise CannotError("; ".join(problems))


def arriving() -> dict[str, dict[str, float]]:
    """Rules in force: the kernel's, and those that the program in user space holds."""
    found = _shown_rules()
    answer = packet_queue.ask({}) or {}
    table = answer.get("table", {})
    assert isinstance(table, dict)
    for address, quality in found.items():
        # Without the program, or without the rule, nothing waits.
        if quality.pop("queued", None):
            quality.update(table.get(address, {}))
    return {address: quality for address, quality in found.items() if quality}


def _shown_rules() -> dict[str, dict[str, float]]:
    command, shown = _dialect()
    if command[0] == "nft":
        # Up to the next table.
        shown = shown.partition(f"table inet {link_rules.TABLE} {{")[2].partition("\ntable ")[0]
    return link_rules.arriving_in_force(shown)


def hold(table: dict[str, dict[str, float]]) -> None:
    """Have the program in user space hold this, starting it where none runs."""
    if packet_queue.ask({"table": table}) is not None:
        return
    program = Path(__file__).with_name("packet_queue.py")
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    ) as process:
        assert process.stdout is not None
        first_line = process.stdout.readline().decode().strip()
        if first_line != "ready" or packet_queue.ask({"table": table}) is None:
            raise CannotError(f"no queue in user space: {first_line or 'the program died'}")
        # It goes on, and outlives this.
        process.returncode = 0


def let_go() -> int | None:
    """Let on all that waits and end the program; its process, if one ran."""
    answer = packet_queue.ask({"stop": True})
    return None if answer is None else int(str(answer["process"]))


# --- where packets leave ----------------------------------------------------------------------


def leaving(device: str = DEVICE) -> dict[str, dict[str, float]]:
    """Return the rules in force."""
    try:
        return link_rules.leaving_in_force(
            run_tool(("tc", "class", "show", "dev", device)),
            run_tool(("tc", "qdisc", "show", "dev", device)),
            run_tool(("tc", "filter", "show", "dev", device, "parent", "1:")),
        )
    except CannotError:
        return {}


def slow(wanted: dict[str, dict[str, float]], device: str = DEVICE) -> None:
    """Replace what is in force, where it differs: what waits there would be lost."""
    if leaving(device) == wanted and (wanted or not _is_slowed(device)):
        return
    if _is_slowed(device):
        run_tool(("tc", "qdisc", "del", "dev", device, "root"))
    commands = link_rules.departure_commands(device, wanted)
    if commands:
        try:
            run_tool(("tc", "-batch", "-"), "\n".join(commands) + "\n")
        except CannotError:
            run_tool(("tc", "qdisc", "del", "dev", device, "root"))
            raise


def _is_slowed(device: str) -> bool:
    try:
        return "htb 1: root" in run_tool(("tc", "qdisc", "show", "dev", device))
    except CannotError:
        return False  # without the program nothing was ever slowed


def keep_whole(is_wanted: bool, device: str = DEVICE) -> None:
    """Make packets as large as a wire's, or let them be as the device likes them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for read, change in _OFFLOADS:
            value = array.array("I", [read, 0])
            request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(handle, _SIOCETHTOOL, request)
                if bool(value[1]) == is_wanted:
                    value[0], value[1] = change, int(not is_wanted)
                    fcntl.ioctl(handle, _SIOCETHTOOL, request)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.ENODEV):
                    raise CannotError(f"offloads of {device}: {error}") from error


# --- all of it --------------------------------------------------------------------------------


def means() -> list[str]:
    """Try on the loopback interface, with an address of nobody, which effects can be had here."""
    if _shown_rules():
        raise CannotError("links are shaped now: ask before or after")
    trials = {"loss": {"loss": 0.5}, "black-hole": {"bytes_max": 500}, "queue": {"delay_us": 1_000}}
    found: list[str] = []
    for word, quality in trials.items():
        try:
            load({_TRIAL_ADDRESS: quality})
            if word == "queue":
                packet_queue.Queue(_TRIAL_QUEUE).close()
        except (CannotError, OSError):
            continue
        found.append(word)
    if found:
        load({})
    for word, quality in {"rate": {"rate_kbit": 100}, "netem": {"delay_us": 1_000}}.items():
        try:
            slow({_TRIAL_ADDRESS: quality}, "lo")
        except CannotError:
            continue
        found.append(word)
        slow({}, "lo")
    if _can_reset():
        found.append("reset")
    return found


def _can_reset() -> bool:
    command = _dialect()[0]
    try:
        if command[0] == "nft":
            run_tool(command, _RESET_TRIAL_NFT)
            run_tool(command, "delete table inet splitbrain_trial\n")
        else:
            run_tool((*command, "--noflush"), _RESET_TRIAL)
            run_tool((*command, "--noflush"), _RESET_TRIAL_END)
    except CannotError:
        return False
    return True


def establish(plan: dict[str, dict[str, dict[str, float]]], is_whole: bool) -> int | None:
    """Replace what is in force; the process of the program in user space that has ended, if any."""
    held = {
        address: {name: quality[name] for name in link_rules.HELD if quality.get(name)}
        for address, quality in plan["arriving"].items()
        if link_rules.is_held(quality)
    }
    if is_whole:
        keep_whole(True)
    if held:
        hold(held)
    if plan["arriving"] or _shown_rules():
        load(plan["arriving"])
    slow(plan["leaving"])
    if not is_whole:
        keep_whole(False)
    return None if held else let_go()


def main(arguments: list[str]) -> int:
    """Do what the first argument says."""
    try:
        match arguments:
            case ["means"]:
                print(json.dumps(means()))
            case ["set", plan_text]:
                plan = json.loads(plan_text)
                print(json.dumps({"ended": establish(plan, plan["whole"])}))
            case ["show"]:
                print(json.dumps({"arriving": arriving(), "leaving": leaving()}))
            case ["clear"]:
                ended = establish({"arriving": {}, "leaving": {}}, is_whole=False)
                print(json.dumps({"ended": ended}))
            case _:
                print(__doc__, file=sys.stderr)
                return 64
    except CannotError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
