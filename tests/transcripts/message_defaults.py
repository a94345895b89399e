"""Messages out of nowhere: the fields that a scenario does not name."""

from typing import Any

from msgspec.structs import replace

from splitbrain.nodes.quorum import messages
from splitbrain.nodes.quorum.admission import fetch_refusal
from splitbrain.nodes.quorum.identifiers import NO_DIRECTORY, DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.messages import ErrorCode
from tests.unit.nodes.quorum.replicas import fetch_request, vote_request

PEER, FIRST = NodeId(2), Epoch(1)


def request(kind: str, receiver: NodeId, fields: dict[str, Any]) -> messages.Request:
    """A request from node 2 to the receiver, but for the fields given."""
    directory = DirectoryId(f"{int(fields.get('candidate_id', PEER)):032x}")
    its_directory = DirectoryId(f"{receiver:032x}")
    begins = messages.BeginQuorumEpochRequest("stage", receiver, NO_DIRECTORY, PEER, FIRST)
    usual: dict[str, messages.Request] = {
        "VoteRequest": vote_request(
            cluster_id="stage",
            voter_id=receiver,
            voter_directory_id=its_directory,
            epoch=FIRST,
            candidate_id=PEER,
            candidate_directory_id=directory,
        ),
        "BeginQuorumEpochRequest": begins,
        "EndQuorumEpochRequest": messages.EndQuorumEpochRequest("stage", PEER, FIRST, ()),
        "FetchRequest": fetch_request(
            cluster_id="stage", replica_directory_id=directory, max_bytes=1_000_000
        ),
        "DescribeQuorumRequest": messages.DescribeQuorumRequest(),
    }
    return replace(usual[kind], **fields)


def answer(kind: str, fields: dict[str, Any]) -> messages.Answer:
    """An answer without error in epoch 1 from a leaderless peer, but for the fields given.

    ``batches`` is a tuple of (base offset, last offset, epoch).
    """
    none = ErrorCode.NONE
    usual: dict[str, messages.Answer] = {
        "VoteAnswer": messages.VoteAnswer(none, None, FIRST, granted=False),
        "BeginQuorumEpochAnswer": messages.BeginQuorumEpochAnswer(none, None, FIRST),
        "EndQuorumEpochAnswer": messages.EndQuorumEpochAnswer(none, None, FIRST),
        "FetchAnswer": fetch_refusal(none, None, FIRST, Offset(0)),
    }
    values = dict(fields)
    if "error" in values:
        values["error"] = ErrorCode[values["error"]]
    if "batches" in values:
        batches = values["batches"]
        values["batches"] = tuple(
            messages.BatchHeader(base, last, epoch, 100) for base, last, epoch in batches
        )
    return replace(usual[kind], **values)
