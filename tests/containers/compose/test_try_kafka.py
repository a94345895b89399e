"""Kafka's own brokers in a compose file: what they promise they keep, and no more than that.

Brokers advertise names that mean nothing on this machine, as plain files have it.
"""

from pathlib import Path

import pytest
from docker import DockerClient

from splitbrain.contracts.log import LOG, LOGS
from splitbrain.runtimes.docker.images import Images
from splitbrain.systems.kafka.adapter import IMAGE
from tests.containers.compose.test_try import OF_KAFKA, judged, run
from tests.containers.real_runs import verdicts

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

NAMES = ("kafka1", "kafka2", "kafka3")
TRY = f"{OF_KAFKA} --seed 5 --no-analyze"
SERVICE = """
  {name}:
    image: ${{IMAGE}}
    command: kafka-node /{name}.properties q1Sh-9_ISia_zwGINzRvyQ
    environment: {{KAFKA_HEAP: "{heap}"}}
    volumes: ["{name}:/kafka", "./{name}.properties:/{name}.properties:ro"]
    restart: always
"""
PROPERTIES = """
node.id={number}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=/kafka/log
log.cleaner.dedupe.buffer.size=4194304
log.index.size.max.bytes=1048576
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""
#: The leader alone has what it acknowledges, and another is elected meanwhile.
LEADER_CUT_OFF = """
[[faults]]
kind = "partition"
target = "{target}"
at_ms = 2000
duration_ms = 9000
"""
#: The leader alone is in sync once the others are gone, and they are back without it.
OTHERS_LEAD_ALONE = """
overlap = 3
{kills}
"""
KILL = """
[[faults]]
kind = "kill"
target = "{node}"
at_ms = {at_ms}
duration_ms = {duration_ms}
"""


@pytest.fixture(scope="module")
def kafka(engine: DockerClient) -> dict[str, str]:
    return {"IMAGE": Images(engine).ensure([IMAGE])[IMAGE.name]}


def compose(folder: Path, roles: dict[str, str], **settings: str) -> None:
    """Write a file of one node for each name, with its roles; brokers have these settings."""
    voters = [
        f"{number}@{name}:9093"
        for number, (name, role) in enumerate(roles.items(), 1)
        if "controller" in role
    ]
    services = "".join(
        SERVICE.format(name=name, heap=160 if "broker" in role else 96)
        for name, role in roles.items()
    )
    volumes = ", ".join(f"{name}: " for name in roles)
    (folder / "compose.yaml").write_text(f"services:{services}volumes: {{{volumes}}}\n")
    for number, (name, role) in enumerate(roles.items(), 1):
        listeners = [("broker", "PLAINTEXT", 9092), ("controller", "CONTROLLER", 9093)]
        own = [(listener, port) for kind, listener, port in listeners if kind in role]
        lines = {
            "process.roles": role,
            "controller.quorum.voters": ",".join(voters),
            "listeners": ",".join(f"{listener}://0.0.0.0:{port}" for listener, port in own),
            "advertised.listeners": ",".join(
                f"{listener}://{name}:{port}" for listener, port in own
            ),
            **settings,
        }
        text = PROPERTIES.format(number=number)
        text += "".join(f"{key.replace('_', '.')}={value}\n" for key, value in lines.items())
        (folder / f"{name}.properties").write_text(text)


def cut_off(
    folder: Path, kafka: dict[str, str], *settings: str, workload: str = "set"
) -> tuple[int, str]:
    """Exit code and output of a run whose leader is cut off for a while."""
    compose(folder, dict.fromkeys(NAMES, "broker,controller"), min_insync_replicas="2")
    # Of several logs each broker leads one.
    target, partitions = ("n1", len(LOGS)) if workload == LOG else ("leader", 1)
    (folder / "cut.toml").write_text(LEADER_CUT_OFF.format(target=target))
    chosen = "".join(f" --setting {one}" for one in (f"partitions={partitions}", *settings))
    line = f"{TRY} --workload {workload} --nemesis cut.toml --time-limit 13{chosen}"
    return run(folder, line, kafka)


# Three JVMs; the next test has the same faults found and healed, and the other verdict.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("workload", "promise"),
    [
        ("set", "no element that was added is lost"),
        ("log", "no record that was acknowledged is lost, skipped or shown twice"),
    ],
)
def test_what_all_replicas_acknowledged_outlives_faults(
    tmp_path: Path, kafka: dict[str, str], workload: str, promise: str
) -> None:
    code, output = cut_off(tmp_path, kafka, workload=workload)
    assert code == 0, output
    assert f"by kafka; promised: {promise}." in output


@pytest.mark.parametrize(
    ("workload", "checker"),
    [pytest.param("set", "set-full", marks=pytest.mark.nightly), ("log", "log")],
)
def test_what_one_replica_acknowledged_is_lost_with_its_leader(
    tmp_path: Path, kafka: dict[str, str], workload: str, checker: str
) -> None:
    code, output = cut_off(tmp_path, kafka, "acks=1", workload=workload)
    assert code == 1, output
    found = judged(tmp_path)
    assert [(fault.verified, fault.healed) for fault in found.faults] == [(True, True)]
    assert verdicts(found)[checker] == "invalid"
    assert "lost" in output


@pytest.mark.nightly
def test_kafka_keeps_its_promise_under_partitions_pauses_and_kills(
    tmp_path: Path, kafka: dict[str, str]
) -> None:
    compose(tmp_path, dict.fromkeys(NAMES, "broker,controller"), min_insync_replicas="2")
    code, output = run(tmp_path, f"{TRY} --time-limit 90", kafka)
    assert code == 0, output
    assert {fault.kind for fault in judged(tmp_path).faults} == {"partition", "pause", "kill"}


@pytest.mark.nightly
@pytest.mark.parametrize("unclean", ["false", "true"])
def test_who_elects_a_replica_that_is_not_in_sync_loses_what_all_in_sync_acknowledged(
    tmp_path: Path, kafka: dict[str, str], unclean: str
) -> None:
    """Each broker in turn is alone in sync, goes, and the others are back before it."""
    roles = {**dict.fromkeys(NAMES, "broker"), "mind": "controller"}
    compose(tmp_path, roles, min_insync_replicas="1", unclean_leader_election_enable=unclean)
    kills = [("n2", 3000, 20_000), ("n3", 3000, 20_000), ("n1", 15_000, 30_000)]
    text = "".join(
        KILL.format(node=node, at_ms=at, duration_ms=duration) for node, at, duration in kills
    )
    (tmp_path / "kills.toml").write_text(OTHERS_LEAD_ALONE.format(kills=text))
    line = f"{TRY} --spare mind --nemesis kills.toml --time-limit 60"
    code, output = run(tmp_path, line, kafka)
    assert code == (unclean == "true"), output
