"""One service of a compose file, and the reading of its keys.

A key is honoured, or told (what it changes is not what a run looks at), or refused: a service that
runs otherwise than its file says would be judged for something that it is not.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.systems.compose_file.variables import read_variables
from splitbrain.systems.compose_file.yaml_text import is_list, is_mapping

#: Keys that are told, and harmless, or nearly so.
TOLD: Final = frozenset(
    {
        *(
            "annotations",
            "attach",
            "cpu_shares",
            "cpus",
            "develop",
            "healthcheck",
            "init",
            "labels",
        ),
        *("logging", "mem_limit", "mem_reservation", "oom_score_adj", "platform", "pull_policy"),
        *(
            "read_only",
            "security_opt",
            "shm_size",
            "stdin_open",
            "stop_grace_period",
            "stop_signal",
        ),
        *("tty", "ulimits"),
    }
)
_HONOURED: Final = frozenset(
    {
        *(
            "image",
            "command",
            "entrypoint",
            "environment",
            "env_file",
            "volumes",
            "ports",
            "expose",
        ),
        *("hostname", "container_name", "depends_on", "networks", "deploy", "scale", "restart"),
        *("working_dir", "user", "build", "profiles"),
    }
)
_TELL_WHY: Final[Mapping[str, str]] = {
    "network_mode": "every service has a network of its own, so that it can be cut off",
    "privileged": "a privileged container could undo the faults, on this machine too",
    "pid": "every service has processes of its own, so that they can be killed",
}
_ADAPTER: Final = "Take it out, or write an adapter (`splitbrain docs your-system`)"
_RESTART: Final = re.compile(r"no|always|unless-stopped|on-failure(:[0-9]{1,4})?")
_VARIABLE: Final = re.compile(r"([^=]+)(?:=(.*))?", re.DOTALL)
_PORT: Final = re.compile(r"(?:.*:)?([0-9]+)(?:/tcp)?")


class Bind(msgspec.Struct, frozen=True):
    """A file or folder of this machine that a service reads."""

    host_path: str
    node_path: str


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A service as it is to be run."""

    name: str
    image: str
    #: None: the image's own.
    entry_point: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    environment: dict[str, str] = {}
    #: Folders inside that are volumes.
    volumes: tuple[str, ...] = ()
    #: Names of those of them that have one.
    volume_names: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()
    hostname: str = ""
    #: Names besides the service's own by which others reach it.
    aliases: tuple[str, ...] = ()
    #: Ports that it is known to listen on.
    ports: tuple[int, ...] = ()
    depends_on: tuple[str, ...] = ()
    restart: str = "no"
    working_folder: str | None = None
    user: str | None = None
    copies: int = 1


