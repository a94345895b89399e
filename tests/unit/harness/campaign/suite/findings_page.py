"""Writes ``docs/findings.md``: ``python -m tests.unit.harness.campaign.suite.findings_page``.

The words come from the suites themselves; a test holds page and suites equal.
"""

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.findings import ListedFinding, listed_findings
from tests.unit.harness.campaign.suite.fake_nights import ROOT

PAGE = ROOT / "docs" / "findings.md"
PICTURES = PAGE.parent / "findings"

_MARK = "a test holds the two equal. -->\n\n"


def page() -> str:
    """Return the content of the page, its head as it stands."""
    head, mark, _ = PAGE.read_text().partition(_MARK)
    return head + mark + "\n".join(map(_entry, listed_findings()))


def _entry(finding: ListedFinding) -> str:
    words = finding.words
    picture = PICTURES / f"{finding.name}.png"
    systems = ", ".join(f"`{name}`" for name in finding.systems)
    recorded = (
        f"Seen in at least {finding.at_least} of {counted(finding.runs, 'run')}; the control is "
        f"valid in {finding.control_runs} of {finding.control_runs}."
    )
    parts = [
        f"## {finding.name}",
        f"{words.title}. Systems: {systems}. Standing: {words.standing}.",
        f"*Promised.* {words.promised}",
        f"*Happened.* {words.happened}",
        f"*Recorded.* {recorded} `splitbrain findings run {finding.name}`",
    ]
    if picture.is_file():
        parts.append(f"![The report of a run that shows it]({PICTURES.name}/{picture.name})")
    return "\n\n".join([*parts, f"*Source.* {words.source}\n"])


if __name__ == "__main__":
    PAGE.write_text(page())
