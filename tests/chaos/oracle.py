"""What must hold after a run, whatever was done to the daemons: facts are gathered from the chain, then judged.

`gather` reads: every event and its second, every transaction to the market with its receipt, the words in storage, and
the proof that `hearth net verify` prints. `judge` is pure: it returns a sentence for each thing that is wrong, the
name of its rule first, and nothing where all is well. tests/chaos/test_oracle.py plants a fault under each rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import worker.settings
from hearth.client import Client
from hearth.config.sections import gas_price
from hearth.config.settings import Settings
from hearth.market.abi import codec
from hearth.market.events import (
    Cancelled,
    Checkpointed,
    CheckpointPaid,
    Closed,
    Declined,
    Event,
    Expired,
    Finished,
    GaveUp,
    JobPosted,
    NodeLapsed,
    Reclaimed,
    Rejected,
    Ruled,
    Settled,
    Slashed,
    Split,
    Started,
    Submitted,
    Unlocked,
    Unproven,
)
from hearth.market.reads import Market
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, Kept, State, Terms, Unit, Verdict
from keeper.settings import SpendingLimits
from tests.kit.running import RunningMarket

MAX_GAS_PRICE = max(
    SpendingLimits().max_gas_wei, gas_price(worker.settings.Settings.model_fields["max_gas_price"].default)
)
"""The cap of worker.toml and keeper.toml where they name none, wei per gas."""
PROPOSE = "0x" + codec("JobRegistry").selector("propose").hex()
ENDS = (Settled, Finished, Closed, Cancelled, Expired, Reclaimed, Declined, GaveUp, Ruled, Unproven, Unlocked)
READY_SECONDS = 30.0


@dataclass(frozen=True)
class Sent:
    """A transaction that was mined: who sent which call, and what it came to."""

    sender: str
    to: str
    data: str
    ok: bool
    gas_price: int
    block: int
    job: JobId | None
    """The job that it names first, None for none."""


@dataclass(frozen=True)
class Facts:
    """One market, whole, at one moment. Only jobs of one lease are judged; `owners` are those of nodes by id."""

    jobs_contract: str
    treasury: str
    posted: dict[JobId, Terms]
    events: tuple[Event, ...]
    seconds: dict[int, int]
    units: dict[JobId, Unit]
    owners: dict[int, str]
    sent: tuple[Sent, ...]
    heartbeats: str
    verification: dict[str, Any]
    left: tuple[str, ...] = ()
    """Sandboxes, containers and signed transactions that nobody looks after any more."""
    ready: tuple[float, ...] = ()
    """Seconds from the start of a process to the end of its first round."""
    race_blocks: int = 0
    """How old, in blocks, a daemon's newest block may have been when it sent: a call that another's call crossed within
    so many blocks has lost a race, and is no fault."""
    stale: frozenset[str] = frozenset()
    """Accounts of daemons that were shown an old chain, or one that was undone: their reverts are counted, no more."""


def gather(
    market: RunningMarket,
    *,
    left: Iterable[str] = (),
    ready: Iterable[float] = (),
    race_blocks: int = 0,
    stale: Iterable[str] = (),
) -> Facts:
    """Read everything from the chain, and the results from the market's folder store."""
    chain, network = market.chain, market.net.network
    head = chain.head()
    contracts = [network.jobs, network.nodes, network.escrow]
    events = tuple(
        market.market.events_in(chain.logs(contracts, from_block=network.deploy_block, to_block=head.number))
    )
    seconds: dict[int, int] = {}
    sent: list[Sent] = []
    for number in range(network.deploy_block, head.number + 1):
        block = chain.rpc("eth_getBlockByNumber", hex(number), True)
        seconds[number] = int(block["timestamp"], 16)
        for tx in block["transactions"]:
            receipt = chain.receipt(bytes.fromhex(tx["hash"][2:]))
            if receipt is not None and receipt.to in contracts:
                job = _job_of(market.market, receipt.to, tx["input"])
                sent.append(Sent(receipt.sender, receipt.to, tx["input"], receipt.ok, receipt.gas_price, number, job))
    posts = [market.market.posted_in(event.log) for event in events if isinstance(event, JobPosted)]
    posted = {one.job_id: one.terms for one in posts if one is not None}
    client = Client(Settings(home=market.home, network=str(market.net.network_file)))
    return Facts(
        jobs_contract=network.jobs,
        treasury=str(market.market.immutable("JobRegistry", "TREASURY")).lower(),
        posted=posted,
        events=events,
        seconds=seconds,
        units={job: market.market.unit(job, 0, head.hash).unit for job in posted},
        owners={int(node.id): node.owner for node in market.market.nodes(head.hash)},
        sent=tuple(sent),
        heartbeats=network.nodes,
        verification=dict(client.net.verify()),
        left=tuple(left),
        ready=tuple(ready),
        race_blocks=race_blocks,
        stale=frozenset(stale),
    )


