"""Workloads, models, checkers and faults of packages are found by name; broken ones are told."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.models import registry as models
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.names import checker_names, evidence_needed, history_models
from splitbrain.checker.registry import checker_named
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.operations import Operation
from splitbrain.harness.cli.main import run
from splitbrain.harness.run.plan_choice import plan_faults
from splitbrain.history.plan import voters
from splitbrain.nemesis.kinds import fault_kind, kind_names, machine_kind_names
from splitbrain.plugins.offers import entry_points_of
from splitbrain.workloads.workload import workload, workload_names
from tests.packages import offer

MODULE = """
from splitbrain.checker.models.model import Model
from splitbrain.checker.own_checker import OwnChecker
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import RECORD
from splitbrain.nemesis import acts
from splitbrain.nemesis.fault_kind import Course, FaultKind, Step
from splitbrain.nemesis.families.processes import answering, running

class Puts:
    name = "puts"
    checkers = ("linearizability:once", "few")
    functions = {"put": RECORD}
    @classmethod
    def of(cls, seed, slots, readers, options):
        return cls()
    def operation(self, slot, n):
        return Operation("put", None, [slot, n])

class Once(Model):
    name = "once"
    functions = frozenset({"put"})
    initial = False
    def step(self, state, call):
        return not state, True

class Few(OwnChecker):
    name = "few"
    promise = "At most one operation."
    needs = ("state-events",)
    def check(self, evidence, budget):
        many = len(evidence.operations) > 1
        return CheckResult("few", Verdict.INVALID if many else Verdict.VALID, "Counted.")

def _course(setting, options):
    return Course(steps=(Step((acts.Kill(setting.hit),)),), heal=(acts.Start(setting.hit),))

SHOT = FaultKind(name="shot", summary="Kills.", needs=frozenset({"kill"}), course=_course)

class Bare: ...
class Stepless(Model):
    name = "once"
    functions = frozenset({"put"})
"""
SORTS = ("workloads", "models", "checkers", "nemesis")
SOUND = {
    "workloads": {"puts": "Puts"},
    "models": {"once": "Once"},
    "checkers": {"few": "Few"},
    "nemesis": {"shot": "SHOT"},
}


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(models, "_OWN", {})
    (tmp_path / "offered_module.py").write_text(MODULE)
    yield tmp_path
    sys.modules.pop("offered_module", None)
    entry_points_of.cache_clear()


def install(packages: Path, sorts: dict[str, dict[str, str]]) -> None:
    named = {
        sort: {name: f"offered_module:{of}" for name, of in things.items()}
        for sort, things in sorts.items()
    }
    offer(packages, "acme", **named)
    entry_points_of.cache_clear()


def test_each_is_found_by_its_name(packages: Path) -> None:
    install(packages, SOUND)
    assert "puts" in workload_names()
    made = workload("puts", seed=1, slots=2, readers=frozenset(), options={})
    assert made.operation(1, 3) == Operation("put", None, [1, 3])
    assert {"linearizability:once", "few"} <= {*checker_names()}
    assert "once" in history_models()
    # Its evidence is not a bare history's.
    assert "few" not in history_models()
    assert evidence_needed("few") == {"state-events"}
    assert checker_named("few")(Evidence(()), Unlimited()).verdict == "valid"
    assert model_named("once").functions == {"put"}
    assert "shot" in kind_names()
    assert "shot" in machine_kind_names()
    drawn, _ = plan_faults("shot", voters(3), 1, 60_000)
    assert {fault.kind for fault in drawn} == {"shot"}


def test_a_packages_model_judges_a_bare_history_in_the_workers(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packages, SOUND)
    history = tmp_path / "h.jsonl"
    rows = [
        {"process": process, "type": type_, "f": "put", "value": 1}
        for process in (0, 1)
        for type_ in ("invoke", "ok")
    ]
    history.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows[:2]))
    assert run(["check", str(history), "--model", "once"]) == 0
    history.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    assert run(["check", str(history), "--model", "once"]) == 1
    assert run(["check", str(history), "--model", "onc"]) == 64
    assert "once" in capsys.readouterr().err


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("of", ["Bare", "Missing"])
def test_one_that_cannot_be_used_is_one_sentence_and_costs_no_other(
    packages: Path, sort: str, of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (name,) = SOUND[sort]
    install(packages, {**SOUND, sort: {name: of}})
    with pytest.raises(UsageError, match=rf"acme \(offered_module:{of}\)") as caught:
        ask(sort, name)
    assert "\n" not in str(caught.value)
    for other in SORTS:
        if other != sort:
            ask(other, next(iter(SOUND[other])))
    run(["doctor", "--json"])
    findings = {
        row["name"]: row for row in msgspec.json.decode(capsys.readouterr().out)["findings"]
    }
    answers = {found: row["answer"] for found, row in findings.items() if " " in found}
    assert answers[titled(sort)] == "no"
    assert {answers[titled(other)] for other in SORTS if other != sort} == {"yes"}


def test_a_model_that_lacks_a_step_is_refused(packages: Path) -> None:
    install(packages, {"models": {"once": "Stepless"}})
    with pytest.raises(UsageError, match="lacks step"):
        model_named("once")


def test_ours_stay_ours_and_the_doctor_tells_of_the_other(
    packages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packages, {"workloads": {"register": "Puts"}, "nemesis": {"kill": "SHOT"}})
    assert fault_kind("kill").summary != "Kills."
    run(["doctor", "--json"])
    findings = {
        row["name"]: row for row in msgspec.json.decode(capsys.readouterr().out)["findings"]
    }
    assert "splitbrain itself and by acme" in findings["workload register"]["detail"]
    assert "splitbrain itself and by acme" in findings["fault kill"]["detail"]


def titled(sort: str) -> str:
    (name,) = SOUND[sort]
    noun = {"workloads": "workload", "models": "model", "checkers": "checker", "nemesis": "fault"}
    return f"{noun[sort]} {name}"


def ask(sort: str, name: str) -> object:
    if sort == "workloads":
        return workload(name, seed=1, slots=2, readers=frozenset(), options={})
    if sort == "models":
        return model_named(name)
    return checker_named(name) if sort == "checkers" else fault_kind(name)
