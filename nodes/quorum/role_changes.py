"""The owner of the present role: every change of role happens here, checked against the table.

The order is always the same: the old role ends, the epoch and the leader are submitted to the
disk, requests of the old role are orphaned, the new role begins. Decides nothing.
"""

from splitbrain.nodes.quorum.candidate import Candidate
from splitbrain.nodes.quorum.effects import Warn
from splitbrain.nodes.quorum.epoch_limit import LAST_EPOCH, may_stand
from splitbrain.nodes.quorum.errors import InvariantViolation
from splitbrain.nodes.quorum.follower import Follower
from splitbrain.nodes.quorum.identifiers import Epoch, NodeId
from splitbrain.nodes.quorum.leader import Leader
from splitbrain.nodes.quorum.prospective import Prospective
from splitbrain.nodes.quorum.resigned import Resigned
from splitbrain.nodes.quorum.role import Role, RoleContext
from splitbrain.nodes.quorum.transitions import OBSERVER_ROLES, RoleName, check_transition
from splitbrain.nodes.quorum.unattached import Unattached
from splitbrain.nodes.quorum.voters import ReplicaKey


def first_role(context: RoleContext) -> Role:
    """Return the role of a node that has just started, from its quorum state.

    A voter that led the epoch never leads it again (resigned); one that stood in it waits
    (unattached); one that followed follows on, for its leader may well be alive.
    """
    leader_id = context.durable.leader_id
    if leader_id == context.me.node_id and context.voters.includes_me:
        return Resigned(context, ())
    if leader_id is not None and leader_id in context.voters.others:
        return Follower(context, leader_id)
    return Unattached(context)


class RoleOwner:
    """Holds the one present role and replaces it (``role.RoleChanges``)."""

    def __init__(self, context: RoleContext) -> None:
        self._context = context
        context.roles = self
        #: In which it was said that this node cannot stand.
        self._told_epoch: Epoch | None = None
        self.role: Role = first_role(context)

    def start(self) -> None:
        """Begins the first role, with timers that count from now."""
        self.role = first_role(self._context)
        self.role.report("started", offset=self._context.log.end_offset)
        self.role.enter()

    def become_unattached(self, epoch: Epoch, reason: str) -> None:
        """Knows no leader of this epoch, which may be the present one."""
        old = self._end_role(RoleName.UNATTACHED, epoch)
        if epoch > old:
            self._context.durable.enter_epoch(epoch)
        self._begin_role(Unattached(self._context), reason)

    def become_follower(self, epoch: Epoch, leader_id: NodeId, reason: str) -> None:
        """Follows this leader of this epoch, which may be the present one."""
        old = self._end_role(RoleName.FOLLOWER, epoch)
        if epoch > old:
            self._context.durable.enter_epoch(epoch, leader_id=leader_id)
        else:
            self._context.durable.set_leader(leader_id)
        self._begin_role(Follower(self._context, leader_id), reason)

    def become_prospective(self, reason: str) -> None:
        """Asks for pre-votes in the present epoch."""
        self._end_role(RoleName.PROSPECTIVE, self._context.durable.epoch)
        self._tell_if_it_cannot_stand()
        self._begin_role(Prospective(self._context), reason)

    def become_candidate(self, reason: str) -> None:
        """Stands in the next epoch, with its own vote."""
        epoch = Epoch(self._context.durable.epoch + 1)
        self._end_role(RoleName.CANDIDATE, epoch)
        self._context.durable.enter_epoch(epoch, voted=self._context.me)
        self._begin_role(Candidate(self._context), reason)

    def become_leader(self, granting_voters: tuple[NodeId, ...], reason: str) -> None:
        """Leads the present epoch, elected by these voters."""
        self._end_role(RoleName.LEADER, self._context.durable.epoch)
        self._context.durable.set_leader(self._context.me.node_id)
        self._begin_role(Leader(self._context, granting_voters), reason)

    def become_resigned(self, preferred: tuple[ReplicaKey, ...], reason: str) -> None:
        """Leads no more; these are its preferred successors, best first."""
        self._end_role(RoleName.RESIGNED, self._context.durable.epoch)
        self._begin_role(Resigned(self._context, preferred), reason)

    def validate(self) -> None:
        """Raise InvariantViolation if the role does not fit the node or contradicts itself."""
        if not self._context.voters.includes_me and self.role.name not in OBSERVER_ROLES:
            raise InvariantViolation("INV-20", f"an observer is {self.role.name}")
        if self._context.durable.epoch < self._context.log.last_epoch:
            raise InvariantViolation(
                "INV-22",
                f"the log is in epoch {self._context.log.last_epoch}, the node in"
                f" {self._context.durable.epoch}",
            )
        self.role.validate()

    def _tell_if_it_cannot_stand(self) -> None:
        """Says so once; a voter comes by here whenever it has no leader."""
        epoch = self._context.durable.epoch
        if may_stand(epoch) or epoch == self._told_epoch:
            return
        self._told_epoch = epoch
        reason = (
            f"this node is in epoch {epoch} and none above {LAST_EPOCH} is stood in;"
            " it needs a leader of that epoch, or a data folder formatted anew"
        )
        self._context.outbox.emit(Warn("does not stand", reason))

    def _end_role(self, after: RoleName, epoch: Epoch) -> Epoch:
        """Check the change and end the present role; return the epoch that it was in."""
        old = self._context.durable.epoch
        check_transition(self.role.name, after, old, epoch)
        if not self._context.voters.includes_me and after not in OBSERVER_ROLES:
            raise InvariantViolation("INV-20", f"an observer may not become {after}")
        self.role.leave()
        self._context.requests.orphan_all()
        return old

    def _begin_role(self, role: Role, reason: str) -> None:
        self.role = role
        role.report("role", reason=reason)
        role.enter()
