"""Finds a driver by its name, or in a user's file."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from splitbrain.contracts.errors import UsageError
from splitbrain.plugins.files import absolute, found_in_file, is_file
from splitbrain.systems.compose_file.drivers.driver import AskingDriver, Driver
from splitbrain.systems.servers import Asking

_HOW: Final = "`splitbrain docs try` shows a driver of one's own"
_ENDING: Final = ".py"
_USUAL_NAME: Final = "ask"


def _redis() -> type[Driver]:
    from splitbrain.systems.compose_file.drivers.redis import RedisDriver

    return RedisDriver


def _http() -> type[Driver]:
    from splitbrain.systems.compose_file.drivers.http import HttpDriver

    return HttpDriver


def _etcd() -> type[Driver]:
    from splitbrain.systems.compose_file.drivers.etcd import EtcdDriver

    return EtcdDriver


def _kafka() -> type[Driver]:
    from splitbrain.systems.kafka.library import driver_kind as kafka_driver

    return kafka_driver()


def _postgres() -> type[Driver]:
    from splitbrain.systems.compose_file.drivers.postgres import PostgresDriver

    return PostgresDriver


_KINDS: Final[dict[str, Callable[[], type[Driver]]]] = {
    "etcd": _etcd,
    "http": _http,
    "kafka": _kafka,
    "postgres": _postgres,
    "redis": _redis,
}


def driver_names() -> tuple[str, ...]:
    """Names of all drivers, sorted."""
    return tuple(sorted(_KINDS))


def full_name(name: str) -> str:
    """Return the name fit for another folder: a file's with its path and the thing in it."""
    if name.endswith(_ENDING):
        name = f"{name}:{_USUAL_NAME}"
    return absolute(name) if is_file(name) else name


def driver_kind(name: str) -> type[Driver]:
    """Return the driver of this name, ``path/to/file.py`` or ``path/to/file.py:NAME``.

    Raises:
        UsageError: there is none, or the file cannot be used.
    """
    name = full_name(name)
    if is_file(name):
        return _of_file(name)
    if name not in _KINDS:
        problem = f"there is no driver {name!r}" if name else "no driver is named"
        raise UsageError(problem, f"There are {', '.join(driver_names())}, and your own: file.py")
    return _KINDS[name]()


@cache
def _of_file(name: str) -> type[Driver]:
    found = found_in_file(name, "driver", Driver, _HOW)
    if not callable(found):
        raise UsageError(f"{name} is neither a function nor a driver", _HOW.capitalize())
    if isinstance(found, type) and issubclass(found, Driver):
        found.name = getattr(found, "name", name)
        return found
    asking = cast("Asking", found)

    class OwnDriver(AskingDriver):
        """Driver that asks by a user's function."""

        async def ask(self, reader: Any, writer: Any, operation: Any, /) -> Any:
            return await asking(reader, writer, operation)

        def __reduce__(self) -> Any:
            return _made_again, (name, self.options, self.environment, self.workload)

    OwnDriver.name = name
    return OwnDriver


def _made_again(name: str, *arguments: Any) -> Driver:
    return _of_file(name)(*arguments)
