"""The name under which our packages are imported, for those that name a module in a string."""

from typing import Final

#: Begins the full name of every module of ours.
PACKAGE: Final = __name__.partition(".")[0]
