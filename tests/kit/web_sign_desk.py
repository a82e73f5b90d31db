"""The page in a browser with a wallet beside it: files are opened in it, and signed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hearth.local.market import DEVNET_ACCOUNTS
from tests.kit.browser import Watched, watched
from tests.kit.town import Town
from tests.kit.web_desk import serve
from tests.kit.web_page import go
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Browser


class SignDesk:
    """The page with the wallet of one of the devnet's accounts beside it."""

    def __init__(self, place: Town, seen: Watched, name: str) -> None:
        self.place, self.seen, self.page = place, seen, seen.page
        self.wallet = WebWallet(place, DEVNET_ACCOUNTS[name])
        self.wallet.install(self.page.context)
        self.page.goto(serve(place))
        self.page.wait_for_selector("text=served by hearth web")

    def open(self, text: str, tmp_path: Path) -> None:
        """Pick a file at #/sign, with the wallet connected."""
        path = tmp_path / "tx.json"
        path.write_text(text)
        go(self.page, "#/sign")
        self.connect()
        self.page.set_input_files("#tx-file", path)

    def connect(self) -> None:
        if self.page.query_selector("#account") is None:
            self.page.click("button:has-text('Connect')")
        self.page.wait_for_selector(f"#account >> text={self.wallet.address}")

    def caught_up(self) -> None:
        """Wait until the page has read up to the block that is the newest now."""
        self.page.wait_for_function(
            "(head) => Number(/block ([0-9]+)/.exec(document.querySelector('.synced')?.innerText)?.[1]) >= head",
            arg=self.place.chain.head().number,
        )

    def told(self) -> str:
        self.page.wait_for_selector("#calls li")
        return self.page.inner_text("#calls")

    def sign(self) -> None:
        self.page.click("#sign-file")
        self.page.wait_for_selector("#signed >> text=It is done")

    def alert(self, code: str) -> str:
        found = self.page.locator(f"[role=alert]:has-text('{code}')").first
        found.wait_for()
        return found.inner_text()

    def saved(self, button: str) -> str:
        """Click a button that saves a file, and return what is in it."""
        with self.page.expect_download() as download:
            self.page.click(button)
        return Path(download.value.path()).read_text()

    def untouched(self) -> None:
        assert self.wallet.sent == [] and "eth_sendTransaction" not in self.wallet.asked


@contextmanager
def at(place: Town, chromium: Browser, name: str) -> Iterator[SignDesk]:
    """Open the page with an account's wallet while the context is open."""
    with watched(chromium) as seen:
        yield SignDesk(place, seen, name)
