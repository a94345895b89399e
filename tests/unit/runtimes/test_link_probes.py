"""Probes on a machine that is too busy to start them."""

from collections.abc import Sequence

import pytest

from contracts.errors import HarnessError
from contracts.fault import Link
from contracts.names import NodeName
from nemesis.expectations import LinkBehaves
from runtimes.link_probes import ProbedLinks, quality_of

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
