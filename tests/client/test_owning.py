"""What a node's owner does, from the call of the library to what the real contracts hold afterwards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from hearth.base.errors import ConfigError, FundsError, HearthError, RefusedError, UsageError
from hearth.base.untrusted_json import MAX_BYTES
from hearth.chain.tx import Sender, Sent
from hearth.client.prepared import Prepared
from hearth.client.reports import OwnerAction
from hearth.market.reads import Market
from hearth.protocol.types import MAX_RATE, MAX_STAKE, Gate, Node, NodeId, Offer, Runtime, TermsFlag
from hearth.protocol.units import format_duration, parse_rate, rate_at_most
from tests.kit.build import NATIVE
from tests.kit.evm_chain import IN_BOTH, IN_TOKEN, RealMarket
from tests.kit.world import ASK_NOTICE, DEAD_AFTER, ETHER, MINIMUM_STAKE, OFFER, UNBONDING
from tools import schemas

HOT = "0x" + "a1" * 20
OTHER = "0x" + "b2" * 20
CHEAP = replace(OFFER, ask=parse_rate("0.036/h", NATIVE))
MANIFEST = b'{"a":1}'


def code_of(call: Any, kind: type[HearthError] = RefusedError) -> HearthError:
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.hint
    return caught.value


def own(market: RealMarket, *, operator: str = HOT, stake: str = "5", offer: Offer = CHEAP) -> NodeId:
    """Register a node of the home's provider; return its number."""
    market.client.workers.register(operator, offer, MANIFEST, payout=market.provider, stake=stake)
    return NodeId((market.world.nodes.call.totals() & 0xFFFFFFFF) - 1)


def seen(market: RealMarket, node: int) -> Node:
    """Return a node as the client reads it."""
    return market.client.session.market.node(NodeId(node))


def sent(report: OwnerAction) -> list[str]:
    schemas.validate(report)
    assert report["schema"] == "hearth.action/1"
    return [one["action"] for one in report["transactions"]]


def end(market: RealMarket, terms: Any) -> None:
    """Let a unit that runs submit a result, and be paid for it."""
    market.world.submit(terms)
    market.pass_time(60)
    market.world.settle(terms)


# ---- looking ----


def test_offers__of_a_fleet__each_fact_of_the_live_ones_cheapest_first_and_the_others_counted(
    market: RealMarket,
) -> None:
    world, now = market.world, market.evm.now
    dear = world.register(ask=50 * ETHER, slots=2)
    small = world.register(ask=10 * ETHER, gpu_count=0, tier=0, vram_gib=0, slots=1, runtimes=Runtime.WASM)
    same = world.register(ask=10 * ETHER)
    world.register(ask=1, beat=False)
    leaving, gone = world.register(ask=1), world.register(ask=1)
    for node in (leaving, gone):
        world.nodes.send.exit_start(node, sender=world.owner)
    market.pass_time(UNBONDING)
    for node in (dear, small, same, leaving):
        world.nodes.send.beat(node, sender=world.operator)
    world.nodes.send.exit_finish(gone, sender=world.owner)
    terms = world.post(world.terms(ceiling=400 * ETHER))
    world.claim(terms, dear)
    report = market.client.workers.offers()
    schemas.validate(report)
    assert [(row["node"], row["ask_text"], row["free"], row["slots"]) for row in report["offers"]] == [
        (small, "0.036 ETH/h", 1, 1),
        (same, "0.036 ETH/h", 4, 4),
        (dear, "0.18 ETH/h", 1, 2),
    ]
    assert report["offers"][1] == {
        "node": same,
        "owner": world.owner.lower(),
        "ask": str(10 * ETHER),
        "ask_text": "0.036 ETH/h",
        "runtimes": ["wasm", "docker", "nvidia"],
        "gpus": 1,
        "tier": "rtx-4060-ti",
        "vram_gib": 24,
        "cores": 16,
        "ram_gib": 64,
        "disk_gib": 500,
        "zone": "sa-south",
        "slots": 4,
        "free": 4,
        "probation": True,
        "quarantined_until": None,
        "reputation_bps": 5000,
    }
    assert (report["offers"][0]["tier"], report["offers"][0]["runtimes"]) == ("", ["wasm"])
    assert report["block"] == market.chain.head().number and market.chain.head().timestamp > now
    # Who has left the market is no worker of it any more.
    assert report["others"] == {"pending": 1, "exiting": 1}
    assert report["others_text"] == "1 not ready, 1 leaving"