def _job_of(market: Market, to: str, data: str) -> JobId | None:
    """Return the job that a call of the job registry names first."""
    if to != market.network.jobs:
        return None
    decoded = codec("JobRegistry").decode_input(bytes.fromhex(data[2:]))
    arguments = decoded[1] if decoded is not None else {}
    if "items" in arguments:
        return market.job_id(arguments["items"][0][0])
    if "terms" in arguments:
        return market.job_id(arguments["terms"])
    return JobId(arguments["job_id"]) if "job_id" in arguments else None


def judge(facts: Facts) -> list[str]:
    """Return what is wrong."""
    return [f"{rule.__name__.strip('_')}: {wrong}" for rule in RULES for wrong in rule(facts)]


# ---- the rules ----


def _books(facts: Facts) -> Iterator[str]:
    """Storage, balances and results are what the events say."""
    yield from facts.verification.get("faults", ())
    yield from facts.verification.get("unread", ())
    yield from facts.verification.get("strays", {}).get("first", ())


def _ends_once(facts: Facts) -> Iterator[str]:
    """A unit ends once, and no event of its own comes after."""
    ended: dict[JobId, Event] = {}
    for event in facts.events:
        job = getattr(event, "job_id", None)
        if job is None or isinstance(event, JobPosted):
            continue
        # What the checkpoints of its earlier attempts earn is told of after the end that pays them.
        if isinstance(event, CheckpointPaid) and job in ended and ended[job].log.tx_hash == event.log.tx_hash:
            continue
        if job in ended:
            name, last = type(event).__name__, type(ended[job]).__name__
            yield f"{_name(job)} has a {name} in block {event.log.block_number}, after its {last}"
        if _is_end(event):
            ended[job] = event


def _pays_as_the_model(facts: Facts) -> Iterator[str]:
    """Each end of a unit pays what the formulas say to each party, its kept checkpoints with it; a start its tip."""
    before: dict[JobId, Unit] = {}
    splits: defaultdict[int, list[Split]] = defaultdict(list)
    teller: tuple[int, Event] | None = None
    for at, event in enumerate(facts.events):
        if isinstance(event, Split) and event.controller == facts.jobs_contract:
            # A submitter's jobs share one lock: a split is of the unit that was told of last, in the same transaction.
            if teller is None or teller[1].log.tx_hash != event.log.tx_hash:
                yield f"the lock {event.key.hex()[24:36]} was split by a transaction that tells of no unit"
                continue
            splits[teller[0]].append(event)
            submitter = facts.posted[teller[1].job_id].submitter  # type: ignore[attr-defined]
            if event.key != formulas.lock_key(submitter):
                yield f"{_name(teller[1].job_id)} was paid from the lock {event.key.hex()[24:36]}"  # type: ignore[attr-defined]
        elif hasattr(event, "job_id") and hasattr(event, "word"):
            teller = at, event
    for at, event in enumerate(facts.events):
        job = getattr(event, "job_id", None)
        word = getattr(event, "word", None)
        if job is None or word is None:
            continue
        unit, terms = words.unpack_unit(word), facts.posted[job]
        told: Counter[str] = Counter()
        for split in splits[at]:
            for share in split.shares:
                account, amount = words.unpack_share(share)
                told[account] += amount
        due = _due(facts, event, terms, before.get(job), unit)
        if due is not None:
            parties, extra = due
            rest = Counter({account: told[account] - parties.get(account, 0) for account in told | parties})
            rest = Counter({account: amount for account, amount in rest.items() if amount})
            if list(rest.values()) != ([extra] if extra else []):
                kind = type(event).__name__
                yield f"{kind} of {_name(job)} paid {dict(told)}, the model {dict(parties)} and {extra} to a keeper"
        before[job] = unit


