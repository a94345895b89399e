"""Plan files that are none, or that plan what cannot be."""

import json

from tests.bad_input.cause import Arrange, Chapter, causes, file


def fault(**fields: object) -> dict[str, object]:
    return {"kind": "kill", "target": "leader", "at_ms": 3000, "duration_ms": 1000, **fields}


def plan(*faults: dict[str, object], **fields: object) -> Arrange:
    return file("plan.json", json.dumps({"faults": faults, **fields}))


PLAN_HOLDS = 'It holds "faults", a list of objects with kind, target, at_ms and duration_ms'

PLANS = Chapter(
    "Plan files",
    causes(
        f"""
plan-missing | a plan file that is not there | test --nemesis plan.json
  the plan file plan.json cannot be read: No such file or directory. Name a file that exists, or
  fault kinds such as partition,kill
plan-folder | a folder for a plan file | test --nemesis plan.json
  the plan file plan.json cannot be read: Is a directory. Name a file that exists, or fault kinds
  such as partition,kill
plan-other-ending | a plan file of another notation | test --nemesis plan.yaml
  plan.yaml is no plan file. Name a file that ends in .json or .toml, or fault kinds such as
  partition,kill
plan-empty | an empty plan file | test --nemesis plan.json
  the plan file plan.json cannot be read: it ends in the middle of a value. {PLAN_HOLDS}
plan-binary | bytes that are no text | test --nemesis plan.json
  the plan file plan.json cannot be read: it is not UTF-8: it holds the byte 0x80. {PLAN_HOLDS}
plan-bad-json | no JSON | test --nemesis plan.json
  the plan file plan.json cannot be read: it is not valid JSON: invalid character at byte 15.
  {PLAN_HOLDS}
plan-bad-toml | no TOML | test --nemesis plan.toml
  the plan file plan.toml cannot be read: it is not valid TOML: Invalid value (at end of document).
  {PLAN_HOLDS}
plan-deep | nested without end | test --nemesis plan.json
  the plan file plan.json cannot be read: it is nested too deeply. {PLAN_HOLDS}
plan-list | a list | test --nemesis plan.json
  the plan file plan.json cannot be read: it must be an object, not a list. {PLAN_HOLDS}
plan-no-faults | no faults in it | test --nemesis plan.json
  the plan file plan.json cannot be read: it has no field 'faults'. {PLAN_HOLDS}
plan-wrong-type | a word for a time | test --nemesis plan.json
  the plan file plan.json cannot be read: faults[0].at_ms must be a number, not text. {PLAN_HOLDS}
plan-unknown-field | a misspelt field | test --nemesis plan.json
  the plan file plan.json cannot be read: faults[0] has an unknown field 'lenght'. The fields are:
  at_ms, draw, duration_ms, kind, options, target, when
plan-pace-at-top | a field of the pace beside it | test --nemesis plan.json
  the plan file plan.json cannot be read: it has an unknown field 'recovered'. recovered belongs to
  the plan's 'pace'
plan-missing-field | a fault without a target | test --nemesis plan.json
  the plan file plan.json cannot be read: faults[0] has no field 'target'. {PLAN_HOLDS}
plan-unknown-kind | a fault that does not exist | test --nemesis plan.json
  there is no fault called 'kil'. Did you mean 'kill'?
plan-unknown-option | an option that faults do not have | test --nemesis plan.json
  the fault 'kill' has no option 'node'. Did you mean 'nodes'?
plan-pinned-nowhere | nodes to be hit that are not there | test --nemesis plan.json
  the option 'nodes' of a fault cannot be ['n8']. It is a list of nodes, of n1, n2, n3
plan-overlap | faults that overlap | test --nemesis plan.json
  the fault at 4000 ms begins before the one before it is over at 6000 ms. Give each fault a window
  of its own, or let the plan have overlap = 2
plan-recovered-at | a fault that waits for one node to recover | test --nemesis plan.json
  a fault cannot wait for 'recovered' at one node, in one epoch or several times. Leave node, epoch
  and count out: it is said of all nodes together
plan-pace-beside-faults | a pace beside faults that are written | test --nemesis plan.json
  the plan file plan.json has a pace or options of kinds, and its faults are not drawn. Leave [pace]
  and [options] out, and say of each of [[faults]] when it strikes and how
plan-before-load | a fault before the load | test --nemesis plan.json
  the fault at -3000 ms begins before the load. Give it an at_ms of at least 0
plan-no-duration | a fault that lasts no time | test --nemesis plan.json
  the fault at 3000 ms lasts 0 ms. Give it a duration_ms of at least 1
plan-too-long | a fault that lasts longer than any load | test --nemesis plan.json
  a fault 'kill' has duration_ms = 1e+30. Choose at most 604,800,000, a week
plan-late | a plan longer than the time limit | test --nemesis plan.json --time-limit 20
  the fault at 3000 ms ends after the time limit of 20000 ms. Choose a --time-limit of at least 103
plan-unknown-system | settings for a system that does not exist | test --nemesis plan.json
  the plan 'plan.json' has settings for 'krafft', which is no system. Did you mean 'kraft'?
plan-negative-draw | a draw below 0 | test --nemesis plan.json
  the fault at 3000 ms has the draw -1. Give it a draw of at least 0
""",
        {
            "plan-folder": file("plan.json/inside", ""),
            "plan-other-ending": file("plan.yaml", "faults: []"),
            "plan-empty": file("plan.json", ""),
            "plan-binary": file("plan.json", b"\x80\x00\x01"),
            "plan-bad-json": file("plan.json", '{"faults": nothing}'),
            "plan-bad-toml": file("plan.toml", "faults = ["),
            "plan-deep": file("plan.json", '{"faults": [{"options": {"nodes": ' + "[" * 100_000),
            "plan-list": file("plan.json", "[]"),
            "plan-no-faults": file("plan.json", "{}"),
            "plan-wrong-type": plan(fault(at_ms="soon")),
            "plan-unknown-field": plan(fault(lenght=1)),
            "plan-pace-at-top": file("plan.json", '{"nemesis": "kill", "recovered": true}'),
            "plan-missing-field": file("plan.json", '{"faults": [{"kind": "kill", "at_ms": 1}]}'),
            "plan-unknown-kind": plan(fault(kind="kil")),
            "plan-unknown-option": plan(fault(options={"node": ["n1"]})),
            "plan-pinned-nowhere": plan(fault(options={"nodes": ["n8"]})),
            "plan-overlap": plan(fault(duration_ms=3000), fault(at_ms=4000)),
            "plan-recovered-at": plan(fault(when={"on": "recovered", "node": "n2"})),
            "plan-pace-beside-faults": plan(fault(), pace={"recovered": True}),
            "plan-before-load": plan(fault(at_ms=-3000)),
            "plan-no-duration": plan(fault(duration_ms=0)),
            "plan-too-long": plan(fault(duration_ms=1e30)),
            "plan-late": plan(fault(duration_ms=100_000)),
            "plan-unknown-system": plan(fault(), settings={"krafft": {"fetch_timeout_ms": "500"}}),
            "plan-negative-draw": plan(fault(draw=-1)),
        },
    ),
)
