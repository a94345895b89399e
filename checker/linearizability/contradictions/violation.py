"""Evidence as data from a search that found no order; JSON-ready and bounded at any length."""

from collections.abc import Sequence
from typing import Any

import networkx as nx

from splitbrain.checker.explanation import NODES_MAX, Relation, build_graph, to_data, to_text
from splitbrain.checker.linearizability.contradictions.core import AT_ANY_TIME_MAX, Core, find_core
from splitbrain.checker.linearizability.contradictions.relations import Relations
from splitbrain.checker.linearizability.part.outcome import PASS, Ending, Outcome, order_of
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Model, call_of, plain, text_of
from splitbrain.contracts.budget import Budget
from splitbrain.history.identity import operation_as_json
from splitbrain.history.records import PairedOperation

#: Operations at the end of a longest order.
ORDER_SHOWN_MAX = 20
#: Members of a core in the sentence, besides the operation without a place.
MEMBERS_NAMED_MAX = 4
#: Claim of ``core``, by whether the others may happen at any time.
CORE_MEANING = {
    True: "These contradict each other even if every other operation answered anything and took "
    "effect at any time, or never.",
    False: "These contradict each other even if every other operation answered anything and took "
    "effect, or did not, while it was open. Were the others possible at any time, no core of "
    f"{AT_ANY_TIME_MAX} operations was found.",
}
#: Final states in the sentence.
STATES_NAMED_MAX = 3
#: Final states and sources in the data.
STATES_MAX = 8
SOURCES_MAX = 8


def describe_violation(
    part: Part, problem: Problem, outcome: Outcome, model: Model, budget: Budget
) -> dict[str, Any]:
    """Describe the violation of one part; ``outcome`` must be ``invalid``."""
    rank = outcome.dead_ends[0].rank
    culprit = part.operations[problem.place_by_rank[rank]]
    # An operation invoked after the culprit returned cannot have hindered it.
    before = [o for o in part.operations if culprit.end is None or o.start <= culprit.end]
    relations = Relations(problem, model)
    sources = relations.sources(culprit, before)
    core = find_core(before, culprit, model, budget, sources)
    graph = _graph(core, culprit, before, relations, _spoilers(problem, outcome, culprit), model)
    ends = [(end, end.state) for end in outcome.dead_ends if end.state is not None]
    states = [problem.transitions.states[state] for _, state in ends]
    return {
        "kind": "not-linearizable",
        "model": model.name,
        "key": part.key,
        "sentence": _sentence(part, culprit, states if outcome.exhausted else None, sources, model)
        + _contradiction(core, before, culprit, model),
        "operation": operation_as_json(culprit),
        "placed": rank,
        "completed": len(problem.ends),
        "final_states": [plain(state) for state in states[:STATES_MAX]],
        "longest_orders": [
            _order(part, problem, dead_end, state) for dead_end, state in ends[:STATES_MAX]
        ],
        "sources": [operation_as_json(source) for source in sources[:SOURCES_MAX]],
        "core": [operation_as_json(member) for member in _nearest(core, culprit)],
        "core_size": len(core.operations),
        "core_minimal": core.minimal,
        "core_at_any_time": core.at_any_time,
        "core_while_open": [member.index for member in core.fewer_while_open[:NODES_MAX]],
        "core_meaning": CORE_MEANING[core.at_any_time],
        "graph": to_data(graph),
        "text": to_text(graph),
    }


def _order(part: Part, problem: Problem, dead_end: Ending, state: int) -> dict[str, Any]:
    places = order_of(problem, dead_end.decisions)
    return {
        "length": len(places),
        "state": plain(problem.transitions.states[state]),
        "last": [part.operations[place].index for place in places[-ORDER_SHOWN_MAX:]],
    }


def _spoilers(problem: Problem, outcome: Outcome, culprit: PairedOperation) -> list[Relation]:
    spoilers: dict[int, Relation] = {}
    for dead_end in outcome.dead_ends[:STATES_MAX]:
        places = [place for place in dead_end.decisions if place != PASS]
        if places and dead_end.state is not None:
            operation = problem.operations[places[-1]]
            label = f"leaves {text_of(problem.transitions.states[dead_end.state])}"
            spoilers.setdefault(
                operation.index, Relation(operation.index, culprit.index, "spoils", label)
            )
    return list(spoilers.values())


