"""Plan files that are none, or that plan what cannot be."""

import json

from tests.bad_input.cause import Arrange, Cause, Chapter, file


def fault(**fields: object) -> dict[str, object]:
    return {"kind": "kill", "target": "leader", "at_ms": 3000, "duration_ms": 1000, **fields}


def plan(*faults: dict[str, object], **fields: object) -> Arrange:
    return file("plan.json", json.dumps({"faults": faults, **fields}))


PLAN_HOLDS = 'It holds "faults", a list of objects with kind, target, at_ms and duration_ms'

TEST = "test --nemesis plan.json"


def no_plan(name: str, wrong: str, problem: str, arrange: Arrange) -> Cause:
    """A plan file that cannot be read."""
    says = f"the plan file plan.json cannot be read: {problem}. {PLAN_HOLDS}"
    return Cause(name, wrong, TEST, says, arrange=arrange)


PLANS = Chapter(
    "Plan files",
    (
        Cause(
            "plan-missing",
            "a plan file that is not there",
            TEST,
            "the plan file plan.json cannot be read: No such file or directory. Name a file "
            "that exists, or fault kinds such as partition,kill",
        ),
        Cause(
            "plan-folder",
            "a folder for a plan file",
            TEST,
            "the plan file plan.json cannot be read: Is a directory. Name a file that exists, "
            "or fault kinds such as partition,kill",
            arrange=file("plan.json/inside", ""),
        ),
        Cause(
            "plan-other-ending",
            "a plan file of another notation",
            "test --nemesis plan.yaml",
            "plan.yaml is no plan file. Name a file that ends in .json or .toml, or fault "
            "kinds such as partition,kill",
            arrange=file("plan.yaml", "faults: []"),
        ),
        no_plan(
            "plan-empty",
            "an empty plan file",
            "it ends in the middle of a value",
            file("plan.json", ""),
        ),
        no_plan(
            "plan-binary",
            "bytes that are no text",
            "it is not UTF-8: it holds the byte 0x80",
            file("plan.json", b"\x80\x00\x01"),
        ),
        no_plan(
            "plan-bad-json",
            "no JSON",
            "it is no JSON: invalid character at byte 15",
            file("plan.json", '{"faults": nothing}'),
        ),
        Cause(
            "plan-bad-toml",
            "no TOML",
            "test --nemesis plan.toml",
            "the plan file plan.toml cannot be read: it is no TOML: Invalid value (at end of "
            f"document). {PLAN_HOLDS}",
            arrange=file("plan.toml", "faults = ["),
        ),
        no_plan(
            "plan-deep",
            "nested without end",
            "it is nested too deeply",
            file("plan.json", '{"faults": [{"options": {"nodes": ' + "[" * 100_000),
        ),
        no_plan("plan-list", "a list", "it must be an object, not a list", file("plan.json", "[]")),
        no_plan(
            "plan-no-faults", "no faults in it", "it has no field 'faults'", file("plan.json", "{}")
        ),
        no_plan(
            "plan-wrong-type",
            "a word for a time",
            "faults[0].at_ms must be a number, not text",
            plan(fault(at_ms="soon")),
        ),
        Cause(
            "plan-unknown-field",
            "a misspelt field",
            TEST,
            "the plan file plan.json cannot be read: faults[0] has an unknown field 'lenght'. "
            "The fields are: at_ms, draw, duration_ms, kind, options, target, when",
            arrange=plan(fault(lenght=1)),
        ),
        no_plan(
            "plan-missing-field",
            "a fault without a target",
            "faults[0] has no field 'target'",
            file("plan.json", '{"faults": [{"kind": "kill", "at_ms": 1}]}'),
        ),
        Cause(
            "plan-unknown-kind",
            "a fault that does not exist",
            TEST,
            "there is no fault called 'kil'. Did you mean 'kill'?",
            arrange=plan(fault(kind="kil")),
        ),
        Cause(
            "plan-unknown-option",
            "an option that faults do not have",
            TEST,
            "the fault 'kill' has no option 'node'. Did you mean 'nodes'?",
            arrange=plan(fault(options={"node": ["n1"]})),
        ),
        Cause(
            "plan-pinned-nowhere",
            "nodes to be hit that are not there",
            TEST,
            "the option 'nodes' of a fault cannot be ['n8']. It is a list of nodes, of n1, n2, n3",
            arrange=plan(fault(options={"nodes": ["n8"]})),
        ),
        Cause(
            "plan-overlap",
            "faults that overlap",
            TEST,
            "the fault at 4000 ms begins before the one before it is over at 6000 ms. Give "
            "each fault a window of its own, or let the plan have overlap = 2",
            arrange=plan(fault(duration_ms=3000), fault(at_ms=4000)),
        ),
        Cause(
            "plan-before-load",
            "a fault before the load",
            TEST,
            "the fault at -3000 ms begins before the load. Give it an at_ms of at least 0",
            arrange=plan(fault(at_ms=-3000)),
        ),
        Cause(
            "plan-no-duration",
            "a fault that lasts no time",
            TEST,
            "the fault at 3000 ms lasts 0 ms. Give it a duration_ms of at least 1",
            arrange=plan(fault(duration_ms=0)),
        ),
        Cause(
            "plan-too-long",
            "a fault that lasts longer than any load",
            TEST,
            "a fault 'kill' has duration_ms = 1e+30. Choose at most 604,800,000, a week",
            arrange=plan(fault(duration_ms=1e30)),
        ),
        Cause(
            "plan-late",
            "a plan longer than the time limit",
            f"{TEST} --time-limit 20",
            "the fault at 3000 ms ends after the time limit of 20000 ms. Choose a --time-limit "
            "of at least 103",
            arrange=plan(fault(duration_ms=100_000)),
        ),
        Cause(
            "plan-unknown-system",
            "settings for a system that does not exist",
            TEST,
            "the plan 'plan.json' has settings for 'krafft', which is no system. Did you mean "
            "'kraft'?",
            arrange=plan(fault(), settings={"krafft": {"fetch_timeout_ms": "500"}}),
        ),
        Cause(
            "plan-negative-draw",
            "a draw below 0",
            TEST,
            "the fault at 3000 ms has the draw -1. Give it a draw of at least 0",
            arrange=plan(fault(draw=-1)),
        ),
    ),
)
