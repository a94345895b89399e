"""Looks from outside whether what a fault kind expects is so.

Links are probed by new connections and datagrams between the nodes' own networks, silence by the
clients' traffic and questions to the node, traffic between nodes by their state events. A state
seen once is not probed again while the rest is waited for, since such probes take their whole
timeout. A state nobody here can look at is said, and never counts as seen.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from splitbrain.contracts.arms import LinkQuality, MemberArm, Shape
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import KILLED_CODE, Runtime
from splitbrain.contracts.system import PEER_PORT
from splitbrain.contracts.words import counted
from splitbrain.harness.console.stop import NotYetError, Stop
from splitbrain.harness.run.acting import Changed, Record, Wiped, canaries_tell, file_reads
from splitbrain.harness.run.run_clock import NANOSECONDS, RunClock
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.harness.run.traffic import Traffic
from splitbrain.nemesis.effects import Evidence
from splitbrain.nemesis.expectations import (
    CanariesTell,
    ClockIs,
    ClockOff,
    DataGone,
    DiskIs,
    Expectation,
    FileReads,
    LinkBehaves,
    LinkDelivers,
    LinkIs,
    LinkShaped,
    MemberIs,
    MemoryFree,
    MemoryPressed,
    NodeAnswers,
    NodeIs,
    NodeIsSilent,
    NodeTookBack,
    PeersFlow,
    PeersStall,
    ProcessorShare,
)
from splitbrain.nemesis.families.bad_links import PROBES

#: How long one probe waits for an answer.
PROBE_TIMEOUT_S = 0.5
#: How long a node may take to answer a question, and when it counts as not answering.
_ANSWER_TIMEOUT_S = 1.0
_NO_ANSWER_S = 0.3
#: How long many probes along one link may take together.
_MEASURE_TIMEOUT_S = 2.0
_DISK_TIMEOUT_S = 1.0
_FEW_PROBES = 4
_PROBES_AT_ONCE = 8
_INTERVAL_S = 0.02
#: A node counts as silent when it has acknowledged nothing for this long after the fault.
_SILENCE_NS = NANOSECONDS // 4
#: Of its memory a pressed node uses this much: the kernel looks for what it can take back.
_PRESSED = 0.95
_MIB = 1 << 20
#: The kernel counts processor time in slices.
_SHARE_SLACK = 0.1


class Baseline(msgspec.Struct, frozen=True):
    """How things stood before a fault."""

    #: The highest epoch that any node was in.
    epoch: int = 0
    #: Nodes that answered a question.
    answered: frozenset[NodeName] = frozenset()


class _Look(msgspec.Struct, frozen=True):
    #: Whether it is so; None: nobody can look.
    is_so: bool | None
    #: Figures that were seen.
    words: str = ""


class Observer:
    """Checks expectations against the runtime, the nodes and the clients' traffic."""

    def __init__(
        self,
        runtime: Runtime,
        traffic: Traffic,
        clock: RunClock,
        *,
        answers: Callable[[NodeName, float], bool] | None = None,
        watch: StateWatch | None = None,
        members: MemberArm | None = None,
    ) -> None:
        """``answers`` asks the node's own program something: whether it answered within the time.

        ``watch`` is None where the nodes tell nothing of themselves, ``members`` where nobody tells
        of members.
        """
        self._members = members
        self._runtime, self._traffic, self._clock = runtime, traffic, clock
        self._answers, self._watch = answers, watch

    def before(self, expectations: Sequence[Expectation]) -> Baseline:
        """How things stand that these expectations are to be compared with."""
        nodes = list(
            dict.fromkeys(item.node for item in expectations if isinstance(item, NodeAnswers))
        )
        answered: list[NodeName] = []
        ask = self._answers
        if nodes and ask is not None:

            def answers(node: NodeName) -> bool:
                return ask(node, _NO_ANSWER_S)

            with ThreadPoolExecutor(_PROBES_AT_ONCE, thread_name_prefix="probe") as pool:
                replies = list(pool.map(answers, nodes))
            answered = [node for node, did in zip(nodes, replies, strict=True) if did]
        epoch = 0 if self._watch is None else self._watch.epoch()
        return Baseline(epoch, frozenset(answered))

    def await_all(
        self,
        expectations: Sequence[Expectation],
        since: int,
        patience_s: float,
        stop: Stop,
        *,
        baseline: Baseline | None = None,
        records: Sequence[Record] = (),
    ) -> Evidence:
        """Wait until each expectation was seen, at most ``patience_s`` or until ``stop``.

        ``since`` is when the runtime was done injecting or healing, ns since the run's start; the
        baseline is of before the fault, and the records are of its acts.
        """
        before = baseline or Baseline()
        missing = list(expectations)
        dark: list[Expectation] = []
        figures: list[str] = []
        count = 0

        def look() -> None:
            nonlocal count
            count += 1
            looks = self._look_at(missing, since, before, records)
            dark.extend(item for item, seen in looks if seen.is_so is None)
            figures.extend(seen.words for _, seen in looks if seen.is_so and seen.words)
            missing[:] = [item for item, seen in looks if seen.is_so is False]
            if missing:
                raise NotYetError(missing[0].sentence())

        try:
            try:
                stop.retrying(patience_s, _INTERVAL_S, NotYetError)(look)
            except NotYetError:
                # On a busy machine one look at all may take longer than all the patience there is.
                if count > 1 or stop.is_set():
                    raise
                look()
        except NotYetError:
            return Evidence(False, f"not seen: {_first_three(missing)}")
        unlit = f"; this runtime cannot show whether {_first_three(dark)}" if dark else ""
        if dark and len(dark) == len(expectations):
            return Evidence(False, unlit.removeprefix("; "), is_dark=True)
        took_ms = (self._clock.now() - since) // 1_000_000
        seen = [item for item in expectations if item not in dark]
        shown = f" ({'; '.join(figures[:3])})" if figures else ""
        return Evidence(True, f"{_summary(seen)} after {took_ms} ms{shown}{unlit}")

    def await_acknowledgement(self, since: int, patience_s: float, stop: Stop) -> Evidence:
        """Wait until an operation that was invoked after ``since`` is acknowledged."""

        def look() -> None:
            if not self._traffic.acknowledged_since(since):
                raise NotYetError("no operation acknowledged")

        try:
            stop.retrying(patience_s, _INTERVAL_S, NotYetError)(look)
        except NotYetError as error:
            return Evidence(False, f"{error} within {patience_s:g} s")
        took_ms = (self._clock.now() - since) // 1_000_000
        return Evidence(True, f"an operation acknowledged after {took_ms} ms")

    def _look_at(
        self,
        expectations: Sequence[Expectation],
        since: int,
        before: Baseline,
        records: Sequence[Record],
    ) -> list[tuple[Expectation, _Look]]:
        shaped: dict[Link, Shape] = {}
        if any(isinstance(item, LinkShaped) for item in expectations):
            shaped = self._runtime.links.shaped()

        def look(item: Expectation) -> _Look:
            try:
                return self._at(item, since, before, records, shaped)
            except CapabilityError:
                return _Look(None)

        with ThreadPoolExecutor(_PROBES_AT_ONCE, thread_name_prefix="probe") as pool:
            return list(zip(expectations, pool.map(look, expectations), strict=True))

    def _at(
        self,
        item: Expectation,
        since: int,
        before: Baseline,
        records: Sequence[Record],
        shaped: dict[Link, Shape],
    ) -> _Look:
        match item:
            case LinkIs() | LinkDelivers() | LinkBehaves():
                look = self._at_link(item)
            case LinkShaped(link, shape):
                look = _Look(shaped.get(link) == shape)
            case PeersStall() | PeersFlow():
                look = self._at_peers(item, since, before)
            case NodeIs() | NodeIsSilent() | NodeAnswers() | NodeTookBack():
                look = self._at_node(item, since, before)
            case ProcessorShare() | MemoryPressed() | MemoryFree():
                look = self._at_limits(item)
            case DiskIs() | CanariesTell() | FileReads() | DataGone():
                look = self._at_disk(item, records)
            case ClockIs() | ClockOff():
                look = self._at_clock(item)
            case MemberIs(node, there):
                members = self._members
                look = _Look(None if members is None else members.is_member(node) == there)
        return look

    def _at_disk(
        self, item: DiskIs | CanariesTell | FileReads | DataGone, records: Sequence[Record]
    ) -> _Look:
        match item:
            case DiskIs(node, states):
                return _Look(self._runtime.disks.state(node, _DISK_TIMEOUT_S) in states)
            case CanariesTell(node):
                return _Look(canaries_tell(node, records))
            case FileReads(node):
                changed = [seen for seen in records if isinstance(seen, Changed)]
                of_node = [seen for seen in changed if seen.node == node]
                return _Look(bool(of_node) and file_reads(self._runtime, of_node[-1]))
            case DataGone(node):
                wiped = [seen.node for seen in records if isinstance(seen, Wiped)]
                return _Look(node in wiped)

    def _at_link(self, item: LinkIs | LinkDelivers | LinkBehaves) -> _Look:
        match item:
            case LinkIs(link, is_open):
                return _Look(self._runtime.reachable(link, PEER_PORT, PROBE_TIMEOUT_S) == is_open)
            case LinkDelivers(link, delivers):
                quality = self._runtime.links.measure(link, _FEW_PROBES, PROBE_TIMEOUT_S)
                return _Look((quality.arrived > 0) == delivers)
            case LinkBehaves(link):
                quality = self._runtime.links.measure(link, PROBES, _MEASURE_TIMEOUT_S)
                return _Look(item.holds(quality), _in_words(link, quality))

    def _at_peers(self, item: PeersStall | PeersFlow, since: int, before: Baseline) -> _Look:
        """By the growth of the node's log; nobody can look where it never told of any."""
        watch = self._watch
        if watch is None or not watch.tells_of(item.node):
            return _Look(None)
        if isinstance(item, PeersFlow):
            return _Look(watch.grown_at(item.node) > since)
        # A new leader's records come by other links.
        quiet_since = max(since, watch.grown_at(item.node, before.epoch))
        return _Look(self._clock.now() - quiet_since >= _SILENCE_NS)

    def _at_node(
        self, item: NodeIs | NodeIsSilent | NodeAnswers | NodeTookBack, since: int, before: Baseline
    ) -> _Look:
        match item:
            case NodeIs(node, status):
                return _Look(self._runtime.status(node) == status)
            case NodeIsSilent(node):
                silent = not self._traffic.acknowledged_since(since, node)
                return _Look(silent and self._clock.now() - since >= _SILENCE_NS)
            case NodeAnswers(node, answers):
                if self._answers is None or node not in before.answered:
                    return _Look(None)
                patience_s = _ANSWER_TIMEOUT_S if answers else _NO_ANSWER_S
                return _Look(self._answers(node, patience_s) == answers)
            case NodeTookBack(node):
                return self._at_reader(node)

    def _at_reader(self, node: NodeName) -> _Look:
        """Return a node that was started on a changed file goes on with it, or refuses it."""
        status = self._runtime.status(node)
        if status == "exited":
            code = self._runtime.exit_code(node)
            # One that was killed and never started has read nothing.
            return _Look(code != KILLED_CODE, f"{node} refused, exit code {code}")
        if status != "running":
            return _Look(False)
        if self._answers is None:
            return _Look(True, f"{node} runs")
        return _Look(self._answers(node, _ANSWER_TIMEOUT_S), f"{node} goes on with it")

    def _at_limits(self, item: ProcessorShare | MemoryPressed | MemoryFree) -> _Look:
        match item:
            case ProcessorShare(node, None):
                return _Look(self._runtime.processes.throttled(node) is None)
            case ProcessorShare(node, share):
                there = self._runtime.processes.throttled(node)
                return _Look(there is not None and there <= (share or 0.0) * (1 + _SHARE_SLACK))
            case MemoryFree(node):
                return _Look(self._runtime.processes.memory(node).limit_mib is None)
            case MemoryPressed(node, may_be_killed):
                return self._at_memory(node, may_be_killed=may_be_killed)

    def _at_memory(self, node: NodeName, *, may_be_killed: bool) -> _Look:
        memory = self._runtime.processes.memory(node)
        if memory.limit_mib is None:
            return _Look(False)
        if memory.was_ended:
            return _Look(True, f"the kernel has ended {node} for want of memory")
        sample = self._runtime.sample(node)
        if sample is None:
            is_over = may_be_killed and self._runtime.status(node) == "exited"
            return _Look(is_over, f"{node} was killed, since it used more than it may have")
        used_mib = sample.memory_bytes / _MIB
        words = f"{node} uses {used_mib:.1f} of {memory.limit_mib:.1f} MiB"
        return _Look(used_mib >= _PRESSED * memory.limit_mib, words)

    def _at_clock(self, item: ClockIs | ClockOff) -> _Look:
        ahead_ms = self._runtime.clocks.offset_ms(item.node)
        words = f"{item.node} {ahead_ms} ms ahead"
        if isinstance(item, ClockIs):
            return _Look(item.ahead_ms_min <= ahead_ms <= item.ahead_ms_max, words)
        return _Look(abs(ahead_ms) >= item.off_ms_min, words)