def test_offers__filtered__keep_what_is_good_enough_and_count_the_rest_as_other_offers(market: RealMarket) -> None:
    world, offers = market.world, market.client.workers.offers
    plain = world.register(ask=10 * ETHER, gpu_count=0, tier=0, vram_gib=0)
    gpu, better = world.register(ask=20 * ETHER), world.register(ask=30 * ETHER, tier=394, vram_gib=48)

    def found(**wanted: str) -> list[int]:
        report = offers(**wanted)
        assert report["others"] == ({"active": 3 - len(report["offers"])} if len(report["offers"]) < 3 else {})
        return [row["node"] for row in report["offers"]]

    assert found() == [plain, gpu, better]
    assert found(gpu="rtx-4060-ti") == [gpu, better]
    assert found(vram="24") == found(vram="24GiB") == found(vram="23.5GiB") == [gpu, better]
    assert found(vram="25") == [better]
    assert found(max_price="0.072/h") == [plain, gpu] and found(max_price="0.0719/h") == [plain]
    assert found(gpu="rtx-4060-ti", max_price="0.072/h") == [gpu]
    assert offers(vram="25")["others_text"] == "2 live with other offers"


def test_offers__node_in_quarantine__has_no_free_slot_and_says_until_when(market: RealMarket) -> None:
    world = market.world
    node = world.register()
    for _ in range(3):
        terms = world.post(world.terms())
        world.claim(terms, node)
        market.pass_time(2_000)
        world.reclaim(terms)
        world.nodes.send.beat(node, sender=world.operator)
    (row,) = market.client.workers.offers()["offers"]
    until = seen(market, node).state.quarantine
    assert row["reputation_bps"] < 5000
    assert until > market.evm.now and (row["free"], row["quarantined_until"]) == (0, until)


def test_status__node_that_works__each_fact_as_the_contracts_have_it(market: RealMarket) -> None:
    world, status = market.world, market.client.workers.status
    node = own(market, operator=world.operator.lower(), stake="20")
    told = status(seen(market, node))
    assert (told["last_beat"], told["seconds_since_beat"]) == (0, None)
    assert told["waits"][0]["next"] == "hearth worker start"
    assert status(seen(market, node), start="systemctl start it")["waits"][0]["next"] == "systemctl start it"
    world.nodes.send.beat(node, sender=world.operator)
    beat = market.evm.now
    earlier = world.post(world.terms())
    world.claim(earlier, node)
    market.pass_time(10)
    end(market, earlier)
    terms = world.post(world.terms())
    world.claim(terms, node)
    market.pass_time(90)
    node_now = seen(market, node)
    told = status(node_now)
    credit = world.credit(to_checksum_address(market.provider))
    assert credit > 0 and node_now.state.bond > 0
    assert told["waits"] and told["waits"][0]["reason"] == "probation"
    shown = {name: value for name, value in told.items() if name not in ("waits", "reputation_bps", "last_beat")}
    assert shown == {
        "node": node,
        "status": "active",
        "status_text": "live",
        "owner": market.provider,
        "operator": world.operator.lower(),
        "stake": str(20 * ETHER),
        "stake_text": "20 ETH",
        "stake_short": "0",
        "bond": str(node_now.state.bond),
        "owner_credit": str(credit),
        "owner_credit_text": market.client.session.amount(credit),
        "busy": 1,
        "slots": 4,
        "ask": str(CHEAP.ask),
        "ask_text": "0.036 ETH/h",
        "seconds_since_beat": market.evm.now - node_now.state.beat,
        "quarantined_until": None,
        "exit_at": None,
    }
    assert told["last_beat"] == node_now.state.beat >= beat and told["reputation_bps"] > 5000
    market.client.workers.exit(node_now)
    assert status(seen(market, node))["exit_at"] == seen(market, node).exit_at == market.evm.now + UNBONDING


# ---- gates ----


def gates_of(market: RealMarket, terms: Any, node: NodeId) -> list[tuple[int, str, str]]:
    report = market.client.workers.gates("0x" + market.world.id_of(terms).hex(), seen(market, node))
    assert report["node"] == node
    assert report["state_text"] == market.client.jobs.show(report["job"])["state_text"]
    return [(row["unit"], row["gate"], row["text"]) for row in report["units"]]


def test_gates__array__one_row_for_each_open_unit_and_one_for_those_that_nobody_touched(market: RealMarket) -> None:
    world = market.world
    node, other = world.register(), world.register()
    terms = world.post(world.terms(units=4))
    assert gates_of(market, terms, node) == [(0, "fits", "it fits")]
    world.claim(terms, node, 0)
    world.claim(terms, node, 1)
    world.decline(terms, 0)
    rows = gates_of(market, terms, other)
    assert [(unit, gate) for unit, gate, _ in rows] == [(0, "fits"), (2, "fits")]
    report = market.client.workers.gates("0x" + world.id_of(terms).hex(), world.node(other))
    assert (report["state"], report["state_text"]) == ("running", "running")
    # Whoever gave a unit back is not asked for it again.
    assert gates_of(market, terms, node)[0][1] == "excluded"


