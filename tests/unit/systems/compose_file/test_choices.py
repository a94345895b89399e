"""Nodes of a run of a compose file, those that are asked and hit, and bad choices."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.systems.compose_file.choices import Trial, nodes_in_nemesis, trial_of
from splitbrain.systems.compose_file.reading import ComposeFile, read_compose_file

SHOP = "services: {web: {image: web:1, scale: 2}, store: {image: store:1}, cache: {image: cache:1}}"


@pytest.fixture
def shop(tmp_path: Path) -> ComposeFile:
    (tmp_path / "compose.yaml").write_text(SHOP)
    return read_compose_file(tmp_path / "compose.yaml", {})


def chosen(file: ComposeFile, **settings: str) -> Trial:
    return trial_of(file, {"port": "web:80", "driver": "redis", **settings})


def test_each_copy_is_a_node_and_those_that_are_spared_come_last(shop: ComposeFile) -> None:
    trial = chosen(shop, port="web:80,cache:6379", spare="web")
    assert [(node.node, node.name, node.port, node.is_spared) for node in trial.nodes] == [
        ("n1", "store", None, False),
        ("n2", "cache", 6379, False),
        ("n3", "web-1", 80, True),
        ("n4", "web-2", 80, True),
    ]
    assert [node.name for node in trial.targets] == ["cache", "web-1", "web-2"]
    assert [node.name for node in trial.hit] == ["store", "cache"]
    assert "clients ask cache:6379, web-1:80, web-2:80 by redis; no faults at web-1" in str(
        trial.summary()
    )


def test_a_services_name_is_a_target_of_faults(shop: ComposeFile) -> None:
    trial = chosen(shop)
    faults = "kill:store, pause:random:2,partition,delay:web-2,loss:n1"
    assert nodes_in_nemesis(trial, faults) == "kill:n3, pause:random:2,partition,delay:n2,loss:n1"
    with pytest.raises(UsageError, match=r"service of 2 copies.*web-1, web-2"):
        nodes_in_nemesis(trial, "kill:web")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"port": ""}, "no service is named that clients are to ask"),
        ({"port": "web"}, "--port cannot be 'web'"),
        ({"port": "web:http"}, "--port cannot be 'web:http'"),
        ({"port": "web:0"}, "--port cannot be 'web:0'"),
        ({"port": "web:65536"}, "--port cannot be 'web:65536'"),
        ({"port": ":80"}, "--port cannot be ':80'"),
        ({"port": "wep:80"}, "'wep', and .* Did you mean 'web'"),
        ({"port": "web:80,web:81"}, "names 'web' twice"),
        ({"spare": "nobody"}, "--spare names 'nobody'"),
        ({"spare": "web,store,cache"}, "every service is spared"),
        ({"driver": ""}, "no driver is named. There are etcd, http, kafka, postgres, redis"),
        ({"driver": "mysql"}, "there is no driver 'mysql'"),
        ({"driver": "none.py"}, "there is no file .*none.py"),
        ({"pasword": "x"}, "the driver redis has no setting 'pasword'. Did you mean 'password'"),
        ({"notices": "soon"}, "--notices cannot be 'soon'"),
        ({"notices": "0"}, "--notices cannot be '0'"),
        ({"digest": "0"}, "were changed since that run"),
    ],
)
def test_a_choice_that_the_file_has_not_is_refused(
    shop: ComposeFile, settings: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        chosen(shop, **settings)


def test_a_run_has_nine_nodes_at_most(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {web: {image: web:1, scale: 10}}")
    file = read_compose_file(tmp_path / "compose.yaml", {})
    with pytest.raises(UsageError, match="starts 10 containers, and a run has at most 9"):
        chosen(file)
