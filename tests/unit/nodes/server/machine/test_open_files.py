"""The connections that a port may have, by how many files the process may open."""

import resource

import pytest

from splitbrain.nodes.server.machine.open_files import connections_per_port
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX


@pytest.mark.parametrize(
    ("files_count", "connections_count"),
    [
        (resource.RLIM_INFINITY, CONNECTIONS_COUNT_MAX),
        (1_048_576, CONNECTIONS_COUNT_MAX),
        (1_024, 224),
        (300, 43),
        (64, 8),
    ],
)
def test_all_ports_together_leave_files_for_the_disk(
    monkeypatch: pytest.MonkeyPatch, files_count: int, connections_count: int
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, files_count))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    assert connections_per_port() == connections_count
    if files_count != resource.RLIM_INFINITY:
        assert raised == [(files_count, files_count)]
