"""Sweeps that cannot be meant, simulated runs that cannot be replayed.

The run folder lies there already: no simulation is run for a table.
"""

import json
from collections.abc import Callable

import msgspec

from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.runtime import SIMULATED
from splitbrain.contracts.scenario import SEED_MAX, Scenario
from splitbrain.harness.folder.simulation_record import DRAWN, SimulationRecord, encode_record
from splitbrain.history.run_folder import RunFolder
from splitbrain.systems.registry import names as system_names
from tests.bad_input.cause import Arrange, Cause, Chapter, file, impossible
from tests.bad_input.run_causes import run
from tests.synthetic_runs import seal

REPLAY = "replay runs/sim/one"
WRITE_RANGE = "Write --seeds FIRST:END, such as 0:1000; END itself is not run"
READ_AGAIN = "Replay a run made by this version"
SCENARIO = "{folder}/runs/sim/one/scenario.json"
NO_SCENARIO = f"{SCENARIO} is no scenario that can be run"
CORRECT = "Correct that, or take the scenario of another run"


def simulated(
    damage: Callable[[RunFolder], object] = lambda _folder: None,
    *,
    place: str = "sim",
    failed_by: tuple[str, ...] | None = None,
    **fields: object,
) -> Arrange:
    """A simulated run of another day lies there, with these fields of its scenario, damaged."""

    def make(folder: RunFolder) -> None:
        plan = json.loads(folder.plan.read_bytes())
        folder.plan.write_text(json.dumps({**plan, "runtime": SIMULATED, "nemesis": DRAWN}))
        scenario = msgspec.to_builtins(Scenario(system="kraft", seed=7))
        folder.scenario.write_text(json.dumps({**scenario, **fields}))
        record = SimulationRecord(
            trace_hash="0" * 32, steps=100, virtual_us=1_000, failed_by=failed_by
        )
        folder.simulation.write_bytes(encode_record(record))
        seal(folder)
        damage(folder)

    return run(make, place)


def waiting_for(happening: str) -> list[object]:
    fault = Fault(0, "kill", "there", 0, 1000, draw=1, when=Awaited(happening))
    return [msgspec.to_builtins(fault)]


