"""What a GPU would earn: exact by hand, on the real contracts, and by nobody's lies alone."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from hearth.base.errors import HearthError
from hearth.client.nodes.income import DAY, Costs, Figures, Lease, Offered, Past, Seen, _notes, income, middle, seen
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
    plain = Lease(NodeId(1), "submitter", 1, 1_000, 1_100, 1_000)
    return replace(plain, **changes)


def past(*leases: Lease, offered: tuple[Offered, ...] = (Offered(NodeId(1), 1, 1, 0),)) -> Past:
    """Of node 1 the owner is "owner1", and so on."""
    found = Past(market=None, vendor=NVIDIA, tier=TIER, leases=list(leases))  # type: ignore[arg-type]
    found.offered += offered
    found.owners = {node: f"owner{node}" for node in (*(one.node for one in offered), *(one.node for one in leases))}
    found.hands = {node: {owner} for node, owner in found.owners.items()}
    return found


def looked(found: Past, begin: int = 0, now: int = 10_000, beat: int = 10_000) -> Seen:
    return seen(found, [build.node(1, beat=beat)], begin, now, 900)


def asked(**changes: Any) -> Any:
    return {"middle": str(10 * 10**6), "middle_text": "x", "owners": 0, "top_owner_bps": None, **changes}


def noted(found: Seen, span: int = DAY, **asks: Any) -> str:
    return "\n".join(_notes(found, asked(**asks), asked(), span))


# ---- by hand ----


def test_middle__weights__is_where_half_of_them_is() -> None:
    assert middle([]) is None and middle([(5, 0)]) is None
    assert middle([(9, 1), (1, 1)]) == 1
    assert middle([(1, 1), (10**20, 3), (2, 3)]) == 2


def test_income__pay_gas_and_power__are_exact() -> None:
    # 10,000 s offered, 2,500 s busy, 10 wei a second: a quarter of a day at 10 is 216,000, less 5 %.
    runs = [lease(begin=at, end=at + 500, pay=5_000) for at in range(0, 2_500, 500)]
    found = looked(past(*runs))
    assert (found.offered, found.busy, found.lease_gas, found.rate) == (10_000, 2_500, 5 * LEASE_GAS, 10 * 10**6)
    gas = (288 * BEAT_GAS + 5 * LEASE_GAS * 86_400 // 10_000 + 0) * 10
    assert (5 * LEASE_GAS * 86_400) % 10_000 == 0
    assert income(found, 1, DAY, COSTS) == Figures(205_200, gas, gas, None, 205_200 - gas)
    # 500 W for a quarter of a day are 3 kWh; two of them bring twice as much, and beat once.
    two = income(found, 2, DAY, replace(COSTS, watts=500, kwh=7))
    both = (288 * BEAT_GAS + 2 * 5 * LEASE_GAS * 86_400 // 10_000) * 10
    assert two == Figures(410_400, both, both, 42, 410_400 - both - 42)
    month = income(found, 1, 30 * DAY, COSTS)
    assert month is not None and month.pay == 30 * 205_200
    # What a coin is worth nobody said: the gas is known in coin alone, and what is left is not known.
    assert income(found, 1, DAY, replace(COSTS, coin=0)) == Figures(205_200, gas, None, None, None)


def test_income__nothing_was_paid_or_offered__is_unknown_and_never_zero() -> None:
    idle = looked(past())
    assert (idle.offered, idle.busy, idle.rate) == (10_000, 0, None)
    absent = looked(past(lease(), offered=()))
    assert absent.offered == 0
    assert income(idle, 1, DAY, COSTS) is income(absent, 1, DAY, COSTS) is None


def test_seen__node_of_many_gpus__counts_once_and_is_busy_by_the_share_of_its_gpus() -> None:
    # 16 GPUs, 8 of which ran 100 s: as if one had been busy for 50 s, and had half of a lease.
    found = looked(past(lease(gpus=8), offered=(Offered(NodeId(1), 2, 8, 0),)))
    assert (found.offered, found.busy, found.rate) == (10_000, 50, 1_000 * 10**6 // 800)
    assert found.lease_gas == LEASE_GAS // 16


def test_seen__span__is_all_that_counts() -> None:
    found = looked(past(lease(), lease(begin=0, end=999), lease(begin=9_000, end=None, pay=None)), begin=1_050)
    assert (found.offered, found.busy) == (8_950, 50 + 1_000)
    assert (found.lease_gas, found.paid) == (LEASE_GAS, 1)


def test_seen__silent_node__offers_until_it_was_taken_for_dead_and_never_where_it_never_beat() -> None:
    assert looked(past(), beat=2_000).offered == 2_900
    assert looked(past(), beat=0).offered == 0
    for end, offered in ((500, 500), (9_000, 2_900)):
        ended = (Offered(NodeId(1), 1, 1, 0, end),)
        assert looked(past(offered=ended), beat=2_000).offered == offered
    # It has left, and the chain keeps no beat of it.
    left = build.node(1, operator="0x" + "00" * 20)
    assert seen(past(offered=ended), [left], 0, 10_000, 900).offered == 9_000


def test_seen__owners_own_jobs__are_left_out_and_counted() -> None:
    found = looked(past(lease(), lease(submitter="owner1", pay=10**12), lease(submitter="owner1", end=None, pay=None)))
    assert (found.busy, found.own, found.rate, found.lease_gas) == (100, 2, 10 * 10**6, LEASE_GAS)
    assert "left out: 2" in noted(found)


# ---- one node that lies, among honest ones ----


HONEST = range(1, 11)
CROOK = NodeId(99)


def honest(*more: Lease, offered: tuple[Offered, ...] = (), seconds: int = 1_000) -> Seen:
    """Ten nodes that offered one GPU for 10,000 s, ran one job of `seconds`, and were paid 10 wei a second."""
    jobs = [lease(node=NodeId(n), submitter=f"s{n}", begin=0, end=seconds, pay=10 * seconds) for n in HONEST]
    return looked(past(*jobs, *more, offered=(*(Offered(NodeId(n), 1, 1, 0) for n in HONEST), *offered)))


@pytest.mark.parametrize("size", [1, 63])
def test_seen__a_node_claims_many_slots_and_gpus__counts_as_one_node(size: int) -> None:
    claims = (Offered(CROOK, size, size, 0),)
    idle = honest(offered=claims)
    assert (idle.nodes, idle.offered, idle.busy) == (11, 110_000, 10_000)
    full = [lease(node=CROOK, gpus=size, begin=0, end=10_000, pay=1, submitter="wallet") for _ in range(size)]
    busy = honest(*full, offered=claims)
    assert (busy.offered, busy.busy, busy.rate) == (110_000, 20_000, 10 * 10**6)


def test_seen__lease_outlives_what_its_node_offered__is_busy_for_no_longer() -> None:
    for gpus, slots in ((1, 1), (63, 1), (63, 63)):
        found = honest(lease(node=CROOK, gpus=gpus, begin=0, end=None), offered=(Offered(CROOK, slots, gpus, 0, 10),))
        assert found.offered == 100_010 and 10_000 <= found.busy <= 10_010


def test_seen__nodes_with_absurd_pay__move_no_rate_unless_they_are_more_than_half() -> None:
    def fakes(count: int, **changes: Any) -> list[Lease]:
        return [lease(node=NodeId(100 + n), submitter=f"w{n}", begin=0, **changes) for n in range(count)]

    assert honest().rate == 10 * 10**6
    for count in (3, 9):
        assert honest(*fakes(count, gpus=63, end=1_000, pay=10**9 * 63)).rate == 10 * 10**6
        assert honest(*fakes(count, end=9_000, pay=10**15)).rate == 10 * 10**6
        assert honest(*fakes(count, end=1, pay=10**15)).rate == 10 * 10**6
    # A submitter's address costs nothing, so none is weighed by: a thousand of them have one node between them.
    wallets = [lease(node=CROOK, submitter=f"w{n}", begin=0, end=900, pay=10**15) for n in range(1_000)]
    assert honest(*wallets).rate == 10 * 10**6
    rate = honest(*fakes(11, end=1_000, pay=10**9)).rate
    assert rate == 10**9 // 1_000 * 10**6


def test_seen__many_short_runs__a_node_costs_no_more_gas_than_the_middle_one() -> None:
    short = [lease(node=CROOK, submitter="wallet", begin=0, end=1, pay=1) for _ in range(1_000)]
    found = honest(*short, offered=(Offered(CROOK, 1, 1, 0),))
    assert (honest().lease_gas, found.lease_gas, found.rate) == (10 * LEASE_GAS, 11 * LEASE_GAS, 10 * 10**6)


def test_notes__one_who_has_more_than_half__is_named() -> None:
    assert noted(honest()) == ""
    long = honest(lease(node=CROOK, submitter="wallet", begin=0, end=20_000), offered=(Offered(CROOK, 1, 1, 0),))
    assert noted(long).splitlines() == [
        "one owner's nodes had 66 % of the time that was paid",
        "one submitter's jobs had 66 % of the time that was paid",
    ]
    many = past(lease(), lease(node=NodeId(2)), offered=tuple(Offered(NodeId(n), 1, 1, 0) for n in range(1, 11)))
    many.owners |= {NodeId(n): "big" for n in range(3, 11)}
    assert "one owner's nodes had 80 % of the time that was offered" in noted(looked(many))
    assert "one owner had 90 % of the nodes that ask now" in noted(honest(), owners=2, top_owner_bps=9_000)
    assert "had" not in noted(honest(), owners=1, top_owner_bps=10_000)
    better = _notes(honest(), asked(), asked(owners=2, top_owner_bps=6_600), DAY)
    assert better == ["one owner had 66 % of the nodes with better GPUs"]


def test_notes__few_made_it_or_it_is_above_the_asks__is_said() -> None:
    alone = noted(looked(past(lease())), DAY - 1)
    assert "(1 and 1)" in alone and "less than a day" in alone and "had 100 %" not in alone
    assert "a run paid more than such nodes ask now" in noted(honest(), middle=str(10**7 - 1))


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


def test_past__node_changes_hands__is_its_last_owners_alone() -> None:
    market, owners = Logs(), [f"0x{n:040x}" for n in range(1, 4)]
    card = pack_offer(CARDS)
    market.mine("NodeRegistered", node=3, owner=owners[0], operator=owners[0], offer=card)
    for owner in owners[1:]:
        market.mine("OwnerChanged", node=3, owner=owner)
    found = market.past()
    assert found.owners == {3: owners[-1]} and found.hands == {3: set(owners)}


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
    assert report["rate"] == str(ASK) and report["busy_seconds"] == ran // 2
    assert report["asks"] == {
        "nodes": 2,
        "owners": 2,
        "top_owner_bps": 5_000,
        "gpus": 4,
        "lowest": str(ASK),
        "middle": str(ASK),
        "lowest_text": "0.09 ETH/h",
        "middle_text": "0.09 ETH/h",
    }
    assert (report["better"]["nodes"], report["better"]["gpus"]) == (1, 4)
    # One of two nodes was busy, with one of its two slots.
    offered, busy, day = report["offered_seconds"], ran // 2, report["day"]
    assert day is not None and 3 * report["span"] < 2 * offered < 4 * report["span"]
    assert report["busy_bps"] == busy * 10_000 // offered
    assert report["shared_bps"] == busy * 10_000 // (offered + report["span"])
    pay = ASK * 3 * busy * DAY // (10**6 * offered)
    assert int(day["pay"]) == pay - pay * world.policy.fee_bps // 10_000
    price = market.chain.fees().price
    gas = (DAY * 3 // 900 * BEAT_GAS + -(-LEASE_GAS * 3 * DAY // offered)) * price
    power = -(-(10**15) * 500 * 3 * busy * DAY // (3_600_000 * offered))
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


def test_estimate__one_node_lies_on_the_real_contracts__moves_it_no_more_than_one_node(market: RealMarket) -> None:
    world, dev = market.world, market.world.evm.account
    nodes = [world.register(owner=dev(f"o{n}"), operator=dev(f"o{n}"), slots=1) for n in range(4)]
    for node in nodes:
        run(market, node, 100)

    def beat() -> None:
        for n, node in enumerate(nodes):
            world.nodes.send.beat(node, sender=dev(f"o{n}"))

    beat()
    before = market.client.workers.estimate(CARD)
    crook, dear = dev("crook"), 63 * 2 * ASK
    bad = world.register(owner=crook, operator=crook, gpu_count=63, slots=63, ask=dear)
    posted = world.post(billing=Billing.METERED, submitter=dev("wallet"), max_seconds=4_000, ceiling=dear)
    market.pass_time(world.policy.claim_ramp)
    beat()
    asks = market.client.workers.estimate(CARD)["asks"]
    assert (asks["gpus"], asks["nodes"]) == (63 * 63 + 4, 5)
    assert asks["middle"] == str(ASK)
    world.claim(posted, bad, sender=crook)
    world.nodes.send.exit_start(bad, sender=crook)
    began = market.client.workers.estimate(CARD)
    for _ in range(4):
        market.pass_time(300)
        beat()
    world.submit(posted, sender=crook)
    world.settle(posted)
    after = market.client.workers.estimate(CARD)
    assert (after["rate"], after["units"]) == (str(ASK), 5)
    # It is busy for no longer than it offered, before it began to leave.
    assert after["busy_seconds"] - before["busy_seconds"] <= began["span"] - before["span"] < 60
    # Four honest nodes went on, the one that left offers no more.
    grown = after["offered_seconds"] - began["offered_seconds"]
    assert 0 < grown <= 4 * (after["span"] - began["span"])


def test_estimate__node_falls_silent_and_leaves__offers_no_more_than_before_it_left(market: RealMarket) -> None:
    world, dev = market.world, market.world.evm.account
    silent = world.register(owner=dev("silent"), operator=dev("silent"))
    market.pass_time(20_000)
    before = market.client.workers.estimate(CARD)["offered_seconds"]
    world.nodes.send.exit_start(silent, sender=dev("silent"))
    assert market.client.workers.estimate(CARD)["offered_seconds"] == before <= 901


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
