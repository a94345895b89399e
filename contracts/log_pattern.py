"""Lines of a system's own logs whose meaning its adapter knows."""

import re

import msgspec


class LogPattern(msgspec.Struct, frozen=True):
    """Shape of a line of a node's log, and its meaning.

    Raises ValueError where the regular expression is none, or an empty line has it too.
    """

    #: Searched for in each line, which is bytes: ``\\w`` and the like mean ASCII alone.
    regex: str
    #: Meaning of such a line, one sentence: "The server gave up."
    meaning: str
    #: Whether the line, or the traceback that it belongs to, is documented to be of no
    #: consequence; else it is a defect of the node that wrote it.
    harmless: bool = False

    def __post_init__(self) -> None:
        """Refuse what no line can be searched for."""
        try:
            is_everywhere = self.compiled().search(b"") is not None
        except (re.error, RecursionError, OverflowError) as error:
            message = f"{self.regex!r} is no regular expression of a log's lines: {error}"
            raise ValueError(message) from error
        if is_everywhere:
            message = f"{self.regex!r} matches an empty line, and so is no sign of anything"
            raise ValueError(message)

    def compiled(self) -> re.Pattern[bytes]:
        """Return the expression, for lines as bytes."""
        return re.compile(self.regex.encode())
