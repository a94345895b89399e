"""The file ``schedule.jsonl``, read back."""

import msgspec
import pytest

from splitbrain.contracts.fault import ActualFault, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.schedule_lines import decode_schedule, pin

PLANNED = [
    Fault(0, "kill", "leader", 1_000_000, 500_000, 17),
    Fault(1, "pause", "leader", 3_000_000, 500_000, 4),
]
ACTUAL = ActualFault(0, "kill", "leader", (NodeName("n3"),), leader=NodeName("n3"))
LINES = [msgspec.json.encode(record) for record in (*PLANNED, ACTUAL)]


def test_planned_and_actual_faults_are_told_apart() -> None:
    assert decode_schedule(LINES) == (tuple(PLANNED), (ACTUAL,))


def test_a_torn_last_line_is_left_out_and_an_earlier_one_is_not() -> None:
    assert decode_schedule([*LINES[:2], LINES[2][:20]]) == (tuple(PLANNED), ())
    with pytest.raises(msgspec.DecodeError):
        decode_schedule([LINES[0][:20], LINES[1]])


def test_pinning_keeps_times_and_hits_the_recorded_nodes() -> None:
    first, second = pin(PLANNED, [ACTUAL])
    assert first.options == {"nodes": ["n3"]}
    assert (first.at_us, first.target) == (1_000_000, "leader")
    assert second == PLANNED[1]
