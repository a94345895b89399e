"""Result of a seed, as a test wants it."""

import os
import time

from splitbrain.checker.fingerprints import Fingerprint
from splitbrain.harness.campaign.sweep.trial import Purpose, SeedResult
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.history.seed_records import Found

#: As the judgement of a world tells a violated invariant.
FOUND = Found(
    checker="invariants",
    reason="INV-01 was violated: two leaders.",
    fingerprint=Fingerprint("invariants", "INV-01", "").text,
    violation={"kind": "INV-01", "sentence": "INV-01 was violated: two leaders."},
)


def tried(ways: dict[int, str], seed: int, purpose: Purpose) -> SeedResult:
    """``ways`` says of each seed that is out of the ordinary how it behaves."""
    how = ways.get(seed, "holds")
    if how == "dies":
        os._exit(9)
    if how == "hangs":
        time.sleep(600)
    if how == "crashes":
        crash = "Traceback\nZeroDivisionError: here"
        return SeedResult(seed=seed, purpose=purpose, crash=crash)
    if how == "skips":
        return SeedResult(seed=seed, purpose=purpose, is_skipped=True)
    is_changed = how == "changes" and purpose != "first"
    return SeedResult(
        seed=seed,
        purpose=purpose,
        trace_hash="f" * 32 if is_changed else f"{seed:032x}",
        steps=10,
        virtual_us=2_000_000,
        operations=5,
        workload="register",
        coverage=(CoverageCell("kill", "leader", "settled", "register", 2, 1),),
        failed_by=("INV-01",) if how in ("fails", "strays") else (),
        found=(FOUND,) if how in ("fails", "strays") else (),
        sentence=f"n2 forgot {seed} votes." if how == "strays" else "Two leaders.",
        unknown={"lost-commits": "No logs."} if how == "puzzles" else {},
        figures={"commits": 2, "highest_epoch": seed},
        folder=f"/runs/{seed}" if purpose == "keep" else None,
    )
