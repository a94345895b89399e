"""Thresholds as a policy writes them: ``latency_p99_ms{workload=register} < 1000``.

    THRESHOLD  = SUBJECT OP NUMBER  |  regression(SUBJECT) OP NUMBER
    SUBJECT    = FIGURE  |  FIGURE{DIMENSION=VALUE, DIMENSION!=VALUE, ...}
    OP         = ==  !=  <  <=  >  >=
    NUMBER     = 0.95  |  95%  |  1000  |  500ms  |  1m30s

Errors are refused: a threshold that means something else than its author thought is worse than
none. So is one that demands the worse (``availability_min < 0.9``).
"""

import math
import operator
import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.figure import Condition, Figure, Subject
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.campaign.gate.catalogue import figure_named
from splitbrain.history.durations import seconds_of

Comparison = Literal["==", "!=", "<", "<=", ">", ">="]

_HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_THRESHOLD = re.compile(r"^(?P<left>.*?)\s*(?P<comparison>==|!=|<=|>=|<|>)\s*(?P<right>[^=<>]*)$")
_REGRESSION = re.compile(r"^regression\s*\(\s*(?P<subject>.*?)\s*\)$")
_SUBJECT = re.compile(r"^(?P<figure>\w+)\s*(?:\{(?P<conditions>.*)\})?$")
_CONDITION = re.compile(r"^(?P<dimension>\w+)\s*(?P<comparison>!?=)\s*(?P<value>[^\s\"'{}=!]+)$")
_NUMBER = re.compile(r"^(?P<number>[+-]?(?:\d+(?:_\d+)*)(?:\.\d+)?)\s*(?P<unit>%)?$")
_FORM = "Write it as in 'violations == 0' or 'latency_p99_ms{workload=register} < 1000'"


class Threshold(msgspec.Struct, frozen=True):
    """One demand of a policy."""

    #: As its author wrote it.
    text: str
    subject: Subject
    comparison: Comparison
    #: In the figure's own unit; of a regression a share of the baseline.
    bound: float
    #: Whether it bounds the change for the worse against the baseline, not the figure itself.
    is_regression: bool = False
    #: Whether the gate demands it because the policy says nothing of the subject.
    is_implied: bool = False

    def holds_for(self, value: float) -> bool:
        """Return whether a value satisfies it."""
        return _HOLDS[self.comparison](value, self.bound)

    @property
    def measure(self) -> str:
        """Return the compared measure as text; within a tier equal ones replace each other."""
        return f"regression({self.subject.text})" if self.is_regression else self.subject.text


def parse_threshold(text: str) -> Threshold:
    """Read a threshold; raise UsageError, which does not name the file, if it is none."""
    match = _THRESHOLD.match(text.strip())
    if match is None:
        raise UsageError(f"{text!r} compares nothing", _FORM)
    left, comparison = match["left"], match["comparison"]
    regression = _REGRESSION.match(left)
    subject, figure = _subject(regression["subject"] if regression else left, text)
    threshold = Threshold(
        text=" ".join(text.split()),
        subject=subject,
        comparison=comparison,  # pyright: ignore[reportArgumentType] - one of the pattern's
        bound=_bound(match["right"], text, figure, is_regression=regression is not None),
        is_regression=regression is not None,
    )
    _refuse_wrong_way(threshold, figure)
    return threshold


def parse_subject(text: str) -> Subject:
    """Read a key of saved figures; raise UsageError if it is no subject of this version's."""
    return _subject(text, text)[0]


def _subject(text: str, whole: str) -> tuple[Subject, Figure]:
    match = _SUBJECT.match(text)
    if match is None:
        raise UsageError(f"{whole!r} names no figure", _FORM)
    figure = figure_named(match["figure"])
    conditions: set[Condition] = set()
    listed = match["conditions"]
    if listed is not None:
        conditions = {_condition(part.strip(), figure, whole) for part in listed.split(",")}
    return Subject(figure.name, tuple(sorted(conditions))), figure


def _condition(text: str, figure: Figure, whole: str) -> Condition:
    match = _CONDITION.match(text)
    if match is None:
        next_step = "Write it as in workload=register or fault!=kill"
        raise UsageError(f"{whole!r}: {text!r} is no condition", next_step)
    name = match["dimension"]
    for dimension in figure.dimensions:
        if dimension == name:
            return Condition(dimension, match["value"], match["comparison"] == "=")
    next_step = or_nearest(name, figure.dimensions, "dimensions of it")
    raise UsageError(f"{figure.name} cannot be chosen by {name!r}", next_step)


def _bound(text: str, whole: str, figure: Figure, *, is_regression: bool) -> float:
    match = _NUMBER.match(text.strip())
    if match is None:
        return _milliseconds(text.strip(), whole, figure, is_regression=is_regression)
    number, unit = float(match["number"]), match["unit"]
    takes_percent = is_regression or figure.unit == "share"
    if unit == "%" and takes_percent:
        return number / 100
    if unit == "%":
        raise UsageError(f"{whole!r}: {figure.name} is no share, so 10% of it is no bound", _FORM)
    return number


def _milliseconds(text: str, whole: str, figure: Figure, *, is_regression: bool) -> float:
    try:
        milliseconds = 1000 * seconds_of(text.replace("_", ""))
    except ValueError as error:
        raise UsageError(f"{whole!r}: {text!r} is no number", _FORM) from error
    if is_regression or figure.unit != "ms" or not math.isfinite(milliseconds):
        raise UsageError(f"{whole!r}: this is no time, so {text!r} is no bound of it", _FORM)
    return milliseconds


def _refuse_wrong_way(threshold: Threshold, figure: Figure) -> None:
    if threshold.is_regression and figure.better == "neither":
        problem = f"{threshold.text!r}: no change of {figure.name} is for the worse"
        raise UsageError(problem, "Compare the figure itself")
    better = "lower" if threshold.is_regression else figure.better
    right = {"lower": "<", "higher": ">"}.get(better)
    if right is not None and threshold.comparison[0] in "<>" and threshold.comparison[0] != right:
        order = f"of {threshold.measure} {better} is better"
        problem = f"{threshold.text!r} demands what is worse: {order}"
        raise UsageError(problem, f"Write it with {right}")


def can_be(value: float, figure: Figure) -> bool:
    """Return whether a figure can have this value at all."""
    if not math.isfinite(value) or value < 0:
        return False
    if figure.unit == "share":
        return value <= 1
    return figure.unit != "count" or value == int(value)
