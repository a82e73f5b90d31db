"""`go` of tests/kit/web_page.py waits for the page that it goes to, on a page that shows each one late."""

from __future__ import annotations

import pytest

from tests.kit.browser import Watched
from tests.kit.web_page import go

pytestmark = pytest.mark.net

LATE = """<title>Jobs - Hearth</title><main><h1>#/</h1></main><script>
  let path = "#/";
  addEventListener("hashchange", () => setTimeout(() => {
    document.querySelector("main").innerHTML = `<h1>${location.hash}</h1>`;
    const now = location.hash.split("?")[0];
    if (now !== path) document.title = "Jobs - Hearth";
    path = now;
  }, 300));
</script>"""
"""Each page of it has the same title, said once it is there: not where its query alone is another."""


def test_go__pages_of_one_title_that_come_late__are_there_when_it_returns(seen: Watched) -> None:
    page = seen.page
    page.set_content(LATE)
    page.evaluate("() => { location.hash = '#/'; }")
    for route in ("#/job/1", "#/job/2", "#/job/1@7"):
        go(page, route)
        assert (page.inner_text("h1"), page.title()) == (route, "Jobs - Hearth")
    for route in ("#/job/1@7", "#/job/1@7?zone=2"):
        go(page, route)
        assert (page.url.partition("#")[2], page.title()) == (route[1:], "Jobs - Hearth")
