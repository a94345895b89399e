"""A workload is one file: its module says that it is one, and everything else follows."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain import workloads
from splitbrain.contracts.errors import UsageError
from splitbrain.harness.run.options import plan_test
from splitbrain.systems.kraft import state_machines
from splitbrain.systems.registry import system
from splitbrain.workloads import workload as registry
from tests.plans import options_with

DUMMY = """
from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.functions import READ


class Pings:
    name = "pings"
    checkers = ("split-brain",)
    functions = {"ping": READ}

    @classmethod
    def of(cls, seed, slots, readers, options):
        return cls()

    def operation(self, slot, n):
        return Operation("ping", None, slot + n)


WORKLOAD = Pings
"""


@pytest.fixture
def dummy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "pings.py").write_text(DUMMY)
    monkeypatch.setattr(workloads, "__path__", [*workloads.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_WORKLOADS", registry.found_kinds())
    yield
    sys.modules.pop("splitbrain.workloads.pings")


@pytest.mark.usefixtures("dummy")
def test_a_new_workload_is_one_file() -> None:
    assert {"pings", "register", "set", "topics"} <= {*registry.workload_names()}
    assert registry.checkers_fitting({"ping"}) == ("split-brain",)
    made = registry.workload("pings", seed=1, slots=4, readers=frozenset(), options={})
    assert set(made.functions) == {"ping"}
    assert made.operation(3, 2).value == 5


@pytest.mark.usefixtures("dummy")
def test_a_new_workload_is_run_where_a_system_serves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_with(system="kraft", runtime="local", workload="pings")
    with pytest.raises(UsageError, match="pings"):
        plan_test(options, system("kraft"))
    monkeypatch.setitem(state_machines.WORKLOADS, "registers", ("register", "set", "pings"))
    assert plan_test(options, system("kraft")).workload.name == "pings"
