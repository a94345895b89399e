"""The link arm of runtimes whose nodes have networks of their own: who is told what.

It keeps what is wanted of every link, tells each node's tools (``docker/pod/links.py``) its part,
and asks them what is in force. Packets are lost and held where they arrive, slowed where they
leave; with netem they are held where they leave, too. How a tool gets to run inside a node's
network is the runtime's business. It knows nothing of cuts, and must never touch their rules.
"""

import json
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from splitbrain.contracts.arms import LinkQuality, Shape
from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.fault import Link, in_ms
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Capability
from splitbrain.runtimes.link_probes import LinkTools, quality_of
from splitbrain.runtimes.waiting import on_all

#: Kernels and their programs keep shares and rates to so many parts.
_ROUNDING: Final = 1e-3

#: Of whatever holds packets back.
_HOLDING: Final[frozenset[Capability]] = frozenset({"delay", "reorder", "duplicate"})
#: Word of a kernel's ability, as ``links.py means`` prints it, to what it is good for.
_CAPABILITIES: Final[Mapping[str, frozenset[Capability]]] = {
    "loss": frozenset({"loss"}),
    "black-hole": frozenset({"black-hole"}),
    "queue": _HOLDING,
    "netem": _HOLDING,
    "rate": frozenset({"rate"}),
    "reset": frozenset({"reset"}),
}
_ALONG: Final = ("delay_us", "jitter_us", "reorder", "duplicate")


def link_capabilities(means: Collection[str]) -> frozenset[Capability]:
    """Return the capabilities of plans where the kernel can do this."""
    return frozenset[Capability]().union(*(_CAPABILITIES.get(word, ()) for word in means))


def refuse_unfit(shape: Shape) -> None:
    """Raise UsageError for a shape that means nothing, with what is wrong with it."""
    shares = {"loss": shape.loss, "reorder": shape.reorder, "duplicate": shape.duplicate}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UsageError(f"{name} is {share}", "It is a share of packets: give 0 to 1")
    if min(shape.delay_us, shape.jitter_us) < 0 or shape.jitter_us > shape.delay_us:
        raise UsageError(
            f"a delay of {in_ms(shape.delay_us)} ms cannot vary by {in_ms(shape.jitter_us)} ms",
            "Give a jitter from 0 to the delay",
        )
    if shape.reorder and not shape.delay_us:
        raise UsageError(
            "packets that are not delayed cannot be overtaken", "Give a delay with reorder"
        )
    if shape.rate_kbit is not None and shape.rate_kbit < 1:
        raise UsageError(
            f"the rate is {shape.rate_kbit} kbit/s", "Give at least 1, or cut the link"
        )
    if shape.bytes_max is not None and not 0 < shape.bytes_max < 65_535:
        raise UsageError(f"bytes_max is {shape.bytes_max}", "Give 1 to 65534 bytes")


class Means:
    """Ways of this kernel to do each part of a shape, from what ``links.py means`` has found."""

    def __init__(self, abilities: Collection[str], runtime_name: str) -> None:
        self._abilities = frozenset(abilities)
        self._runtime_name = runtime_name

    def leaves_late(self, shape: Shape) -> bool:
        """Whether packets are held by netem where they leave, not where they arrive.

        Newer kernels refuse netem that doubles beside any other, so doubles are left to the queue.
        """
        return "netem" in self._abilities and not (shape.duplicate and "queue" in self._abilities)

    def of(self, shape: Shape) -> list[str]:
        """Return the means of each part, in words. CapabilityError: the kernel lacks one."""
        used: list[str] = []
        if shape.bytes_max is not None:
            used.append(self._need("black-hole", "a limit of packet length", "packets by length"))
        if shape.loss:
            used.append(self._need("loss", "statistic", "a share of packets"))
        if any(getattr(shape, name) for name in _ALONG):
            if self.leaves_late(shape):
                used.append("netem")
            else:
                used.append(self._need("queue", "a queue in user space", "packets that wait"))
        if shape.rate_kbit is not None:
            used.append(self._need("rate", "htb", "a rate"))
        return used

    def _need(self, word: str, means: str, what: str) -> str:
        if word not in self._abilities:
            raise CapabilityError(
                "shape links",
                f"runtime {self._runtime_name}",
                f"this kernel has no means for {what}",
                "`splitbrain doctor` says what it can do; leave this fault out of the plan",
            )
        return means


