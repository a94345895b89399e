"""Names of what can decide a part, and why each may be trusted."""

from typing import Final

EXACT: Final = "depth-first search with memo"
SWEEP: Final = "sweep of all configurations, rank by rank"
REPEATED: Final = "depth-first search with memo, open operations repeatable"
REACHABLE: Final = "reachable states, every call repeatable"
ZONES: Final = "zones"
GUIDED: Final = "order of positions"

#: What had to hold for it to decide, by name.
PRECONDITIONS: Final = {
    EXACT: "none",
    SWEEP: "no operation without answer matters; at most 62 open at once",
    REPEATED: "no order even if open operations happen any number of times; finitely many states",
    REACHABLE: "an answer that no sequence of the calls invoked by then leads to",
    GUIDED: "the order of the positions that the system returned satisfies the model",
    ZONES: "one register, reads and writes only, every value written once",
}
