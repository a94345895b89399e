"""Files for the fuzz: a story in one of the formats, with the liberties that the format leaves.

``drawn`` gives the same file for the same seed and number on every machine.
"""

import gzip
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from bench.reader_fuzz import spellings
from bench.reader_fuzz.stories import DrawnEvent, Story, StoryOptions
from bench.reader_fuzz.tables import damaged, etcd_file, table_of

FORMATS = ("jsonl", "edn", "kv", "jepsen-log", "parquet", "etcd-robustness")
_WEIGHTS = (42, 33, 7, 9, 5, 4)
#: Formats of whole operations, which are drawn as they are.
_WHOLE = ("parquet", "etcd-robustness")
_STEPS_MAX = 18
_STEPS_LARGE = 60_000
#: Fields that a plain file of ours has on every line.
_OWN_FIELDS = ("index", "time", "process", "type", "f", "key", "value", "node", "error", "final")
_NAMES = ('"client-7"', '"client-8"', '"a b"', '"é"', '"nemesis-1"', '"Nemesis"', '"client 7"')


class DrawnFile(NamedTuple):
    """One file, and how it is to be read."""

    #: Not packed.
    content: bytes
    format: str
    model: str
    packed: bool = False
    #: Whether the reader is told the format.
    named: bool = True
    skip_broken: bool = False
    #: Bytes that the readers of columns take at a time, small ones to meet every border.
    block_bytes: int = 1 << 20
    #: Whether it is large enough for columns by itself.
    large: bool = False

    @property
    def stored(self) -> bytes:
        """The bytes written to the disk."""
        return gzip.compress(self.content, 1, mtime=0) if self.packed else self.content


def drawn(seed: int, number: int, *, large: bool = False) -> DrawnFile:
    """One file.

    Args:
        seed: of the whole fuzz.
        number: of the file.
        large: whether it is to be large enough for columns by itself; it is then plain.
    """
    random = Random(f"{seed} {number}")
    format_ = random.choices(FORMATS, _WEIGHTS)[0]
    if large:
        format_ = random.choice(("jsonl", "edn"))
    model = _model(random, format_)
    plain = large or random.random() < 0.5
    writer = _Writer(random, format_, plain=plain)
    events = Story(random, _story(random, format_, model, plain=plain, large=large)).events()
    if format_ in _WHOLE:
        content = (table_of if format_ == "parquet" else etcd_file)(random, events)
    else:
        content = writer.content(events)
    if format_ != "parquet" and not large and random.random() < 0.4:
        content = damaged(random, content, keep_meaning=format_ == "etcd-robustness")
    named = format_ in ("kv", "jepsen-log") or random.random() < 0.6
    return DrawnFile(
        content,
        format_,
        model,
        packed=format_ != "parquet" and random.random() < 0.1,
        named=named,
        skip_broken=random.random() < 0.1,
        block_bytes=random.choice((1, 40, 200, 1 << 20)),
        large=large,
    )


def _model(random: Random, format_: str) -> str:
    if format_ in ("kv", "etcd-robustness"):
        return "kv" if format_ == "kv" else "cas-register"
    return random.choices(("cas-register", "set"), (85, 15))[0]


