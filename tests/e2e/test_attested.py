"""A job whose results three attesters judge, from its file to the money: two sign, anybody confirms."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kit.attested import Attested
from tests.kit.running import wait
from tests.kit.town import town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def attested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attested]:
    with town(tmp_path_factory.mktemp("attested")) as place:
        yield Attested(place)


def test_check__attesters__says_who_decides_by_when_and_what_happens_else(attested: Attested) -> None:
    judge = attested.plan["judge"]
    assert (judge["quorum"], judge["keys"]) == (2, sorted(attested.addresses))
    assert judge["unproven_from"] == attested.plan["deadline"] + judge["window"]
    (line,) = [line for line in attested.plan["text"] if "attesters have signed" in line]
    assert line.startswith("paid for once 2 of the 3 attesters have signed its result (hearth job attest JOB)")
    assert any("by the instructions executed (which attesters sign)" in told for told in attested.plan["text"])
    assert judge["digest"] in line and "is refunded, and costs its worker" in line


def test_confirm__two_of_three_attesters__the_worker_is_paid(attested: Attested) -> None:
    job = attested.submitted()
    first, told = attested.attest(job, "ada", "--attesters", str(attested.set))
    assert "hearth job confirm" in told.out and "result bafkrei" in told.err

    short = attested.confirm(job, str(first), code=5).error
    assert short["code"] == "TOO_FEW_SIGNATURES" and "1 of 2 signatures" in short["message"]
    stranger, _ = attested.attest(job, "eve")
    assert attested.confirm(job, str(first), str(stranger), code=5).error["code"] == "TOO_FEW_SIGNATURES"
    _, told = attested.attest(job, "eve", "--attesters", str(attested.set), "--json", code=5)
    assert told.error["code"] == "NOT_AN_ATTESTER"

    second, _ = attested.attest(job, "cid")
    planned = attested.confirm(job, str(first), str(second), "--dry-run").json
    assert planned["dry_run"] and attested.lease(job)["state"] == "submitted"
    done = attested.confirm(job, str(first), str(stranger), str(second)).json
    assert done["units"] == [0] and done["transactions"][0]["action"] == "attesters.confirm"
    assert attested.lease(job)["state"] == "settled"

    again = attested.confirm(job, str(first), str(second), code=5).error
    assert again["code"] == "ALREADY_ENDED"
    ended = attested.say("job", "wait", job, "--json").json
    assert ended["results"]["verdict"] == "ok"


def test_attest__the_cid_that_each_report_shows__is_the_one_that_is_signed(attested: Attested) -> None:
    job = attested.submitted()
    result = attested.lease(job)["result_cid"]
    assert f"    result {result}\n" in attested.say("job", "show", job).out
    events = [json.loads(line) for line in attested.say("job", "events", job, "--json").out.splitlines()]
    (told,) = [event for event in events if event["event"] == "Submitted"]
    assert told["result_cid"] == result and told["result"] != result
    assert f"ok, result {result}\n" in attested.say("job", "events", job).out
    folder = attested.folder / "seen"
    lines = attested.say("job", "get", job, "-o", str(folder)).out.splitlines()
    assert lines[1:] == [
        f"  result {result}",
        f"an attester who finds it right: hearth job attest {job[:14]} --result {result}",
    ]
    row = attested.say("job", "get", job, "-o", str(folder / "again"), "--json").json
    assert row["judged"] and row["units"][0]["result_cid"] == result
    attested.attest(job, "ada", *lines[2].split()[-2:])
    _, refused = attested.attest(job, "ada", "--result", row["units"][0]["outputs"], "--json", code=5)
    assert refused.error["code"] == "NOT_SEEN"
    attested.say("job", "accept", job)
    # What is settled needs no signature, and no advice about one.
    lines = attested.say("job", "get", job, "-o", str(folder / "settled")).out.splitlines()
    assert lines[1:] == [f"  result {result}"]


def test_attest__before_the_result_and_for_other_jobs__is_refused(attested: Attested) -> None:
    """Nobody asks this little: the job stays open."""
    cheap = attested.folder / "cheap.yaml"
    cheap.write_text(attested.job.read_text().replace("1.20/h", "0.01/h"))
    job = attested.say("submit", str(cheap), "--anyway", "--again", "-q").out.strip()
    _, told = attested.attest(job, "ada", "--json", code=5)
    assert told.error["code"] == "NOT_SUBMITTED" and told.error["retryable"]
    plain = attested.folder / "plain.yaml"
    plain.write_text(cheap.read_text().replace("verify: {attesters: ./attesters.yaml}", ""))
    other = attested.say("submit", str(plain), "--anyway", "--again", "-q").out.strip()
    _, told = attested.attest(other, "ada", "--json", code=5)
    assert told.error["code"] == "NOT_ATTESTED"


def test_accept__attested_job__pays_without_them(attested: Attested) -> None:
    job = attested.submitted()
    attested.say("job", "accept", job)
    assert attested.lease(job)["state"] == "settled"


def test_unproven__nobody_signs__the_keeper_refunds_it_and_the_worker_loses_stake(attested: Attested) -> None:
    """Last of this file: from here on a keeper runs, which has jobs of its own for every unit left over."""
    hasty = attested.folder / "hasty.yaml"
    hasty.write_text(
        attested.job.read_text().replace(
            "limits: {runtime: 60s, deadline: 1h}", "limits: {runtime: 10s, deadline: 40s}"
        )
    )
    before = attested.place.client.net.workers()["workers"][0]["stake"]
    job = str(attested.say("submit", str(hasty), "--again", "-q").out.strip())
    attested.place.add_keeper()
    wait(lambda: attested.lease(job)["state"] == "refunded", "nobody signed: the unit is refunded", 150)

    told = attested.say("job", "wait", job, code=102)
    assert "nobody has proven node 1's result in time; refunded" in told.err
    books = attested.say("worker", "earnings", "--config", str(attested.place.home / "worker.toml"), "--json").json
    assert books["unproven"] == 1 and int(books["slashed"]) > 0
    assert int(attested.place.client.net.workers()["workers"][0]["stake"]) == int(before) - int(books["slashed"])
    assert attested.say("net", "verify", "--json").json["solvent"]
