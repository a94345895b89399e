"""``docs/gate.md`` lists the figures that there are, and its example is a policy."""

import re
from pathlib import Path

from splitbrain.harness.campaign.gate.policy import read_policy
from splitbrain.harness.campaign.gate.self_test import prove
from tests.unit.harness.campaign.gate.figures_page import PAGE, page


def test_the_page_lists_the_figures_that_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run python -m tests.unit.harness.campaign.gate.figures_page"


def test_the_example_of_the_page_is_a_policy_that_can_fail(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "gate.toml"
    path.write_text(example)
    policy = read_policy(path)
    assert all(proof.can_fail for proof in prove(policy, list(policy.tiers.values())))
