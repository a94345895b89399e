"""Takes the picture of a page's head: ``python -m tests.browser.picture PAGE.html PICTURE.png``."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.opened_reports import BROWSERS, FLAGS

_SIZE = {"width": 1100, "height": 800}


def take(page: Path, picture: Path) -> None:
    """Open a page in the browser that there is, and write what its reader sees first."""
    found = next(path for name in BROWSERS if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        opened = browser.new_page(viewport={"width": _SIZE["width"], "height": _SIZE["height"]})
        opened.goto(page.absolute().as_uri(), wait_until="networkidle")
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
