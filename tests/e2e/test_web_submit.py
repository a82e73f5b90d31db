"""Submitting from the page, in a real browser on a real market: a wallet's whole way, and each in which it fails."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.jobfile import parse_spec
from hearth.local.market import DEVNET_ACCOUNTS
from hearth.protocol.formulas import escrow_at_post
from hearth.protocol.types import State
from tests.kit.browser import shoot, tab_to, watched
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town
from tests.kit.web_axe import keeps_nobody_out
from tests.kit.web_desk import OPEN, Desk, serve
from tests.kit.web_folders import SIZE, lay
from tests.kit.web_wallet import HANG, Refuses, WebWallet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
DIGITS = EXAMPLES / "digits"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("web")) as made:
        made.add_worker()
        yield made


@contextmanager
def asleep(place: Town, name: str) -> Iterator[None]:
    """Stop a process while the context is open."""
    group = place.processes[name].pid
    os.killpg(group, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(group, signal.SIGCONT)


def named(place: Town, name: str) -> list[str]:
    """Return the jobs of the market whose spec has this name."""
    found: Sequence[dict[str, Any]] = place.hearth("jobs", "--all", "--json").json["jobs"]
    ids = [row["job"] for row in found]
    return [job for job in ids if place.hearth("job", "spec", job, "--json").json["name"] == name]


def test_submit__a_job__runs_and_its_result_is_what_the_command_gets(desk: Desk[WebWallet], tmp_path: Path) -> None:
    page = desk.page
    desk.open()
    text = (DIGITS / "job.yaml").read_text()
    desk.write(text, module=DIGITS / "digits.wasm", data=DIGITS / "digits.csv")
    plan = desk.place.hearth("check", str(DIGITS / "job.yaml"), "--json").json
    assert page.inner_text("#takers") == plan["text"][-1]
    assert page.get_attribute("#escrow data", "value") == plan["escrow"]
    # The wallet's name and icon are a stranger's.
    assert "Test U+202EtellaW" in page.inner_text("button:has-text('Connect')")
    assert page.query_selector("main img") is None
    desk.connect()
    assert page.is_disabled("#sign")
    desk.bring()
    network = desk.place.net.network
    shown = page.inner_text("#wallet-shows")
    assert network.contracts["JobRegistry"].lower() in shown and f"on chain {network.chain_id}" in shown
    assert "hearth job explain" in shown and "four words of the job" in shown
    shoot(page, "submit")
    desk.sign()
    job = desk.posted()

    reads = desk.place.client.jobs.reads
    wait(lambda: reads.look(job).units[0].state is State.SUBMITTED, "it ran", 60)
    # Its worker is new, and would settle the result itself once its time on probation is over.
    with asleep(desk.place, "worker"):
        page.click("text=Accept unit 0")
        page.wait_for_selector(".state-done")
    assert reads.look(job).units[0].state is State.SETTLED and len(desk.wallet.sent) == 2
    page.wait_for_selector("text=Its digest, its unit and every block of it are what the chain says", timeout=60_000)
    with page.expect_download() as saved:
        page.click("text=Save accuracy.json")
    assert desk.place.hearth("job", "get", job, "-o", str(tmp_path / "out")).code == 0
    assert Path(saved.value.path()).read_bytes() == (tmp_path / "out" / "accuracy.json").read_bytes()
    posted = reads.look(job).posted
    assert posted.terms.spec.hex() == plan["spec"]
    assert desk.wallet.sent[0] == f"0x{posted.log.tx_hash.hex()}"
    # A list says name, time and cost of what this browser posted, and of nothing else that it has not read.
    page.click("nav a[href='#/jobs']")
    row = page.locator(f"tr:has(a[title='{job}'])")
    row.locator("text=digits").wait_for()
    told = desk.place.hearth("job", "receipt", job, "--json").json
    cost = int(told["escrow"]) - int(told["still_locked"]) - int(told["refunded"])
    row.locator(f"data[value='{cost}']").wait_for()
    assert row.locator("time").count() == 2 and "block" not in row.inner_text()


def test_submit__two_inputs_and_a_workdir__come_to_the_worker_whole(desk: Desk[WebWallet], tmp_path: Path) -> None:
    """A folder and a large file have nodes of their own: of the size of their files no more is known than that.

    Of 300 MiB, with HEARTH_WEB_FOLDERS_MIB=300, it takes two minutes of two busy cores.
    """
    page, sums = desk.page, lay(tmp_path)
    page.set_default_timeout(20_000 + 1_000 * SIZE)
    desk.open()
    picks = {name: tmp_path / name for name in ("sums.wasm", "work", "data", "one.bin")}
    desk.write((tmp_path / "job.yaml").read_text(), **picks)
    desk.connect()
    desk.bring()
    desk.sign()
    job = desk.posted()
    reads = desk.place.client.jobs.reads
    plan = desk.place.hearth("check", str(tmp_path / "job.yaml"), "--json").json
    assert reads.look(job).posted.terms.spec.hex() == plan["spec"]
    wait(lambda: reads.look(job).units[0].state in (State.SUBMITTED, State.SETTLED), "it ran", 60 + SIZE)
    page.reload()
    with page.expect_download() as saved:
        page.click("text=Save sums")
    assert Path(saved.value.path()).read_bytes() == sums


ASKED = {"submit", "sign", "check", "files", "about"}
"""Pages that say nothing of the market until a reader writes, picks or asks."""


def shown(page: Page) -> str:
    """Return what a page says of the market, but for the price of gas, which is read now and then."""
    return re.sub(
        r"(?<=synced to block )\d+, .*|~?[\d.]+ gwei|\t\d+\t\d+\t[\d.]+ m?s\b", "...", page.inner_text("main")
    )


# Every page at once: that each follows what it shows, its own tests say.
@pytest.mark.deep
def test_pages__open_through_the_lives_of_jobs__say_what_they_say_when_opened_anew(
    desk: Desk[WebWallet], tmp_path: Path
) -> None:
    """Of money above all: what came to a worker and back to the submitter is there without a reload."""
    place, context, reads = desk.place, desk.page.context, desk.place.client.jobs.reads
    counts = (EXAMPLES / "resume" / "job.yaml").read_text().replace("./", f"{EXAMPLES}/resume/")

    def submitted(name: str, *changes: tuple[str, str], more: str = "") -> str:
        text = counts.replace("name: resume", f"name: {name}") + more
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / f"{name}.yaml").write_text(text)
        told = place.hearth("submit", str(tmp_path / f"{name}.yaml"), "--allow-outside", "--anyway", "--again", "-q")
        assert told.code == 0, told.err
        return told.out.strip()

    def state(job: str) -> State:
        return reads.look(job).units[0].state

    def opened(page: Page, route: str) -> Page:
        page.goto("about:blank")  # what a tab held is gone
        page.goto(f"{base}#/{route}")
        if route == "wallet":
            page.click("button:has-text('Connect')")
        page.wait_for_selector("main h1")
        return page

    with asleep(place, "worker"):
        settled = submitted("settled", ('"60"', '"30"'))
        closed = submitted("closed", ('"60"', '"6000"'))
        refunded = submitted("refunded", ("1.20/h", "0.01/h"), more="array: {units: 3}\n")
        desk.open()
        base = desk.page.url.partition("#")[0]
        ones = (*(f"job/{job}" for job in (settled, closed, refunded)), "node/1", "provide/1", "wallet")
        names = {str(link.get_attribute("href"))[2:] for link in desk.page.query_selector_all("nav a")}
        assert names > ASKED
        pages = {route: opened(context.new_page(), route) for route in (*sorted(names - ASKED), *ones)}
    wait(lambda: state(closed) is State.RUNNING and state(settled) is not State.OPEN, "they run", 60)
    wait(lambda: state(settled) is State.SUBMITTED, "one has a result", 60)
    assert [
        place.hearth("job", *act).code for act in (("accept", settled), ("cancel", refunded), ("cancel", closed))
    ] == [0, 0, 0]
    wait(lambda: state(closed) not in (State.RUNNING, State.CLOSING), "one is closed", 60)
    with place.still():
        fresh = context.new_page()
        for route, page in pages.items():
            opened(fresh, route)
            for _ in range(50):
                if shown(page) == shown(fresh):
                    break
                fresh.wait_for_timeout(200)
            assert shown(page) == shown(fresh), route


def test_submit__every_example_and_template__is_posted_as_the_command_would(desk: Desk[WebWallet]) -> None:
    templates = EXAMPLES.parent / "hearth" / "local" / "templates"
    paths = [*templates.glob("*/job.yaml"), *EXAMPLES.glob("*/*.yaml")]
    paths = sorted(path for path in paths if path.name != "attesters.yaml")
    assert len(paths) > 11
    reads, parent = desk.place.client.jobs.reads, ""
    desk.open()
    desk.connect()
    for path in sorted(paths, key=lambda path: path.name != "parent.yaml"):
        text = re.sub(r'(image: )"\S+"', rf'\1"example.com/any@sha256:{"12" * 32}"', path.read_text())
        text = text.replace("${PARENT}", parent)
        spec = parse_spec(text.encode()).spec
        sources = (spec.module, spec.workdir, *(item.src for item in spec.inputs))
        attesters = path.parent / spec.verify.attesters if spec.verify.attesters else None
        desk.page.click("nav a[href='#/submit']")
        desk.write(text, attesters, **{src: path.parent / src for src in sources if src})
        desk.bring()
        desk.anyway(maybe=True)
        desk.sign()
        job = desk.posted()
        if spec.image is None:
            variables = ["--var", f"PARENT={parent}"] if spec.after else []
            told = desk.place.hearth("check", str(path), *variables, "--allow-outside", "--json")
            assert told.code in (0, 8), told.out  # 8 where no worker here takes it
            assert reads.look(job).posted.terms.spec.hex() == told.json["spec"], path
        parent = parent or job


def press(page: Page, kind: str, text: str, key: str) -> None:
    """Go by Tab to the button or to the box of a label that has a text, and press a key there."""
    control = page.locator(kind, has_text=text).first
    (control.locator("input") if kind == "label" else control).evaluate("(one) => { one.dataset.goal = 'yes'; }")
    tab_to(page, "[data-goal]")
    page.keyboard.press(key)
    page.evaluate("() => { delete document.activeElement.dataset.goal; }")


def test_keyboard__alone__submits_a_job(desk: Desk[WebWallet]) -> None:
    page, keys = desk.page, desk.page.keyboard
    page.goto(serve(desk.place))
    page.wait_for_selector("nav a[href='#/submit']")
    tab_to(page, "nav a[href='#/submit']")
    keys.press("Enter")
    page.wait_for_selector("#job-file")
    tab_to(page, "#job-file")
    keys.insert_text(OPEN.format(name="keyboard", deadline="1h"))
    page.wait_for_selector("text=This is a job file")
    tab_to(page, "input[type=file]:not([webkitdirectory])")
    with page.expect_file_chooser() as chosen:
        keys.press("Space")
    chosen.value.set_files(EXAMPLES / "failing" / "failing.wasm")
    page.wait_for_selector("#takers")
    press(page, "button", "Connect", "Enter")
    press(page, "button", "Put it all into my store", "Enter")
    page.wait_for_selector(f"#account >> text={desk.wallet.address}")
    page.wait_for_selector("#there >> text=blocks are there, by your store")
    # What was pressed keeps the keyboard's place while it works.
    assert page.evaluate("() => document.activeElement.innerText") == "Put it all into my store"
    press(page, "label", "Post it anyway", "Space")
    page.wait_for_selector("#sign:enabled")
    tab_to(page, "#sign")
    keys.press("Enter")
    job = desk.posted()

    assert named(desk.place, "keyboard") == [job]


def test_submit__a_wallet_that_says_no__sends_nothing_and_can_be_asked_again(desk: Desk[WebWallet]) -> None:
    desk.ready("refused")
    desk.wallet.refuse("eth_sendTransaction", 4001)
    desk.sign()
    assert "you refused it; nothing was sent" in desk.alert("USER_REFUSED")
    desk.wallet.answers.clear()
    desk.sign()
    job = desk.posted()

    # Whoever is asked again is asked for the same terms.
    assert named(desk.place, "refused") == [job]


def test_submit__a_wallet_elsewhere__is_switched_or_given_the_chain(desk: Desk[WebWallet]) -> None:
    wallet, network = desk.wallet, desk.place.net.network
    wallet.chain = 1

    def unknown_at_first(params: Sequence[Any]) -> None:
        if not wallet.added:
            raise Refuses(-32603, "x", originalError={"code": 4902})
        wallet.chain = int(params[0]["chainId"], 16)

    wallet.answers["wallet_switchEthereumChain"] = unknown_at_first
    desk.ready("elsewhere")
    assert desk.page.is_disabled("#sign")
    assert desk.page.inner_text("#chain") == "1"
    desk.page.wait_for_selector(f"li >> text={network.rpc[0]}")
    desk.page.click("text=Switch the wallet to chain")
    desk.page.wait_for_selector(f"#chain >> text={network.chain_id}")
    assert wallet.added[0]["rpcUrls"] == list(network.rpc)
    wallet.chain = 1  # it goes away without a word
    desk.sign()

    assert "nothing was sent" in desk.alert("WRONG_CHAIN")
    assert wallet.sent == []


def test_submit__a_chain_of_the_same_id__is_not_the_markets(desk: Desk[WebWallet]) -> None:
    desk.wallet.answers["eth_getBlockByNumber"] = lambda _: {"hash": "0x" + "11" * 32}
    desk.ready("liar")
    desk.sign()

    assert "another chain of that id" in desk.alert("WRONG_CHAIN")
    assert "eth_sendTransaction" not in desk.wallet.asked


def test_submit__another_account__drops_what_was_shown(desk: Desk[WebWallet]) -> None:
    desk.ready("changed")
    other = "0x" + "ab" * 20
    desk.wallet.answers["eth_accounts"] = lambda _: [other]
    desk.sign()
    assert "nothing was sent" in desk.alert("CHANGED")
    desk.page.wait_for_selector(f"#account >> text={other}")
    desk.wallet.says(desk.page, "accountsChanged", [])
    desk.page.wait_for_selector("text=none: the wallet is locked")

    assert desk.page.is_disabled("#sign")
    assert "eth_sendTransaction" not in desk.wallet.asked


def test_submit__a_wallet_that_is_gone__says_where_the_money_is(desk: Desk[WebWallet]) -> None:
    desk.ready("gone")
    desk.wallet.refuse("eth_sendTransaction", 4900, "the provider is disconnected")
    desk.sign()
    said = desk.alert("WALLET_GONE")

    assert "in Escrow for job 0x" in said and "else it is in your account" in said


def test_submit__a_reload_before_the_answer__posts_once(desk: Desk[WebWallet]) -> None:
    desk.ready("reload")
    desk.wallet.answers["eth_sendTransaction"] = lambda _: HANG
    desk.sign()
    desk.page.wait_for_selector("#step >> text=your wallet asks you")
    desk.page.reload()
    desk.page.wait_for_selector("text=Begun here")
    item = desk.page.locator("li", has_text="reload")
    assert "prepared, and not on the chain" in item.inner_text()
    job = re.search(r"0x[0-9a-f]{64}", item.inner_text())
    assert job is not None
    assert desk.page.is_disabled("text=Ask my wallet for it")
    desk.wallet.answers.clear()
    desk.connect()
    item.locator("text=Ask my wallet for it").click()

    assert desk.posted() == job.group()
    assert named(desk.place, "reload") == [job.group()]


def test_submit__a_wallet_that_never_answers__is_not_waited_for_and_pays_once(desk: Desk[WebWallet]) -> None:
    desk.ready("receipt")

    def lose(params: Sequence[Any]) -> Any:
        desk.wallet.send(params[0])
        return HANG

    desk.wallet.answers["eth_sendTransaction"] = lose
    desk.sign()
    job = desk.posted()  # by its id: no receipt was named
    desk.ready("receipt")
    desk.page.wait_for_selector(f"section:has-text('Begun here') >> text={job[:14]}")
    desk.sign()
    desk.page.wait_for_selector("text=It was posted already, and nothing was sent")

    assert named(desk.place, "receipt") == [job] and len(desk.wallet.sent) == 1
    desk.page.check("text=Post a second job with this file")
    desk.sign()
    assert desk.posted() != job and len(named(desk.place, "receipt")) == 2


def test_submit__what_the_chain_refuses__is_a_sentence_and_no_wallet_opens(desk: Desk[WebWallet]) -> None:
    # Without chance, and until the same second, it is the same job again: the chain takes it once.
    desk.page.add_init_script("crypto.getRandomValues = (to) => to.fill(7)")
    deadline = datetime.fromtimestamp(time.time() + 7_200, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    desk.ready("refused twice", deadline)
    desk.sign()
    desk.posted()
    desk.ready("refused twice", deadline)
    desk.page.check("text=Post a second job with this file")
    desk.sign()

    assert "jobs: posted before" in desk.alert("REFUSED")
    assert len(desk.wallet.sent) == 1


def test_submit__an_account_that_is_short__is_told_before_its_wallet_opens(desk: Desk[WebWallet]) -> None:
    desk.ready("poor")
    account = desk.wallet.account.address
    held = desk.place.rpc("eth_getBalance", account, "latest")
    desk.place.rpc("anvil_setBalance", account, hex(10**13))
    try:
        desk.sign()
        assert "short by" in desk.alert("FUNDS_SHORT")
    finally:
        desk.place.rpc("anvil_setBalance", account, held)

    assert "eth_sendTransaction" not in desk.wallet.asked


def test_submit__a_dear_job_for_nobody__is_refused_with_the_price_that_would_do(desk: Desk[WebWallet]) -> None:
    desk.ready("cheap")
    desk.page.uncheck("text=Post it anyway, though no worker can take it")
    desk.sign()
    # The first one is of its plan, and stood there before.
    assert 'max_rate: "0.6' in desk.alert("PRICE_TOO_LOW", before=1)
    desk.page.fill("#rate", "100")

    assert desk.page.inner_text("#at-rate").startswith("1 can take it")
    assert "eth_sendTransaction" not in desk.wallet.asked


def test_submit__a_module_that_no_worker_could_start__is_refused_before_anything(
    desk: Desk[WebWallet], tmp_path: Path
) -> None:
    module = tmp_path / "failing.wasm"
    module.write_text("#!/bin/sh\n")
    desk.open()
    desk.write(OPEN.format(name="script", deadline="1h"), module=module)

    assert "it looks like a script" in desk.alert("module")
    assert desk.page.query_selector("#sign") is None


def test_job__its_submitter__cancels_it(desk: Desk[WebWallet]) -> None:
    desk.ready("cancelled")
    desk.sign()
    job = desk.posted()
    desk.page.click("text=Cancel unit 0")
    desk.page.wait_for_selector("text=Cancel unit 0: done")
    desk.page.wait_for_selector(".state-cancelled")

    assert desk.place.client.jobs.reads.look(job).units[0].state is State.CANCELLED


@pytest.mark.parametrize("desk", ["attester"], indirect=True)
def test_submit__credit_of_a_cancelled_job__pays_what_it_can_of_the_next(desk: Desk[WebWallet]) -> None:
    page, place, wallet = desk.page, desk.place, desk.wallet
    market, network = place.market, place.net.network
    desk.ready("lent")
    desk.sign()
    lent = desk.posted()
    page.click("text=Cancel unit 0")
    page.wait_for_selector(".state-cancelled")
    held = place.client.jobs.reads.look(lent)
    credit = market.credit(wallet.address)
    assert credit >= escrow_at_post(held.terms) > 0

    desk.open()
    # Dearer than the credit by its time: at a rate that a worker asks, one that is past its probation would take it.
    text = OPEN.format(name="dearer", deadline="1d").replace("runtime: 60s", "runtime: 12h").replace("0.01/h", "0.5/h")
    desk.write(text, module=EXAMPLES / "failing" / "failing.wasm")
    desk.connect()
    desk.bring()
    desk.anyway()
    box = page.locator("label:has(#use-credit)")
    assert box.locator("data").get_attribute("value") == str(credit)
    assert page.query_selector("#credit-first") is None
    page.check("#use-credit")
    shown = page.inner_text("#credit-first")
    assert network.escrow in shown and "function withdraw" in shown and network.asset.symbol in shown
    escrow = int(page.get_attribute("#escrow data", "value") or 0)
    assert escrow > credit
    shoot(page, "credit")
    desk.sign()
    job = desk.posted()
    withdrawn, posted = (place.rpc("eth_getTransactionByHash", one) for one in wallet.sent[2:])

    assert (withdrawn["to"], posted["to"]) == (network.escrow, network.jobs)
    assert withdrawn["input"] == "0x" + market.calls.withdraw(wallet.address, credit).data.hex()
    assert (int(withdrawn["value"], 16), int(posted["value"], 16)) == (0, escrow)
    # All that was credit is in the new job's lock, and what it was short of came from the account.
    assert market.credit(wallet.address) == 0
    assert escrow_at_post(place.client.jobs.reads.look(job).terms) == escrow
    fees = [place.rpc("eth_getTransactionReceipt", one) for one in wallet.sent[2:]]
    gas = sum(int(one["gasUsed"], 16) * int(one["effectiveGasPrice"], 16) for one in fees)
    first, last = (int(one["blockNumber"], 16) for one in fees)
    before, after = (int(place.rpc("eth_getBalance", wallet.address, hex(at)), 16) for at in (first - 1, last))
    assert before - after == escrow - credit + gas


def test_submit__at_a_shared_address__no_wallet_is_asked(desk: Desk[WebWallet]) -> None:
    """A path gateway gives one origin to all; the page says so instead of showing wallets."""
    page: Page = desk.page
    base = serve(desk.place)
    origin = base.split("/#")[0]
    page.route(
        "**/ipfs/bafyshared/**", lambda route: route.continue_(url=route.request.url.replace("/ipfs/bafyshared", ""))
    )
    page.goto(f"{origin}/ipfs/bafyshared/#/submit")
    page.wait_for_selector("text=this address is shared with other sites")
    page.wait_for_selector("main h1")

    assert "eth_requestAccounts" not in desk.wallet.asked
    desk.seen.excuse("40")


def test_submit__in_a_market_of_a_token__approves_exactly_what_the_job_takes(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with town(tmp_path_factory.mktemp("token"), erc20=True) as place, watched(chromium) as seen:
        wallet = WebWallet(place, DEVNET_ACCOUNTS["dev"])
        wallet.install(seen.page.context)
        desk = Desk(place, seen, wallet)
        desk.ready("token")
        token = place.net.network.asset.address
        assert token is not None and "an approval of exactly" in desk.page.inner_text("#wallet-shows")
        escrow = desk.page.get_attribute("#escrow data", "value")
        desk.sign()
        job = desk.posted()
        approved, posted = (place.rpc("eth_getTransactionByHash", one) for one in wallet.sent)

        assert (approved["to"], posted["to"]) == (token.lower(), place.net.network.contracts["JobRegistry"].lower())
        assert int(approved["input"][-64:], 16) == int(escrow or 0) and int(posted["value"], 16) == 0
        assert place.client.jobs.reads.look(job).posted.terms.submitter.lower() == wallet.address

        # The stake of a node is approved as exactly, and for another contract.
        desk.page.click("nav a[href='#/provide']")
        operator = place.client.wallet.show("worker")["address"]
        sizes = {"price": "0.60/h", "country": "de", "cores": "1", "memory": "1GiB", "disk": "2GiB"}
        form = {"operator": operator, "stake": "25", **{f"offer-{name}": text for name, text in sizes.items()}}
        for field, text in form.items():
            desk.page.fill(f"#{field}", text)
        assert "an approval of exactly 25" in desk.page.inner_text("#register-shows")
        desk.page.click("button:text-is('Register this node')")
        desk.page.wait_for_selector("text=Register this node: done")
        approved, registered = (place.rpc("eth_getTransactionByHash", one) for one in wallet.sent[2:])
        (node,) = place.client.net.workers()["workers"]
        nodes = place.net.network.nodes.lower()
        assert (approved["to"], registered["to"]) == (token.lower(), nodes)
        assert approved["input"][34:74] == nodes[2:] and int(registered["value"], 16) == 0
        assert int(approved["input"][-64:], 16) == int(node["stake"]) and node["owner"].lower() == wallet.address


def test_submit__what_the_wallet_was_given__is_explained_alike_on_another_machine(desk: Desk[WebWallet]) -> None:
    page = desk.page
    desk.ready("explained")
    assert page.query_selector("#asked-of-wallet") is None
    given = desk.wallet.hold()
    desk.sign()
    page.wait_for_selector("#asked-of-wallet .words")
    (one,) = desk.place.hearth("job", "explain", given[0]["data"], "--json").json["calls"]
    shown = page.inner_text("#asked-of-wallet")

    assert one["data_hash"] in shown and page.inner_text("#asked-of-wallet .words") == one["four_words"]
    assert (one["function"], one["address"]) == ("post", given[0]["to"])
    assert int(one["value"]) == int(given[0]["value"], 16)
    keeps_nobody_out(page)
    shoot(page, "asked")
    # The record of it names the same job; once the wallet has answered there is nothing to compare.
    desk.open()
    assert one["job"] in page.locator("section:has-text('Begun here') li", has_text="explained").inner_text()
    assert page.query_selector("#asked-of-wallet") is None
