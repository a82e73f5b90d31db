"""What a GPU would earn: exact by hand, on the real contracts, and by nobody's lies alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from hearth.base.errors import HearthError
from hearth.client.nodes.income import DAY, Costs, Lease, Offered, Past, Seen, _notes, income, middle, seen
from hearth.market.events import EVENTS, Settled, Started, Submitted, topic_of
from hearth.protocol.gas import BEAT_GAS, LEASE_GAS
from hearth.protocol.gpu_tiers import AMD, NVIDIA, TIERS
from hearth.protocol.types import Billing, NodeId, Offer, Outcome, Runtime, State, Unit
from hearth.protocol.words import pack_offer, pack_unit
from tests.kit import build
from tests.kit.evm_chain import IN_TOKEN, RealMarket
from tests.kit.fake_chain import Event
from tests.kit.nonsense import nonsense
from tests.kit.scripted import ScriptedMarket
from tests.market.test_events import OWN, own_log
from tools import schemas
from worker.commands import _estimate_lines

CARD = "rtx-4060-ti"
TIER = TIERS[CARD]
ASK = 25 * 10**18
"""A slot's ask of `World`: 25e12 wei a second."""
COSTS = Costs(fee_bps=500, gas_price=10, coin=10**18, dead_after=900)


CARDS = Offer(Runtime.NVIDIA, TIER, 1, slots=1)
UNITS = (Started, Submitted, Settled)


def lease(**changes: Any) -> Lease:
    """A run of 100 s for 1,000 on one GPU."""
    plain = Lease(NodeId(1), "owner", "submitter", 1, 1_000, 1_100, 1_000)
    return replace(plain, **changes)


def past(*leases: Lease, offered: tuple[Offered, ...] = (Offered(NodeId(1), 1, 1, 0),)) -> Past:
    found = Past(market=None, vendor=NVIDIA, tier=TIER, leases=list(leases))  # type: ignore[arg-type]
    found.offered += offered
    found.hands = {node: {"owner"} for node in (*(one.node for one in offered), *(one.node for one in leases))}
    return found


def looked(found: Past, begin: int = 0, now: int = 10_000, beat: int = 10_000) -> Seen:
    return seen(found, [build.node(1, beat=beat)], begin, now, 900)


# ---- by hand ----


def test_middle__weights__is_where_half_of_them_is() -> None:
    assert middle([]) is None and middle([(5, 0)]) is None
    assert middle([(9, 1), (1, 1)]) == 1
    assert middle([(1, 1), (10**20, 3), (2, 3)]) == 2


