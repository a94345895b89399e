"""The charts' figures are right and bounded, and what matters survives the thinning."""

import msgspec

from splitbrain.harness.report.chart_data import (
    Call,
    bands,
    completed_calls,
    latency_series,
    shown_reigns,
    thin,
    throughput,
)
from splitbrain.history.fault_windows import FaultWindow
from splitbrain.history.leadership import Reign
from splitbrain.history.records import Event

S = 1_000_000_000


def call(start_s: float, latency_ms: float, kind: str = "read", outcome: str = "ok") -> Call:
    return Call(kind, outcome, start_s, latency_ms)


def test_an_unknown_operation_has_the_length_that_its_client_waited() -> None:
    events = [
        Event(0, 1 * S, 0, "invoke", "write"),
        Event(1, 3 * S, 0, "info", "write"),
        Event(2, 4 * S, 1, "invoke", "write"),
    ]
    assert completed_calls(events) == [Call("write", "info", 1.0, 2000.0)]


def test_an_operation_that_took_no_time_still_fits_a_log_scale() -> None:
    events = [Event(0, S, 0, "invoke", "read"), Event(1, S, 0, "ok", "read")]
    assert completed_calls(events)[0].latency_ms > 0


def test_thinning_keeps_the_slowest_and_the_fastest() -> None:
    calls = [call(n / 100, 5.0) for n in range(100_000)]
    calls[777] = call(7.77, 900.0)
    calls[55_555] = call(555.55, 0.1)
    kept = thin(calls, 3_000)
    assert len(kept) <= 3_000
    assert calls[777] in kept
    assert calls[55_555] in kept
    assert kept == sorted(kept, key=lambda item: item.start_s)


def test_few_points_are_all_kept() -> None:
    calls = [call(n, 1.0) for n in range(10)]
    assert thin(calls, 10) == calls
    assert thin(calls, 1) == [calls[0]]


def test_points_are_bounded_over_all_series_and_failures_go_last() -> None:
    calls = [call(n / 1000, 1.0, kind) for n in range(30_000) for kind in ("read", "write")]
    failures = [call(n, 1000.0, "write", "info") for n in range(50)]
    series = latency_series([*calls, *failures])
    assert sum(len(item.times_s) for item in series) <= 20_000
    by_name = {(item.kind, item.outcome): item for item in series}
    assert len(by_name["write", "info"].times_s) == 50
    assert by_name["read", "ok"].count == 30_000


def test_throughput_counts_by_completion_and_outcome() -> None:
    calls = [call(0.9, 200.0), call(1.0, 10.0), call(1.5, 10.0, outcome="fail")]
    figures = throughput(calls, 3.0)
    assert figures.ok == [0.0, 2.0, 0.0]
    assert figures.fail == [0.0, 1.0, 0.0]
    assert figures.p50_ms == [None, 10.0, None]
    assert figures.p99_ms == [None, 200.0, None]


def test_a_long_run_has_longer_stretches_not_more() -> None:
    figures = throughput([call(99_000.5, 1.0)], 100_000.0)
    assert len(figures.times_s) <= 1_200
    assert round(sum(figures.ok) * figures.stretch_s, 3) == 1


def test_an_empty_run_has_figures() -> None:
    assert throughput([], 0.0).ok == [0.0]
    assert latency_series([]) == []


def test_labels_of_overlapping_faults_stand_in_different_rows() -> None:
    windows = [
        FaultWindow(0, "kill", ("n1",), 0, 10 * S, 0, healed=True),
        FaultWindow(1, "pause", ("n2",), 5 * S, 8 * S, None, healed=True),
        FaultWindow(2, "pause", ("n3",), 12 * S, 13 * S, 12 * S, healed=True),
    ]
    assert [band.row for band in bands(windows)] == [0, 1, 0]
    assert bands(windows)[1].label == "pause n2 (no effect)"


def test_two_leaders_of_one_epoch_are_marked() -> None:
    reigns = [Reign("n1", 1, 0, 0, 5), Reign("n2", 2, 0, 4, None), Reign("n3", 2, 0, 6, None)]
    shown = shown_reigns([*reigns, Reign("n4", 2, 0, None, None)], 9)
    assert [reign.clash for reign in shown] == [False, True, True]
    assert msgspec.json.encode(shown)
