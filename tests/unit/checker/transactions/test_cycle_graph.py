"""A cycle of transactions is drawn with its own transactions and edges alone."""

import pytest

from splitbrain.checker.explanation import from_data
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.harness.report.graph_picture import draw_graph
from splitbrain.harness.report.violations import show_violations
from tests.unit.checker.transactions.cases import CASES, t
from tests.unit.checker.transactions.test_anomalies import judged


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("G")])
def test_every_cycle_has_the_graph_of_its_edges(name: str) -> None:
    case = CASES[name]
    cycles = [each for each in judged(case.shows, case.kind).violations if "edges" in each]
    for violation in cycles:
        graph = from_data(violation["graph"])
        edges = {(source, target) for source, target, _ in graph.edges(keys=True)}
        assert edges == {(edge["from"], edge["to"]) for edge in violation["edges"]}
        assert all(edge["contradiction"] for *_, edge in graph.edges(data=True))
        assert set(graph) == {operation["index"] for operation in violation["core"]}
    assert cycles or name == "G1a"


def test_a_page_draws_a_cycle_without_what_has_no_part_in_it() -> None:
    history = [
        t("append z 5, append x 1, append y 2"),
        t("r x [1], r z [5], r y []"),
        t("append w 1"),
    ]
    result = judged(history, "list-append")
    shown, *_ = show_violations(history, [result])
    assert [row.label for row in shown.operations] == ["r z [5], r y []", "append z 5, append y 2"]
    assert shown.drawn == shown.core == 2
    assert shown.picture is not None
    assert "r z [5], r y []" in shown.picture.bars
    for words in ("did not see", "was read by"):
        assert words in shown.graph
    assert draw_graph(result.violations[0]["graph"], "v1") == shown.graph


def test_cycles_of_one_shape_have_one_fingerprint_whatever_their_keys_and_values() -> None:
    def shape(key: str, value: int) -> str:
        history = [
            t(f"append {key} {value}, append y 2"),
            t(f"r {key} [{value}], r y []"),
        ]
        found = fingerprint_of(judged(history, "list-append"))
        assert found is not None
        return found.shape

    assert shape("x", 1) == shape("z", 7) == "txn:ok, txn:ok; a→b b⇥a"
