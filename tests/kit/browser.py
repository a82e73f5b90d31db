"""Debian's Chromium, headless, driven by playwright: what a page of ours does in a real browser.

Whatever the page says to its console as an error, and every violation of its policy, fails the test that opened it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.kit.require import require

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

WHOLE = ("chromium", "chromium-browser", "google-chrome")
"""Browsers with profiles and extensions."""
SHELLS = ("chromium-headless-shell", *WHOLE)
"""The browser without a window's parts takes half of a core's time; where it is missing a whole one does."""
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-gpu",
    "--disable-software-rasterizer",
]
"""Root in a container has no sandbox of Chromium's own, and the pages are ours. They need no graphics card."""
SHOTS = "HEARTH_SCREENSHOTS"
"""A folder that screenshots are kept in; without it none is taken."""
SLOW = "HEARTH_SLOW_PAGE"
"""What is slow for every page, of `_SLOWED`, by commas: a test that reads what has not come yet fails with one of them.

Else it does only where a machine is busy.
"""
_LATE_ANSWERS = """(() => {
  const fetched = window.fetch;
  window.fetch = (...asked) => fetched(...asked).then(
    (answer) => new Promise((later) => setTimeout(later, Math.random() * 300, answer)));
})()"""
_LATE_DATABASES = """Object.defineProperty(IDBOpenDBRequest.prototype, "onsuccess", {
  set(tell) {
    this.addEventListener("success", (event) => setTimeout(() => tell.call(this, event), Math.random() * 1000));
  },
})"""


def slow_processor(page: Page, rate: float) -> None:
    """Make a page's processor so many times slower."""
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})


_SLOWED: dict[str, Callable[[Page], None]] = {
    "processor": lambda page: slow_processor(page, 6),
    "network": lambda page: page.add_init_script(_LATE_ANSWERS),
    "disk": lambda page: page.add_init_script(_LATE_DATABASES),
}
"""By its name, what makes it slow: answers, and databases that open, come late, each at its own time."""


def require_chromium(*, whole: bool = False) -> str:
    """Return the browser's program, a `whole` one where asked; skip or fail the test where there is none."""
    found = next((path for name in (WHOLE if whole else SHELLS) if (path := shutil.which(name))), None)
    require("chromium", found is not None, "no chromium; Debian: apt-get install chromium chromium-headless-shell")
    assert found is not None
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Run one browser while the context is open."""
    from playwright.sync_api import sync_playwright

    program = require_chromium()
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield running
        finally:
            running.close()


class Watched:
    """A page and what it complained of."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        self.page: Page = context.new_page()
        self.page.set_default_timeout(20_000)
        for slow in filter(None, os.environ.get(SLOW, "").split(",")):
            self.page.set_default_timeout(60_000)
            _SLOWED[slow](self.page)
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        # Choosers of files are the test's from the start. One that is expected only as a key is pressed may be opened,
        # and closed again, by the browser itself: playwright does not wait until the browser knows.
        self.page.on("filechooser", lambda _: None)

    def excuse(self, part: str) -> None:
        """Forget complaints that hold a text: those that the test brought about."""
        self.complaints = [said for said in self.complaints if part not in said]


@contextmanager
def watched(running: Browser, **options: object) -> Iterator[Watched]:
    """Open a page of its own profile; fail where it complained of anything in the end."""
    context = running.new_context(**options)  # type: ignore[arg-type]
    try:
        found = Watched(context)
        yield found
        assert found.complaints == [], found.complaints
    finally:
        context.close()


def shoot(page: Page, name: str) -> None:
    """Keep a screenshot of the whole page where the run asks for it."""
    folder = os.environ.get(SHOTS)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def tab_to(page: Page, selector: str, most: int = 80) -> None:
    """Press Tab until what has the focus is matched by a selector of CSS; on the way it is always seen."""
    for _ in range(most):
        page.keyboard.press("Tab")
        seen, there = page.evaluate(
            """(selector) => {
              const one = document.activeElement;
              const { outlineStyle, outlineWidth } = getComputedStyle(one);
              const outlined = outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
              return [one === document.body || (one.matches(":focus-visible") && outlined), one.matches(selector)];
            }""",
            selector,
        )
        assert seen, f"what has the focus on the way to {selector} is not seen"
        if there:
            return
    raise AssertionError(f"Tab never comes to {selector}")
