"""Options of commands as fields of records; pure.

A field with an ``Option`` beside its type is one. The field is the only source of the option's
names, help text, default and bounds. Source: issue 20.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast, get_args, get_origin, get_type_hints

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Option
from splitbrain.history.seeds import seeds_text


class OptionField(msgspec.Struct, frozen=True):
    """Field of a record that is an option."""

    name: str
    #: Type of the field, without the ``Option``.
    type: Any
    #: ``msgspec.NODEFAULT``: required.
    default: Any
    option: Option

    @property
    def is_repeatable(self) -> bool:
        """Whether it is given once for each of its values."""
        return get_origin(self.type) in (tuple, dict)

    @property
    def is_duration(self) -> bool:
        """Whether it is a time, which the command line and files take with units."""
        return self.name.endswith("_s") and float in (self.type, *get_args(self.type))

    @property
    def key(self) -> str:
        """Name in files: without the unit, and of one value: ``time_limit``, ``bug``."""
        return self.name.removesuffix("s" if self.is_repeatable else "_s")

    @property
    def flag(self) -> str:
        """Name on the command line: ``--time-limit``, ``--bug``."""
        return "--" + self.key.replace("_", "-")

    def words(self, value: Any) -> list[str]:
        """Return the words of the command line that give it this value; none for None."""
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, Any]", value).items()
            return [word for name, part in pairs for word in (self.flag, f"{name}={part}")]
        if isinstance(value, tuple | list):
            return [word for part in cast("Iterable[str]", value) for word in (self.flag, part)]
        if isinstance(value, bool):
            return [self.flag if value else self.flag.replace("--", "--no-", 1)]
        if isinstance(value, range):
            return [self.flag, seeds_text(value)]
        shown = _number(value) if isinstance(value, float) else str(value)
        return [] if value is None else [self.flag, shown]


@functools.cache
def options_of(record: type[msgspec.Struct]) -> tuple[OptionField, ...]:
    """Return the options of a record, in the order of its fields."""
    hints = get_type_hints(record, include_extras=True)
    found: list[OptionField] = []
    for field in msgspec.structs.fields(record):
        type_, *beside = get_args(hints[field.name]) or (None,)
        option = next((note for note in beside if isinstance(note, Option)), None)
        if option is None:
            continue
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append(OptionField(field.name, type_, default, option))
    return tuple(found)


def given(record: msgspec.Struct) -> Iterator[OptionField]:
    """Yield the options of a record that do not have their defaults."""
    for field in options_of(type(record)):
        if getattr(record, field.name) != field.default:
            yield field


def refuse_unfit(record: msgspec.Struct, way: str, problem: str, next_step: str) -> None:
    """Refuse options that do not fit a way of the command.

    Raises:
        UsageError: names the first of them; ``problem`` is the mismatch.
    """
    for field in given(record):
        if field.option.only and way not in field.option.only:
            flag = field.flag
            if getattr(record, field.name) is False:
                flag = flag.replace("--", "--no-", 1)
            raise UsageError(f"{flag} does not fit {problem}", next_step)


def check_numbers(record: msgspec.Struct) -> None:
    """Check the numbers of a record against their bounds.

    Raises:
        UsageError: names the first that is out of them.
    """
    for field in options_of(type(record)):
        value, option = getattr(record, field.name), field.option
        # NaN compares with nothing, and is refused by any bound.
        if value is not None and not (
            (option.least is None or value >= option.least)
            and (option.above is None or value > option.above)
            and (option.most is None or value <= option.most)
        ):
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            raise UsageError(f"{field.flag} cannot be {shown}", f"Choose a number {_range(option)}")


def _range(option: Option) -> str:
    if option.above is not None:
        most = "" if option.most is None else f" and at most {option.most:,.0f}"
        unit = f"{option.unit} " if option.unit else ""
        return f"{unit}above {option.above:g}{most}"
    if option.most is None:
        return f"of at least {option.least}"
    return f"between {option.least:,} and {option.most:,}"


def _number(value: float) -> str:
    """Return the short form if it is exact, else all digits."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
