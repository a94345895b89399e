"""Opens reports in a real browser, offline, and keeps what it complained about."""

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

#: Names of the browser on Debian and elsewhere, the first found is used.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: The second line keeps the browser itself off the network.
FLAGS = (
    *("--no-sandbox", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
#: Milliseconds until a page must have done what it was asked to.
PATIENCE = 30_000


class Visit:
    """An open report and what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))


def visit(
    browser: Browser,
    report: Path,
    *,
    width: int = 1280,
    dark: bool = False,
    scripts: bool = True,
    charts: int = 3,
) -> Visit:
    """Open a page and await its charts; that of a bare history has none."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        offline=True,
    )
    opened = Visit(context.new_page())
    opened.page.goto(report.as_uri())
    if scripts and charts:
        # Not wait_for_function: it polls by eval, which the page's security policy forbids.
        expect(opened.page.locator("html")).to_have_attribute(
            "data-charts", str(charts), timeout=PATIENCE
        )
    return opened
