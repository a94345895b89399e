"""Configured values: the value that a text stands for, and which values are refused.

Exactly those that Kafka takes are taken: a value that the controller lets through reaches every
broker. Source: Kafka 4.3.1's ``ConfigDef``; the messages are those that a client of Kafka sees.
"""

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.wire.errors import ApiError

ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...]

#: Characters that Java's ``String.trim`` takes away.
_BLANKS: Final = "".join(map(chr, range(0x21)))
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)"
)
_COMMA: Final = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
#: Doubles from the first to below the second are written without an exponent.
_PLAIN_DOUBLES: Final = (1e-3, 1e7)


class ConfigType(IntEnum):
    """Types, with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BITS: Final[Mapping[ConfigType, int]] = MappingProxyType({ConfigType.INT: 32, ConfigType.LONG: 64})


class Check(Protocol):
    """Condition on a value, besides its type."""

    def check(self, name: str, value: Any) -> None:
        """Refuse a bad value; raises Refusal with INVALID_CONFIG."""
        ...


class ConfigDefinition(msgspec.Struct, frozen=True):
    """One config of a kind of resource."""

    name: str
    type: ConfigType
    #: As text; None for no value at all.
    default: str | None
    check: Check | None = None
    #: Not told to anybody unless it was set.
    is_internal: bool = False


def config_table(definitions: Iterable[ConfigDefinition]) -> Mapping[str, ConfigDefinition]:
    """Definitions by name, in the order in which values are checked."""
    return MappingProxyType({definition.name: definition for definition in definitions})


def parse_config(definition: ConfigDefinition, text: str) -> ConfigValue:
    """Return the value that the text stands for.

    Raises Refusal: INVALID_CONFIG, it stands for none, or for one that is refused.
    """
    value = _parsed(definition.name, definition.type, text)
    if isinstance(definition.check, ListOf):
        # An item named twice counts once.
        value = tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value
    if definition.check is not None:
        definition.check.check(definition.name, value)
    return value


def parse_configs(
    definitions: Mapping[str, ConfigDefinition], texts: Mapping[str, str]
) -> dict[str, ConfigValue]:
    """Values of all defined configs, by default where nothing is set.

    Raises Refusal: INVALID_CONFIG, the first bad value in the order of the table.
    """
    values: dict[str, ConfigValue] = {}
    for name, definition in definitions.items():
        text = texts.get(name, definition.default)
        if text is not None:
            values[name] = parse_config(definition, text)
    return values


def config_text(value: ConfigValue) -> str:
    """Return the value as Kafka writes it."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return _double_text(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def bad_value(name: str, value: object, problem: str) -> Refusal:
    """Return the refusal of a value, in Kafka's words."""
    return bad_config(f"Invalid value {value} for configuration {name}: {problem}")


def bad_config(problem: str) -> Refusal:
    """Return the refusal of a configuration."""
    return Refusal(ApiError.INVALID_CONFIG, problem)


class AtLeast(msgspec.Struct, frozen=True):
    """A number with a lower bound."""

    lowest: int

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        if value < self.lowest:
            raise bad_value(name, _shown(value), f"Value must be at least {self.lowest}")


class Between(msgspec.Struct, frozen=True):
    """A number with two bounds, both allowed."""

    lowest: int
    highest: int

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        AtLeast(self.lowest).check(name, value)
        if value > self.highest:
            raise bad_value(name, _shown(value), f"Value must be no more than {self.highest}")


class BetweenOr(msgspec.Struct, frozen=True):
    """A number with two bounds, or one that stands for something else."""

    lowest: int
    highest: int
    other: int

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        if not self.lowest <= value <= self.highest and value != self.other:
            raise bad_value(
                name,
                value,
                f"Value must be between {self.lowest} and {self.highest} or equal to {self.other}",
            )


class OneOf(msgspec.Struct, frozen=True):
    """One of some words."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        if value not in self.words:
            raise bad_value(name, value, f"String must be one of: {', '.join(self.words)}")


class ListOf(msgspec.Struct, frozen=True):
    """A list of non-empty words; of any, if none are named. It may be empty."""

    words: tuple[str, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        for word in value:
            if not word:
                raise bad_config(f"Configuration '{name}' values must not be empty.")
            if self.words:
                OneOf(self.words).check(name, word)


class ThrottledReplicas(msgspec.Struct, frozen=True):
    """Pairs of partition and broker, or '*' for all."""

    def check(self, name: str, value: Any) -> None:
        """As ``Check`` says."""
        stripped = [word.strip(_BLANKS) for word in value]
        if "".join(stripped) == "*":
            return
        if any(re.fullmatch(r"([0-9]+:[0-9]+)?", word) is None for word in stripped):
            raise bad_value(
                name,
                _shown(value),
                f"{name} must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            )


def _parsed(name: str, kind: ConfigType, text: str) -> ConfigValue:
    trimmed = text.strip(_BLANKS)
    match kind:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in {"true", "false"}:
                raise bad_value(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.LONG:
            if _INTEGER.fullmatch(trimmed) is not None:
                bound = 1 << _BITS[kind] - 1
                if -bound <= (number := int(trimmed)) < bound:
                    return number
            raise bad_value(name, text, f"Not a number of type {kind.name}")
        case ConfigType.DOUBLE:
            if _DOUBLE.fullmatch(trimmed) is None:
                raise bad_value(name, text, f"Not a number of type {kind.name}")
            return float(trimmed.rstrip("fFdD") if "Inf" not in trimmed else trimmed)
        case ConfigType.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        case _:
            return trimmed


def _shown(value: ConfigValue) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return config_text(value)


def _double_text(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    low, high = _PLAIN_DOUBLES
    if value == 0 or low <= abs(value) < high:
        return repr(value)
    is_negative, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    power = int(exponent) + len(rest)
    return f"{'-' if is_negative else ''}{first}.{''.join(rest) or '0'}E{power}"
