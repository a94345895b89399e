"""Fetches what the nodes leave behind: output, data, and the neutral dump of their log."""

from pathlib import Path

import msgspec

from contracts.committed import CommittedLog
from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.runtime import Runtime
from contracts.system import System
from harness.atomic_file import write_atomically
from history.run_folder import RunFolder

#: Name of the data folder below a node's folder, as runtimes name it.
DATA_FOLDER = "data"


class LogHeader(msgspec.Struct, frozen=True):
    """First line of ``log.jsonl``."""

    node: NodeName
    start_offset: int
    end_offset: int


def collect_node(system: System, runtime: Runtime, folder: RunFolder, node: NodeName) -> str | None:
    """Collect from one stopped node; what could not be read, or None.

    A data folder that the adapter cannot read is a finding about the system or about a planted
    disk fault, not a failure of the harness: the dump is then missing, and checkers say so.

    Raises:
        HarnessError: the runtime failed.
    """
    target = folder.node(node)
    target.mkdir(parents=True, exist_ok=True)
    runtime.collect(node, target, with_data=True)
    try:
        log = system.committed_log(node, target / DATA_FOLDER)
    except HarnessError as error:
        return str(error)
    write_committed_log(folder.committed_log(node), log)
    return None


def write_committed_log(path: Path, log: CommittedLog) -> None:
    """Write a dump, whole or not at all: a header line, then one line per record.

    Raises:
        HarnessError: the disk refuses.
    """
    header = LogHeader(NodeName(log.node), log.start_offset, log.end_offset)
    encode = msgspec.json.encode
    lines = [encode(header), *(encode(record) for record in log.records), b""]
    try:
        write_atomically(path, b"\n".join(lines))
    except OSError as error:
        raise HarnessError(
            "write the dump of a log",
            str(path),
            error.strerror or str(error),
            "Make room on that disk, or choose another --runs-folder.",
        ) from error
