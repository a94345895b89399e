"""Speed of worlds beside another checkout: the turns, the arithmetic, and traces that differ."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import simulation_pairs
from bench.simulation_pairs import Side, main, measured


class FakeSide:
    """A side whose worlds take as long as the test says."""

    def __init__(self, name: str, seconds: Callable[[int], float], trace: str = "same") -> None:
        self.turns: list[str] = []
        self._name, self._seconds, self._trace = name, seconds, trace

    def run(self, seed: int) -> tuple[float, str]:
        self.turns.append(self._name)
        return self._seconds(seed), f"{self._trace}-{seed}"

    def close(self) -> None:
        pass


def test_sides_take_turns_and_the_least_time_counts() -> None:
    times = iter([3.0, 1.0, 2.0])
    other, ours = FakeSide("other", lambda _: next(times)), FakeSide("ours", lambda _: 1.0)
    turns: list[str] = []
    other.turns = ours.turns = turns
    sides: list[Side] = [other, ours]  # type: ignore[list-item]
    assert measured(sides, 7, 3) == ([1.0, 1.0], True)
    assert turns == ["ours", "other", "other", "ours", "ours", "other"]


@pytest.mark.parametrize(("trace", "code"), [("same", 0), ("another", 1)])
def test_the_figure_is_the_median_of_the_ratios_and_other_traces_are_told(
    trace: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def side(checkout: Path, state_machine: str) -> FakeSide:
        assert state_machine == "metadata"
        if checkout == Path("/other"):
            return FakeSide("other", lambda seed: 2.0 + seed, trace)
        return FakeSide("ours", lambda _: 1.0)

    monkeypatch.setattr(simulation_pairs, "Side", side)
    assert main(["/other", "--seeds", "0:3", "--rounds", "1"]) == code
    *said, facts = capsys.readouterr().out.splitlines()
    assert "60 seeds a minute and core, the other checkout 20" in said[0]
    assert "3.00 times as fast at the median, 2.00 to 4.00" in said[0]
    assert json.loads(facts)["ratio_median"] == 3.0
    assert json.loads(facts)["differing"] == ([] if code == 0 else [0, 1, 2])


def test_a_side_runs_a_world_in_its_checkout_and_leaves_no_process() -> None:
    side = Side(Path(__file__).parents[3], "registers")
    first, again = side.run(3), side.run(3)
    side.close()
    assert first[1] == again[1]
    assert first[0] > 0
    assert side._process.returncode == 0
