"""Providing from the page, in a real browser on a real market: an owner's wallet registers what a machine then runs."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.client.job.gates import GATE_SENTENCES
from hearth.local.market import DEVNET_ACCOUNTS
from hearth.protocol.types import ZERO_ADDRESS, Gate, State
from tests.kit.browser import Watched, shoot, tab_to, watched
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town, wasm_file
from tests.kit.web_axe import keeps_nobody_out
from tests.kit.web_desk import serve
from tests.kit.web_page import becomes, failure, follows, go, table, terms
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]

COLD = "attester2"
"""Whose wallet owns the nodes: no command of the machine signs with its key."""
OFFER = {
    "price": "0.60/h",
    "country": "de",
    "slots": "2",
    "cores": "1",
    "memory": "1GiB",
    "disk": "2GiB",
}
COIN = 10**18


@pytest.fixture(scope="module")
def place(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("provide")) as made:
        yield made


class Desk:
    """The page at #/provide, with a wallet beside it."""

    def __init__(self, place: Town, seen: Watched, wallet: WebWallet) -> None:
        self.place, self.page, self.wallet = place, seen.page, wallet

    def open(self, route: str = "#/provide", *, connect: bool = True) -> None:
        self.page.goto("about:blank")  # what a tab held is gone
        self.page.goto(serve(self.place))
        self.page.click("nav a[href='#/provide']")
        go(self.page, route)
        if connect:
            self.page.click("button:has-text('Connect')")
            self.page.wait_for_selector(f"#account >> text={self.wallet.address}")

    def write(self, operator: str, **changed: str) -> None:
        """Fill the form of a registration."""
        self.page.fill("#operator", operator)
        for name, text in {**OFFER, **changed}.items():
            self.page.fill(f"#offer-{name}" if name in OFFER else f"#{name}", text)

    def press(self, label: str) -> None:
        """Press a button, and wait until the chain has what it does."""
        self.page.click(f"button:text-is('{label}')")
        try:
            self.page.wait_for_selector(f"text={label}: done")
        except Exception as error:
            raise AssertionError(f"{label}: {failure(self.page)}") from error

    def refused(self, label: str, code: str) -> str:
        """Press a button and return the refusal that says a code."""
        self.page.click(f"button:text-is('{label}')")
        found = self.page.locator(f"[role=alert]:has-text('{code}')").first
        found.wait_for()
        return found.inner_text()

    def node(self, number: int) -> Any:
        """Return a node as the chain has it."""
        return self.place.session.market.node(number)  # type: ignore[arg-type]


@contextmanager
def at_desk(place: Town, chromium: Browser, name: str = COLD) -> Iterator[Desk]:
    with watched(chromium) as seen:
        wallet = WebWallet(place, DEVNET_ACCOUNTS[name])
        wallet.install(seen.page.context)
        yield Desk(place, seen, wallet)


@pytest.fixture
def desk(place: Town, chromium: Browser) -> Iterator[Desk]:
    with at_desk(place, chromium) as made:
        yield made


def address(place: Town, name: str) -> str:
    """Return the address of a key of the machine."""
    return str(place.client.wallet.show(name)["address"]).lower()


def registered(place: Town, owner: str) -> list[int]:
    """Return the nodes of an owner."""
    rows = place.client.net.workers()["workers"]
    return [int(row["node"]) for row in rows if str(row["owner"]).lower() == owner]


@pytest.fixture(scope="module")
def working(place: Town, chromium: Browser) -> int:
    """Register a node from the page by keyboard alone, start what it prints for the machine, and see it beat."""
    with at_desk(place, chromium) as desk:
        page = desk.page
        desk.open(connect=False)
        page.wait_for_selector("#operator")
        tab_to(page, "section[aria-label=Wallet] button")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#account >> text={desk.wallet.address}")
        typed = {"#operator": address(place, "worker"), **{f"#offer-{name}": text for name, text in OFFER.items()}}
        for selector in (
            "#operator",
            *(f"#offer-{name}" for name in ("price", "country", "slots", "cores", "memory", "disk")),
        ):
            tab_to(page, selector)
            page.keyboard.press("Control+a")
            page.keyboard.type(typed[selector])
        tab_to(page, "#stake")
        page.keyboard.type("20")
        shown = page.inner_text("#register-shows")
        assert "20 ETH to " + place.net.network.nodes.lower() in shown and "(register)" in shown
        page.wait_for_selector("#register-gas")
        page.wait_for_selector("button:text-is('Register this node'):enabled")
        tab_to(page, "button:not([disabled])")
        while page.evaluate("() => document.activeElement.innerText") != "Register this node":
            tab_to(page, "button:not([disabled])")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Register this node: done")
        init, doctor, start = page.inner_text("#commands").splitlines()
        (number,) = registered(place, desk.wallet.address)
        becomes(page, lambda page: [row["node"].text for row in table(page, "leaves").rows], [f"Node {number}"], "it")
        shoot(page, "provide")
    config = place.home / "provided.toml"
    told = place.hearth(*shlex.split(init)[1:], "--account", "worker", "--config", str(config))
    assert told.code == 0, told.err + told.out
    assert "next: hearth worker start" in told.out
    assert (doctor, start) == ("hearth worker doctor", "hearth worker start")
    place.start("provided", "-m", "hearth.cli", *shlex.split(start)[1:], "--config", str(config))
    place.wait_beat(number)
    return number