@pytest.mark.parametrize(
    ("offer", "needs", "gate", "text"),
    [
        ({"ask": 200 * ETHER}, {}, "price", "it asks 0.72 ETH/h, and the job pays at most 0.36 ETH/h"),
        ({"cores": 1}, {}, "cores", "short of cores"),
        ({}, {"flags": TermsFlag(0), "max_seconds": 40_000}, "probation", "or welcomes newcomers"),
    ],
)
def test_gates__each_reason__has_the_words_that_mend_it(
    market: RealMarket, offer: dict[str, Any], needs: dict[str, Any], gate: str, text: str
) -> None:
    node = market.world.register(**offer)
    ((unit, found, said),) = gates_of(market, market.world.post(market.world.terms(**needs)), node)
    assert (unit, found) == (0, gate) and text in said


def test_gates__price_that_rises_to_the_ask__names_the_second(market: RealMarket) -> None:
    world = market.world
    node = world.register(ask=99 * ETHER)
    terms = world.post(world.terms())
    ((_, gate, said),) = gates_of(market, terms, node)
    assert gate == "price" and said.startswith("it can claim once the price has risen to its ask: from ")


def test_gates__stake_that_a_lease_would_outgrow__says_what_it_binds_and_what_mends_it(market: RealMarket) -> None:
    world = market.world
    node = own(market, operator=world.operator.lower(), stake="1")
    world.nodes.send.beat(node, sender=world.operator)
    terms = world.post(world.terms(max_seconds=40_000))
    ((_, gate, said),) = gates_of(market, terms, node)
    bond = market.client.jobs.show("0x" + world.id_of(terms).hex())
    assert gate == "stake_short" and bond["units"] == 1
    assert "and 1 ETH of 1 ETH is free, which covers a job of at most " in said
    more = said.rpartition('hearth worker stake "')[2].rstrip('"')
    market.client.workers.add_stake(seen(market, node), more)
    assert gates_of(market, terms, node) == [(0, "fits", "it fits")]
    # What leases of its own bind comes back by itself.
    world.claim(terms, node)
    second = world.post(world.terms(max_seconds=40_000))
    ((_, gate, said),) = gates_of(market, second, node)
    assert gate == "stake_short" and said.endswith("is free; more is once its leases are settled")


def test_gates__long_array__shows_the_first_twenty_units_and_those_that_nobody_touched(market: RealMarket) -> None:
    world = market.world
    node = world.register(slots=30, ask=10**12)
    terms = world.post(world.terms(units=40))
    for index in range(22):
        world.claim(terms, node, index)
    for index in range(22):
        world.decline(terms, index)
    assert [unit for unit, _, _ in gates_of(market, terms, world.register())] == [*range(20), 22]


