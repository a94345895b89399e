"""Times, seeds and small files as words of a command line."""

import base64
import random
import string
import zlib

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import SEED_MAX
from splitbrain.history.blobs import LONGEST, Blob, is_blob, pack, unpack
from splitbrain.history.durations import positive_seconds_of, seconds_of
from splitbrain.history.reproduce_line import (
    is_other,
    line_of,
    maker_words,
    tool_words,
    without_maker,
)
from splitbrain.history.seeds import read_seeds, seeds_text


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        *((60, 60), (0.5, 0.5), ("60", 60), (" 0.5 ", 0.5), ("500ms", 0.5), ("45s", 45)),
        *(("1m", 60), ("1.5m", 90), ("8h", 28_800), ("1h30m", 5_400), ("1h 30m", 5_400)),
        *(("90 s", 90), ("1h1m1s1ms", 3_661.001), ("100ms", 0.1)),
    ],
)
def test_times_have_units_and_a_number_is_of_seconds(written: str | float, seconds: float) -> None:
    assert seconds_of(written) == seconds


@pytest.mark.parametrize("written", ["", " ", "m", "8 hours", "30s1h", "1m1m", "-1m", "1,5m", "1d"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is no time; write 60, 500ms, 45s, 1m or 1h30m"):
        seconds_of(written)


@pytest.mark.parametrize("written", [0, "0s", -1, "inf", "nan"])
def test_a_budget_is_above_0(written: str | float) -> None:
    with pytest.raises(ValueError, match="is no time above 0"):
        positive_seconds_of(written)


@pytest.mark.parametrize(
    ("written", "seeds"),
    [
        *(("7", range(7, 8)), ("0:20", range(20)), (" 3 : 5 ", range(3, 5))),
        (str(SEED_MAX), range(SEED_MAX, SEED_MAX + 1)),
    ],
)
def test_seeds_are_one_or_a_half_open_range(written: str, seeds: range) -> None:
    assert read_seeds(written) == seeds
    assert read_seeds(seeds_text(seeds)) == seeds


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("lucky", "cannot be 'lucky'"),
        ("1:", "cannot be '1:'"),
        ("1:2:3", "cannot be '1:2:3'"),
        ("9" * 5_000, "cannot be '999"),
        ("5:5", "5:5 is empty: 5 does not come after 5"),
        ("-1", "-1 names a seed outside of 0 to"),
        (str(SEED_MAX + 1), "names a seed outside of 0 to"),
        (f"0:{SEED_MAX + 1}", "names a seed outside of 0 to"),
    ],
)
def test_what_are_no_seeds_is_refused(written: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_seeds(written)


BLOB = Blob("cut.toml", "[[faults]]\nkind = 'kill'  # \u00e9\n", "splitbrain 0.2.0, 4795ac6")


def test_a_small_file_travels_as_one_word_of_any_shell() -> None:
    word = pack(BLOB)
    assert word is not None
    assert is_blob(word)
    assert not set(word) & set(" '\"$`\\#&;|*?()[]{}<>~!/+=\n")
    assert unpack(word) == BLOB


def test_a_word_that_was_cut_or_changed_is_never_taken_for_whole() -> None:
    word = pack(BLOB)
    assert word is not None
    start = len("blob:")
    others = {word[:end] for end in range(start, len(word))}
    others |= {
        word[:place] + ("A" if word[place] != "A" else "B") + word[place + 1 :]
        # The last digit may hold bits that stand for nothing.
        for place in range(start, len(word) - 1)
    }
    others |= {word + "AAAA", word + "%", "blob:eNoDAAAAAAE"}
    for other in others:
        try:
            read = unpack(other)
        except UsageError:
            continue
        assert read == BLOB


def test_a_long_file_is_sent_as_a_file() -> None:
    noise = "".join(random.Random(1).choices(string.printable, k=2 * LONGEST))
    assert pack(Blob("long.toml", noise, "splitbrain 0")) is None


def test_what_would_unpack_to_more_than_any_plan_is_refused() -> None:
    content = b'{"name":"a.toml","made_by":"","text":"' + b"0" * (9 * 1024 * 1024) + b'"}'
    packed = base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")
    with pytest.raises(UsageError, match="is not whole"):
        unpack(f"blob:{packed}")


def test_a_line_says_its_version_and_its_files() -> None:
    line = line_of(["splitbrain", "sim", "--seed", "1"], "splitbrain 0.2.0, 4795ac6")
    assert line == "splitbrain sim --seed 1 --made-by 0.2.0+4795ac6"
    words = ["splitbrain", "test", "--system", "/me/my store.py:Store", "--setting", "url=/a/b"]
    line = line_of(words, "splitbrain 0.2.0", files=["x.patch"])
    assert line == (
        "splitbrain test --system 'my store.py:Store' --setting url=/a/b --made-by 0.2.0  "
        "# takes the files x.patch, my store.py"
    )


def test_a_comment_that_a_shell_left_in_is_read() -> None:
    commented = [
        "sim",
        "--seed",
        "1",
        "#",
        "splitbrain",
        "0.2.0,",
        "4795ac6;",
        "takes",
        "the",
        "file",
        "x.patch",
    ]
    assert without_maker(commented) == (["sim", "--seed", "1"], "splitbrain 0.2.0, 4795ac6")
    assert without_maker(["sim", "#", "mine"]) == (["sim"], None)
    assert without_maker(["sim"]) == (["sim"], None)


def test_a_word_says_who_made_a_line() -> None:
    for tool in (
        "splitbrain 0.2.0, 4795ac6",
        "splitbrain 0.2.0",
        "splitbrain 1.0rc1, 4795ac6-dirty",
    ):
        words = ["sim", "--seed", "1", *maker_words(tool)]
        assert without_maker(words) == (["sim", "--seed", "1"], tool)
        # Another program takes no such word.
        assert line_of(["pytest", "x.py"], tool) == f"pytest x.py  # {tool}"
    for wrong in (["--made-by"], ["--made-by", "a version"], ["--made-by="]):
        with pytest.raises(ValueError, match="--made-by cannot be"):
            without_maker(["sim", *wrong])


def test_versions_differ_as_far_as_both_are_known() -> None:
    commit = "4795ac6" + "0" * 33
    this = tool_words("0.2.0", commit)
    assert this == "splitbrain 0.2.0, 4795ac6"
    assert not is_other(this, this)
    assert not is_other(tool_words("0.2.0", None), this), "an installed one knows no commit"
    assert is_other(tool_words("0.1.0", None), this)
    assert is_other(tool_words("0.2.0", "feedbee" + "0" * 33), this)
    assert is_other(tool_words("0.2.0", f"{commit}-dirty"), this)
    assert not is_other("something else", this)
