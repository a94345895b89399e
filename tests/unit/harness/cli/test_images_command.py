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


def test_without_a_name_all_images_are_made_but_those_that_are_built_here(
    prepared: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert images.main([]) == 0
    assert prepared == [source.name for source in SOURCES if not source.build]
    left_out = [source for source in SOURCES if source.build]
    told = capsys.readouterr().out.splitlines()[1:]
    assert left_out
    assert all(source.name in line for source, line in zip(left_out, told, strict=True))
    assert images.main(["etcd"]) == 0
    assert prepared[-1] == left_out[0].name


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
