"""When a vote, or a pre-vote, is granted.

Pure; the replica acts on it and makes the vote durable. Sources: Raft paper 5.4.1, KIP-996.
"""

from splitbrain.nodes.quorum.messages import VoteRequest
from splitbrain.nodes.quorum.role import Role, RoleContext
from splitbrain.nodes.quorum.voters import ReplicaKey


def may_grant(context: RoleContext, role: Role, request: VoteRequest) -> bool:
    """Whether the candidate's log is at least as up to date, and the vote is free.

    Last epoch first, then end offset. A pre-vote needs no free vote, but a role that hears no live
    leader; a vote needs an epoch in which no leader is known and nobody else has the vote.
    """
    theirs = (request.last_epoch, request.end_offset)
    mine = (context.log.last_epoch, context.log.end_offset)
    if theirs < mine:
        return False
    if request.pre_vote:
        return role.grants_pre_votes
    candidate = ReplicaKey(request.candidate_id, request.candidate_directory_id)
    is_free = context.durable.voted in (None, candidate)
    return context.durable.leader_id is None and is_free
