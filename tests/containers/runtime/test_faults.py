"""What the docker runtime does to nodes and links, looked at from outside."""

import http.client
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from docker import DockerClient

from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.runtime import DeploymentSpec
from runtimes.docker.runtime import DockerRuntime
from tests.containers.web_servers import NAMES, await_true, in_node, link

pytestmark = pytest.mark.containers

N1, N2, N3 = NAMES


def get(runtime: DockerRuntime, node: NodeName, path: str) -> str:
    address = runtime.endpoint(node, "client")
    connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def serves(runtime: DockerRuntime, node: NodeName) -> bool:
    try:
        return bool(get(runtime, node, "/starts"))
    except (OSError, http.client.HTTPException):
        return False


def test_clients_on_this_machine_reach_every_node_on_a_loopback_port(
    cluster: DockerRuntime,
) -> None:
    addresses = [cluster.endpoint(name, "client") for name in NAMES]
    assert {address.host for address in addresses} == {"127.0.0.1"}
    assert len({address.port for address in addresses}) == 3
    for name in NAMES:
        assert get(cluster, name, "/starts").startswith("started")


def test_nodes_know_each_other_and_themselves_by_name(
    cluster: DockerRuntime, spec: DeploymentSpec, engine: DockerClient
) -> None:
    hosts = in_node(engine, spec.run_id, N1, ["cat", "/etc/hosts"])
    assert {"n1", "n2", "n3"} <= set(hosts.split())
    assert in_node(engine, spec.run_id, N1, ["hostname"]).strip() == "n1"


def test_every_link_is_reachable_before_any_fault(cluster: DockerRuntime) -> None:
    for source in NAMES:
        for destination in NAMES:
            assert cluster.reachable(link(source, destination), "client", 2.0)


def test_a_cut_in_one_direction_drops_that_direction_alone(cluster: DockerRuntime) -> None:
    cluster.cut([link("n1", "n2")])
    assert not cluster.delivers(link("n1", "n2"), 0.5)
    assert cluster.delivers(link("n2", "n1"), 2.0)
    assert cluster.delivers(link("n1", "n3"), 2.0)
    assert cluster.cut_links() == {link("n1", "n2")}
    # A connection needs both directions.
    assert not cluster.reachable(link("n1", "n2"), "client", 0.5)
    assert not cluster.reachable(link("n2", "n1"), "client", 0.5)
    assert cluster.reachable(link("n1", "n3"), "client", 2.0)


def test_an_isolated_node_still_answers_clients_on_this_machine(cluster: DockerRuntime) -> None:
    cluster.cut([link("n1", "n2"), link("n2", "n1"), link("n1", "n3"), link("n3", "n1")])
    assert not cluster.reachable(link("n2", "n1"), "client", 0.5)
    assert cluster.reachable(link("n2", "n3"), "client", 2.0)
    assert serves(cluster, N1)


def test_restore_undoes_these_links_and_no_others(cluster: DockerRuntime) -> None:
    cluster.cut([link("n1", "n2"), link("n1", "n3")])
    cluster.restore([link("n1", "n2")])
    assert cluster.cut_links() == {link("n1", "n3")}
    assert cluster.reachable(link("n1", "n2"), "client", 2.0)


def test_cutting_and_restoring_twice_is_the_same_as_once(cluster: DockerRuntime) -> None:
    both = [link("n1", "n2"), link("n2", "n1")]
    cluster.cut(both)
    cluster.cut(both)
    cluster.restore(both)
    assert cluster.cut_links() == frozenset()
    cluster.restore(both)
    assert cluster.reachable(link("n1", "n2"), "client", 2.0)


#: Opens a connection to n2, says so, and asks only when told to.
LATE_QUESTION = """
import pathlib, socket, time
connection = socket.create_connection(("n2", 8000), timeout=5)
pathlib.Path("/data/open").touch()
while not pathlib.Path("/data/ask").exists():
    time.sleep(0.01)
connection.settimeout(1)
connection.sendall(b"GET /starts HTTP/1.0\\r\\n\\r\\n")
try:
    print("answered", len(connection.recv(10)))
except TimeoutError:
    print("stalled")
"""


