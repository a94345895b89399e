"""Messages out of nowhere: the fields that a scenario does not name."""

from typing import Any

from splitbrain.nodes.quorum.identifiers import (
    NO_DIRECTORY,
    NO_EPOCH,
    UNKNOWN_OFFSET,
    DirectoryId,
    Epoch,
    NodeId,
    Offset,
)
from splitbrain.nodes.quorum.messages import (
    Answer,
    BatchHeader,
    BeginQuorumEpochAnswer,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochAnswer,
    EndQuorumEpochRequest,
    ErrorCode,
    FetchAnswer,
    FetchRequest,
    Request,
    VoteAnswer,
    VoteRequest,
)


def request(kind: str, receiver: NodeId, fields: dict[str, Any]) -> Request:
    """A request from node 2 to the receiver, but for the fields given."""
    peer = NodeId(2)
    directory = DirectoryId(f"{int(fields.get('candidate_id', peer)):032x}")
    defaults: dict[str, dict[str, Any]] = {
        "VoteRequest": {
            "voter_id": receiver,
            "voter_directory_id": DirectoryId(f"{receiver:032x}"),
            "epoch": Epoch(1),
            "candidate_id": peer,
            "candidate_directory_id": directory,
            "last_epoch": NO_EPOCH,
            "end_offset": Offset(0),
            "pre_vote": False,
        },
        "BeginQuorumEpochRequest": {
            "voter_id": receiver,
            "voter_directory_id": NO_DIRECTORY,
            "leader_id": peer,
            "epoch": Epoch(1),
        },
        "EndQuorumEpochRequest": {"leader_id": peer, "epoch": Epoch(1), "preferred": ()},
        "FetchRequest": {
            "replica_id": peer,
            "replica_directory_id": directory,
            "epoch": Epoch(1),
            "fetch_offset": Offset(0),
            "last_fetched_epoch": NO_EPOCH,
            "high_watermark": UNKNOWN_OFFSET,
            "max_wait_ms": 100,
            "max_bytes": 1_000_000,
        },
        "DescribeQuorumRequest": {},
    }
    types: dict[str, Any] = {
        "VoteRequest": VoteRequest,
        "BeginQuorumEpochRequest": BeginQuorumEpochRequest,
        "EndQuorumEpochRequest": EndQuorumEpochRequest,
        "FetchRequest": FetchRequest,
        "DescribeQuorumRequest": DescribeQuorumRequest,
    }
    values = defaults[kind] | fields
    if kind != "DescribeQuorumRequest":
        values = {"cluster_id": "stage"} | values
    return types[kind](**values)


def answer(kind: str, fields: dict[str, Any]) -> Answer:
    """An answer without error in epoch 1 from a leaderless peer, but for the fields given.

    ``batches`` is a tuple of (base offset, last offset, epoch).
    """
    values: Any = {"error": "NONE", "leader_id": None, "epoch": Epoch(1)} | fields
    values["error"] = ErrorCode[values["error"]]
    match kind:
        case "VoteAnswer":
            values.setdefault("granted", False)
            return VoteAnswer(**values)
        case "BeginQuorumEpochAnswer":
            return BeginQuorumEpochAnswer(**values)
        case "EndQuorumEpochAnswer":
            return EndQuorumEpochAnswer(**values)
        case "FetchAnswer":
            defaults = {
                "high_watermark": UNKNOWN_OFFSET,
                "log_start_offset": Offset(0),
                "diverging": None,
                "records": b"",
            }
            values["batches"] = tuple(
                BatchHeader(base, last, epoch, 100)
                for base, last, epoch in values.get("batches", ())
            )
            return FetchAnswer(**(defaults | values))
        case _:
            raise AssertionError(f"no answer is called {kind}")
