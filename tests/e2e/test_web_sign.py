"""Files of --print-tx signed in the page, and governance shown and carried out there, in a browser on a real market."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.cli.gov import change_lines
from hearth.local.market import DEVNET_ACCOUNTS
from hearth.protocol.types import State
from tests.kit.browser import Watched, browser, shoot, watched
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town
from tests.kit.web_page import becomes, go, table
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
OPEN = f"""version: 1
name: {{name}}
module: {EXAMPLES / "failing" / "failing.wasm"}
resources: {{{{cpus: 1, memory: 64MiB}}}}
limits: {{{{runtime: 60s, deadline: 1h}}}}
price: {{{{max_rate: "0.01/h"}}}}
"""
"""A job that no worker takes: there is none."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def place(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("sign")) as made:
        made.start("web", "-m", "hearth.cli", "web", "--port", "0")
        yield made


class Desk:
    """The page with the wallet of one of the devnet's accounts beside it."""

    def __init__(self, place: Town, seen: Watched, name: str) -> None:
        self.place, self.seen, self.page = place, seen, seen.page
        self.wallet = WebWallet(place, DEVNET_ACCOUNTS[name])
        self.wallet.install(self.page.context)
        log = place.home / "web.log"
        url = wait(lambda: re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", log.read_text()), "hearth web serves", 30)
        self.page.goto(str(url.group()))
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


@pytest.fixture
def desk(place: Town, chromium: Browser) -> Iterator[Desk]:
    with at(place, chromium, "dev") as made:
        yield made


@contextmanager
def at(place: Town, chromium: Browser, name: str) -> Iterator[Desk]:
    """Open the page with an account's wallet while the context is open."""
    with watched(chromium) as seen:
        yield Desk(place, seen, name)


def prepare(place: Town, *arguments: str) -> Any:
    """Run a command with --json, and return its report."""
    told = place.hearth(*arguments, "--json")
    assert told.code == 0, (arguments, told.out, told.err)
    return told.json


def job_file(place: Town, name: str) -> str:
    path = place.home / f"{name}.yaml"
    path.write_text(OPEN.format(name=name))
    return str(path)


def test_sign__a_job_that_the_command_prepared__is_posted_and_its_page_found(desk: Desk, tmp_path: Path) -> None:
    report = prepare(desk.place, "submit", job_file(desk.place, "prepared"), "--anyway", "--print-tx")
    desk.open(json.dumps(report), tmp_path)
    told = desk.told()
    assert "Post a job of one unit, which takes" in told and report["job"] in told and report["from"] in told
    assert desk.page.get_attribute("#calls data", "value") == report["escrow"]
    shoot(desk.page, "sign")
    desk.sign()
    posted = desk.place.client.jobs.reads.look(report["job"]).posted
    assert f"0x{posted.log.tx_hash.hex()}" == desk.wallet.sent[0]

    # The same file once more pays nothing.
    desk.page.click("#sign-file")
    assert "was signed here and is in a block" in desk.alert("SIGNED_BEFORE")
    assert len(desk.wallet.sent) == 1
    desk.page.click("#calls a")
    desk.page.wait_for_selector(".state-open")


def test_sign__a_cancellation_that_the_page_saved__ends_the_job(desk: Desk, tmp_path: Path) -> None:
    job = prepare(desk.place, "submit", job_file(desk.place, "saved"), "--anyway")["job"]
    go(desk.page, f"#/job/{job}")
    desk.page.click("#save-acts summary")
    text = desk.saved("text=Save: Cancel unit 0")
    assert json.loads(text)["schema"] == "hearth.tx/1" and json.loads(text)["action"] == "jobs.cancel"
    desk.untouched()
    desk.open(text, tmp_path)
    assert "Cancel unit 0 of a job" in desk.told()
    desk.sign()

    assert desk.place.client.jobs.reads.look(job).units[0].state is State.CANCELLED


def test_sign__a_withdrawal_that_the_page_saved__is_one_that_the_command_sends(desk: Desk, tmp_path: Path) -> None:
    """Cancelling gave the submitter its escrow back as credit; here the command signs what the page prepared."""
    place, account = desk.place, desk.wallet.address
    job = prepare(place, "submit", job_file(place, "credit"), "--anyway")["job"]
    prepare(place, "job", "cancel", job)
    credit = place.session.market.credit(account)
    assert credit > 0
    go(desk.page, "#/sign")
    desk.page.fill("#withdraw-account", account)
    path = tmp_path / "withdraw.json"
    path.write_text(desk.saved("text=Save the withdrawal"))
    prepare(place, "worker", "withdraw", "--tx", str(path), "--account", "dev", "--yes")

    assert place.session.market.credit(account) == 0
    desk.untouched()


def test_submit__for_an_account_elsewhere__its_file_is_signed_by_that_account(
    desk: Desk, chromium: Browser, tmp_path: Path
) -> None:
    place, page = desk.place, desk.page
    with at(place, chromium, "provider") as other:
        page.click("nav a[href='#/submit']")
        page.fill("#job-file", OPEN.format(name="elsewhere").replace(str(EXAMPLES / "failing") + "/", ""))
        item = page.locator("li", has_text="failing.wasm").first
        item.locator("input[type=file]:not([webkitdirectory])").set_input_files(EXAMPLES / "failing" / "failing.wasm")
        page.click("text=Put it all into my store")
        page.wait_for_selector("#there >> text=blocks are there, by your store")
        page.check("text=Post it anyway, though no worker can take it")
        page.click("#elsewhere summary")
        page.fill("#elsewhere-account", other.wallet.address)
        text = desk.saved("text=Save what it is to sign")
        job = page.inner_text("#elsewhere [role=status] a")
        desk.untouched()
        # This account is not the one that it was made for.
        desk.open(text, tmp_path)
        assert other.wallet.address in desk.alert("NOT_SENDER") and page.is_disabled("#sign-file")
        other.open(text, tmp_path)
        assert job in other.told()
        other.sign()

    assert place.client.jobs.reads.look(job).posted.terms.submitter.lower() == other.wallet.address
    go(page, f"#/job/{job}")
    page.wait_for_selector(".state-open")


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("chain", "WRONG_MARKET"),
        ("market", "WRONG_MARKET"),
        ("selector", "BAD_TX"),
        ("argument", "BAD_TX"),
        ("value", "BAD_TX"),
        ("text", "BAD_TX"),
    ],
)
def test_sign__a_file_that_is_altered__is_refused_before_the_wallet_is_asked(
    desk: Desk, tmp_path: Path, what: str, code: str
) -> None:
    good = prepare(desk.place, "gov", "queue", "minimum-stake", "3", "--account", "council", "--print-tx")["prepared"]
    altered = {
        "chain": {**good, "chain_id": good["chain_id"] + 1},
        "market": {**good, "to": "0x" + "0d" * 20},
        "selector": {**good, "data": "0xdeadbeef" + good["data"][10:]},
        "argument": {**good, "data": good["data"] + "00"},
        "value": {**good, "value": "1"},
    }
    desk.open(json.dumps(altered.get(what, "\u202e")), tmp_path)
    desk.alert(code)

    assert desk.page.query_selector("#sign-file") is None
    desk.untouched()


