"""Writer of a shrunk scenario as a small, self-contained pytest file.

The file holds the scenario as JSON without defaults, broken into lines, and asserts that nothing is
found; where the scenario has planted bugs, also that with them the failure is. Must never replace a
file.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.scenario_text import changed_fields

#: The line length of most projects' linters, this one's too.
_WIDTH: Final = 100
_NAME: Final = re.compile(r"test_[A-Za-z0-9_]+\.py")


def check_test_file(path: Path) -> None:
    """Refuse a file that cannot be written, or that pytest would not collect; raise UsageError."""
    wrong = f"--save-test cannot be {str(path)!r}"
    if _NAME.fullmatch(path.name) is None:
        next_step = "Choose a name such as tests/regressions/test_two_leaders.py"
        raise UsageError(f"{wrong}: pytest looks for test_*.py", next_step)
    if path.exists():
        next_step = "Choose another name, or remove the file"
        raise UsageError(f"--save-test would replace {str(path)!r}", next_step)
    if not path.absolute().parent.is_dir():
        next_step = "Make the folder, or choose another one"
        raise UsageError(f"{wrong}: its folder does not exist", next_step)


def save_test(path: Path, content: str) -> None:
    """Write the file; raise HarnessError if the disk refuses, or there is one meanwhile."""
    with (
        tell_refusal("write the test", path, "Choose another place with --save-test"),
        path.open("x", encoding="utf-8") as file,
    ):
        file.write(content)


def content_of_test(
    scenario: Scenario, failed_by: tuple[str, ...], sentence: str, continued: str | None = None
) -> str:
    """Return the test file of a scenario.

    ``failed_by`` names the invariant or checkers, ``sentence`` their finding, ``continued`` how to
    go on where the search ended early.
    """
    finder = failed_by[0]
    name = re.sub(r"[^a-z0-9]+", "_", finder.lower()).strip("_")
    lines = [
        f'"""{_docstring(f"{finder}: {sentence}")}',
        "",
        "Saved by `splitbrain shrink`.",
        *([] if continued is None else [f"The search was {continued}."]),
        '"""',
        "",
        "from splitbrain.harness.campaign.sweep.regression import replays",
        "",
        'SCENARIO = r"""',
        as_text(scenario),
        '"""',
        "",
        "",
    ]
    if scenario.bugs:
        lines += [
            f"def test_{name}_holds_without_the_planted_bug() -> None:",
            "    assert replays(SCENARIO, bugs=()) == ()",
            "",
            "",
            f"def test_{name}_fails_with_the_planted_bug() -> None:",
            f'    assert "{finder}" in replays(SCENARIO)',
        ]
    else:
        lines += [f"def test_{name}_holds() -> None:", "    assert replays(SCENARIO) == ()"]
    return "\n".join(lines) + "\n"


def as_text(scenario: Scenario) -> str:
    """Return the scenario as JSON in few lines, without defaults."""
    return _broken(changed_fields(scenario), "")


def _broken(value: Any, indent: str, name: str = "") -> str:
    """Return JSON on one line if short enough, else one line for each member.

    ``indent`` is that of its first line, ``name`` its key there.
    """
    line = name + json.dumps(value, ensure_ascii=True)
    if len(indent) + len(line) < _WIDTH or not isinstance(value, dict | list | tuple):
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        members = [
            deeper + _broken(member, deeper, f"{json.dumps(key)}: ")
            for key, member in cast("dict[str, Any]", value).items()
        ]
        lines = ",\n".join(members)
        return f"{name}{{\n{lines}\n{indent}}}"
    members = [_broken(member, deeper) for member in cast("Sequence[Any]", value)]
    return f"{name}[\n{_filled(members, deeper)}\n{indent}]"


def _filled(members: list[str], indent: str) -> str:
    lines: list[str] = []
    for place, member in enumerate(members):
        ended = member if place == len(members) - 1 else f"{member},"
        room = _WIDTH - len(ended) - 1
        if lines and len(lines[-1]) < room and "\n" not in lines[-1] + ended:
            lines[-1] += f" {ended}"
        else:
            lines.append(indent + ended)
    return "\n".join(lines)


def _docstring(sentence: str) -> str:
    """Return one sentence that can stand in a docstring, within the width."""
    plain = printable(sentence).replace("\\", "/").replace('"', "'").rstrip(".'")
    longest = _WIDTH - len('"""') - 1
    cut = plain if len(plain) <= longest else plain[: longest - 3].rsplit(" ", 1)[0] + "..."
    return cut if cut.endswith("...") else f"{cut}."
