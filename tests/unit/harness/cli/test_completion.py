"""Completion in a real bash: commands, options, names and run folders, and what a key costs."""

import os
import pty
import resource
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.checker.names import history_models
from splitbrain.harness.cli.completion import answer, values_of
from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.nemesis.kinds import kind_names
from splitbrain.systems.registry import chosen_names, system
from splitbrain.workloads.workload import workload_names

#: One word's processor time, beside other tests.
KEY_S = 0.6


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script of bash, beside a program of the name that it asks."""
    folder = tmp_path_factory.mktemp("completion")
    program = folder / "splitbrain"
    start = "from splitbrain.harness.cli.entry import start; start()"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-c", start])} "$@"\n')
    program.chmod(0o755)
    file = folder / "splitbrain.bash"
    made = subprocess.run([program, "completion", "bash"], capture_output=True, check=True)
    file.write_bytes(made.stdout)
    return file


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with runs, as a user has it."""
    for run in ("kraft-register/20261121T165545Z-5", "kraft-set/20261122T165545Z-6"):
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        (folder / "plan.json").touch()
    (tmp_path / "history.edn").touch()
    return tmp_path


def completed(script: Path, place: Path, *words: str) -> list[str]:
    """Return the words that bash offers for the last one."""
    line = ["splitbrain", *words]
    ask = (
        f"source {shlex.quote(str(script))}\nCOMP_WORDS=({shlex.join(line)})\n"
        f"COMP_CWORD={len(line) - 1}\n_splitbrain\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", ask],
        cwd=place,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return [word for word in done.stdout.splitlines() if word]


def test_commands_and_options_are_offered(script: Path, place: Path) -> None:
    commands = completed(script, place, "")
    assert {"test", "sim", "check", "gate", "completion"} <= set(commands)
    assert completed(script, place, "sh") == ["shrink"]
    assert completed(script, place, "sim", "--be") == ["--beyond-promise"]
    assert completed(script, place, "completion", "") == ["bash", "zsh", "fish"]


def test_names_are_offered_where_an_option_wants_one(script: Path, place: Path) -> None:
    assert completed(script, place, "test", "--system", "") == [*chosen_names()]
    assert completed(script, place, "sim", "--system", "=", "re") == ["redis"]
    assert completed(script, place, "test", "--workload", "") == [*workload_names()]
    assert completed(script, place, "check", "h.edn", "--model", "") == [*history_models()]
    kinds = completed(script, place, "test", "--nemesis", "part")
    assert kinds == ["partial", "partial-partition", "partition"]
    assert completed(script, place, "test", "--nemesis", "kill,part") == [
        r"kill\,partial",
        r"kill\,partition",
    ]
    assert completed(script, place, "sim", "--bug", "prior-") == ["prior-epoch-commit"]
    assert answer(["sim", "--world", "codec,vo"]).splitlines()[1:] == ["codec,voters"]
    assert answer(["sim", "--world", "snap"]).splitlines()[1:] == ["snapshots"]
    assert completed(script, place, "explain", "INV-0")[0] == "INV-01"


def test_a_command_to_be_shown_and_a_system_to_be_checked_are_offered(
    script: Path, place: Path
) -> None:
    assert completed(script, place, "help", "sh") == ["shrink"]
    assert completed(script, place, "systems", "") == ["check"]
    assert answer(["systems", "check", "kra"]).splitlines()[1:] == ["kraft"]
    # Words that are names of commands as well.
    assert completed(script, place, "systems", "check", "kra") == ["kraft"]
    assert completed(script, place, "systems", "check", "kraft", "--run") != []
    assert completed(script, place, "explain", "check", "INV-0")[0] == "INV-01"
    assert completed(script, place, "check", "test", "--model", "") == [*history_models()]


def test_fish_takes_one_word_for_the_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert splitbrain(["completion", "fish"]) == 0
    script = capsys.readouterr().out
    assert "if test (count $subcommands) -eq 0; and string match" in script
    assert script.count("$all_commands") == 1


