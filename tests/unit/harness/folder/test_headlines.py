"""The headline of a run: short, whole clauses, honest about number."""

from splitbrain.contracts.words import counted
from splitbrain.harness.folder.results import first_clauses


def test_a_long_reason_is_cut_at_the_end_of_a_clause() -> None:
    reason = (
        "10 of 16 parts cannot be ordered: read -> 2 by process 1 on n1 (index 1392) of key r1-1"
        " has no place: every order of what came before leaves 1 or 4; the answer could come from"
        " write 2 (index 1232, process 7)."
    )
    assert first_clauses(reason) == (
        "10 of 16 parts cannot be ordered: read -> 2 by process 1 on n1 (index 1392) of key r1-1"
        " has no place."
    )


def test_a_short_reason_and_one_without_clauses_stay_whole() -> None:
    assert first_clauses("Two leaders in epoch 3: n1; n2.") == "Two leaders in epoch 3: n1; n2."
    endless = "word " * 60
    assert first_clauses(endless) == endless


def test_a_headline_never_ends_before_it_says_what_happened() -> None:
    where = "INV-40 was violated 158,825.000 ms into the run, in step 44,043"
    what = "no write was acknowledged after all had healed"
    nodes = " and ".join(f"n{number}" for number in range(1, 16))
    assert first_clauses(f"{where}: {what} ({nodes}).") == f"{where}: {what} ({nodes})."
    more = "; what else is known of it stands with the checker that found it, in full"
    assert first_clauses(f"{where}: {what}{more}.") == f"{where}: {what}."


def test_one_fault_is_no_faults() -> None:
    assert (counted(1, "fault"), counted(0, "fault")) == ("1 fault", "0 faults")
