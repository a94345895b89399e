"""From the settings of a run of a compose file to nodes, their containers, and clients' ways."""

import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import Address, ContainerSpec, ImageSource, Mount
from splitbrain.contracts.system import Route, Tempo
from splitbrain.contracts.trial import TrialOptions
from splitbrain.systems.compose_file.adapter import ComposeSystem
from splitbrain.systems.servers import ServerClient
from splitbrain.systems.trial import tried
from tests.unit.systems.pod_place import pod_place

SHOP = """
services:
  web:
    image: web:1
    command: serve --fast
    scale: 2
    environment: {A: "1"}
    volumes: ["./web.conf:/web.conf:ro"]
    hostname: front
  store:
    image: store:1
    entrypoint: /start
    command: --all
    expose: [5000]
    depends_on: [web]
    volumes: ["data:/data", /cache]
    restart: always
volumes: {data: }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "web.conf").write_text("x")
    (tmp_path / "compose.yaml").write_text(SHOP)
    return tmp_path / "compose.yaml"


def adapter(file: Path, **options: Any) -> ComposeSystem:
    options = {"ports": ("web:80",), "driver": "redis", **options}
    experiment, _ = tried(TrialOptions(file=file, **options))
    system = ComposeSystem()
    system.experiment = experiment
    return system


def test_every_copy_is_a_node_with_what_the_file_says(file: Path, tmp_path: Path) -> None:
    system = adapter(file)
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    assert system.experiment is not None
    spec = system.deployment(RunId("r"), run_folder, system.experiment, pod_place)
    one, two, store = spec.nodes
    assert (one.name, one.image, one.command) == ("n1", "web:1", ("serve", "--fast"))
    assert one.environment == {"A": "1"}
    assert one.ports == {"client": 80, "peer": 80}
    assert one.mounts == (Mount(file.parent / "web.conf", "/web.conf", read_only=True),)
    assert one.container == ContainerSpec(
        keeps_entry_point=True, hostname="front", aliases=("web", "web-1", "front")
    )
    assert two.container.aliases == ("web", "web-2", "front")
    assert store.command == ("/start", "--all")
    # Nobody asks it, and it can be knocked at.
    assert store.ports == {"peer": 5000}
    assert store.data_path == "/data"
    assert store.container == ContainerSpec(
        aliases=("store",), volumes=("/cache",), restart="always"
    )
    assert (run_folder / "compose.yaml").read_text() == SHOP
    assert system.images() == (ImageSource("web:1", ""), ImageSource("store:1", ""))
    assert system.versions()["n3"] == "store, store:1"


class Endpoints:
    def endpoint(self, node: NodeName, port: str) -> Address:
        return Address(f"{node}/{port}", 1)


def asked(system: ComposeSystem, node: str) -> str:
    client = system.open_client(Endpoints(), Route("pinned", NodeName(node)))  # pyright: ignore[reportArgumentType]
    assert isinstance(client, ServerClient)
    return client._there.host


def test_clients_ask_targets_alone(file: Path) -> None:
    system = adapter(file)
    assert [asked(system, node) for node in ("n1", "n2", "n3")] == [
        "n1/client",
        "n2/client",
        "n1/client",
    ]
    # A worker process is sent it.
    again = pickle.loads(pickle.dumps(system))
    assert asked(again, "n2") == "n2/client"


def test_a_node_that_waits_for_others_is_started_again(file: Path) -> None:
    system = adapter(file)
    assert [system.starts_again(NodeName(node)) for node in ("n1", "n2", "n3")] == [0, 0, 1]


def test_spared_nodes_are_those_that_faults_at_chance_pass_over(file: Path) -> None:
    system = adapter(file, spares=("web",))
    experiment = system.experiment
    assert experiment is not None
    assert experiment.nodes == 1
    assert experiment.nemesis == "pause,kill"
    assert system.observers(experiment) == ("n2", "n3")
    system.check_options(experiment)


def test_usual_faults_need_two_nodes_for_a_partition(file: Path) -> None:
    experiment = adapter(file).experiment
    assert experiment is not None
    assert experiment.nemesis == "partition,pause,kill"
    # Half a minute, and so on: what is said, and no other system's defaults.
    assert (experiment.time_limit_s, experiment.nodes) == (30.0, 3)


def test_a_driver_without_compare_and_set_gets_none(file: Path) -> None:
    system = adapter(file, driver="http")
    experiment = system.experiment
    assert experiment is not None
    assert system.workload_options("register") == {"cas": "no"}
    assert system.workload_options("set") == {}
    with_it = msgspec.structs.replace(experiment, workload_options={"cas": "yes"})
    with pytest.raises(UsageError, match=r"http has no compare-and-set.*cas out"):
        system.check_options(with_it)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"settings": {"file": "x"}}, "--setting file is no setting of a driver"),
        ({"driver": "http", "settings": {"path": "/x"}}, "--setting path cannot be '/x'"),
    ],
)
def test_settings_are_the_drivers(file: Path, options: dict[str, Any], says: str) -> None:
    def check() -> None:
        system = adapter(file, **options)
        assert system.experiment is not None
        system.check_options(system.experiment)

    with pytest.raises(UsageError, match=says):
        check()


def test_a_run_by_hand_must_fit_the_file(file: Path) -> None:
    system = adapter(file)
    assert system.experiment is not None
    settings = system.experiment.settings
    for options, says in (
        (
            Experiment(system="compose", nodes=2, settings=settings),
            "--nodes is 2, and faults hit 3",
        ),
        (
            Experiment(system="compose", nodes=3, runtime="local", settings=settings),
            "the runtime local has not",
        ),
    ):
        with pytest.raises(UsageError, match=says):
            system.check_options(options)
    bare = ComposeSystem()
    with pytest.raises(UsageError, match="no compose file is named"):
        bare.check_options(Experiment(system="compose"))
    assert (bare.images(), bare.versions(), bare.workloads(None)) == ((), {}, ("register",))


def test_a_driver_of_ones_own_is_a_function_of_a_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text("async def ask(reader, writer, operation):\n    return 7\n")
    (tmp_path / "empty.py").write_text("ask = 3\n")
    monkeypatch.chdir(tmp_path)
    system = adapter(file, driver="own.py")
    assert system.experiment is not None
    assert system.experiment.settings["driver"] == f"{tmp_path}/own.py:ask"
    again = pickle.loads(pickle.dumps(system))
    assert asked(again, "n1") == "n1/client"
    with pytest.raises(UsageError, match="neither a function nor a driver"):
        adapter(file, driver="empty.py")
    with pytest.raises(UsageError, match="holds no nothing"):
        adapter(file, driver="own.py:nothing")


def test_the_driver_says_what_its_protocol_leaves_open_and_how_long_it_takes(file: Path) -> None:
    usual, kafka = adapter(file), adapter(file, driver="kafka")
    assert (usual.reads_speak_for, usual.allowed(), usual.tempo()) == ("cluster", (), Tempo())
    assert kafka.reads_speak_for == "converged"
    assert [(anomaly.checker, anomaly.kind) for anomaly in kafka.allowed()] == [
        ("set-full", "stale")
    ]
    assert kafka.tempo().notices_s == 9
    assert kafka.experiment is not None
    assert kafka.experiment.workload == "set"
    one = adapter(file, driver="kafka", settings={"partitions": "1"})
    # Only then faults are aimed at a leader.
    assert [system.names_leaders for system in (usual, kafka, one, ComposeSystem())] == [0, 0, 1, 0]


def test_a_target_that_is_not_fit_is_told_by_its_service(file: Path) -> None:
    class Nobody(Endpoints):
        def status(self, node: NodeName) -> str:
            return "running"

        def endpoint(self, node: NodeName, port: str) -> Address:
            return Address("127.0.0.1", 1)

    system = adapter(file, driver="kafka")
    with pytest.raises(HarnessError, match="web-1:80: ConnectionRefusedError"):
        system.ready(Nobody())  # pyright: ignore[reportArgumentType]
