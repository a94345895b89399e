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
from splitbrain.history.blobs import Blob, pack
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.seeds import WRITE_SEEDS
from splitbrain.systems.registry import names as system_names
from tests.bad_input.cause import Arrange, Chapter, causes, file
from tests.bad_input.run_causes import run
from tests.synthetic_runs import seal

SYSTEMS = ", ".join(system_names())
WRITE_RANGE = WRITE_SEEDS
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


PLAN_BLOB = pack(Blob("cut.toml", "nemesis = 'kill'", "splitbrain 0.1.0"))

SWEEPS = Chapter(
    "Sweeps",
    causes(
        f"""
sim-no-seeds | a sweep of nothing | sim
  --seeds is missing. Write --seed 7 or --seeds 0:1000, or name one world with --scenario FILE
sim-seeds-and-scenario | seeds and a world beside them | sim --seeds 0:5 --scenario scenario.json
  --seeds does not fit --scenario, which is one world and says all of it. Leave one of them out
sim-cut-blob | a world that was cut on its way | sim --scenario blob:eNotj9EOgjAMRX
  'blob:eNotj9EOgjAMRX' is not whole: it was cut or changed on its way. Copy the line again, all
  that begins with blob: up to the next blank
sim-blob-of-a-plan | a plan file where a world belongs | sim --scenario {PLAN_BLOB}
  --scenario is given the file cut.toml, which is no scenario. Give it to the command and the option
  that its line names
replay-cut-blob | a world of a replay that was changed | replay --scenario blob:AAAA
  'blob:AAAA' is not whole: it was cut or changed on its way. Copy the line again, all that begins
  with blob: up to the next blank
sim-no-scenario | a world that is not there | sim --scenario gone.json
  there is no file gone.json. Name the scenario.json of a run, as it is or edited
sim-words | a range in words | sim --seeds all:none | process
  --seeds cannot be 'all:none'. {WRITE_RANGE}
sim-backwards | a range that goes back | sim --seeds 9:3
  --seeds 9:3 is empty: 3 does not come after 9. {WRITE_RANGE}
sim-empty | a range without a seed | sim --seeds 5:5
  --seeds 5:5 is empty: 5 does not come after 5. {WRITE_RANGE}
sim-negative | a range that begins below 0 | sim --seeds -3:5
  --seeds -3:5 names a seed outside of 0 to {SEED_MAX:,}. {WRITE_RANGE}
sim-huge | a range beyond 64 bits | sim --seeds 0:9223372036854775808
  --seeds 0:9223372036854775808 names a seed outside of 0 to {SEED_MAX:,}. {WRITE_RANGE}
sim-seed-and-seeds | a seed and a range | sim --seed 7 --seeds 5:9
  --seeds is given twice. Give it once
sim-seeds-twice | two ranges | sim --seeds 0:5 --seeds 5:9
  --seeds is given twice. Give it once
sim-jobs-zero | a sweep by nobody | sim --seeds 0:5 --jobs 0
  --jobs cannot be 0. Choose a number between 1 and 256
sim-jobs-many | more processes than any machine has use for | sim --seeds 0:5 --jobs 5000
  --jobs cannot be 5000. Choose a number between 1 and 256
sim-jobs-word | processes in words | sim --seeds 0:5 --jobs all
  --jobs cannot be 'all'. Choose a whole number
sim-share-large | more seeds run twice than there are | sim --seeds 0:5 --check-share 2
  --check-share cannot be 2. Choose a number between 0 and 1
sim-share-nan | a share that is no number | sim --seeds 0:5 --check-share nan
  --check-share cannot be nan. Choose a number between 0 and 1
sim-keep-negative | fewer folders than none | sim --seeds 0:5 --keep -1
  --keep cannot be -1. Choose a number of at least 0
sim-time-zero | a sweep of no time | sim --seeds 0:5 --time-limit 0
  --time-limit cannot be 0. Choose a number of seconds above 0 and at most 604,800
sim-time-for-ever | a sweep without an end | sim --seeds 0:5 --time-limit inf
  --time-limit cannot be inf. Choose a number of seconds above 0 and at most 604,800
sim-time-word | a time in words | sim --seeds 0:5 --time-limit soon
  --time-limit cannot be 'soon'. Write a time such as 60, 500ms, 45s, 1m or 1h30m
sim-time-of-a-world | a time limit for one world | sim --scenario scenario.json --time-limit 5
  --time-limit does not fit --scenario, which is one world and says all of it. Leave one of them out
sim-unknown-trait | a trait that no world has | sim --seeds 0:5 --world votters=5
  worlds have no trait 'votters' (--world). Did you mean 'voters'?
sim-unknown-value | a value that no seed draws | sim --seeds 0:5 --world voters=4
  no seed draws a world with voters=4. The values of voters are: 3, 5
sim-trait-elsewhere | a trait of worlds with another state machine
  $ sim --seeds 0:5 --state-machine metadata --world workload=set
  no seed draws a world with workload=set. The values of workload are: topics
sim-trait-twice | two numbers of voters | sim --seeds 0:5 --world voters=3,voters=5
  --world names voters twice. Name it once
sim-unknown-system | no such system to simulate | sim --seeds 0:5 --system krafft
  there is no system called 'krafft'. Did you mean 'kraft'?
sim-no-simulated-nodes | a system that only runs in containers | sim --seeds 0:5 --system redis
  the system 'redis' has no simulated nodes. Run it in containers: `splitbrain test --system redis
  --runtime docker`
sim-unknown-bug | no such planted bug to simulate | sim --seeds 0:5 --bug stale-leader-read
  the system 'kraft' has no planted bug 'stale-leader-read'. Did you mean 'stale-leader-reads'?
sim-bug-twice | a planted bug twice over
  $ sim --seeds 0:5 --bug stale-leader-reads --bug stale-leader-reads
  the bug 'stale-leader-reads' is named twice. Name each --bug once
sim-runs-folder-is-file | a file for the folder of failures | sim --seeds 0:5 --runs-folder taken
  the folder of runs 'taken' is no folder. Choose another place with --runs-folder
sim-runtime | a runtime for a sweep | sim --seeds 0:5 --runtime docker
  `splitbrain sim` has no option --runtime. `splitbrain sim --help` shows what there is
beyond-promise-in-containers | a test beyond the promise | test --beyond-promise
  `splitbrain test` has no option --beyond-promise. `splitbrain test --help` shows what there is
""",
        {"sim-runs-folder-is-file": file("taken", "")},
    ),
)

