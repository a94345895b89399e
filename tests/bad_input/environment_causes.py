"""Machines on which a run cannot be: no engine, a false one, wrong variables."""

import json
import socket

from splitbrain.runtimes.docker import engine, images
from tests.bad_input.cause import Arrange, Cause, Chapter, Scene, nothing
from tests.bad_input.false_engines import GARBAGE, false_engine


def environment(**variables: str) -> Arrange:
    def arrange(scene: Scene) -> None:
        for name, value in variables.items():
            scene.monkeypatch.setenv(name, value)

    return arrange


def _nobody_listens(scene: Scene) -> None:
    path = scene.folder / "engine.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    scene.monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")


def _false(answer: bytes | None) -> Arrange:
    def arrange(scene: Scene) -> None:
        scene.monkeypatch.setattr(engine, "ENGINE_TIMEOUT_S", 0.2)
        host = scene.undo.enter_context(false_engine(scene.folder / "engine.sock", answer))
        scene.monkeypatch.setenv("DOCKER_HOST", host)

    return arrange


def _http(status: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return head.encode() + f"Content-Length: {len(content)}\r\n\r\n".encode() + content


def _no_sources(scene: Scene) -> None:
    _false(_http("200 OK", {"ApiVersion": "1.41", "Version": "20.10"}))(scene)
    defaults = (scene.folder / "nowhere",)
    scene.monkeypatch.setattr(images.Images.__init__, "__defaults__", defaults)


GET_ENGINE = (
    "Start the engine or point DOCKER_HOST to one; `make engine` says how to "
    "get one on this machine"
)

TEST = "test --nemesis none"


def no_engine(
    name: str, wrong: str, problem: str, arrange: Arrange = nothing, *, as_process: bool = False
) -> Cause:
    """An engine that cannot be talked to."""
    says = f"could not talk to the container engine (docker): {problem}. {GET_ENGINE}"
    return Cause(name, wrong, TEST, says, 3, arrange, as_process)


ENVIRONMENT = Chapter(
    "The environment",
    (
        no_engine(
            "engine-absent",
            "no engine",
            "there is no engine's socket on this machine",
            as_process=True,
        ),
        no_engine(
            "engine-deaf",
            "a socket on which nobody listens",
            "its socket is there but nobody answers",
            arrange=_nobody_listens,
        ),
        no_engine(
            "engine-variable",
            "a DOCKER_HOST that is no address",
            "DOCKER_HOST is no address such as unix:///var/run/docker.sock",
            arrange=environment(DOCKER_HOST="nonsense"),
        ),
        no_engine(
            "engine-scheme",
            "a DOCKER_HOST of an unknown kind",
            "DOCKER_HOST is no address such as unix:///var/run/docker.sock",
            arrange=environment(DOCKER_HOST="carrier-pigeon://roof"),
        ),
        no_engine(
            "engine-closed-port",
            "a DOCKER_HOST with a closed port",
            "nobody answers at the address in DOCKER_HOST",
            arrange=environment(DOCKER_HOST="tcp://127.0.0.1:1"),
        ),
        no_engine(
            "engine-no-certificates",
            "certificates that are not there",
            "the certificates that DOCKER_CERT_PATH names cannot be used",
            arrange=environment(
                DOCKER_HOST="tcp://127.0.0.1:1", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH="nowhere"
            ),
        ),
        no_engine(
            "engine-garbage",
            "an engine that answers garbage",
            "what answers there is no engine",
            arrange=_false(GARBAGE),
        ),
        no_engine(
            "engine-dead-line",
            "an engine that hangs up",
            "it hangs up instead of answering",
            arrange=_false(b""),
        ),
        no_engine(
            "engine-hangs",
            "an engine that never answers",
            "it takes the connection and does not answer",
            arrange=_false(None),
        ),
        no_engine(
            "engine-unwell",
            "an engine that fails",
            "it answers that it has failed itself",
            arrange=_false(_http("500 Internal Server Error", {"message": "unwell"})),
        ),
        no_engine(
            "engine-ancient",
            "an engine older than any",
            "it is older than the oldest that can be talked to",
            arrange=_false(_http("200 OK", {"ApiVersion": "1.0"})),
        ),
        Cause(
            "no-sources",
            "the project's sources are not there",
            TEST,
            "could not build the images ({folder}/nowhere/docker): the project's Dockerfiles "
            "are not there. Run from a clone of the project",
            code=3,
            arrange=_no_sources,
        ),
        Cause(
            "local-variable",
            "a SPLITBRAIN_LOCAL that is nothing",
            f"{TEST} --runtime local",
            "SPLITBRAIN_LOCAL is 'both'. Set it to namespaces or processes, or not at all",
            arrange=environment(SPLITBRAIN_LOCAL="both"),
        ),
        Cause(
            "fault-beyond-runtime",
            "a fault that the runtime cannot have",
            "test --runtime local --nemesis partition",
            "could not plan the fault partition (runtime local): it cannot do partition here. "
            "Leave the fault out of --nemesis, or choose another --runtime; 'splitbrain "
            "doctor' shows what is missing",
            code=3,
            arrange=environment(SPLITBRAIN_LOCAL="processes"),
        ),
        Cause(
            "programs-absent",
            "a system whose programs are not on this machine",
            f"{TEST} --runtime local --system redis",
            "could not start nodes as processes of this machine (runtime local): the programs "
            "redis-server and redis-sentinel are not on PATH. On Debian `apt-get install "
            "redis-server redis-sentinel` installs what is missing, or use --runtime docker, "
            "whose images bring them",
            code=3,
            arrange=environment(SPLITBRAIN_LOCAL="processes", PATH="/nowhere"),
        ),
    ),
)
