"""What comes out of a container lands in one folder, and nowhere else."""

import io
import tarfile
from pathlib import Path

import pytest

from splitbrain.runtimes.docker import archives


def archive(*members: tuple[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as writer:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            writer.addfile(entry, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def test_an_archive_of_one_folder_becomes_that_folder(tmp_path: Path) -> None:
    archives.unpack(archive(("data/log/0.log", b"x"), ("data/quorum-state", b"y")), tmp_path / "d")
    assert (tmp_path / "d" / "log" / "0.log").read_bytes() == b"x"
    assert (tmp_path / "d" / "quorum-state").read_bytes() == b"y"


def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tarfile.TarError):
        archives.unpack(archive(("data/../../escaped", b"x")), tmp_path / "d")
    assert not (tmp_path.parent / "escaped").exists()


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as writer:
        entry = tarfile.TarInfo("data/link")
        entry.type = tarfile.SYMTYPE
        entry.linkname = "/etc/passwd"
        writer.addfile(entry)
    buffer.seek(0)
    with pytest.raises(tarfile.TarError, match="neither a folder nor a plain file"):
        archives.unpack(buffer, tmp_path / "d")
