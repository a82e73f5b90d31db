"""Attack 22: come back into another contract of the market while one of them moves money; locks are per contract.

Whatever gets through gains nothing, and a reader that is called at that moment sees state that holds: the registries as
they will stay, Escrow's books never above its balance.
"""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import Billing, State
from tests.attacks.reentry import CASES, INNER, OUTER, REENTER, Attack
from tests.attacks.test_reentrancy import HOME, writing
from tests.kit import world as w
from tests.kit.evm import Reverted

# Every view with arguments, by contract.
VIEWS = [
    (contract, name)
    for contract, name in INNER
    if name
    in {
        *(
            "ASSET",
            "credit",
            "locked",
            "tracked",
            "get",
            "gate",
            "appraise",
            "last_seen",
            "operator_of",
            "owner_of",
            "totals",
            "job_id_of",
            "load",
            "checkpoints",
            "posted",
        ),
        *(
            "policies",
            "topped",
            "ruled",
            "check",
            "units",
            "nodes",
            "gates",
            "overview",
            "jobs",
            "status",
            "locks",
            "credits",
            "unit",
            "fit",
            "claimable_from",
            "score",
            "checkUpkeep",
        ),
    }
]
OF_ESCROW = {("Lens", "locks"), ("Lens", "credits"), ("Lens", "overview")}
"""What Lens reads from Escrow, some of it or all."""


@pytest.mark.parametrize(("kind", "outer"), CASES)
def test_cross_reentrancy__other_contracts_in_every_callback__gain_nothing(kind: str, outer: str) -> None:
    attack = Attack(kind)
    tried, passed, before = 0, [], attack.wealth()
    for contract, target in attack.contracts().items():
        if contract == HOME[outer]:
            continue
        for name in writing(target):
            with attack.evm.isolated():
                stood, results = attack.strike(outer, contract, name)
                if stood and any(succeeded for succeeded, _ in results):
                    passed.append(name)
                attack.check_books()
                after = attack.wealth()
            assert after <= before or after <= attack.most(outer, contract, name), name
            tried += 1
    print(f"cross-contract re-entrancy, {kind}, {outer}: {tried} functions, {len(passed)} got through")
    assert len(passed) >= 10, passed


@pytest.mark.parametrize(("kind", "outer"), CASES)
def test_cross_reentrancy__views_in_every_callback__show_state_that_holds(kind: str, outer: str) -> None:
    """The registries answer as after the call; Escrow, before a deposit is locked, as before it."""
    attack = Attack(kind)
    for contract, name in VIEWS:
        target = attack.contracts()[contract]
        function = target.function(name)
        args = INNER[contract, name](attack)
        with attack.evm.isolated():
            stood, results = attack.strike(outer, contract, name)
            assert stood
            assert len(results) == attack.calls
            if (contract == "Escrow" or (contract, name) in OF_ESCROW) and outer != "withdraw":
                continue
            try:
                after = attack.evm.raw_call(target, function.encode(args))
            except Reverted:
                after = b""
            for succeeded, answer in results:
                told = [_lasting(one) if name == "overview" else one for one in (answer, after[:256])]
                assert told[0] == told[1] if succeeded else not after, (contract, name)


def _lasting(overview: bytes) -> bytes:
    """Return what `Lens.overview` says but for `number` and `held`.

    The later look is one block on. And what Escrow holds is a token's word, which may be asked before it moves money.
    """
    return overview[:32] + overview[64:128] + overview[160:]


@pytest.mark.parametrize("outer", [outer for kind, outer in CASES if kind == "erc20"])
def test_cross_reentrancy__escrow_in_every_callback__never_counts_more_than_it_has(outer: str) -> None:
    attack = Attack("erc20")
    token = attack.world.token
    assert token is not None
    with attack.evm.isolated():
        _, counted = attack.strike(outer, "Escrow", "tracked")
    attack.attacker.send.prepare(token, token.encode("balanceOf", attack.world.escrow), 0, attack.calls)
    attack.attacker.send.set_mood(REENTER)
    OUTER[outer](attack)
    held = [int.from_bytes(attack.attacker.call.answers(n), "big") for n in range(attack.calls)]
    for (succeeded, answer), balance in zip(counted, held, strict=True):
        assert succeeded
        assert int.from_bytes(answer, "big") <= balance


@pytest.mark.parametrize("units", [1, 3])
def test_cross_reentrancy__topped_up_unit_before_its_money__ends_once_with_its_price(units: int) -> None:
    """Its submitter's other money stands in for what is on its way, within the one transaction that brings it."""
    attack = Attack("erc20")
    world = attack.world
    terms = attack._terms(attack.address, billing=Billing.METERED, max_attempts=1, max_seconds=20_000, units=units)
    attack.run(world.jobs, "post", words.pack_terms(terms), ())
    attack.jobs["mine topped"] = terms
    world.claim(terms, attack.victim_node, 0)
    world.evm.warp(w.DEAD_AFTER)
    packed = words.pack_terms(terms)
    inner = world.jobs.encode("reclaim", packed, 0, attack.attacker)
    running, before = world.unit(terms, 0), world.locked(attack.address)
    attack.attacker.send.prepare(world.jobs, inner, 0, attack.calls)
    attack.attacker.send.set_mood(REENTER)
    attack.run(world.jobs, "top_up", packed, 0, 500)
    attack.attacker.send.set_mood(0)
    assert [attack.attacker.call.succeeded(n) for n in range(2)] == [True, False]
    assert world.state(terms, 0) == State.REFUNDED
    # What came in is what the unit held more than before: the others' money is whole again.
    assert world.locked(attack.address) == before - formulas.unit_holds(terms, running)
    attack.check_books()


def test_cross_reentrancy__posted_job_without_its_funding__is_refunded_once_from_its_submitters_own_lock() -> None:
    """Within the transfer of a post the job exists and its funding does not: the cancel takes his other jobs', once."""
    attack = Attack("erc20")
    before, victims = attack.wealth(), attack.world.locked(attack.world.submitter)
    target = attack.world.jobs
    attack.attacker.send.prepare(target, target.encode("cancel", attack.packed("fresh"), 0), 0, attack.calls)
    attack.attacker.send.set_mood(REENTER)
    OUTER["post"](attack)
    assert [attack.attacker.call.succeeded(n) for n in range(2)] == [True, False]
    attack.check_books()
    assert attack.world.state(attack.jobs["fresh"]) == State.CANCELLED
    assert (attack.wealth(), attack.world.locked(attack.world.submitter)) == (before, victims)
