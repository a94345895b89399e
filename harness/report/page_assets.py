"""What our pages are made of: templates, styles, scripts, and the chart library where it is there.

The report of a run and the page over all runs take theirs from here. A page carries all of it
inside; nothing is fetched when it is opened.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
import msgspec

_FOLDER: Final = Path(__file__).parent
ASSETS: Final = _FOLDER / "assets"
#: Where ``make setup`` puts the chart library.
VENDOR: Final = _FOLDER / "vendor"
#: What every page with charts shares.
_CHARTS: Final = "charts.js"


class PageAssets(msgspec.Struct, frozen=True):
    """Scripts and styles of a page, in the order in which they stand in it."""

    scripts: list[str]
    styles: list[str]
    #: Whether the chart library is there.
    has_charts: bool


def page_assets(
    vendor: Path | None, scripts: Sequence[str], styles: Sequence[str] = ()
) -> PageAssets:
    """The assets of these names behind those that all pages have.

    Args:
        vendor: folder of the chart library; None for a page without charts.
        scripts: names in ``ASSETS``.
        styles: names in ``ASSETS``.
    """
    own_css = [_asset(name) for name in ("report.css", *styles)]
    own_js = [_asset(name) for name in (_CHARTS, *scripts)]
    if vendor is None:
        return PageAssets(own_js, own_css, has_charts=False)
    library, library_css = vendor / "uPlot.iife.min.js", vendor / "uPlot.min.css"
    if not (library.is_file() and library_css.is_file()):
        return PageAssets(own_js, own_css, has_charts=False)
    return PageAssets(
        [library.read_text(encoding="utf-8"), *own_js],
        [library_css.read_text(encoding="utf-8"), *own_css],
        has_charts=True,
    )


def template_environment(filters: Mapping[str, Callable[..., Any]]) -> jinja2.Environment:
    """Where templates are found; everything that they show is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]  # untyped there
    return environment


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
