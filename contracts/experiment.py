"""An experiment: all that ``splitbrain test`` is asked to run, and what a run of it records.

One field is one option of the command line, one field of ``plan.json`` and one axis of a suite.
``history.options`` reads help texts and bounds off the fields. Source: design, section 6.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.scenario import NODES_MAX, SEED_MAX

#: A week; the whole schedule of a run is drawn before it starts.
TIME_LIMIT_S_MAX: Final = 7 * 24 * 3600.0
CONCURRENCY_MAX: Final = 10_000
RATE_MAX: Final = 10_000_000.0
OPERATION_TIMEOUT_S_MAX: Final = 3600.0


class Option(msgspec.Struct, frozen=True):
    """Annotation of a field that is an option of the command line."""

    help: str
    #: Bounds of a number; ``above`` is none of its values.
    least: float | None = None
    most: float | None = None
    above: float | None = None
    #: Words that a refusal of a number puts before ``above``: "of seconds".
    unit: str = ""
    #: Ways of the command that it fits, by the command's own names; empty: all.
    only: tuple[str, ...] = ()
    #: Heading below which help texts list it.
    group: str = ""
    #: A word of the command line without the option's name.
    is_positional: bool = False


#: Options that ``splitbrain try`` has in common.
TimeLimit = Annotated[
    float,
    Option(
        "How long the load lasts: 60, 500ms, 1m or 1h30m; a number is of seconds.",
        above=0,
        most=TIME_LIMIT_S_MAX,
        unit="of seconds",
        group="Load",
    ),
]
Seed = Annotated[
    int,
    Option(
        "Master seed; drawn and printed if not given.",
        0,
        SEED_MAX,
        group="Load",
    ),
]
Rate = Annotated[
    float,
    Option(
        "Operations per second over all slots.",
        above=0,
        most=RATE_MAX,
        group="Load",
    ),
]
OperationTimeout = Annotated[
    float,
    Option(
        "Time after which an operation's outcome is unknown, such as 1 or 500ms.",
        above=0,
        most=OPERATION_TIMEOUT_S_MAX,
        unit="of seconds",
        group="Load",
    ),
]
WorkloadOptions = Annotated[
    dict[str, Any],
    Option(
        "NAME=VALUE, an option of the workload; repeatable.",
        group="Load",
    ),
]


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a run: system, load, faults, runtime, seed."""

    system: Annotated[
        str,
        Option(
            "System under test, NAME or NAME@VERSION; 'splitbrain systems' lists them.",
            group="System",
        ),
    ]
    #: None: the system's usual one.
    state_machine: Annotated[
        str | None,
        Option(
            "What stands above the system's log, where it has a choice: registers or metadata.",
            group="System",
        ),
    ] = None
    #: None: the usual one of the system and its state machine; never in a plan.
    workload: Annotated[
        str | None,
        Option(
            "What clients do: bank, counter, groups, kv, lease, list-append, log, long-fork, "
            "multi-register, mutex, queue, register, rows, rw-register, sessions, set, "
            "share-groups, topics, transform or unique-ids; by default what is usual for the "
            "system.",
            group="Load",
        ),
    ] = None
    nemesis: Annotated[
        str,
        Option(
            "Faults as kind[:target], comma-separated (partition:leader,kill); or a scripted plan, "
            "a plan file (.json, .toml), or none. Kinds: black-hole, bridge, clock-drift, "
            "clock-jump, clock-strobe, cpu, crash-loop, cut-then-kill, delay, disk-error, "
            "disk-stall, duplicate, flap, flip, full-disk, kill, loss, majorities-ring, memory, "
            "minority-third, one-way-in, one-way-out, partial, partition, pause, power, rate, "
            "remove-member, reorder, reset, restart, restore, rolling-restart, slow-link, "
            "terminate, truncate, wipe. With --runtime simulated also: disconnect, fsync-fails, "
            "read-errors, rename-fails, roll-back, rot-checkpoint, rot-identity, rot-log, "
            "rot-mark, rot-state, slow-disk, write-fails. Targets: leader, follower, last-leader, "
            "laggard, random:K, halves, all, or a node's name. Scripted plans: isolate-leader, "
            "isolate-leader-8s, isolate-leader-again, leader-kill, leader-pause, raft-figure-8, "
            "stale-leader, partial-partition, power-loss-of-all, rolling-restart-with-a-laggard, "
            "leader-cut-then-killed.",
            group="Faults",
        ),
    ] = "partition,pause,kill"
    #: None: as long as the system is known to take; who has not recovered by then is unknown.
    recovery_limit_s: Annotated[
        float | None,
        Option(
            "The nodes promise to agree again within this time once every fault is healed, such as "
            "90 or 2m; if they do not, the run is invalid. By default that is unknown.",
            above=0,
            most=OPERATION_TIMEOUT_S_MAX,
            unit="of seconds",
            group="Faults",
        ),
    ] = None
    runtime: Annotated[
        str,
        Option(
            "Where nodes live: docker, local (processes of this machine, no engine needed), or "
            "simulated (a virtual clock in one thread; exact, and over in seconds).",
            group="System",
        ),
    ] = "docker"
    #: Those that vote.
    nodes: Annotated[
        int,
        Option(
            "Number of nodes.",
            1,
            NODES_MAX,
            group="System",
        ),
    ] = 3
    time_limit_s: TimeLimit = 60.0
    seed: Seed = 1
    concurrency: Annotated[
        int,
        Option(
            "Worker slots, about half of them pinned to one node each.",
            1,
            CONCURRENCY_MAX,
            group="Load",
        ),
    ] = 10
    rate: Rate = 200.0
    operation_timeout_s: OperationTimeout = 1.0
    #: Kebab-case.
    bugs: Annotated[
        tuple[str, ...],
        Option(
            "Planted bug to switch on; repeatable.",
            group="System",
        ),
    ] = ()
    stop_on_violation: Annotated[
        bool,
        Option(
            "Judge the history while it grows; at the first violation freeze the nodes at once, "
            "and collect their logs and data as they are.",
            group="Load",
        ),
    ] = False
    #: By the system's own names.
    settings: Annotated[
        dict[str, str],
        Option(
            "NAME=VALUE, a setting of the system by its own name; NAME=drawn, NAME=drawn:A,B or "
            "NAME=drawn:10..1000 draws the value by the seed; repeatable.",
            group="System",
        ),
    ] = {}
    #: In a plan those in force, defaults included.
    workload_options: WorkloadOptions = {}


def check_settings(
    system: str,
    given: Mapping[str, str],
    known: Mapping[str, str | tuple[str, ...]],
    bounds: Mapping[str, tuple[int, int]],
) -> None:
    """Raise UsageError for a setting or a value that is unknown, or out of ``bounds``."""
    for name, value in given.items():
        if name not in known:
            raise UsageError(
                f"{system} has no setting {name!r}",
                or_nearest(name, [*known], "settings") if known else "Leave --setting out",
            )
        choices = known[name]
        if isinstance(choices, tuple) and value not in choices:
            raise UsageError(
                f"{system} does not know {value!r} as {name}", f"Choose {' or '.join(choices)}"
            )
        least, most = bounds.get(name, (0, 0))
        is_number = value.isascii() and value.isdigit()
        if name in bounds and not (is_number and least <= int(value) <= most):
            raise UsageError(
                f"the setting {name} of {system} cannot be {value!r}",
                f"Give a whole number from {least} to {most}",
            )
