"""A market in a token of 6 decimals, from the page: approve and post, cancel, withdraw, and what may still be taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hearth.chain.follow import DEPTH
from hearth.local import devnet
from hearth.market.calls import Calls
from hearth.protocol.types import State
from tests.kit.browser import shoot
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town
from tests.kit.web_axe import axe, grave
from tests.kit.web_desk import OPEN, Desk
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    pass

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
DECIMALS = 6
LEFT = 5 * 10**DECIMALS
"""What an earlier approval has left."""
OTHER = "0x" + "c4" * 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devnet, "TOKEN_DECIMALS", DECIMALS)
        # A token of the worth of a dollar: one of an ether's has no small coin at 6 decimals.
        patch.setattr(devnet, "make_plan", partial(devnet.make_plan, per_ether=Fraction(2_500)))
        with town(tmp_path_factory.mktemp("token"), erc20=True) as made:
            yield made


def holds(place: Town, account: str) -> int:
    return place.market.asset_balance(account)


def allowance(place: Town, owner: str, spender: str) -> int:
    token = place.net.network.asset.address
    word = "".join(one.removeprefix("0x").rjust(64, "0") for one in (owner, spender))
    return int(place.rpc("eth_call", {"to": token, "data": f"0xdd62ed3e{word}"}, "latest"), 16)


def exact(desk: Desk[WebWallet], selector: str) -> int:
    """Return the amount that the page shows, in base units."""
    found = desk.page.wait_for_selector(f"{selector} data")
    assert found is not None
    return int(found.get_attribute("value") or "-1")


def test_token__a_job__is_approved_posted_cancelled_and_its_credit_withdrawn(desk: Desk[WebWallet]) -> None:
    place, page, wallet = desk.place, desk.page, desk.wallet
    network, account = place.net.network, desk.wallet.address
    before = holds(place, account)
    desk.open()
    text = OPEN.format(name="token", deadline="1h").replace("0.01/h", "25/h")
    desk.write(text, module=EXAMPLES / "failing" / "failing.wasm")
    desk.connect()
    desk.bring()
    desk.anyway()
    escrow = exact(desk, "#escrow")
    assert " DEV;" in page.inner_text("#escrow") and "an approval of exactly" in page.inner_text("#wallet-shows")
    desk.sign()
    job = desk.posted()
    approved, posted = (place.rpc("eth_getTransactionByHash", one) for one in wallet.sent)

    assert network.asset.address is not None and network.asset.decimals == DECIMALS
    assert (approved["to"], posted["to"]) == (network.asset.address.lower(), network.jobs)
    assert int(approved["input"][-64:], 16) == escrow and int(posted["value"], 16) == 0
    assert holds(place, account) == before - escrow and allowance(place, account, network.jobs) == 0

    page.click("text=Cancel unit 0")
    page.wait_for_selector(".state-cancelled")
    assert place.client.jobs.reads.look(job).units[0].state is State.CANCELLED
    credit = place.market.credit(account)
    assert credit == escrow

    # Its credit pays the whole next job: withdrawn first, then approved and taken as exactly as any other.
    desk.open()
    desk.write(text.replace("name: token", "name: by credit"), module=EXAMPLES / "failing" / "failing.wasm")
    desk.connect()
    desk.bring()
    desk.anyway()
    page.check("#use-credit")
    desk.sign()
    desk.posted()
    sent = [place.rpc("eth_getTransactionByHash", one) for one in wallet.sent[3:]]
    assert [one["to"] for one in sent] == [network.escrow, network.asset.address.lower(), network.jobs]
    assert [int(one["input"][-64:], 16) for one in sent[:2]] == [escrow, escrow]
    assert (holds(place, account), place.market.credit(account)) == (before - escrow, 0)
    page.click("text=Cancel unit 0")
    page.wait_for_selector(".state-cancelled")
    assert place.market.credit(account) == credit

    page.click("nav a[href='#/wallet']")
    assert exact(desk, "#credit") == credit and exact(desk, "#tokens") == before - escrow
    page.fill("#to-first", network.jobs)
    page.wait_for_selector("[role=alert]:has-text('this market\\'s JobRegistry')")
    page.fill("#to-first", OTHER)
    page.wait_for_selector("[role=alert]:has-text('typed once so far')")
    page.fill("#to-second", OTHER[:-1] + "5")
    page.wait_for_selector("[role=alert]:has-text('not the same')")
    assert page.locator(f"button:has-text('{OTHER}')").count() == 0
    page.fill("#to-second", OTHER)
    page.wait_for_selector(f"button:has-text('{OTHER}')")
    page.fill("#to-second", "")
    assert page.locator(f"button:has-text('{OTHER}')").count() == 0
    name_addresses(desk, credit)
    page.select_option("#to-named", OTHER)
    page.click(f"button:has-text('{OTHER}')")
    page.wait_for_selector("text=: done")
    page.wait_for_selector("text=There is no credit to withdraw")

    assert holds(place, OTHER) == credit and place.market.credit(account) == 0
    assert page.is_disabled("text=Withdraw it to this account")


def name_addresses(desk: Desk[WebWallet], credit: int) -> None:
    """Name the connected account and another one, and see what stands beside them."""
    page = desk.page
    page.fill("#address-name", "my \u202ewallet")
    page.click("text=Name the connected account")
    page.wait_for_selector("td:has-text('my U+202Ewallet')")
    row = page.locator(f"tr:has-text('{desk.wallet.address}')").first
    row.locator("data").wait_for()
    assert int(row.locator("data").get_attribute("value") or -1) == credit
    assert f"{desk.wallet.address} (my U+202Ewallet)" in " ".join(page.inner_text("#account").split())
    page.fill("#address-name", "a friend")
    page.fill("#address-first", OTHER)
    page.click("text=Name it")
    page.wait_for_selector("[role=alert]:has-text('typed once so far')")
    page.fill("#address-second", OTHER)
    page.click("text=Name it")
    page.wait_for_selector("td:has-text('a friend')")
    jobs = len(desk.place.hearth("jobs", "--all", "--json").json["jobs"])
    page.click("nav a[href='#/jobs']")
    page.wait_for_selector(f"caption:has-text('{jobs} of the newest {jobs} job')")
    page.check("text=of my addresses")
    page.wait_for_url("**/#/jobs?submitter=mine")
    page.wait_for_selector(f"caption:has-text('{jobs} of the newest {jobs} job')")
    page.click("nav a[href='#/wallet']")
    forget(desk, "my U+202Ewallet")
    page.click("nav a[href='#/jobs']")
    page.check("text=of my addresses")
    page.wait_for_selector("text=None of these jobs is like that.")
    page.click("nav a[href='#/wallet']")


def forget(desk: Desk[WebWallet], name: str) -> None:
    """Take a name from an address."""
    row = desk.page.locator(f"tr:has-text('{name}')")
    row.locator("button:has-text('Forget')").click()
    row.wait_for(state="detached")


def test_token__what_an_approval_left__is_shown_and_revoked(desk: Desk[WebWallet]) -> None:
    place, page, wallet = desk.place, desk.page, desk.wallet
    network, account = place.net.network, wallet.address
    left = Calls(network).approve(network.jobs, LEFT)
    asked = {"from": account, "to": left.to, "data": f"0x{left.data.hex()}", "value": "0x0"}
    wallet.send({**asked, "chainId": hex(wallet.chain)})
    wait(lambda: allowance(place, account, network.jobs) == LEFT, "it is approved")
    desk.open()
    page.click("nav a[href='#/wallet']")
    desk.connect()
    page.wait_for_selector(f"tr:has-text('JobRegistry') data[value='{LEFT}']")
    assert page.locator("tr:has-text('NodeRegistry') data[value='0']").count() == 1
    assert page.locator(f"tr:has-text('{network.jobs}')").count() == 1
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    shoot(page, "wallet-320")
    page.fill("#to-first", OTHER)
    page.fill("#to-second", OTHER)
    page.wait_for_selector(f"button:has-text('{OTHER}')")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    page.evaluate(axe())
    assert grave(page) == []
    page.click("text=Revoke what JobRegistry may take")
    page.wait_for_selector("tr:has-text('JobRegistry') data[value='0']")

    assert allowance(place, account, network.jobs) == 0
    revoked = place.rpc("eth_getTransactionByHash", wallet.sent[-1])
    assert (revoked["to"], int(revoked["input"][-64:], 16), int(revoked["value"], 16)) == (left.to, 0, 0)
    assert page.locator("button:has-text('Revoke')").count() == 0


def test_wallet__that_refuses__leaves_all_as_it_was(desk: Desk[WebWallet]) -> None:
    place, page, wallet = desk.place, desk.page, desk.wallet
    network = place.net.network
    left = Calls(network).approve(network.nodes, LEFT)
    asked = {"from": wallet.address, "to": left.to, "data": f"0x{left.data.hex()}", "value": "0x0"}
    wallet.send({**asked, "chainId": hex(wallet.chain)})
    wait(lambda: allowance(place, wallet.address, network.nodes) == LEFT, "it is approved")
    desk.open()
    page.click("nav a[href='#/wallet']")
    desk.connect()
    wallet.refuse("eth_sendTransaction", 4001)
    page.click("text=Revoke what NodeRegistry may take")

    assert "nothing was sent" in desk.alert("USER_REFUSED")
    assert allowance(place, wallet.address, network.nodes) == LEFT


def test_snapshot__of_this_market__agrees_with_its_chain(desk: Desk[WebWallet], tmp_path: Path) -> None:
    desk.place.rpc("anvil_mine", hex(DEPTH))
    told = desk.place.hearth("net", "snapshot", "--out", str(tmp_path / "history.jsonl"), "--json")
    assert told.code == 0 and told.json["logs"] > 0, told.err
    assert told.json["bytes"] == (tmp_path / "history.jsonl").stat().st_size
    desk.open()
    desk.page.click("nav a[href='#/network']")
    desk.page.set_input_files("#snapshot-file", tmp_path / "history.jsonl")
    desk.page.wait_for_selector("text=It agrees with the chain")

    # What is replayed of it is kept: the logs of two of the market's contracts.
    parts = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()[1:]]
    names = [log[2] for part in parts for block in part["blocks"] for log in block[2]]
    kept = sum(name in ("Escrow", "JobRegistry") for name in names)
    assert len(names) == told.json["logs"] > kept > 0
    said = f"{kept} logs of Escrow and JobRegistry up to block {told.json['block']}"
    assert said in desk.page.inner_text("main")
