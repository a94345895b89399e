"""Words on what the harness itself shows: exit codes, verdicts, its own checkers and invariants.

Invariants of any simulated system are checked by the world and the harness, so no system has them.
"""

from typing import Final

from splitbrain.checker.verdict import ALLOWED
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.explanation import Explanation
from splitbrain.harness.folder.results import (
    EXIT_HARNESS_FAILED,
    EXIT_INVALID,
    EXIT_UNKNOWN,
    EXIT_VALID,
    NODE_CHECKER,
    RECORD_CHECKER,
)
from splitbrain.harness.folder.simulation_record import INVARIANTS as INVARIANTS_CHECKER

_LIVENESS_NEXT: Final = (
    "`splitbrain replay RUN --trace` shows the messages after the last fault; look for a node that "
    "waits for something that nobody sends."
)
_LIVENESS_SOURCE: Final = "Ongaro 2014 (thesis), chapter 9"

EXIT_CODES: Final = (
    Explanation(
        name=str(EXIT_VALID),
        says="Valid: the run proved something, and no checker found a violation. Of `gate` and "
        "`nightly`: green.",
        why="It is the only code that may let a build pass. A run that tested nothing never has "
        "it.",
        next_step="Nothing. `splitbrain gate` holds many runs against thresholds.",
    ),
    Explanation(
        name=str(EXIT_INVALID),
        says="Invalid: a checker has evidence that the system broke a promise. Of `gate`: a "
        "threshold is violated. It wins over every other code.",
        why="It is a proof, not a suspicion: the operations that contradict each other are named.",
        next_step="Read the verdict's sentence and `splitbrain explain` the anomaly that it names; "
        "`splitbrain shrink RUN` makes the run small.",
    ),
    Explanation(
        name=str(EXIT_UNKNOWN),
        says="Unknown: nothing was proven. A checker could not decide in its time, evidence is "
        "missing, the run was vacuous (no fault took effect, too few operations), or it was "
        "interrupted.",
        why="Nothing wrong was found, and nothing was shown to be right. A build that lets it pass "
        "passes untested systems.",
        next_step='The lines under "Vacuous, because" and the checkers\' sentences say what was '
        "missing: a longer run, more faults, a larger budget, or `splitbrain check RUN` for one "
        "that was cut off.",
    ),
    Explanation(
        name=str(EXIT_HARNESS_FAILED),
        says="The harness or its environment failed, or a second Ctrl-C left nothing judged. It "
        "says nothing about the system. Of `nightly` and `suite` also: the night is void, since a "
        "planted bug went unseen.",
        why="A broken machine must not look like a broken system, nor like a good one.",
        next_step="The sentence on standard error names the action, its target and what to do; "
        "`splitbrain doctor` says what this machine can do. What was recorded is judged by "
        "`splitbrain check RUN`.",
    ),
    Explanation(
        name=str(UsageError.exit_code),
        says="The request cannot be understood or carried out: a wrong option, name or file. "
        "Nothing was started and nothing changed.",
        why="It is told apart from a failure, so that a typing error in a script is never taken "
        "for a verdict.",
        next_step="The sentence on standard error says what is wrong and what there is instead; "
        "`splitbrain docs bad-input` lists these sentences.",
    ),
)

VERDICTS: Final = (
    Explanation(
        name="valid",
        says="The checkers looked at enough and found no violation.",
        why="For linearizability it is a proof about this history; for the other checkers it says "
        "that none of their violations is in it. It says nothing about other runs.",
        next_step="Run more seeds: `splitbrain sim --seeds 0:1000`, or a suite by night.",
    ),
    Explanation(
        name="invalid",
        says="A checker has evidence that the system broke a promise.",
        why="One violation stands, whatever else could not be decided.",
        next_step="`splitbrain explain` the anomaly or invariant that the sentence names.",
    ),
    Explanation(
        name="unknown",
        says="A checker could not decide: its time or memory was over, evidence is missing or "
        "damaged, or it crashed.",
        why="It is never taken for valid.",
        next_step="The checker's sentence says what was missing.",
    ),
    Explanation(
        name=ALLOWED,
        says="A checker found only kinds of violations that the system documents, by its adapter.",
        why="A queue that delivers at least once has duplicates: an alarm for each would hide the "
        "losses. They are counted and shown, and the run stays valid.",
        next_step="The summary counts each kind, and plan.json names them as documented; "
        "`splitbrain docs adapters` says how an adapter declares it.",
    ),
    Explanation(
        name="void",
        says="A night in which a planted bug, which must be found, was not.",
        why="What hid an expected violation would have hidden others as well, so the valid runs of "
        "that night prove nothing.",
        next_step="Look at the runs of that bug first: too short, too few faults, or a checker "
        "that became blind. `splitbrain docs suite` tells more.",
    ),
    Explanation(
        name="vacuous",
        says="No checker complains, but the run proves nothing: fewer than half of the faults took "
        "effect, none hit an operation in flight, nothing was acknowledged after the last heal, a "
        "kind of operation has too few successes, or the nodes told nothing of their states.",
        why="A green run in which nothing was tested is worse than a red one: it is trusted.",
        breaks="faults        |== partition ==|   |== kill ==|\n"
        "operations                                         |-- all here --|",
        next_step='The lines under "Vacuous, because" say which of these it was. Run longer, '
        "choose faults that this machine can make (`splitbrain doctor`), or see why clients were "
        "refused.",
    ),
)

