"""The page on adapters names what the contract has, with the defaults that it has."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import RunId
from splitbrain.contracts.system import System, Tempo
from splitbrain.plugins.files import found_in_file
from splitbrain.runtimes.docker.images import ROOT
from splitbrain.systems.servers import ServerSystem
from tests.unit.systems.pod_place import pod_place

README = (ROOT / "README.md").read_text()
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


def test_the_adapter_of_the_readme_deploys_three_nodes(tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "store.py").write_text(text)
    store: Any = found_in_file(f"{tmp_path / 'store.py'}:Store", "system", System, "")
    options = Experiment(system="store", nodes=3)
    spec = store().deployment(RunId("r"), tmp_path, options, pod_place)
    commands = [" ".join(node.command) for node in spec.nodes]
    assert commands[0] == "my-store 0.0.0.0:7000 n2:7001,n3:7001 /data"
    assert len(commands) == 3
    assert spec.nodes[0].image == "my-store:1.0"


def test_the_readme_has_nine_hundred_words_at_most() -> None:
    assert len(README.split()) <= 900


PAGES = sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", [Path("README.md"), *PAGES], ids=str)
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    folder = (ROOT / page).parent
    assert [link for link in links if not (folder / link.partition("#")[0]).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    linked = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)\s]+)\)", index)}
    pages = {path for path in (ROOT / "docs").glob("*.md") if path.name != "index.md"}
    assert pages - linked == set()


def test_the_signatures_that_it_shows_are_those_of_the_contract() -> None:
    shown = re.findall(r"^def (\w+)\((self, runtime[^)]*)\)", PAGE, re.MULTILINE)
    assert len(shown) == 5
    for name, parameters in shown:
        signature = inspect.signature(getattr(System, name))
        assert ", ".join(signature.parameters) == parameters, name
