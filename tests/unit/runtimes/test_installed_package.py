"""An installed splitbrain builds the images of its clone, and starts nodes from where it lies."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.runtimes.docker.images import ROOT, Images, _cache_of
from splitbrain.systems.kraft.deployment import IMAGE as KRAFT
from splitbrain.systems.redis.deployment import IMAGE as REDIS
from tests.packages import build_wheel

#: Prints the tags of images, and where the package is, as an installed one knows them.
KNOWN = """
import sys
import msgspec
from splitbrain.runtimes.docker.images import Images
from splitbrain.runtimes.local.mode import PROJECT
from splitbrain.systems.kraft.deployment import IMAGE as KRAFT
from splitbrain.systems.redis.deployment import IMAGE as REDIS
known = {"tags": dict(Images(None).tags((KRAFT, REDIS))), "project": str(PROJECT)}
sys.stdout.buffer.write(msgspec.json.encode(known))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, as an installer lays it down."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build_wheel(folder)) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_it_has_the_images_of_its_clone(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KNOWN],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        stdout=subprocess.PIPE,
    )
    known = msgspec.json.decode(done.stdout)
    engine: Any = None
    assert known["tags"] == Images(engine).tags((KRAFT, REDIS))
    assert known["project"] == str(installed)


def test_it_keeps_what_builds_fetch_in_the_users_caches(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _cache_of(ROOT) == ROOT / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cache_of(installed / "splitbrain") == tmp_path / "splitbrain"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _cache_of(installed / "splitbrain") == tmp_path / ".cache" / "splitbrain"
