"""The page from a static host, in a real browser on a real market: its market is picked, and all else is as ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.local.market import DEVNET_ACCOUNTS
from hearth.protocol.types import State
from hearth.storage.stores.gateway_server import GatewayServer
from tests.kit.browser import Watched, shoot
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town
from tests.kit.web_axe import keeps_nobody_out
from tests.kit.web_desk import Desk
from tests.kit.web_host import static_host
from tests.kit.web_wallet import WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
DIGITS = EXAMPLES / "digits"
NO_MARKET = "h1:text-is('No market yet')"
PICKED = "by the file that you picked"
KEPT = "() => localStorage.getItem('hearth.market') !== null"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("host")) as made:
        made.add_worker()
        yield made


@pytest.fixture
def seen(seen: Watched) -> Iterator[Watched]:
    yield seen
    seen.excuse("404")  # such a host has no local.json


def file_of(place: Town) -> Path:
    """Return the market's network file."""
    (found,) = (place.home / "networks").glob("*.json")
    return found


def written(folder: Path, place: Town, **changed: Any) -> Path:
    """Write the market's network file with other values."""
    path = folder / "network.json"
    path.write_text(json.dumps({**json.loads(file_of(place).read_text()), **changed}))
    return path


def pick(page: Page, path: Path) -> None:
    page.set_input_files("#network-file", path)


def refusal(page: Page) -> str:
    page.wait_for_selector("[role=alert]")
    return page.inner_text("[role=alert]")


def test_host__market_is_picked__a_job_is_posted_and_read(place: Town, seen: Watched, tmp_path: Path) -> None:
    page, network = seen.page, place.net.network
    wallet = WebWallet(place, DEVNET_ACCOUNTS["dev"])
    wallet.install(page.context)
    desk = Desk(place, seen, wallet)
    with static_host() as url, GatewayServer(place.session.store) as gateway:
        page.goto(f"{url}#/submit")
        page.wait_for_selector(NO_MARKET)
        pick(page, file_of(place))
        page.wait_for_selector("#network-shown")
        shown = page.inner_text("#network-shown")
        assert all(address.lower() in shown for address in network.contracts.values())
        assert "ETH of 18 decimals, the chain's own coin" in shown
        assert page.input_value("#network-rpc") == "\n".join(network.rpc)
        page.fill("#network-gateways", gateway.url.removeprefix("gateway+"))
        shoot(page, "pick-market")
        keeps_nobody_out(page)
        page.click("text=Use this market")
        page.wait_for_selector(f"text=market {network.name}, {PICKED}")
        page.reload()
        page.wait_for_selector(f"text=market {network.name}, {PICKED}")

        desk.write((DIGITS / "job.yaml").read_text(), module=DIGITS / "digits.wasm", data=DIGITS / "digits.csv")
        desk.connect()
        assert page.is_disabled("button:has-text('Put it all into my store')")
        page.click("text=Look whether it is there")
        page.wait_for_selector("[role=alert]:has-text('BLOCK_MISSING')")
        with page.expect_download() as saved:
            page.click("text=Save as CAR")
        assert place.hearth("store", "import", str(saved.value.path())).code == 0
        page.click("text=Look whether it is there")
        page.wait_for_selector("#there >> text=blocks are there, by http://127.0.0.1")
        desk.sign()
        job = desk.posted()
        reads = place.client.jobs.reads
        wait(lambda: reads.look(job).units[0].state is State.SUBMITTED, "it ran", 60)
        page.click("text=Accept unit 0")
        page.wait_for_selector(".state-done")
        page.wait_for_selector(
            "text=Its digest, its unit and every block of it are what the chain says", timeout=60_000
        )
        with page.expect_download() as result:
            page.click("text=Save accuracy.json")
        assert place.hearth("job", "get", job, "-o", str(tmp_path / "out")).code == 0
        assert Path(result.value.path()).read_bytes() == (tmp_path / "out" / "accuracy.json").read_bytes()