CHECKERS: Final = (
    Explanation(
        name=NODE_CHECKER,
        says="No node ends by itself without a fault that explains it, and no node logs what its "
        "system calls a defect.",
        why="A crash, a panic or an assertion is a bug, also where clients noticed nothing.",
        next_step="The violation quotes the node's last words; the whole log is in the run folder "
        "under nodes/.",
    ),
    Explanation(
        name=RECORD_CHECKER,
        says="The evidence itself is whole: no file of the run folder is missing, torn or changed.",
        why="A verdict on half a history may miss the half with the violation, so it is `unknown`.",
        next_step="Its observations name each file and what it lacks.",
    ),
    Explanation(
        name="convergence",
        says="Once every fault was healed the nodes came to hold the same within their patience.",
        why="A cluster that never recovers serves nobody. It is `unknown`, since it may only have "
        "been slow, unless `--recovery-limit` says by when it must have recovered.",
        next_step="Look at which node lagged, and why it did not fetch.",
    ),
    Explanation(
        name=INVARIANTS_CHECKER,
        says="No invariant was violated in a simulated world, at any step.",
        why="Invariants see all nodes and disks at once, so they catch a broken rule before any "
        "client could notice.",
        next_step="`splitbrain explain INV-09` explains the one that the sentence names; "
        "`splitbrain docs invariants` lists all.",
    ),
)

#: Their ids stand as numbers here, for the modules that check them load a whole world.
INVARIANTS: Final = (
    Explanation(
        name="INV-30",
        says="Virtual time goes on: the number of steps within one instant is bounded.",
        why="A node that answers its own event with another one at the same moment, for ever, "
        "would burn a processor and serve nobody.",
        breaks="4,180.000 ms  n2  timer fires, arms itself for now\n"
        "4,180.000 ms  n2  timer fires, arms itself for now\n"
        "4,180.000 ms  n2  ... and no later moment ever comes",
        next_step="`splitbrain replay RUN --trace` ends with the events that follow each other.",
        source="splitbrain",
    ),
    Explanation(
        name="INV-31",
        says="Nothing raises but what says why: an exception out of a node or out of the world is "
        "a finding.",
        why="On a machine the same exception ends the process, at a moment that nobody chose.",
        breaks="n1 --- Fetch, offset -1 --->  n2   KeyError: -1, out of the node's own code\n"
        "                                   on a machine: n2 is gone, by one message",
        next_step="The violation has the exception's type and place; `splitbrain replay RUN "
        "--trace` shows the event that led to it.",
        source="splitbrain",
    ),
    Explanation(
        name="INV-40",
        says="Once faults are over, an operation that is invoked then is acknowledged, and a "
        "record that was proposed then is committed.",
        why="A cluster that is safe because it does nothing is useless: after the last heal it "
        "must serve again.",
        breaks="faults      |== partition ==|  healed\n"
        "client                             |-- write 9 -------------- no answer ...\n"
        "nodes       all up, all connected; nobody leads",
        next_step=_LIVENESS_NEXT,
        source=_LIVENESS_SOURCE,
    ),
    Explanation(
        name="INV-41",
        says="Once faults are over, epochs come to rest.",
        why="Each new epoch interrupts every client. Elections that never end are an outage with "
        "all nodes up.",
        breaks="epoch 5: n1   epoch 6: n3   epoch 7: n1   epoch 8: n3   ...\n"
        "nothing is broken any more, and nobody leads for long",
        next_step=_LIVENESS_NEXT,
        source=_LIVENESS_SOURCE,
    ),
    Explanation(
        name="INV-42",
        says="Where everything healed, all nodes hold and have applied the same.",
        why="A node that stays behind for ever is not the copy that a majority counts on.",
        breaks="all healed, nothing is written any more\n"
        "n1   log 0 .. 90   applied 90\n"
        "n2   log 0 .. 90   applied 90\n"
        "n3   log 0 .. 61   applied 58   asks nobody for the rest",
        next_step=_LIVENESS_NEXT,
        source=_LIVENESS_SOURCE,
    ),
)
