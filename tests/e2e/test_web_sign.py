"""Files of --print-tx signed in the page, and governance shown and carried out there, in a browser on a real market."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hearth.cli.gov import change_lines
from hearth.protocol.types import State
from tests.kit.attested import Attested
from tests.kit.browser import shoot
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, example_text, town
from tests.kit.web_axe import keeps_nobody_out
from tests.kit.web_page import becomes, follows, go, table
from tests.kit.web_sign_desk import SignDesk, at

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.net, pytest.mark.timeout(300)]
OPEN = """version: 1
name: {name}
module: failing.wasm
resources: {{cpus: 1, memory: 64MiB}}
limits: {{runtime: 60s, deadline: 1h}}
price: {{max_rate: "0.01/h"}}
"""
"""A job that no worker takes: nobody asks so little."""
FREE = "waiting for a machine"


@pytest.fixture(scope="module")
def attested(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attested]:
    with town(tmp_path_factory.mktemp("sign")) as made:
        made.start("web", "-m", "hearth.cli", "web", "--port", "0")
        yield Attested(made)


@pytest.fixture(scope="module")
def place(attested: Attested) -> Town:
    return attested.place


@pytest.fixture
def desk(place: Town, chromium: Browser) -> Iterator[SignDesk]:
    with at(place, chromium, "dev") as made:
        yield made


def prepare(place: Town, *arguments: str) -> Any:
    """Run a command with --json, and return its report."""
    told = place.hearth(*arguments, "--json")
    assert told.code == 0, (arguments, told.out, told.err)
    return told.json


def job_file(place: Town, name: str) -> str:
    path = place.home / "jobs" / f"{name}.yaml"
    example_text("failing", path.parent)
    path.write_text(OPEN.format(name=name))
    return str(path)


def test_sign__a_job_that_the_command_prepared__is_posted_and_its_page_found(desk: SignDesk, tmp_path: Path) -> None:
    report = prepare(desk.place, "submit", job_file(desk.place, "prepared"), "--anyway", "--print-tx")
    desk.open(json.dumps(report), tmp_path)
    told = desk.told()
    assert "Post a job of one unit, which takes" in told and report["job"] in told and report["from"] in told
    assert "keeper fees" in told
    assert desk.page.get_attribute("#calls data", "value") == report["escrow"]
    shoot(desk.page, "sign")
    desk.sign()
    posted = desk.place.client.jobs.reads.look(report["job"]).posted
    assert f"0x{posted.log.tx_hash.hex()}" == desk.wallet.sent[0]

    # The same file once more pays nothing, and that is said as soon as it is open.
    go(desk.page, "#/about")
    desk.open(json.dumps(report), tmp_path)
    desk.page.wait_for_selector("#known >> text=This job is posted already")
    # What this browser had signed is read from its own disk, not from the chain.
    desk.page.wait_for_selector("#known >> text=Call 1 of 1 was signed in this browser and is in a block")
    assert report["job"] in desk.page.inner_text("#known")
    assert desk.page.locator("text=Sign it again").count() == 0
    desk.page.click("#sign-file")
    assert "was signed here and is in a block" in desk.alert("SIGNED_BEFORE")
    desk.page.wait_for_selector("text=Sign it again")
    assert len(desk.wallet.sent) == 1
    desk.page.click("#calls a")
    desk.page.wait_for_selector(".state-waiting-for-a-machine")


def test_sign__a_file__has_the_marks_that_the_command_says_before_and_while_the_wallet_asks(
    desk: SignDesk, tmp_path: Path
) -> None:
    report = prepare(desk.place, "submit", job_file(desk.place, "marked"), "--anyway", "--print-tx")
    desk.open(json.dumps(report), tmp_path)
    desk.page.wait_for_selector("#calls .marks .words")
    card = desk.page.inner_text("#calls .marks")
    given = desk.wallet.hold()
    desk.page.click("#sign-file")
    desk.page.wait_for_selector("#asked-of-wallet .words")
    asked = desk.page.inner_text("#asked-of-wallet")
    for text in (given[0]["data"], str(tmp_path / "tx.json")):
        (one,) = desk.place.hearth("job", "explain", text, "--json").json["calls"]
        for shown in (card, asked):
            assert one["data_hash"] in shown and one["four_words"] in shown
        # What the page tells of the call is what the command tells of it.
        told = desk.told()
        assert one["what"] in told and all(row["text"] in told for row in one["rows"])


def test_act__what_the_wallet_is_asked__is_of_the_job_that_is_shown(desk: SignDesk) -> None:
    job = prepare(desk.place, "submit", job_file(desk.place, "acted"), "--anyway")["job"]
    go(desk.page, f"#/job/{job}")
    desk.page.wait_for_selector(f"main >> text={job}")
    desk.connect()
    given = desk.wallet.hold()
    desk.page.click("button:text-is('Cancel unit 0')")
    desk.page.wait_for_selector("#asked-of-wallet .words")
    (one,) = prepare(desk.place, "job", "explain", given[0]["data"])["calls"]

    assert (one["job"], one["function"], one["address"]) == (job, "cancel", given[0]["to"])
    shown = desk.page.inner_text("#asked-of-wallet")
    assert one["data_hash"] in shown and one["four_words"] in shown


def test_sign__cancellations_that_the_page_saved__end_their_jobs_in_their_order(desk: SignDesk, tmp_path: Path) -> None:
    jobs = [prepare(desk.place, "submit", job_file(desk.place, name), "--anyway")["job"] for name in ("one", "two")]
    texts = []
    for job in jobs:
        go(desk.page, f"#/job/{job}")
        desk.page.wait_for_selector(f"main >> text={job}")
        desk.page.click("#save-acts summary")
        texts.append(json.loads(desk.saved("text=Save: Cancel unit 0")))
    assert [(text["schema"], text["action"]) for text in texts] == [("hearth.tx/1", "jobs.cancel")] * 2
    desk.untouched()
    desk.open(json.dumps({"prepared": texts}), tmp_path)
    told = desk.told()
    assert told.index(jobs[0]) < told.index(jobs[1]) and told.count("Cancel unit 0 of a job") == 2
    desk.sign()

    reads, rpc = desk.place.client.jobs.reads, desk.place.rpc
    assert [reads.look(job).units[0].state for job in jobs] == [State.CANCELLED] * 2
    first, second = (int(rpc("eth_getTransactionReceipt", one)["blockNumber"], 16) for one in desk.wallet.sent)
    assert first < second


def test_sign__a_withdrawal_that_the_page_saved__is_one_that_the_command_sends(desk: SignDesk, tmp_path: Path) -> None:
    """Cancelling gave the submitter its escrow back as credit; here the command signs what the page prepared."""
    place, account = desk.place, desk.wallet.address
    job = prepare(place, "submit", job_file(place, "credit"), "--anyway")["job"]
    prepare(place, "job", "cancel", job)
    credit = place.session.market.credit(account)
    assert credit > 0
    go(desk.page, "#/sign")
    # The file is of what the account has as of the block that the page has read.
    desk.caught_up()
    desk.page.fill("#withdraw-account", account)
    path = tmp_path / "withdraw.json"
    path.write_text(desk.saved("text=Save the withdrawal"))
    told = place.hearth("wallet", "send", str(path), "--account", "dev", "--yes", "--json")

    assert told.code == 0 and told.json["already_sent"] is False, told.out
    assert place.session.market.credit(account) == 0
    desk.untouched()


def test_submit__for_an_account_elsewhere__its_file_is_signed_by_that_account(
    desk: SignDesk, chromium: Browser, tmp_path: Path
) -> None:
    place, page = desk.place, desk.page
    with at(place, chromium, "provider") as other:
        # What it has in Escrow pays first: the file holds the withdrawal too.
        lent = prepare(place, "submit", job_file(place, "lent"), "--anyway", "--account", "provider")["job"]
        prepare(place, "job", "cancel", lent, "--account", "provider")
        credit = place.market.credit(other.wallet.address)
        page.click("nav a[href='#/submit']")
        page.fill("#job-file", OPEN.format(name="elsewhere"))
        item = page.locator("li", has_text="failing.wasm").first
        item.locator("input[type=file]:not([webkitdirectory])").set_input_files(EXAMPLES / "failing" / "failing.wasm")
        page.click("text=Put it all into my store")
        page.wait_for_selector("#there >> text=blocks are there, by your store")
        page.check("text=Post it anyway, though no worker can take it")
        page.click("#elsewhere summary")
        page.fill("#elsewhere-account", other.wallet.address)
        page.check("text=Withdraw what its credit in Escrow pays of it first")
        text = desk.saved("text=Save what it is to sign")
        job = page.inner_text("#elsewhere [role=status] a")
        desk.untouched()
        # This account is not the one that it was made for.
        desk.open(text, tmp_path)
        assert other.wallet.address in desk.alert("NOT_SENDER") and page.is_disabled("#sign-file")
        other.open(text, tmp_path)
        assert job in other.told() and "Withdraw" in other.told()
        other.sign()
        assert credit > 0 and place.market.credit(other.wallet.address) == 0

    assert place.client.jobs.reads.look(job).posted.terms.submitter.lower() == other.wallet.address
    go(page, f"#/job/{job}")
    page.wait_for_selector(".state-waiting-for-a-machine")


def test_sign__a_file_that_is_altered__is_refused_before_the_wallet_is_asked(desk: SignDesk, tmp_path: Path) -> None:
    good = prepare(desk.place, "gov", "queue", "minimum-stake", "3", "--account", "council", "--print-tx")["prepared"]
    altered: dict[str, tuple[str, Any]] = {
        "another chain": ("WRONG_MARKET", {**good, "chain_id": good["chain_id"] + 1}),
        "another market": ("WRONG_MARKET", {**good, "to": "0x" + "0d" * 20}),
        "an unknown function": ("BAD_TX", {**good, "data": "0xdeadbeef" + good["data"][10:]}),
        "more behind its arguments": ("BAD_TX", {**good, "data": good["data"] + "00"}),
        "money for nothing": ("BAD_TX", {**good, "value": "1"}),
        "another schema": ("BAD_TX", {**good, "schema": "\u202e"}),
    }
    go(desk.page, "#/sign")
    desk.connect()
    for what, (code, document) in altered.items():
        desk.page.fill("#tx-text", json.dumps(document))
        assert desk.alert(code), what
        assert desk.page.query_selector("#sign-file") is None, what
        desk.page.fill("#tx-text", "")
        desk.page.wait_for_selector("[role=alert]", state="detached")
    desk.page.fill("#tx-text", json.dumps(altered["another chain"][1]))
    assert f"for chain {good['chain_id'] + 1}" in desk.alert("WRONG_MARKET")
    assert f"on chain {good['chain_id']}" in desk.alert("WRONG_MARKET")
    empty = tmp_path / "empty.json"
    empty.write_text(" \n")
    desk.page.set_input_files("#tx-file", empty)
    assert "the file is empty" in desk.alert("BAD_TX")
    # As it was written it is read, and is another account's.
    desk.open(json.dumps(good), tmp_path)
    desk.alert("NOT_SENDER")
    assert desk.page.is_disabled("#sign-file")
    keeps_nobody_out(desk.page)
    desk.untouched()


def test_job__that_attesters_judge__is_shown_with_its_verdict(desk: SignDesk, attested: Attested) -> None:
    page, job = desk.page, attested.submitted()
    lease = attested.lease(job)
    go(page, f"#/job/{job}")
    becomes(page, verdicts, [("result in", "none yet", lease["result_cid"])], "its result")
    assert "not known yet" in page.inner_text("#needed")
    signed = [str(attested.attest(job, name)[0]) for name in ("ada", "cid")]
    attested.confirm(job, *signed)
    (said,) = [one["text"] for one in events(desk.place, job) if one["event"] == "Ruled"]
    said += "; 2 signatures, of 3 attesters of whom 2 must sign"
    becomes(page, verdicts, [("done", said, lease["result_cid"])], "the verdict")
    assert page.inner_text("#needed").startswith("2 of 3 attesters")
    page.click("text=The attesters")
    assert sorted(attested.addresses) == page.inner_text("details:has-text('The attesters') ul").split()
    keeps_nobody_out(page)
    shoot(page, "judged")
    assert prepare(desk.place, "job", "show", job)["verify"] in page.inner_text("main")


def test_job__with_parents_and_children__is_drawn_among_them(desk: SignDesk) -> None:
    place, page = desk.place, desk.page
    parent = prepare(place, "submit", job_file(place, "parent"), "--anyway")["job"]
    child = prepare(place, "submit", job_file(place, "child"), "--after", f"{parent}:always", "--anyway")["job"]
    last = prepare(place, "submit", job_file(place, "last"), "--after", child, "--anyway")["job"]
    go(page, f"#/job/{child}")
    page.click("text=Show what it waits for, and what waits for it")
    waits = "\N{DOTTED CIRCLE} waiting for other jobs"
    wanted = [
        f"this job ({waits}) waits for {parent} (\N{WHITE CIRCLE} {FREE}): always",
        f"{last} ({waits}) waits for this job ({waits}): success",
    ]
    becomes(page, around, wanted, "the jobs around it")
    shown = prepare(place, "job", "show", child)["parents"]
    assert [(row["job"], row["condition"], row["text"].split(",")[0]) for row in shown] == [(parent, "always", FREE)]
    assert page.locator("svg a").count() == 3
    keeps_nobody_out(page)
    shoot(page, "around")
    prepare(place, "job", "cancel", parent)
    page.wait_for_selector("#around >> text=cancelled")


def test_routes__that_are_reserved__are_no_page_and_have_no_link(desk: SignDesk) -> None:
    for route in ("dispute", "live"):
        go(desk.page, "#/about")
        assert desk.page.inner_text("main h1") == "About this page"
        go(desk.page, f"#/{route}/0x{'0d' * 32}")
        assert desk.page.inner_text("main h1") == "No such page"
        assert desk.page.query_selector(f"a[href*='{route}']") is None


def around(page: Page) -> list[str]:
    return [" ".join(line.split()) for line in page.locator("#around li").all_inner_texts()]


def verdicts(page: Page) -> list[tuple[str, str, str]]:
    rows = table(page, "verdict").rows
    return [(row["state"].text.partition(" ")[2], row["verdict"].text, row["result"].text) for row in rows]


def events(place: Town, job: str) -> list[Any]:
    return [json.loads(line) for line in place.hearth("job", "events", job, "--json").out.splitlines()]


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
        follows(page, changes, lambda: listed(place), "the changes")
        assert page.get_attribute("#announcing a", "href") == "#/sign"
        assert "hearth gov queue" in page.inner_text("#announcing")
        seats = page.inner_text("#seats")
        assert status["council"] in seats and "posts are governed by the Steward" in seats
        desk.connect()
        until_due(place, next(row["due"] for row in status["changes"] if row["change"] == report["change"]))
        page.click(f"text=Carry out {report['change'][:14]}")
        page.locator("tr", has_text=report["change"]).get_by_text("executed").first.wait_for()
        follows(page, changes, lambda: listed(place), "the changes")
        keeps_nobody_out(page)
        shoot(page, "gov")

        assert len(desk.wallet.sent) == 1
        assert int(place.session.market.immutable("NodeRegistry", "minimum_stake")) == 2 * 10**18


def test_gov__its_council__takes_a_change_back_and_stops_posts(place: Town, chromium: Browser) -> None:
    prepare(place, "gov", "queue", "policy", "fee_bps=300", "ack_time=9s")
    with at(place, chromium, "council") as council:
        page = council.page
        go(page, "#/gov")
        follows(page, changes, lambda: listed(place), "the changes")
        assert "policy: fee_bps 500 (5 %) -> 300 (3 %), ack_time 8s -> 9s" in page.inner_text("main")
        sets = page.inner_text("[id^='sets-']").split("\n")
        assert [sets[sets.index(name) + 1] for name in ("fee_bps", "ack_time")] == ["300 (3 %)", "9s"]
        assert "min_checkpoint" in sets
        council.connect()
        page.click("text=/Take back 0x.* for good/")
        page.wait_for_selector("text=dropped")
        page.click("text=Stop new registrations for 7 days")
        page.wait_for_selector("#registrations >> text=paused now until")
        follows(page, changes, lambda: listed(place), "the changes")

        assert page.is_disabled("text=Stop new registrations for 7 days")
        status = prepare(place, "gov", "status")
        assert status["changes"][-1]["state"] == "dropped" and status["registrations"]["paused_until"] > status["time"]


def until_due(place: Town, due: int) -> None:
    wait(lambda: place.chain.head().timestamp >= due, "it is due", 60)
