"""Rules that drop or reset what comes from some addresses, in a network that is all ours.

The whole set of these rules is replaced at once, and no other (links have shapes besides), so that
doing something twice is the same as doing it once. Packets are dropped where they arrive: a drop
on the sender's side would be told to it. Must never be used in a network namespace that anything
else has rules in.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from splitbrain.runtimes.system_programs import CannotError, run_tool

_TABLE: Final = "splitbrain"
_ADDRESS: Final = re.compile(r"\b(\d+\.\d+\.\d+\.\d+)\b")


class Dialect(NamedTuple):
    """One of the programs that speak to the kernel's firewall."""

    name: str
    #: Replaces all rules by those on its standard input.
    load: tuple[str, ...]
    #: Prints all of these rules.
    show: tuple[str, ...]

    def rules(self, sources: Iterable[str], resets: Iterable[str] = ()) -> str:
        """All rules of a node that shall hear nothing from some, and refuse others' connections.

        What is dropped gets no answer. Resets pass, so that both ends hear of it.
        """
        addresses, refused = sorted(sources), sorted(resets)
        if self.name == "nft":
            # Each on a line of its own: nft takes no closing brace behind another.
            lines = [f"table inet {_TABLE}", f"delete table inet {_TABLE}"]
            lines += [f"table inet {_TABLE} {{", "chain input {"]
            lines.append("type filter hook input priority 0; policy accept;")
            lines += [f"ip saddr {address} drop" for address in addresses]
            lines += [
                f"ip saddr {address} tcp flags & rst != rst reject with tcp reset"
                for address in refused
            ]
            return "\n".join([*lines, "}", "}", ""])
        lines = [f"-A INPUT -s {address}/32 -j DROP\n" for address in addresses]
        answer = "-p tcp ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset"
        lines += [f"-A INPUT -s {address}/32 {answer}\n" for address in refused]
        return f"*filter\n:INPUT ACCEPT [0:0]\n{''.join(lines)}COMMIT\n"


DIALECTS: Final = (
    Dialect("nft", ("nft", "-f", "-"), ("nft", "list", "table", "inet", _TABLE)),
    Dialect("iptables", ("iptables-restore",), ("iptables-save", "-t", "filter")),
    # Kernels without nf_tables have the older interface.
    Dialect(
        "iptables-legacy",
        ("iptables-legacy-restore",),
        ("iptables-legacy-save", "-t", "filter"),
    ),
)


class Firewall:
    """The first dialect that works here; called in a thread that is in the node's network."""

    def __init__(self, dialect: Dialect, lock: str) -> None:
        self.dialect = dialect
        self._lock = lock

    def replace(self, sources: Iterable[str], resets: Iterable[str] = ()) -> None:
        """From now on drop what comes from these addresses, refuse those, and nothing else.

        Raises:
            CannotError: the kernel refuses.
        """
        rules = self.dialect.rules(sources, resets)
        run_tool(self.dialect.load, rules, XTABLES_LOCKFILE=self._lock)

    def dropped(self) -> frozenset[str]:
        """The addresses that are dropped now, as the kernel tells it."""
        return self._addresses("drop")

    def refused(self) -> frozenset[str]:
        """The addresses whose connections are reset now, as the kernel tells it."""
        return self._addresses("reject")

    def _addresses(self, verdict: str) -> frozenset[str]:
        shown = run_tool(self.dialect.show, XTABLES_LOCKFILE=self._lock)
        lines = [line for line in shown.splitlines() if verdict in line.lower()]
        return frozenset(address for line in lines for address in _ADDRESS.findall(line))


def working_firewall(lock: str) -> Firewall:
    """The first program that can set rules in the caller's network namespace.

    Args:
        lock: file that the older interface locks, in a folder that the caller may write to.

    Raises:
        CannotError: none can; says of each why.
    """
    problems: list[str] = []
    for dialect in DIALECTS:
        firewall = Firewall(dialect, lock)
        try:
            firewall.replace(())
        except CannotError as error:
            problems.append(str(error))
        else:
            return firewall
    raise CannotError(f"no program for firewall rules works ({'; '.join(problems)})")
