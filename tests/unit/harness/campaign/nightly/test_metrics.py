"""Figures of a night for Prometheus, and the dashboard that shows them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from splitbrain.harness.campaign.nightly.metrics import METRICS
from splitbrain.harness.campaign.nightly.steps import Steps
from tests.unit.harness.campaign.nightly.fake_nightly import Nightly
from tests.unit.harness.campaign.suite.fake_nights import does, matrix

DASHBOARD = Path(__file__).parents[5] / "docs" / "ci" / "grafana-dashboard.json"
CANARY = matrix("canary", seeds=[1], setting=does("invalid"), expect="invalid")
QUERY = re.compile(r"(splitbrain_\w+)(?:\{([^}]*)\})?")
LABEL = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')
Metrics = dict[str, list[tuple[dict[str, str], float]]]


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Metrics:
    """Figures of a red night that the real gate held."""
    made = Nightly(tmp_path_factory.mktemp("night"))
    bad = matrix("bad", seeds=[4], setting=made.sets("invalid"))
    made.suites.write(CANARY, matrix("good", seeds=[2, 3], setting=made.sets("valid")), bad)
    made.write()
    with pytest.MonkeyPatch.context() as patched:
        for step in ("_ingest", "_analyze"):
            patched.setattr(Steps, step, lambda *_: (0, None))
        assert made.run(fake=False) == 1, made.output
    return metrics(made)


@pytest.fixture
def green(tmp_path: Path) -> Nightly:
    made = Nightly(tmp_path)
    made.suites.write(CANARY)
    made.write()
    return made


def metrics(nightly: Nightly) -> Metrics:
    text = (nightly.folder / "nightly" / "unit" / METRICS).read_text()
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


def queries() -> Iterator[str]:
    """All expressions of the dashboard, those of its variables too."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_a_night_leaves_its_figures(red: Metrics) -> None:
    found = red
    assert found["splitbrain_night_exit_code"] == [({"suite": "unit"}, 1)]
    runs = {labels["verdict"]: value for labels, value in found["splitbrain_night_runs"]}
    assert {name: runs[name] for name in ("valid", "invalid")} == {"valid": 2, "invalid": 1}
    states = {
        labels["threshold"]: labels["state"]
        for labels, value in found["splitbrain_threshold"]
        if value == 1
    }
    assert states["violations == 0"] == "violated"
    assert states["runs_valid >= 2"] == "met"
    figures = {labels["figure"]: value for labels, value in found["splitbrain_figure"]}
    assert figures["runs_valid"] == 2
    failures = {labels["state"]: value for labels, value in found["splitbrain_night_failures"]}
    assert sum(failures.values()) == 1


def test_a_disk_that_refuses_is_said_and_the_next_night_has_its_own(green: Nightly) -> None:
    path = green.folder / "nightly" / "unit" / METRICS
    path.mkdir(parents=True)
    assert green.run() == 0
    assert f"{METRICS} could not be written" in green.output
    path.rmdir()
    green.ends_with("gate", 1)
    assert green.run() == 1
    found = metrics(green)
    assert found["splitbrain_night_exit_code"] == [({"suite": "unit"}, 1)]
    # The fake gate did not say anything: no figure is made up.
    assert "splitbrain_figure" not in found


def test_all_that_the_dashboard_asks_for_is_written(red: Metrics) -> None:
    asked = [(match[1], match[2] or "") for query in queries() for match in QUERY.finditer(query)]
    assert len({name for name, _ in asked}) > 6
    for name, selector in asked:
        assert name in red, name
        labels = {label for labels, _ in red[name] for label in labels}
        assert {match[1] for match in LABEL.finditer(selector)} <= labels, (name, selector)


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    assert {"title", "uid", "schemaVersion", "panels", "templating"} <= dashboard.keys()
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len({*ids}) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        assert panel["title"]
        assert {target["refId"] for target in panel["targets"]} >= {"A"}
        assert panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, "two panels overlap"
        taken |= cells
    # A legend and a variable name labels that there are.
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    used = {name for query in queries() for name in re.findall(r"\$(\w+)", query)}
    assert used <= variables
