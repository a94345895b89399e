"""Histories that follow the rules, drawn by Hypothesis."""

from typing import Any

from hypothesis import strategies as st

from splitbrain.history.records import Event

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**53), 2**53),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=8),
    st.lists(st.integers(0, 9), max_size=3),
)
KINDS = st.sampled_from(["read", "write"])
KINDS_WITH_CAS = st.sampled_from(["read", "write", "cas"])
_KEYS = st.sampled_from(["a", "b"])


@st.composite
def histories(
    draw: st.DrawFn,
    values: st.SearchStrategy[Any] = VALUES,
    *,
    keyed: bool = True,
    cas: bool = True,
) -> list[Event]:
    """Events of up to four processes; time and order agree, ties included."""
    events: list[Event] = []
    open_: dict[int, tuple[str, str | None, Any]] = {}
    alive = list(range(draw(st.integers(1, 4))))
    time = 0
    for _ in range(draw(st.integers(1, 24))):
        if not alive:
            break
        time += draw(st.integers(0, 3))
        process = draw(st.sampled_from(alive))
        asked = open_.pop(process, None)
        if asked is None:
            f: str = draw(KINDS_WITH_CAS if cas else KINDS)
            key = draw(_KEYS) if keyed else None
            value: Any = None if f == "read" else draw(values)
            if f == "cas":
                value = [draw(values), draw(values)]
            open_[process] = (f, key, value)
            events.append(_event(events, time, process, "invoke", f, key, value))
            continue
        f, key, value = asked
        type_ = draw(st.sampled_from(["ok", "ok", "fail", "info"]))
        if type_ == "ok":
            value = draw(values) if f == "read" else value
            value = [*value, draw(st.booleans())] if f == "cas" else value
        else:
            alive = [other for other in alive if type_ == "fail" or other != process]
        error = None if type_ == "ok" else "timed-out"
        events.append(_event(events, time, process, type_, f, key, value, error))
    return events


def _event(
    events: list[Event],
    time: int,
    process: int,
    type_: Any,
    f: str,
    key: str | None,
    value: Any,
    error: str | None = None,
) -> Event:
    return Event(len(events), time, process, type_, f, key=key, value=value, error=error)
