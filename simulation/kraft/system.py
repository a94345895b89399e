"""Our nodes for the simulated runtime; implements ``contracts.simulation.SimulatedSystem``."""

import functools
from fractions import Fraction
from typing import Any, Final

import msgspec

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.random_source import RandomSource
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.patched.loading import load_apart
from splitbrain.patched.patch import Patch
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.cluster import KraftCluster
from splitbrain.simulation.kraft.happenings import HAPPENINGS, PROPOSES_ISR
from splitbrain.simulation.kraft.layers import state_machine_of
from splitbrain.simulation.kraft.messages import describe
from splitbrain.simulation.kraft.reigns import with_troubled_reigns
from splitbrain.simulation.world.world import SimulatedWorld
from splitbrain.systems.kraft.planted_bugs import patches_of

#: Fetch timeouts that worlds have, milliseconds; all other timeouts follow from it.
_FETCH_TIMEOUTS_MS: Final = (60, 60, 60, 90, 90, 150, 150, 300)
#: The fetch timeout is at least so many round trips, so that calm worlds keep their leaders.
_ROUND_TRIPS_MIN: Final = 6


#: Setting that has nodes write snapshots.
_SNAPSHOTS: Final = "snapshot_max_new_record_bytes"
#: One world in so many has nodes that write snapshots.
_SNAPSHOTS_EVERY: Final = 3
#: Bytes of new records after which they do: a few records, or some dozens.
_NEW_BYTES: Final = (300, 700, 1_500, 4_000)
#: Bytes of a chunk: so few that a snapshot takes some, or all at once. A voter that must catch up
#: begins anew whenever its leader changes, and a disk that is slow now and then changes leaders
#: every few dozen jobs: with hundreds of chunks it would never get through, in Kafka neither.
_CHUNK_BYTES: Final = (1_000, 4_000, 1_048_576)


#: Fetch timeouts until a silent broker is fenced, and how often it speaks meanwhile.
_SESSIONS: Final = (2, 4, 9)
_BEATS: Final = (3, 4, 6)
#: How often an idle leader writes, milliseconds; 0: never.
_IDLE_MS: Final = (0, 0, 2_000)
_BROKERS_MAX: Final = 3
#: Happenings that only brokers have, and up to how often; each heals after so many parts
#: of a session, doubled up to so many times.
_BROKER_FAULTS: Final = ("terminate", "terminate", "terminate", "kill", "kill", "pause")
_BROKER_FAULTS_MAX: Final = 5
_SESSION_PARTS: Final = 8
_PARTS_DOUBLINGS: Final = 5
#: Ends of a broker while it, or another one, is proposed for an ISR; up to how often, and at one
#: of the first how many proposals.
_BLOWS: Final = ("terminate", "terminate", "terminate", "kill")
_BLOWS_MAX: Final = 6
_PROPOSALS_MAX: Final = 4
#: It strikes within a part of a session, halved up to so many times.
_SHIFTS: Final = 4
#: Bytes of a topic's change in the log, about; and by how much longer a chunk of a snapshot is
#: than in worlds of registers, whose images are smaller.
_OPERATION_BYTES: Final = 200
_CHUNKS_LONGER: Final = 16
_MS_PER_S: Final = 1_000
_DRAW_LIMIT: Final = 1 << 31
_US_PER_MS: Final = 1_000
#: Records of a new leader's transaction that go into one batch; the first is what Kafka has.
_ACTIVATION_BATCHES: Final = (10_000, 1, 2, 4)


#: Packages of which worlds with planted bugs have copies of their own.
_COPIED: Final = (
    f"{PACKAGE}.nodes",
    *(module.rpartition(".")[0] for module in (__name__, patches_of.__module__)),
)
#: Copies that are kept for the next world, each of some megabytes.
_COPIES_MAX: Final = 8


@functools.lru_cache(_COPIES_MAX)
def _copy_with(patches: tuple[Patch, ...]) -> SimulatedSystem:
    made: SimulatedSystem = load_apart(__name__, _COPIED, patches).KraftSimulation()
    return made


#: Operations of clients at brokers.
_AT_BROKERS: Final = ("view", "change")
#: A broker that finds no controller for long gives up; here it must wait as long as faults last.
_FOR_EVER_MS: Final = 3_600_000


