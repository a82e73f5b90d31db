"""The keeper's loop on a real anvil: what it reads, sends, counts and says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import ChainError, NotFoundError, StorageError
from hearth.chain.port import Block, Call, Fees, Log
from hearth.chain.rpc import RpcChain
from hearth.chain.tx_journal import TxState
from hearth.protocol import formulas, units
from hearth.protocol.parents import Condition
from hearth.protocol.types import JobId, NodeId, State, Terms, TermsFlag
from keeper.actions import Propose
from keeper.health import KeeperHealth
from keeper.loop import Keeper
from keeper.report import explain, work
from keeper.status import Cycle, read_status
from tests.kit.anvil import need_anvil
from tests.kit.disks import MIB, fill, small_disk
from tests.kit.evm import CHAIN_ID
from tests.kit.liars import Asked, lying
from tests.kit.live import LiveMarket
from tests.kit.nonsense import emit, nonsense
from tests.kit.world import ETHER
from tools import schemas

pytestmark = pytest.mark.net


@pytest.fixture
def market(tmp_path: Path) -> Iterator[LiveMarket]:
    need_anvil()
    live = LiveMarket(tmp_path)
    yield live
    live.close()


def outcomes(cycle: Cycle) -> list[tuple[str, str]]:
    return [(one["action"], one["outcome"]) for one in cycle.outcomes]


def count(keeper: Keeper, name: str, **labels: str) -> float:
    return keeper.metrics.registry.get_sample_value(name, labels) or 0.0


def post(market: LiveMarket, **overrides: Any) -> Terms:
    return market.world.post(match_window=12, flags=TermsFlag.NEWCOMERS, **overrides)


# ---- doing the work ----


def test_cycle__matched_job__is_proposed_settled_and_paid_for(market: LiveMarket) -> None:
    world = market.world
    node = world.register()
    terms = post(market)
    keeper = market.keeper()
    keeper.start()

    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    best = world.best(terms)
    assert (best.node, best.payee) == (node, market.address)
    market.evm.catch_up()
    assert outcomes(keeper.cycle()) == []  # its own proposal stands

    market.warp(13)
    world.ack(terms)
    assert world.credit(market.address) == formulas.tip(terms)
    world.submit(terms)
    assert outcomes(keeper.cycle()) == [("settle", "mined")]
    assert world.state(terms) == State.SETTLED

    last = keeper.cycle()
    assert (last.said, outcomes(last)) == ([], [])
    told = read_status(keeper.settings.home)
    schemas.validate(told)
    earned = world.credit(market.address)
    assert earned >= formulas.tip(terms) + formulas.settle_reward(terms, 0)
    assert told["profit_and_loss"]["rewards"] == str(earned)
    assert told["profit_and_loss"]["mined"] == {"propose": 1, "settle": 1}
    spent = 10 * ETHER - market.evm.balance(market.address)
    assert told["profit_and_loss"]["gas_wei"] == str(spent)
    assert told["profit_and_loss"]["profit"] == str(earned - spent)
    assert told["ready"] is True


def test_cycle__chain_has_changed_its_id__a_job_of_before_is_proposed_and_settled(market: LiveMarket) -> None:
    world = market.world
    world.register()
    terms = post(market)
    market.evm.rpc("anvil_setChainId", CHAIN_ID + 1)
    network = market.network(chain_id=CHAIN_ID + 1, deployed_chain_id=CHAIN_ID)
    keeper = market.keeper(network=network, port=RpcChain([market.url], chain_id=network.chain_id))
    keeper.start()
    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    market.warp(13)
    world.ack(terms)
    world.submit(terms)
    assert outcomes(keeper.cycle()) == [("settle", "mined")]
    assert world.state(terms) == State.SETTLED
    with pytest.raises(ChainError, match="deployed_chain_id"):
        market.keeper(dry=True, network=replace(network, deployed_chain_id=None), port=keeper.market.port).start()


def test_cycle__proposals_that_name_the_keeper__are_its_own_where_its_journal_sent_them_also_after_a_restart(
    market: LiveMarket,
) -> None:
    world = market.world
    node = world.register(slots=8)
    mine, others = post(market, keeper_fee=10**15), post(market, salt=2)
    world.propose(others, node, sender=world.stranger, payee=market.address)
    keeper = market.keeper()
    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    market.evm.catch_up()

    def own(some: Keeper) -> dict[JobId, bool]:
        said = some.cycle()
        return {row.id: row.units[0].own for row in said.snapshot.jobs}

    expected = {world.id_of(mine): True, world.id_of(others): False}
    assert own(keeper) == expected
    assert keeper.sender is not None
    keeper.sender.journal.close()
    assert own(market.keeper()) == expected


def test_cycle__array__proposes_one_lease_per_free_slot_in_one_block(market: LiveMarket) -> None:
    world = market.world
    world.register()  # four slots
    terms = post(market, units=1 << 20)
    keeper = market.keeper()
    market.evm.rpc("evm_setAutomine", False)
    market.evm.rpc("evm_setIntervalMining", 1)
    try:
        cycle = keeper.cycle()
    finally:
        market.evm.rpc("evm_setIntervalMining", 0)
        market.evm.rpc("evm_setAutomine", True)
    assert outcomes(cycle) == [("propose", "mined")] * 4
    proposed = [one for one in cycle.said if isinstance(one, Propose)]
    market.evm.catch_up()
    assert world.header(terms).touched == 4
    for action in proposed:
        assert world.best(terms, action.index).key == action.key


def test_cycle__array_of_a_node_that_lets_lapse__costs_one_proposal_and_then_rests(market: LiveMarket) -> None:
    """The profit test: a submitter and a node in league, who pay nothing for a lapse, draw proposals from a keeper."""
    world = market.world
    node = world.register()
    terms = post(market, units=1 << 20, keeper_fee=10**16)
    work: dict[str, Any] = {"jitter": "0s", "latency": "0s", "max_loss": "0"}
    keeper, proposed = market.keeper(work=work), 0
    for _ in range(8):
        proposed += len([one for one in outcomes(keeper.cycle()) if one == ("propose", "mined")])
        market.warp(10)
    assert proposed == 1, "whatever else could be proposed while nobody has acked one"
    last = keeper.cycle()
    until = world.unit(terms).window_end + world.policy.ack_time + 60
    why = f"node {node} let 1 more of our proposals lapse than it acked: none until {until}"
    assert {"id": f"node {node}", "why": why} in keeper.status()["skips"]
    assert (count(keeper, "hearth_keeper_resting", what="node"), outcomes(last)) == (1, [])
    assert count(keeper, "hearth_keeper_resting", what="job") == 0

    market.evm.catch_up()
    market.warp(until - market.evm.now)
    other = market.keeper(work=work, dry=True, home="restarted")
    assert len(other.cycle().said) == 2, "what it lost is known to a keeper that has just started, as is its payee"
    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    market.warp(13)
    world.ack(terms, 1)
    ready = keeper.cycle()
    assert count(keeper, "hearth_keeper_resting", what="node") == 0
    assert outcomes(ready) == [("propose", "mined")], "an ack ends it"


def test_cycle__silent_node__is_reclaimed_and_recorded(market: LiveMarket) -> None:
    world = market.world
    node = world.register()
    terms = world.post()
    world.claim(terms, node)
    keeper = market.keeper()
    assert outcomes(keeper.cycle()) == []
    market.warp(901)
    assert outcomes(keeper.cycle()) == [("check_liveness", "mined"), ("reclaim", "mined")]
    market.evm.catch_up()
    assert world.state(terms) == State.OPEN
    assert world.credit(market.address) > 0
    assert not [one for one in keeper.cycle().outcomes if one["action"] == "reclaim"]


def test_cycle__several_submitted__settles_them_in_one_transaction(market: LiveMarket) -> None:
    world = market.world
    node = world.register()
    several = [world.post(flags=TermsFlag.NEWCOMERS) for _ in range(3)]
    for terms in several:
        world.claim(terms, node)
        world.submit(terms)
    assert outcomes(market.keeper().cycle()) == [("settle", "mined")]
    assert {world.state(terms) for terms in several} == {State.SETTLED}


def test_cycle__job_past_its_deadline__expires_it(market: LiveMarket) -> None:
    world = market.world
    terms = world.post(deadline=market.evm.now + 1_500)
    keeper = market.keeper()
    assert outcomes(keeper.cycle()) == []
    market.warp(1_000)
    assert outcomes(keeper.cycle()) == [("expire", "mined")]
    assert world.state(terms) == State.EXPIRED


@pytest.mark.parametrize(("outcome", "units"), [(1, 1), (1, 3), (2, 1), (2, 3)])
def test_cycle__job_whose_parent_ends__is_opened_or_refunded_for_a_fee(
    market: LiveMarket, outcome: int, units: int
) -> None:
    world = market.world
    node = world.register()
    parent = world.post()
    child = world.post_after((parent, Condition.SUCCESS), units=units, match_window=12, keeper_fee=10**15)
    name = f"0x{world.id_of(child).hex()}/{'0' if units == 1 else 'all'}"
    world.claim(parent, node)
    keeper = market.keeper()
    waits = {"id": name, "why": f"waits for 0x{world.id_of(parent).hex()}"}
    assert outcomes(keeper.cycle()) == [] and waits in keeper.status()["skips"]
    market.evm.catch_up()
    world.submit(parent, outcome=outcome)
    assert outcomes(keeper.cycle()) == [("settle", "mined")]
    before = world.credit(market.address), world.credit(world.submitter)
    assert [row["does"] for row in work(market.keeper(dry=True, home="second"))["work"]] == ["unlock"]
    assert outcomes(keeper.cycle()) == [("unlock", "mined")]
    gained = world.credit(market.address) - before[0]
    refund = world.credit(world.submitter) - before[1]
    whole = formulas.escrow_at_post(child)
    assert (gained, refund) == (formulas.unlock_fee(child), 0 if outcome == 1 else whole - gained)
    after = keeper.cycle()
    if outcome == 1:
        assert ("propose", "mined") in outcomes(after)
    else:
        assert (outcomes(after), len(keeper.reader.index)) == ([], 0)
    assert keeper.ledger.mined["unlock"] == 1
    assert count(keeper, "hearth_keeper_actions_total", action="unlock", outcome="mined") == 1


class Words:
    """The market's words of jobs as a keeper asks for them: how many at once, and some of them false."""

    def __init__(self, keeper: Keeper) -> None:
        self.asked: list[int] = []
        self.false: dict[JobId, int] = {}
        self._read = keeper.market.job_words
        keeper.market.job_words = self.read  # type: ignore[method-assign]

    def read(self, jobs: Sequence[JobId], block: Any = "latest") -> list[int]:
        self.asked.append(len(jobs))
        return [self.false.get(job, word) for job, word in zip(jobs, self._read(jobs, block), strict=True)]


