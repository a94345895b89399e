"""Explanations of everything that users meet by a name, found by that name.

Each text stands with its thing; here is none. All systems are loaded for it, so whoever only wants
to name a command that explains something uses ``harness.report.explaining_commands``.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from splitbrain.checker.anomalies.explanations import anomalies
from splitbrain.checker.anomalies.names import NAMES
from splitbrain.checker.explanations import checkers, models
from splitbrain.contracts.errors import UNREADABLE, UsageError
from splitbrain.contracts.explanation import Explanation, KnownLoss
from splitbrain.contracts.nearest import nearest
from splitbrain.contracts.runtime import EXACT_CAPABILITIES
from splitbrain.harness.report import own_explanations
from splitbrain.nemesis.kinds import fault_kind, kind_names
from splitbrain.nemesis.scripted import REVEALS, SCRIPTED

#: Groups in the order of the list, each with its plural.
GROUPS: Final = {
    "invariant": "invariants",
    "checker": "checkers",
    "model": "models",
    "fault": "faults",
    "scripted plan": "scripted plans",
    "anomaly": "anomalies",
    "verdict": "verdicts",
    "exit code": "exit codes",
    "planted bug": "planted bugs",
    "known loss": "known losses",
}
_ID: Final = re.compile(r"inv-?0*(\d+)")
_CODE: Final = re.compile(r"exit-(?:code-)?(\d+)")
#: Further parts of an explanation, each with its title.
PARTS: Final = (
    ("why", "Why it matters"),
    ("breaks", "How it breaks"),
    ("next_step", "What to do next"),
    ("source", "Source"),
)
Catalogue = Mapping[str, Sequence[Explanation]]


def explained() -> Catalogue:
    """Return all that can be explained, by group."""
    from splitbrain.systems.registry import finding_files, usable_systems

    found: dict[str, list[Explanation]] = {group: [] for group in GROUPS}
    found["invariant"] += own_explanations.INVARIANTS
    found["checker"] += [*checkers(), *own_explanations.CHECKERS]
    found["model"] += models()
    found["fault"] += map(_of_fault, kind_names())
    found["scripted plan"] += map(_of_plan, SCRIPTED)
    found["anomaly"] += anomalies()
    found["verdict"] += own_explanations.VERDICTS
    found["exit code"] += own_explanations.EXIT_CODES
    for system in usable_systems():
        for group, texts in system.explanations.items():
            found.setdefault(group, []).extend(texts)
        told = {text.name for text in found["planted bug"]}
        found["planted bug"] += (
            Explanation(name=name, says=sentence)
            for name, sentence in system.planted_bugs.items()
            if name not in told
        )
    for name, file in finding_files().items():
        # Of a file that cannot be read `splitbrain findings` says why.
        with suppress(OSError, KeyError, ValueError, *UNREADABLE):
            words = msgspec.convert(tomllib.loads(file.read_text())["known_loss"], KnownLoss)
            found["known loss"].append(words.explanation(name))
    found["invariant"].sort(key=lambda text: text.name)
    return found


def find(name: str, catalogue: Catalogue) -> list[tuple[str, Explanation]]:
    """Return what is named so, with its group; a fault and an anomaly may share a name.

    Case, blanks and leading zeros do not count, nor does what stands behind a colon where the whole
    name is unknown, as in ``kill:follower``.

    Raises:
        UsageError: nothing is.
    """
    by_key: dict[str, list[tuple[str, Explanation]]] = {}
    for group, texts in catalogue.items():
        for text in texts:
            by_key.setdefault(_key(text.name), []).append((group, text))
    for key in _keys(name):
        if key in by_key:
            return by_key[key]
    anomaly = _names_of_kinds().get(_key(name))
    if anomaly is not None:
        return [found for key in anomaly for found in by_key[key] if found[0] == "anomaly"]
    problem = f"nothing that can be explained is called {name!r}"
    if _ID.fullmatch(_key(name)):
        raise UsageError(problem, "`splitbrain explain invariants` lists them")
    near = nearest(_key(name), by_key)
    if near is None:
        raise UsageError(problem, "`splitbrain explain` lists what there is")
    raise UsageError(problem, f"Did you mean {by_key[near][0][1].name!r}?")


def group_named(name: str) -> str | None:
    """Return the group of this name, in the singular or the plural; None: there is none."""
    key = _key(name)
    return next((group for group, many in GROUPS.items() if key in {_key(group), _key(many)}), None)


def _keys(name: str) -> Iterator[str]:
    key = _key(name)
    yield key
    head, colon, option = key.partition(":")
    if colon:
        # Of ``linearizability:register`` the model says more than the checker.
        if head == "linearizability":
            yield option
        yield head


def _key(name: str) -> str:
    key = "-".join(name.lower().replace("_", " ").split())
    if number := _ID.fullmatch(key):
        return f"inv-{int(number[1]):02}"
    code = _CODE.fullmatch(key)
    return key if code is None else code[1]


def _names_of_kinds() -> Mapping[str, list[str]]:
    """Keys of the anomalies of each kind of violation, as policies and results name it."""
    found: dict[str, list[str]] = {}
    for kinds in NAMES.values():
        for kind, name in kinds.items():
            if _key(name) not in found.setdefault(kind, []):
                found[kind].append(_key(name))
    return found


def _of_fault(name: str) -> Explanation:
    try:
        kind = fault_kind(name)
    except UsageError as error:
        return Explanation(name=name, says=f"{error.problem}.", next_step=f"{error.next_step}.")
    world = "--runtime simulated " if kind.needs & EXACT_CAPABILITIES else ""
    strikes = f"`splitbrain test {world}--nemesis {name}` strikes with it, where that is possible."
    page = f"`splitbrain docs faults/{kind.page}` says how it is done and what proves it."
    return Explanation(
        name=name,
        says=kind.summary,
        why=kind.reveals,
        breaks=kind.picture,
        next_step=f"{strikes} {page}" if kind.page else strikes,
    )


def _of_plan(name: str) -> Explanation:
    says, _, source = (SCRIPTED[name].__doc__ or "").partition("Source: ")
    first = says.partition("\n\n")[0]
    return Explanation(
        name=name,
        says=" ".join(first.split()),
        why=REVEALS.get(name, ""),
        next_step=f"`splitbrain test --nemesis {name}` runs it.",
        source=" ".join(source.split()).rstrip("."),
    )
