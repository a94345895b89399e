"""Choices of a run of a compose file: which services are asked, how, and which are spared. Pure.

They are settings of the system, so that plans, ``Reproduce`` lines and replays have them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import TIME_LIMIT_S_MAX
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.history.plan import voters
from splitbrain.systems.compose_file.drivers.driver import Driver
from splitbrain.systems.compose_file.drivers.registry import driver_kind
from splitbrain.systems.compose_file.reading import ComposeFile
from splitbrain.systems.compose_file.service import Service, names_of_copies

#: Settings of every run of a compose file; a driver has its own besides.
FILE: Final = "file"
PORT: Final = "port"
DRIVER: Final = "driver"
SPARE: Final = "spare"
DIGEST: Final = "digest"
NOTICES: Final = "notices"
OURS: Final = (FILE, PORT, DRIVER, SPARE, DIGEST, NOTICES)


class ComposeNode(msgspec.Struct, frozen=True):
    """One copy of a service, and the node that it is."""

    node: NodeName
    #: ``store``, or ``store-2``.
    name: str
    service: Service
    #: Where clients ask it; None: they do not.
    port: int | None
    is_spared: bool


class Trial(msgspec.Struct, frozen=True):
    """The choices, held against the file."""

    file: ComposeFile
    #: Those that are spared come last.
    nodes: tuple[ComposeNode, ...]
    driver: type[Driver]
    #: The driver's settings.
    options: Mapping[str, str]
    #: Seconds after which its containers notice that one is silent; None: nobody says.
    notices_s: float | None = None

    @property
    def targets(self) -> tuple[ComposeNode, ...]:
        """Return the nodes that clients ask."""
        return tuple(node for node in self.nodes if node.port is not None)

    @property
    def hit(self) -> tuple[ComposeNode, ...]:
        """Return the nodes that faults are aimed at."""
        return tuple(node for node in self.nodes if not node.is_spared)

    def summary(self) -> str:
        """Return what is run, one sentence."""
        nodes = ", ".join(f"{node.node} {node.name} ({node.service.image})" for node in self.nodes)
        asked = ", ".join(f"{node.name}:{node.port}" for node in self.targets)
        spared = ", ".join(node.name for node in self.nodes if node.is_spared)
        faults = f"; no faults at {spared}" if spared else ""
        return f"{self.file.path.name}: {nodes}; clients ask {asked} by {self.driver.name}{faults}"


def trial_of(file: ComposeFile, settings: Mapping[str, str]) -> Trial:
    """Return the trial that the settings describe.

    Raises:
        UsageError: a service, a port, a driver or a setting does not exist or does not fit.
    """
    kind = driver_kind(settings.get(DRIVER, ""))
    for name in settings:
        if name not in OURS and name not in kind.settings:
            known = (*OURS, *kind.settings)
            problem = f"the driver {kind.name} has no setting {name!r}"
            raise UsageError(problem, or_nearest(name, known, "settings"))
    digest = settings.get(DIGEST)
    if digest is not None and digest != file.digest():
        raise UsageError(
            f"{file.path}, its variables or the files that it mounts were changed since that run",
            "Put them back, or run what is there now with `splitbrain try`",
        )
    ports = _ports(file, _parts(settings.get(PORT, "")))
    spared = _spared(file, _parts(settings.get(SPARE, "")))
    nodes = _nodes(file, ports, spared)
    options = {name: value for name, value in settings.items() if name not in OURS}
    return Trial(file, nodes, kind, options, _notices_s(settings.get(NOTICES)))


def _notices_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= TIME_LIMIT_S_MAX:
        raise UsageError(
            f"--notices cannot be {text!r}", "Give the seconds after which a silence is noticed"
        )
    return seconds


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _service(file: ComposeFile, name: str, option: str) -> Service:
    found = {service.name: service for service in file.services}
    if name not in found:
        raise UsageError(
            f"{option} names {name!r}, and {file.path} starts no such service",
            or_nearest(name, tuple(found), "services"),
        )
    return found[name]


def _ports(file: ComposeFile, words: Sequence[str]) -> dict[str, int]:
    if not words:
        raise UsageError(
            "no service is named that clients are to ask",
            f"Give --port SERVICE:PORT; the services are: {_names(file)}",
        )
    found: dict[str, int] = {}
    for word in words:
        name, _, number = word.rpartition(":")
        if not name or not (number.isascii() and number.isdigit()) or not 0 < int(number) < 1 << 16:
            raise UsageError(
                f"--port cannot be {word!r}",
                "Write SERVICE:PORT, with the port inside of the container, as in store:6379",
            )
        service = _service(file, name, "--port")
        if name in found:
            raise UsageError(f"--port names {name!r} twice", "Clients ask a service at one port")
        if not service.copies:
            raise UsageError(f"the service {name!r} has no copies", "Give it some")
        found[name] = int(number)
    return found


def _spared(file: ComposeFile, names: Sequence[str]) -> frozenset[str]:
    spared = frozenset(_service(file, name, "--spare").name for name in names)
    if len(spared) == len(file.services):
        raise UsageError("every service is spared", "Leave one for the faults, or --nemesis none")
    return spared


def _nodes(
    file: ComposeFile, ports: Mapping[str, int], spared: frozenset[str]
) -> tuple[ComposeNode, ...]:
    ordered = sorted(file.services, key=lambda service: service.name in spared)
    copies = [(service, name) for service in ordered for name in names_of_copies(service)]
    if len(copies) > NODES_MAX:
        raise UsageError(
            f"{file.path} starts {len(copies)} containers, and a run has at most {NODES_MAX}",
            "Give services fewer replicas, or a profile to those that do not matter here",
        )
    return tuple(
        ComposeNode(node, name, service, ports.get(service.name), service.name in spared)
        for node, (service, name) in zip(voters(len(copies)), copies, strict=True)
    )


def _names(file: ComposeFile) -> str:
    return ", ".join(service.name for service in file.services)


def nodes_in_nemesis(trial: Trial, nemesis: str) -> str:
    """Return the faults with nodes' names in place of services', as in ``kill:store``.

    Raises:
        UsageError: a service stands for several nodes.
    """
    by_name = {node.name: node.node for node in trial.nodes}
    several = {node.service.name for node in trial.nodes} - by_name.keys()
    items: list[str] = []
    for item in nemesis.split(","):
        kind, colon, target = item.partition(":")
        if target.strip() in several:
            copies = [node.name for node in trial.nodes if node.service.name == target.strip()]
            raise UsageError(
                f"{item!r} names a service of {len(copies)} copies",
                f"Name one of them: {', '.join(copies)}",
            )
        items.append(kind + colon + by_name.get(target.strip(), target))
    return ",".join(items)


def read_path(settings: Mapping[str, str]) -> Path:
    """Return the compose file that the settings name.

    Raises:
        UsageError: they name none.
    """
    if not settings.get(FILE):
        raise UsageError(
            "no compose file is named",
            "Use `splitbrain try FILE --port SERVICE:PORT --driver DRIVER`",
        )
    return Path(settings[FILE]).absolute()