def test_host__names_a_market_beside_the_page__it_is_shown_until_another_is_picked(place: Town, seen: Watched) -> None:
    page = seen.page
    named = json.loads(file_of(place).read_text())
    with static_host(network={**named, "name": "hosts"}) as url:
        page.goto(f"{url}#/jobs")
        page.wait_for_selector("text=market hosts, by the file of its host")
        page.wait_for_selector("text=synced to block")
        page.click("nav a[href='#/about']")
        pick(page, file_of(place))
        page.click("text=Use this market")
        page.wait_for_selector(f"text=market {named['name']}, {PICKED}")
        assert page.evaluate(KEPT)
        page.click("text=Forget the market that I picked")
        page.wait_for_selector("text=market hosts, by the file of its host")
        assert not page.evaluate(KEPT)


def test_host__whom_it_asks_of_the_market_in_use__is_changed_on_about_and_kept(place: Town, seen: Watched) -> None:
    page, network = seen.page, place.net.network
    named = json.loads(file_of(place).read_text())
    hosts = f"{network.rpc[0]}/?hosts"
    with static_host(network={**named, "rpc": [hosts]}) as url:
        page.goto(f"{url}#/about")
        page.wait_for_selector(f"text=market {named['name']}, by the file of its host")
        assert page.input_value("#used-rpc") == hosts
        page.fill("#used-rpc", "http://rpc.example.org/")
        page.wait_for_selector("text=is no address that this page may ask")
        assert page.is_disabled("text=Use these")
        page.fill("#used-rpc", network.rpc[0])
        page.click("text=Use these")
        page.wait_for_selector("text=These are asked from now on.")
        page.wait_for_selector(f"text=market {named['name']}, {PICKED}")
        keeps_nobody_out(page)
        page.reload()
        page.wait_for_selector(f"text=market {named['name']}, {PICKED}")
        assert page.input_value("#used-rpc") == network.rpc[0]
        page.click("nav a[href='#/jobs']")
        page.wait_for_selector("text=synced to block")


