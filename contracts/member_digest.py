"""Digests of running members' states, as a system tells them and as a run folder keeps them."""

import msgspec

from splitbrain.contracts.names import Int64


class MemberDigest(msgspec.Struct, frozen=True):
    """Digest of the state that one member has applied, at a position.

    Two members that tell one scope and one position must tell one digest, or they have diverged.
    """

    #: Place in the system's own order of changes: an offset, a revision. Digest and position must
    #: belong together: nothing may be applied between the reading of one and of the other.
    position: Int64
    #: Digest in whatever notation; it is compared and shown, nothing else.
    digest: str
    #: Precondition of a comparison besides the position: etcd's compact revision, the id of
    #: Redis' replication. Empty where all positions of a cluster can be compared.
    scope: str = ""


class DigestAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Line of ``digests.jsonl``: what came of asking one running member."""

    #: When the member had answered, or was given up, nanoseconds since the run's start.
    time: Int64
    node: str
    #: None where it told nothing in time.
    told: MemberDigest | None = None
    #: Whether it was asked last, after the last heal and the final reads.
    final: bool = False
    #: Error of the adapter that cost the answer, in one line.
    problem: str | None = None
