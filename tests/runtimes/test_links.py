"""Bad networks, in every runtime whose nodes have networks: each bites, one way, and heals.

Bounds are wide: chance has its say, and the machine may be busy. Asked against measured figures
for the record are the business of ``bench``.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.arms import LinkQuality, Shape
from splitbrain.contracts.errors import CapabilityError, HarnessError, UsageError
from splitbrain.contracts.fault import Link
from splitbrain.runtimes.local.process_table import descendants
from tests.awaiting import await_true
from tests.runtimes.conftest import DOCKER, NAMESPACES, PROCESSES
from tests.runtimes.node_programs import N1, N2, PORT, AnyRuntime, ask, link

THERE, BACK, ASIDE = link("n1", "n2"), link("n2", "n1"), link("n1", "n3")
BOTH = [THERE, BACK]
#: Longest that a measurement waits for answers.
PATIENCE_S = 10.0

have_networks = pytest.mark.parametrize("deployed", [DOCKER, NAMESPACES], indirect=True)
pytestmark = pytest.mark.timeout(180)

LOSSY = Shape(loss=0.2)
LATE = Shape(delay_us=100_000)
UNSTEADY = Shape(delay_us=100_000, jitter_us=50_000)
OVERTAKING = Shape(delay_us=50_000, reorder=0.2)
DOUBLED = Shape(duplicate=0.2)
SLOW = Shape(rate_kbit=500)
BLACK_HOLE = Shape(bytes_max=600)
SHAPES = {
    "loss": LOSSY,
    "delay": LATE,
    "jitter": UNSTEADY,
    "reorder": OVERTAKING,
    "duplicate": DOUBLED,
    "rate": SLOW,
    "black-hole": BLACK_HOLE,
}


def reset_links(cluster: AnyRuntime) -> set[Link]:
    links: Any = cluster.links
    return set(links.reset_links())


def measured(cluster: AnyRuntime, probes: int = 400) -> LinkQuality:
    return cluster.links.measure(THERE, probes, PATIENCE_S)


def is_clean(seen: LinkQuality) -> bool:
    return (
        (seen.arrived, seen.doubled, seen.large_arrived) == (seen.sent, 0, seen.large_sent)
        and seen.median_ms is not None
        and seen.median_ms < 20
    )


def await_clean(cluster: AnyRuntime, *probes: int) -> None:
    """A busy machine delivers late for a while; what a shape left behind stays."""
    await_true(lambda: is_clean(measured(cluster, *probes)))


def is_late_by(expected_ms: float, seen: LinkQuality) -> bool:
    # A busy machine delivers late, and then unevenly.
    noise_ms = 10 + (seen.spread_ms or 0.0)
    return seen.median_ms is not None and (
        expected_ms * 0.8 - 1 <= seen.median_ms <= expected_ms * 1.2 + noise_ms
    )


def bites(shape: Shape, seen: LinkQuality) -> bool:
    """Whether the figures are those of the shape."""
    late = is_late_by(shape.delay_us / 1000, seen)
    lost = 1 - seen.arrived / seen.sent
    if shape is LOSSY:
        return late and 0.12 <= lost <= 0.28
    if shape is OVERTAKING:
        return lost == 0 and 0.05 <= seen.overtaking / seen.sent <= 0.35
    if shape is DOUBLED:
        return late and lost == 0 and 0.12 <= seen.doubled / seen.sent <= 0.28
    if shape is SLOW:
        return seen.kbit is not None and 350 <= seen.kbit <= 650
    if shape is BLACK_HOLE:
        return (seen.arrived, seen.large_arrived) == (seen.sent // 2, 0)
    return late and lost == 0


@have_networks
def test_a_link_without_a_shape_is_clean(cluster: AnyRuntime) -> None:
    await_clean(cluster)
    assert cluster.links.shaped() == {}


@have_networks
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_bites_and_heals(cluster: AnyRuntime, name: str) -> None:
    shape = SHAPES[name]
    assert cluster.links.shape([THERE], shape) != "nothing"
    assert cluster.links.shaped() == {THERE: shape}
    seen = measured(cluster)
    assert bites(shape, seen), seen
    cluster.links.unshape([THERE])
    assert cluster.links.shaped() == {}
    await_clean(cluster)


@have_networks
def test_a_shape_is_of_one_direction_and_of_one_link_alone(cluster: AnyRuntime) -> None:
    cluster.links.shape([THERE], Shape(loss=1.0))
    for other in (BACK, ASIDE):
        # Answers go the other way, so the way back shows at the far end alone.
        seen = cluster.links.measure(other, 50, 1.0)
        assert (seen.arrived, seen.doubled) == (50, 0)
    seen = cluster.links.measure(THERE, 50, 1.0)
    assert (seen.arrived, seen.median_ms) == (0, None)
    assert not cluster.reachable(THERE, PORT, 0.5)
    assert cluster.reachable(ASIDE, PORT, 2.0)


@have_networks
def test_figures_are_those_that_were_asked_for(cluster: AnyRuntime) -> None:
    cluster.links.shape([THERE, BACK], Shape(loss=0.05, delay_us=40_000, rate_kbit=8000))
    seen = measured(cluster)
    assert is_late_by(80, seen), seen
    assert 0.01 <= 1 - seen.arrived / seen.sent <= 0.1


@have_networks
def test_a_later_shape_replaces_an_earlier_one(cluster: AnyRuntime) -> None:
    cluster.links.shape(BOTH, Shape(delay_us=500_000, loss=0.5, rate_kbit=100))
    cluster.links.shape([THERE], LOSSY)
    cluster.links.shape([THERE], LOSSY)
    assert cluster.links.shaped()[THERE] == LOSSY
    cluster.links.unshape([BACK])
    assert cluster.links.shaped() == {THERE: LOSSY}
    assert bites(LOSSY, measured(cluster))
    cluster.links.unshape(BOTH)
    cluster.links.unshape(BOTH)
    await_clean(cluster)


@have_networks
def test_a_shape_and_a_cut_go_on_beside_each_other(cluster: AnyRuntime) -> None:
    cluster.links.shape([THERE], LATE)
    cluster.cut([THERE])
    assert (set(cluster.cut_links()), cluster.links.shaped()) == ({THERE}, {THERE: LATE})
    assert cluster.links.measure(THERE, 20, 1.0).arrived == 0
    cluster.restore([THERE])
    assert bites(LATE, measured(cluster, 100))
    cluster.cut([THERE])
    cluster.links.unshape([THERE])
    assert (set(cluster.cut_links()), cluster.links.shaped()) == ({THERE}, {})
    assert cluster.links.measure(THERE, 20, 1.0).arrived == 0


@have_networks
@pytest.mark.parametrize(
    ("shape", "outcome"), [(Shape(delay_us=3_000_000), "stalled"), (Shape(loss=1.0), "stalled")]
)
def test_open_connections_feel_a_shape(cluster: AnyRuntime, shape: Shape, outcome: str) -> None:
    assert ask(cluster, N1, "open", N2) == "open"
    cluster.links.shape([THERE], shape)
    assert ask(cluster, N1, "ask", N2) == outcome
    cluster.links.unshape([THERE])
    assert ask(cluster, N1, "open", N2) == "open"
    assert ask(cluster, N1, "ask", N2) == "answered"


@have_networks
def test_a_black_hole_swallows_large_packets_of_connections(cluster: AnyRuntime) -> None:
    # Small requests and answers pass; a large answer never does, in whatever pieces it was sent.
    assert ask(cluster, N2, "fetch", N1, "20") == "20"
    cluster.links.shape([THERE], BLACK_HOLE)
    assert ask(cluster, N2, "fetch", N1, "20") == "20"
    assert ask(cluster, N2, "fetch", N1, "100000") == "stalled"
    cluster.links.unshape([THERE])
    assert ask(cluster, N2, "fetch", N1, "100000") == "100000"


@have_networks
def test_packets_are_as_large_as_on_a_wire(cluster: AnyRuntime) -> None:
    # A virtual network would hand over much at once, and this limit would swallow it.
    cluster.links.shape([THERE], Shape(bytes_max=1500))
    assert ask(cluster, N2, "fetch", N1, "300000") == "300000"


@have_networks
def test_a_reset_ends_open_connections_at_both_ends(cluster: AnyRuntime) -> None:
    assert ask(cluster, N1, "open", N2) == "open"
    assert ask(cluster, N2, "open", N1) == "open"
    cluster.links.reset(BOTH)
    cluster.links.reset(BOTH)
    assert reset_links(cluster) == set(BOTH)
    assert ask(cluster, N1, "ask", N2) == "reset"
    assert ask(cluster, N2, "ask", N1) == "reset"
    assert not cluster.reachable(THERE, PORT, 1.0)
    assert cluster.reachable(ASIDE, PORT, 2.0)
    # Datagrams are no connection: all arrive, however long a busy machine takes.
    assert measured(cluster, 50).arrived == 50
    cluster.links.unreset(BOTH)
    assert reset_links(cluster) == set()
    assert cluster.reachable(THERE, PORT, 2.0)
    assert ask(cluster, N1, "open", N2) == "open"
    assert ask(cluster, N1, "ask", N2) == "answered"


@have_networks
def test_a_reset_of_one_direction_leaves_the_other_links_alone(cluster: AnyRuntime) -> None:
    cluster.links.reset([THERE])
    assert reset_links(cluster) == {THERE}
    cluster.links.reset([ASIDE])
    cluster.links.unreset([THERE])
    assert reset_links(cluster) == {ASIDE}
    assert cluster.reachable(THERE, PORT, 2.0)


@have_networks
def test_heal_all_lets_every_link_be_as_it_was(cluster: AnyRuntime) -> None:
    cluster.links.shape([THERE], UNSTEADY)
    cluster.links.shape([ASIDE], SLOW)
    cluster.links.reset([BACK])
    cluster.heal_all()
    assert (cluster.links.shaped(), reset_links(cluster)) == ({}, set())
    await_clean(cluster)
    # Nothing of before comes back with the next one.
    cluster.links.shape([BACK], LOSSY)
    assert cluster.links.shaped() == {BACK: LOSSY}


@have_networks
def test_shapes_outlive_kill_and_start_of_a_node(cluster: AnyRuntime) -> None:
    cluster.links.shape([THERE], LATE)
    cluster.kill(N2)
    cluster.start(N2)
    assert cluster.links.shaped() == {THERE: LATE}
    assert bites(LATE, measured(cluster, 100))


@pytest.fixture
def idle_tools(cluster: AnyRuntime, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Tools that do nothing when they are told to change something, from the call on."""
    tools: Any = cluster.links._tools  # type: ignore[attr-defined]

    def idle() -> None:
        run = tools.run
        monkeypatch.setattr(
            tools, "run", lambda node, words: "" if "set" in words else run(node, words)
        )

    yield idle
    monkeypatch.undo()


