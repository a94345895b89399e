"""A folder with runs and a policy, and the gate at work on it."""

import datetime as dt
from pathlib import Path

import pytest

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.harness.cli.main import run as splitbrain
from tests.unit.harness.campaign.gate.gate_runs import VALID, policy, stale_read, write_run

_FOUND = fingerprint_of(stale_read())
assert _FOUND is not None
STALE_READ = _FOUND.text
TODAY = dt.datetime.now(dt.UTC).date()


class Place:
    """A folder with runs and a policy."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.policy = root / "gate.toml"
        self.demand("violations == 0", "runs_valid >= 1")

    def demand(self, *thresholds: str, more: str = "") -> None:
        policy(self.root, *thresholds, more=more)

    def quarantine(self, until: dt.date, fingerprint: str = STALE_READ) -> str:
        return (
            f'[[quarantine]]\nfingerprint = "{fingerprint}"\nuntil = {until}\n'
            'reason = "known since issue 7"\n'
        )

    def runs(self, *names: str) -> str:
        """A folder of runs; those whose name begins with bad have a stale read."""
        top = self.root / f"runs-{'-'.join(names)}"
        for number, name in enumerate(names, start=1):
            result = stale_read(number) if name.startswith("bad") else VALID
            write_run(top / "kraft" / name, result, seed=number)
        return str(top)

    def gate(self, *words: str) -> tuple[int, str]:
        """Exit code and everything that was printed."""
        code = splitbrain(["gate", "--policy", str(self.policy), *words])
        out, err = self.capsys.readouterr()
        return code, out + err
