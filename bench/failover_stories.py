"""What the nodes did in a failover that took long: their changes of role, in milliseconds.

Only for systems that write state events, and only while nodes and benchmark share a machine, whose
monotonic clock both read. Must never be used for a figure.
"""

import msgspec

from bench.failover_arithmetic import TimedFault
from bench.failover_cluster import Cluster
from bench.failover_elections import whole_lines
from splitbrain.contracts.state_event import StateEvent


def story(cluster: Cluster, fault: TimedFault) -> list[str]:
    """One line per start and change of role since the fault was asked for, in order of time."""
    events: list[tuple[float, StateEvent]] = []
    for file in cluster.state_event_files().values():
        for line in whole_lines(file, 0):
            event = msgspec.json.decode(line, type=StateEvent)
            if event.kind in ("role", "started") and event.node_time is not None:
                events.append(((event.node_time - fault.asked_ns) / 1e6, event))
    return [
        f"{at_ms:9.1f} ms  {event.node} {event.role} in epoch {event.epoch}: "
        f"{event.reason or event.kind}"
        for at_ms, event in sorted(events, key=lambda pair: pair[0])
        if at_ms >= 0
    ]
