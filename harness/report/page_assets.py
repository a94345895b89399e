"""Templates, styles, scripts and the chart library of our pages, and how data get into a page.

A page carries all of it inside; nothing is fetched when it is opened. Everything that a system
under test said may be hostile. Text goes through the template engine's escaping; data goes into a
script element that is never run, with every character escaped that could end it; a content security
policy allows the page's own scripts by their hash and nothing else, no connection either.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
import msgspec
from markupsafe import Markup

_FOLDER: Final = Path(__file__).parent
ASSETS: Final = _FOLDER / "assets"
#: Place of the chart library, filled by ``make setup``.
VENDOR: Final = _FOLDER / "vendor"
#: Shared by every page with charts.
_CHARTS: Final = "charts.js"


class PageAssets(msgspec.Struct, frozen=True):
    """Scripts and styles of a page, in the order in which they stand in it."""

    scripts: list[str]
    styles: list[str]
    has_charts: bool


def page_assets(
    vendor: Path | None, scripts: Sequence[str], styles: Sequence[str] = ()
) -> PageAssets:
    """Return the assets of these names in ``ASSETS``, behind those that all pages have.

    ``vendor`` is the folder of the chart library; None for a page without charts.
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
    """Return the templates' environment; everything that they show is escaped."""
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


_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def json_for_script(data: Any) -> Markup:
    """Return JSON that can stand inside a script element, whatever strings are in it."""
    text = msgspec.json.encode(data).decode()
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - the characters that could leave the element are gone


def own_script(source: str) -> Markup:
    """Return our script for a script element; raise ValueError if it would end the element."""
    if "</script" in source.lower() or "<!--" in source:
        message = "a script of the report contains a closing tag"
        raise ValueError(message)
    return Markup(source)  # noqa: S704 - part of the project, checked above


def own_style(source: str) -> Markup:
    """Return our style for a style element; raise ValueError if it would end the element."""
    if "</style" in source.lower():
        message = "a style sheet of the report contains a closing tag"
        raise ValueError(message)
    return Markup(source)  # noqa: S704 - part of the project, checked above


def content_security_policy(scripts: list[str]) -> str:
    """Return a policy under which only these scripts run and nothing is fetched or sent."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
