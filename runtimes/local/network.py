"""A bridge with one network namespace per node on it, made within the host's own namespaces.

No namespace here has a name or a file: each lives as long as a descriptor or a process holds it,
so nothing can be left behind. Sockets stay where they are made, and threads can be in different
networks: each node has threads of its own that probe and set rules from inside its network.

Rules drop or reset what comes from some addresses. The whole set of them is replaced at once, and
no other (links have shapes besides), so that doing something twice is the same as doing it once.
Packets are dropped where they arrive: a drop on the sender's side would be told to it. Must never
be used in a network namespace that anything else has rules in.
"""

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from splitbrain.runtimes.local import kernel
from splitbrain.runtimes.system_programs import CannotError, run_tool

_TABLE: Final = "splitbrain"
_ADDRESS: Final = re.compile(r"\b(\d+\.\d+\.\d+\.\d+)\b")
#: A private subnet of which nothing outside the namespaces ever hears.
_SUBNET: Final = "10.77.0"
_HOST_ADDRESS: Final = f"{_SUBNET}.254"
_PROBES_AT_ONCE: Final = 8
#: The tools of the container runtime do here what they do there.
_TOOLS: Final = Path(__file__).resolve().parents[2] / "docker" / "pod"
#: Longest that a tool may take: a probe waits for what may never come.
_TOOL_PATIENCE_S: Final = 180.0


class Dialect(NamedTuple):
    """One of the programs that speak to the kernel's firewall."""

    name: str
    #: Replaces all rules by those on its standard input.
    load: tuple[str, ...]
    #: Prints all of these rules.
    show: tuple[str, ...]

    def rules(self, sources: Iterable[str], resets: Iterable[str] = ()) -> str:
        """All rules of a node that drop what comes from some, and refuse others' connections.

        A dropped packet gets no answer. Resets pass, so that both ends hear of it.
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
        "iptables-legacy", ("iptables-legacy-restore",), ("iptables-legacy-save", "-t", "filter")
    ),
)


class Firewall:
    """The first dialect that works here; called in a thread that is in the node's network."""

    def __init__(self, dialect: Dialect, lock: str) -> None:
        self.dialect = dialect
        self._lock = lock

    def replace(self, sources: Iterable[str], resets: Iterable[str] = ()) -> None:
        """From now on drop what comes from these addresses, refuse those, and nothing else."""
        rules = self.dialect.rules(sources, resets)
        run_tool(self.dialect.load, rules, XTABLES_LOCKFILE=self._lock)

    def shown(self, verdict: Literal["drop", "reject"]) -> frozenset[str]:
        """Return the addresses with this verdict now, as the kernel tells it."""
        shown = run_tool(self.dialect.show, XTABLES_LOCKFILE=self._lock)
        lines = [line for line in shown.splitlines() if verdict in line.lower()]
        return frozenset(address for line in lines for address in _ADDRESS.findall(line))


