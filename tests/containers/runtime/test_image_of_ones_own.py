"""A test of one's own has an image for a system, and two functions for a client."""

import json
import re
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from docker import DockerClient

from splitbrain.contracts.operations import Operation
from splitbrain.contracts.runtime import Address, ImageSource
from splitbrain.harness.testing.fixture import Splitbrain
from splitbrain.harness.testing.image_system import Ask
from splitbrain.runtimes.docker.images import ROOT, Images

pytestmark = [pytest.mark.containers, pytest.mark.timeout(180)]

PLAIN = ImageSource("splitbrain-plain", "plain")
PAGE = (ROOT / "docs" / "your-system.md").read_text()
SERVER, *_ = re.findall(r'SERVER = """\n(.*?)"""', PAGE, re.DOTALL)


@contextmanager
def connect(address: Address) -> Generator[Ask]:
    with (
        socket.create_connection((address.host, address.port), 1.0) as connection,
        connection.makefile("rwb") as file,
    ):

        def ask(operation: Operation) -> Any:
            request = [operation.f, operation.key, operation.value]
            file.write(json.dumps(request).encode() + b"\n")
            file.flush()
            answer = file.readline()
            if not answer:
                raise EOFError
            return json.loads(answer)

        yield ask


def test_it_is_valid_while_it_is_paused_and_loses_its_memory_once_it_is_killed(
    splitbrain: Splitbrain, engine: DockerClient
) -> None:
    command = ("python3", "-c", SERVER.replace("\\\\n", "\\n"), "0.0.0.0:7000")
    own: dict[str, Any] = {
        "image": Images(engine).ensure([PLAIN])[PLAIN.name],
        "command": command,
        "port": 7000,
        "connect": connect,
        "nodes": 1,
        "runtime": "docker",
        "seed": 1,
    }
    verdicts: dict[str, str] = {}
    for kind in ("pause", "kill"):
        with splitbrain.cluster(**own) as cluster:
            client = cluster.client()
            assert client.write("x", 1).type == "ok"
            with cluster.fault(kind, on="n1"):
                assert client.read("x").type == "fail"
            verdicts[kind] = cluster.judge().headline
    assert verdicts == {"pause": "VALID", "kill": "INVALID"}
