"""Checker of transactions on rows: the anomalies of predicate reads, and levels that they rule out.

``row_versions`` says what ranges show and which of it is open, ``row_search`` decides about that;
the rest is as in ``check``. Levels of commit orders are not asked about: they are defined for reads
of single keys.
"""

from collections.abc import Sequence
from typing import Any, Final

from splitbrain.checker.findings import Findings
from splitbrain.checker.transactions import levels
from splitbrain.checker.transactions.cycle_graph import drawn
from splitbrain.checker.transactions.cycles import cycles_in
from splitbrain.checker.transactions.dependencies import PROCESS, REALTIME, Anomaly
from splitbrain.checker.transactions.levels import Level, in_words
from splitbrain.checker.transactions.row_anomalies import row_anomalies
from splitbrain.checker.transactions.row_operations import row_table_of
from splitbrain.checker.transactions.row_search import RowSearch
from splitbrain.checker.transactions.row_telling import RowTeller
from splitbrain.checker.transactions.row_versions import RowVersions, row_versions
from splitbrain.contracts.words import counted
from splitbrain.history.identity import key_text
from splitbrain.history.records import PairedOperation

_NAMES: Final = {
    "serializable": levels.NO_SERIAL_ROWS,
    "snapshot-isolation": levels.NO_SNAPSHOT_ROWS,
    "parallel-snapshot-isolation": levels.NO_PARALLEL_ROWS,
}
#: Cycles that are told of a search without result.
_TOLD_MAX: Final = 4


class RowJudgement:
    """Judgement of one history by one level."""

    def __init__(
        self, operations: Sequence[PairedOperation], findings: Findings, level: Level
    ) -> None:
        self._operations, self.findings, self._level = operations, findings, level

    def judge(self) -> tuple[dict[str, Any], str, str | None]:
        """Note all anomalies; return figures, the reason for valid, and that for unknown."""
        poll = self.findings.poll
        table = row_table_of(self._operations, poll)
        self._teller = RowTeller(table)
        for anomaly in row_anomalies(table):
            self._note(anomaly)
        found = row_versions(table, poll)
        undecided = self._decide(found)
        if not table.ranges:
            undecided = "Nothing was ever read, so there is nothing to judge."
        figures = {
            "transactions": len(self._operations),
            "groups": len(table.groups),
            "rows": len(table.rows),
            "ranges": len(table.ranges),
            "level": self._level.name,
            "ruled-out": sorted(
                {*levels.ruled_out(self.anomalies())} & {*levels.levels_of("rows")}
            ),
        }
        what = counted(len(self._operations), "transaction")
        valid = f"{what}: no anomaly that {in_words(self._level.name)} rules out."
        return figures, valid, undecided

    def anomalies(self) -> list[str]:
        """Return the names of what was found."""
        return [name for name, count in self.findings.counts.items() if count]

    def _note(self, anomaly: Anomaly) -> None:
        operations = [self._teller.shown(txn, [anomaly.key]) for txn in dict.fromkeys(anomaly.txns)]
        sentence = f"{anomaly.sentence[0].upper()}{anomaly.sentence[1:]}"
        details = {"key": key_text(anomaly.key)}
        self.findings.note(anomaly.name, operations, lambda: sentence, details=details)

    def _decide(self, found: RowVersions) -> str | None:
        """Look at cycles and at choices; return why the level stays open, if it does."""
        search = RowSearch(found, self.findings.poll)
        if not self.anomalies() and search.is_likely_in_time():
            return None
        self._note_cycles(search)
        level = self._level
        if level.base not in _NAMES or any(map(level.forbids, self.anomalies())):
            return None
        return self._search(search)

    def _note_cycles(self, search: RowSearch) -> None:
        teller = self._teller
        edges = search.certain_edges()
        for cycle in cycles_in(edges, len(self._operations), self.findings.poll):
            groups = teller.groups_of(cycle.edges)
            operations = [teller.shown(edge.source, groups) for edge in cycle.edges]
            details = {
                "key": key_text(groups[0]),
                "edges": teller.edges(cycle),
                **drawn(cycle, self._operations, operations),
            }
            self.findings.note(
                cycle.name, operations, lambda told=cycle: teller.cycle(told), details=details
            )

    def _search(self, search: RowSearch) -> str | None:
        # The solver's modules are loaded where a history needs them.
        from splitbrain.checker.transactions.order_search import MissingSolver, contradiction

        opened = search.open_graph(self._level)
        if opened is None:
            return None
        graph, likely = opened
        try:
            conflicts = contradiction(graph, likely, self.findings.poll)
        except MissingSolver:
            told = self._teller.supposition(graph.pairs[0], is_true=True)
            return (
                f"No anomaly was found, but it stays open whether {told}; a solver would decide, "
                "which is not installed: python -m pip install 'splitbrain[sat]'."
            )
        if conflicts is not None:
            self._note_contradiction(graph.pairs, conflicts)
        return None

    def _note_contradiction(self, variables: Sequence[Any], conflicts: Sequence[Any]) -> None:
        teller = self._teller
        edges = [edge for conflict in conflicts for edge in conflict.edges]
        kinds = {edge.kind for edge in edges}
        order = "realtime" if REALTIME in kinds else "process" if PROCESS in kinds else ""
        told: list[str] = []
        for conflict in conflicts[:_TOLD_MAX]:
            suppositions = [
                teller.supposition(variables[abs(literal) - 1], is_true=literal > 0)
                for literal in conflict.literals
            ]
            steps = "; ".join(teller.edge(edge, is_supposed=True) for edge in conflict.edges)
            if not suppositions:
                told.append(f"{steps[0].upper()}{steps[1:]}: none of them can be first.")
                continue
            told.append(
                f"If {' and '.join(suppositions)}, then {steps}: none of them can be first."
            )
        more = len(conflicts) - len(told)
        if more:
            told.append(f"There are {more} more of these.")
        groups = teller.groups_of(edges)
        sentence = f"No choice of the rows that ranges do not show is left. {' '.join(told)}"
        operations = [
            teller.shown(txn, groups) for txn in dict.fromkeys(edge.source for edge in edges)
        ]
        name = levels.with_order(_NAMES[self._level.base], order)
        details = {"key": key_text(groups[0])}
        self.findings.note(name, operations, lambda: sentence, details=details)
