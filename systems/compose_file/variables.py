"""Variables of compose files: ``${NAME:-default}`` in values, and files of variables. Pure.

Source: the interpolation rules of the Compose specification.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from splitbrain.contracts.errors import UsageError
from splitbrain.systems.compose_file.yaml_text import is_list, is_mapping

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATION: Final = re.compile(r"(:?[-?+])?(.*)", re.DOTALL)


class Variables:
    """Values by name, and the names that were asked for and have none."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.missing: dict[str, None] = {}

    def in_all(self, content: Any, place: str) -> Any:
        """Return the content with every text in it substituted; keys stay.

        Raises:
            UsageError: a text is no template, or a required variable is missing.
        """
        if isinstance(content, str):
            return self.substituted(content, place)
        if is_mapping(content):
            return {key: self.in_all(value, f"{place}.{key}") for key, value in content.items()}
        if is_list(content):
            return [self.in_all(value, place) for value in content]
        return content

    def substituted(self, text: str, place: str) -> str:
        """Return one text, substituted; raises as ``in_all``."""
        parts: list[str] = []
        at = 0
        while (dollar := text.find("$", at)) >= 0:
            parts.append(text[at:dollar])
            rest = text[dollar + 1 :]
            name = _NAME.match(rest)
            if rest.startswith("$"):
                parts.append("$")
                length = 1
            elif rest.startswith("{"):
                length = _end_of_braces(rest, text, place)
                parts.append(self._braced(rest[1 : length - 1], text, place))
            elif name is not None:
                parts.append(self._value(name[0]))
                length = name.end()
            else:
                raise _no_template(text, place)
            at = dollar + 1 + length
        return "".join([*parts, text[at:]])

    def _braced(self, body: str, text: str, place: str) -> str:
        name = _NAME.match(body)
        if name is None:
            raise _no_template(text, place)
        match = _OPERATION.fullmatch(body, name.end())
        assert match is not None, "the pattern takes anything"
        operation, word = match[1], match[2]
        if operation is None:
            if word:
                raise _no_template(text, place)
            return self._value(name[0])
        value = self.values.get(name[0])
        is_set = bool(value) if operation.startswith(":") else value is not None
        if operation.endswith("+"):
            return self.substituted(word, place) if is_set else ""
        if is_set:
            return value or ""
        if operation.endswith("?"):
            why = self.substituted(word, place) or "it has no value"
            raise UsageError(
                f"{place} needs the variable {name[0]}: {why}",
                "Set it in the environment or in .env beside the compose file",
            )
        return self.substituted(word, place)

    def _value(self, name: str) -> str:
        if name not in self.values:
            self.missing[name] = None
        return self.values.get(name, "")


def _no_template(text: str, place: str) -> UsageError:
    return UsageError(
        f"{place} is {text!r}, where a $ stands before no name",
        "Write ${NAME}, ${NAME:-default}, or $$ for a $",
    )


def _end_of_braces(rest: str, text: str, place: str) -> int:
    depth = 0
    for index, character in enumerate(rest):
        if character == "{" and (index == 0 or rest[index - 1] == "$"):
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return index + 1
    raise _no_template(text, place)


def read_variables(text: str, place: str) -> dict[str, str]:
    """Return the variables of a file of ``NAME=VALUE`` lines.

    Raises:
        UsageError: names the line that is none.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("export ")
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            raise UsageError(f"{place}, line {number}, is no NAME=VALUE", "Repair the file")
        found[name.strip()] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    for quote in "\"'":
        if value.startswith(quote) and value.find(quote, 1) > 0:
            return value[1 : value.find(quote, 1)]
    return re.sub(r"\s+#.*$", "", value)
