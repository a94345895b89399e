"""Finds the adapter of a system under test by its name: ours, packages', and those of files.

A package offers a system as an entry point of the group ``splitbrain.systems``: its name, and a
class derived from ``contracts.system.System``. The variable ``SPLITBRAIN_SYSTEMS`` names those of
files, ``path/to/file.py:Class``, so that this process and all that it starts know them by name.
Adapters are imported when they are asked for, so that listing the names stays cheap. Must never
start anything.
"""

import inspect
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import UsageError, in_one_line
from splitbrain.contracts.names import VERSION_MARK
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.system import System
from splitbrain.plugins.contract import held
from splitbrain.plugins.files import absolute, digest_of, found_in_file, is_file
from splitbrain.plugins.offers import Offers

#: Group of entry points.
GROUP: Final = "splitbrain.systems"
#: The variable; its parts are separated by commas.
VARIABLE: Final = "SPLITBRAIN_SYSTEMS"

_HOW: Final = "`splitbrain docs your-system` shows a system of one's own"


def _kraft() -> System:
    from splitbrain.systems.kraft.adapter import KraftSystem

    return KraftSystem()


def _compose() -> System:
    from splitbrain.systems.compose_file.adapter import ComposeSystem

    return ComposeSystem()


def _etcd() -> System:
    from splitbrain.systems.etcd.adapter import EtcdSystem

    return EtcdSystem()


def _kafka() -> System:
    from splitbrain.systems.kafka.adapter import KafkaSystem

    return KafkaSystem()


def _kafka_cluster() -> System:
    from splitbrain.systems.kafka.standing import StandingKafka

    return StandingKafka()


def _mariadb() -> System:
    from splitbrain.systems.mariadb.adapter import MariadbSystem

    return MariadbSystem()


def _nats() -> System:
    from splitbrain.systems.nats.adapter import NatsSystem

    return NatsSystem()


def _postgresql() -> System:
    from splitbrain.systems.postgresql.adapter import PostgresSystem

    return PostgresSystem()


def _rabbitmq() -> System:
    from splitbrain.systems.rabbitmq.adapter import RabbitSystem

    return RabbitSystem()


def _redis() -> System:
    from splitbrain.systems.redis.adapter import RedisSystem

    return RedisSystem()


def _zookeeper() -> System:
    from splitbrain.systems.zookeeper.adapter import ZooKeeperSystem

    return ZooKeeperSystem()


_FACTORIES: dict[str, Callable[[], System]] = {
    "compose": _compose,
    "etcd": _etcd,
    "kafka": _kafka,
    "kafka-cluster": _kafka_cluster,
    "kraft": _kraft,
    "mariadb": _mariadb,
    "nats": _nats,
    "postgresql": _postgresql,
    "rabbitmq": _rabbitmq,
    "redis": _redis,
    "zookeeper": _zookeeper,
}
_OFFERS: Final = Offers[System]("system", GROUP, System, _FACTORIES)


def names() -> tuple[str, ...]:
    """Names of all systems, sorted."""
    return tuple(sorted({*_FACTORIES, *_OFFERS.names(), *_files()}))


def system(name: str) -> System:
    """Return a fresh adapter for one run; the name may choose a version, ``NAME@VERSION``.

    Raises:
        UsageError: no system has this name, several have, it cannot be used, or has no such
            version.
    """
    name, mark, version = name.partition(VERSION_MARK)
    found = _adapter(name)
    if mark and version not in found.offered_versions:
        problem = f"there is no version {version!r} of the system {name!r}"
        if not found.offered_versions:
            raise UsageError(problem, f"It has no choice of versions: write {name}")
        raise UsageError(problem, f"Choose one of {', '.join(found.offered_versions)}")
    found.chosen_version = version or None
    return found


def _adapter(name: str) -> System:
    files = _files().get(name, ())
    offered = _OFFERS.offered(name, files)
    if offered is not None:
        return held(offered, f"the system {name!r}")
    if files:
        return _of_file(files[0])
    if name not in _FACTORIES:
        raise _unknown(name)
    return _FACTORIES[name]()


