"""Completion of a command line: values of options and places, asked for by the shell at each key.

The script of a shell is made by the parser's library, knows commands and options by itself, and
asks ``splitbrain __complete WORDS`` for the rest. That is answered here without the parser, whose
loading alone takes longer than a user waits for a key.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

#: First word of a shell's question, and the line before the answer.
ASKED: Final = "__complete"
_BEGIN: Final = "\x1fbegin"
#: Run folders that are offered, newest first.
_RUNS_MAX: Final = 100

#: Values of an option or a place from the words so far, the last of which is being written.
Values = Callable[[Sequence[str]], Iterable[str]]


def _systems(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.systems.registry import chosen_names

    return chosen_names()


def _bugs(words: Sequence[str]) -> Iterable[str]:
    from splitbrain.contracts.errors import UsageError
    from splitbrain.contracts.names import DEFAULT_SYSTEM
    from splitbrain.systems.registry import system

    try:
        return system(_value_of("--system", words) or DEFAULT_SYSTEM).planted_bugs
    except UsageError:
        return ()


def _workloads(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.workloads.workload import workload_names

    return workload_names()


def _runtimes(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.contracts.runtime import SIMULATED
    from splitbrain.runtimes.registry import runtime_names

    return sorted({*runtime_names(), SIMULATED})


def _nemeses(words: Sequence[str]) -> Iterable[str]:
    from splitbrain.nemesis.kinds import kind_names

    before, comma, _ = words[-1].rpartition(",")
    if not comma:
        from splitbrain.nemesis.scripted import SCRIPTED

        return sorted({*kind_names(), *SCRIPTED, "none"})
    return [f"{before},{name}" for name in kind_names()]


def _worlds(words: Sequence[str]) -> Iterable[str]:
    from splitbrain.harness.campaign.sweep.options import SimOptions
    from splitbrain.harness.campaign.sweep.trial import drawn_traits

    before, comma, _ = words[-1].rpartition(",")
    traits = drawn_traits(0, SimOptions())
    return [f"{before}{comma}{name}" for name in traits]


def _models(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.checker.names import history_models

    return history_models()


def _levels(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.checker.transactions.levels import LEVELS

    return LEVELS


def _formats(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.history.formats import FORMATS

    return FORMATS


def _runs(words: Sequence[str]) -> Iterable[str]:
    """Yield run folders of the usual place, newest first, and other paths."""
    found = [plan.parent for plan in Path("runs").glob("*/*/plan.json")]
    found.sort(key=lambda run: run.name, reverse=True)
    if Path("runs/latest").exists():
        yield "runs/latest"
    yield from map(str, islice(found, _RUNS_MAX))
    yield from _paths(words[-1])


def _paths(written: str) -> Iterable[str]:
    """Yield paths that go on as written."""
    folder, _, begun = written.rpartition("/")
    place = Path(folder) if folder else Path("/" if written.startswith("/") else ".")
    before = written[: len(written) - len(begun)]
    try:
        for entry in sorted(place.iterdir()):
            if entry.name.startswith(begun) and (begun or not entry.name.startswith(".")):
                yield f"{before}{entry.name}{'/' if entry.is_dir() else ''}"
    except OSError:
        return


def _pages(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.harness.cli.pages import page_names

    return page_names()


def _explained(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.harness.report.explanations import explained

    return [text.name for texts in explained().values() for text in texts]


def _findings(words: Sequence[str]) -> Iterable[str]:
    from splitbrain.systems.registry import finding_files

    return finding_files() if "run" in words[:-1] else ("run",)


def _commands(_words: Sequence[str]) -> Iterable[str]:
    from splitbrain.harness.cli.main import app

    return [name for name in app if not name.startswith("-")]


def _systems_places(words: Sequence[str]) -> Iterable[str]:
    """Yield ``check``, and after it systems, by name or as a file."""
    if "check" not in words[:-1]:
        return ("check",)
    return (*_systems(words), *_paths(words[-1]))


_OF_OPTIONS: Final[dict[str, Values]] = {
    "--system": _systems,
    "--bug": _bugs,
    "--workload": _workloads,
    "--runtime": _runtimes,
    "--nemesis": _nemeses,
    "--world": _worlds,
    "--model": _models,
    "--level": _levels,
    "--format": _formats,
    "--like": _runs,
}
#: Of what a command is given by its place.
_OF_PLACES: Final[dict[str, Values]] = {
    **dict.fromkeys(("check", "replay", "shrink", "analyze", "gate"), _runs),
    "docs": _pages,
    "explain": _explained,
    "findings": _findings,
    "help": _commands,
    "systems": _systems_places,
}


#: Test for a command's name in a shell's script, and the same before another command was found.
_IS_COMMAND: Final[dict[str, tuple[str, str]]] = {
    "bash": (
        'if [[ " $all_commands " =~ " $word " ]]; then',
        'if [[ ${#cmd_path[@]} -eq 0 && " $all_commands " =~ " $word " ]]; then',
    ),
    "fish": (
        'if string match -q -- "* $word *" " $all_commands "',
        'if test (count $subcommands) -eq 0; and string match -q -- "* $word *" " $all_commands "',
    ),
}


#: End of the script of zsh, which is called where zsh finds it by itself, and else registers it.
_ZSH_END: Final = """
if [[ $funcstack[1] == _cyclopts_splitbrain ]]; then
  _cyclopts_splitbrain "$@"
