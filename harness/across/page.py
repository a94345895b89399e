"""The page over all runs: the template of ``harness/report/assets`` filled with findings.

Everything in a lake may be hostile: text is escaped by the template engine, and the page's security
policy allows no script at all.
"""

import jinja2

from harness.across.findings import Findings, trends_of
from harness.across.trend_plot import draw_trend
from harness.across.words import (
    MEASURES,
    change_text,
    failure_title,
    flake_text,
    headline,
    moment,
)
from harness.plain_text import printable
from harness.report.embedding import content_security_policy, own_style
from harness.report.page_assets import ASSETS


def across_page(findings: Findings) -> str:
    """The whole page; it needs nothing but itself."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {
        "printable": printable,
        "moment": moment,
        "measure": _measure,
        "change_text": change_text,
        "failure_title": failure_title,
        "flake_text": flake_text,
    }
    environment.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]  # untyped there
    styles = [(ASSETS / name).read_text(encoding="utf-8") for name in ("report.css", "across.css")]
    return environment.get_template("across.html.j2").render(
        policy=content_security_policy([]),
        styles=[own_style(style) for style in styles],
        headline=headline(findings),
        findings=findings,
        trends=[(trend, draw_trend(trend)) for trend in trends_of(findings)],
    )


def _measure(name: str) -> str:
    return MEASURES.get(name, name)
