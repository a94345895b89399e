"""Histories for the fuzz, as the events of a few clients with the spellings of their values.

One register, set or store of texts for each key works in the order of the answers; now and then it
answers something else. Nothing here knows a format but for how it spells values.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from bench.reader_fuzz.spellings import Family

#: Share of answers that are any value.
_WRONG = 0.12
#: Share of compare-and-sets and ``contains`` that are answered with what makes no sense.
_NONSENSE = 0.02
_ERRORS = ("timed-out", "connection-lost")

#: A value: its place in the family; None for nothing.
_Value = int | None


class StoryOptions(NamedTuple):
    """The ingredients of a history."""

    model: str
    values: Family
    #: Keys; an empty family for a history of one object.
    keys: Family
    processes: Sequence[str]
    steps: int
    #: How nothing, true, false and a list of items are spelled.
    nothing: str
    #: Whether a refused compare-and-set is written as ``fail``.
    refusals_fail: bool
    #: Functions that occur; None: all that the model knows.
    functions: Sequence[str] | None = None


class DrawnEvent(NamedTuple):
    """One event; texts are as a file has them."""

    process: str
    type: str
    f: str
    #: None where there is none.
    key: str | None
    value: str
    error: str | None = None


class Story:
    """Draws the events of one history.

    Args:
        random: where everything is drawn from.
        options: what it is made of.
    """

    def __init__(self, random: Random, options: StoryOptions) -> None:
        self._random = random
        self._options = options
        self._open: dict[str, tuple[str, int | None, tuple[_Value, ...]]] = {}
        self._registers: dict[int | None, _Value] = {}
        self._sets: dict[int | None, set[int]] = {}
        self._texts: dict[int | None, str] = {}

    def events(self) -> list[DrawnEvent]:
        """All events, in order."""
        idle = list(self._options.processes)
        events: list[DrawnEvent] = []
        for _ in range(self._options.steps):
            if not idle:
                break
            process = self._random.choice(idle)
            if process not in self._open:
                events.append(self._invoke(process))
                continue
            answer = self._answer(process)
            events.append(answer)
            if answer.type == "info" and self._random.random() < 0.6:
                idle.remove(process)
        return events

    def _invoke(self, process: str) -> DrawnEvent:
        random, options = self._random, self._options
        key = random.randrange(len(options.keys)) if options.keys else None
        f = random.choice(options.functions or _FUNCTIONS[options.model])
        count = 0 if f in ("read", "get") else 2 if f == "cas" else 1
        values = tuple(random.randrange(len(options.values)) for _ in range(count))
        self._open[process] = (f, key, values)
        return DrawnEvent(process, "invoke", f, self._key(key), self._spelled(values))

    def _answer(self, process: str) -> DrawnEvent:
        f, key, values = self._open.pop(process)
        random = self._random
        type_ = random.choices(("ok", "fail", "info"), (75, 8, 17))[0]
        if type_ != "ok":
            if type_ == "info" and random.random() < 0.5:
                self._perform(f, key, values)
            error = random.choice(_ERRORS) if f == "cas" or random.random() < 0.5 else None
            return DrawnEvent(process, type_, f, self._key(key), self._spelled(values), error)
        value = self._perform(f, key, values)
        if f == "cas" and self._options.refusals_fail and value == "refused":
            error = random.choice((None, "did-not-succeed"))
            return DrawnEvent(process, "fail", f, self._key(key), self._spelled(values), error)
        left_out = self._options.keys and random.random() < 0.05
        return DrawnEvent(process, "ok", f, None if left_out else self._key(key), value)

    def _perform(self, f: str, key: int | None, values: tuple[_Value, ...]) -> str:
        if self._options.model == "set":
            return self._on_set(f, self._sets.setdefault(key, set()), values)
        if self._options.model == "kv":
            return self._on_text(f, key, values)
        state = self._registers.get(key)
        if f == "write":
            self._registers[key] = values[0]
            return self._spelled(values)
        if f == "read":
            is_wrong = self._random.random() < _WRONG
            state = self._random.randrange(len(self._options.values)) if is_wrong else state
            return self._value(state)
        done = state == values[0]
        if done:
            self._registers[key] = values[1]
        return self._cas_answer(values, done=done)

    def _cas_answer(self, values: tuple[_Value, ...], *, done: bool) -> str:
        random = self._random
        if not done and self._options.refusals_fail:
            return "refused"
        if random.random() < _NONSENSE:
            values = (values[0], random.randrange(len(self._options.values)))
        if self._options.refusals_fail:
            return self._spelled(values)
        parts = [*map(self._value, values), "true" if done else "false"]
        if random.random() < _NONSENSE:
            parts[2] = random.choice(['"yes"', "1", "null"])
        return f"[{', '.join(parts)}]"

    def _on_set(self, f: str, state: set[int], values: tuple[_Value, ...]) -> str:
        random = self._random
        if f == "read":
            shown = [self._value(item) for item in random.sample(sorted(state), len(state))]
            return f"[{', '.join(shown)}]"
        (item,) = values
        is_there = item in state
        if f == "add" and item is not None:
            state.add(item)
        elif f == "remove" and item is not None:
            state.discard(item)
        else:
            if random.random() < _NONSENSE:
                return random.choice(['"no"', '"false"', "0", "1"])
            return "true" if is_there != (random.random() < _WRONG) else "false"
        return self._spelled(values)

    def _on_text(self, f: str, key: int | None, values: tuple[_Value, ...]) -> str:
        if f == "get":
            is_wrong = self._random.random() < _WRONG
            return '"x"' if is_wrong else f'"{self._texts.get(key, "")}"'
        spelled = self._spelled(values)
        before = "" if f == "put" else self._texts.get(key, "")
        self._texts[key] = before + spelled[1:-1]
        return spelled

    def _key(self, key: int | None) -> str | None:
        return None if key is None else self._random.choice(self._options.keys[key])

    def _value(self, value: _Value) -> str:
        if value is None:
            return self._options.nothing
        return self._random.choice(self._options.values[value])

    def _spelled(self, values: tuple[_Value, ...]) -> str:
        spelled = [self._value(value) for value in values]
        if len(spelled) > 1:
            separator = ", " if self._options.nothing == "null" else " "
            return f"[{separator.join(spelled)}]"
        return spelled[0] if spelled else self._options.nothing


_FUNCTIONS = {
    "cas-register": ("read", "read", "write", "write", "cas"),
    "set": ("add", "add", "remove", "contains", "contains", "read"),
    "kv": ("get", "get", "put", "append"),
}