def test_cycle__nothing_that_waits__reads_no_parents(market: LiveMarket) -> None:
    world = market.world
    parent = world.post()
    keeper = market.keeper(dry=True)
    words = Words(keeper)
    keeper.cycle()
    keeper.cycle()
    assert words.asked == [1], "the fresh job alone"
    for _ in range(2):
        world.post_after((parent, Condition.ALWAYS))
    keeper.cycle()
    assert words.asked == [1, 2, 1], "the fresh jobs, then their parent once"
    keeper.cycle()
    assert words.asked == [1, 2, 1, 1]


def test_cycle__word_of_a_parent_that_no_contract_writes__counts_and_stops_nothing(market: LiveMarket) -> None:
    world = market.world
    world.register()
    parent = world.post()
    waiting = world.post_after((parent, Condition.ALWAYS))
    world.cancel(parent)
    other = post(market)
    keeper = market.keeper()
    words = Words(keeper)
    words.false[world.id_of(parent)] = (1 << 256) - 1
    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    assert world.best(other).payee == market.address
    assert count(keeper, "hearth_keeper_unreadable_parents_total") == 1
    assert count(keeper, "hearth_keeper_rebuilds_total", cause="rpc_broken") == 0
    market.evm.catch_up()
    words.false.clear()
    assert outcomes(keeper.cycle()) == [("unlock", "mined")]
    assert world.state(waiting) == State.OPEN