def _snapshot_settings(stream: RandomSource) -> dict[str, str]:
    if int(stream.random() * _SNAPSHOTS_EVERY):
        return {}
    settings = {
        _SNAPSHOTS: _NEW_BYTES[int(stream.random() * len(_NEW_BYTES))],
        "fetch_snapshot_max_bytes": _CHUNK_BYTES[int(stream.random() * len(_CHUNK_BYTES))],
        "snapshots_retained_count": 1 + int(stream.random() * 2),
    }
    return {name: str(value) for name, value in settings.items()}


def _snapshots_for_brokers(scenario: Scenario, fetch_ms: int) -> dict[str, str]:
    """Snapshots that a broker can catch up with while clients go on, as views of it are demanded.

    The next one must not take a snapshot's place while it is fetched: there are several requests in
    a fetch timeout, and each takes a fair part of an image.
    """
    if _SNAPSHOTS not in scenario.settings:
        return {}
    written_bytes = int(scenario.load.rate) * _OPERATION_BYTES * fetch_ms // _MS_PER_S
    new_bytes = int(scenario.settings[_SNAPSHOTS])
    chunk_bytes = int(scenario.settings["fetch_snapshot_max_bytes"])
    return {
        _SNAPSHOTS: str(max(new_bytes, 2 * written_bytes)),
        "fetch_snapshot_max_bytes": str(_CHUNKS_LONGER * chunk_bytes),
    }


