"""A planted bug in a simulated world is told as it happened, by the sweep and by the folder.

No invariant watches these worlds: else one would end them before a client was told anything.
"""

import json
import re
from pathlib import Path

import msgspec
import pytest

from splitbrain.checker.anomalies.account import account_of
from splitbrain.checker.anomalies.names import MEANINGS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.folder.results import leading_sentence
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.run_folder import RunFolder

pytestmark = [pytest.mark.slow, pytest.mark.planted("stale-leader-reads")]

#: A seed in which a deposed leader answers reads; others may take its place as the swarm changes.
SEEDS = range(14, 40)


def outcome_of(seed: int) -> JudgedOutcome:
    scenario = draw(seed, SimOptions(system=DEFAULT_SYSTEM, bugs=("stale-leader-reads",)))
    return judged(run(msgspec.structs.replace(scenario, unwatched=True), is_recording=True))


def deposed() -> JudgedOutcome:
    """The first world in which a leader that had been replaced answered a stale read."""
    for seed in SEEDS:
        outcome = outcome_of(seed)
        for check in outcome.checks:
            if check.violations and check.violations[0].get("overlap"):
                return outcome
    raise AssertionError("no seed shows it")


def test_a_stale_read_of_a_deposed_leader_is_told_with_both_leaders(tmp_path: Path) -> None:
    outcome = deposed()
    (check,) = [one for one in outcome.checks if one.verdict is Verdict.INVALID][:1]
    account = account_of(check)
    assert account is not None
    assert account == outcome.sentence, "the sweep says the same"
    assert account.startswith("Stale read. ")
    folder = keep_sweep_run(outcome, tmp_path)
    results = judge_and_publish(folder, analyze=False)
    assert leading_sentence(results) == account, "the folder is told as the world was"
    _holds_what_happened(account, folder, check.violations[0]["overlap"])
    files = RunFolder(folder)
    for path in (files.summary, files.junit, files.report):
        text = path.read_text()
        assert account.partition(" answered")[0].partition("`")[0] in text, path.name
    page = files.report.read_text()
    assert "harmless by itself" not in page
    assert "the violation above happened" in page


def _holds_what_happened(account: str, folder: Path, overlap: list[dict[str, int]]) -> None:
    """The account's own figures against the folder's events and history, read anew."""
    found = re.search(r" later (n\d+),.* still acting as leader of epoch (\d+),", account)
    assert found is not None, account
    node, epoch = found[1], int(found[2])
    lines = (folder / "nodes" / node / "state_events.jsonl").read_text().splitlines()
    led = [one for one in map(json.loads, lines) if one.get("role") == "leader"]
    assert epoch in {one["epoch"] for one in led}
    older, newer = overlap
    assert (older["node"], older["epoch"]) == (node, epoch)
    assert newer["epoch"] > epoch
    moment = re.search(r" at (\d+\.\d{3}) s", account)
    assert moment is not None
    ends = {round(event.time / 1e9, 3) for event in load_run(folder).events}
    assert float(moment[1]) in ends


def test_every_violation_of_linearizability_has_a_name_in_many_worlds() -> None:
    named: set[str] = set()
    for seed in range(4):
        for check in outcome_of(seed).checks:
            for violation in check.violations:
                if violation["kind"] == "not-linearizable":
                    assert violation["anomaly"] in MEANINGS
                    named.add(violation["anomaly"])
    assert "stale read" in named
