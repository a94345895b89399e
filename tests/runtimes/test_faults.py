"""Faults of every runtime on nodes, and of some on links, looked at from outside."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from tests.awaiting import await_true
from tests.runtimes.conftest import DOCKER, NAMESPACES
from tests.runtimes.node_programs import N1, N2, N3, NAMES, PORT, AnyRuntime, ask, link, serves

#: Only where each node has a network of its own.
can_cut = pytest.mark.parametrize("deployed", [DOCKER, NAMESPACES], indirect=True)


#: Datagrams that look at one direction of a link.
PROBES = 20


def arrived(cluster: AnyRuntime, source: str, destination: str) -> int:
    return cluster.links.measure(link(source, destination), PROBES, 2.0).arrived


def test_clients_reach_every_node_by_a_loopback_address(cluster: AnyRuntime) -> None:
    addresses = [cluster.endpoint(name, PORT) for name in NAMES]
    assert all(address.host.startswith("127.") for address in addresses)
    assert len({(address.host, address.port) for address in addresses}) == 3
    for name in NAMES:
        assert ask(cluster, name, "greeting") == f"I am {name}"


@can_cut
def test_nodes_know_each_other_and_themselves_by_name(cluster: AnyRuntime) -> None:
    seen = {name: ask(cluster, N1, "address-of", name) for name in NAMES}
    assert len(set(seen.values())) == 3
    assert ask(cluster, N2, "address-of", N3) == seen[N3]
    assert [ask(cluster, name, "host-name") for name in NAMES] == list(NAMES)


def test_every_link_is_reachable_before_any_fault(cluster: AnyRuntime) -> None:
    for source in NAMES:
        for destination in NAMES:
            assert cluster.reachable(link(source, destination), PORT, 2.0)


@can_cut
def test_a_cut_in_one_direction_drops_that_direction_alone(cluster: AnyRuntime) -> None:
    cluster.cut([link("n1", "n2")])
    assert arrived(cluster, "n1", "n2") == 0
    assert arrived(cluster, "n2", "n1") == PROBES
    assert arrived(cluster, "n1", "n3") == PROBES
    assert set(cluster.cut_links()) == {link("n1", "n2")}
    # A connection needs both directions.
    assert not cluster.reachable(link("n1", "n2"), PORT, 0.5)
    assert not cluster.reachable(link("n2", "n1"), PORT, 0.5)
    assert cluster.reachable(link("n1", "n3"), PORT, 2.0)


@can_cut
def test_an_isolated_node_still_answers_clients_on_this_machine(cluster: AnyRuntime) -> None:
    cluster.cut([link("n1", "n2"), link("n2", "n1"), link("n1", "n3"), link("n3", "n1")])
    assert not cluster.reachable(link("n2", "n1"), PORT, 0.5)
    assert cluster.reachable(link("n2", "n3"), PORT, 2.0)
    assert serves(cluster, N1)


@can_cut
def test_restore_undoes_these_links_and_no_others(cluster: AnyRuntime) -> None:
    cluster.cut([link("n1", "n2"), link("n1", "n3")])
    cluster.restore([link("n1", "n2")])
    assert set(cluster.cut_links()) == {link("n1", "n3")}
    assert cluster.reachable(link("n1", "n2"), PORT, 2.0)


@can_cut
def test_cutting_and_restoring_twice_is_the_same_as_once(cluster: AnyRuntime) -> None:
    both = [link("n1", "n2"), link("n2", "n1")]
    cluster.cut(both)
    cluster.cut(both)
    cluster.restore(both)
    assert set(cluster.cut_links()) == set()
    cluster.restore(both)
    assert cluster.reachable(link("n1", "n2"), PORT, 2.0)


@can_cut
@pytest.mark.parametrize(("cut", "outcome"), [(True, "stalled"), (False, "answered")])
def test_open_connections_stall_on_cut_links(cluster: AnyRuntime, cut: bool, outcome: str) -> None:
    assert ask(cluster, N1, "open", N2) == "open"
    if cut:
        cluster.cut([link("n2", "n1")])
    assert ask(cluster, N1, "ask", N2) == outcome


@pytest.mark.parametrize(
    "deployed", [pytest.param("processes", marks=pytest.mark.slow)], indirect=True
)
def test_plain_processes_refuse_to_be_cut_by_name(cluster: AnyRuntime) -> None:
    assert "partition" not in cluster.capabilities()
    with pytest.raises(HarnessError, match=r"partition.*plain processes"):
        cluster.cut([link("n1", "n2")])


def test_a_paused_node_is_not_reachable_and_comes_back(cluster: AnyRuntime) -> None:
    cluster.pause(N2)
    cluster.pause(N2)
    assert cluster.status(N2) == "paused"
    assert not cluster.reachable(link("n1", "n2"), PORT, 0.5)
    cluster.resume(N2)
    cluster.resume(N2)
    assert cluster.status(N2) == "running"
    assert cluster.reachable(link("n1", "n2"), PORT, 2.0)


@pytest.mark.parametrize("paused", [False, True])
def test_kill_and_start_keep_data_and_port(cluster: AnyRuntime, paused: bool) -> None:
    port = cluster.endpoint(N2, PORT)
    starts = ask(cluster, N2, "starts").count("started")
    if paused:
        cluster.pause(N2)
    cluster.kill(N2)
    assert (cluster.status(N2), cluster.exit_code(N2)) == ("exited", 137)
    assert not serves(cluster, N2)
    cluster.kill(N2)
    cluster.start(N2)
    cluster.start(N2)
    assert (cluster.status(N2), cluster.exit_code(N2)) == ("running", None)
    await_true(lambda: serves(cluster, N2))
    assert cluster.endpoint(N2, PORT) == port
    assert ask(cluster, N2, "starts").count("started") == starts + 1


@can_cut
def test_rules_outlive_kill_and_start(cluster: AnyRuntime) -> None:
    cluster.cut([link("n1", "n2")])
    cluster.kill(N2)
    cluster.start(N2)
    await_true(lambda: serves(cluster, N2))
    assert set(cluster.cut_links()) == {link("n1", "n2")}
    assert not cluster.reachable(link("n1", "n2"), PORT, 0.5)


def test_a_client_sees_the_death_of_its_node(cluster: AnyRuntime) -> None:
    with ThreadPoolExecutor(1) as pool:
        # It hangs until the node dies: nobody answers what a paused node was asked.
        cluster.pause(N3)
        asking = pool.submit(serves, cluster, N3)
        cluster.kill(N3)
        assert asking.result(timeout=10) is False


def test_all_processes_of_a_node_die_with_it(cluster: AnyRuntime) -> None:
    before = cluster.sample(N1)
    assert before is not None
    ask(cluster, N1, "child")
    cluster.kill(N1)
    assert cluster.status(N1) == "exited"
    cluster.start(N1)
    await_true(lambda: serves(cluster, N1))
    assert cluster.sample(N1) is not None


def test_heal_all_resumes_but_starts_nothing(cluster: AnyRuntime) -> None:
    cluster.pause(N1)
    cluster.kill(N3)
    cluster.heal_all()
    cluster.heal_all()
    assert [cluster.status(name) for name in NAMES] == ["running", "running", "exited"]


@can_cut
def test_heal_all_removes_every_rule(cluster: AnyRuntime) -> None:
    cluster.cut([link("n1", "n2"), link("n3", "n2")])
    cluster.heal_all()
    assert set(cluster.cut_links()) == set()
    assert cluster.reachable(link("n3", "n2"), PORT, 2.0)


@pytest.mark.parametrize("code", [0, 3])
def test_a_node_that_exits_shows_its_own_exit_code(cluster: AnyRuntime, code: int) -> None:
    with pytest.raises((OSError, Exception)):
        ask(cluster, N1, "exit", str(code))
    await_true(lambda: cluster.status(N1) == "exited")
    assert cluster.exit_code(N1) == code


def test_samples_grow_with_work_and_stop_with_the_node(cluster: AnyRuntime) -> None:
    before = cluster.sample(N1)
    assert before is not None
    assert 1_000_000 < before.memory_bytes < 128 * 1024 * 1024
    for _ in range(200):
        ask(cluster, N1, "starts")
    after = cluster.sample(N1)
    assert after is not None
    assert after.cpu_seconds_total > before.cpu_seconds_total
    cluster.kill(N1)
    assert cluster.sample(N1) is None


def test_output_and_data_of_killed_nodes_are_collected(cluster: AnyRuntime, tmp_path: Path) -> None:
    ask(cluster, N1, "starts")
    cluster.kill(N1)
    cluster.collect(N1, tmp_path, with_data=True)
    cluster.collect(N1, tmp_path, with_data=True)
    assert "GET /starts" in (tmp_path / "output.log").read_text()
    assert (tmp_path / "data" / "starts").read_text().startswith("started")
    assert "GET /starts" in cluster.log_tail(N1, 5)
    cluster.collect(N2, tmp_path / "n2", with_data=False)
    assert not (tmp_path / "n2" / "data").exists()


def test_of_a_nodes_data_the_named_parts_alone_are_collected(
    cluster: AnyRuntime, tmp_path: Path
) -> None:
    ask(cluster, N1, "starts")
    # Of a file, a folder and what is not there.
    chosen = ("starts", "not-there/at-all")
    runtime: Any = cluster
    if cluster.name == "docker":
        pod = runtime._pods[N1]
        pod.spec = msgspec.structs.replace(pod.spec, collected=chosen)
    else:
        runtime._specs[N1] = msgspec.structs.replace(runtime._specs[N1], collected=chosen)
    cluster.collect(N1, tmp_path, with_data=True)
    there = [path.relative_to(tmp_path / "data") for path in (tmp_path / "data").rglob("*")]
    assert [str(path) for path in there] == ["starts"]
    assert (tmp_path / "data" / "starts").read_text().startswith("started")


def test_versions_name_the_kernel_and_of_an_engine_its_images(cluster: AnyRuntime) -> None:
    versions = cluster.versions()
    assert versions["kernel"]
    if cluster.name == "docker":
        assert versions["engine"]
        digests = [value for name, value in versions.items() if name.startswith("image ")]
        assert digests
        assert all(value.startswith("sha256:") for value in digests)


def test_an_undeployed_name_is_refused_in_one_sentence(cluster: AnyRuntime) -> None:
    with pytest.raises(HarnessError, match=r"n7.*deployed: n1, n2, n3"):
        cluster.status(NodeName("n7"))
    with pytest.raises(HarnessError, match="n1/admin"):
        cluster.endpoint(N1, "admin")
