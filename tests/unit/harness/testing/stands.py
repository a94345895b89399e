"""Clusters of tests on the quorum in memory."""

from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.fault import FaultEvent
from splitbrain.harness.judge.evidence_loader import read_json_lines
from splitbrain.harness.testing.cluster import Cluster
from splitbrain.history.course import Phase
from splitbrain.history.plan import Plan, decode_plan
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.run_fake import TIMING, FakeRun

TEST = "tests/test_own.py::test_it"


class Stand:
    """One test's cluster, and what is in its folder."""

    def __init__(self, folder: Path, **options: Any) -> None:
        # A busy machine answers late; a test of what times out says how soon it does.
        self.fake = FakeRun(folder, **{"operation_timeout_s": 30.0, **options})
        wanted = msgspec.structs.replace(self.fake.options, schedule=())
        self.cluster = Cluster(
            wanted,
            self.fake.system,
            lambda: self.fake.runtime,
            name="test_it",
            driven_by=TEST,
            timing=TIMING,
        )

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.cluster.folder)

    @property
    def plan(self) -> Plan:
        return decode_plan(self.folder.plan.read_bytes())

    def events(self) -> list[Event]:
        return self.fake.lines(self.folder.history, Event)

    def phases(self) -> list[str]:
        return [phase.phase for phase in self.fake.lines(self.folder.phases, Phase)]

    def faults(self) -> list[tuple[int, str]]:
        events = read_json_lines(self.folder.faults, FaultEvent, [])
        return [(event.index, event.phase) for event in events]