@pytest.fixture(scope="module")
def counted(place: Town, working: int) -> str:
    """Post a job that the node takes; its result is paid after a while, since the node is new."""
    return post(place, "counted")


def status(place: Town) -> dict[str, Any]:
    """Return what `hearth worker status` says of the node."""
    told = place.hearth("worker", "status", "--config", str(place.home / "provided.toml"), "--json")
    assert told.code == 0, told.err + told.out
    found: dict[str, Any] = told.json
    return found


# ---- what the page registered ----


def test_provide__a_node_registered_by_keyboard__offers_what_the_machine_would(
    place: Town, working: int, counted: str
) -> None:
    config = str(place.home / "provided.toml")
    told = place.hearth("worker", "update", "--config", config, "--print-tx", "--json")
    assert told.code == 0, told.err
    offered = place.session.market.node(working)  # type: ignore[arg-type]
    # The second argument is the offer without its price: the very word that the page registered.
    from hearth.protocol import words

    word = words.pack_offer(offered.offer) & ((1 << words.shift_of(words.OFFER, "pending")) - 1)
    assert int(told.json["prepared"]["data"][10 + 64 : 10 + 128], 16) == word
    assert offered.stake == 20 * COIN and offered.owner == status(place)["owner"]
    log = (place.home / "provided.log").read_text()
    assert "and the chain has" not in log


def test_node__an_open_job__is_said_to_fit_or_why_not(place: Town, desk: Desk, working: int) -> None:
    job = post(place, "cheap", rate="0.01/h")
    desk.open(f"#/node/{working}", connect=False)

    def shown(page: Page) -> list[str]:
        return [row["gate"].text for row in table(page, "gate").rows if row["job"].whole == job]

    told = place.hearth("worker", "why", job, "--config", str(place.home / "provided.toml"), "--json").json
    assert told["units"][0]["gate"] == "price"
    becomes(desk.page, shown, [GATE_SENTENCES[Gate.PRICE]], "its gate")  # the command says both prices as well
    assert place.hearth("job", "cancel", job).code == 0


@pytest.mark.parametrize(
    ("route", "code"), [("#/node/77", "NOT_FOUND"), ("#/node/0", "BAD_ID"), ("#/provide/x", "BAD_ID")]
)
def test_node__that_is_none__is_said_to_be_none(desk: Desk, route: str, code: str) -> None:
    desk.open(route, connect=False)
    desk.page.wait_for_selector(f".failure >> text={code}")


# ---- what is refused ----


def test_provide__what_would_be_refused__is_a_sentence_and_no_wallet_opens(
    place: Town, desk: Desk, working: int
) -> None:
    page, label = desk.page, "Register this node"
    desk.open()
    for changed, why in (
        ({"stake": "0.001"}, "below this market's minimum"),
        ({"price": "0.60"}, "offer.price"),
        ({"memory": "16GB"}, "offer.memory"),
        ({"country": "uk"}, "offer.country"),
        ({"operator": "0x12"}, "is no address"),
        ({"operator": place.net.network.nodes}, "is this market's NodeRegistry"),
    ):
        desk.write(address(place, "worker2"), stake="")
        for name, text in changed.items():
            page.fill(f"#offer-{name}" if name in OFFER else f"#{name}", text)
        page.wait_for_selector(f"p.soft:has-text({json.dumps(why)})")
        assert page.is_disabled(f"button:text-is('{label}')"), changed
    # Its key works for a node of this owner already: a second stake would lie beside the first.
    desk.write(address(place, "worker"), stake="")
    assert f"operates node {working} already" in desk.refused(label, "REGISTERED")
    desk.write(address(place, "worker2"), stake="90000")
    assert "short by" in desk.refused(label, "FUNDS_SHORT")
    desk.write(address(place, "worker2"), stake="")
    with underway(desk):
        assert "nothing was sent" in desk.refused(label, "TX_PENDING")
    assert "eth_sendTransaction" not in desk.wallet.asked

    desk.wallet.refuse("eth_sendTransaction", 4001)
    assert "you refused it; nothing was sent" in desk.refused(label, "USER_REFUSED")
    desk.wallet.chain = 1
    assert "nothing was sent" in desk.refused(label, "WRONG_CHAIN")
    assert registered(place, desk.wallet.address) == [working]


