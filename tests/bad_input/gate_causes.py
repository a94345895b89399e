"""Policies that are none, and runs and baselines that are not there."""

from tests.bad_input.cause import Arrange, Chapter, Scene, causes, file

SCHEMA = "schema = 1\n"


def policy(text: str, *folders: str) -> Arrange:
    """A policy lies in the working folder, and folders without any run."""

    def arrange(scene: Scene) -> None:
        scene.write("gate.toml", text)
        for folder in folders:
            (scene.folder / folder).mkdir()

    return arrange


def demands(threshold: str) -> Arrange:
    return policy(f'{SCHEMA}require = [\n    "{threshold}",\n]\n', "runs")


def baseline(content: bytes) -> Arrange:
    """A policy, a folder without any run, and a baseline."""

    def arrange(scene: Scene) -> None:
        demands("violations == 0")(scene)
        scene.write("base.json", content)

    return arrange


GATES = Chapter(
    "The release gate",
    causes(
        """
gate-without-policy | a gate without a policy | gate runs
  missing argument POLICY. `splitbrain gate --help` shows what there is
policy-missing | a policy that is not there | gate --policy gate.toml runs
  the policy gate.toml cannot be read: No such file or directory. Name a file that exists
policy-no-utf-8 | a policy that is no UTF-8 | gate --policy gate.toml runs
  the policy gate.toml is no TOML: it is not UTF-8: it holds the byte 0xff. Correct the file;
  `splitbrain docs gate` says what may stand in it
policy-deep | a policy nested without end | gate --policy gate.toml runs
  the policy gate.toml is no TOML: it is nested too deeply. Correct the file;
  `splitbrain docs gate` says what may stand in it
suite-no-utf-8 | a suite that is no UTF-8 | suite suite.toml
  the suite file suite.toml is no TOML: it is not UTF-8: it holds the byte 0xff. Correct the file;
  `splitbrain docs suite` says what may stand in it
suite-deep | a suite nested without end | suite suite.toml
  the suite file suite.toml is no TOML: it is nested too deeply. Correct the file;
  `splitbrain docs suite` says what may stand in it
nightly-no-utf-8 | a nightly file that is no UTF-8 | nightly night.toml
  the nightly file night.toml is no TOML: it is not UTF-8: it holds the byte 0xff. Correct the file;
  `splitbrain docs nightly` says what may stand in it
baseline-no-utf-8 | a baseline that is no UTF-8 | gate --policy gate.toml --baseline base.json runs
  the baseline base.json is no gate's JSON: it is not UTF-8: it holds the byte 0xff. Name a folder
  of runs, a ledger, a gate's JSON, REF:PATH of one in git, last, or none for none
policy-without-schema | a policy that says no schema | gate --policy gate.toml runs
  the policy gate.toml: it says no schema, and this version reads 1. Begin it with schema = 1
policy-demands-nothing | a policy without any threshold | gate --policy gate.toml runs
  the policy gate.toml: it demands nothing. Give it a threshold, such as require = ['violations ==
  0']
policy-unknown-key | a misspelt key in a policy | gate --policy gate.toml runs
  the policy gate.toml, line 2: there is no key 'requires'. Did you mean 'require'?
policy-unknown-figure | a misspelt figure in a policy | gate --policy gate.toml runs | process
  the policy gate.toml, line 3: there is no figure called 'lost_comits'. Did you mean
  'lost_commits'?
policy-unknown-system | a threshold on a system that is not there | gate --policy gate.toml runs
  the policy gate.toml, line 3: there is no system called 'krat'. Did you mean 'kraft'?
policy-wrong-way | a threshold that demands what is worse | gate --policy gate.toml runs
  the policy gate.toml, line 3: 'availability_min < 0.9' demands what is worse: of availability_min
  higher is better. Write it with >
nightly-address | the address of a webhook in a nightly file | nightly night.toml
  the nightly file night.toml, line 4: webhook_env is not the name of an environment variable. Write
  webhook_env = 'SPLITBRAIN_WEBHOOK', and the address into that variable
policy-no-tier | a tier that the policy does not have | gate --policy gate.toml runs --tier nightly
  the policy gate.toml has no tier 'nightly'. There is only 'gate'
gate-no-runs-named | a gate without runs | gate --policy gate.toml
  no runs are named. Name run folders, a folder of them, or a ledger
gate-runs-missing | runs that are not there | gate --policy gate.toml rusn
  there are no runs at rusn. Name a run folder, a folder of them such as runs/, a ledger.jsonl, a
  lake, or what `splitbrain sim --output` left
gate-baseline-missing | a baseline that is not there
  $ gate --policy gate.toml runs --baseline before.json
  there is no baseline before.json. Name a folder of runs, a ledger, a gate's JSON, REF:PATH of one
  in git, last, or none for none
init-file-there | files of a night where one is there | init --system kraft
  there is policy.toml already. Choose another folder with --output, or remove the file
init-not-simulated | a night in simulation of what has none
  $ init --system redis --runtime simulated
  redis cannot be simulated. Choose another --runtime
init-without-settings | a night of a system that needs settings | init --system compose
  compose says nothing of its nodes without settings, which init does not know. Write them by
  hand: `splitbrain docs suite` and `splitbrain docs nightly` say how
init-no-time | a night without a time | init --system kraft --time-budget soon
  --time-budget: 'soon' is no time; write 60, 500ms, 45s, 1m or 1h30m. Correct it, or leave it out
init-output-is-a-file | a night in a file | init --system kraft --output here
  here cannot be written: File exists. Choose another folder with --output
gate-self-test-with-runs | a self-test of runs | gate --policy gate.toml runs --self-test
  --self-test looks at the policy alone. Leave out runs, --baseline and --output
""",
        {
            "policy-no-utf-8": file("gate.toml", b'schema = 1\nname = "\xff"\n'),
            "policy-deep": file("gate.toml", f"require = {'[' * 3000}{']' * 3000}\n"),
            "suite-no-utf-8": file("suite.toml", b'name = "\xff"\n'),
            "suite-deep": file("suite.toml", f"matrix = {'[' * 3000}{']' * 3000}\n"),
            "nightly-address": file(
                "night.toml",
                'schema = 1\nsuite = "s.toml"\npolicy = "g.toml"\nwebhook_env = "https://x"\n',
            ),
            "nightly-no-utf-8": file("night.toml", b'suite = "\xff"\n'),
            "baseline-no-utf-8": baseline(b'{"schema": 1, "policy": "\xff"}'),
            "init-file-there": file("policy.toml", b""),
            "init-output-is-a-file": file("here", b""),
            "policy-without-schema": file("gate.toml", "require = []\n"),
            "policy-demands-nothing": policy(SCHEMA),
            "policy-unknown-key": policy(f'{SCHEMA}requires = ["violations == 0"]\n'),
            "policy-unknown-figure": demands("lost_comits == 0"),
            "policy-unknown-system": demands("violations{system=krat} == 0"),
            "policy-wrong-way": demands("availability_min < 0.9"),
            **dict.fromkeys(
                (
                    "policy-no-tier",
                    "gate-no-runs-named",
                    "gate-runs-missing",
                    "gate-baseline-missing",
                    "gate-self-test-with-runs",
                ),
                demands("violations == 0"),
            ),
        },
    ),
)
