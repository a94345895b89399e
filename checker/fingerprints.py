"""Fingerprints of failures: one short name for the same failure met again. Pure.

A fingerprint is a digest of the checker, of the name or kind of its most telling violation, and of
that violation's *shape*. For operations without an order that is their circle of contradiction:
kinds, outcomes, and which was over before, or must come before, which. It contains no id, key,
value, time or node name, so that it stays the same when any of these is renamed or shifted.

One defect may still show several shapes (a stale read after a write or after another read), and two
defects the same one: a fingerprint names the symptom, never the cause. A change of what goes into
it raises its version, which is part of every fingerprint. Version 2 has the name of an anomaly in
the place of the kind, and only what has such a name is of version 2; ``before_names`` is the
fingerprint that the same violation had in version 1, under which older records know it.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, permutations, product
from typing import Any, cast

import msgspec

from splitbrain.checker.anomalies.names import NOT_LINEARIZABLE, name_of_kind
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.history.functions import USUAL, was_refused

#: Version of what has no name of its own besides its kind.
VERSION = 1
#: Version of what has the name of an anomaly.
VERSION_OF_NAMES = 2
#: Operations of the longest circle drawn; a longer one is known by the kinds of its core alone.
CIRCLE_MAX = 6
_DIGEST_DIGITS = 12
#: Binding edges of an explanation's graph, and their signs in a shape.
_SIGNS = {
    "real-time": "<",
    "must-precede": "^",
    "reads-from": "~",
    "ww": "»",
    "wr": "→",
    "rw": "⇥",
    "process": "-",
    "commit": "^",
}
#: ``ValueError: what``, ``nodes.storage.errors.Torn``.
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::|$)")
_FRAME = re.compile(r"\bin ([A-Za-z_<][\w.<>]*)\s*$", re.MULTILINE)

_Found = Mapping[str, Any]


class Fingerprint(msgspec.Struct, frozen=True, order=True):
    """Identity of a failure across runs."""

    checker: str
    #: Kind of the violation: ``not-linearizable``, ``lost``, ``INV-12``.
    kind: str
    #: Words for people; canonical: equal shapes are equal texts.
    shape: str
    #: Name of the anomaly, where the kind does not say it.
    anomaly: str = ""

    @property
    def text(self) -> str:
        """Return ``f2-`` or ``f1-`` and twelve hex digits, as a quarantine names it."""
        if self.anomaly:
            return _digest(VERSION_OF_NAMES, self.checker, self.anomaly, self.shape)
        return _digest(VERSION, self.checker, self.kind, self.shape)

    @property
    def before_names(self) -> str | None:
        """Return the text that it had before anomalies had names; None where it is the same."""
        return _digest(VERSION, self.checker, self.kind, self.shape) if self.anomaly else None

    @property
    def name(self) -> str:
        """Return the name of the anomaly, or of the kind."""
        return self.anomaly or name_of_kind(self.checker, self.kind)

    @property
    def sentence(self) -> str:
        """Return checker, name and shape on one line."""
        shape = f": {self.shape}" if self.shape else ""
        return f"{self.checker}, {self.name}{shape}"

    def is_among(self, known: Container[str]) -> bool:
        """Return whether fingerprints, of whatever version, hold this failure."""
        before = self.before_names
        return self.text in known or (before is not None and before in known)


def _digest(version: int, *content: str) -> str:
    joined = "\0".join((str(version), *content))
    digest = hashlib.blake2b(joined.encode(errors="replace"), digest_size=16).hexdigest()
    return f"f{version}-{digest[:_DIGEST_DIGITS]}"


def is_fingerprint(text: str) -> bool:
    """Return whether the text has the form of a fingerprint, of any version."""
    return re.fullmatch(rf"f\d+-[0-9a-f]{{{_DIGEST_DIGITS}}}", text) is not None


def fingerprint_of(result: CheckResult) -> Fingerprint | None:
    """Return the fingerprint of a checker's result; None where it found no violation.

    Of several violations of the most telling kind the smallest shape counts, so that the order in
    which keys were judged does not matter. A result that describes no violation is known by its
    checker alone.
    """
    if result.verdict is not Verdict.INVALID:
        return None
    if not result.violations:
        return Fingerprint(result.checker, "undescribed", "")
    first = kind, anomaly = _kind_and_name(result.violations[0])
    shapes = (_shape(found) for found in result.violations if _kind_and_name(found) == first)
    return Fingerprint(result.checker, kind, min(shapes, key=_simplicity, default=""), anomaly)


def _kind_and_name(found: _Found) -> tuple[str, str]:
    """Return the kind, and the name of an anomaly; empty where a name says no more than the kind.

    Earlier versions told no names.
    """
    anomaly = str(found.get("anomaly") or "")
    return str(found.get("kind", "undescribed")), "" if anomaly == NOT_LINEARIZABLE else anomaly


def _simplicity(shape: str) -> tuple[int, str]:
    return len(shape), shape


def _shape(found: _Found) -> str:
    """Return the appearance of one violation, free of names and numbers of its own."""
    core = _objects(found.get("core"))
    if core:
        return _core_shape(core, found.get("graph"))
    if "text" in found and found.get("kind") == "traceback":
        return _traceback_shape(str(found["text"]))
    records = found.get("records")
    if isinstance(records, dict):
        return _records_shape(_objects([*cast("dict[str, Any]", records).values()]))
    leaders = found.get("leaders")
    if isinstance(leaders, list):
        return f"{_several(len(cast('list[Any]', leaders)))} led"
    operations = [*_objects([found.get("operation")]), *_objects(found.get("operations"))]
    return _counted(map(_label, operations))


def _objects(value: Any) -> list[_Found]:
    """Return the JSON objects of a list; an older or foreign record may hold anything."""
    members = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("_Found", member) for member in members if isinstance(member, dict)]


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None


# --- operations -----------------------------------------------------------------------------


def _label(operation: _Found) -> str:
    """Return ``write:ok``, ``cas:refused``; the kind alone where the outcome is unknown."""
    kind = operation.get("f")
    if kind is None:
        # ``describe_operation`` puts the kind first.
        return str(operation.get("text", "")).partition(" ")[0]
    outcome = operation.get("type")
    if outcome is None:
        return str(kind)
    if outcome == "ok" and was_refused(USUAL, str(kind), operation.get("result")):
        outcome = "refused"
    return f"{kind}:{outcome}"


def _counted(labels: Iterator[str]) -> str:
    counts = Counter(labels)
    return ", ".join(f"{_several(counts[label])} {label}" for label in sorted(counts))


def _several(count: int) -> str:
    return str(count) if count <= 2 else "many"


def _core_shape(core: Sequence[_Found], graph: Any) -> str:
    """Return the circle of contradicting operations; without one the kinds of all.

    The rest of a core only supports the circle, and its size is chance.
    """
    drawing: _Found = cast("_Found", graph) if isinstance(graph, dict) else {}
    known = {_whole(node.get("id")): _node_label(node) for node in _objects(drawing.get("nodes"))}
    known |= {_whole(operation.get("index")): _label(operation) for operation in core}
    marked = {
        (source, target, _SIGNS[kind])
        for edge in _objects(drawing.get("edges"))
        if edge.get("contradiction") is True
        and (kind := str(edge.get("key"))) in _SIGNS
        and (source := _whole(edge.get("source"))) in known
        and (target := _whole(edge.get("target"))) in known
    }
    names = sorted({name for source, target, _ in marked for name in (source, target)}, key=str)
    if not names or len(names) > CIRCLE_MAX:
        return ", ".join(sorted(set(map(_label, core))))
    places = {name: place for place, name in enumerate(names)}
    labels = [known[name] for name in names]
    drawn = {(places[source], places[target], sign) for source, target, sign in marked}
    return min(_drawn(labels, drawn, order) for order in _orders(labels))


def _node_label(node: _Found) -> str:
    """Return the label of an operation outside the core, known by its words and end alone."""
    kind = str(node.get("text", "")).partition(" ")[0]
    return f"{kind}:{'info' if node.get('end') is None else 'ok'}"


def _orders(labels: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Yield every permutation of the places in which the labels ascend."""
    groups = [
        [place for place, label in enumerate(labels) if label == sought]
        for sought in sorted(set(labels))
    ]
    for choice in product(*(permutations(group) for group in groups)):
        yield tuple(chain.from_iterable(choice))


