"""Nodes with wall clocks of their own: what their programs see, and what they do not."""

import platform
import struct
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.arms import ClockWarp
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import US_PER_MS
from splitbrain.contracts.runtime import DeploymentSpec, Mount
from tests.awaiting import await_true
from tests.runtimes.conftest import DOCKER, NAMESPACES, PROCESSES
from tests.runtimes.node_programs import (
    N1,
    N2,
    NAMES,
    PROGRAM,
    RUNTIMES,
    AnyRuntime,
    ask,
    link,
    specification,
)

PORT = "client"
#: Tells both of its clocks at one moment.
CLOCKS = PROGRAM.replace(
    'return f"{time.monotonic()}"', 'return f"{time.time()} {time.monotonic()}"'
)
AN_HOUR_MS = 3_600_000
#: Time that asking may take on a machine under load.
SLACK_MS = 500


have_clocks = pytest.mark.parametrize("deployed", [DOCKER, NAMESPACES], indirect=True)


def clocked(spec: DeploymentSpec) -> DeploymentSpec:
    """As everywhere here, with clocks of their own."""
    nodes = tuple(
        msgspec.structs.replace(
            node, command=tuple(CLOCKS if word == PROGRAM else word for word in node.command)
        )
        for node in spec.nodes
    )
    return msgspec.structs.replace(spec, nodes=nodes, clocks="own")


@pytest.fixture(scope="module")
def dress() -> Callable[[DeploymentSpec], DeploymentSpec]:
    return clocked


def clocks(cluster: AnyRuntime) -> tuple[float, float]:
    wall, monotonic = ask(cluster, N1, "beat").split()
    return float(wall), float(monotonic)


def is_ahead(cluster: AnyRuntime, offset_ms: int) -> bool:
    return abs(cluster.clocks.offset_ms(N1) - offset_ms) < SLACK_MS


@have_clocks
def test_a_clock_that_nobody_touched_is_right(cluster: AnyRuntime) -> None:
    assert "clock" in cluster.capabilities()
    assert all(abs(cluster.clocks.offset_ms(node)) < SLACK_MS for node in NAMES)


@have_clocks
@pytest.mark.parametrize("offset_ms", [AN_HOUR_MS, -AN_HOUR_MS, -1_500])
def test_a_jump_is_seen_and_monotonic_time_goes_on(cluster: AnyRuntime, offset_ms: int) -> None:
    wall, monotonic = clocks(cluster)
    cluster.clocks.warp(N1, ClockWarp(offset_us=offset_ms * US_PER_MS))
    cluster.clocks.warp(N1, ClockWarp(offset_us=offset_ms * US_PER_MS))
    later, on = clocks(cluster)
    assert abs((later - wall) - (on - monotonic) - offset_ms / 1000) < SLACK_MS / 1000
    assert is_ahead(cluster, offset_ms)
    assert abs(cluster.clocks.offset_ms(N2)) < SLACK_MS
    cluster.clocks.unwarp(N1)
    cluster.clocks.unwarp(N1)
    right, at = clocks(cluster)
    assert abs((right - wall) - (at - monotonic)) < SLACK_MS / 1000
    assert is_ahead(cluster, 0)


@have_clocks
@pytest.mark.parametrize("drift_ppm", [500_000, -500_000])
def test_a_drift_grows_and_is_gone_when_undone(cluster: AnyRuntime, drift_ppm: int) -> None:
    wall, monotonic = clocks(cluster)
    cluster.clocks.warp(N1, ClockWarp(drift_ppm=drift_ppm))

    def is_far_off() -> bool:
        return abs(cluster.clocks.offset_ms(N1)) > SLACK_MS

    await_true(is_far_off)
    assert (cluster.clocks.offset_ms(N1) > 0) == (drift_ppm > 0)
    later, on = clocks(cluster)
    rate = (later - wall) / (on - monotonic)
    assert (rate > 1.05) if drift_ppm > 0 else (rate < 0.95)
    cluster.clocks.unwarp(N1)
    assert is_ahead(cluster, 0)


@have_clocks
def test_a_wrong_clock_outlasts_its_node_and_can_be_read(cluster: AnyRuntime) -> None:
    cluster.clocks.warp(N1, ClockWarp(offset_us=AN_HOUR_MS * US_PER_MS))
    cluster.kill(N1)
    assert is_ahead(cluster, AN_HOUR_MS)
    cluster.start(N1)
    await_true(lambda: cluster.reachable(link(N1, N1), PORT, 1.0))
    assert is_ahead(cluster, AN_HOUR_MS)
    wall, _ = clocks(cluster)
    assert wall - float(ask(cluster, N2, "beat").split()[0]) > AN_HOUR_MS / 2000


@have_clocks
def test_healing_all_sets_every_clock_right(cluster: AnyRuntime) -> None:
    cluster.clocks.warp(N1, ClockWarp(offset_us=AN_HOUR_MS * US_PER_MS, drift_ppm=100_000))
    cluster.heal_all()
    assert is_ahead(cluster, 0)


@pytest.mark.parametrize("name", [DOCKER, NAMESPACES, PROCESSES])
def test_nodes_without_clocks_of_their_own_refuse_and_say_so(name: str, run_folder: Path) -> None:
    runtime = RUNTIMES[name]()
    try:
        runtime.deploy(specification(runtime, run_folder))
        with pytest.raises(CapabilityError, match="clock"):
            runtime.clocks.warp(N1, ClockWarp(offset_us=1_000))
    finally:
        runtime.teardown()


#: Machine code that waits for ever (``ppoll`` without an end), by the machine's name.
FOREVER = {
    "x86_64": bytes.fromhex("31ff31f631d24d31d2b80f0100000f05ebef"),
    "aarch64": struct.pack(
        "<7I", 0xD2800928, 0xD2800000, 0xD2800001, 0xD2800002, 0xD2800003, 0xD4000001, 0x17FFFFFA
    ),
}


def static_program() -> bytes:
    """The smallest program that names no loader."""
    code, base = FOREVER[platform.machine()], 0x400000
    kind = {"x86_64": 62, "aarch64": 183}[platform.machine()]
    size = 64 + 56
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 2, kind, 1, base + size, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    length = size + len(code)
    return (
        ident + header + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, length, length, 4096) + code
    )


@pytest.mark.parametrize("name", [DOCKER, NAMESPACES])
def test_a_static_program_is_refused_with_the_reason(name: str, run_folder: Path) -> None:
    runtime = RUNTIMES[name]()
    folder = run_folder.absolute() / "programs"
    folder.mkdir()
    program = folder / "waits"
    program.write_bytes(static_program())
    program.chmod(0o755)
    spec = specification(runtime, run_folder, [N1], command=[str(program)])
    (node,) = spec.nodes
    node = msgspec.structs.replace(node, mounts=(Mount(folder, str(folder), read_only=True),))
    try:
        with pytest.raises(CapabilityError, match="linked statically"):
            runtime.deploy(msgspec.structs.replace(spec, nodes=(node,), clocks="own"))
        assert list(runtime.nodes()) == []
    finally:
        runtime.teardown()
