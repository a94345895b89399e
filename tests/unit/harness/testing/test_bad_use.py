"""Bad use of the plugin is one sentence at the test's own line, and no traceback of ours."""

import pytest

CASES = {
    "cluster()": "a cluster needs a system or an image, and not both*",
    "cluster('redos')": "there is no system called 'redos'. Did you mean 'redis'?",
    "cluster(int)": "<class 'int'> is no system. Give a system's name*",
    "cluster('gone.py:Shelf')": "there is no file *gone.py. Name a Python file*",
    "cluster('redis', node=3)": "a cluster has no option 'node'. Did you mean 'nodes'?",
    "cluster('redis', nodes='3')": "an option of the cluster does not fit: *nodes*",
    "cluster('redis', port=1)": "command, port and connect are of an image*",
    "cluster(image='a:1', port=1)": "the image 'a:1' is given no connect. *",
    "cluster(image='a:1', port=1, connect=print, runtime='local').__enter__()":
        "the image 'a:1' cannot run on the runtime 'local'. Choose runtime='docker'",
    "cluster('redis', workload='registr').__enter__()":
        "there is no workload called 'registr'. Did you mean 'register'?",
    "cluster('redis', faults='kil').__enter__()":
        "there is no fault called 'kil'. Did you mean 'kill'?",
    "cluster('redis', runtime='simulated').__enter__()":
        "could not deploy nodes in the runtime (simulated): *",
    "cluster('redis', runtime='cloud').__enter__()":
        "there is no runtime 'cloud'. Choose one of: *",
    "cluster('redis').client()":
        "the cluster is not started. Write `with splitbrain.cluster(...) as cluster:`",
}  # fmt: skip


def test_each_is_told_at_the_tests_own_line(pytester: pytest.Pytester) -> None:
    lines = [
        f"def test_{number}(splitbrain):\n    splitbrain.{wrong}\n"
        for number, wrong in enumerate(CASES)
    ]
    pytester.makepyfile("\n".join(lines))
    result = pytester.runpytest_inprocess("--tb=short", "--splitbrain-seed=5")
    result.assert_outcomes(failed=len(CASES))
    for number, (wrong, says) in enumerate(CASES.items()):
        result.stdout.fnmatch_lines(
            [
                f"*_ test_{number} _*",
                "test_*.py:*: in test_*",
                f"    splitbrain.{wrong}",
                f"E   *Error: {says}",
                "*splitbrain*",
                f"seed 5, again: pytest *::test_{number} --splitbrain-seed 5",
            ],
            consecutive=True,
        )


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--splitbrain-seed=-1", "--splitbrain-seed cannot be '-1'; give a whole number from 0 to"),
        ("--splitbrain-seed=x", "--splitbrain-seed cannot be 'x'"),
        ("--splitbrain-runs=test_it.py", "--splitbrain-runs 'test_it.py' is no folder"),
    ],
)
def test_an_option_that_cannot_be_is_refused(
    pytester: pytest.Pytester, option: str, says: str
) -> None:
    pytester.makepyfile(test_it="def test_it(): ...")
    result = pytester.runpytest_inprocess(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{says}*"])
