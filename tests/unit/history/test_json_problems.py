"""What the decoder refuses is told in our words, and what it says anew is not hidden."""

import msgspec
import pytest

from splitbrain.history.json_problems import TOO_DEEP, in_words


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    at: int


class Outer(msgspec.Struct):
    faults: list[Inner]
    kind: int | str = 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "it ends in the middle of a value"),
        ("what", "it is no JSON: invalid character at byte 0"),
        ("{}", "it has no field 'faults'"),
        ("[]", "it must be an object, not a list"),
        ('{"faults": [{"at": 1}, {}]}', "faults[1] has no field 'at'"),
        ('{"faults": [{"at": 1, "b": 2}]}', "faults[0] has an unknown field 'b'"),
        ('{"faults": [{"at": 1.5}]}', "faults[0].at must be a whole number, not a number"),
        ('{"faults": [], "kind": null}', "kind must be a whole number or text, not null"),
        ('{"faults": [{"at": 1e999}]}', "it holds a number that is too large"),
        ('{"faults": [], "other": ' + "[" * 100_000, TOO_DEEP),
    ],
)
def test_a_refusal_is_a_clause_of_ours(text: str, says: str) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError)) as caught:
        msgspec.json.decode(text, type=Outer)
    assert in_words(caught.value) == says


def test_bytes_that_are_no_text_are_named() -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        b"\xff".decode()
    assert in_words(caught.value) == "it is not UTF-8: it holds the byte 0xff"


def test_what_is_not_known_passes_through() -> None:
    assert in_words(ValueError("the plan has schema 99")) == "the plan has schema 99"
