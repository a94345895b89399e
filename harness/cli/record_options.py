"""Commands that take records: each field of such a record is an option of the command line.

The parser looks at a command's signature and knows no msgspec. So a command is handed to it with a
signature in which a parameter that is a record stands as its fields (``history.options``), and gets
records of what the parser has read, their numbers within their bounds. Source: issue 20.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.command_app import Number, Repeatable, Whole
from splitbrain.history.options import OptionField, check_numbers, options_of

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def with_records(**usual: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Have a command take the fields of its records as options.

    ``usual`` are values of fields that their record gives none, or none that a command takes; a
    function is called where the option is not given, and its value is not shown before.
    """

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        hints = get_type_hints(command, include_extras=True)
        records: dict[str, dict[str, OptionField]] = {}
        shown: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            hint = hints[parameter.name]
            if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
                records[parameter.name] = {field.name: field for field in options_of(hint)}
                shown += [_parameter(field, usual) for field in options_of(hint)]
            else:
                shown.append(parameter.replace(annotation=hint))

        @functools.wraps(command)
        def parsed(*arguments: Any, **options: Any) -> int:
            given = signature.bind(*arguments, **options).arguments
            for name, fields in records.items():
                values = {
                    field.name: _read(field, given.pop(field.name))
                    for field in fields.values()
                    if field.name in given
                }
                for field in fields.keys() & usual.keys() - values.keys():
                    values[field] = usual[field]() if callable(usual[field]) else usual[field]
                given[name] = hints[name](**values)
                check_numbers(given[name])
            return command(**given)

        # Those that are given by their place come first.
        signature = inspect.Signature(sorted(shown, key=lambda parameter: parameter.kind))
        parsed.__dict__["__signature__"] = signature
        parsed.__annotations__ = {parameter.name: parameter.annotation for parameter in shown} | {
            "return": int
        }
        return parsed

    return decorated


def _parameter(field: OptionField, usual: dict[str, Any]) -> inspect.Parameter:
    """Return the field as the parser is to see it."""
    default, hint, how = usual.get(field.name, field.default), field.type, None
    if field.is_repeatable:
        default, hint, how = None, list[str] | None, Repeatable
    elif (number := {int, float} & {hint, *get_args(hint)}) and bool not in number:
        how = Whole if int in number else Number
    flag = None if field.option.is_positional else field.flag
    names = Parameter(name=flag, help=field.option.help)
    if default is msgspec.NODEFAULT:
        default = inspect.Parameter.empty
    elif callable(default):
        default = None
    kind = _POSITIONAL if field.option.is_positional else _KEYWORD
    annotation = Annotated[(hint, names, *([how] if how else []))]
    return inspect.Parameter(field.name, kind, default=default, annotation=annotation)


def _read(field: OptionField, value: Any) -> Any:
    """Return the value of a field from what the parser has read."""
    if not field.is_repeatable:
        return value
    return tuple(value or ()) if get_origin(field.type) is tuple else _pairs(field.flag, value)


def _pairs(option: str, values: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is not a pair", f"Write {option} NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} sets {name!r} twice", "Give it once")
        pairs[name] = value
    return pairs