SWEEPS = Chapter(
    "Sweeps",
    (
        Cause(
            "sim-no-seeds",
            "a sweep of nothing",
            "sim",
            "--seeds is missing. Write --seeds FIRST:END, such as --seeds 0:1000, or name one "
            "world with --scenario FILE",
        ),
        Cause(
            "sim-seeds-and-scenario",
            "seeds and a world beside them",
            "sim --seeds 0:5 --scenario scenario.json",
            "--seeds does not fit --scenario, which is one world and says all of it. Leave one "
            "of them out",
        ),
        Cause(
            "sim-no-scenario",
            "a world that is not there",
            "sim --scenario gone.json",
            "there is no file gone.json. Name the scenario.json of a run, as it is or edited",
        ),
        Cause(
            "sim-one-number",
            "a seed for a range",
            "sim --seeds 5",
            f"--seeds cannot be '5'. {WRITE_RANGE}",
            as_process=True,
        ),
        Cause(
            "sim-words",
            "a range in words",
            "sim --seeds all:none",
            f"--seeds cannot be 'all:none'. {WRITE_RANGE}",
        ),
        Cause(
            "sim-backwards",
            "a range that goes back",
            "sim --seeds 9:3",
            f"--seeds 9:3 is empty: 3 does not come after 9. {WRITE_RANGE}",
        ),
        Cause(
            "sim-empty",
            "a range without a seed",
            "sim --seeds 5:5",
            f"--seeds 5:5 is empty: 5 does not come after 5. {WRITE_RANGE}",
        ),
        Cause(
            "sim-negative",
            "a range that begins below 0",
            "sim --seeds -3:5",
            f"--seeds -3:5 names a seed outside of 0 to {SEED_MAX:,}. {WRITE_RANGE}",
        ),
        Cause(
            "sim-huge",
            "a range beyond 64 bits",
            f"sim --seeds 0:{SEED_MAX + 1}",
            f"--seeds 0:{SEED_MAX + 1} names a seed outside of 0 to {SEED_MAX:,}. {WRITE_RANGE}",
        ),
        Cause(
            "sim-seeds-twice",
            "two ranges",
            "sim --seeds 0:5 --seeds 5:9",
            "--seeds is given twice. Give it once",
        ),
        *impossible(
            "sim --seeds 0:5 --jobs",
            "Choose a number between 1 and 256",
            ("sim-jobs-zero", "a sweep by nobody", "0"),
            ("sim-jobs-many", "more processes than any machine has use for", "5000"),
        ),
        Cause(
            "sim-jobs-word",
            "processes in words",
            "sim --seeds 0:5 --jobs all",
            "--jobs cannot be 'all'. Choose a whole number",
        ),
        *impossible(
            "sim --seeds 0:5 --check-share",
            "Choose a number between 0 and 1",
            ("sim-share-large", "more seeds run twice than there are", "2"),
            ("sim-share-nan", "a share that is no number", "nan"),
        ),
        Cause(
            "sim-keep-negative",
            "fewer folders than none",
            "sim --seeds 0:5 --keep -1",
            "--keep cannot be -1. Choose a number of at least 0",
        ),
        Cause(
            "sim-unknown-system",
            "no such system to simulate",
            "sim --seeds 0:5 --system krafft",
            "there is no system called 'krafft'. Did you mean 'kraft'?",
        ),
        Cause(
            "sim-no-simulated-nodes",
            "a system that only runs in containers",
            "sim --seeds 0:5 --system redis",
            "the system 'redis' has no simulated nodes. Run it in containers: `splitbrain test "
            "--system redis --runtime docker`",
        ),
        Cause(
            "sim-unknown-bug",
            "no such planted bug to simulate",
            "sim --seeds 0:5 --bug stale-leader-read",
            "the system 'kraft' has no planted bug 'stale-leader-read'. Did you mean "
            "'stale-leader-reads'?",
        ),
        Cause(
            "sim-bug-twice",
            "a planted bug twice over",
            "sim --seeds 0:5 --bug stale-leader-reads --bug stale-leader-reads",
            "the bug 'stale-leader-reads' is named twice. Name each --bug once",
        ),
        Cause(
            "sim-runs-folder-is-file",
            "a file for the folder of failures",
            "sim --seeds 0:5 --runs-folder taken",
            "the folder of runs 'taken' is no folder. Choose another place with --runs-folder",
            arrange=file("taken", ""),
        ),
        Cause(
            "sim-runtime",
            "a runtime for a sweep",
            "sim --seeds 0:5 --runtime docker",
            "`splitbrain sim` has no option --runtime. `splitbrain sim --help` shows what there is",
        ),
        Cause(
            "beyond-promise-in-containers",
            "a test beyond the promise",
            "test --beyond-promise",
            "`splitbrain test` has no option --beyond-promise. `splitbrain test --help` shows "
            "what there is",
        ),
    ),
)