@have_networks
def test_a_shape_that_was_not_made_is_noticed(cluster: AnyRuntime, idle_tools: Any) -> None:
    idle_tools()
    for shape in SHAPES.values():
        cluster.links.shape([THERE], shape)
        seen = measured(cluster, 100)
        assert not bites(shape, seen), (shape, seen)
        assert cluster.links.shaped() == {}


@have_networks
def test_a_shape_not_undone_is_noticed(cluster: AnyRuntime, idle_tools: Any) -> None:
    cluster.links.shape([THERE], Shape(loss=0.5, delay_us=50_000))
    idle_tools()
    cluster.links.unshape([THERE])
    assert cluster.links.shaped() == {THERE: Shape(loss=0.5, delay_us=50_000)}
    assert not is_clean(measured(cluster, 100))


@have_networks
def test_a_dead_delayer_lets_everything_pass_and_is_noticed(cluster: AnyRuntime) -> None:
    cluster.links.shape([THERE], LATE)
    ended = kill_the_delayer(cluster)
    assert ended
    assert cluster.links.shaped() == {}
    await_clean(cluster, 100)
    cluster.links.shape([THERE], LATE)
    assert bites(LATE, measured(cluster, 100))


def kill_the_delayer(cluster: AnyRuntime) -> bool:
    """In the network of n2, by the process that it names itself."""
    tools: Any = cluster.links._tools  # type: ignore[attr-defined]
    if cluster.name == "docker":
        code = "import os, packet_queue as p; os.kill(p.ask({})['process'], 9)"
        pod = tools._pod(N2).pause_container
        done: Any = pod.exec_run(["python3", "-c", code], workdir="/opt/splitbrain")
        return done.exit_code == 0
    host: int = cluster.host_process  # type: ignore[attr-defined]
    for number in descendants(host):
        if b"packet_queue.py" in Path(f"/proc/{number}/cmdline").read_bytes():
            os.kill(number, signal.SIGKILL)
            return True
    return False


