"""A job whose results three attesters judge, from its file to the money: two sign, anybody confirms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.chain import keys
from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Said, Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PASSWORD = "attesters sign"
NAMES = ("ada", "bob", "cid")


class Attested:
    """A market with one worker that accepts the set of three attesters, and the files of both."""

    def __init__(self, place: Town) -> None:
        self.place = place
        self.folder = place.home / "attested"
        self.folder.mkdir()
        self.password = self.folder / "password"
        self.password.write_text(PASSWORD + "\n")
        self.password.chmod(0o600)
        made = [keys.create_key(place.home / "keys", name, PASSWORD, devnet=True) for name in (*NAMES, "eve")]
        self.addresses = [key.address for key in made[:3]]
        self.set = self.folder / "attesters.yaml"
        self.set.write_text(json.dumps({"keys": self.addresses, "quorum": 2}))
        text = (EXAMPLES / "digits" / "job.yaml").read_text()
        for name in ("digits.wasm", "digits.csv"):
            text = text.replace(f"./{name}", str(EXAMPLES / "digits" / name))
        self.job = self.folder / "job.yaml"
        self.job.write_text(text + "\nverify: {attesters: ./attesters.yaml}\n")
        self.plan = self.say("check", str(self.job), "--json").json
        self._start_worker(self.plan["judge"]["digest"])

    def _start_worker(self, digest: str) -> None:
        """Start a worker that takes the set's word."""
        path = self.place.worker_file()
        text, count = re.subn(r"(?m)^\[accept\].*$", f'[accept]\nattesters = ["{digest}"]', path.read_text())
        assert count == 1
        path.write_text(text)
        self.say("worker", "register", "--config", str(path), "--stake", "20")
        self.place.start("worker", "-m", "worker", "--config", str(path))
        self.place.wait_beat(1)

    def say(self, *arguments: str, code: int = 0) -> Said:
        told = self.place.hearth(*arguments)
        assert told.code == code, (arguments, told.out, told.err)
        return told

    def submitted(self) -> str:
        """Post the job and return its id once its result is on the chain."""
        job = str(self.say("submit", str(self.job), "--again", "-q").out.strip())
        wait(lambda: self.lease(job)["state"] == "submitted", "the result is submitted", 120)
        return job

    def lease(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.say("job", "show", job, "--json").json["leases"][0]
        return found

    def attest(self, job: str, name: str, *more: str, code: int = 0) -> tuple[Path, Said]:
        out = self.folder / f"{name}.json"
        account = ("--account", name, "--password-file", str(self.password))
        return out, self.say("job", "attest", job, "--out", str(out), *account, *more, code=code)

    def confirm(self, job: str, *more: str, code: int = 0) -> Said:
        return self.say("job", "confirm", job, *more, "--attesters", str(self.set), "--json", code=code)


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
