"""From what the user asks for and a seed to a schedule of faults, pure.

``partition,kill:leader`` names fault kinds, each with or without a target. The schedule is a
function of these, the nodes, the time limit, the pace and the random source alone: same seed, same
schedule. Unless the pace says so windows never overlap (so that every effect has one cause), calm
lies between them, and the end is calm, so that recovery is seen too.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from splitbrain.contracts.errors import CapabilityError, UsageError
from splitbrain.contracts.fault import RECOVERED, US_PER_MS, Awaited, Fault, Milliseconds
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.random_source import RandomSource
from splitbrain.contracts.runtime import EXACT_CAPABILITIES, SIMULATED, Capability
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import canonical, check_target

NONE = "none"
_DRAW_LIMIT = 1 << 32
_OVERLAP_MAX = 8
#: Of the targets that the user leaves open, this share is aimed at the leader, besides the first
#: fault of each kind, which always is: a leader's failure is where consensus goes wrong.
_LEADER_SHARE = 0.5


class WantedFault(msgspec.Struct, frozen=True):
    """One item of the user's list."""

    kind: str
    #: Canonical symbolic target, None where the plan may choose.
    target: str | None


class Quiet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the load in which no fault is in force."""

    from_ms: Milliseconds
    to_ms: Milliseconds


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How long faults and the calm between them last, in milliseconds, and what is drawn how often.

    The interval, from one fault's beginning to the next one's, is calm and fault together.
    """

    fault_min_ms: Milliseconds = 2000
    fault_max_ms: Milliseconds = 6000
    #: Length of every other fault at least, where it fits: for systems that notice late.
    long_ms: Milliseconds = 0
    calm_min_ms: Milliseconds = 2000
    calm_max_ms: Milliseconds = 5000
    #: The recovery window: no fault is in force in this last part of the load.
    calm_end_ms: Milliseconds = 4000
    #: No fault begins before, calm of its own apart.
    warm_up_ms: Milliseconds = 0
    #: Faults that may be in force at once.
    overlap: int = 1
    #: Kind to how often it is drawn where the others are drawn once.
    weights: dict[str, int] = {}
    #: In order of time.
    quiet: tuple[Quiet, ...] = ()
    #: Whether a fault waits until all nodes take part again; those too late for the load are left.
    recovered: bool = False

    @property
    def interval_min_ms(self) -> Milliseconds:
        """The shortest time from one fault's beginning to the next one's."""
        return self.calm_min_ms + self.fault_min_ms


def check_pace(
    pace: Pace, kinds: Sequence[str], timeout_ms: Milliseconds, failover_ms: Milliseconds
) -> None:
    """Refuse a pace that cannot be, or that is too fast for effects to be told apart.

    Raises:
        UsageError: says which number.
    """
    for low, high in (("fault_min_ms", "fault_max_ms"), ("calm_min_ms", "calm_max_ms")):
        least, most = getattr(pace, low), getattr(pace, high)
        if not 1 <= least <= most:
            raise UsageError(
                f"the pace has {low} = {least} and {high} = {most}",
                f"Choose a {low} of at least 1 and a {high} of at least that",
            )
    if pace.long_ms > pace.fault_max_ms:
        raise UsageError(
            f"the pace has long_ms = {pace.long_ms} and fault_max_ms = {pace.fault_max_ms}",
            "Choose a fault_max_ms of at least that, or leave long_ms out",
        )
    for name in ("calm_end_ms", "warm_up_ms", "long_ms"):
        if getattr(pace, name) < 0:
            raise UsageError(f"the pace has {name} = {getattr(pace, name)}", "Choose at least 0")
    if not 1 <= pace.overlap <= _OVERLAP_MAX:
        raise UsageError(
            f"the pace has overlap = {pace.overlap}", f"Choose a number from 1 to {_OVERLAP_MAX}"
        )
    if pace.recovered and pace.overlap > 1:
        raise UsageError(
            f"the pace has overlap = {pace.overlap}, and faults that wait for {RECOVERED!r}",
            "Leave overlap out: such a fault begins when no other is in force",
        )
    least_ms = timeout_ms + failover_ms
    if pace.interval_min_ms < least_ms:
        raise UsageError(
            f"an interval of {pace.interval_min_ms} ms between faults is shorter than an "
            f"operation's timeout and a failover together, {least_ms} ms",
            "Choose a longer calm_min_ms or fault_min_ms, or a shorter --operation-timeout",
        )
    for kind, weight in pace.weights.items():
        if kind not in kinds:
            raise UsageError(
                f"the pace weighs {kind!r}, which the plan does not draw",
                or_nearest(kind, kinds, "plan's faults"),
            )
        if weight < 1:
            raise UsageError(
                f"the pace has the weight {weight} for {kind!r}",
                "Choose at least 1, or leave the fault out",
            )
    _check_quiet(pace.quiet)


