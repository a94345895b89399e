"""Fault kinds of the cluster's membership, which the system's own requests change.

The majority that counts moves while clients and other faults are at work, and a node that is no
member any more may not know it.
"""

from typing import Final

from splitbrain.contracts.fault import FaultTraits
from splitbrain.nemesis.acts import RemoveMember, ReplaceMember, Start
from splitbrain.nemesis.expectations import MemberIs
from splitbrain.nemesis.families.processes import until_healed
from splitbrain.nemesis.fault_kind import Course, FaultKind, Setting, Step
from splitbrain.nemesis.fault_options import NoOptions
from splitbrain.nemesis.targets import FOLLOWER, HALVES, random_target


def _remove(setting: Setting, _options: NoOptions) -> Course:
    """The heal is another machine in the place of the removed one."""
    hit = setting.hit
    return until_healed(
        hit,
        Step((RemoveMember(hit),), seen=tuple(MemberIs(node, there=False) for node in hit)),
        heal=(ReplaceMember(hit), Start(hit)),
        healed=tuple(MemberIs(node, there=True) for node in hit),
    )


KINDS: Final = (
    FaultKind(
        name="remove-member",
        summary="Removes the target from the cluster; it comes back as a new member when healed.",
        page="members", needs=frozenset({"membership", "kill", "wipe"}), course=_remove,
        traits=FaultTraits("later", ("permanently removed",)),
        exclusive="disk",
        other_targets=(FOLLOWER, random_target(1)), refused_targets=frozenset({HALVES}),
        reveals=(
            "Two majorities of different memberships need not overlap. A member that forgets a "
            "change when it restarts, or a leader that acts on one before it is committed, counts "
            "by the wrong one."
        ),
        picture=(
            "n1  of n1 n2 n3   n3 is removed: two of two decide\n"
            "n2  restarts, has forgotten that: two of three decide\n"
            "n3  comes back:   n2 and n3 decide without n1"
        ),
    ),
)  # fmt: skip