@contextmanager
def underway(desk: Desk) -> Iterator[None]:
    """Let the page's RPC say that the account has sent what no block has yet."""

    def answer(route: Any) -> None:
        asks = json.loads(route.request.post_data)
        one_by_one = asks if isinstance(asks, list) else [asks]
        if not any(ask["method"] == "eth_getTransactionCount" for ask in one_by_one):
            return route.continue_()
        counts = [
            {"jsonrpc": "2.0", "id": ask["id"], "result": hex(4 + (ask["params"][1] == "pending"))}
            for ask in one_by_one
        ]
        return route.fulfill(
            json=counts if isinstance(asks, list) else counts[0], headers={"Access-Control-Allow-Origin": "*"}
        )

    desk.page.route(f"{desk.place.url}/**", answer)
    try:
        yield
    finally:
        desk.page.unroute(f"{desk.place.url}/**")


# ---- what anybody sees ----


def test_node__its_page__says_what_the_commands_say(place: Town, desk: Desk, working: int, counted: str) -> None:
    wait(lambda: place.client.jobs.reads.look(counted).units[0].state is State.SETTLED, "it is settled", 60)
    page = desk.page
    desk.open("#/workers", connect=False)
    page.click(f"main table a:text-is('{working}')")
    page.wait_for_selector(f"h1:text-is('Node {working}')")

    def shown(page: Page) -> dict[str, Any]:
        said = terms(page)
        if "Status" not in said or "Net" not in said:
            return {}
        return {
            "status": said["Status"]["text"].partition(" ")[2],
            "owner": said["Owner"]["text"][:42],
            "operator": said["Operator"]["text"],
            "stake": said["Stake"]["exact"],
            "bond": said["Of it reserved"]["exact"],
            "busy": said["Slots busy"]["text"],
            "ask": said["Asks"]["exact"],
            "reputation": said["Reputation"]["text"].split(" %")[0],
            "waits": page.locator("#waits li").count(),
            "slashed": said["Slashed"]["exact"],
            "earned": said["Earned"]["exact"],
            "paid": sum(int(row["paid"].text) for row in table(page, "paid").rows),
            "strip": page.locator(".strip a[aria-label^='done,']").count(),
            "says": said.get("manifest: country", {}).get("text"),
        }

    def told() -> dict[str, Any]:
        said = status(place)
        books = place.hearth("worker", "earnings", "--config", str(place.home / "provided.toml"), "--json").json
        offered = place.hearth("offers", "--wide", "--json").json["offers"]
        return {
            "status": said["status_text"],
            "owner": said["owner"],
            "operator": said["operator"],
            "stake": said["stake"],
            "bond": said["bond"],
            "busy": f"{said['busy']}/{said['slots']}",
            "ask": said["ask"],
            "reputation": f"{said['reputation_bps'] / 100:.0f}",
            "waits": len(said["waits"]),
            "slashed": books["slashed"],
            "earned": books["income"],
            "paid": books["paid"],
            "strip": books["paid"],
            "says": next(row["says"]["country"] for row in offered if row["node"] == working),
        }

    follows(page, shown, told, "the node's page")
    assert told()["paid"] >= 1
    with page.expect_download() as saved:
        page.click("text=Save as CSV")
    with Path(saved.value.path()).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["amount"]) for row in rows if row["kind"] == "paid") == int(told()["earned"])
    assert rows[0]["job"] == counted
    shoot(page, "node")


# ---- what an owner changes ----


def test_provide__its_owner__changes_price_stake_operator_and_offer(place: Town, desk: Desk, working: int) -> None:
    page = desk.page
    desk.open(f"#/provide/{working}")
    page.fill("#ask", "0.50/h")
    desk.press("Change the price")
    wait(lambda: status(place)["ask_text"] == "0.5 ETH/h", "the new price counts", 30)
    becomes(page, lambda page: terms(page)["Asks"]["text"], "0.5 ETH/h", "the page shows it")

    page.fill("#add-stake", "1.5")
    assert "1.5 ETH to" in page.inner_text("#stake-shows")
    desk.press("Add stake")
    assert desk.node(working).stake == 21 * COIN + COIN // 2
    assert page.input_value("#add-stake") == ""

    other = address(place, "worker3")
    page.fill("#new-operator", other)
    desk.press("Offer it to this operator")
    market = place.session.market
    assert market.offered_operator(desk.node(working).id).lower() == other
    page.wait_for_selector(f"dt:text-is('Offered to') + dd:has-text('{other}')")
    desk.press("Keep the present operator")
    assert market.offered_operator(desk.node(working).id) == ZERO_ADDRESS

    before = desk.node(working)
    manifest = manifest_of(place, working)
    page.wait_for_selector("#offer-country")
    becomes(page, lambda page: page.input_value("#offer-country"), "de", "its country, from what it said of itself")
    page.fill("#offer-slots", "1")
    signed = page.inner_text("#manifest").split("\n")
    for address_of in manifest.gateways or ["none"]:
        assert address_of in signed
    desk.press("Change the offer")
    after = desk.node(working)
    assert (after.offer.slots, after.offer.ask, after.offer.cores) == (1, before.offer.ask, before.offer.cores)
    assert manifest_of(place, working) == manifest
    shoot(page, "provide-manage")
    keeps_nobody_out(page)
    go(page, "#/provide")
    page.wait_for_selector("#stake")
    keeps_nobody_out(page)


