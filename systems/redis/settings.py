"""Settings open to users, by Redis' and Sentinel's own names, and the defaults of a run. Pure.

Two names are of this adapter's clients alone: ``replica-reads`` and ``follow-switches``. A name
unknown here is refused rather than handed on: a misspelt name would otherwise test the default.

Nodes know each other as ``host port``; clients of the harness reach the same servers through other
addresses, so ``Membership`` translates every address that a node tells.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Address
from splitbrain.contracts.system import CLIENT_PORT, PEER_PORT

#: Where a node's named port is reached now.
Endpoint = Callable[[NodeName, str], Address]

#: The server's port, which clients and replicas use.
SERVER_PORT: Final = CLIENT_PORT
#: Sentinel's port, which clients and the other Sentinels use.
SENTINEL_PORT: Final = PEER_PORT
#: Sentinel's name for the group of servers.
MASTER_NAME: Final = "splitbrain"


class Member(msgspec.Struct, frozen=True):
    """One node, as the other nodes know it."""

    node: NodeName
    host: str
    server_port: int
    sentinel_port: int
    #: Sentinel's identity, 40 hexadecimal digits.
    sentinel_id: str


class Membership(msgspec.Struct, frozen=True):
    """All nodes of a cluster, in their order; the first is the first primary."""

    members: tuple[Member, ...]

    def node_at(self, host: str, port: str) -> NodeName | None:
        """Return the node whose server the others know by this address."""
        for member in self.members:
            if (member.host, str(member.server_port)) == (host, port):
                return member.node
        return None


Part = Literal["server", "sentinel", "client"]


class Setting(msgspec.Struct, frozen=True):
    """One setting that exists."""

    part: Part
    #: Value in force where the user gives none; None leaves it to the program.
    default: str | None
    #: Words that it may be; empty for numbers.
    choices: tuple[str, ...] = ()
    #: Range of a number.
    least: int = 0
    most: int = 2_147_483_647

    def refuses(self, value: str) -> str | None:
        """Return what the value should have been, None where it fits."""
        if self.choices:
            return None if value in self.choices else f"one of {', '.join(self.choices)}"
        if value.isascii() and value.isdigit() and self.least <= int(value) <= self.most:
            return None
        return f"a whole number between {self.least} and {self.most}"


_YES_NO: Final = ("yes", "no")

SETTINGS: Final[dict[str, Setting]] = {
    "appendonly": Setting("server", "yes", _YES_NO),
    "appendfsync": Setting("server", "everysec", ("always", "everysec", "no")),
    "min-replicas-to-write": Setting("server", "0"),
    "min-replicas-max-lag": Setting("server", "10"),
    "replica-serve-stale-data": Setting("server", "yes", _YES_NO),
    "repl-timeout": Setting("server", "60", least=1),
    "repl-ping-replica-period": Setting("server", None, least=1),
    "repl-diskless-sync": Setting("server", "yes", _YES_NO),
    # Redis waits 5 s for more replicas before a full transfer; here nothing is gained by it.
    "repl-diskless-sync-delay": Setting("server", "0"),
    # A busy machine stands still for a second now and then; that is no reason to fail over.
    "down-after-milliseconds": Setting("sentinel", "2000", least=1),
    # Two Sentinels that see the primary go at one moment split the vote, and each waits for this
    # long twice before it stands again: an isolation of 8 s has time for three elections.
    "failover-timeout": Setting("sentinel", "1000", least=1),
    "parallel-syncs": Setting("sentinel", "1", least=1),
    "quorum": Setting("sentinel", None, least=1, most=9),
    "replica-reads": Setting("client", "no", _YES_NO),
    "follow-switches": Setting("client", "yes", _YES_NO),
}


class Settings(msgspec.Struct, frozen=True):
    """All settings in force, by the part of the system that they belong to."""

    server: dict[str, str]
    sentinel: dict[str, str]
    #: Clients also take the answer of a node that does not claim to be the primary.
    replica_reads: bool
    #: Clients that follow Sentinel move on when it names another primary, not only after an error.
    follow_switches: bool


def settings(given: Mapping[str, str], nodes: int) -> Settings:
    """Return the settings in force; UsageError: a name does not exist or a value does not fit."""
    for name, value in given.items():
        _check(name, value, nodes)
    in_force = {
        name: value
        for name, setting in SETTINGS.items()
        if (value := given.get(name, setting.default)) is not None
    }
    in_force.setdefault("quorum", str(nodes // 2 + 1))

    def part(wanted: Part) -> dict[str, str]:
        return {name: value for name, value in in_force.items() if SETTINGS[name].part == wanted}

    return Settings(
        server=part("server"),
        sentinel=part("sentinel"),
        replica_reads=in_force["replica-reads"] == "yes",
        follow_switches=in_force["follow-switches"] == "yes",
    )


def _check(name: str, value: str, nodes: int) -> None:
    setting = SETTINGS.get(name)
    if setting is None:
        raise UsageError(
            f"redis has no setting {name!r} here", f"Choose one of: {', '.join(SETTINGS)}"
        )
    wanted = setting.refuses(value)
    if wanted is not None:
        raise UsageError(f"the setting {name} of redis cannot be {value!r}", f"It takes {wanted}")
    if name == "quorum" and int(value) > nodes:
        raise UsageError(
            f"a quorum of {value} Sentinels cannot be had with {nodes} nodes",
            f"Choose a quorum between 1 and {nodes}",
        )
    if name == "min-replicas-to-write" and int(value) >= nodes:
        raise UsageError(
            f"min-replicas-to-write={value} refuses every write with {nodes} nodes",
            f"Choose a number between 0 and {nodes - 1}",
        )
