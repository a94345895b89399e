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
#: Notes where each text of a canvas was painted last, in pixels of the canvas.
_NOTE_TEXTS = """() => {
  const painted = globalThis.paintedTexts = new Map();
  const kind = CanvasRenderingContext2D.prototype;
  const of = (context) => {
    if (!painted.has(context.canvas)) painted.set(context.canvas, []);
    return painted.get(context.canvas);
  };
  for (const name of ['width', 'height']) {
    const own = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, name);
    Object.defineProperty(HTMLCanvasElement.prototype, name, {
      ...own, set(value) { painted.set(this, []); own.set.call(this, value); },
    });
  }
  const { clearRect, fillText } = kind;
  kind.clearRect = function (...box) { painted.set(this.canvas, []); clearRect.apply(this, box); };
  kind.fillText = function (text, x, y, ...more) {
    const { a, d, e, f } = this.getTransform(), size = this.measureText(text);
    const left = a * (x - size.actualBoundingBoxLeft) + e;
    const right = a * (x + size.actualBoundingBoxRight) + e;
    const top = d * (y - size.actualBoundingBoxAscent) + f;
    const bottom = d * (y + size.actualBoundingBoxDescent) + f;
    if (text.trim()) of(this).push({ text, left, top, right, bottom });
    fillText.call(this, text, x, y, ...more);
  };
}"""
#: Pairs of texts of one picture that overlap, by more than a pixel that smooths edges.
_OVERLAPS = """() => {
  const found = [];
  const compare = (boxes) => boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
    const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (wide > 1.5 && high > 1.5) found.push(one.text + ' | ' + other.text);
  }));
  for (const picture of document.querySelectorAll('svg'))
    compare([...picture.querySelectorAll('text')].map((part) => {
      const { left, top, right, bottom } = part.getBoundingClientRect();
      return { text: part.textContent, left, top, right, bottom };
    }).filter((box) => box.right > box.left));
  for (const [canvas, boxes] of globalThis.paintedTexts)
    if (canvas.isConnected)
      compare(boxes.filter((box) => box.right > 0 && box.left < canvas.width));
  return found;
}"""
#: Parts of the page that are wider than the window, unless a frame around them can be scrolled.
_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const framed = (part) => {
    for (let frame = part.parentElement; frame; frame = frame.parentElement)
      if (/auto|scroll|hidden|clip/.test(getComputedStyle(frame).overflowX)) return true;
    return false;
  };
  return [...document.body.querySelectorAll('*')].filter((part) => {
    const box = part.getBoundingClientRect();
    // A link for those who read with the keyboard waits outside.
    const is_out = box.right > width + 0.5 || box.left < -0.5;
    return box.width && is_out && !part.matches('.skip') && !framed(part);
  }).map((part) => part.tagName + '.' + part.className + ': ' + part.textContent.slice(0, 40));
}"""


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
    opened.page.add_init_script(f"({_NOTE_TEXTS})()")
    opened.page.goto(report.as_uri())
    if scripts and charts:
        # Not wait_for_function: it polls by eval, which the page's security policy forbids.
        expect(opened.page.locator("html")).to_have_attribute(
            "data-charts", str(charts), timeout=PATIENCE
        )
    return opened


def unfold(page: Page) -> None:
    """Unfold everything."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    # Two frames: observers act in the first, what they ask for is painted in the second.
    page.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")


def assert_all_can_be_read(page: Page) -> None:
    """Assert that nothing is wider than the window and no label of a picture hides another."""
    assert page.evaluate(_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.evaluate("innerWidth")
    assert page.evaluate(_OVERLAPS) == []