SIMULATED_RUNS = Chapter(
    "Simulated runs",
    (
        Cause(
            "simulated-other-system",
            "a simulated test of a system that only runs in containers",
            "test --runtime simulated --system redis --nemesis none",
            "the system 'redis' has no simulated nodes. Run it in containers: `splitbrain test "
            "--system redis --runtime docker`",
        ),
        Cause(
            "simulated-many-clients",
            "more clients than one thread serves",
            "test --runtime simulated --concurrency 5000",
            "could not simulate the clients (--concurrency 5000): one thread does the work of "
            "at most 1,000 of them. Choose fewer, or another --runtime",
            code=3,
        ),
        Cause(
            "simulated-long",
            "more operations than fit into memory",
            "test --runtime simulated --time-limit 600000 --rate 1000",
            "could not simulate the load (--rate 1000 for --time-limit 600000): a simulated "
            "run is held in memory, and takes at most 5,000,000 operations. Choose a lower "
            "rate, less time, or another --runtime",
            code=3,
        ),
        Cause(
            "scenario-missing",
            "a simulated run without its scenario",
            REPLAY,
            "{folder}/runs/sim/one/scenario.json cannot be read: No such file or directory. "
            f"{READ_AGAIN}",
            arrange=simulated(lambda folder: folder.scenario.unlink()),
        ),
        Cause(
            "scenario-broken",
            "a scenario that ends too early",
            REPLAY,
            f"{NO_SCENARIO}: it ends in the middle of a value. {CORRECT}",
            arrange=simulated(lambda folder: folder.scenario.write_text('{"system"')),
        ),
        Cause(
            "scenario-newer",
            "a scenario of a newer version",
            REPLAY,
            "{folder}/runs/sim/one/scenario.json cannot be read: it has schema 99, this "
            f"version reads 3. {READ_AGAIN}",
            arrange=simulated(schema=99),
        ),
        Cause(
            "scenario-wrong",
            "a scenario with a word for a number",
            REPLAY,
            f"{NO_SCENARIO}: nodes must be a whole number, not text. {CORRECT}",
            arrange=simulated(nodes="three"),
        ),
        Cause(
            "scenario-unknown-field",
            "a scenario with a misspelt field",
            REPLAY,
            f"{NO_SCENARIO}: load_uss is no field. Did you mean 'load_us'?",
            arrange=simulated(load_uss=5),
        ),
        Cause(
            "scenario-chance",
            "a scenario with a chance above certainty",
            REPLAY,
            f"{NO_SCENARIO}: network.reset_chance cannot be 2.0: it must be between 0 and 1. "
            f"{CORRECT}",
            arrange=simulated(network={"reset_chance": 2.0}),
        ),
        Cause(
            "scenario-file-and-run",
            "a run and a scenario of no run",
            f"{REPLAY} --scenario scenario.json",
            "--scenario names a world that belongs to no run, and is run as it is. Leave out "
            "the run, --pinned, --runtime and --runs-folder",
            arrange=simulated(),
        ),
        Cause(
            "scenario-unknown-system",
            "a scenario of a system that no longer exists",
            REPLAY,
            f"{SCENARIO}: there is no system called 'krafts'. Choose one of: "
            f"{', '.join(system_names())}",
            arrange=simulated(system="krafts"),
        ),
        Cause(
            "scenario-unknown-bug",
            "a scenario with a bug that no longer exists",
            REPLAY,
            f"{SCENARIO}: the system 'kraft' has no planted bug 'votes-not-persisted'. Did you "
            "mean 'vote-not-persisted'?",
            arrange=simulated(bugs=["votes-not-persisted"]),
        ),
        Cause(
            "scenario-unknown-happening",
            "a scenario that waits for what never happens",
            REPLAY,
            f"{SCENARIO}: fault 0 waits for 'comits', which does not happen. Did you mean "
            "'commits'?",
            arrange=simulated(faults=waiting_for("comits")),
        ),
        Cause(
            "simulation-missing",
            "a simulated run of which nobody knows what it came to",
            REPLAY,
            "{folder}/runs/sim/one/simulation.json cannot be read: No such file or directory. "
            f"{READ_AGAIN}",
            arrange=simulated(lambda folder: folder.simulation.unlink()),
        ),
        Cause(
            "replay-exact-pinned",
            "an exact replay that is pinned too",
            f"{REPLAY} --pinned",
            "--pinned does not fit an exact replay, which hits the same nodes and makes no run "
            "folder. Leave it out",
            arrange=simulated(),
        ),
        Cause(
            "replay-exact-runs-folder",
            "a place for what an exact replay does not make",
            f"{REPLAY} --runs-folder elsewhere",
            "--runs-folder does not fit an exact replay, which hits the same nodes and makes "
            "no run folder. Leave it out",
            arrange=simulated(),
        ),
        Cause(
            "replay-drawn-elsewhere",
            "one world of a sweep, in containers",
            f"{REPLAY} --runtime docker",
            "{folder}/runs/sim/one is one world of a sweep, and its faults strike at moments "
            "that nothing but a simulation knows. Replay it without --runtime",
            arrange=simulated(),
        ),
        Cause(
            "replay-trace-of-containers",
            "the story of a run in containers",
            "replay runs/test/one --trace",
            "--trace, --from-step and --until-step are for exact replays of simulated runs. "
            "Leave them out, or name a simulated run",
            arrange=run(lambda _folder: None),
        ),
        Cause(
            "replay-step-zero",
            "a step before the first",
            f"{REPLAY} --until-step 0",
            "--until-step cannot be 0. Choose a number of at least 1",
            arrange=simulated(),
        ),
        Cause(
            "replay-from-without-trace",
            "the beginning of a story that nobody tells",
            f"{REPLAY} --from-step 5",
            "--from-step is given without --trace. Add --trace",
            arrange=simulated(),
        ),
        Cause(
            "replay-steps-backwards",
            "a story told backwards",
            f"{REPLAY} --trace --from-step 9 --until-step 5",
            "--from-step 9 comes after --until-step 5. Choose a range of steps",
            arrange=simulated(),
        ),
    ),
)
