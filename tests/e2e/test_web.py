"""The page in a real browser on a real market: what it shows is what the commands say, whatever its provider does.

One market for all of it: a chain in real time, a worker, a keeper and `hearth web` as processes. Where a test needs a
provider that lies, fails or waits, the page asks one that stands in front of the chain.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest

from hearth.local import devnet
from hearth.market.events import Finished, JobPosted, Started, Submitted, topic_of
from hearth.protocol import words
from hearth.protocol.state_labels import JOB_LABELS
from hearth.protocol.types import Needs, Outcome
from tests.chaos.reorgs import go_back
from tests.kit import build, web_axe
from tests.kit.browser import Watched, shoot, tab_to, watched
from tests.kit.http import MIB
from tests.kit.running import wait
from tests.kit.web_market import HOSTILE, NOBODY, SHEETS, UNITS, WebMarket, web_market
from tests.kit.web_page import (
    HIDE,
    MENU,
    Table,
    becomes,
    failure,
    follows,
    go,
    jobs,
    table,
    tables,
    terms,
    timeline,
    unseen,
)
from tests.kit.web_rpc import Ask, Change, Reply, hang_up, of, raw, refusing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

POSTED = "0x" + topic_of(JobPosted).hex()
MONEY = {
    "locked": "escrow",
    "still held": "still_locked",
    "workers got": "workers",
    "the market's fee": "market_fee",
    "keepers got": "keepers",
    "refunded": "refunded",
}
"""What the page calls the parts of `hearth job receipt`."""
FRIEND = "0x" + "ab" * 20
NAMES = ("good", "failing", "array", "hostile", "child", "open", "blocked", "rest", "cancelled")


@pytest.fixture(scope="module")
def market(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebMarket]:
    """A market whose jobs have ended, as far as they can; after the browser, so that without one nothing is started."""
    with web_market(tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture(scope="module")
def direct(market: WebMarket) -> str:
    """The address of a page that asks the chain itself."""
    return market.serve("web")


@pytest.fixture(scope="module")
def through(market: WebMarket) -> str:
    """The address of a page that asks `market.rpc`."""
    return market.serve("web-rpc", "--rpc", market.rpc.url)


def open_page(seen: Watched, url: str, route: str = "#/jobs") -> Page:
    """Open the page at a route, as from a bookmark: its token is known, and nothing else was asked before."""
    page = seen.page
    origin, _, token = url.partition("#token=")
    page.add_init_script(f"localStorage.setItem('hearth.token', {json.dumps(token)})")
    page.goto(origin + route)
    page.wait_for_selector("text=served by hearth web")
    return page


def link(market: WebMarket, job: str) -> str:
    """Return the route that the list gives a job."""
    block = next(row["block"] for row in market.rows() if row["job"] == job)
    return f"#/job/{job}@{block}"


def listed(market: WebMarket) -> dict[str, tuple[str, str]]:
    """Return what `hearth jobs --all` says of each job, as the page's list does."""
    ended = ("settled", "refunded", "cancelled", "expired")
    found = {}
    for row in market.rows():
        done = sum(count for state, count in row["counts"].items() if state in ended)
        found[row["job"]] = (row["state_text"], f"{done}/{row['units']}")
    return found


# ---- jobs ----


def test_jobs__the_list__is_what_the_command_lists(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct)
    wanted = listed(market)
    becomes(page, jobs, wanted, "the list of jobs")

    assert list(jobs(page)) == [row["job"] for row in market.rows()]  # newest first
    rows = {row["job"].whole: row for row in table(page, "at most").rows}
    assert {job: row["submitter"].whole for job, row in rows.items()} == {
        row["job"]: row["submitter"] for row in market.rows()
    }
    # What has ended counts down to nothing.
    over = {"settled", "refunded", "cancelled", "expired"}
    ended = {row["job"] for row in market.rows() if row["counts"].keys() <= over}
    assert {job for job, row in rows.items() if "(" not in row["deadline"].text} == ended != set()
    for name in NAMES:
        escrow = market.run("job", "show", market.jobs[name])["escrow"]
        assert rows[market.jobs[name]]["at most"].exact == escrow, name
    shoot(page, "jobs")


def test_jobs__its_filters__are_those_of_the_command(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct)
    becomes(page, jobs, listed(market), "the list of jobs")
    states = {row["state_text"] for row in market.rows()} & set(JOB_LABELS)
    assert {"done", "failed", "waiting for a machine", "waiting for other jobs", "cancelled"} <= states
    for state in sorted(states):
        page.select_option("main select", state)
        wanted = [row["job"] for row in market.run("jobs", "--all", "--state", state)["jobs"]]
        becomes(page, lambda page: list(jobs(page)), wanted, f"those in state {state}")
        assert f"state={quote_plus(state)}" in page.url

    page.select_option("main select", "")
    becomes(page, lambda page: len(jobs(page)), len(market.rows()), "those in any state")
    submitter = market.rows()[0]["submitter"].upper().replace("0X", "0x")
    page.fill("main input", submitter)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/#/jobs?submitter={submitter}")
    becomes(page, lambda page: len(jobs(page)), len(market.rows()), "those of their submitter")
    page.fill("main input", "0x" + "00" * 20)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=None of these jobs is like that.")
    page.reload()
    page.wait_for_selector("text=None of these jobs is like that.")
    page.fill("main input", "0x12\u202e")
    page.keyboard.press("Enter")
    page.wait_for_selector(".failure >> text=BAD_ADDRESS")
    assert unseen(page) == [] and jobs(page) == {}


NAMES_READ = "button:text-is('Save as CSV'):enabled"
"""It waits for what this browser knows of names."""


def named(page: Page) -> dict[str, str]:
    """Return the names in the list of jobs, by their ids, of those that have one."""
    found = {row["job"].whole or "": row["name"].text for row in table(page, "at most").rows}
    return {job: name for job, name in found.items() if name}


def costs(page: Page) -> dict[str, str | None]:
    """Return what the listed jobs cost so far, base units, by their ids; null where it is not known."""
    return {row["job"].whole or "": row["cost so far"].exact for row in table(page, "at most").rows}


