"""Paths of a run folder, pure; the one place that knows them (design, section 5)."""

from pathlib import Path

from splitbrain.contracts.names import NodeName

#: Version of the run folder's layout, in ``plan.json``.
RUN_FOLDER_SCHEMA = 1


def is_plain_name(name: str) -> bool:
    """Return whether a name leads nowhere but to an entry of its folder."""
    return name not in ("", ".", "..") and not set(name) & {"/", "\0"}


class RunFolder:
    """Paths below one run folder; makes and reads nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def plan(self) -> Path:
        """All that is needed to run it again."""
        return self.root / "plan.json"

    @property
    def lock(self) -> Path:
        """Held (flock) by the living run."""
        return self.root / "lock"

    @property
    def schedule(self) -> Path:
        """Scheduled faults, and what they became."""
        return self.root / "schedule.jsonl"

    @property
    def history(self) -> Path:
        """One line per event of the clients."""
        return self.root / "history.jsonl"

    @property
    def faults(self) -> Path:
        """Each fault as it happened."""
        return self.root / "faults.jsonl"

    @property
    def phases(self) -> Path:
        """The course of the run, one line per step."""
        return self.root / "phases.jsonl"

    @property
    def metrics(self) -> Path:
        """Resource samples, one line per node and second."""
        return self.root / "metrics.jsonl"

    @property
    def leaders(self) -> Path:
        """Leader seen from outside, one line per change."""
        return self.root / "leaders.jsonl"

    @property
    def timeline(self) -> Path:
        """Story of a simulated world, one line each; simulated runs only."""
        return self.root / "timeline.jsonl"

    @property
    def scenario(self) -> Path:
        """The whole simulated world, as it was run; simulated runs only."""
        return self.root / "scenario.json"

    @property
    def simulation(self) -> Path:
        """Trace hash, violation and figures; simulated runs only."""
        return self.root / "simulation.json"

    @property
    def operations(self) -> Path:
        """Parquet folder of paired operations, written by Spark."""
        return self.root / "operations.parquet"

    @property
    def analysis(self) -> Path:
        """Folder of the Spark jobs' results; ``summary.json`` in it is for reports."""
        return self.root / "analysis"

    @property
    def ingest_manifest(self) -> Path:
        """Sources of the tables; written after them."""
        return self.analysis / "ingest.json"

    def analysis_table(self, name: str) -> Path:
        """Return the Parquet folder of an ingested table other than operations."""
        return self.analysis / "tables" / name

    def analysis_result(self, name: str) -> Path:
        """Return the Parquet folder of a job's result."""
        return self.analysis / "results" / name

    @property
    def analysis_summary(self) -> Path:
        """Small results of the Spark jobs, JSON."""
        return self.analysis / "summary.json"

    @property
    def results(self) -> Path:
        """Verdicts."""
        return self.root / "results.json"

    @property
    def junit(self) -> Path:
        """Verdicts for CI servers."""
        return self.root / "junit.xml"

    @property
    def summary(self) -> Path:
        """Verdicts for people, Markdown."""
        return self.root / "summary.md"

    @property
    def report(self) -> Path:
        """Self-contained page."""
        return self.root / "report.html"

    def node(self, node: NodeName) -> Path:
        """Return the folder of a node."""
        return self.root / "nodes" / node

    def state_events(self, node: NodeName) -> Path:
        """Return the path of a node's state events, stamped with the run's time by the harness."""
        return self.node(node) / "state_events.jsonl"

    def committed_log(self, node: NodeName) -> Path:
        """Return the path of a node's neutral log dump: a header line, then one record per line."""
        return self.node(node) / "log.jsonl"

    def node_names(self) -> list[NodeName]:
        """Return the nodes that have a folder, sorted."""
        folder = self.root / "nodes"
        if not folder.is_dir():
            return []
        return sorted(NodeName(entry.name) for entry in folder.iterdir() if entry.is_dir())
