"""The glossary and the code use the same words."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.fault import FaultPhase
from splitbrain.harness.folder.coverage_cells import EpochPhase, Role
from splitbrain.history.functions import Effect
from splitbrain.history.records import EventType
from splitbrain.history.timeline_records import MessageFate
from tidy.tree import project_files

ROOT = Path(__file__).parents[3]
OUTSIDE = {"tests", "bench", "tidy", "docker", "docs", "splitbrain"}
MODULES = [
    path
    for path in project_files(ROOT)
    if path.suffix == ".py" and path.parts[0] not in OUTSIDE and (ROOT / path).is_file()
]
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ", 1)]
    for line in (ROOT / "GLOSSARY.md").read_text(encoding="utf-8").splitlines()[6:]
]
WORDS = [word.strip() for words, _ in ROWS for word in words.split(",")]
#: Words of rooms and of types that mean here what they mean to everybody, or to Kafka and Raft.
EVERYDAY = """
across actual address analysis answer basis broker budget change changed class cli client clock
committed completion condition config connection console contract contradiction count crashed data
deployment disk docker duplicate end error etcd export failure file folder harness header history
image job judge kafka key kraft latency leader linearizability load local loss machine mariadb
measured memory message met metadata method mount name named nats network nightly node number
operation option overlap partition patched point postgresql power process program quality quorum
rabbitmq random record recovery redis register replaying report request role route row run runtime
sample selected server service shape shown simulated simulation source span spark spec stale start
storage subject system testing throughput timer topic transport trend unavailability unlimited usage
view workload zookeeper
"""


def is_known(word: str) -> bool:
    """Whether a word is everyday, or one of the glossary's, alone or within one of its terms."""
    terms = {part for term in WORDS for part in re.split(r"[ -]", term.lower())}
    singular = word.replace("ies", "y").removesuffix("s")
    return bool({word, singular} & {*terms, *EVERYDAY.split()})


def test_rows_are_in_the_order_of_the_alphabet() -> None:
    first = [words.partition(",")[0].lower() for words, _ in ROWS]
    assert first == sorted(first)
    assert len(WORDS) == len(set(WORDS))


def test_each_room_is_an_everyday_word_or_has_a_row() -> None:
    rooms = {part for path in MODULES for part in path.parent.parts}
    assert not [room for room in sorted(rooms) if not all(map(is_known, room.split("_")))]


def test_each_public_type_of_contracts_is_made_of_known_words() -> None:
    found: list[str] = []
    for path in MODULES:
        if path.parts[0] == "contracts":
            found += re.findall(r"^class ([A-Z]\w+)", (ROOT / path).read_text(), re.MULTILINE)
    assert len(found) > 50
    words = {name: re.findall(r"[A-Z][a-z]+", name) for name in found}
    assert not [
        name for name, parts in words.items() if not all(map(is_known, map(str.lower, parts)))
    ]


@pytest.mark.parametrize(
    "category",
    [Effect, EpochPhase, EventType, FaultPhase, MessageFate, Role, list(Verdict)],
    ids=str,
)
def test_each_value_of_a_category_is_named(category: Any) -> None:
    text = "\n".join(f"{words} {meaning}" for words, meaning in ROWS)
    for value in get_args(category) or [verdict.value for verdict in category]:
        assert re.search(rf"(?<![\w-]){value}(?![\w-])", text), value


def test_no_row_names_what_occurs_nowhere() -> None:
    text = "\n".join((ROOT / path).read_text(encoding="utf-8") for path in MODULES).lower()
    for word in WORDS:
        assert re.search(re.sub("[ -]", r"[\\s_-]*", word.lower()), text), word
