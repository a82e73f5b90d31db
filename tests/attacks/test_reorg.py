"""Attack 27: a reorg puts other terms where an operator saw a job. On a real anvil, with `anvil_reorg`.

A job's id is the hash of its terms, so what was signed for one job can never start another. Node ids are counted, so a
reorg may hand them out in another order: an operator's call names his node, and is refused for anybody else's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hearth.protocol import words
from hearth.protocol.types import State, Terms, TermsFlag
from tests.kit import world as w
from tests.kit.anvil import AnvilEvm, need_anvil
from tests.kit.evm import Reverted

DEPTHS = (1, 2, 16, 64)


@pytest.fixture(scope="module")
def world() -> Iterator[w.World]:
    need_anvil()
    evm = AnvilEvm()
    found = w.World(evm)
    found.register()
    # Older blocks than any reorg reaches.
    evm.rpc("anvil_mine", "0x50")
    yield found
    evm.close()


def _later(world: w.World) -> None:
    assert isinstance(world.evm, AnvilEvm)
    world.evm.catch_up()


def _reorg(world: w.World, depth: int) -> None:
    """Bury the last transaction under `depth - 1` blocks, then replace it and them by empty ones."""
    rpc = world.evm.rpc  # type: ignore[attr-defined]
    if depth > 1:
        rpc("anvil_mine", hex(depth - 1))
    height = int(rpc("eth_blockNumber"), 16)
    lost = rpc("eth_getBlockByNumber", hex(height - depth + 1), False)
    assert lost["transactions"], "the block to be lost holds the transaction"
    rpc("anvil_reorg", depth, [])
    assert int(rpc("eth_blockNumber"), 16) == height
    now = rpc("eth_getBlockByNumber", hex(height - depth + 1), False)
    assert now["hash"] != lost["hash"]
    assert not now["transactions"]
    _later(world)


def _terms(world: w.World) -> Terms:
    _later(world)
    terms = world.terms(flags=TermsFlag.NEWCOMERS)
    world.nodes.send.beat(1, sender=world.operator)
    _later(world)
    return terms


def test_id__terms__are_what_it_commits_to(world: w.World) -> None:
    """Whatever field of the terms differs, the contract names another job."""
    terms = _terms(world)
    changes: dict[str, object] = {
        "salt": terms.salt + 1,
        "spec": b"\x99" * 32,
        "needs": replace(terms.needs, cores=1),
        "ceiling": terms.ceiling + 1,
        "max_seconds": terms.max_seconds + 1,
        "deadline": terms.deadline + 1,
        "keeper_fee": terms.keeper_fee + 1,
        "policy": terms.policy + (1 << 8),
        "units": 2,
        "max_attempts": 2,
        "submitter": world.stranger.lower(),
    }
    others = [replace(terms, **{name: value}) for name, value in changes.items()]
    ids = {bytes(world.jobs.call.job_id_of(words.pack_terms(t))) for t in (terms, *others)}
    assert len(ids) == len(changes) + 1
    assert bytes(world.jobs.call.job_id_of(words.pack_terms(terms))) == world.id_of(terms)


@pytest.mark.parametrize("depth", DEPTHS)
def test_reorg__other_terms_take_the_posts_place__claim_of_the_first_is_refused(world: w.World, depth: int) -> None:
    """Control: without the reorg the same claim starts the job that was seen."""
    seen = _terms(world)
    evm = world.evm
    with evm.isolated():
        world.post(seen)
        _later(world)
        world.claim(seen, 1)  # type: ignore[arg-type]
        assert world.state(seen) == State.RUNNING
    _later(world)
    world.post(seen)
    assert world.state(seen) == State.OPEN
    _reorg(world, depth)
    assert world.state(seen) == State.NONE
    worse = replace(seen, spec=b"\x66" * 32, ceiling=seen.ceiling // 2)
    world.post(worse)
    assert world.state(worse) == State.OPEN
    _later(world)
    with pytest.raises(Reverted) as caught:
        world.claim(seen, 1)  # type: ignore[arg-type]
    assert caught.value.reason == "jobs: not open"
    assert world.state(worse) == State.OPEN
    # Posted again, the first is itself again, with its own lock beside the other's.
    world.post(seen)
    _later(world)
    world.claim(seen, 1)  # type: ignore[arg-type]
    assert (world.state(seen), world.state(worse)) == (State.RUNNING, State.OPEN)
    _later(world)
    world.decline(seen)


@pytest.mark.parametrize("depth", DEPTHS)
def test_reorg__node_id_goes_to_another_owner__operators_calls_are_refused(world: w.World, depth: int) -> None:
    terms = _terms(world)
    world.post(terms)
    _later(world)
    operator, rival = world.evm.account(f"operator {depth}"), world.evm.account(f"rival {depth}")
    node = world.register(owner=world.owner, operator=operator, beat=False)
    _reorg(world, depth)
    assert world.register(owner=world.stranger, operator=rival, beat=False) == node
    _later(world)
    world.nodes.send.beat(node, sender=rival)
    _later(world)
    with pytest.raises(Reverted, match="nodes: not the operator"):
        world.claim(terms, node, sender=operator)
    with pytest.raises(Reverted, match="nodes: not the operator"):
        world.nodes.send.beat(node, sender=operator)
    with pytest.raises(Reverted, match="nodes: not the owner"):
        world.nodes.send.exit_start(node, sender=world.owner)
    # What was meant for the node's own owner is no gift to the rival.
    with pytest.raises(Reverted, match="nodes: node of another owner"):
        world.pay(world.nodes, "add_stake", node, world.owner, w.ETHER, amount=w.ETHER, sender=world.owner)


def test_block__two_claims_in_one_block__order_decides_and_one_fails(world: w.World) -> None:
    """Attack 7 on a real node: both transactions wait in the pool, and are mined together in either order."""
    evm = world.evm
    rpc = evm.rpc  # type: ignore[attr-defined]
    rival = world.evm.account("block rival")
    _later(world)
    other = world.register(owner=world.stranger, operator=rival)
    for first, second in ((1, other), (other, 1)):
        terms = _terms(world)
        world.post(terms)
        _later(world)
        world.nodes.send.beat(other, sender=rival)
        _later(world)
        before = world.node(second)
        rpc("evm_setAutomine", False)
        hashes = []
        for node, tip in ((second, 1), (first, 2)):
            data = world.jobs.encode("claim", words.pack_terms(terms), 0, node, bytes(32), 0)
            sender = world.operator if node == 1 else rival
            price = hex(tip * 10**9)
            request = {"from": sender, "to": world.jobs.address, "data": "0x" + data.hex(), "gas": hex(500_000)}
            hashes.append(rpc("eth_sendTransaction", {**request, "gasPrice": price}))
        rpc("evm_setNextBlockTimestamp", evm.now)
        rpc("anvil_mine", "0x1")
        rpc("evm_setAutomine", True)
        lost, won = (rpc("eth_getTransactionReceipt", each) for each in hashes)
        assert won["blockNumber"] == lost["blockNumber"]
        assert (won["status"], lost["status"]) == ("0x1", "0x0")
        assert world.unit(terms).node == first
        after = world.node(second)
        assert (after.stake, after.state.bond, after.state.busy) == (before.stake, before.state.bond, before.state.busy)
        _later(world)
        world.decline(terms, sender=world.operator if first == 1 else rival)