def _check_quiet(phases: Sequence[Quiet]) -> None:
    end_ms = 0
    for phase in phases:
        if not end_ms <= phase.from_ms < phase.to_ms:
            raise UsageError(
                f"the quiet phase from {phase.from_ms} to {phase.to_ms} ms cannot be",
                "Give quiet phases in order, each with a to_ms after its from_ms",
            )
        end_ms = phase.to_ms


def parse(text: str) -> tuple[WantedFault, ...]:
    """Read ``kind[:target],...``; ``none`` alone gives no fault.

    Raises:
        UsageError: a kind or a target does not exist, or a place in the list is empty.
    """
    if text.strip() == NONE:
        return ()
    wanted: list[WantedFault] = []
    for item in text.split(","):
        name, colon, target = item.strip().partition(":")
        if name == NONE:
            raise UsageError(
                f"{NONE!r} stands beside other faults in {text!r}",
                f"Name the faults, or {NONE} alone",
            )
        if not name or (colon and not target.strip()):
            raise UsageError(
                f"something is missing in the list of faults {text!r}",
                "Write it as kind[:target],..., such as partition:leader,kill",
            )
        kind = fault_kind(name)
        target = canonical(target.strip())
        if target:
            refuse_target(kind, target)
        wanted.append(WantedFault(kind=name, target=target or None))
    return tuple(wanted)


def refuse_target(kind: FaultKind, target: str) -> None:
    """Refuse a symbolic target that makes no sense for the kind.

    Raises:
        UsageError: says which do.
    """
    if kind.refuses(target):
        raise UsageError(
            f"the fault {kind.name!r} cannot have the target {target!r}",
            f"Use one of: {', '.join(kind.targets())}",
        )


def check_nodes(kind: FaultKind, nodes: Sequence[NodeName]) -> None:
    """Refuse a kind that needs more nodes than there are.

    Raises:
        UsageError: says how many.
    """
    if len(nodes) < kind.nodes_min:
        raise UsageError(
            f"the fault {kind.name!r} needs at least {kind.nodes_min} nodes, and the cluster has "
            f"{len(nodes)}",
            f"Choose at least --nodes {kind.nodes_min}, or another fault",
        )


def schedule(
    wanted: Sequence[WantedFault],
    nodes: Sequence[NodeName],
    random: RandomSource,
    time_limit_ms: Milliseconds,
    pace: Pace | None = None,
    observers: Sequence[NodeName] = (),
) -> tuple[Fault, ...]:
    """Draw a schedule: each kind twice where time allows, and as much more as fits.

    Nodes that do not vote are hit only by faults that name them.

    Raises:
        UsageError: a target does not exist among the nodes, or not even one fault fits.
    """
    if not wanted:
        return ()
    pace = pace or Pace()
    for item in wanted:
        kind = fault_kind(item.kind)
        check_nodes(kind, nodes)
        check_target(
            item.target or kind.first_target,
            nodes,
            leave_one=kind.leaves_one,
            observers=observers,
        )
    windows = _all_windows(len(wanted), random, time_limit_ms, pace)
    if not windows:
        least_ms = pace.warm_up_ms + pace.interval_min_ms + pace.calm_end_ms
        raise UsageError(
            f"no fault fits into a time limit of {time_limit_ms / 1000:g} s",
            f"Choose a --time-limit of at least {least_ms / 1000:g}, or --nemesis none",
        )
    weighed = [item for item in wanted for _ in range(pace.weights.get(item.kind, 1))]
    faults: list[Fault] = []
    round_: list[WantedFault] = []
    seen: set[str] = set()
    for index, (at_ms, duration_ms) in enumerate(windows):
        if not round_:
            round_ = _shuffled(weighed, random)
        item = round_.pop()
        target = item.target
        if target is None:
            target = _chosen_target(item.kind, random, first=item.kind not in seen)
            seen.add(item.kind)
        faults.append(
            Fault(
                index=index,
                kind=item.kind,
                target=target,
                at_us=at_ms * US_PER_MS,
                duration_us=duration_ms * US_PER_MS,
                draw=_integer(random, 0, _DRAW_LIMIT - 1),
                when=Awaited(RECOVERED) if pace.recovered else None,
            )
        )
    return tuple(faults)


def needs(faults: Iterable[Fault]) -> frozenset[Capability]:
    """Return the capabilities that a runtime must have to carry out these faults."""
    return frozenset[Capability]().union(
        *(fault_kind(fault.kind).needs_of(fault) for fault in faults)
    )


