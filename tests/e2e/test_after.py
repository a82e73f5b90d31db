"""Jobs that wait for other jobs, on a chain without a keeper: each is unlocked, and each result accepted, by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.client import Client
from hearth.market.abi import codec
from hearth.protocol.parents import unpack_parents
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Said, Town, town, wasm_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

COUNTS = EXAMPLES / "wordcount-array" / "wordcount.wasm"
FAILS = EXAMPLES / "failing" / "failing.wasm"


class After:
    """A market with one worker and no keeper."""

    def __init__(self, place: Town) -> None:
        self.place = place
        self.folder = place.home / "jobs"
        self.folder.mkdir()
        # Its results are the submitter's to accept.
        place.start_worker(place.worker_file(settle_after="1h"))

    def say(self, *arguments: str, code: int = 0) -> Said:
        told = self.place.hearth(*arguments)
        assert told.code == code, (arguments, told.out, told.err)
        return told

    def file(self, name: str, module: Path = COUNTS, more: str = "") -> Path:
        return wasm_file(self.folder / f"{name}.yaml", module, more=more)

    def post(self, name: str, *options: str, module: Path = COUNTS, more: str = "") -> str:
        return self.say("submit", str(self.file(name, module, more)), "--again", "-q", *options).out.strip()

    def show(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.say("job", "show", job, "--json").json
        return found

    def end(self, job: str) -> dict[str, Any]:
        """Wait for the result of a job of one unit, accept it, and return what the job is then."""
        wait(lambda: self.show(job)["state"] == "submitted", "the result is there", 120)
        self.say("job", "accept", job)
        return self.show(job)


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Iterator[After]:
    with town(tmp_path_factory.mktemp("after")) as place:
        yield After(place)


def test_child__parent_ends_well__waits_and_runs_then(after: After, tmp_path: Path) -> None:
    parent = after.post("parent")
    file = after.file("child", more=f'after: "{parent}"\nverify: {{keep: true}}\n')
    checked = after.say("check", str(file)).out
    assert f"waits for job {parent[:14]} to end well: " in checked and "and one more for whoever starts it" in checked
    assert "the chain itself keeps the digests of its results" in checked
    (planned,) = after.say("submit", str(file), "--dry-run", "--json").json["parents"]
    assert (planned["job"], planned["condition"], planned["as_asked"]) == (parent, "success", None)
    child = after.say("submit", str(file), "-q").out.strip()
    told = after.say("job", "show", child).out
    assert f"state waiting for other jobs: waits for {parent[:14]} (" in told and "results are kept" in told
    assert after.say("jobs", "--state", "blocked", "-q").out.split() == [child]
    error = after.say("job", "unlock", child, "--json", code=5).error
    assert error["code"] == "PARENT_RUNS" and parent[:14] in error["message"]
    # The same file finds the job, whatever its parent has become by then.
    assert after.end(parent)["verdict"] == "ok"
    assert after.say("submit", str(file), "-q").out.strip() == child
    dry = after.say("job", "unlock", child, "--dry-run", "--json").json
    assert dry["dry_run"] and after.show(child)["state"] == "blocked"
    done = after.say("job", "unlock", child, "--account", "keeper", "--json").json
    assert done["opens"] and done["transactions"][0]["action"] == "jobs.unlock"
    assert int(done["fee"]) == after.place.session.market.credit(after.place.session.key("keeper").address)
    ended = after.end(child)
    assert ended["parents"][0]["as_asked"] and ended["verdict"] == "ok" and ended["kept"]
    after.say("job", "get", child, "-o", str(tmp_path / "out"))
    assert (tmp_path / "out" / "counts.tsv").exists()
    receipt = after.say("job", "receipt", child, "--json").json
    assert int(receipt["keepers"]) >= int(done["fee"]) and receipt["still_locked"] == "0"
    sums = sum(int(receipt[name]) for name in ("workers", "market_fee", "keepers", "refunded"))
    assert sums == int(receipt["escrow"])
    events = after.say("job", "events", child).out
    assert "what it waited for has ended as asked: it waits for a machine" in events


def test_child__parent_fails__is_refunded_and_its_waiter_told(after: After) -> None:
    parent = after.post("bad", module=FAILS)
    child = after.post("hopeful", "--after", parent[:14])
    rescue = after.post("rescue", "--after", f"{parent}:failure")
    assert after.end(parent)["verdict"] == "failed"
    assert "anyone may end this one for a refund" in after.show(child)["waits"]
    assert not after.say("job", "unlock", child, "--json").json["opens"]
    waited = after.place.hearth("job", "wait", child, "--json")
    assert waited.code == 102 and f"{parent[:14]} (if: success) ended otherwise: failed" in waited.error["message"]
    facts = after.show(child)
    assert (facts["state"], facts["verdict"]) == ("cancelled", "refunded")
    receipt = after.say("job", "receipt", child, "--json").json
    assert receipt["keepers"] == facts["keeper_fee"] and receipt["workers"] == receipt["still_locked"] == "0"
    assert int(receipt["refunded"]) + int(receipt["keepers"]) == int(receipt["escrow"])
    assert after.say("job", "unlock", rescue, "--json").json["opens"] and after.end(rescue)["verdict"] == "ok"
    again = after.say("job", "rerun", child, "--json")
    assert "this one runs at once" in again.err
    assert after.end(again.json["job"])["verdict"] == "ok"


def test_array__that_waits__is_cancelled_or_unlocked_whole(after: After) -> None:
    parent = after.post("root", more="array: {units: 2}\n")
    more = f"array: {{units: 3}}\nafter: [{{job: '{parent}', if: always}}]\n"
    first, second = after.post("first", more=more), after.post("second", more=more)
    for array in (first, second):
        facts = after.show(array)
        assert (facts["state"], facts["counts"]) == ("blocked", {"blocked": 3})
    after.say("job", "cancel", first)
    gone = after.show(first)
    assert (gone["state"], gone["counts"], gone["verdict"]) == ("ended", {"cancelled": 3}, "refunded")
    receipt = after.say("job", "receipt", first, "--json").json
    assert receipt["refunded"] == receipt["escrow"]
    wait(lambda: after.show(parent)["counts"].get("submitted") == 2, "the parent's results are there", 120)
    after.say("job", "accept", parent)
    assert after.say("job", "unlock", second, "--json").json["opens"]
    wait(lambda: after.show(second)["counts"].get("submitted") == 3, "the child's results are there", 120)
    after.say("job", "accept", second)
    assert after.show(second)["verdict"] == "ok"


def test_print_tx__job_that_waits__the_call_holds_its_list(after: After) -> None:
    parent = after.post("signed-parent")
    file = after.file("signed", more=f'after: [{{job: "{parent}", if: always}}]\n')
    report = after.say("submit", str(file), "--print-tx", "--json").json
    (tx,) = report["prepared"]
    told = codec("JobRegistry").decode_input(bytes.fromhex(tx["data"][2:]))
    assert told is not None and told[0] == "post"
    ((job, condition),) = unpack_parents(told[1]["parents"])
    assert (f"0x{job.hex()}", condition.name) == (parent, "ALWAYS") and tx["value"] == report["escrow"]
    # It is the journal's now, so the file itself posts it with the same list.
    assert after.say("submit", str(file), "--json").json["job"] == report["job"]
    assert [row["job"] for row in after.show(report["job"])["parents"]] == [parent]
    after.end(parent)
    assert after.say("job", "unlock", report["job"], "--json").json["opens"]
    after.end(report["job"])


def test_net_verify__after_all_of_it__the_books_hold(after: After) -> None:
    waiting = after.post("last", "--after", f"{after.post('open', '--anyway')}:always")
    array = after.post("lasts", "--after", f"{waiting}:always", more="array: {units: 2}\n")
    told = after.say("net", "verify", "--json").json
    assert told["solvent"] and "strays" not in told and told["results_checked"] >= 7
    events = [json.loads(line) for line in after.say("job", "events", array, "--json").out.splitlines()]
    assert [event["event"] for event in events] == ["JobPosted"]
    assert Client(after.place.session.settings).net.status()["units"]["blocked"] == 3
