"""Topic names and topic ids."""

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.controller.basis.topic_names import check_topic_name, colliding_topic
from splitbrain.nodes.controller.topics.create_topics import new_topic_id
from splitbrain.nodes.wire.errors import ApiError

LEGAL = st.text("ab._-9", min_size=1, max_size=8)


@pytest.mark.parametrize("name", ["a", "A-9._", "x" * 249, "...", "_"])
def test_a_legal_name_passes(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        *(
            (
                name,
                (
                    f"'{name}' contains one or more characters other than ASCII alphanumerics, "
                    "'.', '_' and '-'"
                ),
            )
            for name in ("a b", "a/b", "ä", "a\n", "٣")
        ),
    ],
)
def test_an_illegal_name_is_refused(name: str, reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_topic_name(name)
    assert refused.value.code is ApiError.INVALID_TOPIC_EXCEPTION
    assert refused.value.message == f"Topic name is invalid: {reason}"


@given(LEGAL, st.lists(LEGAL, max_size=40))
def test_names_collide_that_differ_only_in_dots_and_underscores(
    name: str, known: list[str]
) -> None:
    alike = [
        each
        for each in known
        if each.replace(".", "_") == name.replace(".", "_") and ("." in name or "_" in name)
    ]
    assert colliding_topic(name, dict.fromkeys(known, "")) == min(alike, default=None)


def test_a_topic_id_is_a_random_uuid_that_no_tool_takes_for_an_option() -> None:
    source = random.Random(5)
    drawn = [new_topic_id(source) for _ in range(2_000)]
    assert len(set(drawn)) == len(drawn)
    for topic_id in drawn:
        assert len(topic_id) == 32
        assert topic_id[12] == "4"
        assert topic_id[16] in "89ab"
        assert not base64.urlsafe_b64encode(bytes.fromhex(topic_id)).startswith(b"-")
    # All other bits are drawn: none is the same in all ids.
    values = [int(topic_id, 16) for topic_id in drawn]
    never = ~0
    always = ~0
    for value in values:
        never &= ~value
        always &= value
    fixed = (never | always) & (1 << 128) - 1
    assert fixed == 0xF << 76 | 0b11 << 62


def test_a_topic_id_that_is_taken_is_drawn_again() -> None:
    first = new_topic_id(random.Random(5))
    assert new_topic_id(random.Random(5), {first}) != first
