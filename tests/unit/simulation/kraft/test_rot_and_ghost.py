"""What the ghost state makes of bytes that change while a machine boots, or is down."""

from splitbrain.simulation.kraft.shadow import segments_of
from tests.unit.simulation.kraft.small_quorum import Quorum


def test_records_that_rot_under_a_recovery_keep_their_places() -> None:
    """Else nothing could say later whether they are on disk, nor what was hit."""
    for draw in range(6):
        quorum = Quorum(beyond_promise=True)
        for value in range(3):
            quorum.write(value)
        machine = quorum.followers[0]
        host = machine.host
        quorum.cluster.kill(host.name, 0)
        quorum.cluster.start(host.name)
        assert machine.log is None, "it boots"
        assert quorum.cluster.disk(host.name).rot(draw, "log") is not None
        while machine.log is None:
            quorum.run(1_000)
        log = machine.log
        assert log.entries
        size_bytes = sum(len(raw) for _, _, raw in segments_of(host.disk, log.folder))
        assert log.position_of(len(log.entries)) == size_bytes
        assert log.is_durable(host.disk, 0, len(log.entries))


def test_a_mark_that_rots_while_its_machine_is_down_promises_less() -> None:
    quorum = Quorum(beyond_promise=True)
    for value in range(3):
        quorum.write(value)
    machine = quorum.followers[0]
    quorum.cluster.kill(machine.host.name, 0)
    before = machine.promised_below_mark
    assert before == machine.mark() > 0
    for draw in range(40):
        quorum.cluster.disk(machine.host.name).rot(draw, "mark")
        assert machine.promised_below_mark == min(before, machine.mark())
        if machine.mark() < before:
            return
    raise AssertionError("no draw hits the newest slot")
