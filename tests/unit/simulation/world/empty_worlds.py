"""Simulated worlds without a system in them, and ends that note what they are told."""

from typing import Any

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.scenario import NetworkOptions, Scenario
from splitbrain.simulation.world.network import SimulatedConnection
from splitbrain.simulation.world.world import SimulatedWorld

#: Every message takes exactly so long, unless a test says otherwise.
DELAY_US = 100
LATER_US = 10_000_000


def steady(**changed: float) -> NetworkOptions:
    """A network without chance, but for what is changed."""
    options: dict[str, float] = {
        "delay_us_min": DELAY_US,
        "delay_us_max": DELAY_US,
        "half_open_chance": 0.0,
    }
    return NetworkOptions(**(options | changed))  # pyright: ignore[reportArgumentType]


class NoSystem:
    """A system without nodes."""

    happenings = ("strikes",)
    happenings_undrawn = ()
    invariants: tuple[str, ...] = ()

    def planted(self, scenario: Scenario) -> "NoSystem":
        return self

    def describe(self, message: Any) -> tuple[str, str, bool]:
        return str(message), "", False

    def cluster(self, world: Any, *, muted: frozenset[str] = frozenset()) -> Any:
        return None


def empty_world(
    network: NetworkOptions | None = None, seed: int = 1, *, is_recording: bool = False
) -> SimulatedWorld:
    scenario = Scenario(system="none", seed=seed, network=network or steady())
    system: Any = NoSystem()
    return SimulatedWorld(scenario, system, is_recording=is_recording)


def link(source: str, destination: str) -> Link:
    return Link(NodeName(source), NodeName(destination))


class Opener:
    """A client's end: what it was told, with times."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self.answers: list[tuple[int, Any]] = []
        self.losses: list[tuple[int, str, bool]] = []

    def answered(self, message: Any) -> None:
        self.answers.append((self._world.now, message))

    def lost(self, reason: str, *, refused: bool) -> None:
        self.losses.append((self._world.now, reason, refused))

    @property
    def messages(self) -> list[Any]:
        return [message for _, message in self.answers]


class Listener:
    """One life of a server: what it was told, with times; echoes if it is asked to."""

    def __init__(self, world: SimulatedWorld, place: str, *, echoes: bool = False) -> None:
        self._world = world
        self._place = place
        self._echoes = echoes
        self.requests: list[tuple[int, str, Any]] = []
        self.times: list[int] = []
        self.gone: list[int] = []
        world.network.listen(place, self)

    def requested(self, connection: int, source: str, message: Any) -> None:
        self.requests.append((connection, source, message))
        self.times.append(self._world.now)
        if self._echoes:
            self._world.network.answer(self._place, connection, f"re {message}")

    def disconnected(self, connection: int) -> None:
        self.gone.append(connection)

    @property
    def messages(self) -> list[Any]:
        return [message for _, _, message in self.requests]


def connected(
    world: SimulatedWorld, *, echoes: bool = False
) -> tuple[Listener, Opener, SimulatedConnection]:
    """A server at n1, a client at c1, and the client's connection to it."""
    server, client = Listener(world, "n1", echoes=echoes), Opener(world)
    return server, client, world.network.connect("c1", "n1", client)
