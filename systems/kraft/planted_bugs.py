"""The planted bugs of our nodes: known ways to get consensus wrong, each a patch of their source.

``planted/NAME.patch`` is one bug: a sentence that says what it does, remarks, labelled lines, and
the diff that makes the mistake (``docs/planted.md``). A source is a report that was read, of this
mechanism or of its nearest kin in another system; "splitbrain" where none was found. The nodes
know nothing of them.
"""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from splitbrain.patched.loading import PatchedModules, installed_patches, read_patch_file
from splitbrain.patched.patch import Patch, PatchError

#: The folder of the patches, and that which the paths in them are below.
FOLDER: Final = Path(__file__).parent / "planted"
_ROOT: Final = Path(__file__).parents[2]

#: Its witness: the clients' outcomes and the nodes' ends (a node that stops by itself, logs
#: that differ), an invariant of the running quorum, or the demand for progress.
BugKind = Literal["outcome", "invariant", "liveness"]


class PlantedBug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One planted bug, in words for people; from ``source`` on labelled lines of its patch."""

    #: Kebab case, as on the command line.
    name: str
    #: One sentence.
    mechanism: str
    source: str
    #: The fault, and what must be under way when it strikes.
    exposed_by: str
    kind: BugKind
    #: Why no plan on a real runtime shows it; empty where one does (``bench/suites/planted.toml``).
    unseen_on_machines: str = ""
    #: The state machine that it is a bug of; None for the quorum's, which every node has.
    state_machine: Literal["metadata"] | None = None


@functools.cache
def planted_bugs() -> Mapping[str, PlantedBug]:
    """All of them by name, in the order of their names."""
    return MappingProxyType({name: described(patch) for name, patch in _patches().items()})


def described(patch: Patch) -> PlantedBug:
    """Return the bug of a patch, by the lines above its diff.

    Raises:
        msgspec.ValidationError: a label is missing or unknown, or cannot have its value.
    """
    *remarks, labelled = patch.preamble.split("\n\n")
    sentence = remarks[0].partition("\n")[0] if remarks else ""
    pairs = (line.partition(": ") for line in labelled.replace("\n  ", " ").splitlines())
    labels = {label.lower().replace(" ", "_"): text for label, _, text in pairs}
    return msgspec.convert(labels | {"name": patch.name, "mechanism": sentence}, PlantedBug)


def patches_of(names: Sequence[str], state_machine: str) -> tuple[Patch, ...]:
    """Return the patches that plant bugs, but for those that this process has.

    Raises:
        ValueError: a name is unknown, the bug is one of a state machine that the node does not
            have, or two of them cannot be planted together.
    """
    for name in names:
        if name not in planted_bugs():
            raise ValueError(f"unknown bug {name!r}; known are {', '.join(planted_bugs())}")
        if planted_bugs()[name].state_machine not in {None, state_machine}:
            raise ValueError(
                f"bug {name!r} is one of the state machine metadata; the state machine is "
                f"{state_machine}"
            )
    installed = installed_patches()
    # A worker of a patched process has them by other names.
    texts = [patch.text for patch in installed]
    patches = tuple(_patches()[name] for name in names if _patches()[name].text not in texts)
    try:
        if patches:
            PatchedModules([*installed, *patches], _ROOT)
    except PatchError as error:
        raise ValueError(
            f"the bugs {', '.join(names)} cannot be planted together, or with the patches of this "
            f"process: {error}"
        ) from error
    return patches


@functools.cache
def _patches() -> Mapping[str, Patch]:
    return {path.stem: read_patch_file(path) for path in sorted(FOLDER.glob("*.patch"))}