def test_income__pay_gas_and_power__are_exact() -> None:
    # 10,000 s offered, 2,500 s busy, 10 wei a second: a quarter of a day at 10 is 216,000, less 5 %.
    runs = [lease(begin=at, end=at + 500, pay=5_000) for at in range(0, 2_500, 500)]
    found = looked(past(*runs))
    assert (found.offered, found.busy, found.begun, found.rate) == (10_000, 2_500, 5, 10 * 10**6)
    gas = (288 * BEAT_GAS + 5 * LEASE_GAS * 86_400 // 10_000 + 0) * 10
    assert (5 * LEASE_GAS * 86_400) % 10_000 == 0
    got = income(found, 1, DAY, COSTS)
    assert got == {"pay": 205_200, "gas_wei": gas, "gas": gas, "power": None, "left": 205_200 - gas}
    # 500 W for a quarter of a day are 3 kWh; two of them bring twice as much, and beat once.
    two = income(found, 2, DAY, replace(COSTS, watts=500, kwh=7))
    assert (two["pay"], two["power"]) == (410_400, 42)
    assert two["gas"] == (288 * BEAT_GAS + 2 * 5 * LEASE_GAS * 86_400 // 10_000) * 10
    assert two["left"] == 410_400 - two["gas"] - 42
    assert income(found, 1, 30 * DAY, COSTS)["pay"] == 30 * 205_200
    # What a coin is worth nobody said: the gas is known in coin alone, and what is left is not known.
    unknown = income(found, 1, DAY, replace(COSTS, coin=0))
    assert (unknown["gas_wei"], unknown["gas"], unknown["left"]) == (gas, None, None)


def test_income__nothing_was_paid_or_offered__is_unknown_and_never_zero() -> None:
    empty = dict.fromkeys(("pay", "gas_wei", "gas", "power", "left"))
    idle = looked(past())
    assert (idle.offered, idle.busy, idle.rate) == (10_000, 0, None)
    assert income(idle, 1, DAY, COSTS) == empty
    absent = looked(past(lease(), offered=()))
    assert absent.offered == 0 and income(absent, 1, DAY, COSTS) == empty


def test_seen__slots_of_many_gpus__count_for_each_gpu() -> None:
    found = looked(past(lease(gpus=8), offered=(Offered(NodeId(1), 2, 8, 0),)))
    assert (found.offered, found.busy, found.rate) == (160_000, 800, 1_000 * 10**6 // 800)


def test_seen__span__is_all_that_counts() -> None:
    found = looked(past(lease(), lease(begin=0, end=999), lease(begin=9_000, end=None, pay=None)), begin=1_050)
    assert (found.offered, found.busy) == (8_950, 50 + 1_000)
    assert (found.begun, len(found.paid)) == (1, 1)


def test_seen__silent_node__offers_until_it_was_taken_for_dead_and_never_where_it_never_beat() -> None:
    assert looked(past(), beat=2_000).offered == 2_900
    assert looked(past(), beat=0).offered == 0
    ended = (Offered(NodeId(1), 1, 1, 0, 500),)
    assert looked(past(offered=ended), beat=2_000).offered == 500


def test_seen__owners_own_jobs__are_left_out_and_counted() -> None:
    found = looked(past(lease(), lease(submitter="owner", pay=10**12), lease(submitter="owner", end=None, pay=None)))
    assert (found.busy, found.own, found.rate, found.begun) == (100, 2, 10 * 10**6, 1)


def test_notes__self_dealing_by_another_wallet__moves_no_figure_by_short_runs_and_is_named_by_long_ones() -> None:
    honest = [lease(submitter=f"s{n}", owner=f"o{n}", node=NodeId(n)) for n in range(1, 5)]
    short = [lease(submitter=f"fake{n}", begin=0, end=1, pay=10**15) for n in range(100)]
    found = looked(past(*honest, *short))
    # 100 runs of a second at an absurd price against 400 honest seconds.
    assert found.rate == 10 * 10**6
    asks: Any = {"middle": str(10 * 10**6), "middle_text": "x"}
    assert not any("may be one person" in note for note in _notes(found, asks, DAY))
    long = looked(past(*honest, lease(submitter="fake", owner="crook", begin=0, end=900, pay=10**15)))
    assert long.rate is not None and long.rate > 10**9 * 10
    said = "\n".join(_notes(long, asks, DAY))
    assert "one owner's nodes had 69 %" in said and "one submitter's jobs had 69 %" in said
    assert "a run paid more than such nodes ask now" in said
    alone = "\n".join(_notes(looked(past(lease())), asks, DAY - 1))
    assert "(1 and 1)" in alone and "less than a day" in alone and "had 100 %" not in alone


# ---- strangers' logs ----


class Logs(ScriptedMarket):
    def mine(self, name: str, **values: Any) -> None:
        log = own_log(name, **values)
        self.chain.mine([Event(self.network.contracts[OWN[name]], log.topics, log.data)])

    def past(self, vendor: Any = NVIDIA, tier: int = TIER) -> Past:
        found = Past(self.market, vendor, tier)
        found.read(0, self.chain.head().number)
        return found


def test_past__node_that_changes_and_leaves__offers_what_it_had_when_it_had_it() -> None:
    market, owner = Logs(), "0x" + "aa" * 20
    card = Offer(runtimes=Runtime.NVIDIA, tier=TIER, gpu_count=2, slots=3)
    market.mine("NodeRegistered", node=3, owner=owner, operator=owner, offer=pack_offer(card))
    began = market.chain.head().timestamp
    market.chain.mine(timestamp=began + 100)
    market.mine("ExitStarted", node=3)
    market.chain.mine(timestamp=began + 200)
    market.mine("ExitCancelled", node=3)
    market.chain.mine(timestamp=began + 300)
    market.mine("OfferChanged", node=3, offer=pack_offer(replace(card, runtimes=Runtime.AMD)))
    slots = [(one.slots, one.gpus, one.begin - began, one.end and one.end - began) for one in market.past().offered]
    assert slots == [(3, 2, 0, 101), (3, 2, 201, 301)]
    ((node, vendors),) = ((one.node, one.end) for one in market.past(AMD).offered)
    assert (node, vendors) == (3, None)
    assert not market.past(tier=TIER + 1).offered


def test_past__lost_returned_and_rejected_leases__are_no_busy_time_and_no_pay() -> None:
    ends: dict[str, Unit] = {
        "Reclaimed": Unit(state=State.OPEN),
        "Declined": Unit(state=State.OPEN),
        "GaveUp": Unit(state=State.REFUNDED),
        "Ruled": Unit(state=State.OPEN, outcome=Outcome.OK),
    }
    for name, unit in ends.items():
        market = Logs()
        terms = build.terms()
        market.mine("NodeRegistered", node=3, offer=pack_offer(CARDS))
        market.chain.mine([market.posted(terms)])
        job = market.market.job_id(terms)
        running = Unit(state=State.RUNNING, node=NodeId(3), rate=5, started=10, mark=20)
        market.mine("Started", job_id=job, index=0, node=3, word=pack_unit(running))
        assert len(market.past().leases) == 1
        market.mine(name, job_id=job, index=0, node=3, word=pack_unit(unit), pay=0)
        found = market.past()
        assert (len(found.leases), len(found.lost)) == (0, 1), name


@pytest.mark.parametrize("seed", range(4))
def test_past__logs_that_no_contract_writes__are_stepped_over_and_counted(seed: int) -> None:
    market, dice, terms = Logs(), random.Random(seed), build.terms()
    job, node = market.market.job_id(terms), own_log("NodeRegistered", node=3, offer=pack_offer(CARDS))
    logs = [own_log(name, **({"job_id": job} if name != "JobPosted" else {})) for name in sorted(EVENTS) * 2]
    dice.shuffle(logs)
    post, kinds = market.posted(terms), {topic_of(one) for one in UNITS}
    real = [(list(log.topics), log.data) for log in logs if log.topics[0] in kinds]
    real.append((list(post.topics), post.data))
    wild = [Event(market.network.jobs, tuple(topics), data) for topics, data in nonsense(job, real, seed)]
    placed = [Event(market.network.jobs, log.topics, log.data) for log in logs]
    placed += [Event(market.network.nodes, log.topics, log.data) for log in (node, *logs)]
    market.chain.mine([*placed, post, *wild, *placed])
    found = market.past()
    assert found.offered and market.market.strays
    assert looked(found, now=market.chain.head().timestamp).offered >= 0


# ---- on the real contracts ----


def run(market: RealMarket, node: NodeId, seconds: int, **terms: Any) -> tuple[int, int]:
    """Let a unit run and be paid; return its seconds and what was paid for it."""
    world = market.world
    operator = world.node(node).operator
    posted = world.post(billing=Billing.METERED, **terms)
    world.nodes.send.beat(node, sender=operator)
    market.pass_time(world.policy.claim_ramp)
    world.claim(posted, node, sender=operator)
    market.pass_time(seconds)
    world.submit(posted, sender=operator)
    world.settle(posted)
    unit = world.unit(posted)
    ran = unit.submitted_at - unit.started
    assert unit.rate == ASK
    return ran, ASK // 10**6 * ran


def test_estimate__jobs_that_ran__is_exact_on_the_real_contracts(market: RealMarket) -> None:
    world, dev = market.world, market.world.evm.account
    first = world.register(slots=2)
    other = world.register(owner=dev("other"), operator=dev("other"), gpu_count=2, slots=1, ask=2 * ASK)
    world.register(owner=dev("far"), operator=dev("far"), tier=TIER + 100)
    paid = [run(market, first, 100), run(market, first, 50, submitter=market.dev)]
    own = run(market, first, 70, submitter=world.owner.lower())
    world.nodes.send.beat(other, sender=dev("other"))
    market.pass_time(10)
    report = market.client.workers.estimate("RTX 4060 Ti", count=3, watts=500, kwh="0.001")
    schemas.validate(report)
    ran = sum(seconds for seconds, _ in paid)
    assert paid[0][0] >= 100 and own[0] >= 70
    assert (report["gpu"], report["gpus"], report["units"], report["own_units"]) == (CARD, 3, 2, 1)
    assert (report["paid_owners"], report["paid_submitters"], report["nodes"], report["owners"]) == (1, 2, 2, 2)
    assert report["rate"] == str(ASK) and report["busy_gpu_seconds"] == ran
    assert report["asks"] == {
        "nodes": 2,
        "owners": 2,
        "gpus": 4,
        "lowest": str(ASK),
        "middle": str(ASK),
        "lowest_text": "0.09 ETH/h",
        "middle_text": "0.09 ETH/h",
    }
    assert (report["better"]["nodes"], report["better"]["gpus"]) == (1, 4)
    offered, day = report["offered_gpu_seconds"], report["day"]
    assert day is not None and 3 * report["span"] < offered < 4 * report["span"]
    assert report["busy_bps"] == ran * 10_000 // offered
    assert report["shared_bps"] == ran * 10_000 // (offered + 3 * report["span"])
    pay = ASK * 3 * ran * DAY // (10**6 * offered)
    assert int(day["pay"]) == pay - pay * world.policy.fee_bps // 10_000
    price = market.chain.fees().price
    gas = (DAY * 3 // 900 * BEAT_GAS + -(-LEASE_GAS * 2 * 3 * DAY // offered)) * price
    power = -(-(10**15) * 500 * 3 * ran * DAY // (3_600_000 * offered))
    assert (day["gas_wei"], day["gas"], day["power"]) == (str(gas), str(gas), str(power))
    assert day["left"] == str(int(day["pay"]) - gas - power)
    assert "units that owners ran on nodes of their own are left out: 1" in report["notes"]


def test_estimate__no_node_or_no_job__has_no_figure_and_says_so(market: RealMarket) -> None:
    nothing = market.client.workers.estimate(CARD)
    schemas.validate(nothing)
    for name in ("busy_bps", "shared_bps", "rate", "top_owner_bps", "top_submitter_bps", "day", "month"):
        assert nothing[name] is None, name
    assert nothing["asks"]["lowest"] is None and "no node offered" in nothing["notes"][0]
    market.world.register(slots=2)
    market.pass_time(100)
    idle = market.client.workers.estimate(CARD)
    assert (idle["nodes"], idle["busy_bps"], idle["rate"], idle["day"]) == (1, 0, None, None)
    assert idle["asks"]["lowest"] == str(ASK) and "would be invented" in idle["notes"][0]
    # Another vendor's card of the same key, or a better one of ours, is not this one.
    assert market.client.workers.estimate("mi210")["nodes"] == 0
    assert market.client.workers.estimate("rtx-3060")["better"]["nodes"] == 1


@IN_TOKEN
def test_estimate__token__takes_the_gas_off_once_somebody_says_what_a_coin_is_worth(market: RealMarket) -> None:
    node = market.world.register(slots=1)
    run(market, node, 100)
    unknown, known = (market.client.workers.estimate(CARD, coin=coin)["day"] for coin in (None, "2"))
    assert unknown is not None and known is not None
    assert (unknown["gas"], unknown["left"], unknown["pay"]) == (None, None, known["pay"])
    assert int(known["gas"] or 0) == 2 * int(unknown["gas_wei"]) and "gas" not in unknown["text"]
    assert known["left"] == str(int(known["pay"]) - int(known["gas"] or 0))


@pytest.mark.parametrize(
    ("given", "code", "said", "hint"),
    [
        ({"gpu": "rtx-4091"}, "UNKNOWN_TIER", '"rtx-4091" is no GPU model', "rtx-4090"),
        ({"gpu": "banana"}, "UNKNOWN_TIER", "is no GPU model", "hearth offers lists the models"),
        ({"gpu": CARD, "watts": 350}, "USAGE", "without kwh", "0.0001 ETH"),
        ({"gpu": CARD, "kwh": "1"}, "USAGE", "without watts", "0.0001 ETH"),
        ({"gpu": CARD, "watts": 0, "kwh": "1"}, "USAGE", "watts=0 is not from 1", "hearth worker estimate --help"),
        ({"gpu": CARD, "count": 0}, "USAGE", "count=0", "--help"),
        ({"gpu": CARD, "days": -1}, "USAGE", "days -1", "--help"),
        ({"gpu": CARD, "watts": 1, "kwh": "0.30 EUR"}, "BAD_AMOUNT", "pays in ETH", "0.60 ETH"),
        ({"gpu": CARD, "coin": "3000"}, "USAGE", "says nothing", "leave coin out"),
    ],
)
def test_estimate__bad_input__is_refused_with_what_to_write(
    market: RealMarket, given: dict[str, Any], code: str, said: str, hint: str
) -> None:
    with pytest.raises(HearthError) as caught:
        market.client.workers.estimate(**given)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert said in caught.value.message and hint in caught.value.hint


def test_lines__every_figure_has_its_ground_and_what_is_unknown_its_reason(market: RealMarket) -> None:
    lines = _estimate_lines(market.client.workers.estimate(CARD))
    assert lines[1:3] == ["asks now         no live node", "better GPUs ask  no live node"]
    assert lines[-2].startswith("note: no node offered this GPU") and "next: hearth offers" in lines[-1]
    run(market, market.world.register(slots=1), 100)
    text = "\n".join(_estimate_lines(market.client.workers.estimate(CARD, watts=300, kwh="0.1")))
    for said in (
        "0.09 ETH/h at least, 0.09 ETH/h in the middle, by 1 GPU of 1 live node of 1 owner",
        "0.09 ETH/h of a run, the middle of 1 unit that 1 submitter paid 1 owner",
        "of the time that 1 node of 1 owner offered",
        "less the market's fee of 5 %",
        "300 W a GPU, while it is busy",
        "note: so few owners and submitters (1 and 1)",
    ):
        assert said in text
    assert "power is not in it" in "\n".join(_estimate_lines(market.client.workers.estimate(CARD)))


@IN_TOKEN
def test_lines__gas_of_unknown_worth__leaves_no_profit(market: RealMarket) -> None:
    run(market, market.world.register(slots=1), 100)
    lines = _estimate_lines(market.client.workers.estimate(CARD))
    assert any(line.startswith("gas ") and " ETH " in line for line in lines)
    assert any(line.split()[:3] == ["left", "-", "-"] and "--coin AMOUNT" in line for line in lines)