def working_firewall(lock: str) -> Firewall:
    """Return the first program that sets rules in the caller's network; CannotError: why none can.

    The older interface locks the file ``lock``, in a folder that the caller may write to.
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


class NodeNetwork:
    """One node's network namespace."""

    #: Once it is configured, and the file that its programs lock.
    _firewall: Firewall
    _lock: str

    def __init__(self, address: str) -> None:
        """Make the namespace; the caller's thread is back in its own afterwards."""
        self.address = address
        original = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            kernel.unshare(kernel.CLONE_NEWNET)
            self.namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            kernel.enter(original, kernel.CLONE_NEWNET)
        finally:
            os.close(original)
        self._threads = self._inside("in")
        self._is_shaped = False
        # Apart from those that probe: an act must not wait for probes that wait for nothing.
        self._tools = self._inside("tool")
        self._sources: frozenset[str] = frozenset()
        self._resets: frozenset[str] = frozenset()

    def _inside(self, name: str) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(
            _PROBES_AT_ONCE,
            thread_name_prefix=f"{name}-{self.address}",
            initializer=lambda: kernel.enter(self.namespace, kernel.CLONE_NEWNET),
        )

    def configure(self, lock: str) -> str:
        """Give the interfaces their addresses; the name of the firewall's program."""
        self._lock = lock

        def inside() -> Firewall:
            lines = ("link set lo up", f"addr add {self.address}/24 dev eth0", "link set eth0 up")
            run_tool(("ip", "-batch", "-"), "\n".join(lines) + "\n")
            return working_firewall(lock)

        self._firewall = self._threads.submit(inside).result()
        return self._firewall.dialect.name

    def drop(self, *, more: Iterable[str] = (), fewer: Iterable[str] = ()) -> None:
        """Hear nothing from some addresses any more, and from others again."""
        self._set((self._sources | set(more)) - set(fewer), self._resets)

    def refuse(self, sources: Iterable[str]) -> None:
        """Reset the connections of exactly these addresses."""
        self._set(self._sources, frozenset(sources))

    def hear_all(self) -> None:
        """Drop and refuse nothing any more, and let no link have a shape."""
        self._set(frozenset(), frozenset())
        if self._is_shaped:
            self.run_tool(["links.py", "clear"])

    def _set(self, sources: frozenset[str], resets: frozenset[str]) -> None:
        self._threads.submit(self._firewall.replace, sources, resets).result()
        self._sources, self._resets = sources, resets

    def shown(self, verdict: Literal["drop", "reject"]) -> frozenset[str]:
        """Return the addresses that the kernel drops, or whose connections it resets."""
        return self._threads.submit(self._firewall.shown, verdict).result()

    def run_tool(self, tool: Sequence[str]) -> str:
        """Run one of the pods' tools from inside; what it printed."""
        command = [sys.executable, str(_TOOLS / tool[0]), *tool[1:]]
        is_set = tool[:2] == ["links.py", "set"]
        # Before it runs: it may fail half-way.
        self._is_shaped = self._is_shaped or is_set
        printed = self._tools.submit(
            run_tool, command, patience_s=_TOOL_PATIENCE_S, XTABLES_LOCKFILE=self._lock
        ).result()
        if is_set or tool[:2] == ["links.py", "clear"]:
            self._is_shaped = is_set
            _reap(json.loads(printed)["ended"])
        return printed

    def probe(self, address: str, port: str, timeout_s: str) -> bool:
        """Whether a connection from inside is answered there."""
        return self._threads.submit(probe, address, port, timeout_s).result()


class Network:
    """All nodes' networks on one bridge; a file with their addresses goes into the private folder.

    Raises:
        CannotError: a program is missing or refuses.
        OSError: the kernel refuses.
    """

    def __init__(self, names: Sequence[str], folder: Path) -> None:
        self.nodes = {
            name: NodeNetwork(f"{_SUBNET}.{number}") for number, name in enumerate(names, start=1)
        }
        lines = ["link set lo up", "link add splitbrain type bridge"]
        lines += [f"addr add {_HOST_ADDRESS}/24 dev splitbrain", "link set splitbrain up"]
        for number, node in enumerate(self.nodes.values(), start=1):
            where = f"/proc/self/fd/{node.namespace}"
            lines += [
                f"link add node{number} type veth peer name eth0 netns {where}",
                f"link set node{number} master splitbrain up",
            ]
        descriptors = [node.namespace for node in self.nodes.values()]
        run_tool(("ip", "-batch", "-"), "\n".join(lines) + "\n", descriptors)
        lock = str(folder / "firewall.lock")
        #: Name of the program that sets the rules.
        self.firewall = ""
        for node in self.nodes.values():
            self.firewall = node.configure(lock)
        self.hosts = folder / "hosts"
        entries = ["127.0.0.1 localhost"]
        entries += [f"{node.address} {name}" for name, node in self.nodes.items()]
        self.hosts.write_text("\n".join(entries) + "\n")


def _reap(number: int | None) -> None:
    """Take note of the end of a program that outlived the tool that started it."""
    if number is not None:
        with suppress(ChildProcessError):
            os.waitpid(number, 0)


def probe(address: str, port: str, timeout_s: str) -> bool:
    """Whether a connection of the calling thread is answered there (``docker/pod/probe.py``)."""
    return _probe.connect(address, int(port), float(timeout_s)) == "answered"


def _load_probe() -> Any:
    specification = importlib.util.spec_from_file_location("splitbrain_probe", _TOOLS / "probe.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


_probe: Final[Any] = _load_probe()
