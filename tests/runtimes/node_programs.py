"""A small cluster of nodes that do what tests ask of them, the same in every runtime."""

import fcntl
import http.client
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec, NodeSpec, Runtime
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.runtime import DockerRuntime
from splitbrain.runtimes.local.runtime import LocalRuntime
from tests.awaiting import await_true

NAMES = N1, N2, N3 = (NodeName("n1"), NodeName("n2"), NodeName("n3"))
PORT = "client"

#: Counts its starts in its data folder and answers over HTTP; started with address, port, folder.
PROGRAM = """
import http.server, os, pathlib, socket, subprocess, sys, time

address, port, data = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
with (data / "starts").open("a") as starts:
    starts.write("started\\n")
opened = {}


def ask(peer):
    connection = opened.pop(peer)
    connection.settimeout(1)
    connection.sendall(b"GET /starts HTTP/1.0\\r\\n\\r\\n")
    try:
        return "answered" if connection.recv(10) else "closed"
    except TimeoutError:
        return "stalled"
    except ConnectionError:
        return "reset"


def fetch(peer, length):
    try:
        with socket.create_connection((peer, port), timeout=2) as connection:
            connection.sendall(f"GET /many/{length} HTTP/1.0\\r\\n\\r\\n".encode())
            content = b""
            while piece := connection.recv(65536):
                content += piece
    except TimeoutError:
        return "stalled"
    return str(len(content.partition(b"\\r\\n\\r\\n")[2]))


def answer(words):
    match words:
        case ["starts"]:
            return (data / "starts").read_text()
        case ["greeting"]:
            return os.environ["GREETING"]
        case ["host-name"]:
            return socket.gethostname()
        case ["address-of", peer]:
            return socket.gethostbyname(peer)
        case ["open", peer]:
            opened[peer] = socket.create_connection((peer, port), timeout=5)
            return "open"
        case ["ask", peer]:
            return ask(peer)
        case ["many", length]:
            return "." * int(length)
        case ["fetch", peer, length]:
            return fetch(peer, length)
        case ["child"]:
            return str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
        case ["beat"]:
            return f"{time.monotonic()}"
        case ["exit", code]:
            os._exit(int(code))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = answer(self.path.strip("/").split("/")).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


server = http.server.ThreadingHTTPServer((address, port), Handler)
server.daemon_threads = True
server.serve_forever()
"""


class AnyRuntime(Runtime, Protocol):
    """A runtime that can cut links shows the cuts, too."""

    def cut_links(self) -> Collection[Link]: ...


#: How each runtime under test is made.
RUNTIMES: dict[str, Callable[[], AnyRuntime]] = {
    "docker": DockerRuntime,
    "namespaces": lambda: LocalRuntime("namespaces"),
    "processes": lambda: LocalRuntime("processes"),
}


def link(source: str, destination: str) -> Link:
    return Link(source=NodeName(source), destination=NodeName(destination))


def specification(
    runtime: Runtime,
    run_folder: Path,
    names: Sequence[NodeName] = NAMES,
    command: Sequence[str] | None = None,
) -> DeploymentSpec:
    """Nodes as this runtime places them."""
    nodes: list[NodeSpec] = []
    for name in names:
        place = runtime.place(name, RunFolder(run_folder).node(name), {PORT: 8000})
        arguments = (place.listen_host, str(place.ports[PORT]), place.data_path)
        nodes.append(
            NodeSpec(
                name=name,
                image="splitbrain-pod",
                command=tuple(command or (place.python, "-u", "-c", PROGRAM, *arguments)),
                environment={"GREETING": f"I am {name}"},
                ports=place.ports,
                data_path=place.data_path,
                memory_limit_mib=128,
            )
        )
    return DeploymentSpec(RunId(f"test-{uuid.uuid4().hex[:8]}"), run_folder, tuple(nodes))


@contextmanager
def living(run_folder: Path) -> Iterator[Path]:
    """A run folder whose lock is held, as a living run holds it."""
    run_folder.mkdir(parents=True, exist_ok=True)
    with RunFolder(run_folder).lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield run_folder


def ask(runtime: Runtime, node: NodeName, *words: str) -> str:
    """A node's answer, as a client on this machine gets it."""
    address = runtime.endpoint(node, PORT)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
    try:
        connection.request("GET", "/" + "/".join(words))
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def serves(runtime: Runtime, node: NodeName) -> bool:
    try:
        return bool(ask(runtime, node, "starts"))
    except (OSError, http.client.HTTPException):
        return False


def await_serving(runtime: Runtime, names: Sequence[NodeName] = NAMES) -> None:
    for name in names:
        # Asked from here: a program in a container costs more than all else of a small test.
        await_true(lambda name=name: serves(runtime, name))
