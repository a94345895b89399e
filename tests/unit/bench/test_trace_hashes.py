import argparse
import json

import pytest

from bench.trace_hashes import evidence, main, run, scenario_of, seeds_of
from harness.simulation.trial import Trial, draw


@pytest.mark.parametrize("bugs", [(), ("ack-before-fsync",)])
def test_the_worlds_are_those_of_a_sweep(bugs: tuple[str, ...]) -> None:
    for seed in range(3):
        assert scenario_of(seed, bugs) == draw(seed, Trial(system="kraft", bugs=bugs))


def test_a_line_a_seed_and_one_object_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "4:6"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == f"4 {run(4, ()).trace_hash}"
    assert second.startswith("5 ")
    assert json.loads(last)["seeds"] == "4:6"


def test_recording_adds_nothing_but_the_story() -> None:
    plain, recorded = run(4, ()), run(4, (), is_recording=True)
    assert recorded.story
    assert evidence(plain) == evidence(recorded)


@pytest.mark.parametrize("text", ["", "5", "5:", ":5", "a:b", "5:5", "6:5", "-1:5"])
def test_what_is_no_range_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no range of seeds"):
        seeds_of(text)
