from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, Microseconds, NodeId, Offset
from splitbrain.nodes.quorum.peer_progress import OBSERVERS_COUNT_MAX, PeerProgress, PeerTable
from tests.unit.nodes.quorum.replicas import key, voter_set


def table(count: int = 3, now: int = 5_000) -> PeerTable:
    return PeerTable(voter_set(count), Microseconds(now))


def test_what_has_never_happened_is_described_as_minus_one() -> None:
    peer = PeerProgress(key(2), Microseconds(9_000))
    described = peer.describe()
    assert (described.end_offset, described.last_fetch_ms, described.last_caught_up_ms) == (
        UNKNOWN_OFFSET, -1, -1,
    )  # fmt: skip
    peer.heard(Microseconds(12_999))
    peer.reached(Offset(3), Offset(4), Microseconds(12_999))
    described = peer.describe()
    assert (described.end_offset, described.last_fetch_ms, described.last_caught_up_ms) == (
        3, 12, -1,
    )  # fmt: skip
    peer.reached(Offset(4), Offset(4), Microseconds(13_000))
    assert peer.describe().last_caught_up_ms == 13


def test_successors_have_the_longest_log_then_the_lowest_id() -> None:
    peers = table(5)
    for number, offset in ((2, 4), (3, 7), (4, 7), (5, 9)):
        peers.others[NodeId(number)].reached(Offset(offset), Offset(9), Microseconds(0))
    assert [peer.node_id for peer in peers.successors()] == [5, 3, 4, 2]


def test_a_majority_is_heard_when_the_last_one_that_it_needs_was() -> None:
    peers = table(5)
    assert peers.majority_heard() == 5_000
    for number, at in ((2, 9_000), (4, 7_000), (5, 6_000)):
        peers.heard_from(key(number), Microseconds(at))
    assert peers.majority_heard() == 7_000
    assert table(1).majority_heard() is None


def test_the_observer_that_is_silent_for_longest_is_forgotten_first() -> None:
    peers = table()
    first, second = 100, 101
    for number in range(first, first + OBSERVERS_COUNT_MAX):
        peers.heard_from(key(number), Microseconds(number))
    peers.heard_from(key(first), Microseconds(1_000))
    assert len(peers.observers) == OBSERVERS_COUNT_MAX
    peers.heard_from(key(999), Microseconds(1_001))
    known = [peer.key.node_id for peer in peers.observers]
    assert len(known) == OBSERVERS_COUNT_MAX
    assert second not in known
    assert known[-2:] == [first, 999]
