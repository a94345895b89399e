"""Templates, styles, scripts and the chart library of our pages, and how data get into a page.

A page carries all of it inside. Everything that a system under test said may be hostile: text goes
through the template engine's escaping, data into a script element that is never run, with every
character escaped that could end it, and a content security policy allows the page's own scripts by
their hash and nothing else, no connection either.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import jinja2
import msgspec
from markupsafe import Markup

_FOLDER: Final = Path(__file__).parent
ASSETS: Final = _FOLDER / "assets"
#: Place of the chart library, filled by ``make setup``.
VENDOR: Final = _FOLDER / "vendor"
#: Shared by every page with charts.
_CHARTS: Final = "charts.js"


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def json_for_script(data: Any) -> Markup:
    """Return JSON that can stand inside a script element, whatever strings are in it."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - the characters that could leave the element are gone


def own_source(source: str, element: Literal["script", "style"]) -> Markup:
    """Return our source for such an element; raise ValueError if it would end the element."""
    if f"</{element}" in source.lower() or "<!--" in source:
        message = f"a {element} of the report contains a closing tag"
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


def render_page(
    template: str,
    filters: Mapping[str, Callable[..., Any]],
    *,
    scripts: Sequence[str],
    styles: Sequence[str],
    vendor: Path | None,
    **shown: Any,
) -> str:
    """Return the page of a template in ``ASSETS``; everything that it shows is escaped.

    Scripts and styles of these names stand behind those that all pages have; ``vendor`` is the
    folder of the chart library, None for a page without charts.
    """
    own_js = [_asset(name) for name in (_CHARTS, *scripts)]
    own_css = [_asset(name) for name in ("report.css", *styles)]
    library = () if vendor is None else (vendor / "uPlot.iife.min.js", vendor / "uPlot.min.css")
    has_charts = bool(library) and all(path.is_file() for path in library)
    if has_charts:
        script, style = (path.read_text(encoding="utf-8") for path in library)
        own_js, own_css = [script, *own_js], [style, *own_css]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]  # untyped there
    return environment.get_template(template).render(
        # It refuses any request that hostile text in the page might make.
        policy=content_security_policy(own_js),
        scripts=[own_source(script, "script") for script in own_js],
        styles=[own_source(style, "style") for style in own_css],
        has_charts=has_charts,
        **shown,
    )
