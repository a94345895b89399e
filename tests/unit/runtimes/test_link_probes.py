"""Probes on a machine that is too busy to start them."""

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.expectations import LinkBehaves
from splitbrain.runtimes.link_probes import ProbedLinks, quality_of
from tests.unit.runtimes.pod_tools import pod_tool

LINK = Link(NodeName("n1"), NodeName("n2"))


class BusyLinks(ProbedLinks):
    """Whoever waits for the one who counts gives up, or cannot even be started."""

    def __init__(self, problem: str) -> None:
        super().__init__()
        self.problem = problem
        self.ran: list[str] = []

    def address(self, node: NodeName) -> str:
        return node

    def run(self, node: NodeName, words: Sequence[str]) -> str:
        self.ran.append(words[1])
        if words[1] == "await":
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