def _broker_faults(
    scenario: Scenario, brokers: int, session_ms: int, stream: RandomSource
) -> tuple[Fault, ...]:
    """Brokers that end in order, are killed or freeze: what is drawn for any node meets few."""
    part_us = max(1, session_ms * _US_PER_MS // _SESSION_PARTS)
    first = len(scenario.faults)
    return tuple(
        Fault(
            index=index,
            kind=_BROKER_FAULTS[int(stream.random() * len(_BROKER_FAULTS))],
            target=f"n{scenario.nodes + 1 + int(stream.random() * brokers)}",
            at_us=int(stream.random() * (scenario.load_us * 9 // 10)),
            duration_us=part_us << int(stream.random() * _PARTS_DOUBLINGS),
            draw=int(stream.random() * _DRAW_LIMIT),
        )
        for index in range(first, first + int(stream.random() * (_BROKER_FAULTS_MAX + 1)))
    )


def _blows_at_proposals(
    scenario: Scenario, brokers: int, session_ms: int, index: int, stream: RandomSource
) -> tuple[Fault, ...]:
    """Brokers that end again while a leader proposes to take in who has come back.

    ``index``: of the first such fault.
    """
    part_us = max(1, session_ms * _US_PER_MS // _SESSION_PARTS)
    return tuple(
        Fault(
            index=each,
            kind=_BLOWS[int(stream.random() * len(_BLOWS))],
            target=f"n{scenario.nodes + 1 + int(stream.random() * brokers)}",
            at_us=0,
            when=Awaited(
                on=PROPOSES_ISR,
                count=1 + int(stream.random() * _PROPOSALS_MAX),
                delay_us=int(stream.random() * part_us) >> int(stream.random() * _SHIFTS),
            ),
            duration_us=part_us << int(stream.random() * _PARTS_DOUBLINGS),
            draw=int(stream.random() * _DRAW_LIMIT),
        )
        for each in range(index, index + int(stream.random() * (_BLOWS_MAX + 1)))
    )


class KraftSimulation:
    """Makes simulated machines with the real nodes on them."""

    happenings: tuple[str, ...] = HAPPENINGS
    happenings_undrawn: tuple[str, ...] = (PROPOSES_ISR,)
    invariants: tuple[str, ...] = tuple(invariant.id for invariant in INVARIANTS)

    def describe(self, message: Any) -> tuple[str, str, bool]:
        """Name and detail of a message, and whether it carries nothing new."""
        return describe(message)

    def draw_settings(self, stream: RandomSource, round_trip_us: int) -> dict[str, str]:
        """Timeouts of one world: short ones give more elections in the same virtual time."""
        drawn_ms = _FETCH_TIMEOUTS_MS[int(stream.random() * len(_FETCH_TIMEOUTS_MS))]
        fetch_ms = max(drawn_ms, _ROUND_TRIPS_MIN * round_trip_us // 1_000)
        # Little jitter has several stand for an epoch at once, much has one win soon.
        shortest = (Fraction(7, 8), Fraction(1, 2), Fraction(1, 2), Fraction(1, 4))
        jitter = shortest[int(stream.random() * len(shortest))]
        settings = {
            "fetch_timeout_ms": fetch_ms,
            "election_timeout_ms_min": int(fetch_ms * jitter),
            "election_timeout_ms_max": fetch_ms,
            "election_back_off_ms_max": fetch_ms,
            "request_timeout_ms": fetch_ms * 3 // 5,
            "retry_back_off_ms": max(1, fetch_ms // 15),
            "fetch_max_wait_ms": fetch_ms // 5,
        }
        # Without it all followers of a dead leader time out at about the same moment.
        stands = ("true", "true", "false")[int(stream.random() * 3)]
        drawn = {name: str(value) for name, value in settings.items()}
        drawn |= {"stands_when_leader_is_gone": stands}
        # Last, so that worlds without snapshots are what they were before there were any.
        return drawn | _snapshot_settings(stream)

    def dressed(self, scenario: Scenario, state_machine: str, stream: RandomSource) -> Scenario:
        """With Kafka's metadata: brokers as observers, their sessions some fetch timeouts long.

        With registers: troubled reigns, in half of the worlds.
        """
        if state_machine != "metadata":
            scenario = msgspec.structs.replace(scenario, state_machine=state_machine)
            return with_troubled_reigns(scenario, stream)
        fetch_ms = int(scenario.settings["fetch_timeout_ms"])
        session_ms = fetch_ms * _SESSIONS[int(stream.random() * len(_SESSIONS))]
        beats = _BEATS[int(stream.random() * len(_BEATS))]
        idle_ms = _IDLE_MS[int(stream.random() * len(_IDLE_MS))]
        settings = {
            "broker_session_timeout_ms": session_ms,
            "heartbeat_interval_ms": max(1, session_ms // beats),
            "find_controller_back_off_ms": max(1, fetch_ms // 15),
            "controlled_shutdown_timeout_ms": 3 * session_ms,
            "initial_registration_timeout_ms": _FOR_EVER_MS,
            "max_idle_interval_ms": idle_ms,
            "leader_imbalance_check_interval_s": int(stream.random() * 3),
        }
        brokers = 1 + int(stream.random() * _BROKERS_MAX)
        faults = _broker_faults(scenario, brokers, session_ms, stream)
        # Last, so that all else of a world is what it was before leaders could be lost within.
        settings["activation_records_per_batch_max"] = _ACTIVATION_BATCHES[
            int(stream.random() * len(_ACTIVATION_BATCHES))
        ]
        index = len(scenario.faults) + len(faults)
        faults += _blows_at_proposals(scenario, brokers, session_ms, index, stream)
        at_brokers = _AT_BROKERS[int(stream.random() * len(_AT_BROKERS))]
        return msgspec.structs.replace(
            scenario,
            state_machine=state_machine,
            observers=brokers,
            faults=scenario.faults + faults,
            settings=scenario.settings
            | _snapshots_for_brokers(scenario, fetch_ms)
            | {name: str(value) for name, value in settings.items()},
            load=msgspec.structs.replace(
                scenario.load, workload="topics", workload_options={"brokers": at_brokers}
            ),
            # Of a cluster without a broker that is up no topic can be demanded.
            recovery=msgspec.structs.replace(scenario.recovery, scope="all"),
        )

    def traits(self, scenario: Scenario) -> dict[str, str]:
        """Tell whether nodes write snapshots."""
        return {"snapshots": "yes" if _SNAPSHOTS in scenario.settings else "no"}

    def failover_us(self, settings: dict[str, str]) -> int:
        """A fetch timeout until the leader is missed, and about two elections."""
        return 3_000 * int(settings.get("fetch_timeout_ms", "500"))

    def planted(self, scenario: Scenario) -> SimulatedSystem:
        """Return the same with a copy of the nodes that has the scenario's planted bugs.

        Raises:
            UsageError: there is no such bug, or it does not go with the others.
        """
        try:
            patches = patches_of(scenario.bugs, state_machine_of(scenario))
        except ValueError as error:
            raise UsageError(str(error), "Correct the bug") from error
        return _copy_with(patches) if patches else self

    def cluster(
        self, world: SimulatedWorld, *, muted: frozenset[str] = frozenset()
    ) -> KraftCluster:
        """All machines, their disks formatted, no process yet.

        Raises:
            UsageError: a setting or a bug of the scenario does not exist.
        """
        return KraftCluster(world, muted)
