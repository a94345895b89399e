"""A change of a file is settled by its draw, told with its bytes, and believed when read back."""

from pathlib import Path

import pytest

from splitbrain.contracts.arms import ChangeKind, FileChange
from splitbrain.contracts.errors import HarnessError
from splitbrain.runtimes.file_changes import change_file
from splitbrain.runtimes.folder_files import FolderFiles

DRAWS = range(40)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "log").mkdir(parents=True)
    (folder / "log" / "a").write_bytes(bytes(range(100)))
    (folder / "log" / "b").write_bytes(b"b" * 50)
    (folder / "state").write_bytes(b"state")
    (folder / "empty").touch()
    return folder


@pytest.fixture
def files(data: Path) -> FolderFiles:
    return FolderFiles(data, data.with_name("kept"))


class Deaf(FolderFiles):
    """Files that take a change and stay as they are."""

    def write(self, file: str, offset: int, content: bytes) -> None: ...

    def truncate(self, file: str, size: int) -> None: ...

    def exchange(self, file: str) -> None: ...


def test_a_flip_changes_one_bit_of_the_byte_that_it_names(data: Path, files: FolderFiles) -> None:
    before = (data / "log" / "a").read_bytes()
    done = change_file(files, FileChange("flip", "log/a", draw=1))
    assert done is not None
    after = (data / "log" / "a").read_bytes()
    differing = [
        n for n, (one, other) in enumerate(zip(before, after, strict=True)) if one != other
    ]
    assert differing == [done.offset]
    flipped = before[done.offset] ^ after[done.offset]
    assert flipped.bit_count() == 1
    assert (done.before, done.after) == (f"{before[done.offset]:02x}", f"{after[done.offset]:02x}")
    assert done.size_before == done.size_after == 100
    assert done.sentence() == f"log/a byte {done.offset}: {done.before} became {done.after}"


def test_a_flip_can_be_told_where_and_how_many(data: Path, files: FolderFiles) -> None:
    done = change_file(files, FileChange("flip", "log/a", draw=1, offset=90, length=99))
    assert done is not None
    assert done.offset == 90
    after = (data / "log" / "a").read_bytes()
    assert after[:90] == bytes(range(90))
    assert all(one != other for one, other in zip(after[90:], range(90, 100), strict=True))


def test_the_draw_settles_file_and_place(data: Path) -> None:
    found: set[tuple[str, int]] = set()
    for draw in DRAWS:
        twice = [
            change_file(FolderFiles(data, data), FileChange("flip", "log/*", draw)) for _ in "ab"
        ]
        assert twice[0] is not None
        assert twice[1] is not None
        assert (twice[0].file, twice[0].offset) == (twice[1].file, twice[1].offset)
        # The same bit twice is as it was.
        assert twice[0].before == twice[1].after
        found.add((twice[0].file, twice[0].offset))
    assert {file for file, _ in found} == {"log/a", "log/b"}
    assert len(found) > len(DRAWS) / 2


@pytest.mark.parametrize(
    ("change", "size"),
    [
        (FileChange("truncate", "log/a", 3, offset=40), 40),
        (FileChange("truncate", "log/a", 3, length=30), 70),
        (FileChange("truncate", "log/a", 3, length=300), 0),
    ],
)
def test_truncation_keeps_the_beginning(
    data: Path, files: FolderFiles, change: FileChange, size: int
) -> None:
    done = change_file(files, change)
    assert done is not None
    assert (data / "log" / "a").read_bytes() == bytes(range(size))
    assert (done.offset, done.size_before, done.size_after) == (size, 100, size)
    assert done.before == bytes(range(size, min(100, size + 64))).hex()


def test_what_is_cut_off_is_drawn_and_never_nothing(data: Path, files: FolderFiles) -> None:
    for draw in DRAWS:
        (data / "log" / "a").write_bytes(bytes(range(100)))
        done = change_file(files, FileChange("truncate", "log/a", draw))
        assert done is not None
        assert done.size_after < 100


def test_a_kept_file_is_put_back_also_where_it_is_gone(data: Path, files: FolderFiles) -> None:
    files.keep()
    assert change_file(files, FileChange("restore", "*", 1)) is None
    (data / "log" / "a").write_bytes(bytes(range(60)) + b"other")
    done = change_file(files, FileChange("restore", "*", 1))
    assert done is not None
    assert (done.file, done.offset, done.size_before, done.size_after) == ("log/a", 60, 65, 100)
    assert (data / "log" / "a").read_bytes() == bytes(range(100))
    # Its former content is kept instead, so that this can be undone.
    done = change_file(files, FileChange("restore", "log/a", 2))
    assert done is not None
    assert (data / "log" / "a").read_bytes() == bytes(range(60)) + b"other"
    (data / "state").unlink()
    done = change_file(files, FileChange("restore", "st*", 1))
    assert done is not None
    assert (done.before, done.after) == ("", b"state".hex())


@pytest.mark.parametrize(
    "change",
    [
        FileChange("flip", "nothing/*", 1),
        FileChange("flip", "empty", 1),
        FileChange("truncate", "state", 1, offset=5),
        FileChange("restore", "state", 1),
    ],
)
def test_where_no_file_fits_nothing_is_done(files: FolderFiles, change: FileChange) -> None:
    assert change_file(files, change) is None


@pytest.mark.parametrize("kind", ["flip", "truncate", "restore"])
def test_a_change_without_effect_is_seen(data: Path, files: FolderFiles, kind: ChangeKind) -> None:
    files.keep()
    (data / "log" / "a").write_bytes(b"new")
    with pytest.raises(HarnessError, match="does not read back"):
        change_file(Deaf(data, data.with_name("kept")), FileChange(kind, "log/a", 1))
