"""Holds classes of users to the types that their contract of ours has.

The contract of a method or an attribute is what the most basic class of ours says that has it. So a
wrong return is told where it is made, with file and line, and not where it is used.
"""

import functools
import inspect
import reprlib
import threading
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, TypeVar, cast

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import AdapterError, UsageError, in_one_line
from splitbrain.plugins.blame import authors_place, place_of

_Made = TypeVar("_Made")
_HELD: Final[set[type]] = set()
_NUMBERS: Final[Mapping[Any, type]] = {float: Real, int: Integral}


def held(made: _Made, named: str) -> _Made:
    """Return an object of a user's class; from now on its methods are held to the contract.

    Args:
        made: the object, whose attributes are looked at.
        named: what it is, for sentences.

    Raises:
        UsageError: an attribute has another type, or a method takes other arguments.
    """
    kind = type(made)
    for name, hint in _attributes(kind).items():
        value = getattr(made, name, None)
        if not fits(value, hint):
            raise UsageError(
                f"{name} of {named} is {_shown(value)}, not {_words(hint)}", "Repair the adapter"
            )
    for base in kind.__mro__:
        if base is not object and not _is_ours(base) and base not in _HELD:
            for name, function in [*vars(base).items()]:
                contract = _contract(kind, name)
                if contract is not None and isinstance(function, FunctionType):
                    setattr(base, name, _held_function(function, contract))
            _HELD.add(base)
    return made


def _is_ours(kind: type) -> bool:
    return f"{kind.__module__}.".startswith(f"{PACKAGE}.")


def _bases(kind: type) -> Iterator[type]:
    """Yield the classes of ours that it derives from, the most basic first."""
    return (base for base in reversed(kind.__mro__) if base is not object and _is_ours(base))


def _attributes(kind: type) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for base in _bases(kind):
        for name, hint in typing.get_type_hints(base).items():
            if not name.startswith("_"):
                hints.setdefault(name, hint)
    return hints


def _contract(kind: type, name: str) -> FunctionType | None:
    found = (vars(base).get(name) for base in _bases(kind) if not name.startswith("_"))
    return next((each for each in found if isinstance(each, FunctionType)), None)


def _held_function(function: FunctionType, contract: FunctionType) -> Callable[..., Any]:
    _check_arguments(function, contract)
    if inspect.iscoroutinefunction(function):
        return function
    is_awaited = inspect.iscoroutinefunction(contract)
    hint = Any if is_awaited else _returned(contract)

    @functools.wraps(function)
    def held_function(*arguments: Any, **named: Any) -> Any:
        try:
            value = function(*arguments, **named)
        except (SystemExit, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and _may_be_the_users():
                raise
            raise _broken(function, f"it raised {in_one_line(error)}", error) from error
        if is_awaited and not inspect.isawaitable(value):
            raise _broken(function, "it is awaited and is no coroutine; write async def")
        if not fits(value, hint):
            raise _broken(function, f"it returned {_shown(value)}, not {_words(hint)}")
        return value

    return held_function


def _may_be_the_users() -> bool:
    """Whether an interruption may have come from the keyboard: only one thread gets these."""
    return threading.current_thread() is threading.main_thread()


def _check_arguments(function: FunctionType, contract: FunctionType) -> None:
    names = [*inspect.signature(contract).parameters]
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        raise UsageError(
            f"{function.__qualname__} ({place_of(function)}) does not take {', '.join(names)}",
            f"Write it as def {function.__name__}({', '.join(names)})",
        ) from None


def _returned(contract: FunctionType) -> Any:
    try:
        hint = typing.get_type_hints(contract).get("return", Any)
    except NameError:  # imported for type checkers alone
        return Any
    # Nobody looks at a value where none is asked for.
    return Any if hint is NoneType else hint


def _broken(
    function: FunctionType, problem: str, error: BaseException | None = None
) -> AdapterError:
    place = place_of(function) if error is None else authors_place(error) or place_of(function)
    target = f"{function.__qualname__}, {place}"
    return AdapterError("use the adapter", target, problem, "Repair the adapter.")


def fits(value: object, hint: Any) -> bool:
    """Return whether a value has a type, as far as that can be told without using it."""
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _NUMBERS:
        return not isinstance(value, bool) and isinstance(value, _NUMBERS[hint])
    if origin in (typing.Union, UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin in (abc.Mapping, abc.Sequence, dict, list, tuple):
        return _fits_container(value, origin, arguments)
    if getattr(hint, "_is_protocol", False):
        names: list[str] = [*vars(hint)]
        return all(hasattr(value, name) for name in names if not name.startswith("_"))
    return hint is Any or not isinstance(hint, type) or isinstance(value, hint)


def _fits_container(value: object, origin: Any, arguments: tuple[Any, ...]) -> bool:
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return False
        items = cast("Mapping[object, object]", value).items()
        return all(fits(key, arguments[0]) and fits(each, arguments[1]) for key, each in items)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    elements = cast("Sequence[object]", value)
    if origin is not tuple or (isinstance(value, tuple) and arguments[1:] == (...,)):
        return all(fits(each, arguments[0]) for each in elements)
    are_as_many = isinstance(value, tuple) and len(elements) == len(arguments)
    return are_as_many and all(map(fits, elements, arguments))


def _shown(value: object) -> str:
    return "None" if value is None else f"the {type(value).__name__} {reprlib.repr(value)}"


def _words(hint: Any) -> str:
    hint = getattr(hint, "__supertype__", hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
        *others, last = map(_words, arguments)
        return f"{', '.join(others)} or {last}"
    if origin is typing.Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple:
        return f"a tuple of {_words(arguments[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of {_words(arguments[0])} to {_words(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a sequence of {_words(arguments[0])}"
    return "None" if hint is NoneType else getattr(hint, "__name__", str(hint))
