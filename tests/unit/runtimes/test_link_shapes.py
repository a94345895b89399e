"""Commands for a link, with tools that only listen; probes and their findings."""

import json
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from splitbrain.contracts.arms import Shape
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.expectations import LinkBehaves
from splitbrain.runtimes.link_probes import LinkTools, quality_of
from splitbrain.runtimes.link_shapes import Means, NetworkLinks, link_capabilities
from tests.unit.runtimes.pod_tools import pod_tool

HERE = {"loss", "black-hole", "queue", "rate", "reset"}
WITH_NETEM = HERE | {"netem"}
N1, N2, N3 = (NodeName(f"n{number}") for number in (1, 2, 3))
THERE, BACK = Link(N1, N2), Link(N2, N1)


class ListeningTools(LinkTools):
    """Nodes whose tools do nothing but remember."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, Any] = {}
        self.resets: dict[str, Collection[str]] = {}

    def nodes(self) -> Sequence[NodeName]:
        return [N1, N2, N3]

    def address(self, node: NodeName) -> str:
        return f"10.0.0.{node[1:]}"

    def run(self, node: NodeName, command: Sequence[str]) -> str:
        if command[1] == "show":
            return json.dumps(self.plans.get(node, {"arriving": {}, "leaving": {}}))
        self.plans[node] = json.loads(command[2])
        return "{}"

    def answer_with_resets(self, node: NodeName, sources: Collection[str]) -> None:
        self.resets[node] = set(sources)

    def answered_with_resets(self, node: NodeName) -> Collection[str]:
        return self.resets.get(node, ())


def arm(*, means: Collection[str] = HERE) -> tuple[NetworkLinks, ListeningTools]:
    tools = ListeningTools()
    return NetworkLinks(tools, lambda: Means(means, "docker")), tools


WHOLE = Shape(loss=0.1, bytes_max=600, delay_us=50_000, jitter_us=5_000, reorder=0.1, rate_kbit=100)
HELD = {"delay_us": 50_000, "jitter_us": 5_000, "reorder": 0.1}


def test_packets_are_lost_and_held_where_they_arrive_and_slowed_where_they_leave() -> None:
    links, tools = arm()
    used = links.shape([THERE], WHOLE)
    assert used == "a limit of packet length and statistic and a queue in user space and htb"
    assert tools.plans == {
        N1: {"arriving": {}, "leaving": {"10.0.0.2": {"rate_kbit": 100}}, "whole": True},
        N2: {
            "arriving": {"10.0.0.1": {"loss": 0.1, "bytes_max": 600, **HELD}},
            "leaving": {},
            "whole": True,
        },
    }
    assert links.shaped() == {THERE: WHOLE}


def test_what_the_kernel_has_rounded_is_told_as_it_was_asked_for() -> None:
    links, tools = arm()
    asked = Shape(loss=1 / 3)
    links.shape([THERE], asked)
    tools.plans[N2]["arriving"]["10.0.0.1"]["loss"] = 0.333333
    assert links.shaped() == {THERE: asked}
    tools.plans[N2]["arriving"]["10.0.0.1"]["loss"] = 0.3
    assert links.shaped() == {THERE: Shape(loss=0.3)}
    links.forget()
    assert links.shaped() == {THERE: Shape(loss=0.3)}


def test_netem_holds_packets_where_they_leave_but_doubles_are_left_to_the_queue() -> None:
    links, tools = arm(means=WITH_NETEM)
    assert "netem" in links.shape([THERE], WHOLE)
    assert tools.plans[N1]["leaving"] == {"10.0.0.2": {"rate_kbit": 100, **HELD}}
    assert tools.plans[N2]["arriving"] == {"10.0.0.1": {"loss": 0.1, "bytes_max": 600}}
    assert links.shaped() == {THERE: WHOLE}
    doubled = Shape(delay_us=50_000, duplicate=0.1)
    assert links.shape([THERE], doubled) == "a queue in user space"
    assert tools.plans[N1]["leaving"] == {}
    assert tools.plans[N2]["arriving"] == {"10.0.0.1": {"delay_us": 50_000, "duplicate": 0.1}}


def test_a_node_is_told_all_of_its_links_each_time() -> None:
    links, tools = arm()
    links.shape([THERE], Shape(loss=0.1))
    links.shape([Link(N3, N2)], Shape(loss=0.2))
    both = {"10.0.0.1": {"loss": 0.1}, "10.0.0.3": {"loss": 0.2}}
    assert tools.plans[N2]["arriving"] == both
    links.unshape([THERE])
    assert tools.plans[N2]["arriving"] == {"10.0.0.3": {"loss": 0.2}}
    assert (tools.plans[N1]["whole"], tools.plans[N2]["whole"]) == (False, True)


def test_a_shape_that_does_nothing_undoes_the_one_before() -> None:
    links, _ = arm()
    links.shape([THERE], Shape(loss=0.1))
    assert links.shape([THERE], Shape()) == "nothing"
    assert links.shaped() == {}


def test_resets_are_of_the_links_that_were_named() -> None:
    links, tools = arm()
    links.reset([THERE, BACK, Link(N3, N2)])
    assert tools.resets == {N1: {"10.0.0.2"}, N2: {"10.0.0.1", "10.0.0.3"}}
    links.unreset([THERE])
    assert links.reset_links() == {BACK, Link(N3, N2)}
    links.forget()
    links.reset([THERE])
    assert tools.resets[N2] == {"10.0.0.1"}


@pytest.mark.parametrize(
    ("shape", "lacking"),
    [
        (Shape(loss=0.1), "loss"),
        (Shape(delay_us=10_000), "queue"),
        (Shape(duplicate=0.1), "queue"),
        (Shape(rate_kbit=10), "rate"),
        (Shape(bytes_max=600), "black-hole"),
    ],
)
def test_what_the_kernel_lacks_is_refused_and_nothing_is_told(shape: Shape, lacking: str) -> None:
    links, tools = arm(means=HERE - {lacking})
    with pytest.raises(CapabilityError, match="no means"):
        links.shape([THERE], shape)
    assert tools.plans == {}


def test_capabilities_follow_from_means() -> None:
    held = {"delay", "reorder", "duplicate"}
    assert link_capabilities(HERE) == {"loss", "black-hole", "rate", "reset"} | held
    assert link_capabilities({"netem", "word of a later tool"}) == held


def test_what_probes_have_seen_is_counted() -> None:
    far = json.dumps({"order": [0, 3, 1, 3, 2, 5], "kbit": 80.0})
    near = json.dumps({"sent": 8, "trips_ms": [1.0, 9.0, 2.0]})
    seen = quality_of(far, near)
    assert (seen.sent, seen.arrived, seen.doubled) == (8, 5, 1)
    # Of the first arrivals 0, 3, 1, 2, 5 only the 3 came before one that was sent earlier.
    assert seen.overtaking == 1
    assert (seen.large_sent, seen.large_arrived) == (4, 3)
    assert (seen.median_ms, seen.kbit) == (2.0, 80.0)


def test_nothing_that_came_back_has_no_median() -> None:
    seen = quality_of('{"order": [], "kbit": null}', '{"sent": 4, "trips_ms": []}')
    assert (seen.arrived, seen.overtaking, seen.median_ms) == (0, 0, None)


def test_the_spread_of_round_trips_leaves_out_a_twentieth_at_each_end() -> None:
    trips = [500.0, *(float(trip) for trip in range(10, 28)), 1.0]
    near = json.dumps({"sent": 20, "trips_ms": trips})
    assert quality_of('{"order": [], "kbit": null}', near).spread_ms == 27.0 - 10.0
    few = json.dumps({"sent": 3, "trips_ms": [5.0, 1.0, 3.0]})
    assert quality_of('{"order": [], "kbit": null}', few).spread_ms == 4.0
    none = '{"sent": 3, "trips_ms": []}'
    assert quality_of('{"order": [], "kbit": null}', none).spread_ms is None


LINK = Link(NodeName("n1"), NodeName("n2"))


class BusyLinks(ListeningTools):
    """Whoever waits for the one who counts gives up, or cannot even be started."""

    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem
        self.ran: list[str] = []

    def run(self, node: NodeName, command: Sequence[str]) -> str:
        self.ran.append(command[1])
        if command[1] == "await":
            raise HarnessError("run probe.py", node, self.problem, "")
        return ""


def test_where_nobody_counts_in_time_nothing_is_sent_and_nothing_seen() -> None:
    # Seen on a busy machine, where it ended the run.
    links = BusyLinks("timeout")
    quality = quality_of(*links.observe(LINK, 40, 2.0))
    assert quality.sent == 0
    assert not LinkBehaves(LINK).holds(quality)
    assert "stream" not in links.ran
    assert links.ran[-1] == "end"


def test_what_cannot_run_at_all_is_told() -> None:
    with pytest.raises(HarnessError, match="no such program"):
        BusyLinks("no such program").observe(LINK, 40, 2.0)


def test_an_answer_that_belongs_to_somebody_else_is_no_answer() -> None:
    # Seen in a run: a late answer to a knock came to the port's next owner, and ended the probes.
    probe = pod_tool("probe")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        far.bind(("127.0.0.1", 0))
        far.settimeout(10)

        def answer() -> None:
            for _ in range(4):
                content, sender = far.recvfrom(65536)
                stranger.sendto(b"knock", sender)
                stranger.sendto(bytes(40), sender)
                far.sendto(content[:40], sender)

        with ThreadPoolExecutor(1) as pool:
            answering = pool.submit(answer)
            seen = probe.stream("127.0.0.1", far.getsockname()[1], 4, 100, 10.0)
            answering.result()
    assert seen["sent"] == 4
    assert len(seen["trips_ms"]) == 4
