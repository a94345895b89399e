"""A look at a cluster before clients load it: its brokers, a topic of its own, what is promised."""

import asyncio
import socket
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec

from splitbrain.contracts.errors import HarnessError, UsageError, in_one_line
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log import LOG, LOGS
from splitbrain.contracts.runtime import STANDING, Address
from splitbrain.contracts.scenario import NODES_MAX
from splitbrain.contracts.trial import StandingOptions
from splitbrain.systems.kafka.access import OPEN, Access, read_access
from splitbrain.systems.kafka.cluster import count_of
from splitbrain.systems.kafka.errors import NO_ERROR, NOT_CONTROLLER, NotKafkaError, RefusedError
from splitbrain.systems.kafka.exchange import KafkaConnection, opened
from splitbrain.systems.kafka.standing import (
    BROKERS,
    CLIENT_FILE,
    MIN_IN_SYNC,
    PARTITIONS,
    REPLICAS,
    TOPIC,
    UNCLEAN,
    StandingKafka,
    addresses_of,
)

_TIMEOUT_S: Final = 10.0
_REPLICAS: Final = 3
_IN_SYNC: Final = 2
_TRANSACTIONS: Final = "transaction.version"
#: Settings of a topic that users may choose; the others are those of clients.
_OF_TOPICS: Final = (REPLICAS, MIN_IN_SYNC)
_FOUND_OUT: Final = (BROKERS, CLIENT_FILE, TOPIC, PARTITIONS, UNCLEAN)


class _Found(msgspec.Struct, frozen=True):
    """A cluster as it was found, and the topic that was made in it."""

    brokers: dict[int, Address]
    topic: str
    replicas: int
    configs: dict[str, str]
    transaction_version: str


@contextmanager
def verified(options: StandingOptions) -> Generator[tuple[Experiment, list[str]]]:
    """Make a topic in a cluster; yields the experiment and sentences about it, removes the topic.

    Raises:
        UsageError: an address, a setting or the file does not exist or does not fit.
        HarnessError: the cluster does not answer, does not let the client in, or makes no topic.
    """
    for name in options.settings:
        if name in _FOUND_OUT:
            raise UsageError(f"--setting {name} cannot be chosen", "Leave it out")
    try:
        asked = addresses_of(options.bootstrap)
    except ValueError as error:
        raise UsageError(
            f"{str(error)!r} is no address of a broker", "Write HOST:PORT, several with commas"
        ) from error
    access, ignored = OPEN, list[str]()
    if options.command_config is not None:
        access, ignored = read_access(options.command_config)
    clients = {name: text for name, text in options.settings.items() if name not in _OF_TOPICS}
    StandingKafka().check_options(
        Experiment(
            system=StandingKafka.name, runtime=STANDING, settings={**clients, BROKERS: "asked"}
        )
    )
    found = asyncio.run(_prepared(options, asked, access))
    brokers = ",".join(f"{each.host}:{each.port}" for each in found.brokers.values())
    settings = {
        "enable.idempotence": "true",
        **clients,
        _TRANSACTIONS: found.transaction_version,
        BROKERS: brokers,
        TOPIC: found.topic,
        PARTITIONS: str(len(LOGS)),
        REPLICAS: str(found.replicas),
        MIN_IN_SYNC: found.configs.get(MIN_IN_SYNC, "1"),
        UNCLEAN: found.configs.get(UNCLEAN, "false"),
    }
    if options.command_config is not None:
        settings[CLIENT_FILE] = str(options.command_config.absolute())
    experiment = Experiment(
        system=StandingKafka.name,
        workload=LOG,
        nemesis="none",
        runtime=STANDING,
        nodes=len(found.brokers),
        time_limit_s=options.time_limit_s,
        seed=options.seed,
        concurrency=options.concurrency,
        rate=options.rate,
        operation_timeout_s=options.operation_timeout_s,
        settings=settings,
        workload_options={"transactions": "yes", **options.workload_options},
    )
    try:
        yield experiment, _sentences(experiment, found, ignored)
    finally:
        with suppress(HarnessError):
            asyncio.run(_removed(found, access))


