"""The page at #/submit as a reader uses it, with a wallet beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tests.kit.browser import Watched
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town

OPEN = """version: 1
name: {name}
module: failing.wasm
resources: {{cpus: 1, memory: 64MiB}}
limits: {{runtime: 60s, deadline: "{deadline}"}}
price: {{max_rate: "0.01/h"}}
"""
"""A job that no worker here takes: nobody asks so little."""


def serve(place: Town) -> str:
    """Return the address that `hearth web` prints."""
    if "web" not in place.processes:
        place.start("web", "-m", "hearth.cli", "web", "--port", "0")
    log = place.home / "web.log"
    address = r"http://[a-z2-7]+\.localhost:\d+/#token=\S+(?=\s)"  # its line is whole
    found = wait(lambda: re.search(address, log.read_text()), "hearth web serves", 30)
    return str(found.group())


class HasAccount(Protocol):
    """A wallet: of it, that much."""

    @property
    def address(self) -> str:
        """Return the account in lower case, as the page shows it."""


Wallet = TypeVar("Wallet", bound=HasAccount)


class Desk(Generic[Wallet]):
    """The page at #/submit, with a wallet beside it."""

    def __init__(self, place: Town, seen: Watched, wallet: Wallet) -> None:
        self.place, self.seen, self.page, self.wallet = place, seen, seen.page, wallet

    def open(self) -> None:
        self.page.goto("about:blank")  # what a tab held is gone
        self.page.goto(serve(self.place))
        self.page.click("nav a[href='#/submit']")
        self.page.wait_for_selector("#job-file")

    def write(self, text: str, attesters: Path | None = None, **files: Path) -> None:
        """Write a job file, and pick what it brings by the names of the sources, and its attesters."""
        self.page.fill("#job-file", text)
        self.page.wait_for_selector("text=This is a job file")
        for path in files.values():
            item = self.page.locator("li:has(input[type=file])", has_text=path.name).first
            kind = "[webkitdirectory]" if path.is_dir() else ":not([webkitdirectory])"
            item.locator(f"input[type=file]{kind}").set_input_files(path)
            item.locator("code").wait_for()
        if attesters is not None:
            self.pick_attesters(attesters)
        self.page.wait_for_selector("#takers")

    def pick_attesters(self, path: Path) -> None:
        self.pick("#attesters-file", path)

    def pick(self, field: str, path: Path) -> None:
        """Pick a file by a click on a field, as a person does."""
        with self.page.expect_file_chooser() as chooser:
            self.page.click(field)
        chooser.value.set_files(path)

    def connect(self) -> None:
        self.page.click("button:has-text('Connect')")
        self.page.wait_for_selector(f"#account >> text={self.wallet.address}")

    def bring(self) -> None:
        self.page.click("text=Put it all into my store")
        self.page.wait_for_selector("#there >> text=there, by your store")

    def anyway(self, *, maybe: bool = False) -> None:
        """Post although nobody can take it; `maybe` somebody can."""
        box = self.page.locator("text=Post it anyway, though no worker can take it")
        if not maybe or box.count():
            box.check()

    def ready(self, name: str, deadline: str = "1h") -> None:
        """Bring a job that stays open to the last button."""
        self.open()
        self.write(OPEN.format(name=name, deadline=deadline), module=EXAMPLES / "failing" / "failing.wasm")
        self.connect()
        self.bring()
        self.anyway()

    def sign(self) -> None:
        self.page.click("#sign")

    def posted(self) -> str:
        """Return the id of the job whose page this is."""
        # Two calls may be mined before, each in a block of its own.
        self.page.wait_for_selector("h1:text-matches('^Job( |$)')", timeout=60_000)
        self.page.wait_for_selector("text=Submitter")
        found = re.search(r"#/job/(0x[0-9a-f]{64})", self.page.url)
        assert found is not None, self.page.url
        return found.group(1)

    def alert(self, code: str, *, before: int = 0) -> str:
        """Return the refusal that says a code, the one after those of it that stood there `before`."""
        found = self.page.locator(f"[role=alert]:has-text('{code}')").nth(before)
        found.wait_for()
        return found.inner_text()
