"""Known losses: listed, shown with their controls, and held to what is recorded of them."""

import io
import json
import tomllib
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.explanation import KnownLoss
from splitbrain.harness.campaign import findings
from splitbrain.harness.campaign.suite.command import SuiteOptions
from splitbrain.harness.cli import main as cli
from splitbrain.harness.report.explanations import explained
from splitbrain.systems.registry import finding_files
from tests.unit.harness.campaign.suite.fake_nights import Suites, does, matrix, table
from tests.unit.harness.campaign.suite.findings_page import PAGE, page

WORDS = table(
    "known_loss",
    title="It forgets",
    promised="It keeps all.",
    happened="It kept none.",
    source="A ticket",
    standing="open",
)
LOSS = matrix("loss", setting=does("invalid"), expect="invalid", at_least=2, seeds="90:93")
CONTROL = matrix("control", setting=does("valid"), seeds="0:2")


class Museum:
    """One known loss, ``unit``, of fake runs."""

    def __init__(self, suites: Suites, monkeypatch: pytest.MonkeyPatch) -> None:
        self.suites, self.output = suites, ""
        suites.file = suites.folder / "unit.toml"
        monkeypatch.setattr(findings, "finding_files", lambda: {"unit": suites.file})

    def show(self, *parts: str, names: tuple[str, ...] = ("unit",)) -> int:
        self.suites.write(*parts)
        text = io.StringIO()
        console = Console(file=text, soft_wrap=True)
        try:
            return findings.run_findings(names, self.suites.options(), console)
        finally:
            self.output = text.getvalue()


@pytest.fixture
def museum(suites: Suites, monkeypatch: pytest.MonkeyPatch) -> Museum:
    return Museum(suites, monkeypatch)


@pytest.mark.parametrize("names", [("unit",), (), ("unit", "unit")])
def test_a_loss_that_shows_as_recorded_is_told_with_its_control(
    museum: Museum, names: tuple[str, ...]
) -> None:
    assert museum.show(LOSS, CONTROL, WORDS, names=names) == 0
    first = "" if names else "1 known loss, 5 runs; name those to be shown, or all are.\n"
    assert museum.output == first + (
        "unit: shown in 3 of 3 runs (at least 2 must), the control valid in 2 of 2: as recorded\n"
    )


@pytest.mark.parametrize(
    ("loss", "control", "code", "sentence"),
    [
        ("valid", "valid", 1, "shown in 0 of 3 runs (at least 2 must), the control valid in 2"),
        ("invalid", "invalid", 1, "the control valid in 0 of 2: NOT as recorded"),
        ("invalid", "set-up-fails", 3, "the control valid in 0 of 2: the harness failed"),
        ("set-up-fails", "valid", 3, "shown in 0 of 3 runs (at least 2 must), the control valid"),
        ("invalid", "unknown", 2, "the control valid in 0 of 2: nothing can be said yet"),
    ],
)
def test_a_loss_or_a_control_that_differs_is_told(
    museum: Museum, loss: str, control: str, code: int, sentence: str
) -> None:
    changed = LOSS.replace("'invalid'}", f"'{loss}'}}"), CONTROL.replace("'valid'", f"'{control}'")
    assert museum.show(*changed, WORDS) == code
    assert sentence in museum.output


def test_a_violation_of_another_kind_shows_nothing(museum: Museum) -> None:
    loss = LOSS + "\ncaught_by = ['set-full']"
    assert museum.show(loss, CONTROL, WORDS) == 1
    assert "unit: shown in 0 of 3 runs" in museum.output


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ((LOSS, CONTROL), r"has no table \[known_loss\]"),
        ((LOSS, WORDS), "one that expects valid as its control"),
        ((CONTROL, WORDS), "needs a matrix that expects invalid"),
        ((LOSS, CONTROL, WORDS.replace("open", "shut")), "known_loss, standing: invalid enum"),
        ((LOSS, CONTROL, WORDS.replace("title", "titel")), "there is no field 'titel'"),
    ],
)
def test_a_file_that_is_no_known_loss_is_refused_before_a_run(
    museum: Museum, parts: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        museum.show(*parts)
    assert museum.suites.logged() == []


def test_a_file_by_another_name_and_a_name_without_a_file_are_refused(museum: Museum) -> None:
    with pytest.raises(UsageError, match="no known loss called 'units'") as refused:
        museum.show(LOSS, CONTROL, WORDS, names=("units",))
    assert "'unit'" in refused.value.next_step
    museum.suites.write(LOSS, CONTROL, WORDS)
    museum.suites.file.write_text(museum.suites.file.read_text().replace("'unit'", "'other'", 1))
    with pytest.raises(UsageError, match="has the name 'other', and its file another one"):
        findings.list_findings(Console(file=io.StringIO()))


def test_the_answer_in_json_is_one_line(
    museum: Museum, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    museum.suites.write(LOSS, CONTROL, WORDS)
    from splitbrain.harness.console.standard_streams import output

    options = museum.suites.options()
    assert findings.run_findings(["unit"], options, output(as_json=True)) == 0
    (told,) = json.loads(capsysbinary.readouterr().out)
    assert (told["name"], told["shown"], told["runs"], told["control_valid"]) == ("unit", 3, 3, 2)
    assert "failed" not in museum.suites.verdicts()


def test_every_known_loss_of_the_box_can_be_run_and_is_explained() -> None:
    files = finding_files()
    assert {"redis-sentinel-failover"} <= {*files}
    assert cli.run(["findings"]) == 0
    told = {text.name: text for text in explained()["known loss"]}
    assert {*told} == {*files}
    for name, file in files.items():
        words = msgspec.convert(tomllib.loads(file.read_text())["known_loss"], KnownLoss)
        assert told[name].says.startswith(words.title)
        assert words.source.count("http") or " KIP-" in words.source, name


def test_the_page_has_every_known_loss() -> None:
    remedy = "write it anew: python -m tests.unit.harness.campaign.suite.findings_page"
    assert PAGE.read_text() == page(), remedy


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["findings", "walk"], "findings cannot be asked for 'walk'"),
        (["findings", "run", "nothing-like-it"], "no known loss called 'nothing-like-it'"),
    ],
)
def test_a_wrong_line_is_refused(
    line: list[str], sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.run([*line, "--runs-folder", str(tmp_path)]) == 64
    assert sentence in capsys.readouterr().err


def test_a_signal_ends_the_findings_that_have_not_begun_too(
    museum: Museum, monkeypatch: pytest.MonkeyPatch
) -> None:
    museum.suites.write(LOSS, CONTROL, WORDS)
    other = museum.suites.folder / "other.toml"
    other.write_text(museum.suites.file.read_text().replace("'unit'", "'other'"))
    files = {"unit": museum.suites.file, "other": other}
    monkeypatch.setattr(findings, "finding_files", lambda: files)
    run, begun = findings.run_suite, list[str]()

    def signalled(file: Path, options: SuiteOptions, console: Console) -> int:
        begun.append(file.stem)
        code = run(file, options, console)
        assert options.interrupted is not None
        assert not options.interrupted.is_set()
        options.interrupted.set()
        return code

    monkeypatch.setattr(findings, "run_suite", signalled)
    text = io.StringIO()
    console = Console(file=text, soft_wrap=True)
    findings.run_findings((), museum.suites.options(), console)
    assert begun == ["unit"]
    assert "Ended early; not begun: other." in text.getvalue()
