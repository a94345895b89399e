"""The histories that checkers are measured on: the table of issue 7, item 8.

Everything follows from the options and the seed; a case may be asked for fewer seeds.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from bench.histories import HistoryOptions, generate, with_stale_read
from splitbrain.history.importers import load
from splitbrain.history.pairing import pair
from splitbrain.history.records import PairedOperation

#: Folder of recorded histories with their verdicts.
CORPUS: Final = Path(
    os.environ.get("SPLITBRAIN_CORPUS") or Path(__file__).parents[2] / "shared" / "data"
)
_CAS: Final = "cas-register"
_CORPUS_MODELS: Final = {"etcd-register": "cas-register", "kv-append (partition by key)": "kv"}


class Case(msgspec.Struct, frozen=True):
    """One row of the table."""

    name: str
    #: Subject of the row.
    title: str
    aim: str
    options: HistoryOptions
    #: CPU seconds for one history.
    limit_s: float = 60.0
    seeds: int = 1
    #: Model in the columns, and the one that we judge with where it is another.
    model: str = "cas-register"
    own_model: str | None = None
    #: A late read answers a value that was overwritten before it began.
    stale: bool = False
    #: Judged from operations by the whole check, since columns are for built-in models.
    operations: bool = False
    #: Also measured from JSON lines to the verdict.
    end_to_end: bool = False
    #: Not part of a pass without ``--all``: takes minutes.
    long: bool = False
    #: Checks per history, the fastest of which counts.
    repeats: int = 1

    @property
    def expected(self) -> str | None:
        """The verdict, where it is known beforehand."""
        changed = self.options.mix == "queue" and self.options.violation
        if self.name in ("corpus", "sampled") or changed:
            return None
        return "invalid" if self.stale or self.options.violation else "valid"


_O = HistoryOptions
CASES: Final[tuple[Case, ...]] = (
    Case("corpus", "recorded histories", "no slower in sum", _O(0, 0), repeats=5),
    Case(
        "cas-10-10k",
        "cas, 5 values, 10 clients, 10,000 ops",
        "5x faster",
        _O(10_000, 10),
        seeds=5,
        end_to_end=True,
        repeats=3,
    ),
    Case(
        "check-10-10k",
        "the same, the whole check from operations",
        "",
        _O(10_000, 10),
        operations=True,
        repeats=3,
    ),
    Case(
        "own-10-10k",
        "the same, a user's own model",
        "at most 10x the row above",
        _O(10_000, 10),
        own_model="own-register",
        operations=True,
        repeats=3,
    ),
    Case(
        "cas-10-100k",
        "the same, 100,000 ops",
        "0.4 s, 300 MiB",
        _O(100_000, 10),
        end_to_end=True,
        long=True,
    ),
    Case("cas-20-1k", "20 clients, 1,000 ops", "95 % in 1 s", _O(1_000, 20), seeds=20),
    Case(
        "cas-20-10k",
        "20 clients, 10,000 ops",
        "80 % in 20 s",
        _O(10_000, 20),
        seeds=20,
        long=True,
    ),
    Case("cas-50-1k", "50 clients, 1,000 ops", "80 % in 60 s", _O(1_000, 50), seeds=20),
    Case(
        "cas-50-1k-wide",
        "50 clients, 1,000 ops, 100 values",
        "80 % in 60 s",
        _O(1_000, 50, values=100),
        seeds=20,
    ),
    Case(
        "cas-50-1k-wide-stale",
        "the same, a stale read",
        "80 % in 60 s",
        _O(1_000, 50, values=100),
        seeds=20,
        stale=True,
    ),
    Case(
        "cas-50-1k-foreign",
        "50 clients, 1,000 ops, a value never written",
        "80 % in 60 s",
        _O(1_000, 50, violation=True),
        seeds=20,
    ),
    Case(
        "cas-20-1k-stale",
        "20 clients, 1,000 ops, a stale read",
        "90 % in 60 s",
        _O(1_000, 20),
        seeds=20,
        stale=True,
    ),
    Case(
        "cas-30-4k-stale",
        "30 clients, 4,000 ops, a stale read",
        "90 % in 60 s",
        _O(4_000, 30),
        seeds=20,
        stale=True,
    ),
    Case(
        "cas-60-20k",
        "60 clients, 20,000 ops, 1,000 values",
        "decided",
        _O(20_000, 60, values=1_000),
        seeds=5,
        long=True,
    ),
    Case(
        "sampled",
        "cas, drawn: 2 to 60 clients, 2 to 2,000 values, 100 to 100,000 ops, 0 to 30 % info",
        "98 % in 10 s",
        _O(0, 0),
        limit_s=10,
        seeds=200,
        long=True,
    ),
    Case(
        "append-50",
        "gets and appends of text, 50 clients, 10 keys, 1,700 ops",
        "level",
        _O(1_700, 50, values=0, keys=10, mix="append"),
        seeds=20,
        model="kv",
    ),
    Case(
        "append-50-stale",
        "the same, an answer without the end",
        "level",
        _O(1_700, 50, values=0, keys=10, mix="append"),
        seeds=20,
        model="kv",
        stale=True,
    ),
    Case(
        "text-50",
        "also puts, 10 % info",
        "level",
        _O(1_700, 50, values=0, keys=10, mix="text", info=0.1),
        seeds=20,
        model="kv",
    ),
    Case(
        "queue-10-1k",
        "FIFO queue, 5 elements, 10 clients, 1,000 ops",
        "20 of 20",
        _O(1_000, 10, values=5, mix="queue"),
        seeds=20,
        model="fifo-queue",
    ),
    Case(
        "queue-10-1k-twice",
        "the same, an answer changed",
        "20 of 20",
        _O(1_000, 10, values=5, mix="queue", violation=True),
        seeds=20,
        model="fifo-queue",
    ),
    Case(
        "queue-10-1k-info",
        "FIFO queue, elements once, 10 % info, 10 clients, 1,000 ops",
        "20 of 20",
        _O(1_000, 10, values=0, mix="queue", info=0.1),
        seeds=20,
        model="fifo-queue",
    ),
    Case(
        "queue-1m",
        "FIFO queue, elements once, 10 clients, 1,000,000 ops",
        "2 s",
        _O(1_000_000, 10, values=0, mix="queue"),
        model="fifo-queue",
        long=True,
    ),
    Case(
        "info-10-1k",
        "10 % info, 10 clients, 1,000 ops",
        "90 % in 60 s",
        _O(1_000, 10, info=0.1),
        seeds=20,
    ),
    Case(
        "info-10-1k-foreign",
        "the same, a value never written",
        "90 % in 60 s",
        _O(1_000, 10, info=0.1, violation=True),
        seeds=20,
    ),
    Case(
        "unique-1m",
        "register, unique values, 10 clients, 1,000,000 ops",
        "0.05 s numba, 0.12 s numpy",
        _O(1_000_000, 10, values=0, mix="register"),
        own_model="register",
        end_to_end=True,
        long=True,
        repeats=3,
    ),
    Case(
        "unique-100k",
        "register, unique values, 10 clients, 100,000 ops",
        "",
        _O(100_000, 10, values=0, mix="register"),
        own_model="register",
        repeats=3,
    ),
    Case(
        "keys-1m",
        "1,000 keys, 10 clients, 1,000,000 ops",
        "faster on one core",
        _O(1_000_000, 10, keys=1_000),
        end_to_end=True,
        long=True,
    ),
    Case(
        "keys-100k",
        "100 keys, 10 clients, 100,000 ops",
        "",
        _O(100_000, 10, keys=100),
        end_to_end=True,
    ),
)


def histories(case: Case, seeds: int) -> Iterator[tuple[str, str, list[PairedOperation]]]:
    """Name, model and operations of each history of a case."""
    if case.name == "corpus":
        yield from _corpus()
        return
    if case.name == "sampled":
        yield from (_sampled(number) for number in range(min(seeds, case.seeds)))
        return
    make: Callable[[HistoryOptions], list[PairedOperation]] = generate
    for seed in range(min(seeds, case.seeds)):
        operations = make(msgspec.structs.replace(case.options, seed=seed))
        if case.stale:
            try:
                operations = with_stale_read(Random(f"stale {case.name} {seed}"), operations)
            except ValueError:
                # With many clients something that sets the value is nearly always open.
                continue
        yield f"{case.name} seed {seed}", case.model, operations


def _sampled(number: int) -> tuple[str, str, list[PairedOperation]]:
    """A shape drawn by the number; many of them with something wrong."""
    random = Random(f"sampled {number}")

    def between(least: int, most: int) -> int:
        return round(least * (most / least) ** random.random())

    options = HistoryOptions(
        between(100, 100_000),
        between(2, 60),
        values=between(2, 2_000),
        info=random.choice((0.0, random.uniform(0, 0.3))),
        violation=random.random() < 0.25,
        seed=number,
    )
    operations, is_wrong = generate(options), options.violation
    if not is_wrong and options.info == 0 and random.random() < 0.5:
        with suppress(ValueError):
            operations, is_wrong = with_stale_read(random, operations), True
    shape = f"{options.operations} {options.clients} {options.values} {options.info:.2f}"
    return f"sampled {number}: {shape} {'invalid' if is_wrong else 'valid'}", _CAS, operations


def _corpus() -> Iterator[tuple[str, str, list[PairedOperation]]]:
    for verdicts in sorted(CORPUS.glob("*/verdicts.json")):
        for name, verdict in sorted(json.loads(verdicts.read_text()).items()):
            operations = pair(load(verdicts.parent / name).events)
            yield name, _CORPUS_MODELS[verdict["model"]], operations


def corpus_verdicts() -> dict[str, str]:
    """Return the verdict of each recorded history."""
    return {
        name: "valid" if verdict["linearizable"] else "invalid"
        for verdicts in sorted(CORPUS.glob("*/verdicts.json"))
        for name, verdict in json.loads(verdicts.read_text()).items()
    }
