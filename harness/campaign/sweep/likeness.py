"""Simulated worlds near the schedule of a run in containers.

From the run's folder come its options, the faults that took effect with their real times, the role
of each node that was hit, and the turning point before each. A seed draws a world: the same
faults on the same roles, their times shifted a little, or pinned to the turning point instead; same
workload, same planted bugs, a quiet world otherwise, and no invariants, so that only findings that
clients can see count. Must never add a fault, a bug or a client. Source: issue 6, item 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import US_PER_MS, Awaited, Fault, FaultEvent
from splitbrain.contracts.runtime import SIMULATED_LACKS
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.campaign.sweep.planned import record_of_plan
from splitbrain.harness.folder.scenario_rules import CLIENTS_MAX
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.history.plan import Plan
from splitbrain.nemesis.awaiting import HappeningDetector
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, LAGGARD, LAST_LEADER, LEADER
from splitbrain.simulation.world.streams import Streams

_NS_PER_US: Final = 1_000
#: Happenings that mark a change of the cluster; between them no moment differs from another.
TURNING_POINTS: Final = ("leads", "changes-role", "truncates", "starts")
#: A turning point further back has nothing to do with the fault.
_FAR_US: Final = 5_000_000
#: How far times are shifted, either way; a seed has one of these.
_SHIFTS_US: Final = (0, 50_000, 300_000, 1_000_000)
#: Range of a fault's duration, per cent of the recorded one.
_LASTING_PERCENT: Final = (75, 125)
#: Load after the last fault; effects of a fault show soon after it.
_TAIL_US: Final = 6_000_000
_DRAW_MAX: Final = (1 << 32) - 1
_STREAM: Final = "like"


class Turn(msgspec.Struct, frozen=True):
    """The turning point before a fault."""

    on: str
    #: From it to the fault.
    delay_us: int


class EffectiveFault(msgspec.Struct, frozen=True):
    """A fault of the run that took effect."""

    scheduled: Fault
    #: By role: a simulated world's nodes have other names.
    target: str
    #: Since the start of the load, as it happened.
    at_us: int
    duration_us: int
    after: Turn | None = None


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a run that worlds near it share; pickles."""

    run: str
    plan: Plan
    faults: tuple[EffectiveFault, ...]
    #: Kinds that took effect and that no simulated world can do, each with the reason.
    left_out: dict[str, str] = {}


def likeness_of(record: RunRecord, happenings: Sequence[str]) -> Likeness:
    """Return the parts of a run that worlds near it share.

    ``happenings`` are those that faults may wait for in the system's simulated worlds.

    Raises:
        UsageError: the run has no plan, or its load never began.
    """
    root = record.folder.root
    plan = record.plan
    if plan is None:
        raise UsageError(f"{root} has no plan that can be read", "Name a run made by this version")
    began = next((phase.time for phase in record.phases if phase.phase == "load-started"), None)
    if began is None:
        problem = f"no client ever worked in {root}, so no simulated world can be like it"
        raise UsageError(problem, "Name a run that came to its load")
    if (clients := plan.experiment.concurrency) > CLIENTS_MAX:
        most = f"one thread does the work of at most {CLIENTS_MAX:,}"
        raise UsageError(f"{root} had {clients:,} clients, and {most}", "Name a run with fewer")
    turns = tuple(_turns(record.state_events, happenings))
    scheduled = {fault.index: fault for fault in record.scheduled}
    effective: list[EffectiveFault] = []
    left_out: dict[str, str] = {}
    for event, end in _windows(record.faults):
        fault = scheduled.get(event.index)
        if fault is None:
            continue
        lacking = fault_kind(fault.kind).needs & SIMULATED_LACKS.keys()
        if lacking:
            left_out[fault.kind] = " and ".join(SIMULATED_LACKS[need] for need in sorted(lacking))
            continue
        end_time = event.time + fault.duration_us * _NS_PER_US if end is None else end.time
        at_us = max(0, event.time - began) // _NS_PER_US
        duration_us = max(1, end_time - event.time) // _NS_PER_US
        turn = _turn_before(turns, event.time)
        effective.append(EffectiveFault(fault, _role(fault, event), at_us, duration_us, turn))
    name = f"{root.parent.name}/{root.name}"
    return Likeness(run=name, plan=plan, faults=tuple(effective), left_out=left_out)


