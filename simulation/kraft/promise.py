"""What Raft promises to survive, asked before a fault harms a disk.

Raft survives crashes and a minority that is down; it does not survive a voter that forgets what it
had flushed, for that voter may elect a leader that never had it. Source: design, section 9.
"""

from splitbrain.simulation.kraft.ghost import Ghost, Machine


def may_forget(ghost: Ghost, machine: Machine) -> bool:
    """Whether the promise holds even if this machine's disk loses everything that it holds now.

    True where a majority of voters is left whose disks no fault has harmed, and every majority of
    the voter set that the rest can form, harmed ones included, has an intact durable copy of every
    committed record. A wiped voter has a new directory id and votes no more. A disk that rots above
    its durable mark may lose records without notice and still vote, so nothing may lie there.
    """
    voting = ghost.voting_machines()
    if machine not in voting:
        return True
    others = [voter for voter in voting if voter is not machine]
    if sum(not is_harmed(voter) for voter in others) < ghost.majority:
        return False
    if machine.mark() < len(machine.read_log().entries):
        return False
    committed = len(ghost.committed)
    holders = sum(ghost.agreement(voter.read_log()) == committed for voter in others)
    return len(others) - holders < ghost.majority


def is_harmed(machine: Machine) -> bool:
    """Whether a fault has changed what this disk holds behind its node's back."""
    return machine.disk_past.has_rotted() or machine.disk_past.was_restored
