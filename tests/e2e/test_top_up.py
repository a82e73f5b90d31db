"""A unit that leaves a checkpoint, is resumed and topped up, on a real market: what its submitter reads and pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.chain.port import Call
from hearth.jobfile import needs_of
from hearth.local import devnet
from hearth.market.events import NodeRegistered
from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, Billing, NodeId, Offer, Outcome, Runtime, State, Terms, TermsFlag, Unit
from hearth.protocol.units import format_duration
from hearth.storage import cid
from tests.kit import build
from tests.kit.town import EXAMPLES, Said, Town, example_text, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ETH = 10**18
SUBMITTER = 1
OWNER, OPERATORS = 2, (3, 5)
ROOT = bytes(range(32))
POSTED: list[Terms] = []


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.deep)], ids=["native", "erc20"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("top-up"), erc20=request.param) as made:
        yield made


@pytest.fixture(scope="module")
def nodes(place: Town) -> tuple[NodeId, ...]:
    """Return a node of each operator."""
    offer = Offer(runtimes=Runtime.WASM, cores=1, ram_gib=1, disk_gib=1, slots=32, ask=10**12 * 10**6)
    found, calls = [], place.market.calls
    for index in OPERATORS:
        if place.session.network.asset.address is not None:
            place.sender(OWNER).send(calls.approve_stake(20 * ETH), key=f"approve/{index}")
        call = calls.register(devnet.account(index).address, offer, bytes(32), 20 * ETH)
        done = place.sender(OWNER).send(call, key=f"register/{index}")
        (node,) = [e.node for e in place.market.events_in(done.logs) if isinstance(e, NodeRegistered)]
        found.append(node)
    return tuple(found)


def post(place: Town, **changes: Any) -> tuple[str, Terms]:
    """Post a metered job of ten minutes that checkpoints."""
    policies, calls = place.market.policies(), place.market.calls
    terms = replace(
        build.terms(
            submitter=place.session.key().address,
            salt=len(POSTED) + 1,
            needs=needs_of(build.spec().resources, "wasm"),
            # No whole number of base units a second, so that what a top-up costs hangs on what there was before.
            ceiling=2 * 10**12 * 10**6 + 333_333,
            max_seconds=600,
            deadline=place.chain.head().timestamp + 7_200,
            keeper_fee=policies.policy.min_keeper_fee,
            policy=policies.word,
            billing=Billing.METERED,
            checkpoint_every=2,
            flags=TermsFlag.NEWCOMERS,
        ),
        **changes,
    )
    POSTED.append(terms)
    sender = place.sender(SUBMITTER)
    if place.session.network.asset.address is not None:
        sender.send(calls.approve_post(terms), key=f"approve/{terms.salt}")
    sender.send(calls.post(terms), key=f"post/{terms.salt}")
    return "0x" + place.market.job_id(terms).hex(), terms


def act(place: Town, operator: int, call: Call) -> None:
    """Send a call as an operator."""
    sender = place.sender(operator)
    sender.send(call, key=f"{call.label}/{call.data.hex()}/{place.chain.nonce(sender.address)}")


def claim(place: Town, terms: Terms, nodes: tuple[NodeId, ...], who: int, index: int = 0, resume: int = 0) -> None:
    act(place, OPERATORS[who], place.market.calls.beat(nodes[who]))
    act(place, OPERATORS[who], place.market.calls.claim(terms, index, nodes[who], resume_from=resume))


def unit(place: Town, terms: Terms, index: int = 0) -> Unit:
    return place.market.unit(place.market.job_id(terms), index).unit


def pass_time(place: Town, seconds: int) -> None:
    place.rpc("evm_increaseTime", seconds)
    place.rpc("evm_mine")


def refused(place: Town, *arguments: str, code: str) -> Said:
    """Run a top-up that has to be refused before any money moves; return what was said."""
    before = place.client.wallet.balance()
    told = place.hearth("job", "top-up", *arguments, "--yes", "--json")
    assert told.error["code"] == code, told.out + told.err
    assert place.client.wallet.balance() == before
    return told


def test_top_up__unit_whose_first_node_left_a_checkpoint__every_coin_is_told(
    place: Town, nodes: tuple[NodeId, ...]
) -> None:
    job, terms = post(place)
    name = job[:14]
    claim(place, terms, nodes, 0)
    pass_time(place, 30)
    act(place, OPERATORS[0], place.market.calls.checkpoint(place.market.job_id(terms), 0, ROOT))
    began = unit(place, terms)

    dry = place.hearth("job", "top-up", name, "--time", "5m", "--dry-run")
    assert dry.code == 0 and "would give unit 0" in dry.out, dry.out + dry.err
    assert unit(place, terms) == began
    # The whole price grows from one rounded up to another: by no more, and by no less.
    amount = formulas.top_up_amount(terms, began, 300)
    first = place.hearth("job", "top-up", name, "--time", "5m", "--json")
    assert first.code == 0, first.out + first.err
    assert (first.json["amount"], first.json["unit"], first.json["topped_up"]) == (str(amount), 0, 300)
    assert first.json["deadline_at"] == began.mark + 300 == unit(place, terms).mark
    assert int(first.json["price"]) == formulas.unit_price(replace(terms, max_seconds=900))

    same = place.hearth("job", "top-up", name, "--time", "5m")
    assert same.code == 0 and "an earlier call gave unit 0" in same.out and "--again" in same.out
    assert unit(place, terms).seconds == 300
    act(place, OPERATORS[0], place.market.calls.beat(nodes[0]))
    act(place, OPERATORS[0], place.market.calls.give_up(terms, 0))
    assert unit(place, terms).state is State.OPEN

    shown = place.hearth("job", "show", job, "--json").json
    (lease,) = shown["leases"]
    (row,) = lease["checkpoints"]
    assert (row["attempt"], row["node"], row["kept"], row["pay"]) == (1, nodes[0], True, None)
    assert row["root"] == str(cid.of_root(ROOT)) and row["seconds"] >= 30
    assert (lease["topped_up"], lease["resumed_from"], shown["checkpoint_every"]) == (300, None, 2)
    assert int(shown["topped_up"]) == amount and int(shown["escrow"]) == formulas.escrow_at_post(terms) + amount

    claim(place, terms, nodes, 1, resume=1)
    again = unit(place, terms)
    assert again.mark - again.started == 900 + formulas.grace(replace(terms, max_seconds=900))
    more = place.hearth("job", "top-up", name, "--time", "5m", "--again", "--json")
    assert more.code == 0, more.out + more.err
    second = formulas.top_up_amount(terms, again, 300)
    assert more.json["amount"] == str(second) and more.json["topped_up"] == 600
    pass_time(place, 20)
    call = place.market.calls.submit(place.market.job_id(terms), 0, b"\x11" * 32, bytes(32), Outcome.OK)
    act(place, OPERATORS[1], call)
    submitted = unit(place, terms)
    kept = place.market.kept(place.market.job_id(terms), 0, 1, 1)
    (due,) = formulas.checkpoint_pays(terms, submitted, {1: kept})
    assert due.pay > due.fee >= 0 and due.node == nodes[0]
    accepted = place.hearth("job", "accept", job)
    assert accepted.code == 0, accepted.out + accepted.err

    receipt = place.hearth("job", "receipt", job, "--json").json
    pay = formulas.pay_at_settle(terms, submitted)
    fee = formulas.fee_of(pay, place.market.policies().policy)
    assert int(receipt["topped_up"]) == amount + second
    assert int(receipt["workers"]) == pay - fee + due.pay - due.fee
    assert int(receipt["market_fee"]) == fee + due.fee and int(receipt["keepers"]) == 0
    (paid,) = receipt["checkpoints"]
    assert paid == {"unit": 0, "attempt": 1, "node": nodes[0], "pay": str(due.pay), "fee": str(due.fee)}
    where = [int(receipt[part]) for part in ("still_locked", "workers", "market_fee", "keepers", "refunded")]
    assert sum(where) == int(receipt["escrow"]) == formulas.escrow_at_post(terms) + amount + second
    assert "of it for checkpoints" in place.hearth("job", "receipt", job).out

    events = place.hearth("job", "events", job).out
    assert f"node {nodes[0]} stored a checkpoint after" in events and str(cid.of_root(ROOT)) in events
    assert "topped up for" in events and "(attempt 2, from the checkpoint of attempt 1)" in events
    assert f"the checkpoint of attempt 1 was used: node {nodes[0]}'s owner earned" in events
    text = place.hearth("job", "show", job).out
    assert "checkpoints every 2s; another node can resume it" in text
    assert "attempt 2 from the checkpoint of attempt 1, topped up by 10m" in text and "; used, its node's owner" in text


def test_top_up__what_the_market_would_refuse__is_said_before_any_money_moves(
    place: Town, nodes: tuple[NodeId, ...]
) -> None:
    job, terms = post(place, deadline=place.chain.head().timestamp + 1_300)
    refused(place, job, "--time", "0s", code="BAD_DURATION")
    told = refused(place, job, "--time", "5m", code="UNIT_NOT_RUNNING")
    assert "its state is waiting for a machine" in told.error["message"] and told.code == 5
    claim(place, terms, nodes, 0)
    refused(place, job, "--time", "5m", "--account", "provider", code="NOT_YOURS")
    refused(place, job, "--time", "31d", code="TOO_LONG")
    near = refused(place, job, "--time", "1h", code="DEADLINE_NEAR")
    room = terms.deadline - unit(place, terms).mark
    assert f"--time {format_duration(room)}" in near.error["hint"]
    exact = place.hearth("job", "top-up", job, "--time", format_duration(room), "--json")
    assert exact.code == 0 and exact.json["deadline_at"] == terms.deadline, exact.out + exact.err
    full = refused(place, job, "--time", "1s", code="DEADLINE_NEAR")
    assert "room for 0s more" in full.error["message"] and "--time" not in full.error["hint"]
    pass_time(place, 1_300)
    late = refused(place, job, "--time", "1m", code="TOO_LATE")
    assert "hearth job show" in late.error["hint"]

    fixed, other = post(place, billing=Billing.FIXED, checkpoint_every=0)
    claim(place, other, nodes, 0)
    refused(place, fixed, "--time", "5m", code="NOT_METERED")


def test_top_up__array__names_the_units_that_run(place: Town, nodes: tuple[NodeId, ...]) -> None:
    job, terms = post(place, units=3)
    refused(place, job, "--time", "1m", code="UNIT_NOT_RUNNING")
    refused(place, job, "--time", "1m", "--unit", "1", code="UNIT_NOT_RUNNING")
    refused(place, job, "--time", "1m", "--unit", "3", code="NOT_FOUND")
    claim(place, terms, nodes, 0, SENTINEL)
    only = place.hearth("job", "top-up", job, "--time", "1m", "--json")
    assert only.code == 0 and only.json["unit"] == 0, only.out + only.err
    claim(place, terms, nodes, 1, SENTINEL)
    told = refused(place, job, "--time", "1m", code="WHICH_UNIT")
    assert "2 units of job" in told.error["message"] and "run: 0, 1" in told.error["message"] and told.code == 2
    named = place.hearth("job", "top-up", job, "--time", "1m", "--unit", "1", "--json")
    assert named.code == 0 and unit(place, terms, 1).seconds == 60, named.out + named.err


def test_check__job_that_checkpoints__says_how_often_and_the_markets_least_is_kept(place: Town, tmp_path: Path) -> None:
    told = place.hearth("check", str(EXAMPLES / "resume" / "job.yaml"))
    assert told.code == 0 and "checkpoints every 2s; another node can resume it" in told.out, told.out + told.err
    text = example_text("resume", tmp_path)
    file = tmp_path / "job.yaml"
    file.write_text(text.replace("every: 2s", "every: 1s"))
    for command in ("check", "submit"):
        said = place.hearth(command, str(file), *(["--anyway"] if command == "submit" else []), "--json")
        assert (said.code, said.error["code"]) == (2, "BAD_SPEC") and "use 2s" in said.error["hint"], said.out
    lines = [line for line in text.splitlines() if not line.startswith("checkpoint:")]
    file.write_text("\n".join(lines))
    plain, with_them = (
        place.hearth("check", str(one), "--json").json for one in (file, EXAMPLES / "resume" / "job.yaml")
    )
    assert [plain[key] for key in ("escrow", "ceiling", "billing")] == [
        with_them[key] for key in ("escrow", "ceiling", "billing")
    ]


def test_net_verify__market_with_checkpoints_and_top_ups__is_solvent(place: Town, nodes: tuple[NodeId, ...]) -> None:
    """After the tests above: units that run with topped-up time, and one settled that paid for a checkpoint."""
    told = place.hearth("net", "verify", "--json")
    assert told.json["solvent"] and "faults" not in told.json, told.out