SIMULATED_RUNS = Chapter(
    "Simulated runs",
    causes(
        f"""
simulated-other-system | a simulated test of a system that only runs in containers
  $ test --runtime simulated --system redis --nemesis none
  the system 'redis' has no simulated nodes. Run it in containers: `splitbrain test --system redis
  --runtime docker`
simulated-stop | an end at the first violation of a simulated run's history
  $ test --runtime simulated --stop-on-violation
  --stop-on-violation does not fit --runtime simulated. Leave it out: a simulated world ends at the
  first invariant that is violated
stop-on-whole-history | an end at the first violation that only a whole history can have
  $ test --runtime local --workload set --stop-on-violation
  --stop-on-violation does not fit the workload 'set': set-full and split-brain and lost-commits can
  judge a whole history only. Leave it out, or choose a workload such as register or list-append
simulated-many-clients | more clients than one thread serves
  $ test --runtime simulated --concurrency 5000 | 3
  could not simulate the clients (--concurrency 5000): one thread does the work of at most 1,000 of
  them. Choose fewer, or another --runtime
simulated-long | more operations than fit into memory
  $ test --runtime simulated --time-limit 600000 --rate 1000 | 3
  could not simulate the load (--rate 1000 for --time-limit 600000): a simulated run is held in
  memory, and takes at most 5,000,000 operations. Choose a lower rate, less time, or another
  --runtime
scenario-missing | a simulated run without its scenario | replay runs/sim/one
  {{folder}}/runs/sim/one/scenario.json cannot be read: No such file or directory. {READ_AGAIN}
scenario-broken | a scenario that ends too early | replay runs/sim/one
  {NO_SCENARIO}: it ends in the middle of a value. {CORRECT}
scenario-newer | a scenario of a newer version | replay runs/sim/one
  {{folder}}/runs/sim/one/scenario.json cannot be read: it has schema 99, this version reads 3.
  {READ_AGAIN}
scenario-wrong | a scenario with a word for a number | replay runs/sim/one
  {NO_SCENARIO}: nodes must be a whole number, not text. {CORRECT}
scenario-unknown-field | a scenario with a misspelt field | replay runs/sim/one
  {NO_SCENARIO}: load_uss is no field. Did you mean 'load_us'?
scenario-chance | a scenario with a chance above certainty | replay runs/sim/one
  {NO_SCENARIO}: network.reset_chance cannot be 2.0: it must be between 0 and 1. {CORRECT}
scenario-file-and-run | a run and a scenario of no run
  $ replay runs/sim/one --scenario scenario.json
  --scenario names a world that belongs to no run, and is run as it is. Leave out the run, --pinned,
  --runtime and --runs-folder
scenario-unknown-system | a scenario of a system that no longer exists | replay runs/sim/one
  {{folder}}/runs/sim/one/scenario.json: there is no system called 'krafts'. Did you mean
  'kraft'?
scenario-unknown-bug | a scenario with a bug that no longer exists | replay runs/sim/one
  {{folder}}/runs/sim/one/scenario.json: the system 'kraft' has no planted bug
  'votes-not-persisted'. Did you mean 'vote-not-persisted'?
scenario-unknown-happening | a scenario that waits for what never happens | replay runs/sim/one
  {{folder}}/runs/sim/one/scenario.json: fault 0 waits for 'comits', which does not happen. Did you
  mean 'commits'?
simulation-missing | a simulated run of which nobody knows what it came to | replay runs/sim/one
  {{folder}}/runs/sim/one/simulation.json cannot be read: No such file or directory. {READ_AGAIN}
replay-exact-pinned | an exact replay that is pinned too | replay runs/sim/one --pinned
  --pinned does not fit an exact replay, which hits the same nodes and makes no run folder. Leave it
  out
replay-exact-runs-folder | a place for what an exact replay does not make
  $ replay runs/sim/one --runs-folder elsewhere
  --runs-folder does not fit an exact replay, which hits the same nodes and makes no run folder.
  Leave it out
replay-drawn-elsewhere | one world of a sweep, in containers | replay runs/sim/one --runtime docker
  {{folder}}/runs/sim/one is one world of a sweep, and its faults strike at moments that nothing but
  a simulation knows. Replay it without --runtime
replay-trace-of-containers | the story of a run in containers | replay runs/test/one --trace
  --trace, --from-step and --until-step are for exact replays of simulated runs. Leave them out, or
  name a simulated run
replay-step-zero | a step before the first | replay runs/sim/one --until-step 0
  --until-step cannot be 0. Choose a number of at least 1
replay-from-without-trace | the beginning of a story that nobody tells
  $ replay runs/sim/one --from-step 5
  --from-step is given without --trace. Add --trace
replay-steps-backwards | a story told backwards
  $ replay runs/sim/one --trace --from-step 9 --until-step 5
  --from-step 9 comes after --until-step 5. Choose a range of steps
""",
        {
            "scenario-missing": simulated(lambda folder: folder.scenario.unlink()),
            "scenario-broken": simulated(lambda folder: folder.scenario.write_text('{"system"')),
            "scenario-newer": simulated(schema=99),
            "scenario-wrong": simulated(nodes="three"),
            "scenario-unknown-field": simulated(load_uss=5),
            "scenario-chance": simulated(network={"reset_chance": 2.0}),
            **dict.fromkeys(
                (
                    "scenario-file-and-run",
                    "replay-exact-pinned",
                    "replay-exact-runs-folder",
                    "replay-drawn-elsewhere",
                    "replay-step-zero",
                    "replay-from-without-trace",
                    "replay-steps-backwards",
                ),
                simulated(),
            ),
            "scenario-unknown-system": simulated(system="krafts"),
            "scenario-unknown-bug": simulated(bugs=["votes-not-persisted"]),
            "scenario-unknown-happening": simulated(faults=waiting_for("comits")),
            "simulation-missing": simulated(lambda folder: folder.simulation.unlink()),
            "replay-trace-of-containers": run(lambda _folder: None),
        },
    ),
)