@pytest.mark.parametrize(("cut", "outcome"), [(True, "stalled"), (False, "answered 10")])
def test_an_open_connection_stalls_on_a_cut_link(
    cluster: DockerRuntime, spec: DeploymentSpec, engine: DockerClient, cut: bool, outcome: str
) -> None:
    in_node(engine, spec.run_id, N1, ["rm", "-f", "/data/open", "/data/ask"])
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(in_node, engine, spec.run_id, N1, ["python3", "-c", LATE_QUESTION])
        await_true(lambda: "open" in in_node(engine, spec.run_id, N1, ["ls", "/data"]))
        if cut:
            cluster.cut([link("n2", "n1")])
        in_node(engine, spec.run_id, N1, ["touch", "/data/ask"])
        assert asking.result().strip() == outcome


def test_a_paused_node_is_not_reachable_and_comes_back(cluster: DockerRuntime) -> None:
    cluster.pause(N2)
    cluster.pause(N2)
    assert cluster.status(N2) == "paused"
    assert not cluster.reachable(link("n1", "n2"), "client", 0.5)
    cluster.resume(N2)
    cluster.resume(N2)
    assert cluster.status(N2) == "running"
    assert cluster.reachable(link("n1", "n2"), "client", 2.0)


@pytest.mark.parametrize("paused", [False, True])
def test_kill_and_start_keep_data_rules_and_port(cluster: DockerRuntime, paused: bool) -> None:
    port = cluster.endpoint(N2, "client")
    starts = get(cluster, N2, "/starts").count("started")
    cluster.cut([link("n1", "n2")])
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
    assert cluster.endpoint(N2, "client") == port
    assert get(cluster, N2, "/starts").count("started") == starts + 1
    assert cluster.cut_links() == {link("n1", "n2")}


def test_heal_all_removes_rules_and_resumes_but_starts_nothing(cluster: DockerRuntime) -> None:
    cluster.cut([link("n1", "n2"), link("n3", "n2")])
    cluster.pause(N1)
    cluster.kill(N3)
    cluster.heal_all()
    cluster.heal_all()
    assert cluster.cut_links() == frozenset()
    assert [cluster.status(name) for name in NAMES] == ["running", "running", "exited"]


def test_a_node_that_exits_by_itself_shows_its_own_exit_code(
    cluster: DockerRuntime, spec: DeploymentSpec, engine: DockerClient
) -> None:
    in_node(engine, spec.run_id, N1, ["sh", "-c", "kill -INT 1"])
    await_true(lambda: cluster.status(N1) == "exited")
    assert cluster.exit_code(N1) == 0


def test_samples_grow_with_work_and_stop_with_the_node(cluster: DockerRuntime) -> None:
    before = cluster.sample(N1)
    assert before is not None
    assert 1_000_000 < before.memory_bytes < 128 * 1024 * 1024
    for _ in range(200):
        get(cluster, N1, "/starts")
    after = cluster.sample(N1)
    assert after is not None
    assert after.cpu_seconds_total > before.cpu_seconds_total
    cluster.kill(N1)
    assert cluster.sample(N1) is None


def test_output_and_data_are_collected_also_from_a_killed_node(
    cluster: DockerRuntime, tmp_path: Path
) -> None:
    get(cluster, N1, "/starts")
    cluster.kill(N1)
    cluster.collect(N1, tmp_path, with_data=True)
    cluster.collect(N1, tmp_path, with_data=True)
    assert "GET /starts" in (tmp_path / "output.log").read_text()
    assert (tmp_path / "data" / "starts").read_text().startswith("started")
    assert "GET /starts" in cluster.log_tail(N1, 5)
    cluster.collect(N2, tmp_path / "n2", with_data=False)
    assert not (tmp_path / "n2" / "data").exists()


def test_versions_name_engine_kernel_and_image_digests(cluster: DockerRuntime) -> None:
    versions = cluster.versions()
    assert versions["engine"]
    assert versions["kernel"]
    digests = [value for name, value in versions.items() if name.startswith("image ")]
    assert len(digests) == 2
    assert all(value.startswith("sha256:") for value in digests)


def test_a_name_that_was_not_deployed_is_refused_in_one_sentence(cluster: DockerRuntime) -> None:
    with pytest.raises(HarnessError, match=r"n7.*deployed: n1, n2, n3"):
        cluster.status(NodeName("n7"))
    with pytest.raises(HarnessError, match="n1/admin"):
        cluster.endpoint(N1, "admin")
