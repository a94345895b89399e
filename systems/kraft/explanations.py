"""Words on things of our quorum that users meet: invariants, planted bugs, nodes' exit codes.

Texts of invariants stand beside them, in ``simulation/kraft/invariants.toml``, those of planted
bugs in their patches.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.explanation import Explanation
from splitbrain.nodes.server.host import exit_codes
from splitbrain.simulation import kraft
from splitbrain.systems.kraft.planted_bugs import BugKind, PlantedBug, planted_bugs

_INVARIANTS: Final = Path(kraft.__path__[0]) / "invariants.toml"
_NEXT_STEP: Final = (
    "`splitbrain replay RUN --trace` tells the messages that led to the violation, step by step; "
    "`splitbrain shrink RUN` makes the world as small as it can be. `splitbrain docs "
    "invariants` names the code that keeps it and the test that breaks it."
)
_PLANTED: Final = "It is planted on purpose, to prove that such a mistake is found. "
_SEEN_BY: Final[Mapping[BugKind, str]] = {
    "outcome": "Clients' answers, the nodes' logs or the nodes' own ends show it, so checkers see "
    "it on machines too.",
    "invariant": "An invariant of the simulated quorum sees it, often before any client could.",
    "liveness": "Nothing wrong is ever answered: the cluster stops making progress.",
}
_NODE_CODES: Final = (
    Explanation(
        name=str(exit_codes.DEFECT),
        says="A node of kraft ended by a defect of its own code.",
        why="An error that nobody foresaw ended the process: nothing is known of what it left.",
        next_step="The traceback is in the node's log in the run folder.",
    ),
    Explanation(
        name=str(exit_codes.HALTED),
        says="A node of kraft refused to go on, because the next step could break a promise.",
        why="It saw something that no correct quorum can show it, such as a second leader of its "
        "epoch. Without a failing disk that is a violation (INV-14).",
        next_step="The reason is the last line of the node's log; look at what its leader sent "
        "before.",
    ),
    Explanation(
        name=str(exit_codes.DISK_FAILED),
        says="A node of kraft ended because a write or an fsync failed.",
        why="Nobody knows then what is on the disk. To end is right if a fault struck the disk; "
        "without one, the machine's own disk is failing or full.",
        next_step="Compare its moment with the disk faults of the run, and with free space.",
    ),
    Explanation(
        name=str(exit_codes.CORRUPT),
        says="A node of kraft ended because its data folder holds what it cannot have written.",
        why="Rot was noticed, which is right. Without a fault that changed files, the node has "
        "written something wrong itself.",
        next_step="The node's log names the file and the byte.",
    ),
    Explanation(
        name=str(exit_codes.UNUSABLE),
        says="A node of kraft did not start: configuration, data folder or listeners cannot be "
        "used as they are.",
        why="It is a wrong setting, a folder of another node, or a port that is taken; nothing was "
        "tested.",
        next_step="The node's log says which of them; mend it and start the run again.",
    ),
)


class InvariantText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table of ``invariants.toml``."""

    says: str
    why: str
    source: str
    breaks: str = ""


@functools.cache
def explanations() -> Mapping[str, tuple[Explanation, ...]]:
    """Return all of them by group, in the order of their names."""
    texts = msgspec.toml.decode(_INVARIANTS.read_bytes(), type=dict[str, InvariantText])
    invariants = tuple(
        Explanation(
            name=name,
            says=text.says,
            why=text.why,
            breaks=text.breaks.rstrip("\n"),
            next_step=_NEXT_STEP,
            source=text.source,
        )
        for name, text in sorted(texts.items())
    )
    bugs = tuple(_of_bug(bug) for bug in planted_bugs().values())
    return {"invariant": invariants, "planted bug": bugs, "exit code": _NODE_CODES}


def _of_bug(bug: PlantedBug) -> Explanation:
    unseen = f" No plan on machines shows it: {bug.unseen_on_machines}."
    layer = "" if bug.state_machine is None else f" --state-machine {bug.state_machine}"
    return Explanation(
        name=bug.name,
        says=bug.mechanism,
        why=_PLANTED + _SEEN_BY[bug.kind] + (unseen if bug.unseen_on_machines else ""),
        breaks=f"Exposed by: {bug.exposed_by}.",
        next_step=f"`splitbrain sim --bug {bug.name}{layer} --seeds 0:200` looks for it; "
        f"systems/kraft/planted/{bug.name}.patch is the change itself.",
        source=bug.source,
    )
