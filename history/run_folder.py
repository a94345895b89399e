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
        #: All that is needed to run it again.
        self.plan = root / "plan.json"
        #: Held (flock) by the living run.
        self.lock = root / "lock"
        #: Scheduled faults, and what they became.
        self.schedule = root / "schedule.jsonl"
        #: One line per event of the clients.
        self.history = root / "history.jsonl"
        #: Each fault as it happened.
        self.faults = root / "faults.jsonl"
        #: The course of the run, one line per step.
        self.phases = root / "phases.jsonl"
        #: Resource samples, one line per node and second.
        self.metrics = root / "metrics.jsonl"
        #: Leader seen from outside, one line per change.
        self.leaders = root / "leaders.jsonl"
        #: Digests that running members told of their states, one line per answer; of systems that
        #: declare digests only.
        self.digests = root / "digests.jsonl"
        #: Story of a simulated world, one line each; simulated runs only.
        self.timeline = root / "timeline.jsonl"
        #: The whole simulated world, as it was run; simulated runs only.
        self.scenario = root / "scenario.json"
        #: Trace hash, violation and figures; simulated runs only.
        self.simulation = root / "simulation.json"
        #: Parquet folder of paired operations, written by Spark.
        self.operations = root / "operations.parquet"
        #: Folder of the Spark jobs' results; ``summary.json`` in it is for reports.
        self.analysis = root / "analysis"
        #: Sources of the tables; written after them.
        self.ingest_manifest = self.analysis / "ingest.json"
        #: Small results of the Spark jobs, JSON.
        self.analysis_summary = self.analysis / "summary.json"
        #: Log of the analysis.
        self.analysis_log = root / "analysis.log"
        #: Verdicts.
        self.results = root / "results.json"
        #: Pattern of the names of former verdicts; see ``former_results``.
        self.formers = f"{self.results.stem}-*{self.results.suffix}"
        #: Verdicts for CI servers.
        self.junit = root / "junit.xml"
        #: Violations for code scanning, SARIF.
        self.sarif = root / "results.sarif"
        #: Verdicts for people, Markdown.
        self.summary = root / "summary.md"
        #: Self-contained page.
        self.report = root / "report.html"

    def former_results(self, number: int) -> Path:
        """Return the path of the verdicts of an earlier judgement, counted from 1."""
        return self.root / self.formers.replace("*", str(number))

    def analysis_table(self, name: str) -> Path:
        """Return the Parquet folder of an ingested table other than operations."""
        return self.analysis / "tables" / name

    def analysis_result(self, name: str) -> Path:
        """Return the Parquet folder of a job's result."""
        return self.analysis / "results" / name

    def node(self, node: NodeName) -> Path:
        """Return the folder of a node."""
        return self.root / "nodes" / node

    def state_events(self, node: NodeName) -> Path:
        """Return the path of a node's state events, stamped with the run's time by the harness."""
        return self.node(node) / "state_events.jsonl"

    def committed_log(self, node: NodeName) -> Path:
        """Return the path of a node's neutral log dump: a header line, then one record per line."""
        return self.node(node) / "log.jsonl"

    def replica_logs(self, node: NodeName) -> Path:
        """Return the path of a node's dump of its replicas, each a header line and its records."""
        return self.node(node) / "replicas.jsonl"

    def node_names(self) -> list[NodeName]:
        """Return the nodes that have a folder, sorted."""
        folder = self.root / "nodes"
        if not folder.is_dir():
            return []
        return sorted(NodeName(entry.name) for entry in folder.iterdir() if entry.is_dir())
