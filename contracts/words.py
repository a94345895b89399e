"""Words for numbers of things, in every sentence that is shown; pure."""


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Return ``1 read``, ``2 reads``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {things or thing + 's'}"
