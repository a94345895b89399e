"""``splitbrain explain``: everything that a user meets by a name has words, and is found by it."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from splitbrain.checker.anomalies.names import MEANINGS, NAMES
from splitbrain.checker.models import registry as models
from splitbrain.checker.names import checker_names
from splitbrain.checker.verdict import ALLOWED, Verdict
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.explanation import PICTURE_COLUMNS_MAX, Explanation
from splitbrain.harness.cli import command_end
from splitbrain.harness.cli.main import run
from splitbrain.harness.folder import results
from splitbrain.harness.folder.simulation_record import INVARIANTS as INVARIANTS_CHECKER
from splitbrain.harness.judge.node_health import AGREEMENT_CHECKER
from splitbrain.harness.report.explanations import GROUPS, explained, find
from splitbrain.harness.run.world.recovery import LIVENESS
from splitbrain.nemesis.kinds import kind_names
from splitbrain.nemesis.scripted import REVEALS, SCRIPTED
from splitbrain.nodes.server.host import exit_codes
from splitbrain.plugins.offers import entry_points_of
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.systems.registry import usable_systems
from tests.packages import offer

ROOT = Path(__file__).parents[4]
CATALOGUE = explained()
BY_NAME: Mapping[str, Mapping[str, Explanation]] = {
    group: {text.name: text for text in texts} for group, texts in CATALOGUE.items()
}
EACH = [
    pytest.param(group, text, id=f"{group}-{text.name}".replace(" ", "-"))
    for group, texts in CATALOGUE.items()
    for text in texts
]
#: Sort to the names that the code knows.
KNOWN = {
    "checker": {
        *(name for name in checker_names() if not name.startswith("linearizability:")),
        *("linearizability", AGREEMENT_CHECKER, INVARIANTS_CHECKER),
        *(results.NODE_CHECKER, results.RECORD_CHECKER),
    },
    "model": set(models.model_names()),
    "fault": set(kind_names()),
    "scripted plan": set(SCRIPTED),
    "anomaly": {*MEANINGS, *(name for kinds in NAMES.values() for name in kinds.values())},
    "verdict": {*(verdict.value for verdict in Verdict), ALLOWED, "vacuous", "void"},
    "exit code": {
        str(code)
        for module in (results, command_end, exit_codes)
        for name, code in vars(module).items()
        if isinstance(code, int) and (name.startswith("EXIT_") or module is exit_codes)
    },
    "planted bug": {name for system in usable_systems() for name in system.planted_bugs},
}


def invariants_of_the_code() -> set[str]:
    """Ids that watch, and all that the code of nodes, worlds and harness cites."""
    cited = {
        found
        for room in ("nodes", "simulation", "harness")
        for path in (ROOT / room).rglob("*.py")
        for found in re.findall(r"\bINV-\d+\b", path.read_text(encoding="utf-8"))
    }
    return cited | {invariant.id for invariant in INVARIANTS} | {*LIVENESS}


@pytest.mark.parametrize("group", KNOWN)
def test_everything_that_the_code_knows_by_a_name_is_explained(group: str) -> None:
    assert KNOWN[group] == BY_NAME[group].keys()


def test_every_invariant_is_explained() -> None:
    assert invariants_of_the_code() - BY_NAME["invariant"].keys() == set()


def test_a_text_is_of_something_that_there_is() -> None:
    assert REVEALS.keys() == SCRIPTED.keys()
    assert CATALOGUE.keys() == GROUPS.keys()


@pytest.mark.parametrize("group", ["invariant", "fault"])
def test_each_invariant_and_each_fault_has_a_picture(group: str) -> None:
    assert [name for name, text in BY_NAME[group].items() if not text.breaks] == []


@pytest.mark.parametrize(("group", "text"), EACH)
def test_each_says_what_it_is_and_why_it_matters(group: str, text: Explanation) -> None:
    for sentence in (text.says, text.why, text.next_step):
        assert re.fullmatch(r"[A-Z`0-9].*\.", sentence, re.DOTALL), sentence
    # Texts of other things are not to be looked up first.
    assert not text.says.startswith("The same")
    assert max(map(len, text.breaks.splitlines()), default=0) <= PICTURE_COLUMNS_MAX or (
        "\n" not in text.breaks
    )


@pytest.mark.parametrize("group", ["invariant", "scripted plan"])
def test_a_rule_of_consensus_names_its_source(group: str) -> None:
    wanted = {"raft-figure-8"} if group == "scripted plan" else BY_NAME[group].keys()
    assert [name for name in wanted if not BY_NAME[group][name].source] == []


@pytest.mark.parametrize(("group", "text"), EACH)
def test_each_is_found_by_its_name_however_it_is_written(group: str, text: Explanation) -> None:
    for name in (text.name, text.name.upper(), text.name.replace(" ", "-")):
        assert (group, text) in find(name, CATALOGUE)


@pytest.mark.parametrize(
    ("written", "group", "name"),
    [
        ("INV-9", "invariant", "INV-09"),
        ("inv09", "invariant", "INV-09"),
        ("stale-read", "anomaly", "stale read"),
        ("stale_read", "anomaly", "stale read"),
        ("exit code 64", "exit code", "64"),
        ("kill:follower", "fault", "kill"),
        ("partition:random:2", "fault", "partition"),
        ("linearizability:register", "model", "register"),
        ("linearizability:of/mine.py:Mine", "checker", "linearizability"),
        ("bank:total=100", "checker", "bank"),
        ("digests-differ", "anomaly", "fork"),
        ("lost", "anomaly", "lost write"),
        ("isolate-leader-8s", "scripted plan", "isolate-leader-8s"),
    ],
)
def test_names_as_users_meet_them_are_found(written: str, group: str, name: str) -> None:
    assert [(of, text.name) for of, text in find(written, CATALOGUE)] == [(group, name)]


def test_two_things_of_one_name_are_both_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "split-brain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("split-brain")] == [
        *("split-brain  checker", "split-brain  anomaly")
    ]


def test_an_invariant_is_told_in_full(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["explain", "INV-09"]) == 0
    told = capsys.readouterr().out
    titles = ("Why it matters", "How it breaks", "What to do next", "Source")
    places = [told.index(f"\n  {title}\n") for title in titles]
    assert told.startswith("INV-09  invariant\n\n  The last record that a leader commits")
    assert places == sorted(places)
    assert "    n5   1          1 3 <-     1 3 x      1 3 <-\n" in told
    assert "figure 8" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["split-brain"], {"checker": ["split-brain"], "anomaly": ["split-brain"]}),
        (["verdicts"], {"verdict": [text.name for text in CATALOGUE["verdict"]]}),
        ([], {group: [text.name for text in texts] for group, texts in CATALOGUE.items()}),
    ],
)
def test_the_answer_in_json_is_by_group(
    words: list[str], told: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *words, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    answered = json.loads(line)
    assert {group: [text["name"] for text in texts] for group, texts in answered.items()} == told
    assert all(text["says"] for texts in answered.values() for text in texts)


def test_words_need_no_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "stale", "read"]) == 0
    apart = capsys.readouterr().out
    assert run(["explain", "stale-read"]) == 0
    assert capsys.readouterr().out == apart


def test_without_a_name_everything_is_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["explain"]) == 0
    listed = capsys.readouterr().out
    assert f"\nInvariants ({len(CATALOGUE['invariant'])})\n" in listed
    flat = " ".join(listed.split())
    assert [
        text.name for texts in CATALOGUE.values() for text in texts if text.name not in flat
    ] == []


@pytest.mark.parametrize("written", ["invariants", "invariant", "Exit codes"])
def test_a_group_is_listed_with_a_sentence_each(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *written.split()]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    group = "exit code" if "odes" in written else "invariant"
    assert all(f"{text.name} {text.says}" in flat for text in CATALOGUE[group])


@pytest.mark.parametrize("columns", [80, 120])
def test_nothing_is_wider_than_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ["", *GROUPS.values(), *(text.name for of in CATALOGUE.values() for text in of)]:
        assert run(["explain", name] if name else ["explain"]) == 0
    wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > columns]
    assert wide == []


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'partition'"):
        find("partitions:leader", {"fault": CATALOGUE["fault"]})
    with pytest.raises(UsageError, match="`splitbrain explain invariants` lists them"):
        find("INV-13", CATALOGUE)


MODULE = '''
from splitbrain.checker.models.model import Model
from splitbrain.checker.own_checker import OwnChecker
from splitbrain.contracts.explanation import Explanation
from splitbrain.nemesis import acts
from splitbrain.nemesis.fault_kind import Course, FaultKind, Step
from splitbrain.systems.servers import ServerSystem

class Once(Model):
    """An object that takes one put, ever."""
    name, functions, initial = "once", frozenset({"put"}), False
    def step(self, state, call):
        return not state, True

class Few(OwnChecker):
    name, promise = "few", "At most one operation."
    def check(self, evidence, budget): raise NotImplementedError

class Quiet(OwnChecker):
    name = "quiet"
    def check(self, evidence, budget): raise NotImplementedError

class Shelf(ServerSystem):
    name = "shelf"
    planted_bugs = {"drops-odd": "Odd writes are dropped."}
    explanations = {"exit code": (Explanation(name="99", says="The shelf fell."),)}
    def command(self, server, others): return ("true",)

def _course(setting, options):
    return Course(steps=(Step((acts.Kill(setting.hit),)),), heal=(acts.Start(setting.hit),))

SHOT = FaultKind(
    name="shot", summary="Shoots.", reveals="Holes.", needs=frozenset({"kill"}), course=_course
)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(models, "_OWN", {})
    (tmp_path / "explained_module.py").write_text(MODULE)
    named = {
        "models": {"once": "Once"},
        "checkers": {"few": "Few", "quiet": "Quiet", "gone": "Gone"},
        "nemesis": {"shot": "SHOT", "lost-shot": "NOTHING"},
        "systems": {"shelf": "Shelf"},
    }
    places = {
        sort: {name: f"explained_module:{place}" for name, place in things.items()}
        for sort, things in named.items()
    }
    offer(tmp_path, "acme", **places)
    entry_points_of.cache_clear()
    yield
    sys.modules.pop("explained_module", None)
    entry_points_of.cache_clear()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("once", "once model An object that takes one put, ever."),
        ("few", "few checker At most one operation."),
        ("quiet", "quiet checker A checker of an installed package, which says nothing about"),
        ("gone", "gone checker the checker 'gone' of acme (explained_module:Gone) cannot be used"),
        ("shot", "shot fault Shoots. Why it matters Holes. What to do next"),
        ("lost-shot", "the fault 'lost-shot' of acme (explained_module:NOTHING) cannot be used"),
        ("drops-odd", "drops-odd planted bug Odd writes are dropped."),
        ("99", "99 exit code The shelf fell."),
    ],
)
def test_what_a_package_brings_is_explained_by_its_own_words(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", name]) == 0
    assert told in " ".join(capsys.readouterr().out.split())
