"""Keepers' work done from the page by a wallet, on a real market without a keeper process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import wasmtime

from hearth.local.market import DEVNET_ACCOUNTS
from hearth.protocol import formulas
from hearth.protocol.types import State
from tests.kit.browser import Watched, shoot
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town, wasm_file
from tests.kit.web_desk import serve
from tests.kit.web_page import HIDE, becomes, table, terms, unseen
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
ENDLESS = '(module (memory (export "memory") 1) (func (export "_start") (loop br 0)))'


class Left:
    """A town whose worker was killed with one result submitted (`done`) and two units running (`first`, `second`)."""

    def __init__(self, place: Town, folder: Path) -> None:
        self.place, self._folder = place, folder
        self.node = self._worker()
        endless = folder / "endless.wasm"
        endless.write_bytes(wasmtime.wat2wasm(ENDLESS))
        self.first, self.second = self._post("first", endless), self._post("second", endless)
        for job in (self.first, self.second):
            wait(lambda job=job: self.state(job) is State.RUNNING, "it runs")
        self.done = self._post("done", EXAMPLES / "failing" / "failing.wasm")
        wait(lambda: self.state(self.done) is State.SUBMITTED, "it ran")
        place.stop("worker")

    def _worker(self) -> int:
        """Start a worker that leaves its results to others for long: none is settled before it is killed."""
        return self.place.start_worker(self.place.worker_file(slots=3, settle_after="10m"))

    def _post(self, name: str, module: Path) -> str:
        path = wasm_file(self._folder / f"{name}.yaml", module)
        told = self.place.hearth("submit", str(path), "--again", "-q")
        assert told.code == 0, told.out + told.err
        return told.out.strip()

    def look(self, job: str) -> Any:
        return self.place.client.jobs.reads.look(job)

    def state(self, job: str) -> State:
        found: State = self.look(job).units[0].state
        return found

    def credit(self, account: str) -> int:
        (found,) = self.place.market.credits([account], self.place.chain.head().hash)
        return int(found)


@pytest.fixture(scope="module")
def left(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    with town(tmp_path_factory.mktemp("keepers")) as place:
        yield Left(place, tmp_path_factory.mktemp("jobs"))


def open_page(left: Left, seen: Watched) -> tuple[Page, WebWallet]:
    """Open the page with a wallet beside it, of an account that is owed nothing by any job."""
    place = left.place
    wallet = WebWallet(place, DEVNET_ACCOUNTS["keeper"])
    wallet.install(seen.page.context)
    seen.page.goto(serve(place))
    seen.page.click("nav a[href='#/keepers']")
    seen.page.wait_for_selector("h2 >> text=Due now")
    return seen.page, wallet


def connect(page: Page, wallet: WebWallet) -> None:
    page.click("button:has-text('Connect')")
    page.wait_for_selector(f"#account >> text={wallet.address}")


def due(page: Page) -> set[tuple[str, str]]:
    """Return what the page says is due, by verb and by job or node."""
    return {(row["does"].text, row["what"].whole or row["what"].text) for row in table(page, "does").rows}


def row_of(page: Page, does: str, job: str) -> dict[str, Any]:
    return next(row for row in table(page, "does").rows if (row["does"].text, row["what"].whole) == (does, job))


def test_keepers__what_is_due__is_what_the_keeper_would_do(left: Left, seen: Watched) -> None:
    page, _ = open_page(left, seen)
    wanted = {
        ("settle", left.done),
        ("reclaim", left.first),
        ("reclaim", left.second),
        ("check liveness", f"node {left.node}"),
    }
    becomes(page, due, wanted, "all that is due")

    def listed() -> set[tuple[str, str]]:
        work = left.place.hearth("keeper", "list", "--json").json["work"]
        return {(row["does"].replace("_", " "), one.partition("/")[0]) for row in work for one in row["ids"]}

    wait(lambda: listed() == wanted, "the keeper's list says the same", 30)
    becomes(page, lambda page: all(row["costs"].exact for row in table(page, "does").rows), True, "the price of gas")
    rows = table(page, "does").rows
    for row in rows:
        pays, most, costs = (int(row[name].exact or 0) for name in ("pays", "in the end", "costs"))
        assert 0 < pays <= most and costs > 0
        assert row["worth it"].text == ("✔ yes" if pays >= costs else "✕ no")
    assert terms(page)["Tasks"]["text"] == "4"
    assert page.query_selector("text=Settle unit 0") is None  # no wallet, no buttons
    assert unseen(page) == []
    shoot(page, "keepers-due")
    # A job whose file this browser has read is shown by its name too.
    assert whats(page)[left.done].endswith("…")
    page.click(f"a[title='{left.done}']")
    page.click("text=Read its job file")
    name = page.inner_text("#job-name")
    page.click("nav a[href='#/keepers']")
    becomes(page, lambda page: whats(page).get(left.done, "").endswith(f"… {name}"), True, "its name")


def whats(page: Page) -> dict[str | None, str]:
    """Return what the page says work is about, by whole ids."""
    return {row["what"].whole: row["what"].text for row in table(page, "does").rows}


def test_keepers__somebody_was_faster__is_a_sentence_and_no_wallet_opens(left: Left, seen: Watched) -> None:
    page, wallet = open_page(left, seen)
    becomes(page, lambda page: ("reclaim", left.first) in due(page), True, "a lease is lost")
    connect(page, wallet)
    page.evaluate(HIDE, True)  # it does not look while another one does it
    place, posted = left.place, left.look(left.first).posted
    place.sender(8).send(place.market.calls.reclaim(posted.terms, 0), key="faster")
    page.click(f"text=Reclaim unit 0 of {left.first[:14]}")
    said = page.locator("[role=alert]:has-text('REFUSED')")
    said.wait_for()

    assert "jobs: not running" in said.inner_text()
    assert "eth_sendTransaction" not in wallet.asked
    page.evaluate(HIDE, False)
    becomes(page, lambda page: ("reclaim", left.first) in due(page), False, "it is due no more")


def test_keepers__a_result_settled_from_the_page__pays_who_signed(left: Left, seen: Watched) -> None:
    page, wallet = open_page(left, seen)
    becomes(page, lambda page: ("settle", left.done) in due(page), True, "the result is due")
    connect(page, wallet)
    before, view = left.credit(wallet.address), left.look(left.done)
    promised, most = (int(row_of(page, "settle", left.done)[name].exact) for name in ("pays", "in the end"))
    page.click(f"text=Settle unit 0 of {left.done[:14]}")
    page.wait_for_selector("text=: done")
    becomes(page, lambda page: ("settle", left.done) in due(page), False, "it is settled")

    assert left.state(left.done) is State.SETTLED and len(wallet.sent) == 1
    block = left.place.rpc("eth_getTransactionReceipt", wallet.sent[0])["blockNumber"]
    second = int(left.place.rpc("eth_getBlockByNumber", block, False)["timestamp"], 16)
    since = formulas.settleable_from(view.terms, view.units[0])
    paid = left.credit(wallet.address) - before
    assert paid == formulas.settle_reward(view.terms, second - since)
    assert promised <= paid <= most

    def earned(page: Page) -> dict[str, str | None]:
        return {row["account"].text: row["earned"].exact for row in table(page, "account").rows}

    becomes(page, lambda page: earned(page).get(wallet.address), str(paid), "it stands among who earned what")


def test_keepers__several_at_once__are_one_transaction(left: Left, seen: Watched) -> None:
    page, wallet = open_page(left, seen)
    silence = ("check liveness", f"node {left.node}")
    becomes(page, lambda page: {silence, ("reclaim", left.second)} <= due(page), True, "what is left")
    connect(page, wallet)
    several = f"text=Do {len(due(page))} of these in one transaction"
    before = left.credit(wallet.address)
    promised = sum(int(row["pays"].exact or 0) for row in table(page, "does").rows)
    page.click(several)
    page.wait_for_selector(f"{several}: done")
    page.wait_for_selector("text=Nothing is due.")

    assert len(wallet.sent) == 1 and left.state(left.second) is State.OPEN
    sent = left.place.rpc("eth_getTransactionByHash", wallet.sent[0])
    assert sent["to"] == left.place.net.network.contracts["Lens"].lower()
    assert left.credit(wallet.address) - before >= promised > 0
    becomes(page, lambda page: table(page, "account").rows != [], True, "who earned what")
