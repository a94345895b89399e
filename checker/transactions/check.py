"""Checker of transactions: isolation anomalies of a history, and the levels that they rule out.

- `versions` are inferred from what was read (``list_versions``, ``register_versions``), edges
  between transactions from them, and the orders of processes and of real time added (``orders``);
- what cycles can lie in is looked through for a shortest one of each kind (``cycles``);
- what no commit order allows is looked for (``commit_orders``), and where an order of writes stays
  open, that order (``openness``);
- a verdict is about one level (``levels``): anomalies that it does not rule out are observations.

An ``info`` transaction counts once something that it wrote was read; until then it may not have
happened. A ``fail`` certainly did not. Durability is a rule of its own: an acknowledged write that
final reads which began after it lack, and none shows, is lost, whatever the level.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from splitbrain.checker.findings import Findings
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.commit_orders import (
    STAGES,
    CommitOrders,
    Sight,
    sight_of,
)
from splitbrain.checker.transactions.cycle_graph import drawn
from splitbrain.checker.transactions.cycles import cycles_in
from splitbrain.checker.transactions.dependencies import (
    CAUSAL_SIGHT,
    Anomaly,
    Dependencies,
)
from splitbrain.checker.transactions.durability import lost_writes
from splitbrain.checker.transactions.graph import Edge, core_of
from splitbrain.checker.transactions.levels import (
    COMMIT_ORDERS,
    LEVELS,
    STRICT_SERIALIZABLE,
    Kind,
    Level,
    in_words,
)
from splitbrain.checker.transactions.list_versions import list_dependencies
from splitbrain.checker.transactions.openness import decide_open, is_open
from splitbrain.checker.transactions.orders import Orders
from splitbrain.checker.transactions.register_versions import register_dependencies
from splitbrain.checker.transactions.serial_order import explains_reads
from splitbrain.checker.transactions.sight_telling import SightTeller
from splitbrain.checker.transactions.table_builder import table_of
from splitbrain.checker.transactions.telling import Teller, names_of, shown_with
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.words import counted
from splitbrain.history.columns import ColumnOperations
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
    if kind == "rows":
        judgement = _OfRows(operations, budget, kind, LEVELS[level])
    result = judgement.findings.conclude(judgement.judge)
    return msgspec.structs.replace(result, reason=f"{result.reason} {judgement.lattice}".strip())


class _Judgement:
    def __init__(
        self, operations: Iterable[PairedOperation], budget: Budget, kind: Kind, level: Level
    ) -> None:
        self._operations: Sequence[PairedOperation] = (
            operations
            # Of columns that are read as transactions, all are.
            if isinstance(operations, ColumnOperations)
            else [operation for operation in operations if operation.f == "txn"]
        )
        self._kind: Kind = kind
        self._level = level
        name = f"transactions:{kind}"
        if level.name != STRICT_SERIALIZABLE:
            name = f"{name}:{level.name}"
        every = levels.anomalies_of(kind)
        forbidden = [
            anomaly for anomaly in every if anomaly == levels.LOST or level.forbids(anomaly)
        ]
        harmless = [anomaly for anomaly in every if anomaly not in forbidden]
        self.findings = Findings(name, budget, forbidden, harmless)
        #: Whether the places of transactions in time are an order that explains every read.
        self._is_serial = False
        #: Levels that were looked at in part only, so that nothing is said of them.
        self._not_asked: frozenset[str] = frozenset()
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
        undecided = self._decide(found, edges)
        anomalies = self._anomalies()
        self.lattice = lattice_sentence(anomalies, self._not_asked)
        reads = len(table.reads)
        figures = {
            "transactions": len(self._operations),
            "keys": len(table.keys),
            "reads": reads,
            "level": self._level.name,
            "ruled-out": sorted(levels.ruled_out(anomalies)),
        }
        if not reads:
            undecided = "Nothing was ever read, so there is nothing to judge."
        what = counted(len(self._operations), "transaction")
        valid = f"{what}: no anomaly that {in_words(self._level.name)} rules out."
        return figures, valid, undecided

    def _decide(self, found: Dependencies, edges: Sequence[Edge]) -> str | None:
        """Look at what single cycles do not show; return why the level stays open, if it does."""
        level, poll = self._level, self.findings.poll
        if self._is_serial:
            return None
        if level.base == "read-uncommitted" and levels.INCOMPATIBLE_ORDER in self._anomalies():
            return (
                "Reads contradict each other, so nothing is known of the order of those versions."
            )
        # Whoever is looked for, an anomaly of another level may be one of these, too.
        may_be_open = not self._is_wrong() and is_open(found, self._kind, level, edges, poll)
        if level.base in COMMIT_ORDERS or self._anomalies() or may_be_open:
            self._note_commit_orders(found)
        if not may_be_open or self._is_wrong():
            return None
        answer = decide_open(found, self._kind, level, poll)
        if isinstance(answer, Anomaly):
            self._note(answer)
            return None
        return answer

    def _is_wrong(self) -> bool:
        return any(map(self._level.forbids, self._anomalies()))

    def _anomalies(self) -> list[str]:
        return [name for name, count in self.findings.counts.items() if count]

    def _core(self, found: Dependencies) -> list[Edge]:
        orders = Orders(found.table, found.happened, found.edges)
        if orders.prove_no_cycle and not self._anomalies():
            is_open = found.unordered and self._kind == "rw-register"
            self._is_serial = not is_open or explains_reads(found, orders.places)
        if self._is_serial:
            return []
        places = orders.add()
        source, target, kind, proof = found.edges.columns()
        kept = core_of(source, target, places)
        columns = np.stack([column[kept] for column in (source, target, kind, proof)], axis=1)
        return [Edge(*row) for row in columns.tolist()]

    def _note(self, anomaly: Anomaly, keys: Sequence[Any] = ()) -> None:
        operations = [
            shown_with(self._operations[txn], keys or [anomaly.key])
            for txn in dict.fromkeys(anomaly.txns)
        ]
        sentence = f"{anomaly.sentence[0].upper()}{anomaly.sentence[1:]}"
        details = {"key": key_text(anomaly.key)}
        self.findings.note(anomaly.name, operations, lambda: sentence, details=details)

    def _note_cycles(self, found: Dependencies, edges: Sequence[Edge]) -> None:
        teller = Teller(found.table, are_lists=self._kind == "list-append")
        for cycle in cycles_in(edges, len(self._operations), self.findings.poll):
            names = names_of(cycle)
            if self.findings.only_counts(*names):
                continue
            keys = [found.table.keys[key] for key in teller.keys_of(cycle)]
            # A cycle may have fifty thousand.
            named = frozenset(keys)
            operations = [teller.shown(edge.source, named) for edge in cycle.edges]
            details = {
                "key": key_text(keys[0]),
                "edges": teller.edges(cycle),
                **drawn(cycle, self._operations, operations),
            }
            for name in names:
                self.findings.note(
                    name, operations, lambda told=cycle: teller.cycle(told), details=details
                )

    def _note_commit_orders(self, found: Dependencies) -> None:
        """Note what no commit order allows."""
        orders = CommitOrders(found, self.findings.poll)
        sights = SightTeller(found, orders)
        teller = Teller(
            found.table,
            are_lists=self._kind == "list-append",
            sight=lambda edge: sights.sentence(sight_of(edge)),
        )
        kinds = list(STAGES)
        if self._level.base != "causal" and orders.is_past_costly:
            kinds.remove(CAUSAL_SIGHT)
            self._not_asked = frozenset({"causal"})
        for violation in orders.violations(kinds):
            name = STAGES[violation.kind] if isinstance(violation, Sight) else violation.name
            if self.findings.only_counts(name):
                continue
            if isinstance(violation, Sight):
                txns, keys = sights.involved(violation)
                told = f"{sights.sentence(violation)}."
                names = [found.table.keys[key] for key in keys]
                self._note(Anomaly(name, tuple(txns), names[0], told), names)
                continue
            txns = [edge.source for edge in violation.edges]
            keys = teller.keys_of(violation)
            for edge in violation.edges:
                if edge.kind in STAGES:
                    more, touched = sights.involved(sight_of(edge))
                    txns += more
                    keys += touched
            names = [found.table.keys[key] for key in keys]
            operations = [teller.shown(txn, names) for txn in dict.fromkeys(txns)]
            details = {
                "key": key_text(names[0]),
                "edges": teller.edges(violation),
                **drawn(violation, self._operations, operations),
            }
            self.findings.note(
                name,
                operations,
                lambda told=violation: teller.cycle(told),
                details=details,
            )


class _OfRows(_Judgement):
    def judge(self) -> tuple[dict[str, Any], str, str | None]:
        """Note all anomalies, see ``row_check``."""
        # Few histories are of rows.
        from splitbrain.checker.transactions.row_check import RowJudgement

        of_rows = RowJudgement(self._operations, self.findings, self._level)
        judged = of_rows.judge()
        self.lattice = lattice_sentence(of_rows.anomalies(), levels.COMMIT_ORDERS)
        return judged


def lattice_sentence(anomalies: Sequence[str], not_asked: Collection[str] = ()) -> str:
    """Return the sentence on the levels that these anomalies rule out, and those that are left."""
    ruled_out = levels.ruled_out(anomalies)
    left = [name for name in LEVELS if name not in ruled_out and name not in not_asked]
    ruled_out = ruled_out.difference(not_asked)
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
