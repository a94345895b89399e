"""Runs that cannot be shrunk, and places where no test can be saved."""

import functools

from tests.bad_input.cause import Chapter, Scene, causes
from tests.bad_input.run_causes import plan, run
from tests.bad_input.simulation_causes import simulated

failed = functools.partial(simulated, place="test", failed_by=("INV-04",))


def _beside_a_test(scene: Scene) -> None:
    failed()(scene)
    scene.write("test_it.py", "")


SHRINKING = Chapter(
    "Shrinking",
    causes(
        """
shrink-missing | a run that is not there | shrink runs/gone
  runs/gone is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
shrink-containers | a run in containers that nobody has judged | shrink runs/test/one | process
  nobody has judged {folder}/runs/test/one, so there is no verdict to look for. `splitbrain check
  {folder}/runs/test/one` judges it
shrink-replays-of-containers | replays of a run in containers | shrink runs/test/one --replays 9
  --replays does not fit runs/test/one, which is no simulated run. Leave it out; --runs limits the
  runs in containers, and `splitbrain sim --like RUN` looks for the failure in simulation
shrink-tries-of-simulated | several tries of a simulated run | shrink runs/test/one --tries 5
  --tries does not fit runs/test/one, which is a simulated run and comes out the same every time.
  Leave it out; --replays limits the search
sim-like-missing | a run to be like that is not there | sim --like runs/gone
  runs/gone is no run folder: it has no plan.json. Name a folder below runs/, or runs/latest
sim-like-simulated | a simulated run to be like | sim --like runs/test/one
  {folder}/runs/test/one is a simulated run, which is exact already. `splitbrain shrink
  {folder}/runs/test/one` makes it small
sim-like-bug | a bug beside a run to be like | sim --like runs/test/one --bug stale-leader-reads
  --bug does not fit --like, which has all of it from the run and keeps the first seed that fails
  alike. Leave one of them out
shrink-broken-scenario | a scenario that ends too early | shrink runs/test/one
  {folder}/runs/test/one/scenario.json is no scenario that can be run: it ends in the middle of a
  value. Correct that, or take the scenario of another run
shrink-newer-scenario | a scenario of a newer version | shrink runs/test/one
  {folder}/runs/test/one/scenario.json cannot be read: it has schema 99, this version reads 3.
  Replay a run made by this version
shrink-empty-world | a scenario without a client | shrink runs/test/one
  {folder}/runs/test/one/scenario.json is no scenario that can be run: load.clients cannot be 0: it
  must be between 1 and 1,000. Correct that, or take the scenario of another run
shrink-no-record | a simulated run without what it came to | shrink runs/test/one
  {folder}/runs/test/one/simulation.json cannot be read: No such file or directory. Replay a run
  made by this version
shrink-unknown-bug | a scenario with a bug that no longer exists | shrink runs/test/one
  {folder}/runs/test/one/scenario.json: the system 'kraft' has no planted bug 'votes-not-persisted'.
  Did you mean 'vote-not-persisted'?
shrink-unknown-system | a scenario of a system that no longer exists | shrink runs/test/one
  {folder}/runs/test/one/scenario.json: there is no system called 'krafts'. Did you mean
  'kraft'?
shrink-nothing-wrong | a run in which nothing failed | shrink runs/test/one
  nothing is wrong with runs/test/one, so there is no failure to shrink. Name a run that failed
shrink-no-replays | no replay allowed | shrink runs/test/one --replays 0
  --replays cannot be 0. Choose a number of at least 1
shrink-no-time | no time allowed | shrink runs/test/one --time-limit 0
  --time-limit cannot be 0. Choose a number of seconds above 0
shrink-test-name | a test that pytest would not see | shrink runs/test/one --save-test saved.py
  --save-test cannot be 'saved.py': pytest looks for test_*.py. Choose a name such as
  tests/regressions/test_two_leaders.py
shrink-test-exists | a test that is there already | shrink runs/test/one --save-test test_it.py
  --save-test would replace 'test_it.py'. Choose another name, or remove the file
shrink-test-nowhere | a test in a folder that is not there
  $ shrink runs/test/one --save-test gone/test_it.py
  --save-test cannot be 'gone/test_it.py': its folder does not exist. Make the folder, or choose
  another one
""",
        {
            **dict.fromkeys(
                ("shrink-containers", "shrink-replays-of-containers", "sim-like-bug"),
                run(lambda folder: None),
            ),
            **dict.fromkeys(
                (
                    "shrink-tries-of-simulated",
                    "shrink-no-replays",
                    "shrink-no-time",
                    "shrink-test-name",
                    "shrink-test-nowhere",
                ),
                failed(),
            ),
            "sim-like-simulated": plan(runtime="simulated"),
            "shrink-broken-scenario": failed(lambda folder: folder.scenario.write_text('{"seed"')),
            "shrink-newer-scenario": failed(schema=99),
            "shrink-empty-world": failed(load={"clients": 0}),
            "shrink-no-record": failed(lambda folder: folder.simulation.unlink()),
            "shrink-unknown-bug": failed(bugs=["votes-not-persisted"]),
            "shrink-unknown-system": failed(system="krafts"),
            "shrink-nothing-wrong": failed(failed_by=()),
            "shrink-test-exists": _beside_a_test,
        },
    ),
)
