"""``splitbrain init``: a suite, a policy and a night for a system, which run as they are.

They follow from what the system declares: its workloads, its numbers of nodes, its evidence, and
its canary. Each is read back by its own reader before it counts as written.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

import msgspec
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.contracts.system import Canary, System
from splitbrain.harness.campaign.nightly.definition import read_nightly
from splitbrain.harness.campaign.suite.reading import check_cells, plan
from splitbrain.harness.console.console_lines import say
from splitbrain.harness.console.standard_streams import answer
from splitbrain.harness.run.plan_choice import plan_faults
from splitbrain.history.durations import positive_seconds_of
from splitbrain.history.plan import voters
from splitbrain.plugins.files import is_file
from splitbrain.runtimes.local.mode import missing_programs
from splitbrain.systems.registry import admitted, system, usable_systems

#: Faults that any system must survive.
_FAULTS: Final = ("pause", "kill", "partition")
#: Of one run of the suite.
_TIME_LIMIT_S: Final = 15.0
#: Beyond its time limit: start, heal, judge.
_AROUND_A_RUN_S: Final = 30.0
_SEEDS_MAX: Final = 100
_USUAL_NODES: Final = 3


class _Chosen(msgspec.Struct, frozen=True):
    """All that the files are made of."""

    system: System
    #: As the suite names it: a name, or a file beside it.
    written: str
    runtime: str
    nodes: int
    canary: Canary
    #: System of the canary, where it is not this one.
    stand_in: str | None
    #: State machine (None: the only one) to its workloads.
    workloads: dict[str | None, tuple[str, ...]]
    faults: tuple[str, ...]
    time_budget: str


def write_night(
    name: str, folder: Path, console: Console, *, runtime: str | None, time_budget: str
) -> int:
    """Write the three files into a folder, say what can be done, and return the exit code.

    Raises:
        UsageError: there is no such system, a file is there already, or nothing can be written.
    """
    chosen = _choose(name, folder, runtime, time_budget)
    texts = {
        "suite.toml": _suite(chosen),
        "policy.toml": _policy(chosen),
        "night.toml": _night(chosen),
    }
    for file in texts:
        if (folder / file).exists():
            next_step = "Choose another folder with --output, or remove the file"
            raise UsageError(f"there is {folder / file} already", next_step)
    night = folder / "night.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        suite = read_nightly(night).suite
        check_cells(suite.path, plan(suite, 0))
    except OSError as error:
        problem = f"{folder} cannot be written: {error.strerror}"
        raise UsageError(problem, "Choose another folder with --output") from error
    except BaseException:
        for file in texts:
            with suppress(OSError):
                (folder / file).unlink()
        raise
    for line in (
        f"wrote {', '.join(texts)} in {folder}; they run as they are:",
        f"  splitbrain nightly {shlex.quote(str(night))}",
        f"  splitbrain suite {shlex.quote(str(folder / 'suite.toml'))} --time-budget 5m",
        "`splitbrain docs nightly`, `docs suite` and `docs gate` say what may stand in them.",
    ):
        say(console, line)
    answer(console, {"folder": folder, "files": list(texts), "system": chosen.system.name})
    return 0


def _choose(name: str, folder: Path, runtime: str | None, time_budget: str) -> _Chosen:
    try:
        positive_seconds_of(time_budget)
    except ValueError as error:
        raise UsageError(f"--time-budget: {error}", "Correct it, or leave it out") from error
    found = system(admitted(name))
    nodes = _nodes(found)
    if runtime == SIMULATED and found.simulation() is None:
        raise UsageError(f"{found.name} cannot be simulated", "Choose another --runtime")
    runtime = runtime or _runtime(found, nodes)
    own = found.canary
    stand_in = _stand_in(found.name) if own is None else (found.name, own)
    machines = found.state_machines or (None,)
    lost = () if own is None or own.bugs or own.settings else _kinds_of(own, nodes)
    return _Chosen(
        system=found,
        written=_beside(name, folder),
        runtime=runtime,
        nodes=nodes,
        canary=stand_in[1],
        stand_in=None if own else stand_in[0],
        workloads={machine: tuple(found.workloads(machine)) for machine in machines},
        faults=tuple(
            kind for kind in _FAULTS if kind not in lost and (nodes > 1 or kind != "partition")
        ),
        time_budget=time_budget,
    )


def _nodes(found: System) -> int:
    """Return three, or the number of nodes nearest above or below that the system takes."""
    takes: list[int] = []
    for count in range(1, NODES_MAX + 1):
        with suppress(HarnessError):
            found.check_options(Experiment(system=found.name, nodes=count))
            takes.append(count)
    if not takes:
        raise UsageError(
            f"{found.name} says nothing of its nodes without settings, which init does not know",
            "Write them by hand: `splitbrain docs suite` and `splitbrain docs nightly` say how",
        )
    return min(takes, key=lambda count: (abs(count - _USUAL_NODES), -count))


def _runtime(found: System, nodes: int) -> str:
    """Return the runtime that needs least: a simulation, else this machine, else containers."""
    if found.simulation() is not None:
        return SIMULATED
    with suppress(HarnessError):
        found.check_options(Experiment(system=found.name, nodes=nodes, runtime="local"))
        return "docker" if missing_programs(found.images()) else "local"
    return "docker"


def _stand_in(name: str) -> tuple[str, Canary]:
    """Return a system that can be simulated, which proves at least that a night sees violations."""
    for other in usable_systems():
        if other.canary is not None and other.simulation() is not None:
            return other.name, other.canary
    raise UsageError(
        f"{name} has no canary, a run that must fail, and no other system can stand in",
        "Give the adapter a canary; `splitbrain docs adapters` says how",
    )


def _kinds_of(canary: Canary, nodes: int) -> set[str]:
    faults, _ = plan_faults(canary.nemesis, voters(nodes), 0, int(canary.time_limit_s * 1000))
    return {fault.kind for fault in faults}


def _beside(name: str, folder: Path) -> str:
    """Return the name of the system as a suite in the folder says it."""
    if not is_file(name):
        return name
    path, _, class_name = name.rpartition(":")
    return f"{os.path.relpath(path, folder)}:{class_name}"


def _suite(chosen: _Chosen) -> str:
    canary, name = chosen.canary, chosen.system.name
    cells = sum(len(names) for names in chosen.workloads.values()) * len(chosen.faults)
    # Half of the budget at the most: a night that is done early is worth more than one cut off.
    fits = positive_seconds_of(chosen.time_budget) / 2 / (_TIME_LIMIT_S + _AROUND_A_RUN_S)
    seeds = max(1, min(_SEEDS_MAX, int(fits) // max(cells, 1)))
    lines = [
        f"# Runs of a night of {name}; `splitbrain docs suite` says what may stand here.",
        f"name = {_text(name)}",
        "",
        "# The canary: a run that must fail. A night that does not see it proves nothing.",
    ]
    if chosen.stand_in is not None:
        lines += [
            f"# {name} declares none, so a planted bug of {chosen.stand_in} stands in. It shows",
            "# that checkers, lake and gate see a violation, not that the adapter does: give the",
            "# adapter a `canary` (`splitbrain docs adapters`) and put it here.",
        ]
    lines += _matrix(
        "canary",
        {
            "system": chosen.stand_in or chosen.written,
            "runtime": SIMULATED if chosen.stand_in else chosen.runtime,
            "nodes": None if chosen.stand_in else chosen.nodes,
            "workload": canary.workload,
            "nemesis": canary.nemesis,
            "bug": [*canary.bugs] or None,
            "setting": canary.settings or None,
            "time_limit": canary.time_limit_s,
            "expect": "invalid",
        },
    )
    for machine, workloads in chosen.workloads.items():
        lines += ["", "# Each workload under each fault, with fresh seeds every night."]
        if chosen.faults != _FAULTS and chosen.nodes > 1:
            lines.append("# Faults of the canary are left out: what they lose is known.")
        lines += _matrix(
            "faults" if machine is None else f"faults {machine}",
            {
                "system": chosen.written,
                "runtime": chosen.runtime,
                "nodes": chosen.nodes,
                "state_machine": machine,
                "workload": [*workloads],
                "nemesis": [*chosen.faults],
                "time_limit": _TIME_LIMIT_S,
            },
        )
        lines.append(f"seeds = {{ count = {seeds} }}")
    return "\n".join(lines) + "\n"


def _matrix(name: str, fields: Mapping[str, object]) -> Iterator[str]:
    yield "[[matrix]]"
    for key, value in {"name": name, **fields}.items():
        if value is not None:
            yield f"{key} = {_text(value)}"


def _text(value: object) -> str:
    """Return a value as TOML; a text and a whole number are the same as in JSON."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value).items()
        return f"{{ {', '.join(f'{_text(name)} = {_text(each)}' for name, each in pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, cast('list[object]', value)))}]"
    return f"{value:g}" if isinstance(value, float) else msgspec.json.encode(value).decode()


