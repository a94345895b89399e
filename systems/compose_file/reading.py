"""A compose file: its services as they are to be run, and what is told of the rest."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.systems.compose_file.service import Service, ServiceReader
from splitbrain.systems.compose_file.variables import Variables, read_variables
from splitbrain.systems.compose_file.yaml_text import is_mapping, read_yaml

_DIGEST_BYTES: Final = 6
_KNOWN: Final = frozenset({"services", "volumes", "networks", "version", "name"})


class ComposeFile(msgspec.Struct, frozen=True):
    """Services of a compose file, with the variables of this moment."""

    path: Path
    #: As it stands there.
    text: str
    #: In the file's order; those that are not started are left out.
    services: tuple[Service, ...]
    #: Sentences about what is otherwise than the file says, and harmless.
    notes: tuple[str, ...]

    def digest(self) -> str:
        """Return a digest of the services and of the files that they read, hexadecimal."""
        hasher = hashlib.blake2b(msgspec.json.encode(self.services), digest_size=_DIGEST_BYTES)
        for service in self.services:
            for bind in service.binds:
                top = Path(bind.host_path)
                for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
                    if path.is_file():
                        hasher.update(path.read_bytes())
        return hasher.hexdigest()


def read_compose_file(path: Path, environment: Mapping[str, str]) -> ComposeFile:
    """Read a compose file.

    Args:
        path: the file; what it names is found from its folder.
        environment: variables, which win over those of ``.env`` beside the file.

    Raises:
        UsageError: it cannot be read, is no compose file, or cannot be honoured.
    """
    content = _content(path)
    variables = Variables({**_variables_beside(path), **environment})
    notes: list[str] = []
    services: list[Service] = []
    for name, raw in content["services"].items():
        service = variables.in_all(raw, f"the service {name!r}")
        if is_mapping(service) and service.get("profiles"):
            notes.append(f"the service {name!r} has a profile, and is left out")
            continue
        reader = ServiceReader(str(name), service, path.parent, variables.values)
        found = reader.read()
        if found.copies:
            services.append(found)
            notes += reader.notes
        else:
            notes.append(f"the service {name!r} has no replicas, and is left out")
    _check_together(path, services, content)
    if len(content.get("networks") or ()) > 1:
        notes.append("all services share one network")
    notes += (
        f"the variable {name} is not set, and stands for nothing" for name in variables.missing
    )
    notes += _told_order(services)
    return ComposeFile(path, path.read_text(encoding="utf-8"), tuple(services), tuple(notes))


def _content(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the compose file {path} cannot be read: {error.strerror or error}",
            "Name a file that exists",
        ) from error
    content = read_yaml(path, raw)
    if not is_mapping(content) or not is_mapping(content.get("services")):
        raise UsageError(f"{path} has no services", "Name a compose file")
    for key in content:
        if key not in _KNOWN and not str(key).startswith("x-"):
            raise UsageError(f"{path} has {key!r}, which is not honoured", "Write it out in place")
    for key in ("volumes", "networks"):
        if not is_mapping(content.get(key) or {}):
            raise UsageError(f"{path} has {key} that are no mapping", "Repair the file")
    return content


def _variables_beside(path: Path) -> dict[str, str]:
    beside = path.parent / ".env"
    try:
        return read_variables(beside.read_text(encoding="utf-8"), str(beside))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{beside} cannot be read", "Repair it or take it away") from error


def _check_together(path: Path, services: list[Service], content: dict[str, Any]) -> None:
    if not services:
        raise UsageError(f"{path} has no service that is started", "Give it one with an image")
    names = {service.name for service in services}
    users: dict[str, str] = {}
    for service in services:
        for other in service.depends_on:
            if other not in names:
                problem = f"the service {service.name!r} depends on {other!r}, which is not started"
                raise UsageError(problem, "Add that service, or take the dependency out")
        for volume in service.volume_names:
            if volume not in (content.get("volumes") or {}):
                problem = (
                    f"the service {service.name!r} has a volume {volume!r} that is not declared"
                )
                raise UsageError(problem, f"Add it to volumes:, or write ./{volume} for a folder")
            if volume in users or service.copies > 1:
                others = users.get(volume, f"its {service.copies} copies")
                raise UsageError(
                    f"the volume {volume!r} is shared by {service.name!r} and {others}, and each "
                    "node's data lie on a disk of its own",
                    "Give each a volume of its own, copies as services of their own",
                )
            users[volume] = repr(service.name)


def _told_order(services: list[Service]) -> list[str]:
    waiting = [service.name for service in services if service.depends_on]
    if not waiting:
        return []
    again = ", ".join(waiting)
    told = f"all services are started at once, and {again} again if it ends before the load begins"
    return [told]
