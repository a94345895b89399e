"""Java's tools print on our controllers what they print on Kafka's, but for declared renamings."""

from pathlib import Path

import pytest

from tests.referee.cluster import Cluster, deployed
from tests.referee.controllers import Controllers, KafkaControllers, OwnControllers
from tests.referee.renaming import Renaming
from tests.referee.same_answers import assert_same
from tests.referee.tool_words import FENCED_WORDS, WORDS, Asked, Words

pytestmark = [
    pytest.mark.containers,
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.timeout(1200),
]

_FENCING_PATIENCE_S = 60.0
_FENCED = " fenced "


def test_java_tools_print_on_our_controllers_what_they_print_on_kafkas(tmp_path: Path) -> None:
    kafkas = _printed(tmp_path / "kafka", KafkaControllers())
    ours = _printed(tmp_path / "own", OwnControllers())
    assert_same(kafkas, ours)


def _printed(run_folder: Path, controllers: Controllers) -> list[str]:
    """Return the tools' output, renamed, in order."""
    with deployed(run_folder, controllers, brokers=2) as cluster:
        cluster.await_brokers()
        renaming = Renaming(cluster.own_names)
        stays, killed = cluster.brokers
        printed = [_ask(cluster, words, cluster.inner_bootstrap, renaming) for words in WORDS]
        cluster.kill(killed)
        rest = cluster.inner_address(stays)
        look = Words(FENCED_WORDS[1].tool, FENCED_WORDS[1].asked, FENCED_WORDS[1].words)
        cluster.await_true(
            "the killed broker is fenced",
            lambda: _FENCED in _ask(cluster, look, rest, renaming),
            _FENCING_PATIENCE_S,
        )
        return printed + [_ask(cluster, words, rest, renaming) for words in FENCED_WORDS]


def _ask(cluster: Cluster, asked: Words, brokers: str, renaming: Renaming) -> str:
    where = cluster.inner_controllers if asked.asked is Asked.CONTROLLERS else brokers
    code, output, errors = cluster.run_tool("kafka", asked.tool, *_placed(asked, where))
    said = f"{asked.tool} {asked.asked.value} {asked.words}: exit code {code}\n{output}{errors}"
    assert (code != 0) == asked.is_refused, said
    return renaming(said)


def _placed(asked: Words, where: str) -> list[str]:
    """The command line: the quorum's tool wants the address first, the cluster's a verb."""
    words = asked.words.split()
    if words[0].startswith("-") or words[0] == "describe":
        return [asked.asked.value, where, *words]
    return [words[0], asked.asked.value, where, *words[1:]]