def test_jobs__their_names__are_of_documents_that_were_read_here(
    market: WebMarket, through: str, seen: Watched
) -> None:
    page = open_page(seen, through)
    becomes(page, jobs, listed(market), "the list of jobs")
    page.wait_for_selector(NAMES_READ)
    assert named(page) == {}
    wanted = {market.jobs[name]: name for name in ("good", "failing")}
    for job in wanted:
        go(page, link(market, job))
        page.click("text=Read its job file")
        page.wait_for_selector("#job-document")
        # Its result is read as well, which must not count for the list.
        page.wait_for_selector("text=Its digest, its unit and every block of it are what the chain says")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    go(page, "#/jobs")
    becomes(page, named, wanted, "the names of both")
    page.reload()
    becomes(page, named, wanted, "their names at the next visit")
    assert [url for url in asked if "/ipfs/" in url] == []
    page.get_by_label("Name").fill("FAIL")
    page.keyboard.press("Enter")
    becomes(page, named, {market.jobs["failing"]: "failing"}, "the one that is looked for")
    assert len(jobs(page)) == 1
    page.wait_for_selector(f"caption:has-text('the names of {len(market.jobs) - 2} jobs are not read')")
    # A name that cannot be seen is shown as what it is; what stands in the boxes goes with a state that is picked.
    go(page, "#/jobs?name=%E2%80%8B&state=none-such")
    page.wait_for_selector(
        f"text=None of these jobs is like that; the names of {len(market.jobs) - 2} jobs are not read."
    )
    becomes(page, lambda page: page.get_by_label("Name").input_value(), "U+200B", "what is looked for, in its box")
    assert page.get_by_label("State").input_value() == ""
    page.get_by_label("Name").fill("fail")
    page.get_by_label("State").select_option("failed")
    becomes(page, named, {market.jobs["failing"]: "failing"}, "the one that is looked for")
    assert page.url.endswith("#/jobs?state=failed&name=fail")
    with page.expect_download() as saved:
        page.click("text=Save as CSV")
    with Path(saved.value.path()).open(newline="", encoding="utf-8") as file:
        assert [(row["job"], row["name"]) for row in csv.DictReader(file)] == [(market.jobs["failing"], "failing")]
    go(page, link(market, market.jobs["failing"]))
    becomes(page, heading, "Job “failing”", "its name above its page")

    go(page, "#/jobs")
    page.evaluate("""() => {
      const [[digest]] = JSON.parse(localStorage.getItem("hearth.names"));
      localStorage.setItem("hearth.names", JSON.stringify([[digest, "\u202egnp.exe"], ["0x12", "no digest"]]));
    }""")
    page.reload()
    becomes(page, jobs, listed(market), "the list of jobs")
    page.wait_for_selector(NAMES_READ)
    assert named(page) == {} and unseen(page) == []
    go(page, link(market, market.jobs["good"]))
    page.click("text=Read its job file")
    page.wait_for_selector("#job-document")
    # Its result is read as well: without the token the server would refuse what is left of it.
    page.wait_for_selector("text=Its digest, its unit and every block of it are what the chain says")
    go(page, "#/jobs")
    # At the reader's word all of them are read, and what each cost.
    page.click(f"text=Read names and costs of {len(market.jobs)} jobs")
    becomes(page, named, {job: name for name, job in market.jobs.items()}, "the names of all")
    receipts = {job: market.run("job", "receipt", job) for job in market.jobs.values()}
    wanted = {
        job: str(int(one["escrow"]) - int(one["still_locked"]) - int(one["refunded"])) for job, one in receipts.items()
    }
    becomes(page, costs, wanted, "what each cost")
    assert page.locator("button:has-text('Read names')").count() == 0
    go(page, "#/about")
    page.click("text=Forget what this page has stored")
    page.wait_for_selector("text=Forgotten.")
    go(page, "#/jobs")
    becomes(page, jobs, listed(market), "the list of jobs")
    page.wait_for_selector(NAMES_READ)
    assert named(page) == {}


def test_jobs__the_name_of_one_that_is_open__stands_on_the_page_of_a_node_that_could_take_it(
    market: WebMarket, through: str, seen: Watched
) -> None:
    job = market.jobs["open"]
    page = open_page(seen, through, link(market, job))
    page.wait_for_selector("text=Read its job file")
    assert heading(page) == "Job"
    page.click("text=Read its job file")
    becomes(page, heading, "Job “open”", "its name, once it is read")
    go(page, "#/node/1")
    becomes(page, lambda page: openings(page).get(job, "").endswith(" open"), True, "its name beside its id")


def heading(page: Page) -> str:
    return page.inner_text("h1")


def openings(page: Page) -> dict[str, str]:
    """Return what the page of a node shows of jobs that it could take, by their ids."""
    return {row["job"].whole or "": row["job"].text for row in table(page, "gate").rows}


def test_jobs__their_states__are_explained(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct)
    page.click("text=What the states mean")
    said = {name: said["text"] for name, said in terms(page).items()}
    for state in JOB_LABELS:
        assert any(name.partition(" ")[2] == state and text for name, text in said.items()), state


def test_jobs__saved_as_csv__holds_the_rows(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct)
    becomes(page, jobs, listed(market), "the list of jobs")
    with page.expect_download() as saved:
        page.click("text=Save as CSV")
    with Path(saved.value.path()).open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))

    shown = listed(market)
    assert [row["job"] for row in found] == list(shown)
    for row, told in zip(found, market.rows(), strict=True):
        assert (row["state"], row["verdict"]) == (told["state"], told["verdict"])
        assert f"{row['ended']}/{row['units']}" == shown[row["job"]][1]
        assert (int(row["block"]), int(row["deadline"])) == (told["block"], told["deadline"])
        assert row["submitter"] == told["submitter"]


def test_jobs__one_that_is_posted_meanwhile__appears_and_changes_without_a_reload(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct)
    becomes(page, jobs, listed(market), "the list of jobs")
    page.evaluate("() => { window.marked = true; }")
    job = market.post("meanwhile", rate=NOBODY)
    becomes(page, lambda page: jobs(page).get(job), ("waiting for a machine", "0/1"), "the new job is listed")
    assert next(iter(jobs(page))) == job
    assert market.place.hearth("job", "cancel", job).code == 0
    becomes(page, lambda page: jobs(page).get(job), ("cancelled", "1/1"), "it is cancelled")
    assert page.evaluate("() => window.marked") is True


# ---- a job ----


def sentence(event: dict[str, Any], of_array: bool) -> str:
    """Return how the page tells an event: of an array with the unit that it is of."""
    where = {None: "", "all": "all units: "}.get(event.get("unit"), f"unit {event.get('unit')}: ")
    return f"{where if of_array else ''}{event['text']}"


def told_by(market: WebMarket, job: str) -> dict[str, Any]:
    """Return what the commands say of a job, as its page shows it."""
    shown, receipt = market.run("job", "show", job), market.run("job", "receipt", job)
    lines = market.place.hearth("job", "events", job, "--json").out.splitlines()
    return {
        "state": shown["state_text"],
        "money": {name: receipt[key] for name, key in MONEY.items()},
        "checked by": shown["verify"],
        "submitter": shown["submitter"],
        "timeline": [sentence(json.loads(line), shown["units"] > 1) for line in lines],
        "units": [
            [
                str(row["unit"]),
                row["state_text"],
                row["outcome_text"],
                str(row["node"] or ""),
                str(row["attempts"]),
                row["next"],
            ]
            for row in shown["leases"]
        ],
        "waits for": ", ".join(f"{row['job']} ({row['condition']})" for row in shown["parents"]) or "nothing",
    }


