"""The KRaft quorum of ``nodes`` as a system under test.

Finds the leader by asking the nodes, describes the cluster, opens clients, and dumps logs. Must
never start or stop a node: the runtime does.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from splitbrain.contracts.committed import CommittedLog
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.explanation import Explanation
from splitbrain.contracts.member_digest import MemberDigest
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.runtime import DeploymentSpec
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.contracts.system import (
    CLIENT_PORT,
    Canary,
    ImageSource,
    LeaderView,
    Place,
    ReadsSpeakFor,
    Route,
    System,
)
from splitbrain.nodes.transport.client_protocol import NodeState
from splitbrain.patched.loading import installed_patches
from splitbrain.systems.kraft import committed_log as committed
from splitbrain.systems.kraft import deployment as deploy
from splitbrain.systems.kraft.client import KraftClient
from splitbrain.systems.kraft.explanations import explanations
from splitbrain.systems.kraft.planted_bugs import patches_of, planted_bugs
from splitbrain.systems.kraft.state_machines import (
    WORKLOADS,
    broker_ids,
    check_options,
    node_name,
    session_ms,
    state_machine_of,
)
from splitbrain.systems.kraft.status import ask, figures, serves_topics
from splitbrain.systems.questions import Endpoints, ask_all, not_yet

#: How long the nodes get to say what they believe when readiness or convergence is asked.
STATUS_TIMEOUT_S: Final = 2.0


class KraftSystem(System):
    """Adapter of one run, for any runtime with endpoints."""

    name = "kraft"
    declares_state_events = True
    declares_committed_logs = True
    declares_digests = True
    reads_speak_for: ReadsSpeakFor = "cluster"
    declares_durable_lengths = True
    state_machines: Sequence[str] = tuple(WORKLOADS)

    def __init__(self) -> None:
        self._run_folder: Path | None = None
        #: Nodes that do not vote.
        self._observers: tuple[NodeName, ...] = ()
        self._converged_ends: dict[NodeName, int] = {}

    canary = Canary(nemesis="isolate-leader", workload="register", bugs=("stale-leader-reads",))

    @property
    def planted_bugs(self) -> Mapping[str, str]:
        """Each with its sentence."""
        return {name: bug.mechanism for name, bug in planted_bugs().items()}

    @property
    def explanations(self) -> Mapping[str, Sequence[Explanation]]:
        """Words on its invariants, its planted bugs, and the exit codes of its nodes."""
        return explanations()

    def planted_patches(self, options: Experiment) -> Mapping[str, str]:
        """Texts of the bugs' patches."""
        patches = patches_of(options.bugs, state_machine_of(options))
        return {patch.name: patch.text for patch in patches}

    def workloads(self, state_machine: str | None) -> Sequence[str]:
        """Registers and set, or topics."""
        return WORKLOADS["metadata" if state_machine == "metadata" else "registers"]

    def observers(self, options: Experiment) -> Sequence[NodeName]:
        """Return the brokers."""
        return tuple(map(node_name, broker_ids(options)))

    def session_ms(self, options: Experiment) -> int | None:
        """Kafka's ``broker.session.timeout.ms``, where there are brokers."""
        return session_ms(options)

    def images(self) -> Sequence[ImageSource]:
        """One image, made from the source of ``nodes``."""
        return (deploy.IMAGE,)

    def check_options(self, options: Experiment) -> None:
        """Refuse a number of nodes, a bug or a setting that does not exist."""
        check_options(options)

    def deployment(
        self, run_id: RunId, run_folder: Path, options: Experiment, place: Place
    ) -> DeploymentSpec:
        """Write the nodes' configuration and describe the cluster."""
        self._run_folder = run_folder
        self._observers = tuple(self.observers(options))
        return deploy.deployment(run_id, run_folder, options, place)

    def ready(self, runtime: Endpoints) -> None:
        """Return when all nodes answer and follow one leader that can commit."""
        action = "wait for the cluster to serve"
        states = self._states(runtime, runtime.nodes())
        self._require_all(runtime, states, action)
        leaders = [node for node, state in states.items() if state.role == "leader"]
        beliefs = {(state.leader_id, state.epoch) for state in states.values()}
        if len(leaders) != 1 or len(beliefs) != 1:
            raise not_yet(self.name, action, "no leader that all nodes follow yet")
        if states[leaders[0]].high_watermark < 0:
            raise not_yet(
                self.name, action, f"leader {leaders[0]} has not committed in its own epoch yet"
            )
        for node in self._observers:
            if not serves_topics(runtime.endpoint(node, CLIENT_PORT), STATUS_TIMEOUT_S):
                raise not_yet(self.name, action, f"broker {node} is fenced yet")

    def leader(self, runtime: Endpoints, timeout_s: float) -> LeaderView:
        """Ask the nodes; of several that claim to lead the highest epoch wins."""
        voters = self._voters(runtime)

        def enough(states: Mapping[NodeName, NodeState]) -> bool:
            # A majority was asked, and nobody in it knows an epoch above the claimed one.
            return 2 * len(states) > len(voters) and _claim(states) is not None

        states = self._states(runtime, voters, timeout_s, enough)
        node = _claim(states) or _last_claim(states)
        if node is None:
            return LeaderView(None, max((s.epoch for s in states.values()), default=None))
        return LeaderView(node, states[node].epoch)

    def open_client(self, runtime: Endpoints, route: Route) -> KraftClient:
        """Return a fresh client; connects at its first operation."""
        return KraftClient(
            lambda node: runtime.endpoint(node, CLIENT_PORT), self._voters(runtime), route
        )

    def state_event_file(self, run_folder: Path, node: NodeName) -> Path | None:
        """File that the node appends its state events to."""
        return deploy.state_folder(run_folder, node) / deploy.STATE_EVENT_FILE

    def converged(self, runtime: Endpoints) -> None:
        """Return when all nodes hold, have committed and have applied the same log."""
        action = "wait for the nodes to converge"
        states = self._states(runtime, runtime.nodes())
        self._require_all(runtime, states, action)
        ends = {
            node: (state.high_watermark, state.log_end_offset, state.applied_offset)
            for node, state in states.items()
        }
        high_watermarks = {state.high_watermark for state in states.values()}
        if any(len(set(end)) != 1 for end in ends.values()) or len(high_watermarks) != 1:
            ends_text = ", ".join(
                f"{node} has committed {committed_end} and applied {applied} of {end}"
                for node, (committed_end, end, applied) in sorted(ends.items())
            )
            raise not_yet(self.name, action, ends_text)
        self._converged_ends = {node: state.high_watermark for node, state in states.items()}

    def metrics(
        self, runtime: Endpoints, node: NodeName, timeout_s: float
    ) -> dict[str, float] | None:
        """Where the node stands, None if it does not answer within the time.

        ``high_watermark`` is -1 while the node does not know it; ``leads`` is 1 or 0. The other
        names are those of Kafka's metrics, as Prometheus has them.
        """
        began = time.monotonic()
        state = ask(runtime.endpoint(node, CLIENT_PORT), timeout_s)
        if state is None:
            return None
        left_s = timeout_s - (time.monotonic() - began)
        address = runtime.endpoint(node, deploy.METRICS_PORT)
        reported = figures(address, left_s) if left_s > 0 else None
        return {
            **(reported or {}),
            "epoch": state.epoch,
            "high_watermark": state.high_watermark,
            "log_end_offset": state.log_end_offset,
            "applied_offset": state.applied_offset,
            "leads": int(state.role == "leader"),
        }

    def digest(self, runtime: Endpoints, node: NodeName, timeout_s: float) -> MemberDigest | None:
        """Digest of its registers, or of its image of the metadata, at its applied offset."""
        state = ask(runtime.endpoint(node, CLIENT_PORT), timeout_s)
        return None if state is None else MemberDigest(state.applied_offset, state.digest)

    def committed_log(self, node: NodeName, data_folder: Path) -> CommittedLog:
        """Read a stopped node's data folder up to what that node knew to be committed."""
        if self._run_folder is not None:
            events = self.state_event_file(self._run_folder, node)
        else:
            # A dead run, of which only the folder is left: the data lie in the node's folder.
            events = data_folder.parent / deploy.STATE_FOLDER / deploy.STATE_EVENT_FILE
        return committed.committed_log(
            node, data_folder, events, self._converged_ends.get(node, -1)
        )

    def record_at(self, file: str, before: bytes) -> str | None:
        """Return the record of the log at the byte behind ``before``; None for other files."""
        return committed.record_at(file, before)

    def versions(self) -> dict[str, str]:
        """Version of this distribution, a digest of the nodes' source, and patches if any."""
        try:
            version = metadata.version("splitbrain")
        except metadata.PackageNotFoundError:
            version = "unpackaged"
        digest = {"kraft_source": deploy.source_digest()}
        if not (names := [patch.name for patch in installed_patches()]):
            return {"kraft": version, **digest}
        # Figures of changed code are not those of the version.
        return {
            "kraft": f"{version}+{'.'.join(names)}",
            **digest,
            "kraft_patches": ", ".join(names),
        }

    def simulation(self) -> SimulatedSystem:
        """Return the same nodes on a virtual clock."""
        # Runs in containers need none of it.
        from splitbrain.simulation.kraft.system import KraftSimulation

        return KraftSimulation()

    def _voters(self, runtime: Endpoints) -> tuple[NodeName, ...]:
        return tuple(node for node in runtime.nodes() if node not in self._observers)

    def _states(
        self,
        runtime: Endpoints,
        nodes: Sequence[NodeName],
        timeout_s: float = STATUS_TIMEOUT_S,
        enough: Callable[[Mapping[NodeName, NodeState]], bool] | None = None,
    ) -> dict[NodeName, NodeState]:
        return ask_all(
            nodes, lambda node: ask(runtime.endpoint(node, CLIENT_PORT), timeout_s), enough
        )

    def _require_all(
        self, runtime: Endpoints, states: dict[NodeName, NodeState], action: str
    ) -> None:
        missing = [node for node in runtime.nodes() if node not in states]
        if missing:
            raise not_yet(self.name, action, f"no answer from {', '.join(missing)}")


def _claim(states: Mapping[NodeName, NodeState]) -> NodeName | None:
    """Return the node that claims to lead the highest epoch that any answer knows."""
    epoch = max((state.epoch for state in states.values()), default=-1)
    claims = [n for n, state in states.items() if state.role == "leader" and state.epoch == epoch]
    return claims[0] if claims else None


def _last_claim(states: Mapping[NodeName, NodeState]) -> NodeName | None:
    """Return the node that claims to lead the highest epoch of all that are claimed."""
    claims = [(state.epoch, node) for node, state in states.items() if state.role == "leader"]
    return max(claims)[1] if claims else None
