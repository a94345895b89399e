"""Options of fault kinds: read by their schema, refused by name with the nearest right one."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Meta

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import (
    PINNED_NODES,
    UNTIL,
    UNTIL_COUNT,
    UNTIL_DELAY_US,
    US_PER_MS,
    in_ms,
    in_us,
)
from splitbrain.contracts.nearest import or_nearest

_Options = TypeVar("_Options", bound=msgspec.Struct)

_DAY_MS = 86_400_000
#: A share of packets.
Share = Annotated[float, Meta(ge=0.01, le=1.0)]
Milliseconds = Annotated[int, Meta(ge=1, le=_DAY_MS)]
_MINUTE_US = 60_000_000
_Delay = Annotated[int, Meta(ge=1, le=_MINUTE_US)]
_Jitter = Annotated[int, Meta(ge=0, le=_MINUTE_US)]
_YEAR_US = 365 * _DAY_MS * US_PER_MS
_Offset = Annotated[int, Meta(ge=-_YEAR_US, le=_YEAR_US)]
Times = Annotated[int, Meta(ge=1, le=1000)]
_Flag = Annotated[int, Meta(ge=0, le=1)]

#: Option of every fault: it may go beyond what a system can promise to survive.
BEYOND_PROMISE = "beyond_promise"
#: Options of a sequel: index of the fault that must have struck before, and where what the sequel
#: waits for must happen: at the nodes that were hit, or at others; without it anywhere.
AFTER = "after"
PLACE = "after_place"
SAME = "same"
OTHER = "other"
#: Options that only scenarios of the simulation carry; the simulation reads them.
_SIMULATED = (AFTER, PLACE, UNTIL, UNTIL_COUNT, UNTIL_DELAY_US)

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

    delay_us: _Delay = 200_000
    #: None: a quarter of the delay.
    jitter_us: _Jitter | None = None
    direction: Direction = "both"

    def __post_init__(self) -> None:
        if self.jitter_us is None:
            msgspec.structs.force_setattr(self, "jitter_us", self.delay_us // 4)
        if self.varies_us > self.delay_us:
            delay_ms, jitter_ms = in_ms(self.delay_us), in_ms(self.varies_us)
            raise UsageError(
                f"a delay of {delay_ms:g} ms cannot vary by {jitter_ms:g} ms",
                "Give a jitter_ms from 0 to delay_ms",
            )

    @property
    def varies_us(self) -> int:
        """Return by how much the delay varies, in either direction."""
        return self.jitter_us or 0


class ReorderOptions(msgspec.Struct, frozen=True):
    """Of packets that overtake others."""

    reorder: Share = 0.5
    #: Of those that are overtaken.
    delay_us: _Delay = 50_000
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


class SlowLinkOptions(msgspec.Struct, frozen=True):
    """Of a link that is slow in each direction by itself; None: drawn, or not at all."""

    #: Towards the other node, and back; 0: not slower.
    delay_us: _Jitter | None = None
    back_delay_us: _Jitter | None = None


class FullDiskOptions(msgspec.Struct, frozen=True):
    """Of a disk without room."""

    #: Bytes that still fit; more than 0 only where disks are exact.
    spare_bytes: Annotated[int, Meta(ge=0, le=1 << 30)] = 0


class SlowDiskOptions(msgspec.Struct, frozen=True):
    """Of a slow disk."""

    #: Jobs take so many times as long; None: drawn.
    factor: Annotated[int, Meta(ge=1, le=1 << 20)] | None = None


class SyncOptions(msgspec.Struct, frozen=True):
    """Of syncs that fail."""

    #: The next ones.
    count: Times = 1


class CallOptions(msgspec.Struct, frozen=True):
    """Of calls to a disk that fail. None: drawn."""

    #: The next ones, where it is not lasting.
    count: Times = 1
    #: Whether all of them fail until the fault is healed, 0 or 1.
    lasting: _Flag | None = None
    #: Whether the node is restarted into it: what a start does happens seldom otherwise.
    restart: _Flag | None = None


class RotOptions(msgspec.Struct, frozen=True):
    """Of bits that rot."""

    #: Whether the node is down meanwhile, so that its start meets them; None: drawn.
    restart: _Flag | None = None


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
    offset_us: _Offset = 60_000_000


class ClockDriftOptions(msgspec.Struct, frozen=True):
    """Of a wall clock that goes too fast or too slow."""

    drift_ppm: Annotated[int, Meta(ge=-900_000, le=9_000_000)] = 200_000


class ClockStrobeOptions(msgspec.Struct, frozen=True):
    """Of a wall clock that jumps to and fro."""

    offset_us: _Offset = 30_000_000
    #: From one jump to the next.
    period_ms: Annotated[int, Meta(ge=200, le=_DAY_MS)] = 1000


def read_options(kind: str, schema: type[_Options], options: Mapping[str, Any]) -> _Options:
    """Return the options of a fault, defaults filled in; those that every fault may have left out.

    A time that the schema has in microseconds may be told in milliseconds: ``delay_ms = 1.5``.

    Raises:
        UsageError: names the option that does not exist or cannot have its value.
    """
    fields = {field.name: field for field in msgspec.structs.fields(schema)}
    types = get_type_hints(schema, include_extras=True)
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in (PINNED_NODES, BEYOND_PROMISE, *_SIMULATED):
            continue
        field = name if name in fields else _in_records(name)
        if field not in fields or field in given:
            raise UsageError(
                f"the fault {kind!r} has no option {name!r}"
                if field not in fields
                else f"the fault {kind!r} has its option {name!r} twice",
                or_nearest(name, (*map(_for_users, fields), PINNED_NODES), "options"),
            )
        try:
            in_record = value if field == name else _from_ms(value)
            given[field] = msgspec.convert(in_record, types[field])
        except msgspec.ValidationError as error:
            raise UsageError(
                f"the option {name!r} of the fault {kind!r} cannot be {value!r}",
                _expected(str(error), types[field], is_told_in_ms=field != name),
            ) from error
    return schema(**given)


def _from_ms(value: Any) -> int:
    """Microseconds of a time that is told in milliseconds.

    Raises:
        msgspec.ValidationError: it is no number.
    """
    time_ms = msgspec.convert(value, float)
    if not math.isfinite(time_ms):
        raise msgspec.ValidationError("Expected `float`")
    return in_us(time_ms)


def _in_records(name: str) -> str:
    """Return the name of an option told in milliseconds, in microseconds."""
    return re.sub("_ms$", "_us", name)


def _for_users(name: str) -> str:
    """Return the name of an option as users write it, who say milliseconds."""
    return re.sub("_us$", "_ms", name)


def filled(options: msgspec.Struct) -> dict[str, Any]:
    """Return the options as a record keeps them."""
    return msgspec.structs.asdict(options)


def described(schema: type[msgspec.Struct]) -> str:
    """Return the options and their defaults in one clause, for tables of kinds; empty for none."""
    fields = msgspec.structs.fields(schema)
    return ", ".join(
        f"{_for_users(field.name)} = "
        f"{in_ms(field.default) if field.name.endswith('_us') and field.default else field.default}"
        for field in fields
    )


def _expected(said: str, type_: Any, *, is_told_in_ms: bool) -> str:
    """Return a next step from what the decoder said."""
    if is_told_in_ms:
        said = re.sub(r"(?<=[<>]= )-?\d+", lambda bound: f"{in_ms(int(bound[0])):g}", said)
    choices = ", ".join(map(str, getattr(type_, "__args__", ())))
    for pattern, words in _WORDS:
        said = re.sub(pattern, words.replace("{choices}", choices), said)
    return said[:1].upper() + said[1:]