def manifest_of(place: Town, node: int) -> Any:
    """Return the manifest that a node named last, as readers find it in the call that carries it."""
    import time

    from hearth.market.manifest import find_manifest, last_named

    market = place.session.market
    named = last_named(market, [node], market.port.head(), until=time.monotonic() + 10)[node]  # type: ignore[list-item, index]
    found = find_manifest(market, named)
    assert found is not None
    return found


def test_provide__a_node_handed_over__is_its_new_owners_once_he_accepts(
    place: Town, chromium: Browser, desk: Desk, working: int
) -> None:
    spare = spare_node(desk)
    page = desk.page
    desk.open(f"#/provide/{spare}")
    with at_desk(place, chromium, "attester") as theirs:
        theirs.open(f"#/provide/{spare}")
        assert "nodes: not offered" in theirs.refused("Accept the node", "REFUSED")
        assert "eth_sendTransaction" not in theirs.wallet.asked
        page.fill("#new-owner", theirs.wallet.address)
        desk.press("Offer the node to this owner")
        accept(theirs)
        assert desk.node(spare).owner == theirs.wallet.address
        theirs.page.fill("#new-owner", desk.wallet.address)
        theirs.press("Offer the node to this owner")
    accept(desk)
    assert desk.node(spare).owner == desk.wallet.address


def accept(desk: Desk) -> None:
    """Accept a node, and wait until its page is the owner's."""
    desk.page.click("button:text-is('Accept the node')")
    desk.page.wait_for_selector("#new-owner")


def spare_node(desk: Desk) -> int:
    """Return a node of the wallet that no machine runs, registered by the page where there is none yet."""
    key = address(desk.place, "worker3")
    rows = desk.place.client.net.workers()["workers"]
    found = [int(row["node"]) for row in rows if str(row["operator"]).lower() == key]
    if not found:
        desk.open()
        desk.write(key, stake="")
        desk.press("Register this node")
        return spare_node(desk)
    return found[0]


def test_provide__an_exit__starts_stays_and_is_finished_after_its_time(place: Town, desk: Desk, working: int) -> None:
    spare = spare_node(desk)
    page = desk.page
    desk.open(f"#/provide/{spare}")
    desk.press("Start the exit")
    page.wait_for_selector("#status >> text=leaving")
    assert page.is_disabled("button:text-is('Finish the exit')")
    page.wait_for_selector("p.soft:has-text('its stake is free only then')")
    desk.press("Stay after all")
    page.wait_for_selector("#status >> text=not ready")
    desk.press("Start the exit")
    stake = desk.node(spare).stake
    place.rpc("evm_increaseTime", place.net.network.node_parameters.unbonding)
    page.wait_for_selector("button:text-is('Finish the exit'):enabled")
    page.click("button:text-is('Finish the exit')")
    page.wait_for_selector("#left")
    assert spare not in registered(place, desk.wallet.address)
    assert place.session.market.credit(desk.wallet.address) >= stake
    go(page, "#/provide")
    becomes(page, lambda page: page.get_attribute("#credit data", "value") not in (None, "0"), True, "the credit")
    desk.press("Withdraw it all to this account")
    assert place.session.market.credit(desk.wallet.address) == 0
    go(page, f"#/node/{spare}")
    page.wait_for_selector("#left")


def post(place: Town, name: str, rate: str = "1.20/h") -> str:
    """Post a job that counts words, and return its id."""
    folder = place.home / "jobs"
    folder.mkdir(exist_ok=True)
    path = wasm_file(folder / f"{name}.yaml", EXAMPLES / "wordcount-array" / "wordcount.wasm", rate=rate)
    told = place.hearth("submit", str(path), "--anyway", "--again", "-q")
    assert told.code == 0, told.out + told.err
    return told.out.strip()
