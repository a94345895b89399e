"""Spark standalone in containers: a master, two workers, and drivers, driven by testcontainers.

They bear the marks of a run, so that a sweep finds what a killed test leaves. Workers get no code
of ours beforehand: what jobs import there, the driver ships. All see one folder under one name, as
workers of a real cluster see one store.
"""

import os
import shlex
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
import requests
from docker import DockerClient
from docker.models.networks import Network
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from splitbrain.contracts.runtime import ImageSource
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.images import Images
from splitbrain.runtimes.docker.names import RunMark
from splitbrain.runtimes.docker.network import create_network
from splitbrain.spark_analysis.session import MASTER_VARIABLE
from tests.containers.bystanders.helper_containers import helper_mark
from tests.runtimes.node_programs import living

testcontainers_config.ryuk_disabled = True

IMAGE: Final = ImageSource("splitbrain-spark", "spark", has_wheels=True)
WORKERS: Final = 2
_PROJECT: Final = Path(__file__).resolve().parents[3]
_PYSPARK: Final = Path(pyspark.__file__).parent
_MASTER_PATIENCE_S: Final = 120.0
#: Seconds; a session on a busy machine takes a minute.
_DRIVER_PATIENCE_S: Final = 600


class SparkContainer(DockerContainer):
    """One process of the cluster, in the cluster's network."""

    def __init__(
        self, image: str, network: Network, mark: RunMark, shared: Path, command: list[str]
    ) -> None:
        super().__init__(
            image, command=shlex.join(command), labels=mark.labels(), stop_signal="SIGKILL"
        )
        # The library's own networks take whatever subnet the engine offers.
        self.with_kwargs(network=network.name)
        self.with_volume_mapping(str(_PYSPARK), "/opt/spark/pyspark", "ro")
        self.with_volume_mapping(str(shared), str(shared), "rw")

    @property
    def address(self) -> str:
        """In the cluster's network."""
        container = self.get_wrapped_container()
        container.reload()
        attributes: dict[str, Any] = container.attrs
        (network,) = attributes["NetworkSettings"]["Networks"].values()
        return str(network["IPAddress"])


class Cluster:
    """A running master with its workers."""

    def __init__(
        self, image: str, network: Network, mark: RunMark, shared: Path, master: SparkContainer
    ) -> None:
        self._image = image
        self._network = network
        self._mark = mark
        self._shared = shared
        self._address = master.address

    @property
    def url(self) -> str:
        return f"spark://{self._address}:7077"

    def state(self) -> dict[str, Any]:
        """Return the master's state; empty while it does not answer."""
        try:
            answer = requests.get(f"http://{self._address}:8080/json/", timeout=5)
            return dict(answer.json())
        except (requests.RequestException, ValueError):
            return {}

    def await_workers(self) -> None:
        """Return when all workers are at its service."""
        Retrying(
            retry=retry_if_result(lambda state: state.get("aliveworkers") != WORKERS),
            stop=stop_after_delay(_MASTER_PATIENCE_S),
            wait=wait_fixed(0.2),
        )(self.state)

    def run_driver(self, command: list[str], **environment: str) -> tuple[int, str]:
        """Run a program with the project's code and this cluster; its exit code and output."""
        driver = SparkContainer(self._image, self._network, self._mark, self._shared, command)
        driver.with_volume_mapping(str(_PROJECT), "/opt/project", "ro")
        driver.with_env("PYTHONPATH", "/opt/project:/opt/spark:/opt/wheels")
        driver.with_env(MASTER_VARIABLE, self.url)
        for name, value in environment.items():
            driver.with_env(name, value)
        with driver:
            container = driver.get_wrapped_container()
            code = int(container.wait(timeout=_DRIVER_PATIENCE_S)["StatusCode"])
            return code, container.logs().decode()

    def hand_over(self) -> None:
        """Make the shared folder's files this user's; those of containers are root's."""
        owner = f"{os.getuid()}:{os.getgid()}"
        self.run_driver(["chown", "-R", owner, str(self._shared)])


@contextmanager
def standalone(client: DockerClient, folder: Path) -> Generator[Cluster]:
    """A cluster whose members all see ``folder / "shared"``."""
    image = Images(client).ensure([IMAGE])[IMAGE.name]
    shared = folder / "shared"
    shared.mkdir()
    with living(folder):
        mark = helper_mark(RunFolder(folder).lock)
        network, _ = create_network(client, mark)
        try:
            with ExitStack() as running:

                def start(*command: str) -> SparkContainer:
                    container = SparkContainer(image, network, mark, shared, list(command))
                    running.callback(container.stop)
                    container.start()
                    return container

                cluster = Cluster(image, network, mark, shared, start("master"))
                for _ in range(WORKERS):
                    start("worker", cluster.url, "--cores", "1", "--memory", "1g")
                cluster.await_workers()
                yield cluster
                cluster.hand_over()
        finally:
            network.remove()
