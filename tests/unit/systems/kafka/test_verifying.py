"""A look at a pretended cluster: what is promised, who is let in, and what is left behind."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.trial import VERIFY_COMMANDS, StandingOptions
from splitbrain.systems.kafka.access import Access, read_access
from splitbrain.systems.kafka.standing import StandingKafka
from splitbrain.systems.kafka.verifying import verified
from splitbrain.systems.verifiers import VERIFIERS
from tests.unit.systems.compose_file.fake_kafka import FakeBroker, brokers


@contextmanager
def served(
    change: Callable[[FakeBroker], None] = lambda _: None, count: int = 3
) -> Iterator[Sequence[FakeBroker]]:
    """Brokers in a thread of their own, since the look has an event loop of its own."""
    ready, found = threading.Event(), list[FakeBroker]()
    ends: list[Callable[[], None]] = []

    async def serve() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        ends.append(lambda: loop.call_soon_threadsafe(done.set) and None)
        async with brokers(count) as ones:
            found.extend(ones)
            ones[0].shared.advertised = {one.number: one.address for one in ones}
            change(ones[0])
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield found
    finally:
        ends[0]()
        thread.join()


def options(
    found: Sequence[FakeBroker], settings: dict[str, str] | None = None, file: Path | None = None
) -> StandingOptions:
    named = {name.replace("_", "."): value for name, value in (settings or {}).items()}
    address = found[0].address
    return StandingOptions(
        bootstrap=f"127.0.0.1:1,{address.host}:{address.port}", command_config=file, settings=named
    )


def test_a_topic_of_its_own_is_made_and_removed() -> None:
    with served() as found, verified(options(found)) as (experiment, sentences):
        (topic,) = found[0].created
        assert found[0].shared.topics == {topic.name: 4}
        assert topic.replication_factor == 3
        assert {row.name: row.value for row in topic.configs}["min.insync.replicas"] == "2"
        assert experiment.nodes == 3
        assert experiment.settings["brokers"] == ",".join(
            f"127.0.0.1:{broker.address.port}" for broker in found
        )
        assert experiment.workload_options == {"transactions": "yes"}
        assert "n2 broker 2" in sentences[0]
        assert not any(line.startswith("Not promised") for line in sentences)
    assert found[0].shared.topics == {}


@pytest.mark.parametrize(("level", "version"), [({}, "1"), ({"transaction.version": 2}, "2")])
def test_transactions_are_of_the_version_that_the_cluster_has(
    level: dict[str, int], version: str
) -> None:
    def change(broker: FakeBroker) -> None:
        broker.shared.features = level

    with served(change) as found, verified(options(found)) as (experiment, _):
        assert experiment.settings["transaction.version"] == version


@pytest.mark.parametrize(
    ("settings", "configs", "why"),
    [
        ({"acks": "1"}, {}, "acks=1"),
        ({}, {"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable=true"),
        ({"min_insync_replicas": "1"}, {}, "min.insync.replicas=1"),
        # A policy of the cluster overrides what was asked for.
        ({}, {"min.insync.replicas": "1"}, "min.insync.replicas=1"),
    ],
)
def test_a_weaker_promise_is_told_and_its_losses_are_allowed(
    settings: dict[str, str], configs: dict[str, str], why: str
) -> None:
    def change(broker: FakeBroker) -> None:
        broker.shared.configs = configs

    with served(change) as found, verified(options(found, settings)) as (experiment, sentences):
        (line,) = [line for line in sentences if line.startswith("Not promised")]
        assert why in line
        adapter = StandingKafka()
        adapter.experiment = experiment
        allowed = {each.kind for each in adapter.allowed() if each.checker == "log"}
        assert {"lost", "vanished"} <= allowed
        # Nothing of this follows from a loss.
        assert not {"duplicated", "aborted-read", "phantom"} & allowed


def test_a_topic_is_removed_though_the_run_fails() -> None:
    with served() as found:
        with pytest.raises(ZeroDivisionError), verified(options(found)):
            raise ZeroDivisionError
        assert found[0].shared.topics == {}


def properties(folder: Path, *lines: str) -> Path:
    file = folder / "client.properties"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


OF_USER = (
    "# as Kafka's own tools read it",
    "security.protocol = SASL_PLAINTEXT",
    "sasl.mechanism=PLAIN",
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\",
    '  username="alice" password="se\\\\"cret";',
    "client.id=x",
)


def test_a_user_is_let_in_by_a_file_of_properties(tmp_path: Path) -> None:
    def change(broker: FakeBroker) -> None:
        broker.shared.words = b'alice\0alice\0se"cret'

    with served(change) as found:
        mine = options(found, file=properties(tmp_path, *OF_USER))
        with verified(mine) as (experiment, sentences):
            assert "note: nothing is done of client.id." in sentences
            assert experiment.settings["command.config"] == str(tmp_path / "client.properties")
            assert "cret" not in str(experiment)
        found[0].shared.words = b"another"
        with pytest.raises(HarnessError, match="sasl-authentication-failed"), verified(mine):
            pass


def test_both_families_of_names_are_read(tmp_path: Path) -> None:
    lines = ("security.protocol=sasl_ssl", "sasl.mechanisms=SCRAM-SHA-512", "sasl.username=bob")
    more = ("sasl.password=pw", "ssl.endpoint.identification.algorithm=")
    access, ignored = read_access(properties(tmp_path, *lines, *more))
    assert ignored == []
    assert access == Access(
        uses_tls=True, mechanism="SCRAM-SHA-512", user="bob", password="pw", checks_host=False
    )


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("security.protocol=TLS",), "security.protocol cannot be 'TLS'"),
        (("security.protocol=SASL_SSL",), "has no sasl.mechanism"),
        (("security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI"), "cannot be 'GSSAPI'"),
        (("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN"), "no user and password for PLAIN"),
        (("security.protocol=SSL", "ssl.truststore.type=JKS"), "only PEM files"),
        (("security.protocol=SSL", "ssl.ca.location=/nowhere.pem"), "TLS cannot be had"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, lines: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        read_access(properties(tmp_path, *lines))
    with pytest.raises(UsageError, match="cannot be read"):
        read_access(tmp_path / "missing.properties")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"replicas": "4"}, "Give a whole number from 1 to 3"),
        ({"min_insync_replicas": "0"}, "Give a whole number from 1 to 3"),
        ({"topic": "mine"}, "topic cannot be chosen"),
        ({"acks": "2"}, "does not know '2' as acks"),
        ({"ack": "1"}, "has no setting 'ack'"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_before_anything_is_made(
    settings: dict[str, str], problem: str
) -> None:
    with served() as found:
        with pytest.raises(UsageError, match=problem), verified(options(found, settings)):
            pass
        assert found[0].created == []


@pytest.mark.parametrize(
    ("bootstrap", "problem"), [("", "'' is no address"), ("broker", "'broker' is no address")]
)
def test_an_address_that_is_none_is_refused(bootstrap: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem), verified(StandingOptions(bootstrap=bootstrap)):
        pass


def test_a_host_that_nobody_knows_is_told_in_a_sentence() -> None:
    standing = StandingOptions(bootstrap="nowhere.invalid:9092")
    with (
        pytest.raises(HarnessError, match=r"'nowhere\.invalid' cannot be resolved"),
        verified(standing),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda broker: broker.broken.add("ApiVersions"), "as a listener with TLS or SASL does"),
        (lambda broker: setattr(broker, "create_error", 44), "policy-violation"),
        (lambda broker: setattr(broker.shared, "brokers", 10), "at most 9 can be asked"),
    ],
)
def test_a_cluster_that_does_not_serve_is_told_in_a_sentence(
    change: Callable[[FakeBroker], None], problem: str
) -> None:
    with served(change) as found:
        with pytest.raises((HarnessError, UsageError), match=problem), verified(options(found)):
            pass
        assert found[0].shared.topics == {}


def test_each_command_has_its_verifier() -> None:
    assert tuple(VERIFIERS) == VERIFY_COMMANDS
    assert VERIFIERS["kafka-verify"]() is verified
