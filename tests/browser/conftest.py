"""One browser for the reports of a module."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.opened_reports import BROWSERS, FLAGS


# Not for the session: playwright's loop stays open in its thread, and later tests of the same
# worker begin their own.
@pytest.fixture(scope="module")
def started_browser() -> Iterator[Browser]:
    """A running Chromium; playwright's own builds are not used."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    assert found is not None, "no Chromium on the path: run docker/chromium.sh or install one"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def browser(started_browser: Browser) -> Iterator[Browser]:
    """The same one, without the pages of the test before, which would go on being drawn."""
    yield started_browser
    for context in started_browser.contexts:
        context.close()
