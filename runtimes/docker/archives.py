"""Archives of a container: its output and its data folder, copied to this machine.

Copies work on running and on exited containers alike; of a running one the data are a snapshot
that was not taken at one moment.
"""

import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import docker.errors
from docker.models.containers import Container

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import OUTPUT
from splitbrain.runtimes.docker.engine import engine_action

#: Name of the folder with a node's data, below its folder.
DATA = "data"

#: Archives up to this size are unpacked from memory.
_SPOOL_BYTES_MAX = 16 * 1024 * 1024


def copy_output(container: Container, folder: Path) -> None:
    """Write all that the container printed in all its lives to ``folder/output.log``."""
    engine: Any = container
    with (
        engine_action("copy the output", str(container.name)),
        (folder / OUTPUT).open("wb") as file,
    ):
        for chunk in engine.logs(stream=True, follow=False, timestamps=True):
            file.write(chunk)


def copy_data(
    container: Container, path: str, folder: Path, parts: Sequence[str] | None = None
) -> None:
    """Copy the folder ``path`` of the container to ``folder/data``, replacing an earlier copy.

    ``parts`` are files and folders below it; those that are there are copied. None: all of it.

    Raises:
        HarnessError: the container or the path is gone, or this disk is full.
    """
    target = folder / DATA
    with engine_action("copy the data folder", str(container.name)):
        # Renamed at its end: a folder of that name is whole, whoever is killed while unpacking.
        unfinished = target.with_name(f".{DATA}.part")
        try:
            shutil.rmtree(unfinished, ignore_errors=True)
            if parts is None:
                _copy(container, path, unfinished)
            else:
                unfinished.mkdir(parents=True)
                for part in parts:
                    with suppress(docker.errors.NotFound):
                        _copy(container, f"{path}/{part}", unfinished / part)
            shutil.rmtree(target, ignore_errors=True)
            unfinished.rename(target)
        except (OSError, tarfile.TarError) as error:
            raise HarnessError(
                "unpack the data folder", str(target), str(error), "Look at the disk's free space"
            ) from error


def _copy(container: Container, path: str, target: Path) -> None:
    engine: Any = container
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES_MAX) as spool:
        stream, _ = engine.get_archive(path)
        for chunk in stream:
            spool.write(chunk)
        spool.seek(0)
        unpack(spool, target)


def unpack(stream: Any, target: Path) -> None:
    """Unpack an archive of one file or one folder, which becomes ``target``.

    Only folders and plain files are taken; owners and modes are not.

    Raises:
        tarfile.TarError: a member is something else, or leads out of the folder.
    """
    with tarfile.open(fileobj=stream) as archive:
        for member in archive:
            inner = PurePosixPath(member.name).parts[1:]
            if ".." in inner:
                raise tarfile.TarError(f"{member.name} leads out of the archive's folder")
            path = target.joinpath(*inner)
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                raise tarfile.TarError(f"{member.name} is neither a folder nor a plain file")
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("wb") as file:
                shutil.copyfileobj(content, file)