class NetworkLinks:
    """Implements :class:`contracts.arms.LinkArm` with tools inside each node's network.

    ``means`` finds how this kernel does it; it is asked at the first shape.
    """

    def __init__(self, tools: LinkTools, means: Callable[[], Means]) -> None:
        self._tools = tools
        self._find_means = means
        self._means: Means | None = None
        self._wanted: dict[Link, Shape] = {}
        self._resets: set[Link] = set()
        self._lock = threading.RLock()

    def shape(self, links: Iterable[Link], shape: Shape) -> str:
        """Give these links this quality from now on; by what means, in words."""
        chosen = self._deployed(links)
        refuse_unfit(shape)
        with self._lock:
            if self._means is None:
                self._means = self._find_means()
            used = self._means.of(shape)
            for link in chosen:
                if used:
                    self._wanted[link] = shape
                else:
                    self._wanted.pop(link, None)
            self._establish(chosen)
        return " and ".join(used) or "nothing"

    def unshape(self, links: Iterable[Link]) -> None:
        """Let these links be as they were."""
        chosen = self._deployed(links)
        with self._lock:
            for link in chosen:
                self._wanted.pop(link, None)
            self._establish(chosen)

    def shaped(self) -> dict[Link, Shape]:
        """Return the links that have a shape now, as the kernel and the queue's program tell it."""
        nodes = list(self._tools.nodes())
        names = {self._tools.address(node): node for node in nodes}
        found: defaultdict[Link, dict[str, float]] = defaultdict(dict)

        def look(node: NodeName) -> Any:
            return json.loads(self._tools.run(node, ["links.py", "show"]))

        for node, shown in zip(nodes, on_all(nodes, look), strict=True):
            for address, quality in shown["arriving"].items():
                found[Link(names[address], node)].update(quality)
            for address, quality in shown["leaving"].items():
                found[Link(node, names[address])].update(quality)
        with self._lock:
            return {
                link: _as_wanted(msgspec.convert(quality, Shape), self._wanted.get(link))
                for link, quality in sorted(found.items())
                if quality
            }

    def reset(self, links: Iterable[Link]) -> None:
        """Answer each packet of connections along these links with a reset, until undone.

        New connections are refused so, too. Resets themselves pass: both ends hear of it.
        """
        self._change_resets(self._resets.update, links)

    def unreset(self, links: Iterable[Link]) -> None:
        """Undo reset."""
        self._change_resets(self._resets.difference_update, links)

    def _change_resets(self, change: Callable[[list[Link]], None], links: Iterable[Link]) -> None:
        chosen = self._deployed(links)
        with self._lock:
            change(chosen)
            sources = {
                node: {
                    self._tools.address(link.source)
                    for link in self._resets
                    if link.destination == node
                }
                for node in sorted({link.destination for link in chosen})
            }
            on_all(sources.items(), lambda item: self._tools.answer_with_resets(*item))

    def reset_links(self) -> frozenset[Link]:
        """Return the links whose connections are reset now, as the kernel tells it."""
        nodes = list(self._tools.nodes())
        names = {self._tools.address(node): node for node in nodes}
        shown = on_all(nodes, self._tools.answered_with_resets)
        return frozenset(
            Link(names[address], node)
            for node, addresses in zip(nodes, shown, strict=True)
            for address in addresses
        )

    def forget(self) -> None:
        """All was undone by the runtime itself."""
        with self._lock:
            self._wanted.clear()
            self._resets.clear()

    def measure(self, link: Link, probes: int, timeout_s: float) -> LinkQuality:
        """Send datagrams along the link, small and large in turn, and see what arrives.

        They compete with the nodes' own traffic. The time bounds sending and answers together.
        """
        self._deployed([link])
        return quality_of(*self._tools.observe(link, probes, timeout_s))

    def _deployed(self, links: Iterable[Link]) -> list[Link]:
        chosen = sorted(set(links))
        for node in {node for link in chosen for node in (link.source, link.destination)}:
            self._tools.address(node)
        return chosen

    def _establish(self, changed: Iterable[Link]) -> None:
        plans = {
            node: json.dumps(self._plan(node))
            for node in sorted(
                {node for link in changed for node in (link.source, link.destination)}
            )
        }
        on_all(plans.items(), lambda item: self._tools.run(item[0], ["links.py", "set", item[1]]))

    def _plan(self, node: NodeName) -> dict[str, Any]:
        """All that one node's tools have to do; see ``docker/pod/links.py``."""
        arriving: dict[str, dict[str, float]] = {}
        leaving: dict[str, dict[str, float]] = {}
        for link, shape in self._wanted.items():
            here, there = parts(
                shape, leaves_late=self._means is not None and self._means.leaves_late(shape)
            )
            if link.destination == node and here:
                arriving[self._tools.address(link.source)] = here
            if link.source == node and there:
                leaving[self._tools.address(link.destination)] = there
        whole = any(node in (link.source, link.destination) for link in self._wanted)
        return {"arriving": arriving, "leaving": leaving, "whole": whole}


def _as_wanted(found: Shape, wanted: Shape | None) -> Shape:
    """The shape that was asked for, where what the kernel has is the same but for its rounding."""
    if wanted is None:
        return found
    pairs = zip(msgspec.structs.astuple(found), msgspec.structs.astuple(wanted), strict=True)
    is_same = all(
        math.isclose(here or 0, there or 0, rel_tol=_ROUNDING, abs_tol=_ROUNDING / 1000)
        for here, there in pairs
    )
    return wanted if is_same else found


def parts(shape: Shape, *, leaves_late: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Split the shape in its part where packets arrive, and that where they leave."""
    fields = {name: value for name, value in msgspec.structs.asdict(shape).items() if value}
    at_departure = {"rate_kbit", *(_ALONG if leaves_late else ())}
    there = {name: value for name, value in fields.items() if name in at_departure}
    return {name: value for name, value in fields.items() if name not in at_departure}, there