def like_scenario(likeness: Likeness, seed: int) -> Scenario:
    """Return a seed's scenario: the same plan, with the recorded times as the seed shifts them.

    A function of the arguments alone.
    """
    streams = Streams(seed, _STREAM)
    is_pinned = streams.chance("pin", 0.5)
    shift_us = streams.pick("shift", _SHIFTS_US)
    is_redrawn = streams.chance("draws", 0.5)
    faults: list[Fault] = []
    for effective in likeness.faults:
        shifted_us = streams.between("shift", -shift_us, shift_us)
        percent = streams.between("lasting", *_LASTING_PERCENT) if shift_us else 100
        draw = streams.between("draws", 0, _DRAW_MAX)
        faults.append(
            msgspec.structs.replace(
                _at_its_moment(effective, shifted_us, is_pinned=is_pinned),
                target=effective.target,
                duration_us=max(1, effective.duration_us * percent // 100),
                draw=draw if is_redrawn else effective.scheduled.draw,
            )
        )
    plan = record_of_plan(likeness.plan, faults)
    ends_us = [fault.at_us + fault.duration_us + _TAIL_US for fault in likeness.faults]
    load_us = min(plan.load_us, max(ends_us, default=plan.load_us)) // US_PER_MS * US_PER_MS
    return msgspec.structs.replace(plan, seed=seed, load_us=load_us, unwatched=True)


def within_load(plan: Scenario) -> Scenario:
    """Cut everything after the end of the load: a world may have that, a plan file must not."""
    faults: list[Fault] = []
    for fault in plan.faults:
        if (left_us := plan.load_us - fault.at_us) > 0:
            duration_us = min(fault.duration_us, left_us)
            faults.append(msgspec.structs.replace(fault, duration_us=duration_us))
    return msgspec.structs.replace(plan, faults=tuple(faults))


def _at_its_moment(effective: EffectiveFault, shifted_us: int, *, is_pinned: bool) -> Fault:
    """Return the fault at its plan's happening, at the turning point before it, or at its time."""
    fault, turn = effective.scheduled, effective.after
    if fault.waits_for_node:
        return fault
    fault = msgspec.structs.replace(fault, when=None)
    if turn is None or not is_pinned:
        return msgspec.structs.replace(fault, at_us=max(0, effective.at_us + shifted_us))
    turned_us = effective.at_us - turn.delay_us
    from_us = max(0, turned_us - _FAR_US // 2)
    when = Awaited(
        turn.on,
        delay_us=max(0, turn.delay_us + shifted_us),
        timeout_us=max(0, turned_us) + _FAR_US - from_us,
    )
    return msgspec.structs.replace(fault, at_us=from_us, when=when)


def _windows(events: Sequence[FaultEvent]) -> Iterator[tuple[FaultEvent, FaultEvent | None]]:
    """Yield each fault that took effect: the requests to inject it, and to heal it."""
    heals: dict[int, FaultEvent] = {}
    refused = {event.index for event in events if event.phase == "not-applicable"}
    for event in events:
        if event.phase == "healing":
            heals.setdefault(event.index, event)
    for event in sorted(events, key=lambda event: event.time):
        if event.phase == "invoked" and event.index not in refused:
            yield event, heals.get(event.index)


def _role(fault: Fault, event: FaultEvent) -> str:
    """Return the target by role, for a fault aimed by name or by lot."""
    symbols = (LEADER, FOLLOWER, LAST_LEADER, LAGGARD, ALL, HALVES)
    is_role = fault.target in symbols or fault.waits_for_node
    if is_role or event.leader is None or len(event.nodes) != 1:
        return fault.target
    role = LEADER if event.leader in event.nodes else FOLLOWER
    return fault.target if fault_kind(fault.kind).refuses(role) else role


def _turns(
    state_events: Mapping[str, Sequence[StateEvent]], happenings: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Yield the nodes' turning points in order: ns since the run's start, and the happening."""
    detector = HappeningDetector()
    turning_points = set(TURNING_POINTS).intersection(happenings)
    stamped = [
        event for events in state_events.values() for event in events if event.time is not None
    ]
    for event in sorted(stamped, key=lambda event: (event.time or 0, event.node, event.sequence)):
        happening = detector.detect(event)
        if happening is not None and happening.name in turning_points:
            yield event.time or 0, happening.name


def _turn_before(turns: Sequence[tuple[int, str]], time: int) -> Turn | None:
    before = [turn for turn in turns if turn[0] <= time]
    if not before:
        return None
    at, name = before[-1]
    delay_us = (time - at) // _NS_PER_US
    return None if delay_us > _FAR_US else Turn(name, delay_us)