def refuse_what_cannot_be_had(
    faults: Sequence[Fault],
    capabilities: frozenset[Capability],
    runtime: str,
    *,
    because: Mapping[Capability, str] | None = None,
) -> None:
    """Refuse a plan before the run instead of skipping its faults in silence.

    ``because``: why the runtime cannot do the rest; None: that depends on the machine.

    Raises:
        CapabilityError: the runtime lacks something that a fault needs.
    """
    for fault in faults:
        missing = sorted(fault_kind(fault.kind).needs_of(fault) - capabilities)
        if not missing:
            continue
        next_step = "Leave the fault out of --nemesis, or choose another --runtime"
        exact = [name for name in missing if name in EXACT_CAPABILITIES]
        if exact:
            problem = f"only simulated worlds can do {' and '.join(exact)}"
            next_step = f"Leave the fault out of --nemesis, or choose --runtime {SIMULATED}"
        elif because is None:
            problem = f"it cannot do {' and '.join(missing)} here"
            next_step += "; 'splitbrain doctor' shows what is missing"
        else:
            problem = " and ".join(because[name] for name in missing)
        raise CapabilityError(
            f"plan the fault {fault.kind}", f"runtime {runtime}", problem, f"{next_step}."
        )


def _all_windows(
    kinds: int, random: RandomSource, time_limit_ms: int, pace: Pace
) -> list[tuple[Milliseconds, Milliseconds]]:
    """Return the windows of all faults that may be in force side by side, by their start."""
    lanes = [_windows(kinds, random, time_limit_ms, pace) for _ in range(pace.overlap)]
    return sorted(window for lane in lanes for window in lane)


def _windows(
    kinds: int, random: RandomSource, time_limit_ms: int, pace: Pace
) -> list[tuple[Milliseconds, Milliseconds]]:
    """(start, duration) of each fault, in order, all of them over before the calm end."""
    room_ms = time_limit_ms - pace.calm_end_ms
    windows: list[tuple[int, int]] = []
    used_ms = pace.warm_up_ms
    while used_ms + pace.calm_min_ms + pace.fault_min_ms <= room_ms:
        # The faults that must still fit need at least so long: they cap how long this one may be.
        owed = max(0, 2 * kinds - len(windows) - 1)
        owed_ms = owed * (pace.calm_min_ms + pace.fault_min_ms)
        is_long = len(windows) % 2 == 0 and used_ms + pace.calm_min_ms + pace.long_ms <= room_ms
        least_ms = max(pace.fault_min_ms, pace.long_ms if is_long else 0)
        spare_ms = max(0, room_ms - used_ms - pace.calm_min_ms - least_ms - owed_ms)
        # The spare time is shared, so that the first faults do not leave only short ones behind.
        share_ms = spare_ms if owed == 0 else 2 * spare_ms // (owed + 1)
        calm_extra_ms = min(pace.calm_max_ms - pace.calm_min_ms, share_ms // 2)
        calm_ms = _integer(random, pace.calm_min_ms, pace.calm_min_ms + calm_extra_ms)
        fault_extra_ms = min(
            pace.fault_max_ms - least_ms, max(0, share_ms - (calm_ms - pace.calm_min_ms))
        )
        fault_ms = _integer(random, least_ms, least_ms + fault_extra_ms)
        start_ms = _after_quiet(used_ms + calm_ms, fault_ms, pace.quiet)
        if start_ms + fault_ms > room_ms:
            break
        windows.append((start_ms, fault_ms))
        used_ms = start_ms + fault_ms
    return windows


def _after_quiet(start_ms: int, fault_ms: int, phases: Sequence[Quiet]) -> Milliseconds:
    """Return the start of a fault, moved behind every quiet phase that it would meet."""
    for phase in phases:
        if start_ms < phase.to_ms and start_ms + fault_ms > phase.from_ms:
            start_ms = phase.to_ms
    return start_ms


def _chosen_target(kind: str, random: RandomSource, *, first: bool) -> str:
    # Both numbers are always drawn, so that a choice never shifts the stream behind it.
    share = random.random()
    others = fault_kind(kind).other_targets
    other = others[_integer(random, 0, len(others) - 1)]
    return fault_kind(kind).first_target if first or share < _LEADER_SHARE else other


def _integer(random: RandomSource, low: int, high: int) -> int:
    """Uniform in [low, high]; one number of the stream."""
    return low + int(random.random() * (high - low + 1))


def _shuffled(items: Sequence[WantedFault], random: RandomSource) -> list[WantedFault]:
    rest, order = list(items), list[WantedFault]()
    while rest:
        order.append(rest.pop(_integer(random, 0, len(rest) - 1)))
    return order