def _story(random: Random, format_: str, model: str, *, plain: bool, large: bool) -> StoryOptions:
    is_json = format_ in ("jsonl", *_WHOLE)
    families = {"jsonl": spellings.JSON, "parquet": spellings.JSON, "kv": spellings.TEXTS}
    families["etcd-robustness"] = spellings.LONG_TEXTS
    values = random.choice(families.get(format_, spellings.EDN))
    keys: spellings.Family = []
    if format_ == "kv" or (format_ != "jepsen-log" and random.random() < 0.5):
        keys = [
            key
            for key in random.choice(spellings.JSON if is_json else spellings.EDN)
            if key[0] not in ("null", "nil")
        ]
        if format_ == "etcd-robustness" or (plain and random.random() < 0.7):
            keys = [['"a"'], ['"b"'], ['"1"'], ['"é"']]
        keys = random.sample(keys, min(len(keys), random.randint(1, 5)))
    values = random.sample(values, min(len(values), random.randint(2, 4)))
    if large:
        # Many keys of few operations each, so that the plain judgement ends.
        values, keys = [[str(n)] for n in range(5)], [[str(n)] for n in range(_STEPS_LARGE // 8)]
    return StoryOptions(
        model=model,
        values=values,
        keys=keys,
        processes=_processes(random, format_, plain=plain),
        steps=_STEPS_LARGE if large else random.randint(1, _STEPS_MAX),
        nothing="null" if is_json else "nil",
        refusals_fail=format_ in ("edn", "jepsen-log"),
        functions=("read", "write") if format_ == "etcd-robustness" else None,
    )


def _processes(random: Random, format_: str, *, plain: bool) -> Sequence[str]:
    count = random.randint(1, 4)
    whole = [str(n) for n in range(count)]
    if format_ in _WHOLE or random.random() < (0.9 if plain else 0.6):
        return whole
    if format_ == "jepsen-log":
        return random.sample([":client-9", "client-8", ":n1", "12", "é"], count)
    others = ["-1", "123456789012", *_NAMES, '"٣"', '"03"']
    if format_ in ("edn", "kv"):
        others += [":client-9", ":nemesis2", ":c/d", "5N"]
    return random.sample(others, count)


class _Writer:
    """Writes stories as lines.

    Args:
        random: where every liberty is drawn from.
        format_: the format.
        plain: whether to take none: every line is like the first.
    """

    def __init__(self, random: Random, format_: str, *, plain: bool) -> None:
        self._random = random
        self._format = format_
        self._plain = plain
        self._keyed = format_ == "edn" and random.random() < 0.3
        self._tag = "#jepsen.history.Op" if random.random() < 0.3 else ""
        self._ending = "\r\n" if not plain and random.random() < 0.15 else "\n"
        self._order = random.random()

    def content(self, events: Sequence[DrawnEvent]) -> bytes:
        """Return the whole file."""
        random = self._random
        times = self._times(len(events))
        gap = random.choice((1, 1, 1, 3))
        has_index = self._plain or random.random() < 0.4
        write = {"jsonl": self._json, "jepsen-log": self._log}.get(self._format, self._edn)
        lines: list[str] = []
        for place, (event, time) in enumerate(zip(events, times, strict=True)):
            lines += self._between(lines)
            lines.append(write(event, str(place * gap) if has_index else None, time))
        if self._format == "edn" and not self._plain and lines and random.random() < 0.15:
            lines = _in_vector(random, lines)
        text = self._ending.join([*lines, ""]) if lines else ""
        if not self._plain and random.random() < 0.1:
            text = text.rstrip("\r\n")
        return text.encode()

    def _times(self, count: int) -> list[str | None]:
        """Return the time of each event; None where the file has none."""
        if self._format in ("kv", "jepsen-log"):
            return [None] * count
        styles = list(_TIME_STYLES)
        plain = ["ticks", "nanoseconds"] if self._format == "jsonl" else ["ticks", "none"]
        name = self._random.choice(plain if self._plain else styles)
        if name == "none":
            return [None] * count
        ticks: list[int] = []
        for _ in range(count):
            ticks.append((ticks[-1] if ticks else 0) + self._random.choice((0, 1, 1, 2)))
        if ticks and self._random.random() < (0.05 if self._plain else 0.3):
            # A clock that goes back, for one process or between two.
            place = self._random.randrange(count)
            ticks[place] -= self._random.randint(1, 3)
        return [_TIME_STYLES[name](tick, self._random) for tick in ticks]

    def _between(self, lines: Sequence[str]) -> list[str]:
        """Lines without an operation."""
        if self._plain and self._format != "edn":
            return []
        share = 0.02 if self._plain else 0.08
        if self._random.random() > share or (self._plain and not lines):
            return []
        if self._plain:
            return ["{:process :nemesis, :type :info, :f :start, :value nil}"]
        return [self._random.choice(_BETWEEN.get(self._format, _BETWEEN["edn"]))]

    def _json(self, event: DrawnEvent, index: str | None, time: str | None) -> str:
        fields = {
            "index": index,
            "time": time,
            "process": event.process,
            "type": f'"{event.type}"',
            "f": f'"{event.f}"',
            "key": event.key,
            "value": event.value,
            "node": '"n1"' if self._order < 0.2 else None,
            "error": None if event.error is None else f'"{event.error}"',
            "final": "true" if self._order < 0.05 else None,
        }
        random = self._random
        names = [name for name in _OWN_FIELDS if fields[name] is not None]
        if self._plain:
            return "{" + ",".join(f'"{name}":{fields[name]}' for name in names) + "}"
        random.shuffle(names)
        if random.random() < 0.1:
            names = [name for name in names if name != "value" or fields[name] != "null"]
        written = [self._spaced(f'"{name}"', ":", fields[name] or "") for name in names]
        if random.random() < 0.08:
            written.insert(0, random.choice(_MORE_JSON))
        return "{" + f"{random.choice(('', ' '))},{random.choice(('', ' '))}".join(written) + "}"

    def _edn(self, event: DrawnEvent, index: str | None, time: str | None) -> str:
        value, key = event.value, event.key
        if self._keyed and key is not None:
            value, key = f"[{key} {value}]", None
        fields = {
            "index": index,
            "process": event.process,
            "type": f":{event.type}",
            "f": f":{event.f}",
            "key": key,
            "value": value,
            "time": time,
            "error": None if event.error is None else f":{event.error}",
        }
        names = [name for name, field in fields.items() if field is not None]
        if self._plain:
            written = [f":{name} {fields[name]}" for name in names]
            return f"{self._tag}{{{', '.join(written)}}}"
        random = self._random
        random.shuffle(names)
        written = [f":{name}{random.choice((' ', '  ', ','))}{fields[name]}" for name in names]
        if random.random() < 0.1:
            written.insert(random.randrange(len(written) + 1), random.choice(_MORE_EDN))
        line = f"{self._tag}{{{random.choice((' ', ', ', ',')).join(written)}}}"
        return line + (
            random.choice((" ; a remark", " #_ 3", "  ")) if random.random() < 0.1 else ""
        )

    def _log(self, event: DrawnEvent, _index: str | None, _time: str | None) -> str:
        begin = self._random.choice(
            ("INFO  jepsen.util - ", "2020-01-01 INFO [worker 1] jepsen.util: ", "")
        )
        error = "" if event.error is None else f"\t:{event.error}"
        value = event.value
        if event.error is not None and self._random.random() < 0.2:
            value, error = f":{event.error}", ""
        return f"{begin}{event.process}\t:{event.type}\t:{event.f}\t{value}{error}"

    def _spaced(self, name: str, sign: str, value: str) -> str:
        space = self._random.choice(("", "", " ", "\t"))
        return f"{name}{sign}{space}{value}"


def _in_vector(random: Random, lines: list[str]) -> list[str]:
    """Return a history kept as one vector."""
    if random.random() < 0.5 or ";" in lines[-1] or not lines[-1].endswith("}"):
        return ["[", *lines, "]"]
    lines = ["[" + lines[0], *lines[1:]]
    return [*lines[:-1], lines[-1] + "]"]


_TIME_STYLES: dict[str, Callable[[int, Random], str]] = {
    "none": lambda _tick, _random: "",
    "ticks": lambda tick, _random: str(tick),
    "nanoseconds": lambda tick, _random: str(1_700_000_000_000_000_000 + tick),
    "tenths": lambda tick, _random: f"{tick // 10}.{tick % 10}",
    "within a second": lambda tick, _random: f"0.{tick + 100:06}",
    "seconds since 1970": lambda tick, _random: f"1700000000.{tick + 123456000:09}",
    "two spellings": lambda tick, random: random.choice((str(tick), f"{tick}.0", f"{tick}.5")),
    "exponents": lambda tick, _random: f"{tick}.5e-3",
    "beyond 64 bits": lambda tick, _random: str(10**25 + tick),
    "below zero": lambda tick, _random: str(tick - 1000),
}
_BETWEEN = {
    "jsonl": (
        "",
        "  ",
        '{"process":"nemesis","type":"info","f":"start","value":null}',
        '{"process":":nemesis","type":"info","f":"kill","value":{"a":[1]}}',
    ),
    "edn": (
        "",
        "; a remark",
        "#_{:process 0, :type :invoke, :f :write, :value 1}",
        "{:process :nemesis, :type :info, :f :start, :value {:a [1 #{2}]}}",
        '{:process "nemesis", :type :info, :f :start, :value nil}',
        "#_ 1 #_ #_ 2 3",
        ",",
    ),
    "jepsen-log": (
        "INFO  jepsen.core - all is well",
        "INFO  jepsen.util - :nemesis\t:info\t:start\tnil",
        "",
        'WARN  x - {:a 1, "b',
    ),
}
_MORE_JSON = ('"more":{"a":[1,"}"]}', '"type":"fail"', '"Process":9', '"index ":1')
_MORE_EDN = (
    ':more {:a [1 "}"]}',
    '"type" :fail',
    "#_ :type #_ :fail",
    "type :fail",
    ':node "n1"',
    ":jepsen/type :fail",
    "#_(:process 9)",
)
