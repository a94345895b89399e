"""Options of fault kinds: read by their schema, refused by name with the nearest right one."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from contracts.errors import UsageError
from nemesis.nearest import or_nearest
from nemesis.targets import PINNED_NODES

_Options = TypeVar("_Options", bound=msgspec.Struct)

_DAY_MS = 86_400_000
#: A share of packets.
Share = Annotated[float, Meta(ge=0.01, le=1.0)]
Milliseconds = Annotated[int, Meta(ge=1, le=_DAY_MS)]
Times = Annotated[int, Meta(ge=1, le=1000)]

#: Option of every fault: it may go beyond what a system can promise to survive.
BEYOND_PROMISE = "beyond_promise"
#: Options that only scenarios of the simulation carry; the simulation reads them.
_SIMULATED = ("after", "after_place", "until", "until_count", "until_delay_us")

_WORDS = (
    (r"`(?:int|float)`", "a number"),
    (r"`str`", "text"),
    (r"`bool`", "true or false"),
    (r"Expected (.*), got .*", r"it is \1"),
    (r"Expected (.*)", r"it is \1"),
    (r">= ?", "of at least "),
    (r"<= ?", "of at most "),
    (r"Invalid enum value .*", "it is one of: {choices}"),
)


class NoOptions(msgspec.Struct, frozen=True):
    """A kind that may be told nothing."""


class GroupOptions(msgspec.Struct, frozen=True):
    """Of kinds that separate a group from the rest."""

    #: Nodes that vote, drawn, that are in the group beside the target's.
    beside: Annotated[int, Meta(ge=0, le=8)] = 0
    #: Nodes that do not vote, drawn, that are in the group as well.
    observers: Annotated[int, Meta(ge=0, le=8)] = 0


class FlapOptions(msgspec.Struct, frozen=True):
    """Of a flapping partition."""

    #: Cuts.
    count: Times = 4


class CutThenKillOptions(msgspec.Struct, frozen=True):
    """Of a cut after which the nodes are killed."""

    #: From the cut to the kill.
    kill_after_ms: Milliseconds = 1500


class TerminateOptions(msgspec.Struct, frozen=True):
    """Of faults that ask processes to end."""

    #: How long a process may take to end.
    patience_ms: Milliseconds = 10_000


class CrashLoopOptions(msgspec.Struct, frozen=True):
    """Of a crash loop."""

    #: Kills.
    count: Times = 4


class CpuOptions(msgspec.Struct, frozen=True):
    """Of a throttled processor."""

    #: Of one processor, for all of a node's processes.
    cpu_share: Share = 0.05


class MemoryOptions(msgspec.Struct, frozen=True):
    """Of a memory limit."""

    #: None: three quarters of what the node uses when the fault comes.
    limit_mib: Annotated[int, Meta(ge=8, le=1 << 20)] | None = None


Direction = Literal["both", "in", "out"]


class LossOptions(msgspec.Struct, frozen=True):
    """Of packet loss."""

    loss: Share = 0.3
    direction: Direction = "both"


class DelayOptions(msgspec.Struct, frozen=True):
    """Of late packets."""

    delay_ms: Annotated[int, Meta(ge=1, le=60_000)] = 200
    jitter_ms: Annotated[int, Meta(ge=0, le=60_000)] = 50
    direction: Direction = "both"


class ReorderOptions(msgspec.Struct, frozen=True):
    """Of packets that overtake others."""

    reorder: Share = 0.5
    #: Of those that are overtaken.
    delay_ms: Annotated[int, Meta(ge=1, le=60_000)] = 50
    direction: Direction = "both"


class DuplicateOptions(msgspec.Struct, frozen=True):
    """Of packets that arrive twice."""

    duplicate: Share = 0.5
    direction: Direction = "both"


class RateOptions(msgspec.Struct, frozen=True):
    """Of slow links."""

    rate_kbit: Annotated[int, Meta(ge=8, le=10_000_000)] = 64
    direction: Direction = "both"


class BlackHoleOptions(msgspec.Struct, frozen=True):
    """Of links on which large packets vanish."""

    #: The largest packet that passes, IP header included.
    bytes_max: Annotated[int, Meta(ge=68, le=65_535)] = 576
    direction: Direction = "both"


class ResetOptions(msgspec.Struct, frozen=True):
    """Of connections that are reset."""

    direction: Direction = "both"


class FileOptions(msgspec.Struct, frozen=True):
    """Of changes of files."""

    #: Below the data folder, a glob; one of the files that fit is drawn.
    file: Annotated[str, Meta(min_length=1)] = "**/*.log"
    #: Byte from which on to change; -1: drawn.
    offset: Annotated[int, Meta(ge=-1)] = -1
    #: Bytes to flip one bit of each in, or to cut off.
    length: Annotated[int, Meta(ge=1, le=1 << 20)] = 1


class RestoreOptions(msgspec.Struct, frozen=True):
    """Of a file that is put back to an older state."""

    file: Annotated[str, Meta(min_length=1)] = "**/*.log"


class ClockJumpOptions(msgspec.Struct, frozen=True):
    """Of a wall clock that is wrong."""

    #: Ahead by this much; negative: behind.
    offset_ms: Annotated[int, Meta(ge=-31_536_000_000, le=31_536_000_000)] = 60_000


class ClockDriftOptions(msgspec.Struct, frozen=True):
    """Of a wall clock that goes too fast or too slow."""

    drift_ppm: Annotated[int, Meta(ge=-900_000, le=9_000_000)] = 200_000


class ClockStrobeOptions(msgspec.Struct, frozen=True):
    """Of a wall clock that jumps to and fro."""

    offset_ms: Annotated[int, Meta(ge=-31_536_000_000, le=31_536_000_000)] = 30_000
    #: From one jump to the next.
    period_ms: Annotated[int, Meta(ge=200, le=_DAY_MS)] = 1000


def read_options(kind: str, schema: type[_Options], options: Mapping[str, Any]) -> _Options:
    """The options of a fault, defaults filled in; those that every fault may have left out.

    Raises:
        UsageError: names the option that does not exist or cannot have its value.
    """
    fields = {field.name: field for field in msgspec.structs.fields(schema)}
    types = get_type_hints(schema, include_extras=True)
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in (PINNED_NODES, BEYOND_PROMISE, *_SIMULATED):
            continue
        if name not in fields:
            raise UsageError(
                f"the fault {kind!r} has no option {name!r}",
                or_nearest(name, (*fields, PINNED_NODES), "options"),
            )
        try:
            given[name] = msgspec.convert(value, types[name])
        except msgspec.ValidationError as error:
            raise UsageError(
                f"the option {name!r} of the fault {kind!r} cannot be {value!r}",
                _expected(str(error), types[name]),
            ) from error
    return schema(**given)


def filled(options: msgspec.Struct) -> dict[str, Any]:
    """The options as a record keeps them."""
    return msgspec.structs.asdict(options)


def described(schema: type[msgspec.Struct]) -> str:
    """The options and their defaults in one clause, for tables of kinds; empty for none."""
    fields = msgspec.structs.fields(schema)
    return ", ".join(f"{field.name} = {field.default}" for field in fields)


def _expected(said: str, type_: Any) -> str:
    """A next step from what the decoder said."""
    choices = ", ".join(map(str, getattr(type_, "__args__", ())))
    for pattern, words in _WORDS:
        said = re.sub(pattern, words.replace("{choices}", choices), said)
    return said[:1].upper() + said[1:]