@have_networks
def test_a_senseless_shape_is_refused(cluster: AnyRuntime) -> None:
    for shape, sign in (
        (Shape(loss=1.5), "share"),
        (Shape(reorder=0.5), "overtaken"),
        (Shape(delay_us=10_000, jitter_us=20_000), "vary"),
        (Shape(rate_kbit=0), "rate"),
        (Shape(bytes_max=0), "bytes_max"),
    ):
        with pytest.raises(UsageError, match=sign):
            cluster.links.shape([THERE], shape)
    assert cluster.links.shaped() == {}


@have_networks
def test_a_link_of_a_node_that_was_not_deployed_is_refused(cluster: AnyRuntime) -> None:
    with pytest.raises(HarnessError, match="not deployed"):
        cluster.links.shape([link("n1", "n9")], LOSSY)


@pytest.mark.parametrize("deployed", [PROCESSES], indirect=True)
def test_plain_processes_refuse_by_name(cluster: AnyRuntime) -> None:
    assert cluster.capabilities().isdisjoint({"loss", "delay", "rate", "black-hole", "reset"})
    with pytest.raises(CapabilityError, match="plain processes"):
        cluster.links.shape([THERE], LOSSY)
    with pytest.raises(CapabilityError, match="plain processes"):
        cluster.links.measure(THERE, 10, 1.0)
