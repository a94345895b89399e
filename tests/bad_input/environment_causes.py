"""Machines on which a run cannot be: no engine, a false one, wrong variables."""

import json
import socket

from splitbrain.runtimes.docker import engine, images
from tests.bad_input.cause import Arrange, Chapter, Scene, causes
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

ENVIRONMENT = Chapter(
    "The environment",
    causes(
        f"""
engine-absent | no engine | test --nemesis none | 3 | process
  could not talk to the container engine (docker): there is no engine's socket on this machine.
  {GET_ENGINE}
engine-deaf | a socket on which nobody listens | test --nemesis none | 3
  could not talk to the container engine (docker): its socket is there but nobody answers.
  {GET_ENGINE}
engine-variable | a DOCKER_HOST that is no address | test --nemesis none | 3
  could not talk to the container engine (docker): DOCKER_HOST is no address such as
  unix:///var/run/docker.sock. {GET_ENGINE}
engine-scheme | a DOCKER_HOST of an unknown kind | test --nemesis none | 3
  could not talk to the container engine (docker): DOCKER_HOST is no address such as
  unix:///var/run/docker.sock. {GET_ENGINE}
engine-closed-port | a DOCKER_HOST with a closed port | test --nemesis none | 3
  could not talk to the container engine (docker): nobody answers at the address in DOCKER_HOST.
  {GET_ENGINE}
engine-no-certificates | certificates that are not there | test --nemesis none | 3
  could not talk to the container engine (docker): the certificates that DOCKER_CERT_PATH names
  cannot be used. {GET_ENGINE}
engine-garbage | an engine that answers garbage | test --nemesis none | 3
  could not talk to the container engine (docker): what answers there is no engine. {GET_ENGINE}
engine-dead-line | an engine that hangs up | test --nemesis none | 3
  could not talk to the container engine (docker): it hangs up instead of answering. {GET_ENGINE}
engine-hangs | an engine that never answers | test --nemesis none | 3
  could not talk to the container engine (docker): it takes the connection and does not answer.
  {GET_ENGINE}
engine-unwell | an engine that fails | test --nemesis none | 3
  could not talk to the container engine (docker): it answers that it has failed itself.
  {GET_ENGINE}
engine-ancient | an engine older than any | test --nemesis none | 3
  could not talk to the container engine (docker): it is older than the oldest that can be talked
  to. {GET_ENGINE}
no-sources | the project's sources are not there | test --nemesis none | 3
  could not build the images ({{folder}}/nowhere/docker): the project's Dockerfiles are not there.
  Install splitbrain anew, or run from a clone of the project
local-variable | a SPLITBRAIN_LOCAL that is nothing | test --nemesis none --runtime local
  SPLITBRAIN_LOCAL is 'both'. Set it to namespaces or processes, or not at all
fault-beyond-runtime | a fault that the runtime cannot have
  $ test --runtime local --nemesis partition | 3
  could not plan the fault partition (runtime local): it cannot do partition here. Leave the fault
  out of --nemesis, or choose another --runtime; 'splitbrain doctor' shows what is missing
programs-absent | a system whose programs are not on this machine
  $ test --nemesis none --runtime local --system redis | 3
  could not start nodes as processes of this machine (runtime local): the programs redis-server and
  redis-sentinel are not on PATH. On Debian `apt-get install redis-server redis-sentinel` installs
  what is missing, or use --runtime docker, whose images bring them
""",
        {
            "engine-deaf": _nobody_listens,
            "engine-variable": environment(DOCKER_HOST="nonsense"),
            "engine-scheme": environment(DOCKER_HOST="carrier-pigeon://roof"),
            "engine-closed-port": environment(DOCKER_HOST="tcp://127.0.0.1:1"),
            "engine-no-certificates": environment(
                DOCKER_HOST="tcp://127.0.0.1:1", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH="nowhere"
            ),
            "engine-garbage": _false(GARBAGE),
            "engine-dead-line": _false(b""),
            "engine-hangs": _false(None),
            "engine-unwell": _false(_http("500 Internal Server Error", {"message": "unwell"})),
            "engine-ancient": _false(_http("200 OK", {"ApiVersion": "1.0"})),
            "no-sources": _no_sources,
            "local-variable": environment(SPLITBRAIN_LOCAL="both"),
            "fault-beyond-runtime": environment(SPLITBRAIN_LOCAL="processes"),
            "programs-absent": environment(SPLITBRAIN_LOCAL="processes", PATH="/nowhere"),
        },
    ),
)