def test_cycle__more_parents_than_are_read__jobs_that_wait_take_turns(
    market: LiveMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: who posts jobs that wait for others by the thousand makes no keeper read all of those at each block."""
    monkeypatch.setattr("keeper.reader.PARENTS", 2)
    world = market.world
    stuck = [world.post_after((world.post(), Condition.SUCCESS), (world.post(), Condition.SUCCESS)) for _ in range(3)]
    ended = world.post()
    world.cancel(ended)
    child = world.post_after((ended, Condition.ALWAYS))
    keeper = market.keeper()
    words = Words(keeper)
    keeper.cycle()
    assert words.asked[1:] == [2]
    late = "waits for its parents, which are read in a later cycle"
    assert len([one for one in keeper.status()["skips"] if one["why"] == late]) == len(stuck)
    found = []
    for _ in range(3):
        market.evm.catch_up()
        market.evm.rpc("evm_mine")
        found += outcomes(keeper.cycle())
    assert found == [("unlock", "mined")] and world.state(child) == State.OPEN
    assert max(words.asked[1:]) == 2


def test_cycle__parent_that_ends_while_the_keeper_looks_on__leaves_its_child_to_others_for_a_while(
    market: LiveMarket,
) -> None:
    world = market.world
    parent = world.post()
    child = world.post_after((parent, Condition.ALWAYS))
    keeper = market.keeper(work={"jitter": "1000s", "latency": "0s", "max_loss": "unlimited"})
    delay = keeper.config.delay_of(f"0x{world.id_of(child).hex()}/0")
    assert delay > 20, "the keys of this test make it so"
    market.warp(1_000)
    keeper.cycle()
    market.evm.catch_up()
    world.cancel(parent)
    ended = market.evm.now
    for _ in range(2):
        assert outcomes(keeper.cycle()) == []
        why = f"left to other keepers until {ended + delay}"
        assert {"id": f"0x{world.id_of(child).hex()}/0", "why": why} in keeper.status()["skips"]
        market.warp(5)
    market.warp(delay)
    assert outcomes(keeper.cycle()) == [("unlock", "mined")]


def test_withdraw__credit_above_the_threshold__refills_the_account(market: LiveMarket) -> None:
    world = market.world
    world.register()
    terms = post(market, keeper_fee=ETHER // 10)
    keeper = market.keeper(withdraw_at="0.04")
    keeper.cycle()
    market.warp(13)
    world.ack(terms)
    before = market.evm.balance(market.address)
    assert world.credit(market.address) == ETHER // 20
    keeper.cycle()
    assert world.credit(market.address) == 0
    assert market.evm.balance(market.address) > before + ETHER // 25


# ---- not doing it ----


def test_cycle__no_key__simulates_and_sends_nothing(market: LiveMarket) -> None:
    market.world.register()
    post(market)
    keeper = market.keeper(dry=True)
    keeper.start()
    before = market.evm.rpc("eth_blockNumber")
    cycle = keeper.cycle()
    assert outcomes(cycle) == [("propose", "dry")]
    assert "dry run" in cycle.unready
    assert market.evm.rpc("eth_blockNumber") == before
    schemas.validate(keeper.status())
    assert keeper.status()["account"] is None


def test_cycle__dry_run__leaves_nothing_for_the_real_run_after_it(market: LiveMarket) -> None:
    world = market.world
    world.register()
    earlier = post(market)
    first = market.keeper()
    first.cycle()
    market.warp(13)
    world.ack(earlier)  # the payee has a credit before the books of the second keeper begin
    assert first.sender is not None
    first.sender.journal.close()

    dry = market.keeper(dry=True, home="second")
    dry.cycle()
    assert dry.status()["profit_and_loss"]["profit"] == "0"
    assert list(dry.settings.home.iterdir()) == []
    real = market.keeper(home="second")
    real.cycle()
    assert real.ledger.credited_before == world.credit(market.address) > 0
    books = read_status(real.settings.home)["profit_and_loss"]
    assert (books["rewards"], books["profit"], books["mined"]) == ("0", "0", {})


def test_cycle__dry_run_beside_a_real_one__leaves_its_books_and_status(market: LiveMarket) -> None:
    market.world.register()
    post(market)
    market.keeper().cycle()
    home = market.settings().home
    before = {path.name: path.read_bytes() for path in home.glob("*.json")}
    assert set(before) == {"ledger.json", "status.json"}
    market.evm.rpc("evm_mine")
    dry = market.keeper(dry=True)
    dry.cycle()
    assert dry.status()["profit_and_loss"]["gas_wei"] == "0"
    assert {path.name: path.read_bytes() for path in home.glob("*.json")} == before


def test_cycle__no_gas_money__says_so_and_leaves_readiness(market: LiveMarket) -> None:
    market.world.register()
    post(market)
    keeper = market.keeper()
    market.evm.set_balance(market.address, 10)
    cycle = keeper.cycle()
    assert outcomes(cycle) == [("propose", "dry")]
    assert "send it native coin" in cycle.unready
    assert keeper.health.readiness() == (False, cycle.unready)
    assert int(market.evm.rpc("eth_getTransactionCount", market.address, "latest"), 16) == 0
    market.evm.set_balance(market.address, ETHER)
    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    assert keeper.health.readiness() == (True, "ready")


def test_cycle__tip_below_the_gas__is_left(market: LiveMarket) -> None:
    market.world.register()
    post(market, keeper_fee=10**11)
    keeper = market.keeper(work={"jitter": "0s", "latency": "0s", "max_loss": "0"})
    cycle = keeper.cycle()
    assert outcomes(cycle) == []
    assert any("not worth its gas" in getattr(one, "reason", "") for one in cycle.said)


class Rival(RpcChain):
    """A port behind which somebody else acts once, after this keeper has read the chain and before it sends."""

    act: Callable[[], object] | None = None

    def fees(self) -> Fees:
        found = super().fees()
        if self.act is not None:
            act, self.act = self.act, None
            act()
        return found


def test_cycle__somebody_was_faster__is_a_lost_race_and_no_error(market: LiveMarket) -> None:
    world = market.world
    node = world.register()
    terms = post(market)
    port = Rival([market.url], chain_id=CHAIN_ID)
    keeper = market.keeper(port=port)
    market.evm.catch_up()
    port.act = lambda: world.propose(terms, node, sender=world.stranger)
    assert outcomes(keeper.cycle()) == [("propose", "refused")]
    assert count(keeper, "hearth_keeper_lost_races_total", action="propose") == 1
    assert int(market.evm.rpc("eth_getTransactionCount", market.address, "latest"), 16) == 0


def test_cycle__two_keepers__never_pay_for_the_same_proposal(market: LiveMarket, tmp_path: Path) -> None:
    for i in range(4):
        market.world.register(operator=market.evm.account(f"operator {i}"))
    several = [post(market) for _ in range(3)]
    one = market.keeper()
    assert outcomes(one.cycle()) == [("propose", "mined")] * 3
    other = market.keeper(dry=True, home="other")
    assert outcomes(other.cycle()) == []
    assert {market.world.best(terms).payee for terms in several} == {market.address}


# ---- the chain misbehaves ----


def test_cycle__reorg__rebuilds_and_follows_the_new_chain(market: LiveMarket) -> None:
    world = market.world
    world.register()
    market.evm.rpc("evm_mine")
    point = market.evm.rpc("evm_snapshot")
    post(market)
    keeper = market.keeper(dry=True)
    keeper.cycle()
    assert len(keeper.reader.index) == 1
    market.evm.rpc("evm_revert", point)
    kept = post(market, units=3)
    market.evm.rpc("evm_mine")
    keeper.cycle()
    assert count(keeper, "hearth_keeper_rebuilds_total", cause="reorg") == 1
    assert [row.terms for row in keeper.reader.index.rows()] == [replace(kept, submitter=kept.submitter.lower())]


def test_cycle__index_differs_from_the_chain__rebuilds(market: LiveMarket) -> None:
    node = market.world.register()
    terms = market.world.post()
    keeper = market.keeper(dry=True, limits={"max_lag": "0s", "compare_every": 1})
    keeper.cycle()
    keeper.reader.index._words[:] = 0  # a lost write
    market.world.claim(terms, node)
    keeper.reader.index._words[:] = 0
    keeper.reader.index.apply = lambda logs, at: None  # type: ignore[method-assign]
    keeper.cycle()
    assert count(keeper, "hearth_keeper_rebuilds_total", cause="mismatch") == 1
    assert keeper.reader.index.rows()[0].units[0].unit == market.world.unit(terms)


def test_cycle__nonsense_under_the_registrys_own_events__stops_nothing(market: LiveMarket) -> None:
    """H1: one log that could not be placed stopped every keeper for good."""
    world = market.world
    for place in range(4):
        world.register(operator=world.evm.account(f"operator {place}"), slots=4)
    job = world.id_of(post(market))
    keeper = market.keeper(limits={"max_lag": "0s", "compare_every": 1})
    keeper.cycle()
    address = world.jobs.address
    real = [
        ([bytes.fromhex(topic[2:]) for topic in log["topics"]], bytes.fromhex(log["data"][2:]))
        for log in market.evm.rpc("eth_getLogs", {"address": address, "fromBlock": "0x0"})
    ]
    said = list(nonsense(job, real, seed=1))
    strays = []
    for place in range(0, len(said), 20):
        emit(market.evm.rpc, world.stranger, address, said[place : place + 20])
        market.evm.catch_up()
        fresh = post(market)
        cycle = keeper.cycle()
        assert ("propose", "mined") in outcomes(cycle), "a job is proposed for beside it"
        assert world.best(fresh).payee == market.address
        strays.append(keeper.reader.index.strays)
    assert strays == sorted(strays) and strays[-1] > len(said) // 2
    assert count(keeper, "hearth_keeper_rebuilds_total", cause="mismatch") == 1, "everything is read anew once"
    assert job in keeper.reader.index.aside


def test_cycle__words_that_cannot_be__are_the_rpcs_fault(market: LiveMarket) -> None:
    market.world.register()
    keeper = market.keeper(dry=True)
    read = keeper.market.node_pages
    keeper.market.node_pages = lambda block: iter([(NodeId(5), bytes(224))])  # type: ignore[method-assign]
    with pytest.raises(ChainError, match="words that cannot be") as caught:
        keeper.cycle()
    assert caught.value.retryable
    assert count(keeper, "hearth_keeper_rebuilds_total", cause="rpc_broken") == 1
    keeper.market.node_pages = read  # type: ignore[method-assign]
    keeper.cycle()
    assert len(keeper.reader.index.fleet) == 1


def test_start__another_contract_than_the_networks__refuses(market: LiveMarket) -> None:
    good = market.network()
    wrong = replace(good, code_hashes={**good.code_hashes, "Lens": bytes(32)})
    with pytest.raises(ChainError) as caught:
        market.keeper(dry=True, network=wrong).start()
    assert (caught.value.code, caught.value.retryable) == ("WRONG_CONTRACTS", False)
    with pytest.raises(ChainError) as caught:
        market.keeper(dry=True, network=replace(good, genesis_hash=bytes(32))).start()
    assert caught.value.code == "WRONG_CHAIN"
    with pytest.raises(ChainError) as caught:
        market.keeper(dry=True, network=replace(good, chain_id=1)).start()
    assert caught.value.code == "WRONG_CHAIN"


class Flaky(RpcChain):
    """A port that fails while `down` is above zero, `down` counting the failures left."""

    down = 0
    lasting = False

    def head(self) -> Block:
        if self.down:
            self.down -= 1
            raise ChainError("the RPC is down", retryable=not self.lasting)
        return super().head()


def flaky(market: LiveMarket, down: int, *, lasting: bool = False) -> tuple[Keeper, list[float]]:
    port = Flaky([market.url], chain_id=CHAIN_ID)
    port.down, port.lasting = down, lasting
    keeper = market.keeper(dry=True, port=port, limits={"max_lag": "0s", "max_failures": 4})
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        market.evm.rpc("evm_mine")

    keeper._sleep = sleep
    return keeper, slept


def test_run__rpc_down_for_a_while__backs_off_and_goes_on(market: LiveMarket) -> None:
    keeper, slept = flaky(market, 3)
    keeper.run(cycles=2)
    assert slept[:3] == [0.1, 0.2, 0.4]
    assert count(keeper, "hearth_keeper_failures_total", code="RPC_UNAVAILABLE") == 3
    assert count(keeper, "hearth_keeper_cycles_total") == 2
    assert count(keeper, "hearth_keeper_failures_in_row") == 0


def test_run__rpc_stays_down__halts_with_the_error(market: LiveMarket) -> None:
    keeper, _ = flaky(market, 100)
    with pytest.raises(ChainError) as caught:
        keeper.run()
    assert caught.value.exit_code == 4
    assert count(keeper, "hearth_keeper_failures_total", code="RPC_UNAVAILABLE") == 4


def test_run__error_that_no_retry_helps__ends_at_once(market: LiveMarket) -> None:
    keeper, slept = flaky(market, 1, lasting=True)
    with pytest.raises(ChainError):
        keeper.run()
    assert slept == []


def test_run__error_that_no_retry_helps_after_a_good_cycle__is_survived_until_it_lasts(market: LiveMarket) -> None:
    keeper, _ = flaky(market, 0, lasting=True)
    keeper.run(cycles=1)
    port = keeper.port
    assert isinstance(port, Flaky)
    port.down = 3
    keeper.run(cycles=1)
    assert count(keeper, "hearth_keeper_cycles_total") == 2
    port.down = 100
    with pytest.raises(ChainError):
        keeper.run()
    assert count(keeper, "hearth_keeper_failures_total", code="RPC_UNAVAILABLE") == 3 + 4


def test_run__provider_answers_with_words_of_no_contract__the_keeper_outlives_it(market: LiveMarket) -> None:
    """Read as an ABI, they look like contracts of another version: an error that no retry helps."""
    garbage: list[str] = []

    def lie(asked: Asked) -> None:
        if asked.method == "eth_call" and garbage:
            asked.say("0x" + garbage.pop())
        else:
            asked.forward()

    with lying(market.url, lie) as liar:
        port = RpcChain([liar.url], chain_id=CHAIN_ID)
        keeper = market.keeper(dry=True, port=port, limits={"max_lag": "0s", "compare_every": 1})
        keeper._sleep = lambda seconds: market.evm.rpc("evm_mine")
        keeper.run(cycles=1)
        garbage.append("ff" * 32 * 7)
        market.evm.rpc("evm_mine")
        keeper.run(cycles=1)
    assert not garbage
    assert count(keeper, "hearth_keeper_failures_total", code="WRONG_CONTRACTS") == 1
    assert count(keeper, "hearth_keeper_cycles_total") == 2


class Broken(RpcChain):
    """A port whose `fails_at`-th gas estimate fails, and whose fees can be set."""

    estimates = fails_at = fee = 0

    def estimate_gas(self, call: Call, sender: str) -> int:
        self.estimates += 1
        if self.estimates == self.fails_at:
            raise ChainError("the RPC is down")
        return super().estimate_gas(call, sender)

    def fees(self) -> Fees:
        return Fees(self.fee, 1) if self.fee else super().fees()


def test_cycle__rpc_fails_between_two_sends__accounts_for_the_first(market: LiveMarket) -> None:
    market.world.register()
    for _ in range(2):
        post(market)
    port = Broken([market.url], chain_id=CHAIN_ID)
    port.fails_at = 3  # the keeper and its sender estimate the first action
    keeper = market.keeper(port=port)
    with pytest.raises(ChainError, match="the RPC is down"):
        keeper.cycle()
    assert keeper.ledger.mined == {"propose": 1}
    assert keeper.ledger.gas_paid == 10 * ETHER - market.evm.balance(market.address)
    market.evm.rpc("evm_mine")
    assert outcomes(keeper.cycle()) == [("propose", "mined")]


def test_run__full_disk__goes_on_and_acts_once_there_is_room(market: LiveMarket, tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", 4 * MIB) as home:
        keeper, rest = market.keeper(), home / "rest"
        assert keeper.sender is not None
        keeper.start()
        keeper.run(cycles=1)
        told = read_status(home)["block"]
        fill(rest)
        market.warp(1)
        keeper.run(cycles=1)
        assert count(keeper, "hearth_keeper_cycles_total") == 2
        assert read_status(home)["block"] == told, "it had no room to tell"

        market.world.register()
        terms = post(market)
        keeper._sleep = lambda seconds: rest.unlink(missing_ok=True)
        keeper.run(cycles=1)
        assert count(keeper, "hearth_keeper_failures_total", code="JOURNAL") == 1
        assert market.world.best(terms).payee == market.address
        assert read_status(home)["block"] > told
        keeper.sender.journal.close()


def test_cycle__no_room_for_what_was_mined__accounts_for_it_later(
    market: LiveMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = market.world
    world.register()
    terms = post(market)
    keeper = market.keeper()
    assert keeper.sender is not None
    keeper.start()

    def full(*_: Any) -> None:
        raise StorageError("the disk is full", code="JOURNAL", retryable=True)

    with monkeypatch.context() as patched, pytest.raises(StorageError):
        patched.setattr(keeper.sender.journal, "mined", full)
        keeper.cycle()
    assert world.best(terms).payee == market.address and keeper.ledger.mined == {}
    market.evm.catch_up()
    assert outcomes(keeper.cycle()) == []
    assert keeper.ledger.mined == {"propose": 1}
    assert keeper.ledger.gas_paid == 10 * ETHER - market.evm.balance(market.address)


def test_cycle__base_fee_above_the_cap__waits_out_of_readiness(market: LiveMarket) -> None:
    market.world.register()
    post(market)
    port = Broken([market.url], chain_id=CHAIN_ID)
    port.fee = 600 * 10**9
    keeper = market.keeper(port=port)
    cycle = keeper.cycle()
    assert outcomes(cycle) == [("propose", "unworthy")]
    assert "above the cap" in cycle.unready
    assert count(keeper, "hearth_keeper_ready") == 0
    port.fee = 0
    assert outcomes(keeper.cycle()) == [("propose", "mined")]


class Dear(Broken):
    """A port whose blocks have the base fee that `fee` names."""

    def head(self) -> Block:
        return replace(super().head(), base_fee=self.fee)


def test_cycle__gas_rises_after_it_was_sent__pays_no_more_than_it_earns_and_makes_way_for_better_work(
    market: LiveMarket,
) -> None:
    """The profit test of a keeper: fees that rise eightfold after a send may not make it lose money."""
    world = market.world
    world.register()
    terms = post(market)
    port = Dear([market.url], chain_id=CHAIN_ID)
    keeper = market.keeper(port=port, work={"jitter": "0s", "latency": "0s", "max_loss": "0"})
    sender = keeper.sender
    assert sender is not None
    sender.config = replace(sender.config, timeout=0.2, replace_after=0.0)
    market.evm.rpc("evm_setAutomine", False)
    port.fee = 10**8
    assert outcomes(keeper.cycle()) == [("propose", "pending")]
    (intent,) = sender.journal.intents(TxState.BROADCAST)
    port.fee = 8 * 10**8
    waits = keeper.cycle()
    assert waits.unready == "1 transactions wait to be mined: they are not worth what gas costs now"
    bids = [attempt.max_fee * attempt.gas * 10 // 12 for attempt in sender.journal.attempts(intent)]
    assert len(bids) > 1 and max(bids) <= formulas.tip(terms) * 9 // 10, "however often it is replaced"

    market.evm.rpc("anvil_dropAllTransactions")
    market.evm.rpc("evm_setAutomine", True)
    better = post(market, keeper_fee=10**16)
    market.evm.rpc("evm_setAutomine", False)
    assert keeper.cycle().unready.endswith("and are cancelled for what is worth more")
    market.evm.rpc("evm_mine")
    market.evm.rpc("evm_setAutomine", True)
    assert outcomes(keeper.cycle()) == [("propose", "mined")]
    assert world.best(better).payee == market.address and world.best(terms).node == 0
    cancelled = sender.journal.current(intent)
    assert cancelled.state is TxState.FAILED and cancelled.gas_used == 21_000


def test_cycle__transaction_not_mined_in_time__sends_nothing_new_until_it_is(market: LiveMarket) -> None:
    market.world.register()
    terms = post(market)
    keeper = market.keeper()
    assert keeper.sender is not None
    keeper.sender.config = replace(keeper.sender.config, timeout=0.2)
    market.evm.rpc("evm_setAutomine", False)
    assert outcomes(keeper.cycle()) == [("propose", "pending")]
    later = keeper.cycle()
    assert later.unready == "1 transactions wait to be mined"
    assert keeper.health.readiness()[0] is False
    market.evm.rpc("evm_mine")
    done = keeper.cycle()
    assert (done.unready, outcomes(done)) == ("", [])
    assert keeper.ledger.mined == {"propose": 1}
    assert keeper.ledger.gas_paid == 10 * ETHER - market.evm.balance(market.address) > 0
    assert market.world.best(terms).payee == market.address


def test_cycle__old_head__is_not_ready_and_sends_nothing(market: LiveMarket) -> None:
    market.world.register()
    post(market)
    keeper = market.keeper(limits={"max_lag": "2m", "wait": "20s"})
    keeper._wall = lambda: float(market.evm.now + 1_000)
    cycle = keeper.cycle()
    assert cycle.unready == f"the newest block is {1_000 + market.evm.now - cycle.head.timestamp} s old"
    assert outcomes(cycle) == [("propose", "dry")]


def test_head_age__loop_that_hangs__grows_at_each_scrape(market: LiveMarket) -> None:
    keeper = market.keeper(dry=True)
    assert count(keeper, "hearth_keeper_head_age_seconds") == 0
    read = keeper.cycle().head.timestamp
    keeper._wall = lambda: read + 1_000.0
    assert count(keeper, "hearth_keeper_head_age_seconds") == 1_000


class LeavesOut(RpcChain):
    """Shows the block of `once` without its logs, once."""

    once = False

    def logs(self, addresses: Sequence[str], **where: Any) -> list[Log]:
        found = super().logs(addresses, **where)
        if self.once and found and where.get("block_hash"):
            self.once = False
            return []
        return found


def test_suspicions__provider_that_leaves_logs_out__are_counted(market: LiveMarket) -> None:
    market.world.register()
    port = LeavesOut([market.url], chain_id=CHAIN_ID)
    keeper = market.keeper(dry=True, port=port, limits={"max_lag": "0s"})
    keeper.cycle()
    assert count(keeper, "hearth_keeper_suspicions_total") == 0
    port.once = True
    post(market)
    with pytest.raises(ChainError) as told:
        keeper.cycle()
    assert told.value.code == "RPC_LAGS" and count(keeper, "hearth_keeper_suspicions_total") == 1
    keeper.cycle()
    assert len(keeper.reader.index) == 1


# ---- ERC-20 ----


def test_cycle__token_market__weighs_gas_at_the_price_of_the_coin(tmp_path: Path) -> None:
    need_anvil()
    market = LiveMarket(tmp_path, erc20=True)
    try:
        market.world.register()
        post(market, keeper_fee=10**15)
        price = tmp_path / "coin.txt"
        price.write_text("2650.40\n")
        work = {"jitter": "0s", "latency": "0s", "max_loss": "0"}
        keeper = market.keeper(work=work, price={"coin_file": "coin.txt"})
        assert outcomes(keeper.cycle()) == []  # 103,000 gas at 1 gwei are worth 0.27 TOK, the tip is 0.00045
        price.write_text("0.001\n")
        market.evm.rpc("evm_mine")
        assert outcomes(keeper.cycle()) == [("propose", "mined")]
        market.evm.catch_up()
        price.write_text("nothing\n")
        assert "price.coin" in keeper.cycle().unready
    finally:
        market.close()


# ---- saying so ----


def test_explain__open_job__says_what_the_keeper_does(market: LiveMarket) -> None:
    world = market.world
    world.register(cores=1)
    terms = post(market)
    keeper = market.keeper(dry=True)
    told = explain(keeper, world.id_of(terms))
    schemas.validate(told)
    assert told["nodes"] == {"cores": 1}
    assert told["keeper"][0]["why"] == "no node can be proposed now"
    with pytest.raises(NotFoundError):
        explain(keeper, JobId(bytes(32)))


def test_work__posted_job__what_would_be_sent_and_what_it_earns(market: LiveMarket) -> None:
    world = market.world
    assert work(market.keeper(dry=True))["work"] == []
    world.register()
    terms = post(market)
    told = work(market.keeper(dry=True))
    earns = formulas.tip(terms) * 9_000 // 10_000
    assert told["schema"] == "hearth.keeper.list/1"
    assert told["work"] == [
        {
            "does": "propose",
            "ids": [f"0x{world.id_of(terms).hex()}/0"],
            "earns": str(earns),
            "earns_text": units.show_amount(earns, units.Asset("ETH", 18)),
        }
    ]
    assert told["waiting"] == []


def test_health__keeper_that_works_waits_and_fails__is_ready_or_says_why() -> None:
    now = [100.0]
    health = KeeperHealth(stall=30, clock=lambda: now[0])
    server = health.serve(("127.0.0.1", 0))

    def ask(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    try:
        assert ask("/readyz")[0] == 503
        health.beat({"schema": "hearth.keeper/1", "at": 5}, "")
        assert ask("/readyz") == (200, '{"ok": true, "why": "ready"}')
        assert ask("/healthz")[0] == 200
        assert json.loads(ask("/status")[1])["at"] == 5
        code, body = ask("/metrics")
        assert code == 200 and "hearth_keeper_ready 1.0" in body
        health.wait("")
        assert ask("/readyz")[0] == 200
        health.wait("the newest block is 999 s old")
        assert ask("/readyz") == (503, '{"ok": false, "why": "the newest block is 999 s old"}')
        health.stay("the RPC is down")
        assert ask("/healthz")[0] == 200
        assert ask("/readyz") == (503, '{"ok": false, "why": "the RPC is down"}')
        assert "hearth_keeper_ready 0.0" in ask("/metrics")[1]
        now[0] += 30
        assert ask("/healthz")[0] == 503
    finally:
        server.close()
