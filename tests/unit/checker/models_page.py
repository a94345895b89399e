"""Writes ``docs/models-and-checkers.md``: ``python -m tests.unit.checker.models_page``.

The tables come from the models and the registry themselves; a test holds page and code equal.
"""

from pathlib import Path

from splitbrain.checker.anomalies.names import MEANINGS, NAMES
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.names import KINDS, PROMISES, evidence_needed

PAGE = Path(__file__).parents[3] / "docs" / "models-and-checkers.md"
OWN_MODEL = PAGE.parent / "models" / "max_register.py"

_HEAD = """\
# Models and checkers

Made by `python -m tests.unit.checker.models_page` from the code; a test holds the two equal.

`splitbrain check FILE --model NAME` judges a history of any origin by a model or a checker that
needs no more than a history. A run names its checkers in its plan; there, a model is
`linearizability:NAME`.

## Models

A model is a sequential specification. `valid` is a proof: there is one order of all completed
operations and some of the open ones (`info`) that is true to real time and that the model allows.
`invalid` is one too: there is none. Within a history each `key` is an object of its own, and keys
are judged apart, because every one of these models declares it.

| model | what it is | operations | open operations that are left out |
|---|---|---|---|
"""

_BETWEEN = """
An open operation may have happened at any time since its invocation, or never. The last column says
which are taken to never have happened: those that no completed answer can have needed. A refused
compare-and-set, a full queue, a missing element and a counter's value are answers too.

How sure that is: for every model the search is compared with an oracle that tries every order, on
small histories drawn from linearization points of which about half are spoiled in one answer
(`tests/unit/checker`); each rule for open operations has a bolder mutant that the oracle refutes.
A large round is

```
SPLITBRAIN_BRUTE_FORCE_HISTORIES=100000 .venv/bin/python -m pytest \\
    tests/unit/checker/linearizability/methods/test_search_against_brute_force.py \\
    tests/unit/checker/models/test_droppable_rules.py \\
    -k "agrees_with_brute_force or never_changes_the_verdict" --timeout 3600
```

### Operations and their answers

| operation | argument | answer of an `ok` |
|---|---|---|
| `read` | null | the value, null for none; of a set a list; of a bank `{account: balance}` |
| `write`, `put`, `append`, `add`, `remove` | the value or element | the same, or nothing |
| `write` of `fenced-register` | `[token, value]` | `[token, value, accepted]` |
| the same, judged by `fencing` | or `[null, value]`: the client knows the token | the same |
| `cas` | `[expected, new]` | `[expected, new, succeeded]` |
| `get`, `contains` | null; the element | the text; true or false |
| `txn` | a list of `["r", name, null]` and `["w", name, value]` | the same, reads filled in |
| the same of `list-append` | `["r", key, null]` and `["append", key, element]` | reads are lists |
| `insert`, `delete` in a `txn` of `rows` | group and id | null for the id of none to delete |
| `range` within it | group and null | a list of ids |
| `add`, `add-and-get` of a counter | a number | nothing, or the same; the value after |
| `enqueue`, `push` | the element, never null | false where a queue with a capacity is full |
| `dequeue`, `pop` | null | the element, null where there is none |
| `insert` into a `priority-queue` | a whole number | the same, or nothing |
| `delete-min` | null | the least element, null where there is none |
| `drain` (`queue-totals`) | null | a list of all that it took until the queue was empty |
| `acquire`, `release` | who asks, or null | false where refused; an `acquire` may tell its token |
| `generate` | null | the id |
| `create` | the number of partitions | `[number, created]` |
| `delete`, `describe` of topics | null | whether there was one; its number, null for none |

A refusal is an answer: it was `ok` and saw why not. What certainly did not happen for another
reason is a `fail`, and is removed.

### A model of one's own

`splitbrain check FILE --model path/to/file.py:Name` takes any model. The file is run as it is, also
in the workers that judge; this one is `docs/models/max_register.py`:

```python
@OWN@```

Values can be compared with `==`: where a history holds `true` and `1`, or `:x` and `"x"`, `step` is
given values that are not equal (`docs/decisions/0025-identity-of-keys-and-values.md`).

A state must be hashable and a step must change nothing. Where a call may lead to several states,
derive from `NondeterministicModel` and write `steps`. The rest has safe defaults and is told in
`checker/models/model.py`: `is_pure`, `droppable`, `folding`, `bounded_states`, `partition`,
`problem_with`, `answer_of`.

## Checkers

These look for certain kinds of violations, in time linear in what was read (times log n where
things are sorted; `python -m bench.set_full` and `python -m bench.outcome_checkers` measure it).
`valid` says that none of these was found, and no more.

`set-full`, `queue-totals`, `counter-bounds` and `bank` call nothing lost that a member may still
hold: as long as one that votes has not answered a final read, what the others lack is `unknown`,
and the member is named; once all have answered without it, it is `invalid`. Where one answer speaks
for all, one is enough: the system's adapter says so (`reads_speak_for`, in `plan.json`): `cluster`
where reads go through a quorum, `converged` where all members are alike once the nodes have come to
agree, else `member`. Of a bare history nobody knows that: with final reads in it, each node that
answered anything counts; without them, or without nodes, it is judged by its reads alone.

A checker whose evidence the system does not declare is not run. It changes no verdict, since a
system that can show no more must be able to be valid, and it is named beside the verdict: in its
sentence, as `not run` in every list of checkers, and under `not_run` in `results.json`. A run that
no checker can judge is `unknown`. `split-brain` judges every run that has logs, asked for or not.

That the nodes did not come to agree within their patience, though every fault was healed, is a
finding of its own: `convergence`, which is `unknown`, since they may only have been slow. With
`--recovery-limit 90` they promise to agree within 90 s of the heal: the harness waits that long at
least, and later or never is `invalid` (kind `not-recovered`). In a simulated cluster INV-40 to
INV-42 demand it, each within that time by the cluster's own clock.

Kinds of violations that a system documents, by its adapter (`allowed`, in `plan.json`), are counted
and shown, and are no violations of its runs ([adapters](adapters.md#documented-anomalies)). Of
linearizability the kind is `not-linearizable`. A checker of a package respects them itself.

| checker | what it holds a run to | kinds of violations | needs besides the history |
|---|---|---|---|
"""


