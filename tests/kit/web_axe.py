"""What keeps people out of a page: axe-core's findings, and what is wider than a small screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kit.node import WEB
from tests.kit.require import require

if TYPE_CHECKING:
    from playwright.sync_api import Page

GRAVE = ("serious", "critical")


def axe() -> str:
    """Return the text of axe-core; skip or fail the test where it is missing."""
    path = WEB / "node_modules" / "axe-core" / "axe.min.js"
    require("web", path.exists(), "axe-core is missing in web/node_modules; make setup installs it")
    return path.read_text(encoding="utf-8")


def grave(page: Page) -> list[tuple[str, str]]:
    """Return what axe finds of a serious or critical kind: the rule, and the first element that breaks it."""
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in GRAVE]


def keeps_nobody_out(page: Page) -> None:
    """Hold a page as it is against axe in both themes, and against a screen of 320 pixels."""
    page.evaluate(axe())
    page.set_viewport_size({"width": 320, "height": 800})
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 320, theme
        found = grave(page)
        assert found == [], (theme, found)
    page.set_viewport_size({"width": 1280, "height": 800})
