"""Output of ``splitbrain docs``: a page of the documentation, which an installed wheel has too."""

from pathlib import Path
from typing import Final

from rich.console import Console

import splitbrain
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.console.standard_streams import answer

_FOLDER: Final = Path(splitbrain.__file__).parent / "docs"
_INDEX: Final = "index"


def page_names() -> list[str]:
    """Return the pages' names: their paths below docs/ without ``.md``; templates keep theirs."""
    files = (path.relative_to(_FOLDER) for path in _FOLDER.rglob("*") if path.is_file())
    return sorted(path.as_posix().removesuffix(".md") for path in files if path.suffix != ".png")


def show_page(name: str | None, console: Console) -> int:
    """Print a page as it is written, so that its commands can be copied; returns the exit code.

    Raises:
        UsageError: no page, or more than one, has this name.
    """
    page = _page_named(_INDEX if name is None else name)
    file = _FOLDER / page
    text = (file if file.is_file() else _FOLDER / f"{page}.md").read_text(encoding="utf-8")
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True, end="")
    answer(console, {"page": page, "text": text, "pages": page_names()})
    return 0


def _page_named(name: str) -> str:
    """Return the page of a name, which may leave out its folder where only one has it."""
    names = page_names()
    wanted = name.removeprefix("docs/").removesuffix(".md")
    found = [wanted] if wanted in names else [each for each in names if each.endswith(f"/{wanted}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} pages are called {name!r}", f"Name {' or '.join(found)}")
    raise UsageError(f"there is no page {name!r}", or_nearest(wanted, names, "pages"))
