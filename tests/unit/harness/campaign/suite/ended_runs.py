"""Lines of a ledger."""

from typing import Any

from splitbrain.harness.campaign.suite.ledger import RunEnded


def ended_run(number: int, **fields: Any) -> RunEnded:
    """A valid run of the night ``n2``, unless the fields say otherwise."""
    defaults: dict[str, Any] = {
        "suite": "s",
        "night": "n2",
        "number": number,
        "session": 1,
        "session_s": 1.0,
        "matrix": "m",
        "cell": "c",
        "options": {"system": "kraft", "workload": "register", "runtime": "docker"},
        "seed": number,
        "commit": None,
        "dirty": False,
        "tool_version": "0",
        "started": "now",
        "took_s": 1.0,
        "verdict": "valid",
        "exit_code": 0,
        "run_folder": None,
        "reproduce": f"splitbrain test --seed {number}",
        "expect": "valid",
        "as_expected": True,
    }
    return RunEnded(**(defaults | fields))