_NAMES = """
## Names of anomalies

A violation has the name of what was observed, never of why. One of linearizability gets it from the
operations that contradict each other (`checker/anomalies`): a rule must prove the name from what
was acknowledged, answered and certainly failed, by real time alone. A read that was open together
with the write is no stale read, a write of unknown outcome that is read later is no dirty read, and
a write counts as lost only where more than one replica, a final read or a later change lacks it.
Where no rule proves one, or where the model is a user's own, it stays "not linearizable".

| name | what was observed |
|---|---|
"""

_NAMES_BY_KIND = """
The kinds of the other checkers have these names:

| checker | kind | name |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    models = [_model_row(model) for model in MODELS.values()]
    checkers = [_checker_row(name) for name in PROMISES]
    between = _BETWEEN.replace("@OWN@", OWN_MODEL.read_text(encoding="utf-8"))
    names = [f"| {name} | {meaning} |" for name, meaning in MEANINGS.items()]
    kinds = [
        f"| `{checker}` | `{kind}` | {name} |"
        for checker, known in NAMES.items()
        for kind, name in known.items()
    ]
    rows = (models, between), (checkers, _NAMES), (names, _NAMES_BY_KIND), (kinds, "")
    return _HEAD + "".join("\n".join(table) + "\n" + following for table, following in rows)


def _model_row(model: Model) -> str:
    dropped = _first_sentences(type(model).droppable.__doc__)
    operations = ", ".join(f"`{f}`" for f in sorted(model.functions))
    what = _first_sentences(type(model).__doc__)
    return f"| `{model.name}` | {what} | {operations} | {dropped} |"


def _checker_row(name: str) -> str:
    needs = " or ".join(sorted(evidence_needed(name), reverse=True)) or "nothing"
    kinds = ", ".join(f"`{kind}`" for kind in KINDS[name.partition(":")[0]])
    return f"| `{name}` | {PROMISES[name]} | {kinds} | {needs} |"


def _first_sentences(docstring: str | None) -> str:
    first = (docstring or "").partition("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