def _unknown(name: str) -> UsageError:
    """Return the refusal of a name; one that a broken file would have has the reason of that."""
    problem = f"there is no system called {name!r}"
    for file in _parts():
        try:
            _of_file(file)
        except UsageError as error:
            return UsageError(f"{problem}, and {error.problem}", error.next_step)
    return UsageError(problem, or_nearest(name, names(), "systems"))


def finding_files() -> dict[str, Path]:
    """Return the suites that show known losses of the systems, by their names, sorted.

    They are the files ``findings/NAME.toml`` beside the module of a system's class.
    """
    found = [
        file
        for system in usable_systems()
        for file in Path(inspect.getfile(type(system))).parent.glob("findings/*.toml")
    ]
    return {file.stem: file for file in sorted(found, key=lambda file: file.stem)}


def chosen_names() -> Iterator[str]:
    """Yield every way to name a system: its name, and that with each version that it offers."""
    for name, found in each_system():
        yield name
        if isinstance(found, System):
            yield from (f"{name}{VERSION_MARK}{version}" for version in found.offered_versions)


def each_system() -> Iterator[tuple[str, System | UsageError]]:
    """Yield every name, sorted, with a fresh adapter or why there is none."""
    for name in names():
        try:
            yield name, system(name)
        except UsageError as error:
            yield name, error


def usable_systems() -> Iterator[System]:
    """Yield an adapter of every system that there is one of, sorted by name."""
    return (found for _, found in each_system() if isinstance(found, System))


def admitted(name: str) -> str:
    """Return the name of a system that a user names by it, or as ``path/to/file.py:Class``.

    A version behind it, as in ``NAME@VERSION``, stays there.

    The system of a file is known by its name from now on, to this process and those it starts.

    Raises:
        UsageError: the file cannot be run, or has no such system, or the name is another's.
    """
    if not is_file(name):
        return name
    path, _, place = absolute(name).rpartition(":")
    place, mark, version = place.partition(VERSION_MARK)
    file = f"{path}:{place}"
    if "," in file:
        raise UsageError(f"the path of {file!r} has a comma", "Move the file")
    own_name = _of_file(file).name
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*_parts(), file]))
    # Refuses it if others have this name, and a version that there is not.
    system(f"{own_name}{mark}{version}")
    return f"{own_name}{mark}{version}"


def file_of(name: str) -> str | None:
    """Return the file and class of a system, ``/path/to/file.py:Class``; None for the others.

    A version behind the name stands behind the class too.
    """
    name, mark, version = name.partition(VERSION_MARK)
    file = next(iter(_files().get(name, ())), None)
    return file and f"{file}{mark}{version}"


def versions_of(system: System) -> dict[str, str]:
    """Return the versions that an adapter tells, and a digest of the file that it comes from."""
    file = file_of(system.name)
    if file is None:
        return system.versions()
    return {**system.versions(), Path(file.rpartition(":")[0]).name: digest_of(file)}


def system_option(name: str | None) -> str:
    """Return `` --system FILE:Class``, fit for a shell, for the system of a file; else nothing."""
    file = None if name is None else file_of(name)
    return "" if file is None else f" --system {shlex.quote(file)}"


def _files() -> Mapping[str, Sequence[str]]:
    return _by_name(_parts())


def _parts() -> tuple[str, ...]:
    parts = map(str.strip, os.environ.get(VARIABLE, "").split(","))
    return tuple(absolute(part) if is_file(part) else part for part in parts if part)


@cache
def _by_name(files: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """Return the files by the names of their systems; by themselves those that cannot be used."""
    found: dict[str, list[str]] = {}
    for file in files:
        try:
            name = _of_file(file).name
        except UsageError:
            name = file
        found.setdefault(name, []).append(file)
    return found


def _of_file(file: str) -> System:
    if not is_file(file):
        raise UsageError(f"{file!r} names no class of a file", "Write it as path/to/file.py:Class")
    found = found_in_file(file, "system", System, _HOW)
    try:
        made = _OFFERS.made(found, repr(file), None, "it")
    except UsageError:
        raise
    # Anything that a user's class raises, SystemExit included, is its fault.
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the system {file!r} cannot be made without arguments: {in_one_line(error)}",
            "Repair its class",
        ) from error
    if not isinstance(getattr(made, "name", None), str):
        raise UsageError(
            f"the system {file!r} has no name", "Give its class one, as in name = 'shelf'"
        )
    return held(made, f"the system {file!r}")
