"""Checker of transactions: isolation anomalies of a history, and the levels that they rule out.

- `versions` are inferred from what was read (``list_versions``, ``register_versions``), edges
  between transactions from them, and the orders of processes and of real time added (``orders``);
- what cycles can lie in is looked through for a shortest one of each kind (``cycles``);
- a verdict is about one level (``levels``): anomalies that it does not rule out are observations.

An ``info`` transaction counts once something that it wrote was read; until then it may not have
happened. A ``fail`` certainly did not. Durability is a rule of its own: an acknowledged write that
final reads which began after it lack, and none shows, is lost, whatever the level.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from splitbrain.checker.findings import Findings, counted
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.cycles import Cycle, cycles_in
from splitbrain.checker.transactions.dependencies import RW, WR, Anomaly, Dependencies
from splitbrain.checker.transactions.durability import lost_writes
from splitbrain.checker.transactions.graph import Edge, core_of
from splitbrain.checker.transactions.levels import (
    LEVELS,
    STRICT_SERIALIZABLE,
    Kind,
    Level,
    in_words,
)
from splitbrain.checker.transactions.list_versions import list_dependencies
from splitbrain.checker.transactions.openness import why_open
from splitbrain.checker.transactions.orders import Orders
from splitbrain.checker.transactions.register_versions import register_dependencies
from splitbrain.checker.transactions.table_builder import table_of
from splitbrain.checker.transactions.telling import Teller, shown_with
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.history.identity import key_text
from splitbrain.history.records import PairedOperation


def check(
    operations: Iterable[PairedOperation],
    budget: Budget,
    kind: Kind,
    level: str = STRICT_SERIALIZABLE,
) -> CheckResult:
    """Judge the transactions of a history, of one kind, by a level of ``LEVELS``."""
    judgement = _Judgement(operations, budget, kind, LEVELS[level])
    result = judgement.findings.conclude(judgement.judge)
    return msgspec.structs.replace(result, reason=f"{result.reason} {judgement.lattice}".strip())


class _Judgement:
    def __init__(
        self, operations: Iterable[PairedOperation], budget: Budget, kind: Kind, level: Level
    ) -> None:
        self._operations = [operation for operation in operations if operation.f == "txn"]
        self._kind: Kind = kind
        self._level = level
        name = f"transactions:{kind}"
        if level.name != STRICT_SERIALIZABLE:
            name = f"{name}:{level.name}"
        forbidden = [
            anomaly
            for anomaly in levels.ANOMALIES
            if anomaly == levels.LOST or level.forbids(anomaly)
        ]
        harmless = [anomaly for anomaly in levels.ANOMALIES if anomaly not in forbidden]
        self.findings = Findings(name, budget, forbidden, harmless)
        #: Sentence on the levels that are left; empty until all was looked at.
        self.lattice = ""

    def judge(self) -> tuple[dict[str, Any], str, str | None]:
        """Note all anomalies; return figures, the reason for valid, and that for unknown."""
        poll = self.findings.poll
        table = table_of(self._operations, self._kind, poll)
        infer = list_dependencies if self._kind == "list-append" else register_dependencies
        found = infer(table, poll)
        for anomaly in [*lost_writes(table, self._kind), *found.anomalies]:
            self._note(anomaly)
        edges = self._core(found)
        self._note_cycles(found, edges)
        anomalies = [name for name, count in self.findings.counts.items() if count]
        self.lattice = lattice_sentence(anomalies)
        reads = len(table.reads)
        figures = {
            "transactions": len(self._operations),
            "keys": len(table.keys),
            "reads": reads,
            "level": self._level.name,
            "ruled-out": sorted(levels.ruled_out(anomalies)),
        }
        undecided = why_open(found, self._kind, self._level, anomalies, edges, poll)
        if not reads:
            undecided = "Nothing was ever read, so there is nothing to judge."
        what = counted(len(self._operations), "transaction")
        valid = f"{what}: no anomaly that {in_words(self._level.name)} rules out."
        return figures, valid, undecided

    def _core(self, found: Dependencies) -> list[Edge]:
        orders = Orders(found.table, found.happened, found.edges)
        # A serial order of registers is looked for along the edges.
        if orders.prove_no_cycle and not (found.unordered and self._kind == "rw-register"):
            return []
        places = orders.add()
        source, target, kind, proof = found.edges.columns()
        kept = core_of(places, source, target)
        columns = np.stack([column[kept] for column in (source, target, kind, proof)], axis=1)
        return [Edge(*row) for row in columns.tolist()]

    def _note(self, anomaly: Anomaly) -> None:
        operations = [
            shown_with(self._operations[txn], [anomaly.key]) for txn in dict.fromkeys(anomaly.txns)
        ]
        sentence = f"{anomaly.sentence[0].upper()}{anomaly.sentence[1:]}"
        details = {"key": key_text(anomaly.key)}
        self.findings.note(anomaly.name, operations, lambda: sentence, details=details)

    def _note_cycles(self, found: Dependencies, edges: Sequence[Edge]) -> None:
        teller = Teller(found.table, are_lists=self._kind == "list-append")
        for cycle in cycles_in(edges, len(self._operations), self.findings.poll):
            names = [cycle.name]
            if is_long_fork(cycle):
                names.insert(0, levels.LONG_FORK)
            keys = [found.table.keys[key] for key in teller.keys_of(cycle)]
            # A cycle may have fifty thousand.
            named = frozenset(keys)
            operations = [teller.shown(edge.source, named) for edge in cycle.edges]
            details = {"key": key_text(keys[0]), "edges": teller.edges(cycle)}
            for name in names:
                self.findings.note(
                    name, operations, lambda told=cycle: teller.cycle(told), details=details
                )


def is_long_fork(cycle: Cycle) -> bool:
    """Return whether two readers saw two writes in different orders, by a plain cycle."""
    kinds = [edge.kind for edge in cycle.edges]
    return cycle.name == levels.G_NONADJACENT and kinds in ([RW, WR, RW, WR], [WR, RW, WR, RW])


def lattice_sentence(anomalies: Sequence[str]) -> str:
    """Return the sentence on the levels that these anomalies rule out, and those that are left."""
    ruled_out = levels.ruled_out(anomalies)
    left = [name for name in LEVELS if name not in ruled_out]
    if not ruled_out:
        return "No level is ruled out."
    not_these = " or ".join(map(in_words, levels.weakest(ruled_out)))
    if not left:
        return f"It is not even {not_these}."
    still = " or ".join(map(in_words, levels.strongest(left)))
    causes = [
        anomaly
        for anomaly in anomalies
        if any(LEVELS[name].forbids(anomaly) for name in levels.weakest(ruled_out))
    ]
    return f"Not {not_these} ({', '.join(causes)}); it may still be {still}."