def test_host__at_an_address_that_others_share__keeps_and_signs_nothing(place: Town, seen: Watched) -> None:
    page = seen.page
    wallet = WebWallet(place, DEVNET_ACCOUNTS["dev"])
    wallet.install(page.context)
    with static_host("/ipfs/bafyshared/") as url:
        page.goto(f"{url}#/jobs")
        page.wait_for_selector(NO_MARKET)
        pick(page, file_of(place))
        page.wait_for_selector("text=the choice lasts until the page is left")
        page.click("text=Use this market")
        page.wait_for_selector("text=synced to block")
        page.click("nav a[href='#/submit']")
        page.wait_for_selector("#job-file")
        assert not page.evaluate(KEPT) and "eth_requestAccounts" not in wallet.asked
        page.reload()
        page.wait_for_selector(NO_MARKET)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no JSON", "is no JSON"),
        ("[]", "is no object"),
        (" " * 70_000, "more than 65536 bytes"),
        ('{"protocol_version": 9}', "BAD_NETWORK"),
    ],
    ids=["text", "list", "large", "other"],
)
def test_host__what_is_no_network_file__is_refused(seen: Watched, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "network.json"
    path.write_text(text)
    with static_host() as url:
        seen.page.goto(url)
        seen.page.wait_for_selector(NO_MARKET)
        pick(seen.page, path)

        assert says in refusal(seen.page)


def test_host__file_from_an_address__is_read_and_what_is_no_address_refused(place: Town, seen: Watched) -> None:
    page = seen.page
    named = json.loads(file_of(place).read_text())
    with static_host(network=named) as elsewhere, static_host() as url:
        page.goto(url)
        page.wait_for_selector(NO_MARKET)
        for address, code in [
            ("http://example.org/x", "BAD_NETWORK"),
            ("javascript:alert(1)", "BAD_NETWORK"),
            (f"{url}none.json", "URL_DOWN"),
        ]:
            page.fill("#network-address", address)
            page.click("text=Read it")
            page.wait_for_selector(f"[role=alert]:has-text('{code}')")
        # Of another origin a file is read where its host lets pages do so; this one does not.
        page.fill("#network-address", f"{elsewhere}network.json")
        page.click("text=Read it")
        page.wait_for_selector("[role=alert]:has-text('cannot be reached from here')")
        seen.excuse("CORS")
        seen.excuse("ERR_FAILED")
    with static_host(network=named) as url:
        page.goto(f"{url}#/about")
        page.fill("#network-address", f"{url}network.json")
        page.click("text=Read it")
        page.wait_for_selector("#network-shown")


def test_host__whom_the_page_may_not_ask__is_named_and_not_asked(place: Town, seen: Watched, tmp_path: Path) -> None:
    """An address that the policy bars would be refused by the browser at each look; nothing is said on its console."""
    page, network = seen.page, place.net.network
    barred = "http://rpc.example.org/"
    with static_host() as url:
        page.goto(url)
        page.wait_for_selector(NO_MARKET)
        pick(page, written(tmp_path, place, rpc=[barred, *network.rpc]))
        page.wait_for_selector(f"text=This page may not ask {barred}")
        assert page.input_value("#network-rpc") == "\n".join(network.rpc)
        page.fill("#network-rpc", barred)
        page.wait_for_selector("text=is no address that this page may ask")
        assert page.is_disabled("text=Use this market")
        page.fill("#network-rpc", "")
        page.wait_for_selector("text=nobody is named who can be asked of the chain")
        page.fill("#network-rpc", "\n".join(network.rpc))
        page.click("text=Use this market")
        page.wait_for_selector("text=synced to block")


def test_host__contracts_of_another_market__are_refused_by_the_chain(
    place: Town, seen: Watched, tmp_path: Path
) -> None:
    page, network = seen.page, place.net.network
    swapped = {**network.contracts, "Escrow": network.contracts["NodeRegistry"]}
    with static_host() as url:
        page.goto(url)
        page.wait_for_selector(NO_MARKET)
        pick(page, written(tmp_path, place, contracts=swapped))
        page.click("text=Use this market")
        page.wait_for_selector("[role=alert]:has-text('WRONG_CONTRACTS')")
        # What was picked is picked again on the page About.
        page.click("nav a[href='#/about']")
        page.wait_for_selector("text=Forget the market that I picked")


def test_host__another_market_is_picked__the_wallet_is_connected_anew(
    place: Town, seen: Watched, tmp_path: Path
) -> None:
    """A connection is held to the chain of its own market, and would be asked for the other one's calls."""
    page = seen.page
    wallet = WebWallet(place, DEVNET_ACCOUNTS["dev"])
    wallet.install(page.context)
    with static_host() as url:
        page.goto(f"{url}#/about")
        pick(page, file_of(place))
        page.click("text=Use this market")
        page.click("nav a[href='#/wallet']")
        page.click("button:has-text('Connect')")
        page.wait_for_selector(f"#account >> text={wallet.address}")
        page.click("nav a[href='#/about']")
        pick(
            page,
            written(tmp_path, place, name="other", contracts=place.net.network.contracts | {"Lens": "0x" + "1e" * 20}),
        )
        page.click("text=Use this market")
        page.wait_for_selector(f"text=market other, {PICKED}")
        page.click("nav a[href='#/wallet']")
        page.wait_for_selector("button:has-text('Connect')")

        assert page.query_selector("#account") is None


def test_host__genuine_contracts_with_other_decimals_or_parameters__are_no_market(
    place: Town, seen: Watched, tmp_path: Path
) -> None:
    """By such a file what the page says of an amount is not what a wallet signs; the commands refuse it likewise."""
    page, raw = seen.page, json.loads(file_of(place).read_text())
    lies = {
        "BAD_NETWORK": {"asset": {**raw["asset"], "decimals": 21}},
        "WRONG_CONTRACTS": {"node_parameters": {**raw["node_parameters"], "unbonding": 3_600}},
    }
    with static_host() as url:
        page.goto(url)
        page.wait_for_selector(NO_MARKET)
        for code, changed in lies.items():
            (tmp_path / code).mkdir()
            path = written(tmp_path / code, place, **changed)
            pick(page, path)
            if code == "WRONG_CONTRACTS":
                page.click("text=Use this market")
            page.wait_for_selector(f"[role=alert]:has-text('{code}')")
            found = place.hearth("net", "status", "--json", "--network", str(path))
            assert found.code != 0 and code in found.out + found.err
    said = "NodeRegistry.UNBONDING: 20 on the chain, 3600 in the file of network"
    assert said in page.inner_text("[role=alert]")
    assert page.locator("text=synced to block").count() == 0
