"""A missing program is told before a run, with the way to get it."""

import hashlib
from pathlib import Path

import pytest

from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.runtime import HostProgram, ImageSource
from splitbrain.runtimes.local.mode import missing_programs
from splitbrain.runtimes.local.runtime import LocalRuntime

ONE, TWO = HostProgram("one", "package-of-one"), HostProgram("two", "package-of-two")
IMAGES = [ImageSource("a", "a", programs=(ONE, TWO)), ImageSource("b", "b", programs=(TWO,))]


@pytest.fixture(autouse=True)
def bare_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def put(folder: Path, *programs: HostProgram) -> None:
    for program in programs:
        (folder / program.name).write_text("#!/bin/sh\n")
        (folder / program.name).chmod(0o755)


def test_each_missing_program_is_named_once() -> None:
    assert missing_programs(IMAGES) == [ONE, TWO]


def test_the_runtime_refuses_with_the_package_that_has_the_program(tmp_path: Path) -> None:
    put(tmp_path, ONE)
    with pytest.raises(CapabilityError, match=r"program two is not.*install package-of-two"):
        LocalRuntime("processes").prepare(IMAGES)


def test_nothing_is_refused_where_all_is_there_or_nothing_is_needed(tmp_path: Path) -> None:
    put(tmp_path, ONE, TWO)
    LocalRuntime("processes").prepare(IMAGES)
    (tmp_path / "two").unlink()
    LocalRuntime("processes").prepare([ImageSource("c", "c")])


def test_programs_are_among_the_versions_by_name_and_digest(tmp_path: Path) -> None:
    put(tmp_path, ONE, TWO)
    runtime = LocalRuntime("processes")
    runtime.prepare(IMAGES)
    digest = f"sha256:{hashlib.sha256(b'#!/bin/sh' + bytes([10])).hexdigest()}"
    programs = {name: found for name, found in runtime.versions().items() if "program" in name}
    assert programs == {"program one": digest, "program two": digest}
    (tmp_path / "two").write_text("#!/bin/sh\nexit\n")
    runtime.prepare(IMAGES)
    assert runtime.versions()["program one"] == digest != runtime.versions()["program two"]