def changes(page: Page) -> list[tuple[str, str, str]]:
    """Return the id, the sentence and the time of each change that is shown."""
    return [(row["id"].text, row["change"].text, row["when"].text) for row in table(page, "when").rows]


def listed(place: Town) -> list[tuple[str, str, str]]:
    """Return the same of `hearth gov status`."""
    rows = prepare(place, "gov", "status")["changes"]
    lines = [re.fullmatch(r"  \S+  (.*?): (.*)", line) for line in change_lines(rows)]
    return [(row["change"], line[2], line[1]) for row, line in zip(rows, lines, strict=True) if line]


def test_gov__a_change_of_the_command__is_shown_as_it_shows_it_and_executed_when_due(
    place: Town, chromium: Browser, tmp_path: Path
) -> None:
    """The council signs what the command prepared; anybody carries it out, from the page, once it is due."""
    with at(place, chromium, "council") as council:
        report = prepare(place, "gov", "queue", "minimum-stake", "2", "--account", council.wallet.address, "--print-tx")
        council.open(json.dumps(report), tmp_path)
        assert "Announce a change" in council.told() and "new nodes stake at least 2" in council.told()
        council.sign()
    with at(place, chromium, "dev") as desk:
        page, status = desk.page, prepare(place, "gov", "status")
        go(page, "#/gov")
        becomes(page, changes, listed(place), "the changes")
        seats = page.inner_text("#seats")
        assert status["council"] in seats and "posts are governed by the Steward" in seats
        desk.connect()
        until_due(place, status["changes"][0]["due"])
        page.click(f"text=Carry out {report['change'][:14]}")
        becomes(
            page, lambda page: [row["state"].text.split()[-1] for row in table(page, "when").rows], ["executed"], "it"
        )
        becomes(page, changes, listed(place), "the changes")
        shoot(page, "gov")

        assert len(desk.wallet.sent) == 1
        assert int(place.session.market.immutable("NodeRegistry", "minimum_stake")) == 2 * 10**18


def test_gov__its_council__takes_a_change_back_and_stops_posts(place: Town, chromium: Browser) -> None:
    prepare(place, "gov", "queue", "policy", "fee_bps=300", "ack_time=9s")
    with at(place, chromium, "council") as council:
        page = council.page
        go(page, "#/gov")
        becomes(page, changes, listed(place), "the changes")
        assert "policy: fee_bps 500 -> 300, ack_time 4s -> 9s" in page.inner_text("main")
        council.connect()
        page.click("text=/Take back 0x.* for good/")
        page.wait_for_selector("text=dropped")
        page.click("text=Stop new registrations for 7 days")
        page.wait_for_selector("#registrations >> text=paused now until")
        becomes(page, changes, listed(place), "the changes")

        assert page.is_disabled("text=Stop new registrations for 7 days")
        status = prepare(place, "gov", "status")
        assert status["changes"][-1]["state"] == "dropped" and status["registrations"]["paused_until"] > status["time"]


def until_due(place: Town, due: int) -> None:
    wait(lambda: place.chain.head().timestamp >= due, "it is due", 60)