def _policy(chosen: _Chosen) -> str:
    cells = sum(len(names) for names in chosen.workloads.values()) * len(chosen.faults)
    demands = [
        ("violations == 0", "what the canary shows is expected, and does not count"),
        ("runs_failed == 0", "the harness did its work"),
        (f"runs_valid >= {cells}", "each cell of the suite once"),
        ("faults_verified >= 80%", "faults took effect, seen from outside"),
    ]
    if chosen.system.declares_committed_logs:
        demands += [
            ("lost_commits == 0", "nothing that was acknowledged is gone"),
            ("diverged_logs == 0", "nodes agree on what is committed"),
        ]
    if chosen.system.declares_state_events:
        demands.append(("split_brain_epochs == 0", "one leader an epoch"))
    demands += [
        ("failures_new == 0", "compared with the last night"),
        ("regression(latency_p99) < 100%", "the same; narrow it once you know your noise"),
    ]
    quick = [("violations == 0", ""), ("runs_valid >= 1", "a run without containers")]
    if chosen.system.simulation() is not None:
        quick.append(("seeds_run >= 300", "none of which may fail, unless seeds_failed says so"))
    return "\n".join(
        [
            f"# What {chosen.system.name} must show, by the rules of `splitbrain docs gate`.",
            "# `splitbrain gate --policy policy.toml --self-test` proves that each line can fail.",
            "# A failure that is known may be spared until a day, as a [[quarantine]].",
            "schema = 1",
            'default_tier = "nightly"',
            "",
            *_tier("nightly", demands),
            "",
            "# Minutes, before a change is merged: `splitbrain docs ci` has templates for it.",
            *_tier("pull-request", quick),
            "",
        ]
    )


def _tier(name: str, demands: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of a tier from its thresholds, each with why it stands there."""
    yield f"[tier.{name}]"
    yield "require = ["
    width = max(len(text) for text, _ in demands) + 3
    for text, why in demands:
        yield f"    {f'{_text(text)},':<{width}}{f'  # {why}' if why else ''}".rstrip()
    yield "]"


def _night(chosen: _Chosen) -> str:
    return f"""# `splitbrain nightly night.toml`, by the rules of `splitbrain docs nightly`.
schema = 1
suite = "suite.toml"
policy = "policy.toml"
baseline = "last"
# Of all, divided by itself over runs, lake, analysis and gate; --time-budget wins.
time_budget = {_text(chosen.time_budget)}
"""
