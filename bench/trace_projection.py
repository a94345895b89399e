"""A digest of what happened in a simulated run, by times, numbers and the words of the nodes.

A trace hash moves with every byte that nodes exchange, and it does not see clients and faults. The
projection sees histories, state events, committed logs, the moments of faults and how the run
ended, and leaves out what a rename may change: kinds and targets of faults, evidence, reasons,
texts of violations, and the names of our own fields. Must never be changed beside the code that it
is to compare. Source: issue 19.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from splitbrain.harness.folder.simulation_outcome import SimulationOutcome


def projection(outcome: SimulationOutcome) -> str:
    """Return the digest, 16 hex digits."""
    digest = hashlib.blake2b(digest_size=8)
    for part in _parts(outcome):
        # The order of a dictionary is no part of what happened.
        digest.update(msgspec.json.encode(part, order="sorted"))
    return digest.hexdigest()


def _parts(outcome: SimulationOutcome) -> Iterator[Any]:
    violation = outcome.violation
    yield ["end", outcome.virtual_us]
    if violation is not None:
        yield [violation.invariant, violation.time_us, violation.node]
    for event in outcome.events:
        ended = [event.node, event.error, event.position, event.final]
        operation = [event.f, event.key, event.value]
        yield ["client", event.time, event.process, event.type, *operation, *ended]
    for fault in outcome.faults:
        links = sorted([link.source, link.destination] for link in fault.links)
        yield ["fault", fault.time, fault.index, fault.phase, sorted(fault.nodes), links]
    for node, events in sorted(outcome.state_events.items()):
        for step in events:
            place = [step.epoch, step.role, step.leader, step.offset, step.base_offset]
            yield [node, step.time, step.incarnation, step.sequence, step.kind, *place, step.detail]
    for node, log in sorted(outcome.committed_logs.items()):
        records = [[entry.offset, entry.epoch, entry.digest] for entry in log.records]
        yield ["log", node, log.start_offset, log.end_offset, records]
    yield [[phase.time, phase.phase] for phase in outcome.phases]
