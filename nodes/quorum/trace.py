"""One line of text per event, effect or message, for stories, transcripts and logs.

The same object always gives the same line; bytes appear by their length. Never parsed back.
"""

from typing import cast

import msgspec

from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY
from splitbrain.nodes.quorum.messages import ErrorCode

#: Fields that carry no news in a trace.
_SILENT = ("cluster_id", "max_bytes", "max_wait_ms", "log_start_offset", "incarnation")
#: Fields that are news only when they are true.
_SILENT_WHEN_FALSE = ("refused",)


def describe(thing: msgspec.Struct) -> str:
    """``ClassName field=value ...``, nested messages in parentheses."""
    fields = [
        f"{name}={_value(getattr(thing, name))}"
        for name in thing.__struct_fields__
        if name not in _SILENT
        and not _is_empty(getattr(thing, name))
        and not (name in _SILENT_WHEN_FALSE and getattr(thing, name) is False)
    ]
    return " ".join((type(thing).__name__, *fields))


def _is_empty(value: object) -> bool:
    return value is None or value in ((), b"") or value is ErrorCode.NONE


def _value(value: object) -> str:
    if isinstance(value, ErrorCode):
        return value.name
    if isinstance(value, msgspec.Struct):
        return f"({describe(value)})"
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return f"[{', '.join(_value(item) for item in items)}]"
    if isinstance(value, bytes):
        return f"{len(value)}B"
    if isinstance(value, str) and len(value) == len(NO_DIRECTORY) and " " not in value:
        return value[-4:]
    if isinstance(value, str) and " " in value:
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