elif (( $+functions[compdef] )); then
  compdef _cyclopts_splitbrain splitbrain
fi
"""
#: Line of the startup file of zsh, without which it looks for no scripts.
_ZSH_LOOKS: Final = "autoload -Uz compinit && compinit"


def shell_script(made: str, shell: str) -> str:
    """Return the script that the parser's library made for a shell, with what it leaves open.

    It takes every word that is the name of a command for one: in ``systems check NAME`` it would
    see a command of two words. That of zsh says nothing of how it is loaded.
    """
    if shell == "zsh":
        return made + _ZSH_END
    return made.replace(*_IS_COMMAND[shell])


def have_zsh_look(startup: Path) -> None:
    """Let zsh look for scripts of completion, in the places that its startup file has named."""
    lines = startup.read_text(encoding="utf-8").splitlines()
    if _ZSH_LOOKS not in lines[-1:]:
        startup.write_text("\n".join([*lines, _ZSH_LOOKS, ""]), encoding="utf-8")


def values_of(place: str, words: Sequence[str]) -> list[str]:
    """Return the values of an option, or of a command's place, that go on as the last word does.

    ``words`` follow the name of the program.
    """
    values = _OF_OPTIONS.get(place) or _OF_PLACES.get(place)
    if values is None:
        return []
    return [value for value in dict.fromkeys(values(words)) if value.startswith(words[-1])]


def has_values(place: str) -> bool:
    """Return whether there are values for an option, or for a command's place."""
    return place in _OF_OPTIONS or place in _OF_PLACES


def answer(words: Sequence[str]) -> str:
    """Return the answer to a shell, which wants a line for each value."""
    words = _merged([*words]) or [""]
    written = words[-1]
    option, equals, value = written.partition("=")
    if equals and option in _OF_OPTIONS:
        place, words = option, [*words[:-1], value]
    elif len(words) > 1 and words[-2] in _OF_OPTIONS:
        place = words[-2]
    else:
        place = words[0]
    return "\n".join([_BEGIN, *values_of(place, words), ""])


def _merged(words: list[str]) -> list[str]:
    """Join ``--option``, ``=`` and what follows: bash takes them for three words."""
    merged: list[str] = []
    for word in words:
        if merged and ((word == "=" and merged[-1].startswith("--")) or merged[-1].endswith("=")):
            merged[-1] += word
        else:
            merged.append(word)
    return merged


def _value_of(option: str, words: Sequence[str]) -> str | None:
    for place, word in enumerate(words[:-1]):
        if word == option and place + 1 < len(words) - 1:
            return words[place + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
