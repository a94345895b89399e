"""Random pipelines: none that keeps its promise is accused, and each that errs is."""

import random
from typing import Any

import pytest

from splitbrain.checker import exactly_once
from splitbrain.checker.verdict import Verdict
from tests.unit.checker.transform_histories import Written, kinds_and_verdict


class Pipeline:
    """A system that keeps its promise, but for one thing that it does wrong, if any.

    It shares nothing with the checker but the form of histories.
    """

    def __init__(self, seed: int, defect: str | None) -> None:
        self.random, self.defect, self.is_defective = random.Random(seed), defect, False
        self.written = Written()
        self.inputs: dict[str, dict[int, int]] = {"0": {}, "1": {}}
        self.outputs: dict[str, dict[int, Any]] = {"2": {}, "3": {}}
        self.ends: dict[str, int] = dict.fromkeys("0123", 0)
        self.committed = {"0": 0, "1": 0}

    def run(self) -> "Pipeline":
        for value in range(self.random.randint(8, 30)):
            log = self.random.choice("01")
            if self.random.random() < 0.6:
                self._send(log, value)
            else:
                self._transform(log)
        for log, records in {**self.inputs, **self.outputs}.items():
            self.written.shown(log, records, end=self.ends[log])
        self.written.committed(of_0=self.committed["0"], of_1=self.committed["1"] or None)
        return self

    def _append(self, log: str, records: dict[int, Any], value: Any) -> int:
        # Markers and aborted records take offsets, too.
        offset = self.ends[log] + self.random.randint(0, 2)
        records[offset], self.ends[log] = value, offset + 1
        return offset

    def _send(self, log: str, value: int) -> None:
        offset = self._append(log, self.inputs[log], value)
        if self._strikes("input-lost"):
            del self.inputs[log][offset]
        self.written.send(log, offset, value)

    def _transform(self, log: str) -> None:
        waiting = {o: v for o, v in self.inputs[log].items() if o >= self.committed[log]}
        taken = dict(sorted(waiting.items())[: self.random.randint(1, 3)])
        if not taken:
            return
        if self.random.random() < 0.2:
            self.written.transform(log, taken, "abandon")
            return
        for number, (offset, value) in enumerate(taken.items()):
            if number == 0 and self._strikes("output-lost"):
                continue
            output = self.random.choice("23")
            for _ in range(2 if number == 0 and self._strikes("output-twice") else 1):
                self._append(output, self.outputs[output], [log, offset, value])
        if not self._strikes("offset-lost"):
            self.committed[log] = max(taken) + 1
        if self.random.random() < 0.8:
            self.written.transform(log, taken)
        else:
            self.written.add("transform", log, None, "info")

    def _strikes(self, defect: str) -> bool:
        strikes = self.defect == defect and not self.is_defective and self.random.random() < 0.5
        self.is_defective = self.is_defective or strikes
        return strikes


@pytest.mark.parametrize(
    ("defect", "kinds"),
    [
        (None, set()),
        ("input-lost", {"lost-input"}),
        ("output-lost", {"lost-output"}),
        ("output-twice", {"duplicated-output"}),
        # The next transaction does the same again, so that there may be two outputs besides.
        ("offset-lost", {"output-without-offset", "duplicated-output"}),
    ],
)
def test_random_pipelines_are_judged_by_what_they_did(defect: str | None, kinds: set[str]) -> None:
    struck = 0
    for seed in range(400):
        pipeline = Pipeline(seed, defect).run()
        found, verdict = kinds_and_verdict(exactly_once.check, pipeline.written.operations)
        struck += pipeline.is_defective
        if pipeline.is_defective:
            assert verdict is Verdict.INVALID, seed
            assert found & kinds, (seed, found)
        else:
            assert verdict is not Verdict.INVALID, (seed, found)
    assert struck > 200 or defect is None
