"""Takes the picture of a page: ``python -m tests.browser.picture PAGE.html PICTURE.png [CARD...]``.

Without cards the picture is what the page's reader sees first; else it is the headline and these
cards, by their ids, in the order in which the page has them.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.opened_reports import BROWSERS, FLAGS

_SIZE = {"width": 1100, "height": 800}


#: Leaves only the headline and some cards of a page: how to run it again, and where its folder
#: lies, are of the machine on which it was run.
_ALONE = """cards => {
    const rest = ".top .next, .top .note, nav, details.contents, footer, .card";
    for (const each of document.querySelectorAll(rest))
        if (!cards.includes(each.id)) each.style.display = "none";
}"""


def take(page: Path, picture: Path, *cards: str) -> None:
    """Open a page in the browser that there is, and write what its reader sees."""
    found = next(path for name in BROWSERS if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        opened = browser.new_page(viewport={"width": _SIZE["width"], "height": _SIZE["height"]})
        opened.goto(page.absolute().as_uri(), wait_until="networkidle")
        if cards:
            opened.evaluate(_ALONE, cards)
        opened.screenshot(path=picture, full_page=bool(cards))
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