def _due(facts: Facts, event: Event, terms: Terms, before: Unit | None, unit: Unit) -> tuple[Counter[str], int] | None:
    """Return what an event has to pay to each party, and to whoever sent it; None for one that the model leaves out."""
    policy = words.unpack_policy(terms.policy)
    now = facts.seconds[event.log.block_number]
    if isinstance(event, Started | Submitted):
        paid = formulas.tip(terms) * (unit.tips - (before.tips if before is not None else 0))
        return Counter(), paid if isinstance(event, Started) else 0
    pays = isinstance(event, Settled | Finished | Closed) or (
        isinstance(event, Ruled) and event.verdict in (Verdict.CONFIRM, Verdict.VOID)
    )
    if pays and before is not None:
        if isinstance(event, Closed):
            pay, reward = formulas.pay_at_close(terms, before), formulas.settle_reward(terms, now - before.mark)
        elif isinstance(event, Finished):
            # Its new word tells when it was submitted, and what it used; the owner has the settler's pay too.
            done = replace(unit, state=State.SUBMITTED)
            pay, reward = formulas.pay_at_settle(terms, done), formulas.settle_reward(terms, 0)
        elif isinstance(event, Settled):
            since = formulas.settleable_from(terms, before)
            pay, reward = formulas.pay_at_settle(terms, before), formulas.settle_reward(terms, max(0, now - since))
        elif unit.state is State.SETTLED:
            # What its judge found instead stands in the new word.
            found = replace(before, outcome=unit.outcome, seconds=unit.seconds)
            pay, reward = formulas.pay_at_settle(terms, found), formulas.settle_reward(terms, 0)
        else:
            pay, reward = formulas.pay_at_void(terms, before), 0
        fee = formulas.fee_of(pay, policy)
        due: Counter[str] = Counter()
        due[facts.owners[int(before.node)]] += pay - fee
        due[facts.treasury] += fee
        due[terms.submitter] += formulas.unit_holds(terms, before) - pay - reward
        if unit.state is State.SETTLED:
            ran = replace(before, outcome=unit.outcome)
            if isinstance(event, Finished):
                ran = replace(unit, state=State.SUBMITTED)
                due[facts.owners[int(before.node)]] += reward
            for one in formulas.checkpoint_pays(terms, ran, _kept(facts, event)):
                # Of a node that left, the submitter keeps it.
                if int(one.node) in facts.owners:
                    due[facts.owners[int(one.node)]] += one.pay - one.fee
                    due[facts.treasury] += one.fee
                    due[terms.submitter] -= one.pay
        return due, 0 if isinstance(event, Finished) else reward
    # Of one lease, so what was locked is what the unit holds; the fee of its unlock too, where it waits.
    held = formulas.unit_holds(terms, before) if before is not None else formulas.escrow_at_post(terms)
    if isinstance(event, Unproven) or (isinstance(event, Ruled) and event.verdict == Verdict.REJECT):
        return Counter({terms.submitter: held}), 0
    if isinstance(event, Unlocked):
        fee = formulas.unlock_fee(terms)
        return Counter({terms.submitter: held - fee} if unit.state is State.CANCELLED else {}), fee
    if isinstance(event, Cancelled) and unit.state is State.CANCELLED:
        return Counter({terms.submitter: held}), 0
    if isinstance(event, Expired):
        reward = formulas.expire_reward(terms, unit, now - formulas.expirable_from(formulas.topped(terms, unit)))
        return Counter({terms.submitter: held - reward}), reward
    return None


