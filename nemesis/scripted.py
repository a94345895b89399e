"""Plans with a name: short, aimed, without chance. They gate commits and show planted bugs.

The classics are here as code: the literature's own failures, in the order in which it tells them.
On real runtimes they aim at the same turns of events and cannot hit the same microseconds; named
plans know no system.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import msgspec

from splitbrain.contracts.fault import Milliseconds
from splitbrain.nemesis.plan_file import FileAwaited, FileFault, PlanFile

#: Before the first scripted fault: clients must have written something that can be lost.
_START_MS = 3000
#: After the last one: recovery must be seen.
_END_MS = 4000
#: Every named plan has a fault in an hour.
_LEAST_MAX_MS = 3_600_000


def isolate_leader(time_limit_ms: Milliseconds) -> PlanFile:
    """One long isolation of the leader, while clients pinned to it go on."""
    duration_ms = max(1000, time_limit_ms - _START_MS - _END_MS)
    return PlanFile((FileFault("partition", "leader", _START_MS, duration_ms),))


def isolate_leader_8s(_time_limit_ms: Milliseconds) -> PlanFile:
    """One isolation of the leader for 8 s, whatever the time limit; it needs 15 s at least."""
    return PlanFile((FileFault("partition", "leader", _START_MS, 8000),))


def isolate_leader_again(time_limit_ms: Milliseconds) -> PlanFile:
    """Isolations of whoever leads, 5 s each, with 3 s of calm between them."""
    return _repeated("partition", time_limit_ms, fault_ms=5000, calm_ms=3000)


def leader_kill(time_limit_ms: Milliseconds) -> PlanFile:
    """Kill whoever leads, restart it after 2 s, and again after 4 s of calm."""
    return _repeated("kill", time_limit_ms, fault_ms=2000, calm_ms=4000)


def leader_pause(time_limit_ms: Milliseconds) -> PlanFile:
    """Freeze whoever leads for 3 s, and again after 4 s of calm."""
    return _repeated("pause", time_limit_ms, fault_ms=3000, calm_ms=4000)


def raft_figure_8(_time_limit_ms: Milliseconds) -> PlanFile:
    """A leader comes back with records of an old epoch, and must not count them as committed.

    Five nodes as in the paper: the first leader keeps records that one follower alone has, dies,
    and comes back; the second leader is cut off with records of its own; the first one, leading
    again, is killed as soon as it has committed, and the second one returns.
    Source: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm", figure 8.
    """
    return PlanFile(
        faults=(
            FileFault("partition", "leader", _START_MS, 4000, options={"beside": 1}),
            FileFault("kill", "last-leader", _START_MS + 2000, 2500),
            FileFault("partition", "leader", _START_MS + 4100, 5000),
            FileFault(
                "kill", "there", _START_MS + 5000, 2000,
                when=FileAwaited("commits", "leader", timeout_ms=8000),
            ),
        ),
        overlap=3,
    )  # fmt: skip


def stale_leader(time_limit_ms: Milliseconds) -> PlanFile:
    """A frozen leader wakes up cut off, and answers the clients that are pinned to it."""
    return _again(
        (
            FileFault("partition", "leader", 1500, 3500),
            FileFault("pause", "leader", 0, 3000),
        ),
        time_limit_ms,
        round_ms=9000,
        overlap=2,
    )


def partial_partition(time_limit_ms: Milliseconds) -> PlanFile:
    """The leader and one follower lose each other, and a third node reaches both.

    The shape of Cloudflare's outage of 2020-11-02, where a switch failed in part and leaders were
    elected over and over.
    """
    return _again((FileFault("partial", "leader", 0, 6000),), time_limit_ms, round_ms=10_000)


def power_loss_of_all(time_limit_ms: Milliseconds) -> PlanFile:
    """The power of the whole cluster goes at one moment: what was not flushed anywhere is gone."""
    return _again((FileFault("power", "all", 0, 2000),), time_limit_ms, round_ms=8000)


def rolling_restart_with_a_laggard(time_limit_ms: Milliseconds) -> PlanFile:
    """All nodes are restarted one after the other while a slow voter is still behind."""
    return _again(
        (
            FileFault("pause", "follower", 0, 4000),
            FileFault("rolling-restart", "all", 4100, 9000),
        ),
        time_limit_ms,
        round_ms=16_000,
        overlap=2,
    )


def leader_cut_then_killed(time_limit_ms: Milliseconds) -> PlanFile:
    """The leader is cut off, killed while it is, and comes back with what it held alone."""
    return _again((FileFault("cut-then-kill", "leader", 0, 4000),), time_limit_ms, round_ms=8000)


SCRIPTED: Final[dict[str, Callable[[Milliseconds], PlanFile]]] = {
    "isolate-leader": isolate_leader,
    "isolate-leader-8s": isolate_leader_8s,
    "isolate-leader-again": isolate_leader_again,
    "leader-kill": leader_kill,
    "leader-pause": leader_pause,
    "raft-figure-8": raft_figure_8,
    "stale-leader": stale_leader,
    "partial-partition": partial_partition,
    "power-loss-of-all": power_loss_of_all,
    "rolling-restart-with-a-laggard": rolling_restart_with_a_laggard,
    "leader-cut-then-killed": leader_cut_then_killed,
}


#: Defects that each brings out, and why they matter; to that its docstring says what it does.
REVEALS: Final[dict[str, str]] = {
    "isolate-leader": "The old leader's clients still reach it while the others elect a new one: "
    "the surest way to a stale read or a lost write, if there is one.",
    "isolate-leader-8s": "As isolate-leader, for systems that take seconds to elect another one.",
    "isolate-leader-again": "Each round deposes another leader, so that records of several epochs "
    "meet when the nodes come together.",
    "leader-kill": "Every kill is a failover: acknowledged writes must survive it, and the killed "
    "leader must come back as a follower.",
    "leader-pause": "A leader that slept wakes up believing that it leads, and must not act on it.",
    "raft-figure-8": "A record of an old epoch can be on a majority and still be overwritten. A "
    "leader that counts its copies loses an acknowledged write.",
    "stale-leader": "Nobody has told the leader that it is deposed: only a check with a majority "
    "keeps it from answering reads from its own memory.",
    "partial-partition": "Leader and follower disagree on who lives, and the third node hears "
    "both: elections may never come to rest.",
    "power-loss-of-all": "No node can learn from another one what it lost. Only what was synced "
    "before it was acknowledged is left.",
    "rolling-restart-with-a-laggard": "With one voter behind, the next restart may take the last "
    "majority that has a record.",
    "leader-cut-then-killed": "It comes back from its disk alone with records that were never "
    "committed, and must give them up.",
}


def least_time_limit_ms(name: str) -> Milliseconds:
    """The shortest time limit into which a fault of the named plan fits."""
    plan = SCRIPTED[name]
    return bisect_left(range(_LEAST_MAX_MS), True, key=lambda limit: bool(plan(limit).faults))


def _repeated(
    kind: str, time_limit_ms: Milliseconds, *, fault_ms: Milliseconds, calm_ms: Milliseconds
) -> PlanFile:
    fault = FileFault(kind, "leader", 0, fault_ms)
    return _again((fault,), time_limit_ms, round_ms=fault_ms + calm_ms)


def _again(
    faults: tuple[FileFault, ...],
    time_limit_ms: Milliseconds,
    *,
    round_ms: Milliseconds,
    overlap: int = 1,
) -> PlanFile:
    """The same faults round after round, as often as they fit with calm at the end."""
    lasts_ms = math.ceil(max((fault.at_ms or 0) + fault.duration_ms for fault in faults))
    starts = range(_START_MS, time_limit_ms - lasts_ms - _END_MS + 1, round_ms)
    return PlanFile(
        faults=tuple(_later(fault, start_ms) for start_ms in starts for fault in faults),
        overlap=overlap,
    )


def _later(fault: FileFault, start_ms: Milliseconds) -> FileFault:
    return msgspec.structs.replace(fault, at_ms=start_ms + (fault.at_ms or 0))
