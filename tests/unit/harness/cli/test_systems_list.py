"""``splitbrain systems``: what can be tested, with which bugs, for people and for programs."""

from collections import Counter

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.harness.cli.systems_list import ListedSystem, list_systems
from tests.unit.harness.fake_quorum import FakeQuorum, FakeSystem


class OddSystem(FakeSystem):
    """Takes odd clusters of at least three, and knows its version in a cluster only."""

    declares_digests = True

    def check_options(self, options: Experiment) -> None:
        if options.nodes < 3 or options.nodes % 2 == 0:
            raise UsageError("an even cluster", "Choose an odd one")

    def versions(self) -> dict[str, str]:
        raise HarnessError("ask", "nobody", "nobody is there", "Start somebody")


@pytest.fixture
def systems(monkeypatch: pytest.MonkeyPatch) -> None:
    from splitbrain.systems import registry

    def named(system: FakeSystem, name: str) -> FakeSystem:
        system.name = name
        return system

    factories = {
        "plain": lambda: named(FakeSystem(FakeQuorum()), "plain"),
        "odd": lambda: named(OddSystem(FakeQuorum()), "odd"),
    }
    monkeypatch.setattr(registry, "_FACTORIES", factories)


@pytest.mark.usefixtures("systems")
def test_people_see_every_bug_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_systems(Console(width=200)) == 0
    printed = capsys.readouterr().out
    for name, sentence in FakeSystem(FakeQuorum()).planted_bugs.items():
        assert f"--bug {name}" in printed
        assert sentence in printed
    assert "1 to 9" in printed
    assert "3, 5, 7, 9" in printed
    assert "known once a cluster is up" in printed
    assert "Faults for --nemesis: black-hole, bridge" in printed
    assert "isolate-leader-again" in printed


@pytest.mark.usefixtures("systems")
def test_programs_get_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_systems(Console(), as_json=True) == 0
    odd, plain = msgspec.json.decode(capsys.readouterr().out, type=list[ListedSystem])
    assert (odd.name, odd.nodes, odd.versions) == ("odd", (3, 5, 7, 9), {})
    assert plain.nodes == tuple(range(1, 10))
    assert "register" in plain.workloads
    assert plain.evidence == ("committed-logs", "state-events")
    assert odd.evidence == ("committed-logs", "digests", "state-events")
    assert plain.planted_bugs == FakeSystem(FakeQuorum()).planted_bugs


@pytest.mark.usefixtures("systems")
def test_a_narrow_terminal_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def letters(width: int) -> Counter[str]:
        assert list_systems(Console(width=width)) == 0
        return Counter("".join(capsys.readouterr().out.split()))

    assert letters(8) == letters(200)