def _nearest(core: Core, culprit: PairedOperation) -> list[PairedOperation]:
    """Return the members to show, the culprit among them, by start."""
    others = [member for member in core.operations if member.index != culprit.index]
    latest = sorted(others, key=lambda member: -member.start)[: NODES_MAX - 1]
    return sorted([*latest, culprit], key=lambda member: (member.start, member.index))


def _graph(
    core: Core,
    culprit: PairedOperation,
    before: Sequence[PairedOperation],
    relations: Relations,
    spoilers: Sequence[Relation],
    model: Model,
) -> "nx.MultiDiGraph[int]":
    """Relate the culprit, the members of the core nearest to it, and its nearest sources.

    If these relations show no contradiction, add operations that spoil the culprit's answer.
    """
    sources = relations.nearest_sources(
        culprit, relations.sources(culprit, before), core.operations
    )
    nearest = _nearest(core, culprit)
    shown = {o.index: o for o in (culprit, *nearest, *sources)}
    related = relations.between(nearest, before)

    def describe(operation: PairedOperation) -> str:
        return model.describe(call_of(operation, model))

    graph = build_graph(list(shown.values()), related, culprit.index, describe)
    if any(edge["contradiction"] for _, _, edge in graph.edges(data=True)):
        return graph
    spoiling = {relation.source for relation in spoilers}
    shown |= {o.index: o for o in before if o.index in spoiling}
    return build_graph(list(shown.values()), [*related, *spoilers], culprit.index, describe)


def _sentence(
    part: Part,
    culprit: PairedOperation,
    states: Sequence[object] | None,
    sources: Sequence[PairedOperation],
    model: Model,
) -> str:
    """Say which operation has no place and why; ``states`` is None if orders were left out."""
    where = "" if part.key is None else f" of key {part.key}"
    on = "" if culprit.node is None else f" on {culprit.node}"
    described = model.describe(call_of(culprit, model))
    sentence = (
        f"{described} by process {culprit.process}{on} (index {culprit.index}){where} has no place"
    )
    at_first = model.step(model.initial, call_of(culprit, model))[0]
    if states is None and not sources and not at_first:
        return f"{sentence}: nothing that was invoked by then can lead to this answer."
    if states is None:
        return f"{sentence}: no order of what came before allows this answer."
    named = states if len(states) <= STATES_NAMED_MAX + 1 else states[:STATES_NAMED_MAX]
    leaves = " or ".join(text_of(state) for state in named)
    if len(named) < len(states):
        leaves += f" or one of {len(states) - len(named)} other states"
    sentence = f"{sentence}: every order of what came before leaves {leaves}"
    if not sources and at_first:
        return f"{sentence}, and only the state before all operations allows this answer."
    if not sources:
        return f"{sentence}, and no operation invoked by then can lead to this answer."
    shown = ", ".join(
        f"{model.describe(call_of(source, model))} (index {source.index}, process {source.process})"
        for source in sources[:3]
    )
    more = f" and {len(sources) - 3:,} more" if len(sources) > 3 else ""
    return f"{sentence}; the answer could come from {shown}{more}."


def _contradiction(
    core: Core, before: Sequence[PairedOperation], culprit: PairedOperation, model: Model
) -> str:
    """Say what the culprit contradicts; empty where there is nothing to tell."""
    others = [member for member in core.operations if member.index != culprit.index]
    if not others or (len(core.operations) == len(before) and not core.minimal):
        return ""
    named = _named(others, model)
    whatever = "whatever the rest answered"
    if core.at_any_time:
        whatever += " and whenever it took effect"
    sentence = f" It contradicts {named}, {whatever}."
    fewer = [member for member in core.fewer_while_open if member.index != culprit.index]
    if len(others) <= MEMBERS_NAMED_MAX or not fewer or len(fewer) > MEMBERS_NAMED_MAX:
        return sentence
    return (
        f"{sentence} While the rest keeps its times, it contradicts {_named(fewer, model)} alone."
    )


def _named(members: Sequence[PairedOperation], model: Model) -> str:
    if len(members) > MEMBERS_NAMED_MAX:
        return f"{len(members):,} other operations"
    shown = [
        f"{model.describe(call_of(member, model))} (index {member.index}, process {member.process})"
        for member in members
    ]
    return (
        shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}, taken together"
    )
