"""Settings of worlds with snapshots, which every world must be able to recover with."""

import random
from collections import Counter
from typing import Final

from splitbrain.nodes.quorum.identifiers import Epoch, Offset
from splitbrain.nodes.quorum.persistent import SnapshotId
from splitbrain.nodes.registers.commands import Add, encode_command
from splitbrain.nodes.registers.machine import RegisterMachine
from splitbrain.nodes.wire.snapshots import encode_snapshot
from splitbrain.simulation.kraft.system import KraftSimulation

#: About as many as a busy world commits.
_COMMITTED: Final = 600
#: As many chunks as a voter gets between two stalls of its leader's disk.
_CHUNKS_MAX: Final = 16


def drawn(seed: int) -> dict[str, str]:
    return KraftSimulation().draw_settings(random.Random(seed), 1_000)


def snapshot_bytes() -> int:
    machine = RegisterMachine()
    for offset in range(_COMMITTED):
        machine.apply(offset, 1, encode_command(Add(f"c0.{offset}-1", "s", offset)))
    snapshot_id = SnapshotId(Offset(_COMMITTED), Epoch(1))
    return sum(map(len, encode_snapshot(snapshot_id, 1, machine.freeze()())))


def test_a_lagging_voter_gets_a_snapshot_between_two_stalls_of_a_disk() -> None:
    size_bytes = snapshot_bytes()
    chunks = Counter(
        -(-size_bytes // int(settings["fetch_snapshot_max_bytes"]))
        for settings in map(drawn, range(300))
        if "fetch_snapshot_max_bytes" in settings
    )
    assert len(chunks) == 3
    assert sorted(chunks)[1] > 1
    assert max(chunks) <= _CHUNKS_MAX


def test_about_a_third_of_the_worlds_have_snapshots() -> None:
    with_snapshots = sum("snapshot_max_new_record_bytes" in drawn(seed) for seed in range(300))
    assert 70 <= with_snapshots <= 130
