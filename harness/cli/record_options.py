"""Options of commands: the fields of records that they take, and ``--patch``.

The parser looks at a command's signature and knows no msgspec. So a command is handed to it with a
signature in which a parameter that is a record stands as its fields (``history.options``), and gets
records of what the parser has read, their numbers within their bounds.

A process has one set of patches, taken before anything that they change is loaded. So ``--patch``
starts the command line anew under the launcher, in this process' place. Source: issue 20.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from cyclopts import Parameter

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.command_app import (
    Number,
    OfRun,
    Repeatable,
    Seconds,
    Seeds,
    Whole,
    completed,
    heading_of_options,
)
from splitbrain.harness.cli.completion import has_values
from splitbrain.history.options import OptionField, check_numbers, options_of
from splitbrain.history.reproduce_line import without_maker

#: Fields that are one seed, or some.
_SEEDS = ("seed", "seeds")
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


def with_records(**usual: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Have a command take the fields of its records as options.

    ``usual`` are values of fields that their record gives none, or none that a command takes; a
    function is called where the option is not given, and its value is not shown before. A parameter
    of type ``range`` is no option: it gets all the seeds that the command line names, the first of
    which is the record's.
    """

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        hints = get_type_hints(command, include_extras=True)
        records: dict[str, dict[str, OptionField]] = {}
        shown: list[inspect.Parameter] = []
        seeds: str | None = None
        for parameter in inspect.signature(command).parameters.values():
            hint = hints[parameter.name]
            if hint is range:
                seeds = parameter.name
            elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
                records[parameter.name] = {field.name: field for field in options_of(hint)}
                shown += [_parameter(field, usual) for field in options_of(hint)]
            else:
                shown.append(parameter.replace(annotation=hint))

        @functools.wraps(command)
        def parsed(*arguments: Any, **options: Any) -> int:
            given = signature.bind(*arguments, **options).arguments
            named = given.get("seed")
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
                if seeds is not None and "seed" in fields:
                    first = given[name].seed
                    given[seeds] = named or range(first, first + 1)
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
    names: tuple[str, ...] | None = (field.flag,)
    if field.is_repeatable:
        default, hint, how = None, list[str] | None, Repeatable
    elif field.name in _SEEDS:
        hint, how, names = range | None, Seeds, ("--seed", "--seeds")
    elif field.is_duration:
        how = Seconds
    elif (number := {int, float} & {hint, *get_args(hint)}) and bool not in number:
        how = Whole if int in number else Number
    if field.option.is_positional:
        names = None
    if default is msgspec.NODEFAULT:
        default = inspect.Parameter.empty
    elif callable(default):
        default = None
    kind = _POSITIONAL if field.option.is_positional else _KEYWORD
    more: dict[str, Any] = {}
    if field.option.group:
        more["group"] = heading_of_options(field.option.group)
    if get_origin(field.type) is dict:
        more["metavar"] = "NAME=VALUE"
    shown = [Parameter(name=names, help=field.option.help, **more)]
    if field.option.is_positional and Path in (field.type, *get_args(field.type)):
        shown.append(OfRun)
    elif has_values(field.flag):
        shown.append(completed(field.flag))
    annotation = Annotated[(hint, *shown, *([how] if how else []))]
    return inspect.Parameter(field.name, kind, default=default, annotation=annotation)


def _read(field: OptionField, value: Any) -> Any:
    """Return the value of a field from what the parser has read."""
    if field.name == "system" and value is not None:
        from splitbrain.systems.registry import admitted

        return admitted(value)
    if field.name == "seed" and isinstance(value, range):
        return value.start
    if not field.is_repeatable:
        return value
    return tuple(value or ()) if get_origin(field.type) is tuple else pairs_of(field.flag, value)


def pairs_of(option: str, values: list[str] | None) -> dict[str, str]:
    """Return what a repeatable option ``NAME=VALUE`` was given; UsageError where it is no pair."""
    pairs: dict[str, str] = {}
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is not a pair", f"Write {option} NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} sets {name!r} twice", "Give it once")
        pairs[name] = value
    return pairs


#: Type of the option's parameter.
PatchFiles = Annotated[
    list[Path] | None,
    Parameter(
        name="--patch",
        negative="",
        consume_multiple=False,
        group=heading_of_options("System"),
        metavar="FILE",
        help="Unified diff of splitbrain's own source, applied in memory to this command and its "
        "nodes: a bug or a mend to try; repeatable.",
    ),
]


def start_patched(files: list[Path] | None) -> None:
    """Start this command line anew with patches applied; return where they are applied already.

    Raises:
        UsageError: one cannot be read or does not fit, or the process has others.
    """
    if not files:
        return
    from splitbrain.harness.pool.child_environment import child_environment
    from splitbrain.patched.loading import PatchedModules, installed_patches, read_patch_file
    from splitbrain.patched.patch import PatchError

    try:
        patches = [read_patch_file(file) for file in files]
        if installed := installed_patches():
            if list(installed) == patches:
                return
            raise UsageError(
                "--patch is given to a command that has patches already",
                "Name all of them with --patch, and leave out the launcher",
            )
        PatchedModules(patches, Path(__file__).parents[2])
    except PatchError as error:
        problem, _, next_step = str(error).removesuffix(".").rpartition(". ")
        raise UsageError(problem, next_step) from error
    command = [sys.executable, "-P", "-m", f"{PACKAGE}.patched", *map(str, files), "--"]
    command += ["-m", f"{PACKAGE}.harness.cli", *without_maker(sys.argv[1:])[0]]
    os.execve(sys.executable, command, child_environment())  # noqa: S606 - no shell is wanted
