"""Room on the run folder's disk that is kept until it is needed most: when the disk is full.

A run that ends for want of room must still be able to write down that it did, and its verdict. So
each living run holds some room and gives it back when its nodes have stopped.
"""

import os
from pathlib import Path

from splitbrain.history.border import open_in_place

#: Enough for the last steps, the dumps of small logs, and the verdict's files.
BALLAST_BYTES = 1 << 20
_NAME = "ballast"


class Ballast:
    """A file that holds room; harmless where none can be had."""

    def __init__(self, run_folder: Path) -> None:
        self._path = run_folder / _NAME

    def take(self) -> None:
        """Hold the room from now on."""
        try:
            descriptor = open_in_place(self._path, os.O_WRONLY)
        except OSError:
            return
        try:
            os.posix_fallocate(descriptor, 0, BALLAST_BYTES)
        except OSError:
            # The run itself will say that the disk is full.
            self.release()
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Give the room back."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            return
