"""Containers that tests need beside the system under test, driven by testcontainers.

Its reaper stays off: it would have to be pulled, and it would be one more container to be reaped.
Instead each container bears a lock file that the test process holds, as everything does that a run
makes. Where the test process dies, the lock is free, and what is left is found: a helper's
container by ``splitbrain clean`` and by the start of any run, because it bears the labels of a
run; a foreign one, which must look like nobody's of ours, by the next use of its fixture.
"""

import http.client
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import NotFound
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from splitbrain.contracts.names import RunId
from splitbrain.runtimes.dead_runs import is_living
from splitbrain.runtimes.docker.images import POD, Images
from splitbrain.runtimes.docker.names import RunMark, mark_of_run
from splitbrain.runtimes.owners import this_process

testcontainers_config.ryuk_disabled = True

#: Lock of the tests that a foreign container serves; no sweep of ours may know this label.
FOREIGN_LABEL = "splitbrain-tests.lock"
PORT = 8000
_ANSWER_PATIENCE_S = 20.0


class WebServer(DockerContainer):
    """A web server in an image of ours; on this machine's loopback interface only."""

    def __init__(self, image: str, labels: Mapping[str, str]) -> None:
        super().__init__(
            image,
            command=f"-u -m http.server {PORT} --directory /opt",
            entrypoint=["python3"],
            labels=dict(labels),
            stop_signal="SIGKILL",
        )
        # The library's own way publishes on every interface.
        ports: dict[str, Any] = self.ports
        ports[f"{PORT}/tcp"] = ("127.0.0.1", None)

    def start(self) -> "WebServer":
        super().start()
        self.await_answer()
        return self

    @property
    def port(self) -> int:
        return int(self.get_exposed_port(PORT))

    def await_answer(self) -> None:
        """Return when it answers; raises what the last try raised."""
        Retrying(
            retry=retry_if_exception_type((OSError, http.client.HTTPException, NotFound)),
            stop=stop_after_delay(_ANSWER_PATIENCE_S),
            wait=wait_fixed(0.05),
            reraise=True,
        )(self.answer)

    def answer(self) -> int:
        """The status that it answers with."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status
        finally:
            connection.close()


def helper_image(client: DockerClient) -> str:
    """An image of ours that is in the engine and holds a Python."""
    return Images(client).ensure(())[POD.name]


def helper_mark(lock: Path) -> RunMark:
    """The mark of a helper's container: that of a run of its own."""
    return mark_of_run(RunId(f"helper-{uuid.uuid4().hex[:8]}"), lock, this_process().word())


def sweep_foreign(client: DockerClient) -> list[str]:
    """Remove foreign containers whose tests are dead; returns their ids."""
    removed: list[str] = []
    for container in client.containers.list(all=True, filters={"label": FOREIGN_LABEL}):
        if not is_living(Path(container.labels[FOREIGN_LABEL])):
            container.remove(force=True)
            removed.append(str(container.id))
    return removed
