from random import Random
from typing import Any

import networkx as nx
import pytest

from splitbrain.checker import explanation
from splitbrain.checker.explanation import (
    NODES_MAX,
    Relation,
    build_graph,
    from_data,
    real_time_relations,
    to_data,
    to_text,
)
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.contradictions.relations import Relations
from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation
from tests.unit.checker.small_histories import random_history


def graph_of(*operations: PairedOperation) -> "nx.MultiDiGraph[int]":
    result = check(operations, "cas-register", Unlimited())
    return from_data(result.violations[0]["graph"])


STALE_READ = (
    operation("write", 1, start=0, end=2, process=1),
    operation("write", 2, start=3, end=5, process=1),
    operation("read", None, 1, start=6, end=8, process=2, node="n3"),
)


def contradiction_of(graph: "nx.MultiDiGraph[int]") -> set[tuple[int, int, str]]:
    return {
        (source, target, kind)
        for source, target, kind, edge in graph.edges(keys=True, data=True)
        if edge["contradiction"]
    }


def test_a_stale_read_is_a_cycle_of_real_time_and_what_the_answer_demands() -> None:
    assert contradiction_of(graph_of(*STALE_READ)) == {
        (3, 6, "real-time"),
        (6, 3, "must-precede"),
    }


def test_the_write_that_the_answer_came_from_is_shown() -> None:
    graph = graph_of(*STALE_READ)
    assert graph.has_edge(0, 6, key="reads-from")
    assert graph.nodes[6]["culprit"]


def test_two_reads_in_the_wrong_order_contradict_each_other() -> None:
    graph = graph_of(
        operation("write", 1, start=0, end=1),
        operation("write", 2, start=2, end=20),
        operation("read", None, 2, start=3, end=4),
        operation("read", None, 1, start=5, end=6),
    )
    # The one write of 1 was over before the read of 2 began, which shows that it was overwritten.
    assert contradiction_of(graph) == {(3, 5, "real-time"), (5, 3, "must-precede")}
    assert graph.edges[5, 3, "must-precede"]["label"].startswith(
        "right after [3] the answer of [5]"
    )


def test_an_open_write_cannot_explain_two_reads_with_another_write_between_them() -> None:
    graph = graph_of(
        operation("write", 1, start=0, end=1),
        operation("write", 4, start=2),
        operation("write", 2, start=3, end=4),
        operation("read", None, 4, start=5, end=6),
        operation("write", 2, start=7, end=8),
        operation("read", None, 4, start=9, end=10),
    )
    assert contradiction_of(graph) == {
        (2, 5, "reads-from"),
        (5, 7, "real-time"),
        (7, 2, "must-precede"),
    }


def test_a_cycle_is_shown_without_what_merely_leaves_no_place() -> None:
    noise = [operation("write", 9, start=n, process=n) for n in range(-20, 0)]
    graph = graph_of(*noise, *STALE_READ)
    assert set(graph) == {0, 3, 6}
    assert "spoils" not in {kind for *_, kind in graph.edges(keys=True)}


def test_without_a_cycle_what_leaves_no_place_is_marked() -> None:
    graph = graph_of(
        operation("write", 1, start=0, end=1), operation("read", None, 9, start=3, end=4)
    )
    assert {kind for *_, kind in contradiction_of(graph)} == {"spoils"}


def test_real_time_edges_are_those_that_others_do_not_imply() -> None:
    chain = [operation("write", n, start=10 * n, end=10 * n + 5) for n in range(4)]
    assert [(r.source, r.target) for r in real_time_relations(chain)] == [
        (0, 10),
        (10, 20),
        (20, 30),
    ]


def test_equal_times_are_not_ordered_except_within_a_process() -> None:
    first = operation("write", 1, start=0, end=5, process=1)
    other = operation("write", 2, start=5, end=9, process=2)
    own = operation("write", 3, start=5, end=9, process=1, index=6)
    assert [(r.source, r.target) for r in real_time_relations([first, other, own])] == [(0, 6)]


def test_the_graph_is_bounded_at_any_length() -> None:
    many = [operation("write", n, start=n, end=n + 500) for n in range(200)]
    relations = [Relation(n, n + 1, "may-read-from") for n in range(199)]
    graph = build_graph(many, relations, 0, lambda operation: operation.f)
    assert len(graph) == NODES_MAX


def test_data_comes_back_as_the_same_graph() -> None:
    graph = graph_of(*STALE_READ)
    assert nx.utils.graphs_equal(from_data(to_data(graph)), graph)


def test_text_marks_the_culprit_and_the_contradiction() -> None:
    lines = to_text(graph_of(*STALE_READ))
    assert [line[:4] for line in lines if line.startswith(">")] == ["> [6"]
    assert sum(line.startswith("!") for line in lines) == 2


@pytest.mark.parametrize("kind", sorted(explanation.BINDING))
def test_a_cycle_needs_every_binding_kind(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(explanation, "BINDING", explanation.BINDING - {kind})
    stale = contradiction_of(graph_of(*STALE_READ))
    is_cycle = {found for *_, found in stale} == {"real-time", "must-precede"}
    assert is_cycle == (kind == "reads-from")


@pytest.mark.parametrize("model", sorted(MODELS))
def test_relations_of_a_valid_history_never_contradict_each_other(model: str) -> None:
    random = Random(f"relations {model}")
    told = 0
    for _ in range(600):
        history = random_history(random, model)
        problem = Problem(history, MODELS[model])
        if Search(problem, Unlimited()).run().verdict is Verdict.INVALID:
            continue
        relations = Relations(problem, MODELS[model]).between(history, history)
        graph = build_graph(history, relations, history[0].index, str)
        told += sum(relation.kind == "must-precede" for relation in relations)
        assert not contradiction_of(graph), history
    assert told > 100


def test_a_relation_that_forgets_later_sources_is_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def latest_forgotten(self: Relations, *arguments: Any) -> list[PairedOperation]:
        return real(self, *arguments)[1:]

    real = Relations.sources
    monkeypatch.setattr(Relations, "sources", latest_forgotten)
    with pytest.raises(AssertionError):
        test_relations_of_a_valid_history_never_contradict_each_other("cas-register")
