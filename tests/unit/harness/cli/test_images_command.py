"""``python -m splitbrain.harness.cli.images``: every system's images, or those that are named."""

from collections.abc import Sequence
from typing import Any

import pytest

from splitbrain.contracts.runtime import ImageSource
from splitbrain.harness.cli import images
from splitbrain.systems.registry import names, system


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the images that a stand-in for the runtime was asked for."""
    asked: list[str] = []

    class Runtime:
        def prepare(self, sources: Sequence[ImageSource]) -> None:
            asked.extend(source.name for source in sources)

    def runtime(_name: str) -> Any:
        return Runtime()

    monkeypatch.setattr(images.runtimes, "runtime", runtime)
    return asked


SOURCES = [source for name in names() for source in system(name).images()]


@pytest.mark.parametrize("has_builders", [True, False])
def test_without_a_name_all_images_are_made_that_can_be(
    has_builders: bool,
    prepared: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(images.shutil, "which", lambda name: "there" if has_builders else None)
    built = [source for source in SOURCES if source.build]
    assert built
    assert images.main([]) == 0
    assert prepared == [source.name for source in SOURCES if has_builders or source not in built]
    told = f"left out: {built[0].name}, which needs {built[0].build[0]}"
    assert (told in capsys.readouterr().out) is not has_builders


def test_only_the_images_of_named_systems_are_made(
    prepared: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = names()[-1]
    assert images.main([name]) == 0
    assert prepared == [source.name for source in system(name).images()]
    assert prepared[0] in capsys.readouterr().out


def test_an_unknown_system_is_a_usage_error(
    prepared: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert images.main(["nope"]) == 64
    assert prepared == []
    assert "nope" in capsys.readouterr().err