def _kept(facts: Facts, end: Settled | Finished | Closed | Ruled) -> dict[int, Kept]:
    """Return by attempt the last checkpoint of each lost lease of a job before one of its ends, as its events tell."""
    last: dict[int, Kept] = {}
    kept: dict[int, Kept] = {}
    for event in facts.events:
        if event is end:
            break
        if isinstance(event, Checkpointed) and event.job_id == end.job_id:
            unit = words.unpack_unit(event.word)
            last[unit.attempts] = Kept(event.seconds, unit.rate, event.node, unit.resume)
        elif isinstance(event, Reclaimed | GaveUp) and event.job_id == end.job_id:
            unit = words.unpack_unit(event.word)
            if unit.state is State.OPEN and unit.attempts in last:
                kept[unit.attempts] = last[unit.attempts]
    return kept


def _lost(facts: Facts) -> Iterator[str]:
    """Every job that was posted has ended, by an event as in storage."""
    ended = {event.job_id for event in _ends(facts)}
    for job, unit in facts.units.items():
        if not unit.state.terminal:
            yield f"{_name(job)} is {unit.state.name}"
        elif job not in ended:
            yield f"{_name(job)} is {unit.state.name} without an event"


def _is_end(event: Event) -> bool:
    """Say whether an event ends its unit: most kinds that may do so may open it (again) instead."""
    return isinstance(event, ENDS) and words.unpack_unit(event.word).state.terminal


def _ends(facts: Facts) -> Iterator[Any]:
    return (event for event in facts.events if _is_end(event))


def _late(facts: Facts) -> Iterator[str]:
    """Every unit that somebody took has ended by its job's deadline."""
    taken = {event.job_id for event in facts.events if isinstance(event, Started)}
    ends = {event.job_id: facts.seconds[event.log.block_number] for event in _ends(facts)}
    now = max(facts.seconds.values(), default=0)
    for job in taken:
        late = ends.get(job, now) - facts.posted[job].deadline
        if late > 0:
            yield f"{_name(job)} was taken, and its end is {late} s after its deadline"


def _slashes(facts: Facts) -> Iterator[str]:
    """No honest node lost stake, a lease or its good name."""
    for event in facts.events:
        if isinstance(event, Slashed | Rejected | Reclaimed | NodeLapsed | Declined | GaveUp | Unproven):
            yield f"node {event.node}: {type(event).__name__} in block {event.log.block_number}"


def _spend(facts: Facts) -> Iterator[str]:
    """Nobody paid twice for one effect, for a revert, or above the cap of his settings."""
    effects: Counter[tuple[str, str, str]] = Counter()
    for one in facts.sent:
        if not one.ok and not lost_race(facts, one):
            yield f"{one.sender} paid for a call of {one.to} that reverted: {one.data[:10]}"
        if one.gas_price > MAX_GAS_PRICE:
            yield f"{one.sender} paid {one.gas_price} wei per gas"
        # A node that did not ack in time may be proposed again, and that beats are alike is their purpose.
        if one.to != facts.heartbeats and not one.data.startswith(PROPOSE):
            effects[one.sender, one.to, one.data] += one.ok
    for (sender, _, data), count in effects.items():
        if count > 1:
            yield f"{sender} paid {count} times for one call: {data[:10]}"


def lost_race(facts: Facts, one: Sent) -> bool:
    """Say whether somebody else's call of the same job was mined while this one was on its way, or its sender was shown
    another chain."""
    return one.sender in facts.stale or any(
        other.ok and other.job is not None and other.job == one.job and other.sender != one.sender
        for other in facts.sent
        if one.block - facts.race_blocks <= other.block <= one.block
    )


def _left(facts: Facts) -> Iterator[str]:
    """Nothing is left behind."""
    yield from facts.left


def _ready(facts: Facts) -> Iterator[str]:
    """A daemon that starts again does its first round soon."""
    for seconds in facts.ready:
        if seconds > READY_SECONDS:
            yield f"a daemon took {seconds:.0f} s to be ready again"


RULES = (_books, _ends_once, _pays_as_the_model, _lost, _late, _slashes, _spend, _left, _ready)


def _name(job: JobId) -> str:
    return f"job {job.hex()[:12]}"