def _drawn(labels: Sequence[str], edges: set[tuple[int, int, str]], order: Sequence[int]) -> str:
    """Return ``read:ok, write:ok; a^b b<a``: ``<`` was over before, ``^`` must come before.

    Of transactions ``»`` was overwritten by, ``→`` was read by, ``⇥`` did not see the other.
    """
    letters = {place: chr(ord("a") + number) for number, place in enumerate(order)}
    nodes = ", ".join(labels[place] for place in order)
    drawn = sorted(f"{letters[first]}{kind}{letters[second]}" for first, second, kind in edges)
    return f"{nodes}; {' '.join(drawn)}" if drawn else nodes


# --- logs, leaders, nodes -------------------------------------------------------------------


def _records_shape(records: Sequence[_Found]) -> str:
    epochs = {str(record.get("epoch")) for record in records}
    kinds = sorted(str(record.get("f") or "control") for record in records)
    return f"{' and '.join(kinds)} of {'one epoch' if len(epochs) == 1 else 'two epochs'}"


def _traceback_shape(text: str) -> str:
    """Return the exception and the function that raised it, without line and message."""
    lines = text.rstrip().splitlines()
    exception = _EXCEPTION.match(lines[-1].strip()) if lines else None
    frames = _FRAME.findall(text)
    parts = [exception[1]] if exception else []
    parts += [f"in {frames[-1]}"] if frames else []
    return " ".join(parts)
