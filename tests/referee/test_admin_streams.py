"""Our controllers answer what Kafka's answer to the same requests, and hold the same metadata."""

from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from splitbrain.nodes.wire.apis import ApiKey
from tests.referee.admin_coverage import MET
from tests.referee.admin_streams import Comparison, Side, compare
from tests.referee.cluster import deployed
from tests.referee.controllers import Controllers
from tests.referee.stream_clusters import KAFKA, OWN, addresses, connected, is_whole, tidy

pytestmark = [pytest.mark.containers, pytest.mark.slow]

_PATIENCE_S = 60.0
_SEEDS = range(1, 21)
_REQUESTS = 1_000


@pytest.mark.timeout(300)
def test_our_controllers_answer_a_stream_of_requests_as_kafkas_do(tmp_path: Path) -> None:
    with _sides(tmp_path) as (kafka, own):
        comparison = _compared(kafka, own, seed=0, count=200)
    assert len({api_key for api_key, _ in comparison.met}) > len(MET) / 2


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_twenty_streams_meet_every_code_of_every_api(tmp_path: Path) -> None:
    met: Counter[tuple[ApiKey, int]] = Counter()
    with _sides(tmp_path) as (kafka, own):
        for seed in _SEEDS:
            met += _compared(kafka, own, seed, _REQUESTS).met
    table = "\n".join(f"{key.name} {code}: {times}" for (key, code), times in sorted(met.items()))
    (tmp_path / "met.txt").write_text(table)
    wanted = {(api_key, int(code)) for api_key, codes in MET.items() for code in codes}
    assert wanted == set(met), f"{wanted ^ set(met)} of\n{table}"


def _compared(kafka: Side, own: Side, seed: int, count: int) -> Comparison:
    for side in (kafka, own):
        tidy(side)
    comparison = compare(kafka, own, seed, count)
    report = "\n".join(map(str, comparison.differences))
    assert not comparison.differences, f"seed {seed}, Kafka's | ours:\n{report}"
    assert comparison.asked == count
    return comparison


@contextmanager
def _sides(folder: Path) -> Generator[tuple[Side, Side]]:
    with ExitStack() as stack:
        kafka, own = (
            stack.enter_context(_side(stack, folder / name, controllers))
            for name, controllers in (("kafka", KAFKA), ("own", OWN))
        )
        yield kafka, own


@contextmanager
def _side(stack: ExitStack, run_folder: Path, controllers: Controllers) -> Generator[Side]:
    cluster = stack.enter_context(deployed(run_folder, controllers, brokers=0))
    cluster.await_true("all controllers are registered", lambda: is_whole(cluster), _PATIENCE_S)
    with connected(cluster.cluster_id, addresses(cluster)) as side:
        assert side is not None, "the active controller has gone"
        yield side
