"""worker.take: one unit taken by hand on a real chain, in the real sandbox; its refusals send nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from hearth.base.errors import ChainError, ConfigError, FundsError, HearthError, RefusedError, StoreDown
from hearth.client import Client
from hearth.config.settings import load_settings
from hearth.jobfile.resolved import ResolvedInput
from hearth.market.events import Declined, Submitted
from hearth.protocol.types import Gate, JobId, State
from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore
from tests.kit.evm import ROOT
from tests.kit.exchange import Exchange, Scenario
from tests.kit.running import wait
from tests.worker.test_loop import events_of, working
from tools import schemas
from worker import settings
from worker.build import build
from worker.decide import Reason, Skip
from worker.loop import Look
from worker.mode import read_mode, set_mode
from worker.reason_texts import REASON_TEXTS
from worker.take import Take, _said_of, take

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Put the process's own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def taken(scenario: Scenario, job: JobId, index: int | None = None, *, dry_run: bool = False) -> dict[str, Any]:
    """Take a unit in this process."""
    file = str(scenario.exchange.net.network_file)
    client = Client(load_settings({"network": file}), dry_run=dry_run)
    try:
        report = take(client.session, settings.load(scenario.home / "worker.toml"), job, index)
    finally:
        client.close()
    schemas.validate(report)
    return dict(report)


def refused(scenario: Scenario, job: JobId, index: int | None = None) -> HearthError:
    """Return the refusal of a unit, for which nothing was sent."""
    chain = scenario.exchange.chain
    before = chain.nonce(scenario.operator)
    with pytest.raises(HearthError) as caught:
        taken(scenario, job, index)
    assert chain.nonce(scenario.operator) == before
    return caught.value


def command(scenario: Scenario, job: JobId, *more: str, failpoint: str = "") -> subprocess.Popen[str]:
    """Start `hearth worker take` as a process of its own."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("HEARTH_")}
    environ |= {"HEARTH_HOME": str(scenario.home / "user"), "PYTHONPATH": str(ROOT)}
    if failpoint:
        environ["HEARTH_FAILPOINT"] = failpoint
    config, network = scenario.home / "worker.toml", scenario.exchange.net.network_file
    return subprocess.Popen(
        [sys.executable, "-m", "hearth.cli", "worker", "take", job.hex()[:16], "--config", str(config)]
        + ["--network", str(network), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    )


def files(scenario: Scenario) -> dict[str, int]:
    """Return the files and folders of a scenario and of its user, with when each was written."""
    homes = (scenario.home, load_settings().home)
    return {str(path): path.lstat().st_mtime_ns for home in homes for path in home.rglob("*")}


def change(scenario: Scenario, old: str, new: str) -> None:
    config = scenario.home / "worker.toml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))


# ---- taken ----


def test_said_of__price_that_has_yet_to_rise__names_the_seconds() -> None:
    rising = Skip(JobId(bytes(32)), 0, Reason.AWAITS_PRICE, "12 s")
    assert _said_of(rising) == "it can be taken once the price of open claims has risen to this node's ask, in 12 s"
    assert _said_of(None) == _said_of(Skip(JobId(bytes(32)), 0, Reason.GATHERING)) == "it can be taken"


def test_take__open_job__submits_its_result_and_nothing_else(exchange: Exchange, scenario: Scenario) -> None:
    """The node never beat before, and it is paused: a person has sent it all the same."""
    set_mode(scenario.home / "state", "pause")
    other, job = scenario.post(), scenario.post()
    before = files(scenario)
    assert taken(scenario, job, dry_run=True)["state"] == "takeable"
    assert files(scenario) == before
    assert exchange.chain.nonce(scenario.operator) == 0
    report = taken(scenario, job)
    assert (report["state"], report["outcome"], report["unit"], report["attempt"]) == ("submitted", "ok", 0, 1)
    assert scenario.state(job) in (State.SUBMITTED, State.SETTLED) and scenario.state(other) is State.OPEN
    (submitted,) = events_of(exchange, job, Submitted)
    assert (report["result"], report["report"]) == (submitted.result.hex(), submitted.report.hex())
    out = scenario.home / "got"
    exchange.store.fetch(cids.parse(exchange.store.get_json(submitted.result)["outputs"]["cid"]), out)
    assert (out / "result").read_bytes() == b"ok"
    assert read_mode(scenario.home / "state") == "pause"
    # Whoever takes it again learns that it is done, and sends nothing.
    before = set(scenario.transactions())
    # What comes next may have come meanwhile: the worker settles its unit once the window is over.
    assert {**taken(scenario, job), "next": ""} == {**report, "next": ""}
    assert set(scenario.transactions()) == before


def test_take__array__takes_one_unit_a_time_in_their_order(scenario: Scenario) -> None:
    job = scenario.post(units=3, newcomers=True)
    told = refused(scenario, job, 2)
    assert (told.code, told.details["reason"]) == ("NOT_TAKEN", "not_next")
    assert refused(scenario, job, 3).code == "BAD_ID"
    assert [taken(scenario, job)["unit"], taken(scenario, job, 1)["unit"]] == [0, 1]
    assert scenario.state(job, 2) is State.OPEN


def test_take__unit_that_is_matched_by_proposals__proposes_itself_and_takes_it(scenario: Scenario) -> None:
    change(scenario, "confirmations = 0", "confirmations = 0\npropose = false")
    job = scenario.post(window=10)
    assert taken(scenario, job)["state"] == "submitted"
    sent = {key.partition("/")[0] for key in scenario.transactions()} - {"settle"}
    assert sent == {"beat", "propose", "ack", "submit"}


@pytest.mark.parametrize("scenario", [{"slots": 2}], indirect=True)
def test_take__node_that_holds_another_job__finishes_that_too(scenario: Scenario) -> None:
    held, job = scenario.post(newcomers=True), scenario.post(newcomers=True)
    process = command(scenario, held, failpoint="m4.started")
    assert process.wait(120) == -signal.SIGKILL
    taken(scenario, job)
    assert {scenario.state(held), scenario.state(job)} <= {State.SUBMITTED, State.SETTLED}


@pytest.mark.parametrize("scenario", [{"slots": 2}], indirect=True)
def test_take__keeper_proposes_the_node_for_another_job__lets_it_lapse_at_no_cost(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(scenario, "confirmations = 0", "confirmations = 4")
    market, others = exchange.market, []

    def proposing(self: Take, look: Look) -> bool:
        if scenario.state(job) is State.RUNNING and not others:
            others.append(scenario.post(window=1, newcomers=True))
            call = market.calls.propose(market.terms_of(others[0]).terms, 0, scenario.node)
            exchange.submitter.send(call, key=f"propose/{others[0].hex()}")
        return over(self, look)

    over = Take.over
    monkeypatch.setattr(Take, "over", proposing)
    job = scenario.post(newcomers=True)
    before = market.node(scenario.node)
    assert taken(scenario, job)["state"] == "submitted"
    proposed = market.unit(others[0], 0)
    wait(lambda: exchange.chain.head().timestamp >= proposed.unit.window_end + 4, "its time to ack is over")
    assert (proposed.unit.state, proposed.best.node) == (State.OPEN, scenario.node)
    after = market.node(scenario.node)
    assert (after.stake, after.state.s, after.state.quarantine) == (before.stake, before.state.s, 0)


# ---- killed and stopped ----


@pytest.mark.parametrize("failpoint", ["m7.signed@jobs.claim", "m7.signed@jobs.submit"])
def test_take__killed__a_second_one_goes_on_and_submits_once(
    exchange: Exchange, scenario: Scenario, failpoint: str
) -> None:
    job = scenario.post()
    assert command(scenario, job, failpoint=failpoint).wait(120) == -signal.SIGKILL
    with pytest.raises(RefusedError) as caught:
        taken(scenario, scenario.post())
    assert caught.value.details["reason"] == "no_slot"
    process = command(scenario, job, "--json")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    report = json.loads(out)
    schemas.validate(report)
    assert (report["state"], report["attempt"]) == ("submitted", 1)
    assert "submitted" in said
    assert len(events_of(exchange, job, Submitted)) == scenario.submits() == 1


@pytest.mark.parametrize("scenario", [{"turns": 2_000_000_000}], indirect=True)
def test_take__interrupted__says_what_is_held_and_a_second_one_goes_on(scenario: Scenario) -> None:
    job = scenario.post()
    process = command(scenario, job)
    assert process.stderr is not None
    shown: list[str] = []
    for line in process.stderr:
        shown.append(line)
        if line.endswith(": running\n"):
            break
    assert f"node {scenario.node} holds unit 0, to be submitted until" in "".join(shown)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert f"stopped while node {scenario.node} holds unit 0" in said and re.search("hearth worker take .*0x", said)
    assert not scenario.sandboxes()
    assert taken(scenario, job)["attempt"] == 1


def test_take__job_that_cannot_be_run__is_given_back_with_exit_1(exchange: Exchange, scenario: Scenario) -> None:
    data, _ = scenario.input_without_a_leaf(spoilt=True)
    job = scenario.post(inputs=(data,))
    with pytest.raises(HearthError, match=r"was given back: /in/data .*do not hash to it") as caught:
        taken(scenario, job)
    assert (caught.value.code, caught.value.exit_code) == ("DECLINED", 1)
    assert len(events_of(exchange, job, Declined)) == 1


# ---- refused, with nothing sent ----


def test_words__each_reason__has_some_for_a_person() -> None:
    assert set(REASON_TEXTS) == {*Reason, *Gate} - {Gate.FITS}
    assert all(REASON_TEXTS.values())


def test_pages__every_reason__is_in_the_list_of_worker_toml() -> None:
    page = (ROOT / "docs" / "worker.toml.md").read_text(encoding="utf-8")
    listed = page.split("\n## Why a job is not taken\n")[1].split("\n## ")[0]
    assert set(re.findall(r"`([a-z_]+)`", listed)) == {reason.name.lower() for reason in REASON_TEXTS}


def test_take__data_that_is_nowhere__is_named_and_nothing_is_sent(scenario: Scenario) -> None:
    gone = ResolvedInput(cid=str(cids.of(b"nowhere")), dst="/in/data", size=7)
    error = refused(scenario, scenario.post(inputs=(gone,)))
    assert (error.code, error.exit_code, error.retryable) == ("BLOCK_MISSING", 9, True)
    assert error.message.startswith(f"/in/data ({gone.cid}) cannot be had: ")


def test_take__job_that_the_market_or_the_settings_refuse__names_the_reason(
    exchange: Exchange, scenario: Scenario
) -> None:
    needs = exchange.market.terms_of(scenario.post()).terms.needs
    late = exchange.chain.head().timestamp + 8
    hurried = scenario.post(deadline=late + 660)
    ask = 10**9 * 10**6
    for reason, job in (
        ("price", scenario.post(ceiling=ask - 1, max_seconds=1200)),
        ("disk", scenario.post(needs=replace(needs, disk_gib=2))),
        ("probation", scenario.post(ceiling=2 * 10**18 // 600 * 10**6)),
        ("stake_short", scenario.post(ceiling=50 * 10**18 // 600 * 10**6, newcomers=True)),
    ):
        told = refused(scenario, job)
        assert (told.code, told.exit_code, told.details["reason"]) == ("NOT_TAKEN", 5, reason)
        assert "follows no such job" not in told.message
    wait(lambda: exchange.chain.head().timestamp > late, "no attempt can end any more")
    assert refused(scenario, hurried).details["reason"] == "no_time"
    job = scenario.post()
    change(scenario, scenario.module.cid, "bafy*")
    told = refused(scenario, job)
    assert told.details["reason"] == "image_refused" and "[accept]" in told.hint
    change(scenario, "[accept]", f'[accept]\nrefuse_submitters = ["{exchange.submitter.address}"]')
    assert refused(scenario, job).details["reason"] == "submitter_refused"


def test_take__store_that_takes_no_results__is_refused_as_retryable_and_a_dry_run_does_not_try_it(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(store: FolderStore) -> None:
        raise StoreDown("the folder is read-only")

    job = scenario.post()
    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "try_write", refuse)
        told = refused(scenario, job)
        assert (told.code, told.details["reason"], told.retryable) == ("NOT_TAKEN", "store_down", True)
        assert taken(scenario, job, dry_run=True)["state"] == "takeable"
    assert taken(scenario, job)["state"] == "submitted"


def test_take__spec_that_no_store_has__is_refused_as_retryable(exchange: Exchange, scenario: Scenario) -> None:
    job = scenario.post(seconds=601)
    digest = exchange.market.terms_of(job).terms.spec.hex()
    (exchange.store.root / "blocks" / digest[:2] / digest).unlink()
    error = refused(scenario, job)
    assert (error.exit_code, error.retryable) == (9, True)


def test_over__provider_that_fails_for_a_moment__does_not_give_the_lease_up(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []

    def failing(self: Take, look: Look) -> bool:
        if scenario.state(job) is State.RUNNING and not failures:
            failures.append(look)
            raise ChainError("no answer", hint="hearth doctor", retryable=True)
        return over(self, look)

    over = Take.over
    monkeypatch.setattr(Take, "over", failing)
    job = scenario.post()
    assert taken(scenario, job)["state"] == "submitted" and failures


def test_take__job_that_has_ended_or_is_anothers__is_refused(exchange: Exchange, scenario: Scenario) -> None:
    job = scenario.post()
    call = exchange.market.calls.cancel(exchange.market.terms_of(job).terms, 0)
    exchange.submitter.send(call, key=f"cancel/{job.hex()}")
    assert refused(scenario, job).details["reason"] in ("ended", "not_watched")
    assert refused(scenario, JobId(b"\x07" * 32)).code == "NOT_FOUND"


def test_take__gas_money_short__is_refused_before_the_first_transaction(exchange: Exchange, scenario: Scenario) -> None:
    exchange.chain.rpc("anvil_setBalance", scenario.operator, "0x1000")
    error = refused(scenario, scenario.post())
    assert isinstance(error, FundsError) and error.exit_code == 6


def test_take__exiting_node__is_refused(exchange: Exchange, scenario: Scenario) -> None:
    exchange.owner.send(exchange.market.calls.exit_start(scenario.node), key=f"exit/{scenario.node}")
    error = refused(scenario, scenario.post())
    assert error.details["reason"] == "node_status" and "leaving" in error.message


def test_take__beside_a_running_worker__is_refused(scenario: Scenario) -> None:
    job = scenario.post()
    set_mode(scenario.home / "state", "pause")
    with working(scenario):
        error = refused(scenario, job)
        with pytest.raises(ConfigError) as caught:
            taken(scenario, job, dry_run=True)
        assert caught.value.as_dict() == error.as_dict()
    assert (error.code, error.exit_code) == ("KEY_IN_USE", 3) and "hearth worker drain" in error.hint


def test_take__beside_the_worker_of_a_copy__is_refused_and_names_its_home(scenario: Scenario) -> None:
    copy, job = scenario.copied(), scenario.post()
    set_mode(scenario.home / "state", "pause")
    with working(scenario):
        error = refused(copy, job)
    assert error.code == "KEY_IN_USE" and "hearth worker init" in error.hint and "drain" not in error.hint


def test_take__key_without_a_node__is_refused(exchange: Exchange, scenario: Scenario) -> None:
    change(scenario, "\n[account]", f"\nnode = {scenario.node + 1000}\n[account]")
    job = scenario.post()
    assert refused(scenario, job).code in ("NO_NODE", "NOT_FOUND", "NOT_OPERATOR")


def test_take__race_lost_after_the_beat__is_refused_and_nothing_is_held(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submitter cancels between the look and the claim."""
    job = scenario.post()
    prepare = Take.prepare

    def then_cancelled(self: Take) -> None:
        prepare(self)
        call = exchange.market.calls.cancel(exchange.market.terms_of(job).terms, 0)
        exchange.submitter.send(call, key=f"cancel/{job.hex()}")

    monkeypatch.setattr(Take, "prepare", then_cancelled)
    with pytest.raises(RefusedError) as caught:
        taken(scenario, job)
    assert caught.value.code == "NOT_TAKEN"
    with ExitStack() as stack:  # the key is free again
        build(settings.load(scenario.home / "worker.toml"), stack)
