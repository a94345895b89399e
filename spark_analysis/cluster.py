"""What a Spark cluster needs of its driver: an address that workers reach, and the code they run.

Must never send anything; an address is asked of the routing table alone.
"""

import re
import socket
import zipfile
from pathlib import Path
from typing import Final

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError

#: Rooms that jobs import on the workers.
_SHIPPED: Final = ("contracts", "history", "checker", "spark_analysis")
_ROOT: Final = Path(__file__).resolve().parents[1]
_STANDALONE: Final = re.compile(r"spark://([^:,/]+):(\d+)(?:,[^/]*)?")


def is_local(master: str) -> bool:
    """Whether executors are threads of the driver's own JVM."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def address_towards(master: str) -> str | None:
    """This machine's address on the way to a standalone master; None: Spark knows better.

    Raises:
        HarnessError: no master of this name can be reached from here.
    """
    match = _STANDALONE.fullmatch(master)
    if match is None:
        return None
    host, port = match.group(1), int(match.group(2))
    try:
        # Connecting a datagram socket chooses a route and sends nothing.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, port))
            return str(probe.getsockname()[0])
    except (OSError, OverflowError) as error:
        raise HarnessError(
            "find the way to Spark's master",
            master,
            getattr(error, "strerror", None) or str(error),
            "Name a master that this machine can reach, as spark://HOST:PORT, or none",
        ) from error


def our_code(folder: Path) -> Path:
    """The rooms that jobs import, as an archive in ``folder`` that Python can import from."""
    archive = folder / f"{PACKAGE}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr(f"{PACKAGE}/__init__.py", "")
        for room in _SHIPPED:
            for path in sorted((_ROOT / room).rglob("*.py")):
                writer.write(path, f"{PACKAGE}/{path.relative_to(_ROOT).as_posix()}")
    return archive