def _sentences(experiment: Experiment, found: _Found, ignored: Sequence[str]) -> list[str]:
    adapter = StandingKafka()
    adapter.experiment = experiment
    unclean = "allowed" if experiment.settings[UNCLEAN] == "true" else "off"
    named = ", ".join(f"n{i} broker {n}" for i, n in enumerate(found.brokers, 1))
    topic = (
        f"Topic {found.topic}, removed at the end: {len(LOGS)} partitions, {found.replicas} "
        f"replicas, {MIN_IN_SYNC}={experiment.settings[MIN_IN_SYNC]}, unclean elections {unclean}, "
        f"{_TRANSACTIONS}={found.transaction_version}."
    )
    promise = (
        "Promised: no record that was acknowledged is lost, skipped or there twice, and "
        "transactions are read as a whole once they are committed, or not at all."
    )
    lines = [f"{len(found.brokers)} brokers: {named}.", topic, promise]
    lines += [f"Not promised: {why}; losses are counted as allowed." for why in adapter.weak]
    if ignored:
        lines.append(f"note: nothing is done of {', '.join(ignored)}.")
    return lines


async def _prepared(options: StandingOptions, asked: Sequence[Address], access: Access) -> _Found:
    problem = ""
    for there in asked:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                async with opened(there, access) as connection:
                    return await _found(connection, options, access)
        except RefusedError as error:
            raise _failure(there, f"it answers {error.name}") from error
        except NotKafkaError as error:
            problem = str(error) or "it does not answer as Kafka does"
        except TimeoutError:
            problem = f"no answer within {_TIMEOUT_S:g} s"
        except EOFError:
            problem = (
                "it ends the connection, as a listener with TLS or SASL does whose client has none"
            )
        except socket.gaierror:
            problem = f"the name {there.host!r} cannot be resolved"
        except OSError as error:
            problem = in_one_line(error)
    raise _failure(asked[-1], problem)


async def _found(connection: KafkaConnection, options: StandingOptions, access: Access) -> _Found:
    topic = f"splitbrain-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:8]}"
    await connection.require_versions()
    view = await connection.view(topic)
    if len(view.brokers) > NODES_MAX:
        raise UsageError(
            f"the cluster has {len(view.brokers)} brokers, and at most {NODES_MAX} can be asked",
            "Name a smaller cluster",
        )
    replicas = count_of(options.settings, REPLICAS, len(view.brokers)) or min(
        len(view.brokers), _REPLICAS
    )
    in_sync = count_of(options.settings, MIN_IN_SYNC, replicas) or min(replicas, _IN_SYNC)
    asked = (topic, len(LOGS), replicas, round(_TIMEOUT_S * 500), {MIN_IN_SYNC: str(in_sync)})
    code = await connection.create(*asked)
    for there in view.brokers.values() if code == NOT_CONTROLLER else ():
        async with opened(there, access) as other:
            code = await other.create(*asked)
        if code != NOT_CONTROLLER:
            break
    if code != NO_ERROR:
        raise RefusedError(code)
    version = "2" if await connection.feature(_TRANSACTIONS) > 1 else "1"
    while True:
        with suppress(RefusedError):
            configs = await connection.configs(topic)
            return _Found(dict(view.brokers), topic, replicas, configs, version)
        # This broker has yet to hear of the topic.
        await asyncio.sleep(0.1)


async def _removed(found: _Found, access: Access) -> None:
    for there in found.brokers.values():
        with suppress(OSError, EOFError, NotKafkaError, RefusedError):
            async with asyncio.timeout(_TIMEOUT_S):
                async with opened(there, access) as connection:
                    await connection.remove(found.topic, round(_TIMEOUT_S * 500))
                return


def _failure(there: Address, problem: str) -> HarnessError:
    return HarnessError(
        "look at the cluster",
        f"{there.host}:{there.port}",
        problem,
        "Name a listener for clients, and --command-config with what it asks of them",
    )