def test_zsh_finds_its_script_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".zshrc").write_text("alias ll='ls -l'\n")
    for _ in range(2):
        assert splitbrain(["completion", "zsh", "--install"]) == 0
    startup = (tmp_path / ".zshrc").read_text().splitlines()
    assert startup.count("autoload -Uz compinit && compinit") == 1
    assert startup[-1].startswith("autoload"), "after the place is named"
    assert "alias ll='ls -l'" in startup
    place = Path(capsys.readouterr().out.partition(" has it")[0])
    assert any(str(place.parent) in line for line in startup if line.startswith("fpath="))
    script = place.read_text()
    assert script.startswith("#compdef splitbrain\n")
    # Found by zsh it is called, sourced by a user it is registered.
    assert "compdef _cyclopts_splitbrain splitbrain" in script.splitlines()[-2]


def test_run_folders_are_offered_newest_first_and_other_paths(script: Path, place: Path) -> None:
    newest_first = [
        "runs/kraft-set/20261122T165545Z-6",
        "runs/kraft-register/20261121T165545Z-5",
    ]
    for command in ("check", "replay", "shrink", "analyze", "gate"):
        assert completed(script, place, command, "runs/kraft")[:2] == newest_first
    assert completed(script, place, "check", "hist") == ["history.edn"]
    assert completed(script, place, "sim", "--like", "runs/kraft-s")[0] == newest_first[0]


def test_a_key_costs_little(script: Path, place: Path) -> None:
    program = str(script.parent / "splitbrain")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "__complete", "test", "--system", ""], check=True, cwd=place)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent_s < KEY_S
    # The parser is what takes long.
    loaded = "import splitbrain.harness.cli.entry as e, sys; sys.argv[1:] = ['__complete', 'sim'];"
    code = f"{loaded} e.start(); assert not {{'cyclopts', 'rich', 'pyspark'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.fixture
def terminal(script: Path, place: Path) -> Iterator[int]:
    """An interactive bash that has loaded the script, at the other end of a terminal."""
    child, master = pty.fork()
    if child == 0:
        os.chdir(place)
        os.environ["PATH"] = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
        os.environ["PS1"] = "ready> "
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    os.write(master, f"bind 'set bell-style none'; source {script}; echo lo''aded\n".encode())
    _read_until(master, b"loaded")
    yield master
    os.write(master, b"\x03\nexit\n")
    os.close(master)
    os.waitpid(child, 0)


def _read_until(master: int, wanted: bytes) -> bytes:
    said, end = b"", time.monotonic() + 60
    while wanted not in said:
        assert select.select([master], [], [], end - time.monotonic())[0], said
        said += os.read(master, 4096)
    return said


def test_a_key_on_a_terminal_completes_the_word(terminal: int) -> None:
    os.write(terminal, b"splitbrain sim --syst\tkra\t--bug prior-\t")
    _read_until(terminal, b"sim --system kraft --bug prior-epoch-commit")


def test_a_question_that_nobody_can_answer_is_answered_by_nothing() -> None:
    for words in (
        [],
        [""],
        ["sim", "--jobs", ""],
        ["no-such", "x"],
        ["sim", "--system", "no", "--bug", ""],
    ):
        assert answer(words).startswith("\x1fbegin\n")
    assert values_of("--bug", ["sim", "--system", "no-such", "--bug", ""]) == []
    assert values_of("--bug", ["sim", ""]) == [*system("kraft").planted_bugs]
    assert set(values_of("--nemesis", [""])) > {*kind_names(), "none"}


def test_the_script_is_put_where_the_shell_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert splitbrain(["completion", "fish", "--install"]) == 0
    said = capsys.readouterr().out
    (file,) = tmp_path.rglob("splitbrain.fish")
    assert said == f"{file} has it; a new fish loads it.\n"
    assert "__complete" in file.read_text()
