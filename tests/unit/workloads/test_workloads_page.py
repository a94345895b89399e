"""docs/workloads.md tells of every workload its judges and its options."""

import re
from pathlib import Path

from splitbrain.workloads.workload import workload, workload_names

PAGE = Path(__file__).parents[3] / "docs" / "workloads.md"


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_tells_of_each_workload_what_the_code_says() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    assert sorted(words(row[0])[0] for row in rows) == [*workload_names()]
    for name, _, judges, options in rows:
        made = workload(*words(name), seed=1, slots=4, readers=frozenset(), options={})
        assert words(judges) == [*made.checkers]
        assert {*made.options()} <= {*words(options)}
