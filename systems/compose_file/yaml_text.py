"""YAML as compose files have it: scalars stay the text that they are, but for null.

YAML 1.1, which the library reads by default, takes ``22:22`` for a number and ``on`` for a truth
value. Each reader knows what a value of its key should be. A key that stands twice is refused,
since one of the two would be dropped in silence.
"""

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final, TypeGuard

import yaml

from splitbrain.contracts.errors import UsageError

_NULL: Final = "tag:yaml.org,2002:null"
_MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT: Final = "tag:yaml.org,2002:str"


class _TwiceError(yaml.constructor.ConstructorError):
    """A key stands twice."""


class _Loader(yaml.SafeLoader):
    """Safe, and without a guess at types."""

    yaml_implicit_resolvers: Any = {}  # noqa: RUF012 - the library's own attribute

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping; refuse a key that stands in it twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != _MERGE and key.value in seen:
                raise _TwiceError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


def _text(loader: yaml.SafeLoader, node: Any) -> str:
    return str(loader.construct_scalar(node))


for _start in ("~", "n", "N", ""):
    _Loader.yaml_implicit_resolvers.setdefault(_start, []).append(
        (_NULL, yaml.SafeLoader.yaml_implicit_resolvers["~"][0][1])
    )
_Loader.yaml_implicit_resolvers["<"] = [
    (_MERGE, yaml.SafeLoader.yaml_implicit_resolvers["<"][0][1])
]
for _tag in ("bool", "int", "float", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _text)


def read_yaml(path: Path, content: bytes) -> Any:
    """Return the content as mappings, lists, texts and None.

    Raises:
        UsageError: it is no YAML; says at which line.
    """
    try:
        return yaml.load(content, _Loader)  # noqa: S506 - derived from the safe one
    except (yaml.YAMLError, UnicodeError, RecursionError, ValueError) as error:
        raise UsageError(f"{path} is no YAML: {_problem(error)}", "Repair the file") from error


def _problem(error: Exception) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem is None:
        return "it is nested too deeply" if isinstance(error, RecursionError) else "it is no text"
    mark = error.problem_mark
    return error.problem if mark is None else f"{error.problem} (line {mark.line + 1})"


def is_mapping(content: object) -> TypeGuard[dict[str, Any]]:
    """Return whether the content is a mapping."""
    return isinstance(content, dict)


def is_list(content: object) -> TypeGuard[list[Any]]:
    """Return whether the content is a list."""
    return isinstance(content, list)