def test_gates__replica_whose_judge_does_not_answer__says_so_and_a_plain_job_does_not_hide_it(
    market: RealMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = market.world
    node = world.register()

    def silent(self: Market, packed: Any, index: int, number: int, *, claim: bool) -> Gate:
        raise RefusedError("the judge reverts", hint="hearth doctor")

    monkeypatch.setattr(Market, "fit", silent)
    replicas = world.post(
        world.terms(**world.judged(replicas=3, quorum=2, flags=TermsFlag.NEWCOMERS | TermsFlag.PROVEN))
    )
    row = (0, "judge_silent", "its judge does not answer who may run it")
    assert gates_of(market, replicas, node) == [row]
    with pytest.raises(RefusedError, match="the judge reverts"):
        gates_of(market, world.post(), node)


# ---- owning ----


@IN_BOTH
def test_register__with_a_stake__the_node_stands_as_it_was_said(market: RealMarket) -> None:
    token = market.world.token is not None
    report = market.client.workers.register(HOT, CHEAP, MANIFEST, payout=market.provider, stake="2.5")
    assert sent(report) == [*["token.approve"] * token, "nodes.register"]
    assert (report["operator"], report["stake"]) == (HOT, str(5 * ETHER // 2))
    assert report["stake_text"] == ("2.5 TEST" if token else "2.5 ETH") and not report["dry_run"]
    node = seen(market, NodeId(1))
    assert (node.owner.lower(), node.operator.lower(), node.stake, node.offer) == (
        market.provider,
        HOT,
        5 * ETHER // 2,
        CHEAP,
    )
    # The manifest is named by its digest, and travels with the call.
    tx = market.chain.transaction(bytes.fromhex(str(report["transactions"][-1]["tx"])[2:]))
    assert tx is not None and tx.data.endswith(MANIFEST)


def test_register__below_the_minimum__is_refused_with_it_and_without_a_stake_it_is_taken(market: RealMarket) -> None:
    register = market.client.workers.register
    for stake in ("0.999999999999999999", "0"):
        error = code_of(lambda: register(HOT, CHEAP, MANIFEST, payout=market.provider, stake=stake))  # noqa: B023
        assert (error.code, error.details["minimum"]) == ("STAKE_SHORT", str(MINIMUM_STAKE))
        assert error.hint == 'use stake="1 ETH"' and error.message.endswith("minimum of 1 ETH")
    error = code_of(lambda: register(HOT, CHEAP, MANIFEST, payout=market.provider, stake="1208926"), UsageError)
    assert error.code == "BAD_AMOUNT"
    assert register(HOT, CHEAP, MANIFEST, payout=market.provider)["stake"] == str(MINIMUM_STAKE)
    assert seen(market, NodeId(1)).stake == MINIMUM_STAKE


def test_register__coin_that_does_not_suffice__is_refused_before_it_is_signed(market: RealMarket) -> None:
    market.chain.give(market.provider, 2 * ETHER)
    error = code_of(
        lambda: market.client.workers.register(HOT, CHEAP, MANIFEST, payout=market.provider, stake="2"), FundsError
    )
    assert '"register" and its gas take' in error.message and int(error.details["short_by"]) > 0
    assert market.chain.sent == []


def test_register__dry_run__tries_it_and_sends_nothing(market: RealMarket) -> None:
    client = market.open(dry_run=True)
    report = client.workers.register(HOT, CHEAP, MANIFEST, payout=market.provider, stake="2")
    assert report["dry_run"] and sent(report) == ["nodes.register"] and report["transactions"][0]["tx"] is None
    assert market.chain.sent == [] and market.said("confirm") == []


def test_update__idle_node__has_the_new_offer_and_a_busy_one_is_refused(market: RealMarket) -> None:
    world, workers = market.world, market.client.workers
    node = own(market, operator=world.operator.lower())
    new = replace(CHEAP, slots=7, cores=9)
    assert sent(workers.update_offer(seen(market, node), new, MANIFEST)) == ["nodes.update_offer"]
    assert (seen(market, node).offer.slots, seen(market, node).offer.cores) == (7, 9)
    raw = market.chain.transaction(market.chain.logs([market.network.nodes], from_block=0, to_block=10**6)[-1].tx_hash)
    assert raw is not None and hashlib.sha256(MANIFEST).digest() in raw.data and raw.data.endswith(MANIFEST)
    world.nodes.send.beat(node, sender=world.operator)
    world.claim(world.post(world.terms()), node)
    error = code_of(lambda: workers.update_offer(seen(market, node), CHEAP, MANIFEST))
    assert error.code == "BUSY" and "runs 1 leases" in error.message


def test_price__new_one__counts_after_the_notice_and_a_second_waits(market: RealMarket) -> None:
    _world, workers = market.world, market.client.workers
    node = own(market)
    report = workers.set_ask(seen(market, node), "0.072/h")
    assert sent(report) == ["nodes.set_ask"]
    assert (report["node"], report["ask"], report["ask_text"]) == (node, str(2 * CHEAP.ask), "0.072 ETH/h")
    asked = market.evm.now
    assert workers.offers()["offers"] == [] and workers.status(seen(market, node))["ask"] == str(CHEAP.ask)
    assert code_of(lambda: workers.set_ask(seen(market, node), "0.1/h")).code == "ASK_PENDING"
    # Another machine may send it later.
    assert workers.set_ask(seen(market, node), "0.1/h", print_tx=True)["transactions"] == []
    market.evm.at(asked + ASK_NOTICE - 1)
    market.chain.mine()
    assert code_of(lambda: workers.set_ask(seen(market, node), "0.1/h")).retryable
    market.pass_time(1)
    assert workers.status(seen(market, node))["ask"] == str(2 * CHEAP.ask)
    assert sent(workers.set_ask(seen(market, node), "0.1/h")) == ["nodes.set_ask"]


def test_register__of_a_running_worker__is_sent_by_the_process_that_holds_the_key(market: RealMarket) -> None:
    asked: list[str] = []

    class Held:
        """A process that holds the key, and sends what it is asked for."""

        holds = True

        def send(self, prepared: Prepared, check: Callable[[], object]) -> list[Sent] | None:
            check()
            asked.append(prepared.action)
            if not self.holds:
                return None
            with market.client.session.sender("owner", of=prepared.sender) as sender:
                assert isinstance(sender, Sender)
                return [sender.send(prepared.call, key=prepared.key)]

    held = Held()
    workers = market.client.workers.through(held)
    report = workers.register(HOT, CHEAP, MANIFEST, payout=market.provider, stake="5")
    assert asked == ["register"] and sent(report) == ["nodes.register"]
    assert report["transactions"][0]["repeated"] is False
    assert [facts["tx"] for kind, facts in market.told if kind == "tx"] == [report["transactions"][0]["tx"]]
    node = NodeId(1)
    assert sent(workers.add_stake(seen(market, node), "1")) == ["nodes.add_stake"] and asked[-1] == "stake"
    held.holds = False
    assert not workers.add_stake(seen(market, node), "2")["already_sent"]
    assert seen(market, node).stake == 8 * ETHER
    # A dry run asks nobody.
    asked.clear()
    dry = market.open(dry_run=True).workers.through(held).add_stake(seen(market, node), "1")
    assert asked == [] and dry["dry_run"]


def test_stake__from_any_account_that_is_chosen__and_an_owners_call_from_none(market: RealMarket) -> None:
    node = seen(market, own(market))
    bystander = market.open(settings=replace(market.settings, account="dev", origins={"account": "--account"})).workers
    assert sent(bystander.add_stake(node, "1")) == ["nodes.add_stake"]
    unchosen = replace(node, owner=OTHER)
    error = code_of(lambda: market.client.workers.add_stake(unchosen, "1"), ConfigError)
    assert "whichever pays the stake" in error.hint and error.code == "NOT_OWNER"
    error = code_of(lambda: bystander.set_ask(node, "0.1/h"), ConfigError)
    assert "whichever" not in error.hint
    market.chain.give(market.provider, 10)
    error = code_of(lambda: market.client.workers.add_stake(node, "3"), FundsError)
    assert error.code == "FUNDS_SHORT" and '"stake" and its gas take' in error.message


@IN_TOKEN
def test_approval__that_is_there_already__is_not_sent_again(market: RealMarket) -> None:
    node = own(market)
    token = market.world.token
    assert token is not None
    token.send.approve(market.world.nodes, ETHER, sender=to_checksum_address(market.provider))
    assert sent(market.client.workers.add_stake(seen(market, node), "1")) == ["nodes.add_stake"]
    token.send.approve(market.world.nodes, ETHER, sender=to_checksum_address(market.provider))
    assert sent(market.client.workers.add_stake(seen(market, node), "2")) == ["token.approve", "nodes.add_stake"]
    dry = market.open(dry_run=True).workers.register(OTHER, CHEAP, MANIFEST, payout=market.provider, stake="2")
    assert sent(dry) == ["token.approve"]


def test_price__highest_that_an_offer_holds__is_taken_and_one_more_is_none(market: RealMarket) -> None:
    node, workers = own(market), market.client.workers
    report = workers.set_ask(seen(market, node), rate_at_most(MAX_RATE, market.asset), print_tx=True)
    assert "prepared" in report and MAX_RATE - 10**18 < int(report["ask"]) <= MAX_RATE


def test_operator__offered_taken_back_and_asked_for_twice(market: RealMarket) -> None:
    _world, workers = market.world, market.client.workers
    node = own(market)
    report = workers.set_operator(seen(market, node), to_checksum_address(OTHER))
    assert sent(report) == ["nodes.set_operator"]
    assert (report["node"], report["operator"], report["kept"], "already_sent" in report) == (node, OTHER, False, False)
    assert market.client.session.market.offered_operator(node) == OTHER
    again = workers.set_operator(seen(market, node), OTHER)
    assert sent(again) == [] and again["already_sent"] and not again["kept"] and not again["dry_run"]
    back = workers.set_operator(seen(market, node), HOT)
    assert sent(back) == ["nodes.set_operator"] and back["kept"]
    none = workers.set_operator(seen(market, node), HOT)
    assert sent(none) == [] and none["already_sent"] and none["kept"]
    error = code_of(lambda: workers.set_operator(seen(market, node), market.network.escrow), UsageError)
    assert error.code == "BAD_ADDRESS" and "nobody could work with it" in error.message


@IN_BOTH
def test_stake__one_amount__is_added_once_and_again_on_purpose(market: RealMarket) -> None:
    token = market.world.token is not None
    _world, workers = market.world, market.client.workers
    node = own(market)
    report = workers.add_stake(seen(market, node), "0.25")
    assert sent(report) == [*["token.approve"] * token, "nodes.add_stake"]
    assert (report["node"], report["added"], report["added_text"]) == (
        node,
        str(ETHER // 4),
        "0.25 TEST" if token else "0.25 ETH",
    )
    assert not report["already_sent"] and seen(market, node).stake == 21 * ETHER // 4
    same = workers.add_stake(seen(market, node), "0.25")
    assert same["already_sent"] and seen(market, node).stake == 21 * ETHER // 4
    assert same["transactions"][0]["tx"] == report["transactions"][-1]["tx"]
    more = workers.add_stake(seen(market, node), "0.25", again=True)
    assert not more["already_sent"] and seen(market, node).stake == 11 * ETHER // 2
    assert code_of(lambda: workers.add_stake(seen(market, node), "0"), UsageError).code == "BAD_AMOUNT"


def test_stake__most_that_a_node_holds__counts_what_it_has(market: RealMarket) -> None:
    workers, node = market.client.workers, replace(seen(market, own(market)), stake=MAX_STAKE - 5)
    assert "prepared" in workers.add_stake(node, "0.000000000000000005", print_tx=True)
    over = code_of(lambda: workers.add_stake(node, "0.000000000000000006", print_tx=True), UsageError)
    assert over.code == "BAD_AMOUNT"


@IN_TOKEN
def test_stake__dry_run_of_a_token_market__stops_at_the_approval(market: RealMarket) -> None:
    node = seen(market, own(market))
    before = len(market.chain.sent)
    report = market.open(dry_run=True).workers.add_stake(node, "1")
    assert sent(report) == ["token.approve"] and not report["already_sent"]
    assert len(market.chain.sent) == before


def earn(market: RealMarket, node: NodeId) -> int:
    """Let a node's owner earn something; return its credit."""
    world = market.world
    world.nodes.send.beat(node, sender=world.operator)
    terms = world.post(world.terms())
    world.claim(terms, node)
    market.pass_time(50)
    end(market, terms)
    return world.credit(to_checksum_address(market.provider))


def test_withdraw__credit__goes_to_the_owner_whole_or_in_parts(market: RealMarket) -> None:
    world, workers = market.world, market.client.workers
    credit = earn(market, own(market, operator=world.operator.lower(), stake="50"))
    assert credit > 10
    had = market.evm.balance(to_checksum_address(market.provider))
    part = workers.withdraw(market.provider, "0.000000000000000007")
    assert sent(part) == ["escrow.withdraw"] and (part["amount"], part["to"]) == ("7", market.provider)
    assert part["amount_text"] == market.client.session.amount(7)
    rest = workers.withdraw(market.provider)
    assert rest["amount"] == str(credit - 7)
    assert market.evm.balance(to_checksum_address(market.provider)) == had + credit
    error = code_of(lambda: workers.withdraw(market.provider), FundsError)
    assert error.code == "NO_CREDIT" and error.message.endswith(": there is nothing to withdraw")


def test_withdraw__more_than_there_is__is_refused_with_both_amounts(market: RealMarket) -> None:
    world, workers = market.world, market.client.workers
    credit = earn(market, own(market, operator=world.operator.lower(), stake="50"))
    error = code_of(lambda: workers.withdraw(market.provider, "1000"), FundsError)
    assert error.details["credit"] == str(credit) and error.message.endswith(" and 1000 ETH is asked for")


def test_exit__begun_cancelled_begun_and_finished__the_stake_is_credited_at_the_end(market: RealMarket) -> None:
    world, workers = market.world, market.client.workers
    node = own(market)
    begun_node = seen(market, node)
    begun = workers.exit(begun_node)
    assert sent(begun) == ["nodes.exit_start"] and (begun["node"], begun["unbonding"]) == (node, UNBONDING)
    assert begun["action"] == "exit start" and seen(market, node).exit_at == market.evm.now + UNBONDING
    assert market.said("confirm")[-1].endswith(f"its stake of 5 ETH is free in {format_duration(UNBONDING)}?")
    assert sent(workers.exit(seen(market, node), cancel=True)) == ["nodes.exit_cancel"]
    assert seen(market, node).exit_at == 0
    workers.exit(seen(market, node))
    asked = len(market.said("confirm"))
    market.evm.at(seen(market, node).exit_at - 1)
    market.chain.mine()
    assert code_of(lambda: workers.exit(seen(market, node), finish=True)).code == "UNBONDING"
    market.pass_time(1)
    assert sent(workers.exit(seen(market, node), finish=True)) == ["nodes.exit_finish"]
    assert len(market.said("confirm")) == asked  # what is begun is not asked for again
    assert world.credit(to_checksum_address(market.provider)) == 5 * ETHER
    with pytest.raises(UsageError, match="exclude each other"):
        workers.exit(begun_node, cancel=True, finish=True)


def test_exit__dry_run__is_not_asked_for(market: RealMarket) -> None:
    node = seen(market, own(market))
    asked = len(market.said("confirm"))
    assert market.open(dry_run=True).workers.exit(node)["dry_run"] and len(market.said("confirm")) == asked


# ---- prepared here, sent there ----


def prepared(market: RealMarket, report: OwnerAction) -> Path:
    assert report["transactions"] == [] and not report["dry_run"]
    path = market.home / "tx.json"
    path.write_text(json.dumps(report))
    return path


def test_prepared__each_action_of_an_owner__does_there_what_it_says(market: RealMarket) -> None:
    world, workers = market.world, market.client.workers
    path = prepared(
        market,
        workers.register(world.operator.lower(), CHEAP, MANIFEST, payout=market.provider, stake="50", print_tx=True),
    )
    report = workers.send_prepared(path, "register", amount="50", operator=to_checksum_address(world.operator))
    assert sent(report) == ["nodes.register"] and report["prepared_in"] == str(path)
    assert market.said("note")[-1].startswith(f"register(operator {world.operator.lower()}, ")
    assert market.said("note")[-1].endswith(f" as {market.provider}, paying 50 ETH")
    assert market.said("confirm")[-1] == market.said("note")[-1] + "?"
    assert [facts["needed"] for kind, facts in market.told if kind == "confirm"][-1] is False
    assert f"manifest 0x{hashlib.sha256(MANIFEST).hexdigest()}" in market.said("note")[-1]
    node = seen(market, NodeId(1))
    assert (node.owner.lower(), node.stake) == (market.provider, 50 * ETHER)
    path = prepared(market, workers.set_ask(node, "0.05/h", print_tx=True))
    for wrong in ("0.06/h", "0.050001/h"):
        error = code_of(lambda: workers.send_prepared(path, "set_ask", rate=wrong), UsageError)  # noqa: B023
        ask, wanted = (parse_rate(rate, NATIVE) for rate in ("0.05/h", wrong))
        assert error.code == "BAD_TX"
        assert error.message == f"{path} calls set_ask with ask {ask}, and {wanted} is asked for"
    assert sent(workers.send_prepared(path, "set_ask", rate="0.05/h")) == ["nodes.set_ask"]
    path = prepared(market, workers.add_stake(node, "3", print_tx=True))
    error = code_of(lambda: workers.send_prepared(path, "add_stake", amount="4"), UsageError)
    assert error.code == "BAD_TX"
    assert error.message == f"{path} calls add_stake with amount {3 * ETHER}, and {4 * ETHER} is asked for"
    assert sent(workers.send_prepared(path, "add_stake", amount="3")) == ["nodes.add_stake"]
    path = prepared(market, workers.set_operator(node, OTHER, print_tx=True))
    error = code_of(lambda: workers.send_prepared(path, "set_operator", operator=HOT), UsageError)
    assert error.code == "BAD_TX"
    assert error.message == f"{path} calls set_operator with operator {OTHER}, and {HOT} is asked for"
    assert sent(workers.send_prepared(path, "set_operator", operator=OTHER)) == ["nodes.set_operator"]
    credit = earn(market, NodeId(1))
    path = prepared(market, workers.withdraw(market.provider, print_tx=True))
    assert sent(workers.send_prepared(path, "withdraw")) == ["escrow.withdraw"]
    assert credit > 0 == world.credit(to_checksum_address(market.provider))
    path = prepared(market, workers.exit(seen(market, NodeId(1)), print_tx=True))
    assert sent(workers.send_prepared(path, "exit_start")) == ["nodes.exit_start"]
    assert seen(market, NodeId(1)).stake == 53 * ETHER


def test_prepared__another_function_or_no_document__is_refused_with_the_way_on(market: RealMarket) -> None:
    workers, node = market.client.workers, seen(market, own(market))
    path = prepared(market, workers.set_ask(node, "0.05/h", print_tx=True))
    error = code_of(lambda: workers.send_prepared(path, "exit_start"), UsageError)
    assert error.message == f"{path} calls set_ask, and this command sends exit_start"
    assert error.hint == f"hearth worker price --tx {path}, if that is meant" and error.code == "BAD_TX"
    for text, why in (("[1]", "it is no JSON object"), ("{}", "it lacks something"), ("{", "")):
        path.write_text(text)
        error = code_of(lambda: workers.send_prepared(path, "exit_start"), UsageError)
        assert error.code == "BAD_TX" and f"{path} holds no prepared transaction: {why}" in error.message
        assert error.hint.endswith("hearth worker register --print-tx > tx.json")
    assert code_of(lambda: workers.send_prepared(market.home / "none", "exit_start"), UsageError).code == "BAD_TX"


def test_prepared__withdrawal_to_somebody_else__is_refused(market: RealMarket) -> None:
    world, workers = market.world, market.client.workers
    earn(market, own(market, operator=world.operator.lower(), stake="50"))
    report = workers.withdraw(market.provider, print_tx=True)
    other = market.client.session.market.calls.withdraw(OTHER, 5)
    path = prepared(market, report)
    document = {**report["prepared"], "data": "0x" + other.data.hex()}
    path.write_text(json.dumps({"prepared": document}))
    error = code_of(lambda: workers.send_prepared(path, "withdraw"), UsageError)
    assert error.code == "BAD_TX" and f"a withdrawal pays its owner, {market.provider}" in error.message


def test_prepared__key_that_is_not_the_owners__is_refused(market: RealMarket) -> None:
    node = seen(market, own(market))
    path = prepared(market, market.client.workers.set_ask(node, "0.05/h", print_tx=True))
    client = market.open(settings=replace(market.settings, account="dev", origins={"account": "--account"}))
    error = code_of(lambda: client.workers.send_prepared(path, "set_ask"), ConfigError)
    assert error.code == "NOT_OWNER" and "account provider" in error.hint
    assert len(market.chain.sent) == 1


def test_prepared__sent_twice__is_one_transaction(market: RealMarket) -> None:
    workers, node = market.client.workers, own(market)
    path = prepared(market, workers.add_stake(seen(market, node), "1", print_tx=True))
    first, second = (workers.send_prepared(path, "add_stake") for _ in range(2))
    assert first["transactions"][0]["tx"] == second["transactions"][0]["tx"]
    assert seen(market, node).stake == 6 * ETHER


def test_prepared__file_as_long_as_any_may_be__is_read_and_a_longer_one_is_not(market: RealMarket) -> None:
    node = seen(market, own(market))
    path = prepared(market, market.client.workers.set_ask(node, "0.05/h", print_tx=True))
    text = path.read_text()
    path.write_text(text.ljust(MAX_BYTES + 1))
    assert code_of(lambda: market.client.workers.send_prepared(path, "set_ask"), UsageError).code == "BAD_TX"
    path.write_text(text.ljust(MAX_BYTES))
    assert sent(market.client.workers.send_prepared(path, "set_ask")) == ["nodes.set_ask"]


def test_offers_and_status__node_that_fell_silent__says_so(market: RealMarket) -> None:
    node = market.world.register()
    market.pass_time(DEAD_AFTER + 1)
    report = market.client.workers.offers()
    assert (report["offers"], report["others"], report["others_text"]) == ([], {"inactive": 1}, "1 silent")
    told = market.client.workers.status(seen(market, node))
    assert (told["status"], told["status_text"]) == ("inactive", "silent")
    market.world.nodes.send.beat(node, sender=market.world.operator)
    assert market.client.workers.status(seen(market, node))["status"] == "active"


def test_exit__asked_for_again_at_the_very_second__says_that_the_stake_is_free_now(market: RealMarket) -> None:
    node, workers = own(market), market.client.workers
    workers.exit(seen(market, node))
    free = seen(market, node).exit_at
    market.evm.at(free - 1)
    market.chain.mine()
    assert "its stake is free from 20" in code_of(lambda: workers.exit(seen(market, node))).message
    market.pass_time(1)
    assert code_of(lambda: workers.exit(seen(market, node))).message.endswith("its stake is free now")


def test_price_and_register__above_what_the_stake_covers__ask_by_their_own_words(market: RealMarket) -> None:
    workers = market.client.workers
    dear = replace(CHEAP, ask=parse_rate("30/h", NATIVE))
    workers.register(HOT, dear, MANIFEST, payout=market.provider, stake="1")
    assert market.said("confirm")[-1] == "register with 1 ETH of stake all the same?"
    node = seen(market, NodeId(1))
    workers.set_ask(node, "40/h")
    assert market.said("confirm")[-1] == "ask that price all the same?" and len(market.said("warning")) == 2
    assert [facts["needed"] for kind, facts in market.told if kind == "confirm"] == [False, False]
    # Whose answer would count for nothing is asked nothing.
    other = market.open(settings=replace(market.settings, account="dev", origins={"account": "--account"})).workers
    code_of(
        lambda: other.set_ask(replace(node, next_ask_at=0, offer=replace(node.offer, pending=False)), "50/h"),
        ConfigError,
    )
    assert len(market.said("confirm")) == 2
    market.open(dry_run=True).workers.register(OTHER, dear, MANIFEST, payout=market.provider, stake="1")
    assert len(market.said("confirm")) == 2 and len(market.said("warning")) == 4


def test_stake__dry_run__is_tried_in_the_coin(market: RealMarket) -> None:
    node = seen(market, own(market))
    assert sent(market.open(dry_run=True).workers.add_stake(node, "1")) == ["nodes.add_stake"]
