"""What the page shows, read out of a browser: tables, lists of terms, sentences; and what a test waits for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.kit.node import WEB
from tests.kit.running import wait

if TYPE_CHECKING:
    from playwright.sync_api import Page

_NAV = re.search(r"^  nav: \{(.*)\},$", (WEB / "src/ui/texts.ts").read_text(encoding="utf-8"), re.MULTILINE)
assert _NAV is not None
MENU = tuple(re.findall(r"(\w+): \"", _NAV[1]))
"""The pages that the page's menu leads to, by the names of their addresses."""
_TABLES = """() => [...document.querySelectorAll("main table")].map((table) => ({
  caption: table.caption.innerText.trim(),
  head: [...table.tHead.rows[0].cells].map((cell) => cell.innerText.trim()),
  rows: [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => ({
    text: cell.innerText.trim(),
    exact: cell.querySelector("data")?.value ?? null,
    whole: cell.querySelector("a")?.title ?? null,
  }))),
}))"""
_TERMS = """() => Object.fromEntries([...document.querySelectorAll("main dt")].map((term) => {
  const said = term.nextElementSibling;
  return [term.innerText.trim(), { text: said.innerText.trim(), exact: said.querySelector("data")?.value ?? null }];
}))"""
_TIMELINE = """() => [...document.querySelectorAll(".timeline > li > .stranger")].map((line) => line.innerText)"""
_GO = """(route) => new Promise((gone) => {
  const pathOf = (hash) => hash.replace(/^#[/]?/, "").split("?")[0];
  const before = location.hash;
  addEventListener("hashchange", function listen() {
    if (location.hash === before) return;
    removeEventListener("hashchange", listen);
    if (pathOf(location.hash) !== pathOf(before)) document.title = "";
    gone();
  });
  location.hash = route;
  if (location.hash === before) gone();
})"""
"""Set the hash. A page that comes to another path has no title until it is there: it names itself once it is shown.

The title goes when the page has heard of the change, since what it said last may until then be on its way.
"""
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Tell a page that its tab is hidden, or shown again."""
_HIDDEN = r"""() => (document.body.innerText.match(
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g) ?? [])"""
SECONDS = 30.0
"""How long what a page should come to show may take."""


class Cell(NamedTuple):
    """A cell as it is read, its exact amount where it has one, and the whole of an id that it shortens."""

    text: str
    exact: str | None
    whole: str | None


class Table(NamedTuple):
    """A table: its caption, and its rows by the heads of the columns."""

    caption: str
    rows: list[dict[str, Cell]]


def tables(page: Page) -> list[Table]:
    """Return the tables of the page's main part."""
    return [
        Table(one["caption"], [dict(zip(one["head"], (Cell(**c) for c in row), strict=True)) for row in one["rows"]])
        for one in page.evaluate(_TABLES)
    ]


def table(page: Page, column: str) -> Table:
    """Return the first table that has a column, one without rows where there is none."""
    return next((one for one in tables(page) if one.rows and column in one.rows[0]), Table("", []))


def terms(page: Page) -> dict[str, Any]:
    """Return the values of the page's lists by their terms, each with its `text` and its `exact` amount."""
    found: dict[str, Any] = page.evaluate(_TERMS)
    return found


def timeline(page: Page) -> list[str]:
    """Return the sentences of a job's timeline."""
    found: list[str] = page.evaluate(_TIMELINE)
    return found


def unseen(page: Page) -> list[str]:
    """Return the characters in the page's text that nobody sees, or that move others."""
    found: list[str] = page.evaluate(_HIDDEN)
    return found


def jobs(page: Page) -> dict[str, tuple[str, str]]:
    """Return of each listed job its state and its ended units of all, by its id, newest first."""
    return {row["job"].whole or "": (told(row["state"]), row["units"].text) for row in table(page, "at most").rows}


def told(state: Cell) -> str:
    """Return what a state says, without its sign."""
    return state.text.partition(" ")[2]


def failure(page: Page) -> str:
    """Return what the page says went wrong, "" for nothing."""
    return " ".join(page.locator(".failure").all_inner_texts())


def go(page: Page, route: str) -> None:
    """Go to a route without loading the page again, and wait for its heading: not for that of the page before."""
    page.evaluate(_GO, route)
    page.wait_for_selector("head > title:not(:empty)", state="attached")
    page.wait_for_selector("main h1")


def becomes(page: Page, read: Callable[[Page], Any], wanted: Any, what: str) -> None:
    """Wait until the page shows something; fail with what it shows instead."""
    follows(page, read, lambda: wanted, what)


def follows(page: Page, read: Callable[[Page], Any], told: Callable[[], Any], what: str) -> None:
    """Wait until the page shows what is told at the same time: of what may change meanwhile, such as who is silent."""
    try:
        wait(lambda: read(page) == told(), what, SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}: {read(page)!r} is not {told()!r}; {failure(page)}") from None