class ServiceReader:
    """Reads one service; collects what is told."""

    def __init__(
        self, name: str, content: Any, folder: Path, environment: Mapping[str, str]
    ) -> None:
        """``folder``: of the compose file; ``environment``: for variables without a value."""
        self._place = f"the service {name!r}"
        if not is_mapping(content):
            raise UsageError(f"{self._place} is no mapping of keys", "Give it an image")
        self._name, self._folder, self._environment = name, folder, environment
        self._content = content
        self.notes: list[str] = []

    def read(self) -> Service:
        """Return the service.

        Raises:
            UsageError: a key cannot be honoured, or does not have the form that it should.
        """
        self._look_at_keys()
        volumes, names, binds = self._volumes()
        return Service(
            name=self._name,
            image=self._image(),
            entry_point=self._words("entrypoint"),
            command=self._words("command"),
            environment=self._variables(),
            volumes=volumes,
            volume_names=names,
            binds=binds,
            hostname=self._text("hostname") or "",
            aliases=self._aliases(),
            ports=self._ports(),
            depends_on=self._depends_on(),
            restart=self._restart(),
            working_folder=self._text("working_dir"),
            user=self._text("user"),
            copies=self._copies(),
        )

    def _refused(self, problem: str, next_step: str = _ADAPTER) -> UsageError:
        return UsageError(f"{self._place} {problem}", next_step)

    def _look_at_keys(self) -> None:
        for key, value in self._content.items():
            if key in _HONOURED or key.startswith("x-") or value in (None, "false"):
                continue
            if key not in TOLD:
                why = _TELL_WHY.get(key, "nothing of a run would be as it says")
                raise self._refused(f"has {key!r}: {why}")
        unused = [key for key, value in self._content.items() if key in TOLD and value != "false"]
        if unused:
            self.notes.append(f"{self._place}: {', '.join(unused)} not in force")

    def _image(self) -> str:
        image = self._text("image")
        if image is None:
            if "build" in self._content:
                raise self._refused(
                    "is built by the file, and nothing is built here",
                    "Build it, and give the service the image's name: image: NAME",
                )
            raise self._refused("has no image", "Give it one that the engine has")
        if "build" in self._content:
            self.notes.append(f"{self._place}: {image} is taken as the engine has it, not built")
        return image

    # --- forms of values ----------------------------------------------------------------------

    def _text(self, key: str) -> str | None:
        value = self._content.get(key)
        if value is not None and not isinstance(value, str):
            raise self._refused(f"has a {key} that is no text", "Repair the file")
        return value or None

    def _list(self, key: str, content: Any = None) -> list[Any]:
        """Return a list; a text stands for a list of one."""
        value: Any = self._content.get(key) if content is None else content
        if value is None:
            return []
        if isinstance(value, str):
            return [value]
        if not is_list(value):
            raise self._refused(f"has {key} that are no list", "Repair the file")
        return value

    def _texts(self, key: str, content: Any = None) -> list[str]:
        """Return a list of texts."""
        entries = self._list(key, content)
        if not all(isinstance(entry, str) for entry in entries):
            raise self._refused(f"has {key} that are no list of texts", "Repair the file")
        return entries

    def _mapping(self, key: str) -> dict[str, Any]:
        content: object = self._content.get(key)
        if content is None:
            return {}
        if not is_mapping(content):
            raise self._refused(f"has a {key} that is no mapping", "Repair the file")
        return content

    def _words(self, key: str) -> tuple[str, ...] | None:
        value = self._content.get(key)
        if value is None or not value:
            return None
        if isinstance(value, str):
            try:
                return tuple(shlex.split(value))
            except ValueError as error:
                raise self._refused(f"has a {key} with an open quote", "Close it") from error
        return tuple(self._texts(key))

    # --- keys ---------------------------------------------------------------------------------

    def _variables(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in self._list("env_file"):
            name = str(entry["path"] if is_mapping(entry) and "path" in entry else entry)
            path = self._folder / name
            try:
                found |= read_variables(path.read_text(encoding="utf-8"), str(path))
            except (OSError, UnicodeDecodeError) as error:
                problem = f"reads variables from {path}, which cannot be read"
                raise self._refused(problem, "Name a file of NAME=VALUE lines") from error
        content = self._content.get("environment")
        if is_mapping(content):
            pairs = content.items()
        else:
            matches = [_VARIABLE.fullmatch(entry) for entry in self._texts("environment")]
            if None in matches:
                raise self._refused("has an environment variable without a name", "Name it")
            pairs = [(match[1], match[2]) for match in matches if match is not None]
        for name, value in pairs:
            if value is not None:
                found[name] = str(value)
            elif name in self._environment:
                found[name] = self._environment[name]
            else:
                self.notes.append(f"{self._place}: {name} has no value here, and is left out")
        return found

    def _volumes(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Bind, ...]]:
        volumes: list[str] = []
        names: list[str] = []
        binds: list[Bind] = []
        for entry in self._list("volumes"):
            source, target, is_read_only = self._volume(entry)
            if source.startswith((".", "/", "~")):
                binds.append(self._bind(source, target, is_read_only=is_read_only))
                continue
            if is_read_only:
                raise self._refused(f"only reads the volume {source!r}, which nobody writes")
            volumes.append(target)
            if source:
                names.append(source)
        return tuple(volumes), tuple(names), tuple(binds)

    def _volume(self, entry: Any) -> tuple[str, str, bool]:
        """Return source (empty where there is none), target and whether it is only read."""
        if is_mapping(entry):
            found = entry
            kind = found.get("type", "volume")
            if kind not in ("bind", "volume"):
                raise self._refused(f"has a volume of the type {kind}, which is not offered")
            source, target = str(found.get("source") or ""), str(found.get("target") or "")
            is_read_only = found.get("read_only") == "true"
        else:
            first, *rest = str(entry).split(":")
            source, target, modes = ("", first, "") if not rest else (first, rest[0], rest[1:])
            is_read_only = bool(modes) and "ro" in modes[0].split(",")
        if not target.startswith("/"):
            raise self._refused(f"has a volume {entry!r} without a place", "Write NAME:/FOLDER")
        return source, target, is_read_only

    def _bind(self, source: str, target: str, *, is_read_only: bool) -> Bind:
        path = self._folder / Path(source).expanduser()
        if not (path.is_file() or path.is_dir()):
            raise self._refused(f"mounts {path}, which is no file and no folder", "Make it first")
        if not is_read_only and path.is_dir():
            raise self._refused(
                f"may write to {path}, and a run would harm it",
                f"Make it a volume, as in data:{target}, or read-only, {source}:{target}:ro",
            )
        if not is_read_only:
            self.notes.append(f"{self._place}: {source} is mounted read-only")
        return Bind(str(path.resolve()), target)

    def _aliases(self) -> tuple[str, ...]:
        names = [self._text("container_name"), self._text("hostname")]
        if is_list(self._content.get("networks")):
            self._texts("networks")
            return tuple(dict.fromkeys(name for name in names if name))
        for network, content in self._mapping("networks").items():
            if content is None:
                continue
            if not is_mapping(content):
                raise self._refused(f"has a network {network!r} that is no mapping", "Repair it")
            if unknown := content.keys() - {"aliases", "priority"}:
                problem = f"wants {min(unknown)} of a network, which a run gives itself"
                raise self._refused(problem)
            names += self._texts("aliases", content.get("aliases", []))
        return tuple(dict.fromkeys(name for name in names if name))

    def _ports(self) -> tuple[int, ...]:
        found: list[int] = []
        for entry in [*self._list("ports"), *self._list("expose")]:
            text = entry.get("target", "") if is_mapping(entry) else entry
            match = _PORT.fullmatch(str(text))
            # A range, or no port of TCP, says nothing about where it can be knocked at.
            if match is not None and 0 < int(match[1]) < 1 << 16:
                found.append(int(match[1]))
        return tuple(dict.fromkeys(found))

    def _depends_on(self) -> tuple[str, ...]:
        content = self._content.get("depends_on")
        if not is_mapping(content):
            return tuple(self._texts("depends_on"))
        for name, how in content.items():
            if is_mapping(how) and how.get("condition") == "service_completed_successfully":
                raise self._refused(
                    f"waits for {name!r} to end, and nodes of a run go on",
                    "Do what that service does when the image is built",
                )
        return tuple(content)

    def _restart(self) -> str:
        word = self._text("restart") or "no"
        if not _RESTART.fullmatch(word):
            raise self._refused(
                f"cannot have restart: {word}", "It is no, always, unless-stopped or on-failure"
            )
        return word

    def _copies(self) -> int:
        deploy = self._mapping("deploy")
        if others := sorted(deploy.keys() - {"replicas"}):
            self.notes.append(f"{self._place}: deploy's {', '.join(others)} not in force")
        text: Any = deploy.get("replicas") or self._content.get("scale") or "1"
        if not re.fullmatch(r"[0-9]{1,3}", str(text)):
            raise self._refused(f"cannot have {text} copies", "Give it a whole number of replicas")
        return int(text)


def names_of_copies(service: Service) -> Sequence[str]:
    """Return ``store`` of a service that is there once, else ``store-1``, ``store-2``."""
    if service.copies == 1:
        return (service.name,)
    return tuple(f"{service.name}-{number}" for number in range(1, service.copies + 1))
