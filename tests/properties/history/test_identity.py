"""Values of a history are equal exactly if their texts are, and both ways of reading agree."""

from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from splitbrain.checker.models.model import freeze
from splitbrain.history.column_reader import read_columns
from splitbrain.history.edn_values import edn_text
from splitbrain.history.identity import is_value, key_text
from splitbrain.history.importers import load
from splitbrain.history.records import PairedOperation

JSON = ["0", "1", "-0.0", "1.0", "2e0", "true", "false", "null", "[]", "{}", '"1"', '":a"', '"a"']
JSON += ["[1]", "[true]", "[1.0]", "[0, [false]]", '{"a": 1}', '{"a": true}', '[["a", 1]]']
EDN = ["0", "1", "-0.0", "1.0", "1.5", "true", "false", "nil", "[]", '"1"', '":a"', '"a"', ":a"]
EDN += ["[1]", "[true]", "[1.0]", "[:a 1]", '["a" 1]', ":b", '"b"', "-3"]
KEYS = ["a", "1", ":x", "true", "[1]", "'a", "-5", "1/2", "é"]
HISTORIES = 250


def lines_of(random: Random, *, is_edn: bool) -> list[str]:
    """Whole operations of one process, with few values, so that equal ones meet."""
    values = random.sample(EDN if is_edn else JSON, random.randint(1, 6))
    keys = random.sample(KEYS, 3)
    lines: list[str] = []
    for _ in range(random.randint(1, 12)):
        f, key = random.choice(["write", "read", "cas", "contains"]), random.choice(keys)
        value = answer = random.choice(values)
        if f == "cas":
            value = answer = f"[{value}, {random.choice(values)}]"
            if not is_edn:
                answer = f"{value[:-1]}, {random.choice(['true', 'false'])}]"
        elif f == "read":
            value = "nil" if is_edn else "null"
        elif f == "contains":
            answer = random.choice(["true", "false"])
        for type_, told in (("invoke", value), ("ok", answer)):
            if is_edn:
                lines.append(
                    f'{{:process 0, :type :{type_}, :f :{f}, :key "{key}", :value {told}}}'
                )
            else:
                place = f'"index": {len(lines)}, "time": {len(lines)}, "process": 0'
                lines.append(
                    f'{{{place}, "type": "{type_}", "f": "{f}", "key": "{key}", "value": {told}}}'
                )
    return lines


def told(operations: list[PairedOperation]) -> list[tuple[str | None, ...]]:
    return [(o.f, o.key, edn_text(o.argument), edn_text(o.result), o.type) for o in operations]


def values_in(operations: list[PairedOperation]) -> list[Any]:
    answers = [o.result for o in operations if is_value(o.f, o.result)]
    return [*(o.argument for o in operations), *answers]


@pytest.mark.parametrize("is_edn", [False, True])
def test_values_are_equal_exactly_if_their_texts_are(tmp_path: Path, is_edn: bool) -> None:
    random = Random(f"identity {is_edn}")
    path = tmp_path / ("h.edn" if is_edn else "h.jsonl")
    as_columns = 0
    for _ in range(HISTORIES):
        path.write_text("\n".join([*lines_of(random, is_edn=is_edn), ""]))
        loaded = load(path)
        values = [*map(freeze, values_in(loaded.operations))]
        texts = [*map(edn_text, values_in(loaded.operations))]
        for (one, text), (other, other_text) in product(zip(values, texts, strict=True), repeat=2):
            assert (one == other) == (text == other_text), (one, other)
            assert one != other or hash(one) == hash(other)
        columns = read_columns(path)
        if columns is not None:
            as_columns += 1
            assert told(columns.operations()) == told(loaded.operations)
            assert columns.mixes_numbers == loaded.mixes_numbers
    assert as_columns > HISTORIES // 5


def test_different_keys_have_different_texts() -> None:
    keys: list[Any] = [*KEYS, '"1"', "1.0", "1.5", "nil", "", "#inst", "{}", "\\a", "True", "1M"]
    keys += [1, 1.5, True, False, [1], ["1"], [True], [], {}, {"a": 1}, [["a", 1]], [None], -5]
    texts = [key_text(key) for key in keys]
    assert len(set(texts)) == len(keys)
    assert key_text(1.0) == key_text(1) == "1"
    assert key_text(key_text("1")) != key_text("1")
    assert [key_text(key) for key in ("a", "r0", "user-1", "é", "", None)] == [
        *("a", "r0", "user-1", "é", ""),
        None,
    ]
