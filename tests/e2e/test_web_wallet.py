"""Submitting with a wallet that is an extension: isolated, with a window of its own, on a real market with a keeper."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hearth.client.posting.preflight import Preflight
from hearth.client.posting.sources import Allowed
from hearth.jobfile import load_spec
from hearth.local.market import DEVNET_ACCOUNTS
from hearth.protocol.types import State
from tests.kit.browser import require_chromium, shoot
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town
from tests.kit.web_axe import axe, grave
from tests.kit.web_desk import OPEN, Desk
from tests.kit.web_extension import ExtensionWallet, bundle, extension_wallet

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
DIGITS, ATTESTED = EXAMPLES / "digits", EXAMPLES / "attested"
VIOLATIONS = """addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
  console.error(`violation: ${violatedDirective} ${blockedURI}`))"""
"""Have each violation of the page's policy reported as an error."""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_chromium(whole=True)
    return bundle(tmp_path_factory.mktemp("extension") / "bundled")


@pytest.fixture(scope="module")
def place(extension: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A market with a keeper and a worker; after the extension, so that without one nothing is started."""
    with town(tmp_path_factory.mktemp("web")) as made:
        made.add_keeper()
        path = made.worker_file()
        # It runs what the attesters of the example judge, and what nobody does.
        digest = made.hearth("check", str(ATTESTED / "job.yaml"), "--allow-outside", "--json").json["judge"]["digest"]
        accept = re.sub(r"(?m)^\[accept\].*$", f'[accept]\nattesters = ["{digest}"]', path.read_text())
        path.write_text(accept)
        told = made.hearth("worker", "register", "--config", str(path), "--stake", "20")
        assert told.code == 0 and digest in accept, told.err
        made.start("worker", "-m", "worker", "--config", str(path))
        made.wait_beat(1)
        yield made


@pytest.fixture
def desk(extension: Path, place: Town, tmp_path: Path) -> Iterator[Desk[ExtensionWallet]]:
    with extension_wallet(tmp_path, extension, DEVNET_ACCOUNTS["dev"]) as wallet:
        wallet.seen.page.add_init_script(VIOLATIONS)
        yield Desk(place, wallet.seen, wallet)


def connect(desk: Desk[ExtensionWallet]) -> None:
    """Connect the wallet, which is on another chain, and have the market's added; its owner agrees to both."""
    desk.wallet.approve(lambda: desk.page.click("text=Connect Test wallet"))
    desk.wallet.approve(lambda: desk.page.click("text=Switch the wallet to chain"))
    desk.page.wait_for_selector(f"#chain >> text={desk.place.net.network.chain_id}")


def ready(desk: Desk[ExtensionWallet], name: str) -> None:
    """Bring a job that stays open to the last button."""
    desk.open()
    desk.write(OPEN.format(name=name, deadline="1h"), module=EXAMPLES / "failing" / "failing.wasm")
    connect(desk)
    desk.bring()
    desk.anyway()


def sent(desk: Desk[ExtensionWallet]) -> int:
    """Return how many transactions the account has sent."""
    return int(desk.place.rpc("eth_getTransactionCount", desk.wallet.account.address, "pending"), 16)


def test_submit__by_an_extension__is_approved_in_its_window_and_the_result_is_shown(
    desk: Desk[ExtensionWallet], tmp_path: Path
) -> None:
    page, wallet, network = desk.page, desk.wallet, desk.place.net.network
    desk.open()
    desk.write((DIGITS / "job.yaml").read_text(), module=DIGITS / "digits.wasm", data=DIGITS / "digits.csv")
    assert str(page.get_attribute("main img.logo", "src")).startswith("data:image/svg+xml")
    shown = wallet.approve(lambda: page.click("text=Connect Test wallet"))
    assert (shown["what"], shown["account"]) == ("Connect", wallet.account.address)
    assert page.url.startswith(shown["origin"])
    page.wait_for_selector(f"#account >> text={wallet.address}")
    # It is on another chain and does not know the market's: the page has it added, and shows with which RPC.
    assert page.inner_text("#chain") == "1" and page.is_disabled("#sign")
    added = wallet.approve(lambda: page.click("text=Switch the wallet to chain"))
    assert (added["what"], int(added["chain"], 16)) == ("Add a chain", network.chain_id)
    assert added["rpc"] == " ".join(network.rpc)
    page.wait_for_selector(f"#chain >> text={network.chain_id}")
    desk.bring()
    said, escrow = page.inner_text("#wallet-shows"), page.get_attribute("#escrow data", "value")

    asked = wallet.approve(desk.sign)
    job = desk.posted()
    # Its window showed what the page had said that it would, and that alone was signed and sent.
    assert (asked["to"], asked["value"]) == (network.contracts["JobRegistry"].lower(), escrow) and asked["to"] in said
    assert [one["data"] for one in wallet.signed] == [asked["data"]]
    posted = desk.place.client.jobs.reads.look(job).posted
    assert posted.terms.submitter.lower() == wallet.address
    assert desk.place.rpc("eth_getTransactionByHash", f"0x{posted.log.tx_hash.hex()}")["input"] == asked["data"]
    page.wait_for_selector(".state-done", timeout=90_000)
    page.wait_for_selector("text=Its digest, its unit and every block of it are what the chain says", timeout=60_000)
    with page.expect_download() as saved:
        page.click("text=Save accuracy.json")
    told = desk.place.hearth("job", "get", job, "-o", str(tmp_path / "out"))
    assert told.code == 0, told.err
    assert Path(saved.value.path()).read_bytes() == (tmp_path / "out" / "accuracy.json").read_bytes()


def test_submit__refused_in_the_extensions_window__sends_nothing(desk: Desk[ExtensionWallet]) -> None:
    ready(desk, "refused")
    before = sent(desk)
    with desk.wallet.window(desk.sign) as window:
        window.click("#reject")
    assert "you refused it; nothing was sent" in desk.alert("USER_REFUSED")
    # What to do now stands beside it, and over the box of a second job that the first is still one.
    assert "the same button asks your wallet again" in desk.alert("USER_REFUSED")
    # That is read from the browser's own journal.
    desk.page.wait_for_selector("text=cannot be posted twice")
    with desk.wallet.window(desk.sign):  # and shut without an answer
        desk.page.wait_for_selector("[role=alert]:has-text('USER_REFUSED')", state="detached")
    assert "you refused it; nothing was sent" in desk.alert("USER_REFUSED")

    assert desk.wallet.signed == [] and sent(desk) == before


def test_switch__refused_and_left__nothing_is_signed_on_another_chain(desk: Desk[ExtensionWallet]) -> None:
    page, wallet = desk.page, desk.wallet
    chain = str(desk.place.net.network.chain_id)
    desk.open()
    desk.write(OPEN.format(name="elsewhere", deadline="1h"), module=EXAMPLES / "failing" / "failing.wasm")
    wallet.approve(lambda: page.click("text=Connect Test wallet"))
    wallet.reject(lambda: page.click("text=Switch the wallet to chain"))
    assert "you refused it; nothing was sent" in desk.alert("USER_REFUSED")
    assert page.inner_text("#chain") == "1"
    wallet.approve(lambda: page.click("text=Switch the wallet to chain"))
    page.wait_for_selector(f"#chain >> text={chain}")
    desk.bring()
    desk.anyway()
    assert page.is_enabled("#sign")
    # Its owner goes elsewhere in the wallet itself; it announces that, and comes back when it is asked.
    wallet.move("0x1")
    page.wait_for_selector("#sign:disabled")
    assert page.inner_text("#chain") == "1"
    back = wallet.approve(lambda: page.click("text=Switch the wallet to chain"))

    assert (back["what"], int(back["to"], 16)) == ("Switch the chain", int(chain))
    page.wait_for_selector("#sign:enabled")
    assert wallet.signed == []


def violations(desk: Desk[ExtensionWallet]) -> int:
    """Return how many violations were reported, each once; what a page reports is heard only while it is asked."""
    desk.page.title()
    return len({said for said in desk.seen.complaints if "violation" in said})


def test_policy__with_an_extension_in_the_page__holds_and_is_not_broken_by_it(desk: Desk[ExtensionWallet]) -> None:
    """The wallet's script is in the page's world all the while; what the page's policy forbids stays forbidden."""
    desk.open()
    connect(desk)
    assert desk.seen.complaints == []
    assert desk.page.evaluate("typeof window.ethereum") == "object"  # it is there, and the page does not look at it
    with pytest.raises(Exception, match="TrustedHTML"):
        desk.page.evaluate("document.body.innerHTML = '<p>'")
    desk.page.evaluate(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:1/x'}))"
    )
    wait(lambda: violations(desk) == 2, "both violations are reported", 10)
    assert violations(desk) == 2  # and no third one; a report may come twice
    desk.seen.complaints.clear()


def attested_job(folder: Path) -> Path:
    """Return the example whose results attesters judge, with a deadline that is the same whoever reads it when."""
    deadline = datetime.fromtimestamp(time.time() + 3_600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = (ATTESTED / "job.yaml").read_text().replace("deadline: 1h", f'deadline: "{deadline}"')
    job = folder / "examples" / "attested" / "job.yaml"
    shutil.copytree(EXAMPLES / "digits", folder / "examples" / "digits")
    shutil.copytree(ATTESTED, job.parent)
    job.write_text(text)
    return job


def test_submit__a_job_of_attesters__has_the_commands_terms_and_is_confirmed_by_them(
    desk: Desk[ExtensionWallet], tmp_path: Path
) -> None:
    page, place = desk.page, desk.place
    path = attested_job(tmp_path)
    plan = place.hearth("check", str(path), "--allow-outside", "--json").json
    desk.open()
    desk.write(
        path.read_text(),
        module=DIGITS / "digits.wasm",
        data=DIGITS / "digits.csv",
        attesters=path.parent / "attesters.yaml",
    )
    assert page.inner_text("#attesters-digest") == plan["judge"]["digest"]
    assert page.inner_text("#takers") == plan["text"][-1]
    connect(desk)
    desk.bring()
    assert page.inner_text("#judged") in plan["text"]
    shown = page.locator("#judged + ul code").all_inner_texts()
    assert shown == plan["judge"]["keys"] and len(shown) == 3
    desk.wallet.approve(desk.sign)
    job = desk.posted()

    reads = place.client.jobs.reads
    posted = reads.look(job).posted.terms
    with Preflight(reads).planned(load_spec(path), Allowed(outside=True)) as planned:
        assert replace(posted, salt=0) == planned.terms
    wait(lambda: reads.look(job).units[0].state is State.SUBMITTED, "it ran", 60)
    files = [tmp_path / f"{name}.json" for name in ("attester", "attester2")]
    for file in files:
        told = place.hearth("job", "attest", job, "--account", file.stem, "--out", str(file))
        assert told.code == 0, told.err
    named = ("--attesters", str(path.parent / "attesters.yaml"))
    told = place.hearth("job", "confirm", job, *map(str, files), *named)
    assert told.code == 0, told.err
    page.wait_for_selector(".state-done")


def pick_sources(desk: Desk[ExtensionWallet]) -> None:
    """Pick what a job file of the digits brings: for each file that is opened anew."""
    for name in ("digits.wasm", "digits.csv"):
        item = desk.page.locator("li", has_text=name).first
        item.locator("input[type=file]:not([webkitdirectory])").set_input_files(DIGITS / name)
        item.locator("code").wait_for()


def test_submit__attesters_that_are_none__are_refused_and_nothing_is_signed(
    desk: Desk[ExtensionWallet], tmp_path: Path
) -> None:
    page, path = desk.page, attested_job(tmp_path)
    keys = path.parent / "attesters.yaml"
    desk.open()
    desk.pick("label:has-text('Open') input", path)
    page.wait_for_selector("text=This is a job file")
    pick_sources(desk)
    page.wait_for_selector("[role=alert]:has-text('attesters.yaml names the attesters, and no set of it is read')")
    assert page.query_selector("#sign") is None
    desk.pick_attesters(keys)
    page.wait_for_selector("#sign")
    page.evaluate(axe())
    page.set_viewport_size({"width": 320, "height": 800})
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 320 and grave(page) == []
        shoot(page, f"attested-{theme}-320")
    # Another file takes the place of the first, whatever it holds; and what it is refused for, the command says too.
    keys.write_text(keys.read_text().replace("quorum: 2", "quorum: 4"))
    desk.pick_attesters(keys)
    page.wait_for_selector("#sign", state="detached")
    refused = desk.place.hearth("check", str(path), "--allow-outside", "--json").error
    said = page.locator("[role=alert]:has-text('quorum 4 of 3 keys')").inner_text()
    assert refused["code"] == "BAD_ATTESTERS"
    assert said.startswith("line ") and "quorum 4 of 3 keys: 1 to 3 can be asked for" in refused["message"]
    # The same two files, written anew: of a job that names nobody, the set that was picked is nobody's.
    keys.write_text((ATTESTED / "attesters.yaml").read_text())
    desk.pick_attesters(keys)
    page.wait_for_selector("#judged:has-text('paid for once 2 of the 3 attesters')")
    path.write_text(re.sub(r"(?m)^verify:.*$", "", path.read_text()))
    desk.pick("label:has-text('Open') input", path)
    page.wait_for_selector("#missing")
    pick_sources(desk)
    page.wait_for_selector("#judged:has-text('nobody can challenge this result')")
    assert desk.wallet.signed == []