def _in_words(link: Link, quality: LinkQuality) -> str:
    late = "" if quality.median_ms is None else f", median {quality.median_ms:.0f} ms"
    return (
        f"{link.source} to {link.destination}: {quality.arrived} of {quality.sent} arrived, "
        f"{quality.doubled} twice, {quality.overtaking} out of order{late}"
    )


def _first_three(items: Sequence[Expectation]) -> str:
    more = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return "; ".join(item.sentence() for item in items[:3]) + more


def _summary(expectations: Sequence[Expectation]) -> str:
    """All expectations in one clause: links counted, nodes named."""
    links = [item.open for item in expectations if isinstance(item, LinkIs)]
    ways = [item.delivers for item in expectations if isinstance(item, LinkDelivers)]
    words = [
        f"{counted(found.count(is_open), noun)} {state}"
        for found, noun, closed in ((links, "link", "cut"), (ways, "direction", "closed"))
        for is_open, state in ((False, closed), (True, "open"))
        if is_open in found
    ]
    behaving = sum(isinstance(item, LinkBehaves) for item in expectations)
    shaped = [item.shape is not None for item in expectations if isinstance(item, LinkShaped)]
    if behaving:
        words.append(f"{counted(behaving, 'link')} measured as expected")
    elif shaped:
        state = "shaped as asked" if any(shaped) else "as they were"
        words.append(f"{counted(len(shaped), 'link')} {state}")
    in_numbers = (LinkIs, LinkDelivers, LinkBehaves, LinkShaped)
    words += [item.sentence() for item in expectations if not isinstance(item, in_numbers)]
    return ", ".join(words)
