"""Files that are there whole or not at all: written beside their name, then renamed.

For verdicts and reports, which a person or a gate may read at any moment. It must never be used
for the history, which is appended to.
"""

import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content``; readers see the old or the new file, never a part.

    Raises:
        OSError: the folder is missing or cannot be written.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
