"""Calls of an administrator with Java's tools, one after the other: at brokers 11 and 12.

Partitions are placed by hand, because a real controller places them by chance. Every question is
asked of brokers and, where the tool can, of controllers.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tests.referee.java_tools import CLUSTER, CONFIGS, ELECTIONS, FEATURES, QUORUM, TOPICS


class Asked(Enum):
    """Node that is asked."""

    BROKERS = "--bootstrap-server"
    CONTROLLERS = "--bootstrap-controller"


@dataclass(frozen=True)
class Words:
    """One call of a tool."""

    tool: str
    asked: Asked
    words: str
    #: Whether a real cluster refuses it, so that a question which no tool understands is not taken
    #: for agreement.
    is_refused: bool = False


_BOTH: Final = (Asked.BROKERS, Asked.CONTROLLERS)


def _topics(words: str, *, is_refused: bool = False) -> Words:
    return Words(TOPICS, Asked.BROKERS, words, is_refused)


_CLUSTER_WORDS: Final = tuple(
    Words(tool, asked, words)
    for asked in _BOTH
    for tool, words in (
        (QUORUM, "describe --status"),
        (QUORUM, "describe --replication"),
        (CLUSTER, "cluster-id"),
        (CLUSTER, "list-endpoints"),
        (FEATURES, "describe"),
    )
)

_TOPIC_WORDS: Final = (
    _topics("--create --topic a --replica-assignment 11:12,12:11 --config retention.ms=7200000"),
    _topics("--create --topic a --partitions 1", is_refused=True),
    _topics("--create --topic a --partitions 1 --if-not-exists"),
    _topics("--create --topic b --partitions 1 --replication-factor 3", is_refused=True),
    _topics("--create --topic b --partitions 1 --config retention.ms=x", is_refused=True),
    _topics("--create --topic b --partitions 1 --config max.message.bytes=-1", is_refused=True),
    _topics("--create --topic b --partitions 1 --config no.such=1", is_refused=True),
    _topics("--create --topic b! --partitions 1", is_refused=True),
    _topics("--create --topic b --replica-assignment 11:12:13", is_refused=True),
    _topics("--create --topic b --replica-assignment 11:11", is_refused=True),
    _topics("--create --topic b.x --replica-assignment 12:11"),
    _topics("--create --topic b_x --partitions 1", is_refused=True),
    _topics("--describe"),
    _topics("--describe --topics-with-overrides"),
    _topics("--describe --under-replicated-partitions"),
    _topics("--describe --topic none", is_refused=True),
    _topics("--alter --topic a --partitions 4 --replica-assignment 11:12,12:11,12:11,11:12"),
    _topics("--alter --topic a --partitions 3", is_refused=True),
    _topics(
        "--alter --topic a --partitions 5 --replica-assignment 11,11,11,11,12", is_refused=True
    ),
    _topics("--alter --topic none --partitions 3", is_refused=True),
    _topics("--describe --topic a"),
    _topics("--list"),
)


def _configs(asked: Asked, entity: str) -> tuple[Words, ...]:
    """Set some of an entity's configs, be refused, look, take one away."""
    name, _, value = _SETTINGS[entity].partition("=")
    by_controllers = asked is Asked.CONTROLLERS
    # A broker reads what it is told to become; a controller leaves that to it.
    is_checked = not (by_controllers and entity.startswith("--entity-type brokers"))
    # The tool asks a controller for more than a controller tells, of all but brokers.
    is_told = not by_controllers or entity.startswith("--entity-type brokers")
    # A real controller keeps what no broker could do, for all of them, and tells it nobody.
    is_kept = by_controllers and entity == "--entity-type brokers --entity-default"
    return tuple(
        Words(CONFIGS, asked, f"{words} {entity} {rest}".rstrip(), is_refused)
        for words, rest, is_refused in (
            ("--alter", f"--add-config {name}={value}", False),
            ("--describe", "", not is_told),
            ("--alter", f"--add-config {name}=many", is_checked),
            *(() if is_kept else (("--alter", "--add-config node.id=7", is_checked),)),
            ("--alter", f"--delete-config {name}", False),
            ("--describe", "", not is_told),
        )
    )


_SETTINGS: Final = {
    "--entity-type topics --entity-name a": "max.message.bytes=100000",
    "--entity-type brokers --entity-name 11": "log.cleaner.threads=2",
    "--entity-type brokers --entity-default": "message.max.bytes=2000000",
    "--entity-type groups --entity-name g": "consumer.session.timeout.ms=50000",
    "--entity-type client-metrics --entity-name m": "interval.ms=30000",
}

_CONFIG_WORDS: Final = tuple(
    words
    for asked in _BOTH
    for words in (
        *(words for entity in _SETTINGS for words in _configs(asked, entity)),
        Words(
            CONFIGS,
            asked,
            "--alter --entity-type topics --entity-name a"
            " --add-config cleanup.policy=[compact,delete]",
        ),
        Words(CONFIGS, asked, "--describe --all --entity-type topics --entity-name a"),
        Words(
            CONFIGS,
            asked,
            "--alter --entity-type topics --entity-name none --add-config flush.ms=9",
            is_refused=True,
        ),
        Words(
            CONFIGS, asked, "--alter --entity-type topics --entity-name a --delete-config flush.ms"
        ),
    )
)

#: While both brokers live.
WORDS: Final = (
    *_CLUSTER_WORDS,
    *_TOPIC_WORDS,
    *_CONFIG_WORDS,
    _topics("--describe --topic a"),
    Words(ELECTIONS, Asked.BROKERS, "--election-type preferred --all-topic-partitions"),
    *(
        _topics(f"--delete --topic {name}", is_refused=is_refused)
        for name, is_refused in (("a", False), ("a", True), ("none", True), ("b.x", False))
    ),
    # The same name, and another topic.
    _topics("--create --topic a --replica-assignment 12"),
    _topics("--describe"),
    *(Words(CLUSTER, asked, "unregister --id 99", is_refused=True) for asked in _BOTH),
)

#: Once broker 12 was killed and is fenced.
FENCED_WORDS: Final = (
    Words(CLUSTER, Asked.BROKERS, "list-endpoints"),
    Words(CLUSTER, Asked.BROKERS, "list-endpoints --include-fenced-brokers"),
    _topics("--describe"),
    _topics("--create --topic c --replica-assignment 12", is_refused=True),
    # A fenced broker may hold what another leads.
    _topics("--create --topic d --partitions 1 --replication-factor 2"),
    Words(CLUSTER, Asked.CONTROLLERS, "unregister --id 12"),
    Words(CLUSTER, Asked.BROKERS, "unregister --id 12", is_refused=True),
    Words(CLUSTER, Asked.BROKERS, "list-endpoints --include-fenced-brokers"),
    _topics("--describe"),
)
