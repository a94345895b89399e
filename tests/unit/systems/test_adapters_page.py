"""The page on adapters names what the contract has, with the defaults that it has."""

import importlib
import re

import msgspec
import pytest

from splitbrain.contracts.system import Tempo
from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems.servers import ServerSystem

PAGE = (ROOT / "docs" / "adapters.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    (part,) = re.findall(rf"^## {heading}$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    table = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")]
    return table[2:]


def test_it_has_every_field_of_the_tempo_with_its_default() -> None:
    shown = {cells[0].strip("`"): cells[1] for cells in rows("How long it may take")}
    fields = msgspec.structs.fields(Tempo)
    usual = {each.name: each.default for each in fields}
    said = {name: "None" if value is None else f"{value:g}" for name, value in usual.items()}
    assert shown == said


def test_what_it_says_to_have_a_default_is_there() -> None:
    named = [name for cells in rows("Servers and their clients") for name in cells[0].split(", ")]
    assert len(named) > 10
    assert [name for name in named if not hasattr(ServerSystem, name.strip("`"))] == []


@pytest.mark.parametrize("module", re.findall(r"help\(\"(.*?)\"\)", PAGE))
def test_the_reference_that_it_names_is_there(module: str) -> None:
    assert importlib.import_module(module).__doc__
