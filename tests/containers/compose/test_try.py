"""Compose files under faults: the page's, and a driver each against a real server."""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from docker import DockerClient

from splitbrain.contracts.runtime import ImageSource
from splitbrain.harness.folder import results
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.docker.images import ROOT, Images
from splitbrain.systems.redis.deployment import IMAGE as REDIS
from tests.containers.real_runs import splitbrain, verdicts

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

PAGE = (ROOT / "docs" / "try.md").read_text()
(COMPOSE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
API, OWN_DRIVER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
VALID, INVALID, OF_STORE, OF_KAFKA = re.findall(
    r"^((?:\w+=\w+ )?splitbrain try .*)$", PAGE, re.MULTILINE
)
(OWN_MODEL,) = re.findall(r"^splitbrain check .*$", PAGE, re.MULTILINE)
MODELS_PAGE = (ROOT / "docs" / "models-and-checkers.md").read_text()
PLAIN = ImageSource("splitbrain-plain", "plain")
IMAGES = Path(__file__).parent / "images"


@pytest.fixture(scope="module")
def images(engine: DockerClient) -> Mapping[str, str]:
    tags = Images(engine).ensure([PLAIN, REDIS])
    return {"PYTHON_IMAGE": tags[PLAIN.name], "REDIS_IMAGE": tags[REDIS.name]}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, text in (("compose.yaml", COMPOSE), ("api.py", API), ("own.py", OWN_DRIVER)):
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder: Path, line: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command line in a folder; exit code and output."""
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in words[: words.index("splitbrain")])
    done = subprocess.run(
        splitbrain(*words[words.index("splitbrain") + 1 :]),
        cwd=folder,
        env={**os.environ, **environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def judged(folder: Path) -> results.Results:
    return results.read(RunFolder((folder / "runs" / "latest").resolve()).results)


SHORT = " --time-limit 12 --seed 5 --no-analyze"


def test_the_page_has_it_valid_and_every_fault_strikes(
    shop: Path, images: Mapping[str, str]
) -> None:
    code, output = run(shop, VALID + " --seed 5 --no-analyze", images)
    assert code == 0, output
    assert output.startswith(f"compose.yaml: n1 api ({images['PYTHON_IMAGE']}), n2 store")
    assert "clients ask api:8000 by http; promised: each key is a linearizable register." in output
    assert "note: all services are started at once, and api again" in output
    found = judged(shop)
    assert {fault.kind for fault in found.faults} == {"partition", "pause", "kill"}
    assert {node for fault in found.faults for node in fault.nodes} == {"n1", "n2"}
    assert all(fault.verified and fault.healed for fault in found.faults)
    assert (shop / "runs" / "latest" / "compose.yaml").read_text() == COMPOSE


def test_the_page_has_it_invalid_without_a_disk_and_the_run_can_be_repeated(
    shop: Path, images: Mapping[str, str]
) -> None:
    code, output = run(shop, INVALID + SHORT, images)
    assert code == 1, output
    assert verdicts(judged(shop))["linearizability:cas-register"] == "invalid"
    (again,) = re.findall(r"^Reproduce   (splitbrain .*)  # .*$", output, re.MULTILINE)
    assert str(shop) not in again
    lost = {**images, "APPENDONLY": "no"}
    code, output = run(shop, again + " --no-analyze", lost)
    assert code == 1, output
    recorded = (shop / "runs" / "latest").resolve()
    code, output = run(shop, f"splitbrain replay {recorded}", images)
    assert code == 64
    assert "its variables or the files that it mounts were changed since that run" in output
    code, output = run(shop, f"splitbrain replay {recorded} --no-analyze", lost)
    assert code == 1, output


@pytest.mark.parametrize(
    "driver",
    [
        pytest.param("redis", marks=pytest.mark.nightly),
        "redis --workload set",
        # The next test asks by this driver, too.
        pytest.param("own.py --workload-option cas=no", marks=pytest.mark.nightly),
    ],
)
def test_other_drivers_ask_the_store_and_the_spared_service_is_hit_by_nothing(
    shop: Path, images: Mapping[str, str], driver: str
) -> None:
    line = OF_STORE.replace("--driver redis", f"--driver {driver}")
    code, output = run(shop, line + SHORT, images)
    assert code == 0, output
    found = judged(shop)
    assert {node for fault in found.faults for node in fault.nodes} == {"n1"}
    assert found.faults


def test_a_model_of_ones_own_judges_what_clients_saw(shop: Path, images: Mapping[str, str]) -> None:
    line = OF_STORE.replace("--driver redis", "--driver own.py --workload-option cas=no")
    code, output = run(shop, f"{line} --nemesis none --time-limit 3 --seed 5 --no-analyze", images)
    assert code == 0, output
    model, *_ = re.findall(r"```python\n(.*?)```", MODELS_PAGE, re.DOTALL)
    (shop / "model.py").write_text(model)
    code, output = run(shop, OWN_MODEL, images)
    # The store forgets a higher number for a lower one.
    assert code == 1, output
    code, output = run(shop, OWN_MODEL.replace("model.py:MaxRegister", "register"), images)
    assert code == 0, output


def test_an_image_that_the_engine_lacks_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {web: {image: 'splitbrain-no-such:1'}}")
    line = "splitbrain try compose.yaml --port web:80 --driver http --seed 1"
    code, output = run(tmp_path, line, {})
    assert code == 3
    assert output.splitlines()[-1] == (
        "splitbrain: could not find an image (splitbrain-no-such:1): it is not in the engine. "
        "Pull or build it under this name: a run fetches nothing"
    )
    assert not (tmp_path / "runs").exists()


def test_services_reach_each_other_by_every_name_and_have_what_the_file_gives_them(
    tmp_path: Path, images: Mapping[str, str]
) -> None:
    """A service that answers only if all is as the file says, in front of two that end early."""
    (tmp_path / "look.py").write_text(LOOK)
    (tmp_path / "vars.env").write_text("FROM_FILE=file\n")
    (tmp_path / "compose.yaml").write_text(NAMES)
    line = "splitbrain try compose.yaml --port look:8000 --driver http --nemesis none"
    code, output = run(tmp_path, line + " --time-limit 3 --seed 1 --no-analyze", images)
    assert code == 0, output


NAMES = """
x-python: &python
  image: ${PYTHON_IMAGE}
  entrypoint: [python3, -u, /look.py]
  volumes: ["./look.py:/look.py:ro"]
services:
  look:
    <<: *python
    command: names
    hostname: front
    working_dir: /srv-of-look
    user: "65534"
    env_file: vars.env
    environment: {OWN: "$${x}"}
    volumes: ["./look.py:/look.py:ro", "first:/first", "second:/second", /third]
    depends_on: [late]
  late:
    <<: *python
    command: late
    container_name: the-late-one
    networks: {default: {aliases: [tardy]}}
  many:
    <<: *python
    command: wait
    deploy: {replicas: 2}
volumes: {first: , second: }
"""
LOOK = """
import http.server, os, socket, sys, time
values = {}
class Shelf(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        body = values.get(self.path)
        self.reply(404 if body is None else 200, body or b"")
    def do_PUT(self):
        values[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(204)
def address(name):
    return socket.gethostbyname(name)
if sys.argv[1] == "wait":
    time.sleep(3600)
if sys.argv[1] == "late":
    time.sleep(1)
    http.server.ThreadingHTTPServer(("", 9000), Shelf).serve_forever()
# Ends where the other is not up yet, as many services do.
socket.create_connection(("tardy", 9000), 1).close()
assert address("late") == address("the-late-one") == address("tardy")
assert address("front") == address("look") == address(socket.gethostname())
assert socket.gethostname() == "front"
many = {found[4][0] for found in socket.getaddrinfo("many", 1)}
assert many == {address("many-1"), address("many-2")} and len(many) == 2, many
assert (os.environ["FROM_FILE"], os.environ["OWN"]) == ("file", "${x}")
assert (os.getcwd(), os.getuid()) == ("/srv-of-look", 65534)
assert all(os.path.ismount(folder) for folder in ("/first", "/second", "/third"))
try:
    open("/look.py", "a")
except OSError:
    http.server.ThreadingHTTPServer(("", 8000), Shelf).serve_forever()
"""


ETCD = """
x-etcd: &etcd
  image: ${IMAGE}
  environment: &common
    ETCD_INITIAL_CLUSTER: a=http://a:2380,b=http://b:2380,c=http://c:2380
    ETCD_LISTEN_CLIENT_URLS: http://0.0.0.0:2379
    ETCD_LISTEN_PEER_URLS: http://0.0.0.0:2380
    ETCD_DATA_DIR: /etcd
  restart: always
services:
"""
OF_ETCD = """
  {0}:
    <<: *etcd
    environment:
      <<: *common
      ETCD_NAME: {0}
      ETCD_ADVERTISE_CLIENT_URLS: http://{0}:2379
      ETCD_INITIAL_ADVERTISE_PEER_URLS: http://{0}:2380
    volumes: ["{0}:/etcd"]
"""
POSTGRES = """
services:
  db:
    image: ${IMAGE}
    command: postgres -c synchronous_commit=${SYNCHRONOUS:-on}
    environment: {POSTGRES_USER: app, POSTGRES_PASSWORD: "${PASSWORD:?}"}
    volumes: ["data:/var/lib/postgresql/data"]
volumes: {data: }
"""


def image(engine: DockerClient, name: str) -> dict[str, str]:
    source = ImageSource(f"splitbrain-test-{name}", str(IMAGES / name), has_packages=True)
    return {"IMAGE": Images(engine).ensure([source])[source.name]}


@pytest.mark.nightly
def test_etcd_keeps_its_promise(engine: DockerClient, tmp_path: Path) -> None:
    services = "".join(OF_ETCD.format(name) for name in "abc")
    (tmp_path / "compose.yaml").write_text(f"{ETCD}{services}volumes: {{a: , b: , c: }}\n")
    ports = " ".join(f"--port {name}:2379" for name in "abc")
    line = f"splitbrain try compose.yaml {ports} --driver etcd --seed 5 --no-analyze"
    code, output = run(tmp_path, line, image(engine, "etcd"))
    assert code == 0, output
    assert len(judged(tmp_path).faults) >= 4


@pytest.mark.nightly
def test_postgres_keeps_its_promise_unless_it_commits_asynchronously(
    engine: DockerClient, tmp_path: Path
) -> None:
    (tmp_path / "compose.yaml").write_text(POSTGRES)
    environment = {**image(engine, "postgres"), "PASSWORD": "secret"}
    line = "splitbrain try compose.yaml --port db:5432 --driver postgres --no-analyze --seed 5"
    code, output = run(tmp_path, line, environment)
    assert code == 0, output
    line += " --nemesis kill --rate 400"
    code, output = run(tmp_path, line, {**environment, "SYNCHRONOUS": "off"})
    assert code == 1, output
