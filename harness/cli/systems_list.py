"""Output of ``splitbrain systems``: each system that can be tested, and its possibilities."""

from collections.abc import Mapping

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.contracts.system import System
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.console.standard_streams import write_bytes
from splitbrain.harness.folder.plan_checkers import declared_evidence
from splitbrain.nemesis.kinds import kind_names, machine_kind_names
from splitbrain.nemesis.scripted import SCRIPTED


class ListedSystem(msgspec.Struct, frozen=True):
    """One system of the list."""

    name: str
    #: By part; empty where the adapter cannot tell without a cluster.
    versions: Mapping[str, str]
    #: Numbers of nodes that a cluster can have.
    nodes: tuple[int, ...]
    #: With whatever state machine.
    workloads: tuple[str, ...]
    #: State machines above its log, each with its workloads, the usual one first; empty where there
    #: is no choice.
    state_machines: Mapping[str, tuple[str, ...]]
    #: Settings that it declares, each with its values, the usual one first.
    settings: Mapping[str, tuple[str, ...]]
    #: Evidence that its nodes give besides what clients see.
    evidence: tuple[str, ...]
    #: Name of a planted bug to what it does, one sentence.
    planted_bugs: Mapping[str, str]
    #: Versions that ``NAME@VERSION`` chooses from, the usual one first.
    offered_versions: tuple[str, ...] = ()
    #: Why it cannot be used; empty where it can.
    problem: str = ""


def list_systems(console: Console, *, as_json: bool = False) -> int:
    """Print the systems; returns the exit code."""
    listed = listed_systems()
    if as_json:
        write_bytes(msgspec.json.format(msgspec.json.encode(listed), indent=2) + b"\n")
        return 0
    for system in listed:
        console.print(_table(system))
    console.print(Text("Planted bugs are off unless --bug NAME switches them on.", style="dim"))
    machine = machine_kind_names()
    exact = (kind for kind in kind_names() if kind not in machine)
    faults = f"Faults for --nemesis: {', '.join(machine)}; plans: {', '.join(SCRIPTED)}."
    console.print(Text(faults, style="dim"))
    console.print(Text(f"With --runtime simulated also: {', '.join(exact)}.", style="dim"))
    return 0


def listed_systems() -> list[ListedSystem]:
    """Every system, sorted by name."""
    from splitbrain.systems.registry import each_system

    return [
        _unusable(name, found) if isinstance(found, UsageError) else _listed(found)
        for name, found in each_system()
    ]


def _unusable(name: str, problem: UsageError) -> ListedSystem:
    return ListedSystem(name, {}, (), (), {}, {}, (), {}, problem=str(problem))


def _listed(system: System) -> ListedSystem:
    try:
        versions = system.versions()
    except HarnessError:
        versions = {}
    return ListedSystem(
        name=system.name,
        versions=versions,
        nodes=tuple(count for count in range(1, NODES_MAX + 1) if _takes(system, count)),
        workloads=_workloads(system),
        state_machines={name: tuple(system.workloads(name)) for name in system.state_machines},
        settings={
            name: (values,) if isinstance(values, str) else values
            for name, values in system.settings.items()
        },
        evidence=tuple(sorted(declared_evidence(system))),
        planted_bugs=dict(sorted(system.planted_bugs.items())),
        offered_versions=tuple(system.offered_versions),
    )


def _workloads(system: System) -> tuple[str, ...]:
    machines = system.state_machines or (None,)
    return tuple(dict.fromkeys(name for machine in machines for name in system.workloads(machine)))


def _takes(system: System, nodes: int) -> bool:
    try:
        system.check_options(Experiment(system=system.name, nodes=nodes))
    except HarnessError:
        return False
    return True


def _table(system: ListedSystem) -> Table:
    table = Table(
        title=Text(printable(system.name), style="bold"),
        title_justify="left",
        box=None,
        show_header=False,
        pad_edge=False,
    )
    table.add_column(style="dim", overflow="fold")
    table.add_column(overflow="fold")
    if system.problem:
        table.add_row(Text("unusable"), Text(printable(system.problem)))
        return table
    versions = ", ".join(f"{part} {version}" for part, version in system.versions.items())
    rows = [
        ("version", versions or "known once a cluster is up"),
        ("nodes", _ranges(system.nodes)),
        ("workloads", ", ".join(system.workloads)),
        ("evidence", ", ".join(system.evidence) or "none but what clients see"),
    ]
    if system.offered_versions:
        ways = " or ".join(f"{system.name}@{version}" for version in system.offered_versions)
        rows.insert(1, ("--system", ways))
    rows += [
        (f"--state-machine {name}", f"workloads: {', '.join(workloads)}")
        for name, workloads in system.state_machines.items()
    ]
    rows += [
        (
            f"--setting {name}",
            f"by default {values[0]}" if len(values) == 1 else " or ".join(values),
        )
        for name, values in system.settings.items()
    ]
    bugs = system.planted_bugs.items()
    rows += [(f"--bug {name}", sentence) for name, sentence in bugs] or [("planted bugs", "none")]
    for name, content in rows:
        table.add_row(Text(printable(name)), Text(printable(content)))
    return table


def _ranges(numbers: tuple[int, ...]) -> str:
    """``1 to 9`` for what has no gaps, else the numbers; settings may decide instead."""
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers)) or "by its settings"
