"""Puts data and text of unknown origin into a page without letting any of it act.

Everything that a system under test said may be hostile. Text goes through the template engine's
escaping; data goes into a script element that is never run, with every character escaped that
could end it; and a content security policy allows the page's own scripts by their hash and
nothing else, no connection among it.
"""

import base64
import hashlib
from typing import Any

import msgspec
from markupsafe import Markup

_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def json_for_script(data: Any) -> Markup:
    """JSON that can stand inside a script element, whatever strings are in it."""
    text = msgspec.json.encode(data).decode()
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - the characters that could leave the element are gone


def own_script(source: str) -> Markup:
    """A script of ours as the content of a script element.

    Raises:
        ValueError: the source would end the element early.
    """
    if "</script" in source.lower() or "<!--" in source:
        message = "a script of the report contains a closing tag"
        raise ValueError(message)
    return Markup(source)  # noqa: S704 - part of the project, checked above


def own_style(source: str) -> Markup:
    """A style sheet of ours as the content of a style element.

    Raises:
        ValueError: the source would end the element early.
    """
    if "</style" in source.lower():
        message = "a style sheet of the report contains a closing tag"
        raise ValueError(message)
    return Markup(source)  # noqa: S704 - part of the project, checked above


def content_security_policy(scripts: list[str]) -> str:
    """A policy under which only these scripts run and nothing is fetched or sent."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
