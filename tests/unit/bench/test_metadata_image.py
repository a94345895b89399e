"""The benchmark of the image measures what it says, on a small cluster."""

import json
import random

import pytest

from bench.metadata_image import REPLICAS, Stopwatch, load, main, measure


def test_the_image_is_that_of_the_cluster_asked_for() -> None:
    watch = Stopwatch()
    image = load(random.Random(1), topics=3, partitions=4, brokers=5, watch=watch)
    topics = image.topics.by_id.values()
    assert [len(topic.partitions) for topic in topics] == [4, 4, 4]
    assert {len(each.replicas) for topic in topics for each in topic.partitions} == {REPLICAS}
    assert set(watch.seconds) == {"encode", "decode", "replay", "apply"}


def test_every_figure_is_measured() -> None:
    figures = measure(topics=2, partitions=3, brokers=4, seed=1)
    assert figures["partitions"] == 6
    assert figures["scattered_delta_ms_cpu_max"] >= figures["scattered_delta_ms_cpu_median"] > 0
    assert {"image_mb", "collection_frozen_ms", "decode_cpu_s", "write_cpu_s"} <= set(figures)


def test_the_last_line_is_one_json_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["metadata_image", "--topics", "2", "--partitions", "2"])
    code = main()
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["partitions"] == 4
    assert code == (0 if last["within_limits"] else 1)


def test_a_cluster_too_small_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["metadata_image", "--brokers", "2"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 64
    assert "3 brokers are needed" in capsys.readouterr().err