def shown_of(page: Page) -> dict[str, Any]:
    """Return the same of a job's page."""
    said = terms(page)
    head = page.locator("main .state").first
    return {
        "state": head.inner_text().partition(" ")[2] if head.count() else "",
        "money": {name: said[name]["exact"] for name in MONEY if name in said},
        "checked by": said.get("Checked by", {}).get("text"),
        "submitter": said.get("Submitter", {}).get("text"),
        "timeline": timeline(page),
        "units": [
            [row["unit"].text, row["state"].text.partition(" ")[2]]
            + [row[name].text for name in ("outcome", "node", "attempts", "next")]
            for row in table(page, "unit").rows
        ],
        "waits for": said.get("waits for", {}).get("text"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_job__its_page__says_what_the_commands_say(market: WebMarket, direct: str, seen: Watched, name: str) -> None:
    job = market.jobs[name]
    page = open_page(seen, direct, link(market, job))
    becomes(page, shown_of, told_by(market, job), f"all of job {name}")

    assert page.title() == f"Job {job[:14]}… - Hearth"
    shoot(page, f"job-{name}")


def test_job__its_file__is_what_the_command_reads(market: WebMarket, direct: str, seen: Watched) -> None:
    job = market.jobs["good"]
    page = open_page(seen, direct, link(market, job))
    page.click("text=Read its job file")
    page.wait_for_selector("#job-document")

    wanted = market.run("job", "spec", job)
    assert json.loads(page.inner_text("#job-document")) == wanted
    assert page.inner_text("#job-name") == wanted["name"]


def test_job__without_its_block_in_the_link__is_found_too(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct, f"#/job/{market.jobs['good'].upper().replace('0X', '0x')}")
    becomes(page, lambda page: len(timeline(page)), 4, "its events")
    go(page, f"#/job/{market.jobs['good']}@1")  # a reorg may have moved it since the link was made
    page.reload()
    becomes(page, lambda page: len(timeline(page)), 4, "its events")


@pytest.mark.parametrize(
    ("route", "code"), [(f"#/job/0x{'ab' * 32}@7", "NOT_FOUND"), ("#/job/0x12", "BAD_ID"), ("#/job/\u202e", "BAD_ID")]
)
def test_job__that_is_none__is_said_to_be_none(direct: str, seen: Watched, route: str, code: str) -> None:
    page = open_page(seen, direct, route)
    page.wait_for_selector(f".failure >> text={code}")
    assert unseen(page) == [] and "\u202e" not in page.title()


def test_job__units_of_an_array__are_as_many_as_the_command_shows(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct, link(market, market.jobs["array"]))
    becomes(page, lambda page: len(table(page, "unit").rows), UNITS, "its units")
    assert terms(page)["units"]["text"] == f"{UNITS} units in {UNITS} leases"


def picked(page: Page) -> tuple[str, str]:
    """Return the unit that the map shows, and the one whose result is shown."""
    shown = page.locator("#picked tbody td").first
    return (shown.inner_text() if shown.count() else "", page.locator("main select").last.input_value())


def test_job__the_map_of_an_array__counts_its_units_and_shows_the_picked_one(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct, link(market, market.jobs["array"]))
    becomes(page, lambda page: len(table(page, "unit").rows), UNITS, "its units")

    def stands(page: Page) -> dict[str, str]:
        return {row["state"].text: row["units"].text for row in table(page, "means").rows}

    counts = next(row["counts_text"] for row in market.rows() if row["job"] == market.jobs["array"])
    counted = dict(one.split(" ", 1)[::-1] for one in counts.split(", "))
    becomes(page, stands, counted, "how they stand")
    assert page.locator("svg.units path").count() == len(stands(page))
    tab_to(page, "#pick-unit")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    becomes(page, picked, ("3", "3"), "unit 3 and its result")
    box = page.locator("svg.units").bounding_box()
    assert box is not None
    page.locator("svg.units").click(position={"x": box["width"] * 1.5 / 16, "y": box["height"] / 2})
    becomes(page, picked, ("1", "1"), "unit 1 and its result")
    page.fill("#pick-unit", str(UNITS))
    page.keyboard.press("Enter")
    page.wait_for_selector(f".failure >> text=0 to {UNITS - 1}")
    assert picked(page) == ("1", "1")

    go(page, link(market, market.jobs["rest"]))
    becomes(page, stands, {"waiting for a machine": "3"}, "units that nobody took")
    page.fill("#pick-unit", "2")
    page.keyboard.press("Enter")
    page.wait_for_selector("#picked >> text=Unit 2: waiting for a machine, nobody works on it")
    go(page, link(market, market.jobs["good"]))
    becomes(page, lambda page: len(table(page, "unit").rows), 1, "its unit")
    assert page.locator("svg.units").count() == 0 and terms(page)["units"]["text"] == "1 unit in 1 lease"
    block = next(row["block"] for row in market.rows() if row["job"] == market.jobs["good"])
    again = page.get_attribute("text=Rerun with changes", "href")
    assert again == f"#/submit/{market.jobs['good']}%40{block}"


def test_job__a_small_output__is_a_table_and_a_line(
    market: WebMarket, direct: str, seen: Watched, tmp_path: Path
) -> None:
    job = market.jobs["array"]
    page = open_page(seen, direct, link(market, job))
    page.click("text=Show counts.tsv as a table")
    page.wait_for_selector("#sheet tbody tr")
    assert market.place.hearth("job", "get", job, "-o", str(tmp_path / "out")).code == 0
    wanted = [
        line.split("\t") for line in next(iter(sorted((tmp_path / "out").rglob("counts.tsv")))).read_text().splitlines()
    ]
    rows = [[row[column].text for column in ("1", "2")] for row in table(page, "row").rows]
    assert rows == wanted[:200] and f"{len(wanted)} rows of 2 columns" in page.inner_text("#sheet")
    page.select_option("#sheet select", index=1)
    page.wait_for_selector("#sheet [role=note] >> text=not all of this column are numbers")
    page.select_option("#sheet select", index=2)
    page.click("text=Column 2 as a table")
    values = [row["value"].text for row in table(page, "value").rows]
    assert values == [count for _, count in wanted][:200]
    steps = str(page.get_attribute("#sheet .chart path", "d"))
    assert "V0H" in steps and "V1000" in steps and steps.count("V") < 1_000 < len(wanted)  # of many its peaks
    shoot(page, "job-table")


def test_job__a_hostile_output__is_a_table_of_text_or_a_sentence(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct, link(market, market.jobs["sheets"]))
    page.click("text=Show broken.csv as a table")
    page.wait_for_selector("#sheet .failure >> text=NO_TABLE")
    with page.expect_download() as saved:
        page.click("text=Save broken.csv")
    assert Path(saved.value.path()).read_text() == SHEETS["broken.csv"]
    page.click("text=Show hostile.json as a table")
    page.wait_for_selector("#sheet tbody tr")
    first, second = table(page, "row").rows
    assert list(first)[1:3] == ["__proto__", "<img src=x>"] and "U+202E" in list(first)[3]
    assert "U+001B[31mred U+202Egnp.exe" in first["__proto__"].text and "<img" in first["__proto__"].text
    assert (second["<img src=x>"].text, list(second.values())[3].text) == ("3", "[1 value]")
    assert unseen(page) == [] and page.query_selector("main img") is None


def test_job__hostile_strings__reach_no_reader(market: WebMarket, through: str, seen: Watched) -> None:
    page = open_page(seen, through, link(market, market.jobs["hostile"]))
    becomes(page, lambda page: len(timeline(page)), 4, "its events")
    assert "the program trapped" in timeline(page)[-1]
    for stream in ("stdout", "stderr"):
        said = page.inner_text(f"section[aria-label={stream}] pre")
        assert said == "red U+202Egnp.exeU+202C U+200BU+0000 <img src=x onerror=alert(1)>"
    assert unseen(page) == [] and page.query_selector("main img") is None

    with market.rpc.changing(refusing(lambda ask: ask.method == "eth_getLogs", HOSTILE)):
        go(page, "#/jobs")
        page.wait_for_selector(".failure >> text=RPC_ERROR")
        assert r"\x1b[31mred \u202egnp.exe" in failure(page) and "<img src=x" in failure(page)
        assert unseen(page) == [] and page.query_selector("main img") is None
    becomes(page, jobs, listed(market), "the list of jobs")


# ---- the market ----


def test_workers__their_table__is_that_of_the_command(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct, "#/workers")

    def shown(page: Page) -> list[dict[str, str | None]]:
        return [
            {
                "node": row["node"].text,
                "status": row["status"].text,
                "asks": row["asks"].exact,
                "busy": row["busy"].text,
                "zone": row["zone"].text,
                "stake": row["stake"].exact,
                "reputation": row["reputation"].text,
                "owner": row["owner"].text,
            }
            for row in table(page, "reputation").rows
        ]

    def told() -> list[dict[str, str]]:
        return [
            {
                "node": str(row["node"]),
                "status": row["status_text"],
                "asks": row["ask"],
                "busy": f"{row['busy']}/{row['slots']}",
                "zone": row["zone"],
                "stake": row["stake"],
                "reputation": f"{row['reputation_bps'] / 100:.0f} %",
                "owner": row["owner"],
            }
            for row in market.run("net", "workers")["workers"]
        ]

    follows(page, shown, told, "the table of workers")
    assert len(told()) == 1


def offers(page: Page) -> list[dict[str, str | None]]:
    """Return the table of offers as `hearth offers` names its columns."""
    return [
        {"node": row["node"].text, "ask": row["ask"].exact, "zone": row["zone"].text, "free": row["free"].text}
        | {name: row[name].text for name in ("GPU", "cores", "memory", "reputation", "runtimes")}
        for row in table(page, "runtimes").rows
    ]


def offered(market: WebMarket, *options: str) -> list[dict[str, str | None]]:
    """Return the same as the command has it."""
    return [
        {
            "node": str(row["node"]),
            "ask": row["ask"],
            "zone": row["zone"],
            "free": f"{row['free']}/{row['slots']}" + (" (probation)" if row["probation"] else ""),
            "GPU": "-",
            "cores": str(row["cores"]),
            "memory": f"{row['ram_gib']} GiB",
            "reputation": f"{row['reputation_bps'] / 100:.0f} %",
            "runtimes": "+".join(row["runtimes"]),
        }
        for row in market.run("offers", *options)["offers"]
    ]


def test_market__its_offers__are_those_of_the_command_by_the_same_filters(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct, "#/market")
    follows(page, offers, lambda: offered(market), "the offers")
    assert len(offered(market)) == 1
    zone = offered(market)[0]["zone"]
    page.select_option("main select >> nth=0", "rtx-4090")
    page.wait_for_selector("text=No live node fits")
    assert offered(market, "--gpu", "rtx-4090") == [] and "gpu=rtx-4090" in page.url
    page.select_option("main select >> nth=0", "")
    follows(page, offers, lambda: offered(market), "the offers with any GPU or none")
    page.fill("input[placeholder='2/h']", "0.5/h")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No live node fits")
    assert offered(market, "--max-price", "0.5/h") == []
    page.fill("input[placeholder='2/h']", "0.60/h")
    page.keyboard.press("Enter")
    follows(page, offers, lambda: offered(market, "--max-price", "0.60/h"), "the offers at most at that ask")
    # What stands in a box is asked for with a choice beside it.
    page.fill("input[placeholder='2/h']", "0.5/h")
    page.select_option("main select >> nth=1", zone)
    page.wait_for_selector("text=No live node fits")
    assert "most=0.5" in page.url and f"zone={zone}" in page.url
    page.fill("input[placeholder='2/h']", "2\u202e/x")
    page.keyboard.press("Enter")
    page.wait_for_selector(".failure >> text=BAD_RATE")
    assert unseen(page) == []

    go(page, "#/market")
    tile = page.locator(".tiles button", has_text=str(zone)).first
    tile.click()
    becomes(page, lambda _: tile.get_attribute("aria-pressed"), "true", "the zone is picked")
    follows(page, offers, lambda: offered(market), "the offers of that zone")
    assert f"zone={zone}" in page.url
    assert tile.inner_text().splitlines()[1] == "1 live, 0 silent" and "Germany" in page.inner_text("main")
    page.click(".tiles button >> nth=15")
    page.wait_for_selector("text=No live node fits")
    go(page, "#/market?zone=%3Cimg%3E&gpu=%E2%80%AE")
    page.wait_for_selector(".failure >> text=UNKNOWN_TIER")
    assert page.query_selector("main img") is None and unseen(page) == []


def test_market__its_past__is_what_the_events_of_the_market_come_to(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct, "#/market")
    page.wait_for_selector("text=nothing here is a sample")
    place = market.place
    reads, head = place.market, place.chain.head()
    logs = place.chain.logs([place.net.network.jobs], from_block=0, to_block=head.number)
    events = list(reads.events_in(logs))
    started = [words.unpack_unit(event.word) for event in events if isinstance(event, Started)]
    ended = [event for event in events if isinstance(event, Submitted | Finished)]
    ok = sum(words.unpack_unit(event.word).outcome is Outcome.OK for event in ended)
    becomes(page, lambda page: table(page, "median wait").rows[0]["starts"].text, str(len(started)), "each start")
    (row,) = table(page, "median wait").rows
    assert (row["ok"].text, row["program failed"].text) == (str(ok), str(len(ended) - ok))
    assert row["jobs that ask for"].text == "no GPU" and 0 < ok < len(ended)

    becomes(page, lambda page: len(offers(page)), 1, "the offer, and with it the last of the charts")
    for button in page.get_by_role("button", name="as a table").all():
        button.click()
    (day,) = table(page, "median").rows
    rates = sorted(unit.rate for unit in started)
    assert int(day["median"].exact or 0) == rates[(len(rates) - 1) // 2]
    seconds = sum(words.unpack_unit(event.word).mark - words.unpack_unit(event.word).started for event in ended)
    busy = table(page, "busy slot seconds").rows
    assert sum(int(row["busy slot seconds"].text) for row in busy) == seconds
    status = market.run("net", "status")
    assert (
        page.locator("figcaption", has_text="Busy slots")
        .inner_text()
        .startswith(f"Busy slots: {status['busy']} of {status['slots']} now")
    )
    assert page.query_selector("svg text, svg foreignObject") is None and failure(page) == ""


def test_market__logs_that_are_left_out__are_said_to_be_missing(market: WebMarket, through: str, seen: Watched) -> None:
    ends = {"0x" + topic_of(one).hex() for one in (Submitted, Finished)}

    def without(_: Ask, logs: Any) -> Any:
        return [log for log in logs if log["topics"][0] not in ends]

    with market.rpc.changing(of("eth_getLogs", without)):
        page = open_page(seen, through, "#/market")
        page.wait_for_selector(".failure >> text=RPC_LIES")
        assert "a log is missing before log" in failure(page)


def test_keepers__who_earned_what__is_what_escrow_credited_the_keeper(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct, "#/keepers")
    place = market.place
    keeper = place.session.key("keeper").address.lower()

    def earned(page: Page) -> dict[str, str | None]:
        return {row["account"].text: row["earned"].exact for row in table(page, "account").rows}

    receipts = [market.run("job", "receipt", row["job"]) for row in market.rows()]
    wanted = sum(int(one["keepers"]) for one in receipts)
    becomes(page, lambda page: sum(int(one or 0) for one in earned(page).values()), wanted, "all of the receipts")
    assert wanted > 0 and keeper in earned(page)


def parameters(page: Page) -> dict[str, str]:
    """Return every parameter that the page shows, in base units where it is an amount."""
    found = [one for one in tables(page) if one.rows and "parameter" in one.rows[0]]
    return {row["parameter"].text: row["value"].exact or row["value"].text for one in found for row in one.rows}


def test_network__its_numbers__are_those_of_the_commands(market: WebMarket, direct: str, seen: Watched) -> None:
    page = open_page(seen, direct, "#/network")

    def told() -> dict[str, Any]:
        status = market.run("net", "status")
        return {
            "Jobs posted": str(status["jobs"]),
            "Workers": status["workers_text"],
            "Slots": f"{status['busy']} of {status['slots']} busy",
            "Escrow holds": (status["escrow_balance"], status["escrow_text"]),
            "New posts": "paused" if status["posts_paused"] else "open",
        }

    def shown(page: Page) -> dict[str, Any]:
        said = terms(page)
        plain = {name: said[name]["text"] for name in ("Jobs posted", "Workers", "Slots", "New posts") if name in said}
        held = said.get("Escrow holds", {"exact": None, "text": None})
        return {**plain, "Escrow holds": (held["exact"], held["text"])}

    follows(page, shown, told, "the market's numbers")
    params = market.run("net", "params")
    wanted = {name.replace("_", " "): str(value) for name, value in (params["policy"] | params["nodes"]).items()}
    assert parameters(page) == wanted
    contracts = table(page, "contract").rows
    assert {row["contract"].text: row["address"].text for row in contracts} == params["contracts"]
    hashes = market.place.session.network.code_hashes
    assert {row["contract"].text: row["code"].text for row in contracts} == {
        name: "0x" + value.hex() for name, value in hashes.items()
    }
    (asked,) = table(page, "RPC").rows
    assert asked["RPC"].text == market.place.url and asked["failed"].text == "0"


def test_network__the_books_recomputed_here__are_those_of_the_command(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct, "#/network")
    page.click("text=Recompute the books here")
    page.wait_for_selector("text=Solvent at block")
    told = market.run("net", "verify")
    counts = ("jobs", "units", "settled", "failed", "reclaimed", "solvent")
    with page.expect_download() as saved:
        page.click("text=Save as JSON")
    found = json.loads(Path(saved.value.path()).read_text())

    assert {name: found[name] for name in counts} == {name: told[name] for name in counts}
    said = terms(page)
    assert said["Jobs"]["text"] == f"{told['jobs']}, of {told['units']} units"
    reclaimed = f"{told['failed']} units failed, {told['reclaimed']} leases were reclaimed"
    assert said["Settled"]["text"] == f"{told['settled']}; {reclaimed}"
    assert int(said["Escrow owes"]["exact"]) == int(said["Escrow holds"]["exact"]) > 0
    shoot(page, "network-books")


# ---- a provider that lies ----


def altered(job: str) -> Change:
    """Change the terms under which a job was posted, in every log of it."""

    def change(ask: Ask, logs: Any) -> Any:
        # The third of the nine words is the money.
        return [
            {**log, "data": log["data"][: 2 + 64 * 3 + 60] + "ffff" + log["data"][2 + 64 * 3 + 64 :]}
            if log["topics"][:2] == [POSTED, job]
            else log
            for log in logs
        ]

    return of("eth_getLogs", change)


def test_liar__terms_of_a_job_altered__are_named_and_no_job_is_shown_by_them(
    market: WebMarket, through: str, seen: Watched
) -> None:
    job = market.jobs["failing"]
    with market.rpc.changing(altered(job)):
        page = open_page(seen, through)
        page.wait_for_selector(".failure >> text=RPC_LIES")
        page.wait_for_selector(f"text=the RPC serves a job {job} whose terms have another id")
        assert job not in jobs(page)
        go(page, link(market, job))
        page.wait_for_selector(f".failure >> text=job {job} is on chain, and no log posts it")
        assert timeline(page) == [] and "locked" not in terms(page)
        go(page, link(market, market.jobs["good"]))
        becomes(page, lambda page: len(timeline(page)), 4, "a job that nobody altered")


OTHERS: dict[str, tuple[Change, str]] = {
    "another chain id": (of("eth_chainId", lambda ask, true: "0x1"), "WRONG_CHAIN"),
    "another genesis": (
        of(
            "eth_getBlockByNumber",
            lambda ask, true: {**true, "hash": "0x" + "ab" * 32} if ask.params[0] == "0x0" else true,
        ),
        "WRONG_CHAIN",
    ),
    "other code": (of("eth_getCode", lambda ask, true: true[:-2] + "00"), "WRONG_CONTRACTS"),
    "no code": (of("eth_getCode", lambda ask, true: "0x"), "WRONG_CONTRACTS"),
    "another answer of a contract": (of("eth_call", lambda ask, true: "0x" + "00" * 32), "WRONG_CONTRACTS"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_liar__another_market_than_the_network_file_names__is_refused(
    market: WebMarket, through: str, seen: Watched, name: str
) -> None:
    change, code = OTHERS[name]
    with market.rpc.changing(change):
        page = open_page(seen, through)
        page.wait_for_selector(f".failure >> text={code}")
        assert jobs(page) == {}
    page.click("text=Try again")
    becomes(page, jobs, listed(market), "the list of jobs")
    assert failure(page) == ""


def another_chain(ask: Ask, reply: Reply) -> Reply:
    """Answer as another chain does."""
    if ask.method == "eth_chainId":
        return {**reply, "result": "0x1"}
    if ask.method == "eth_getBlockByNumber" and reply.get("result"):
        return {**reply, "result": {**reply["result"], "hash": "0x" + reply["result"]["hash"][:1:-1]}}
    return reply


def figures(page: Page) -> list[str]:
    """Return the numbers of a market that the page shows: rows of its tables, and what is told of it."""
    said = terms(page)
    plain = [said[name]["text"] for name in ("Jobs posted", "Workers", "Escrow holds") if name in said]
    return (
        [text for text in plain if text != "…"]
        + list(jobs(page))
        + [row["stake"].text for row in table(page, "stake").rows]
    )


@pytest.mark.parametrize("route", ["#/jobs", "#/workers", "#/network"])
def test_liar__a_chain_that_another_takes_the_place_of__is_refused_and_nothing_of_it_is_shown(
    market: WebMarket, through: str, seen: Watched, route: str
) -> None:
    page = open_page(seen, through, route)
    wait(lambda: figures(page) != [], "its figures")
    with market.rpc.changing(another_chain):
        page.wait_for_selector(".failure >> text=WRONG_CHAIN")
        assert figures(page) == [] and page.query_selector(".stale") is None
    # What was shown before is no more shown while the market, which is back, is read.
    with market.rpc.holding():
        page.click("text=Try again")
        page.wait_for_selector(".failure", state="detached")
        assert figures(page) == []
    wait(lambda: figures(page) != [], "its figures, read anew")


# ---- a provider that fails ----


def age(page: Page) -> int:
    """Return how many seconds ago the page says that it was synced."""
    return int(page.inner_text(".synced").split(", ")[1].split()[0])


def test_provider__gone_while_the_page_is_open__leaves_the_last_state_with_its_age(
    market: WebMarket, through: str, seen: Watched
) -> None:
    page = open_page(seen, through)
    before = listed(market)
    becomes(page, jobs, before, "the list of jobs")
    with market.rpc.answering(hang_up):
        page.wait_for_selector(".failure >> text=RPC_UNAVAILABLE")
        assert "it cannot be reached" in failure(page)
        wait(lambda: age(page) >= 3, "what is shown grows old")
        assert jobs(page) == before
        job = market.post("while-gone", rate=NOBODY)
        go(page, "#/network")
        go(page, "#/jobs")
        page.wait_for_selector(".failure >> text=RPC_UNAVAILABLE")
        shoot(page, "jobs-provider-gone")
    becomes(page, jobs, listed(market), "the list, as soon as it is back")
    assert job in jobs(page) and failure(page) == ""
    wait(lambda: age(page) <= 2, "it is synced again")
    seen.excuse("Failed to load resource")


_KEPT = """() => new Promise((told) => {
  const opening = indexedDB.open("hearth");
  opening.onsuccess = () => {
    const asked = opening.result.transaction("heads").objectStore("heads").getAll();
    asked.onsuccess = () => { opening.result.close(); told(asked.result.map((head) => head.kind)); };
  };
})"""
"""What the page has kept, by its kinds."""


def test_provider__gone_when_the_page_is_loaded__leaves_what_was_shown_last_and_is_followed_once_it_is_back(
    market: WebMarket, through: str, seen: Watched, axe: str
) -> None:
    job, other = market.jobs["good"], market.jobs["array"]
    page = open_page(seen, through, link(market, job))
    becomes(page, lambda page: len(timeline(page)), 4, "its events")
    events = timeline(page)
    go(page, "#/jobs")
    before = listed(market)
    becomes(page, jobs, before, "the list of jobs")
    wait(lambda: {"last/jobs", f"last/job/{job}"} <= set(page.evaluate(_KEPT)), "it is kept")
    with market.rpc.answering(hang_up):
        page.reload()
        page.wait_for_selector(".failure >> text=RPC_UNAVAILABLE")
        becomes(page, jobs, before, "the list as it was")
        assert page.query_selector(".failure a[href='#/network']")
        note = page.inner_text(".stale")
        assert "Not checked against the chain now" in note and "Nothing can be signed" in note and " ago." in note
        assert page.query_selector("text=Save as CSV") is None
        page.evaluate(axe)
        page.set_viewport_size({"width": 320, "height": 800})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
        assert web_axe.grave(page) == []
        shoot(page, "jobs-as-they-were")
        # A job whose page was open, with its events; another as the list had it. Nothing of it can be signed.
        go(page, link(market, job))
        becomes(page, timeline, events, "its events")
        go(page, link(market, other))
        becomes(page, lambda page: len(table(page, "outcome").rows), UNITS, "its units")
        assert timeline(page) == [] and page.query_selector(".stale") and not page.query_selector("#save-acts")
        # Names of addresses are the reader's own: they need nobody.
        go(page, "#/wallet")
        page.fill("#address-name", "a friend")
        page.fill("#address-first", FRIEND)
        page.fill("#address-second", FRIEND)
        page.click("text=Name it")
        page.wait_for_selector("td:has-text('a friend')")
        new = market.post("while-gone-and-loaded", rate=NOBODY)
        go(page, "#/jobs")
        becomes(page, jobs, before, "the list as it was")
    becomes(page, jobs, listed(market), "the list, by itself, as soon as an RPC answers")
    assert new in jobs(page) and failure(page) == "" and page.query_selector(".stale") is None
    seen.excuse("Failed to load resource")


def test_provider__gone_and_back_as_another_chain__leaves_nothing_of_what_was_shown_last(
    market: WebMarket, through: str, seen: Watched
) -> None:
    job = market.jobs["good"]
    page = open_page(seen, through, link(market, job))
    becomes(page, lambda page: len(timeline(page)), 4, "its events")
    go(page, "#/jobs")
    becomes(page, jobs, listed(market), "the list of jobs")
    wait(lambda: {"last/jobs", f"last/job/{job}"} <= set(page.evaluate(_KEPT)), "it is kept")
    for route in ("#/jobs", link(market, job)):
        go(page, route)
        with market.rpc.changing(another_chain):
            with market.rpc.answering(hang_up):
                page.reload()
                page.wait_for_selector(".stale")
            # It is asked again by itself: another chain answers.
            page.wait_for_selector(".failure >> text=WRONG_CHAIN")
            assert jobs(page) == {} and timeline(page) == [] and page.query_selector(".stale") is None
    seen.excuse("Failed to load resource")


def test_provider__that_fails_for_the_moment_of_a_reading__is_asked_again(
    market: WebMarket, through: str, seen: Watched
) -> None:
    failed = []

    def once(ask: Ask) -> bool:
        failing = ask.method == "eth_call" and not failed and isinstance(ask.params[1], dict)
        failed.extend([ask] if failing else [])
        return failing

    with market.rpc.changing(refusing(once, "header not found")):
        page = open_page(seen, through)
        becomes(page, jobs, listed(market), "the list of jobs")
    assert failed


def test_provider__asked_too_often__is_left_alone_as_long_as_it_says(
    market: WebMarket, through: str, seen: Watched
) -> None:
    page = open_page(seen, through)
    before = listed(market)
    becomes(page, jobs, before, "the list of jobs")
    refused = len(market.rpc.asked)
    with market.rpc.answering(lambda handler: raw(handler, b"slow down", 429, Retry_After="4")):
        page.wait_for_selector(".failure >> text=it is asked too often")
        page.wait_for_selector(".failure >> text=and not to be asked for")
        wait(lambda: age(page) >= 3, "what is shown grows old")
        asked = len(market.rpc.asked) - refused
        assert jobs(page) == before
    # One was answered as ever before the refusals began, at most.
    assert asked <= 3
    becomes(page, failure, "", "it is asked again, and answers")
    wait(lambda: age(page) <= 2, "it is synced again")
    seen.excuse("429")


def wide(ask: Ask) -> int:
    """Return how many blocks of logs are asked for, 0 for anything else."""
    if ask.method != "eth_getLogs" or ask.params[0]["toBlock"] == "latest":
        return 0
    return int(ask.params[0]["toBlock"], 16) - int(ask.params[0]["fromBlock"], 16) + 1


def test_provider__of_five_blocks_at_once__gives_every_job_and_is_asked_around_posts_alone(
    market: WebMarket, through: str, seen: Watched
) -> None:
    begun = len(market.rpc.asked)
    with market.rpc.changing(refusing(lambda ask: wide(ask) > 5, "eth_getLogs is limited to a 5 range")):
        page = open_page(seen, through)
        becomes(page, jobs, listed(market), "the list of jobs")
        asked = [ask for asks in market.rpc.asked[begun:] for ask in asks if wide(ask)]
    refused, served = [ask for ask in asked if wide(ask) > 5], [ask for ask in asked if wide(ask) <= 5]
    posts = [row["block"] for row in market.rows()]
    assert served and len(refused) <= 14  # from 10,000 down to 5, once, and wider again now and then
    for ask in served:
        bounds = range(int(ask.params[0]["fromBlock"], 16), int(ask.params[0]["toBlock"], 16) + 1)
        assert any(block in bounds for block in posts), bounds
    assert len(served) <= len(set(posts))


def test_provider__whose_answers_are_too_long__is_cut_off_and_asked_for_less(
    market: WebMarket, through: str, seen: Watched
) -> None:
    page = open_page(seen, through)
    before = listed(market)
    becomes(page, jobs, before, "the list of jobs")
    with market.rpc.answering(lambda handler: raw(handler, b'"' + b" " * (20 * MIB) + b'"')):
        page.wait_for_selector(".failure >> text=an answer of more than 16777216 bytes")
        assert jobs(page) == before

    def too_long(ask: Ask, reply: Reply) -> Reply:
        return {**reply, "padding": " " * (20 * MIB)} if wide(ask) > 40 else reply

    with market.rpc.changing(too_long):
        page.reload()
        becomes(page, jobs, before, "all jobs, by shorter ranges")
    seen.excuse("ERR_")


def test_provider__that_answers_late__is_waited_for(market: WebMarket, through: str, seen: Watched) -> None:
    with market.rpc.holding():
        page = open_page(seen, through)
        page.wait_for_selector("text=looking at the chain")
        assert page.inner_text("main").count("…") >= 1 and table(page, "at most") == Table("", [])
    becomes(page, jobs, listed(market), "the list of jobs")
    with market.rpc.holding():
        job = market.post("while-late", rate=NOBODY)
        wait(lambda: age(page) >= 2, "what is shown grows old")
        assert job not in jobs(page) and failure(page) == ""
    becomes(page, jobs, listed(market), "the new job too")


def test_provider__that_never_answers__is_given_up_with_a_sentence(
    market: WebMarket, through: str, seen: Watched
) -> None:
    seen.page.clock.install()
    begun = len(market.rpc.asked)
    with market.rpc.holding():
        page = open_page(seen, through)
        page.wait_for_selector("text=looking at the chain")
        wait(lambda: len(market.rpc.asked) > begun, "it asks")
        asked = len(market.rpc.asked)
        page.clock.run_for(21_000)
        page.wait_for_selector(".failure >> text=no answer in 20000 ms")
        assert len(market.rpc.asked) == asked
    page.click("text=Try again")
    becomes(page, jobs, listed(market), "the list of jobs")


# ---- requests ----


def test_requests__the_first_list__takes_six(market: WebMarket, through: str, seen: Watched) -> None:
    begun = len(market.rpc.asked)
    page = open_page(seen, through)
    page.wait_for_selector("main tbody tr")
    # Its rows come before their times. The polls that follow are no part of it.
    wait(lambda: any("eth_getBlockByHash" in methods(asks) for asks in market.rpc.asked[begun:]), "their times")
    check, *rest = [methods(asks) for asks in market.rpc.asked[begun:] if not is_poll(asks)]
    assert check[:2] == ["eth_chainId", "eth_getBlockByNumber"] and check.count("eth_getCode") == 7
    # The market as a whole, the posts (with the block that they go up to), how the jobs stand, the units of arrays, and
    # when the listed ones were posted.
    *rest, times = rest
    assert rest == [["eth_call"], ["eth_getLogs"], ["eth_call"], ["eth_call"]]
    assert set(times) == {"eth_getBlockByHash"}


def test_requests__a_job_by_its_link__reads_its_own_blocks_alone(
    market: WebMarket, through: str, seen: Watched
) -> None:
    job, begun = market.jobs["good"], len(market.rpc.asked)
    page = open_page(seen, through, link(market, job))
    becomes(page, lambda page: terms(page).get("refunded", {}).get("exact") is not None, True, "all of it")
    asked = [asks for asks in market.rpc.asked[begun:] if not is_poll(asks)]
    _, found, *rest = asked
    # The post is in the one block that the link names; then how it stands and its events, and when these were.
    assert [wide(ask) for ask in found if ask.method == "eth_getLogs"] == [1] and methods(found) == ["eth_getLogs"]
    assert sorted(methods(rest[0]) + methods(rest[1])) == ["eth_call", "eth_getLogs"]
    assert {ask.method for ask in rest[2]} == {"eth_getBlockByHash", "eth_getTransactionReceipt"} and len(rest) == 3


def methods(asks: tuple[Ask, ...]) -> list[str]:
    """Return the methods of a request, but for the block by whose hash the page keeps the logs that it asks for."""
    found = [ask.method for ask in asks]
    return ["eth_getLogs"] if found == ["eth_getLogs", "eth_getBlockByNumber"] else found


def is_poll(asks: tuple[Ask, ...]) -> bool:
    """Say whether a request is a look at what came since."""
    return [ask.method for ask in asks] == ["eth_getBlockByNumber", "eth_getBlockByNumber", "eth_getLogs"]


def test_requests__idle__are_one_for_each_look_and_none_while_hidden(
    market: WebMarket, through: str, seen: Watched
) -> None:
    chain = market.place.chain
    page = open_page(seen, through)
    becomes(page, jobs, listed(market), "the list of jobs")

    def asked_meanwhile(blocks: int) -> tuple[list[tuple[Ask, ...]], float]:
        """Return what is asked while so many blocks come in which the market does not change, and in which time."""
        contracts = list(market.place.session.network.contracts.values())
        for _ in range(5):
            began, begun, head = time.monotonic(), len(market.rpc.asked), chain.head().number
            wait(lambda head=head: chain.head().number >= head + blocks, "blocks come")  # type: ignore[misc]
            page.title()  # the browser's events up to here
            asked, seconds = market.rpc.asked[begun:], time.monotonic() - began
            if not chain.logs(contracts, from_block=head - 1, to_block=chain.head().number):
                return asked, seconds
        raise AssertionError("the market never rests")

    def one_for_each_look() -> bool:
        asked, seconds = asked_meanwhile(3)
        return bool(asked) and all(map(is_poll, asked)) and len(asked) <= seconds + 1

    # What the list read beside may still come, on a busy machine; it ends.
    wait(one_for_each_look, "one request for each look", 60)
    page.evaluate(HIDE, True)
    wait(lambda: asked_meanwhile(2)[0] == [], "none while it is hidden", 60)

    # However often it is hidden and shown, there is one who looks.
    for hidden in (False, True) * 4:
        page.evaluate(HIDE, hidden)
    page.evaluate(HIDE, False)
    wait(one_for_each_look, "one request for each look", 60)


# ---- keyboard, looks ----


def focused(page: Page) -> dict[str, Any]:
    """Return what has the focus, and whether that is seen."""
    found: dict[str, Any] = page.evaluate("""() => {
      const one = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      return { id: one.id, text: one.innerText, title: one.title, href: one.getAttribute("href"),
               visible: one.matches(":focus-visible") && outlineStyle === "solid" && parseFloat(outlineWidth) >= 2 };
    }""")
    return found


def press_until(page: Page, key: str, wanted: str, most: int = 60) -> dict[str, Any]:
    """Press a key until the focus is on a link to `wanted`; on the way it is always seen."""
    for _ in range(most):
        page.keyboard.press(key)
        found = focused(page)
        assert found["visible"], found
        if (found["href"] or "").startswith(wanted):
            return found
    raise AssertionError(f"{key} never comes to {wanted}")


def test_keyboard__alone__goes_from_the_list_to_a_job_and_back(market: WebMarket, direct: str, seen: Watched) -> None:
    job = market.jobs["good"]
    page = open_page(seen, direct)
    becomes(page, jobs, listed(market), "the list of jobs")
    page.keyboard.press("Tab")
    assert focused(page)["text"] == "Skip to the content" and focused(page)["visible"]
    page.keyboard.press("Enter")
    assert focused(page)["id"] == "main"
    assert press_until(page, "Tab", f"#/job/{job}")["title"] == job
    page.keyboard.press("Enter")
    becomes(page, lambda page: len(timeline(page)), 4, "its events")
    # Whoever does not see the page change is where its new content begins.
    becomes(page, arrived, ("main", f"Job {job[:14]}… - Hearth"), "the focus and the title of its page")
    press_until(page, "Tab", "#/jobs?submitter=")
    page.go_back()  # Alt and the left arrow are the browser's own
    becomes(page, jobs, listed(market), "the list of jobs")
    becomes(page, arrived, ("main", "Jobs - Hearth"), "the focus and the title of the list")


def arrived(page: Page) -> tuple[str, str]:
    """Return what has the focus, and the page's title."""
    return focused(page)["id"], page.title()


def test_keyboard__focus__stays_while_the_page_follows_the_chain(market: WebMarket, direct: str, seen: Watched) -> None:
    job = market.jobs["failing"]
    page = open_page(seen, direct)
    becomes(page, jobs, listed(market), "the list of jobs")
    page.focus(f"a[href^='#/job/{job}']")
    new = market.post("beside", rate=NOBODY)
    becomes(page, lambda page: new in jobs(page), True, "the new job is listed")
    assert focused(page)["title"] == job


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core, which finds what keeps people out."""
    return web_axe.axe()


def ready(market: WebMarket, page: Page, name: str) -> None:
    """Go to a page and wait for its data."""
    routes = {"job": link(market, market.jobs["array"]), "node": "#/node/1"}
    go(page, routes.get(name, f"#/{name}"))
    if name == "job":
        becomes(page, lambda page: len(table(page, "unit").rows), UNITS, "its units")
        page.click("#legend summary")
        page.fill("#pick-unit", "0")
        page.keyboard.press("Enter")
        page.wait_for_selector("#picked tbody tr")
        page.click("text=Show counts.tsv as a table")
        page.select_option("#sheet select", index=2)
    elif name == "network":
        page.click("text=Recompute the books here")
        page.wait_for_selector("text=Solvent at block")
    elif name == "market":
        page.click("text=How far zones are apart")
        page.wait_for_selector("text=nothing here is a sample")
        becomes(page, lambda page: len(offers(page)), 1, "the offer, and with it the last of the charts")
        for button in page.get_by_role("button", name="as a table").all():
            button.click()
    elif name == "about":
        page.wait_for_selector("text=bafy")
    elif name == "gov":
        page.wait_for_selector("#seats")
    elif name == "provide":
        page.wait_for_selector("#stake")
    elif name == "node":
        page.wait_for_selector(".strip a")
    elif name == "submit":
        page.wait_for_selector("#job-form:enabled")
        for more in page.locator("#job-form summary").all():
            more.click()
    elif name not in ("submit", "sign", "check", "files", "wallet"):
        page.wait_for_selector("main tbody tr")


@pytest.mark.parametrize("name", (*MENU, "job", "node"))
def test_looks__both_themes_at_320_pixels_and_wide__keep_nobody_out(
    market: WebMarket, direct: str, seen: Watched, axe: str, name: str
) -> None:
    page = open_page(seen, direct)
    ready(market, page, name)
    page.evaluate(axe)
    for theme, width in (("light", 320), ("dark", 320), ("dark", 1280)):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, (theme, width)
        # Colours are the theme's at any width, and what is wide is so in any theme.
        if (theme, width) != ("dark", 320):
            assert web_axe.grave(page) == [], (theme, width)
        shoot(page, f"{name}-{theme}-{width}")


def test_looks__any_width__has_the_theme_beside_the_name_and_says_where_a_table_goes_on(
    market: WebMarket, direct: str, seen: Watched
) -> None:
    page = open_page(seen, direct)
    becomes(page, jobs, listed(market), "the list of jobs")
    for width, cues in ((1280, 0), (360, 1), (320, 1), (1280, 0)):
        page.set_viewport_size({"width": width, "height": 800})
        becomes(page, lambda page: page.locator(".cue").count(), cues, f"where the table goes on at {width}")
        name, theme = (page.locator(one).bounding_box() for one in (".brand", ".theme"))
        assert name and theme and abs(name["y"] - theme["y"]) < 16, width
        assert theme["x"] + theme["width"] <= width
    page.set_viewport_size({"width": 320, "height": 800})
    page.focus(".scroll.wide")
    page.keyboard.press("ArrowRight")
    becomes(page, lambda page: page.evaluate("() => document.querySelector('.scroll.wide').scrollLeft > 0"), True, "it")


def test_looks__what_failed__keeps_nobody_out_either(market: WebMarket, through: str, seen: Watched, axe: str) -> None:
    with market.rpc.changing(altered(market.jobs["failing"])):
        page = open_page(seen, through)
        page.wait_for_selector(".failure >> text=RPC_LIES")
        page.evaluate(axe)
        page.set_viewport_size({"width": 320, "height": 800})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
            assert web_axe.grave(page) == []
            shoot(page, f"jobs-liar-{theme}")


# ---- a chain that goes back: last, for it takes the newest beats with it ----


def post_alone(market: WebMarket, submitter: int) -> tuple[str, int]:
    """Post a job that nobody can take, from an account that does nothing else; return its id and its block."""
    place = market.place
    policies = place.market.policies()
    made = build.terms(
        submitter=devnet.account(submitter).address.lower(),
        salt=place.chain.head().number,
        needs=Needs(runtimes=1, cores=1, ram_gib=1, disk_gib=1),
        ceiling=policies.policy.min_price * 10**6,
        max_seconds=60,
        deadline=place.chain.head().timestamp + 3_600,
        keeper_fee=policies.policy.min_keeper_fee,
        policy=policies.word,
    )
    done = place.sender(submitter).send(place.market.calls.post(made), key=f"post/{made.salt}")
    return "0x" + place.market.job_id(made).hex(), done.block_number


# What an account has sent before a reorg is gone: each has its own.
@pytest.mark.parametrize(("replaced", "submitter"), [(True, 5), (False, 6)], ids=["replaced", "taken away"])
def test_reorg__while_the_page_is_open__list_and_job_follow(
    market: WebMarket, direct: str, seen: Watched, chromium: Browser, replaced: bool, submitter: int
) -> None:
    page = open_page(seen, direct)
    before = listed(market)
    becomes(page, jobs, before, "the list of jobs")
    with watched(chromium) as other:
        job, block = post_alone(market, submitter)
        open_page(other, direct, f"#/job/{job}@{block}")
        becomes(other.page, timeline, ["posted and funded"], "its page")
        becomes(page, lambda page: job in jobs(page), True, "it is listed")
        depth = market.place.chain.head().number - block + 2  # one may come meanwhile
        assert go_back(market.place.chain, depth, replaced=replaced)
        becomes(page, jobs, before, "it is gone from the list")
        other.page.wait_for_selector(".failure >> text=NOT_FOUND")
        assert timeline(other.page) == [] and "RPC_LIES" not in failure(other.page)
        assert failure(page) == ""
