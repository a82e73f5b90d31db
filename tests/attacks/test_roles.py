"""Attack 10: everybody calls every function. The table is checked against the ABIs, so no function can be forgotten.

For each function there is a scene in which its rightful caller succeeds. Then every other account of the market makes
the same call: it is refused with the stated reason and changes nothing. What JobRegistry alone may call is tried on a
NodeRegistry of the same code that takes a plain account, "registry", for its JobRegistry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hearth.market.contracts import CONTRACTS
from hearth.protocol import words
from hearth.protocol.formulas import MAX_UINT
from tests.attacks.stages import KINDS, Scene, booked, holding, parties, scene
from tests.kit import world as w
from tests.kit.evm import Contract, Reverted
from tests.kit.steps import seat
from tests.kit.vault import key, share, shares

ANYONE = ""
BOND = 10**15
MORE = 60  # seconds of a top-up


@dataclass(frozen=True)
class Right:
    """Who may call a function: a role, why all others are refused, and a scene in which the call is valid."""

    role: str
    reason: str
    stage: str
    args: Callable[[Scene], tuple[Any, ...]]
    # What must happen before, as the rightful parties.
    prepare: Callable[[Scene], None] | None = None


def _terms(scene: Scene) -> words.TermsWords:
    return words.pack_terms(scene.terms)


def _pair(scene: Scene) -> None:
    """Put a NodeRegistry in the market whose JobRegistry is the account "registry", with one node that beats."""
    world = seat(scene.world)
    scene.node = world.register()


def _engagement(scene: Scene) -> tuple[Any, ...]:
    ask = (words.pack_needs(w.NEEDS), 100 * 10**18, BOND, MAX_UINT)
    return scene.node, scene.world.operator, ask, 0


def _engaged(scene: Scene) -> None:
    _pair(scene)
    scene.world.nodes.send.engage(*_engagement(scene), sender=scene.world.evm.account("registry"))


def _exiting(scene: Scene) -> None:
    scene.world.nodes.send.exit_start(scene.node, sender=scene.world.owner)


def _unbonded(scene: Scene) -> None:
    _exiting(scene)
    scene.world.evm.warp(w.UNBONDING)


def _give(scene: Scene, amount: int = 100) -> None:
    """Credit every party, so that a call fails for its caller and for nothing else."""
    world = scene.world
    payer = world.evm.account("payer")
    if world.token is not None:
        world.token.send.mint(world.escrow, amount * len(actors(scene)))
    value = 0 if world.token else amount * len(actors(scene))
    world.escrow.send.lock(key("gift"), amount * len(actors(scene)), sender=payer, value=value)
    for account in actors(scene).values():
        world.escrow.send.split(key("gift"), shares(share(account, amount)), sender=payer)


def _lock_each(scene: Scene) -> None:
    """Let every party hold a lock of its own."""
    _give(scene)
    for account in actors(scene).values():
        _send(scene, account, scene.world.escrow, "lock_credit", (key("own"), 100))


def _offer_node(scene: Scene) -> None:
    scene.world.nodes.send.offer_owner(scene.node, scene.world.keeper, sender=scene.world.owner)


def _offer_governor(contract: str) -> Callable[[Scene], None]:
    def offer(scene: Scene) -> None:
        registry = scene.world.nodes if contract == "NodeRegistry" else scene.world.rules
        registry.send.offer_governor(scene.world.keeper, sender=scene.world.deployer)

    return offer


def _mute(scene: Scene) -> None:
    scene.world.evm.warp(w.DEAD_AFTER)


NOT_OWNER = "nodes: not the owner"
NOT_JOBS = "nodes: not the job registry"
NOT_OPERATOR = "nodes: not the operator"
NODES_GOVERNOR = "nodes: not the governor"
RULES_GOVERNOR = "rules: not the governor"
NOT_JUDGE = "jobs: not the judge"
OWN_JOB = "jobs: operator is the submitter"
NOT_SUBMITTER = "jobs: not the submitter"
R = Right
# (contract, function): who may call it.
RIGHTS: dict[tuple[str, str], Right] = {
    ("Escrow", "lock"): R(ANYONE, "", "open", lambda s: (key("own"), 0)),
    ("Escrow", "lock_credit"): R(ANYONE, "", "open", lambda s: (key("own"), 60), _give),
    ("Escrow", "split"): R(ANYONE, "", "open", lambda s: (key("own"), shares(share(s.world.stranger, 60))), _lock_each),
    ("Escrow", "withdraw"): R(ANYONE, "", "open", lambda s: (s.world.evm.account("away"), 60), _give),
    ("NodeRegistry", "register"): R(
        ANYONE, "", "open", lambda s: (s.world.operator, words.pack_offer(w.OFFER), b"\1" * 32, w.ETHER)
    ),
    ("NodeRegistry", "add_stake"): R(ANYONE, "", "open", lambda s: (s.node, s.world.owner, 5)),
    ("NodeRegistry", "update_offer"): R(
        "owner", NOT_OWNER, "open", lambda s: (s.node, words.pack_offer(w.replace(w.OFFER, ask=0)), b"\1" * 32)
    ),
    ("NodeRegistry", "set_ask"): R("owner", NOT_OWNER, "open", lambda s: (s.node, 7)),
    ("NodeRegistry", "set_operator"): R("owner", NOT_OWNER, "open", lambda s: (s.node, s.world.stranger)),
    ("NodeRegistry", "offer_owner"): R("owner", NOT_OWNER, "open", lambda s: (s.node, s.world.stranger)),
    ("NodeRegistry", "accept_owner"): R(
        "keeper", "nodes: not offered to you", "open", lambda s: (s.node,), _offer_node
    ),
    ("NodeRegistry", "exit_start"): R("owner", NOT_OWNER, "open", lambda s: (s.node,)),
    ("NodeRegistry", "exit_cancel"): R("owner", NOT_OWNER, "open", lambda s: (s.node,), _exiting),
    ("NodeRegistry", "exit_finish"): R(ANYONE, "", "open", lambda s: (s.node,), _unbonded),
    ("NodeRegistry", "beat"): R("operator", NOT_OPERATOR, "open", lambda s: (s.node,)),
    ("NodeRegistry", "heartbeat"): R("operator", "nodes: nothing to do", "open", lambda s: ([s.node],)),
    ("NodeRegistry", "check_liveness"): R(ANYONE, "", "open", lambda s: ([s.node], s.world.stranger), _mute),
    ("NodeRegistry", "engage"): R("registry", NOT_JOBS, "open", lambda s: _engagement(s), lambda s: _pair(s)),
    ("NodeRegistry", "submitted"): R(
        "registry", NOT_JOBS, "open", lambda s: (s.node, s.world.operator), lambda s: _engaged(s)
    ),
    ("NodeRegistry", "declined"): R(
        "registry", NOT_JOBS, "open", lambda s: (s.node, s.world.operator, BOND, 7), lambda s: _engaged(s)
    ),
    ("NodeRegistry", "gave_up"): R(
        "registry", NOT_JOBS, "open", lambda s: (s.node, s.world.operator, BOND, 7, 1), lambda s: _engaged(s)
    ),
    ("NodeRegistry", "settled"): R(
        "registry", NOT_JOBS, "open", lambda s: (s.node, BOND, True, 1, 0), lambda s: _engaged(s)
    ),
    ("NodeRegistry", "finished"): R(
        "registry",
        NOT_JOBS,
        "open",
        lambda s: (s.node, s.world.operator, BOND, True, 1, 0, _engagement(s)[2]),
        lambda s: _engaged(s),
    ),
    ("NodeRegistry", "closed"): R("registry", NOT_JOBS, "open", lambda s: (s.node, BOND), lambda s: _engaged(s)),
    ("NodeRegistry", "reclaimed"): R(
        "registry", NOT_JOBS, "open", lambda s: (s.node, 1, BOND, 9, 4, 0, 1, s.world.stranger), lambda s: _engaged(s)
    ),
    ("NodeRegistry", "slashed"): R(
        "registry",
        NOT_JOBS,
        "open",
        lambda s: (s.node, BOND, [share(s.world.stranger, 7), 0, 0]),
        lambda s: _engaged(s),
    ),
    ("NodeRegistry", "set_minimum_stake"): R("governor", NODES_GOVERNOR, "open", lambda s: (2 * w.ETHER,)),
    ("NodeRegistry", "pause"): R("governor", NODES_GOVERNOR, "open", lambda s: ()),
    ("NodeRegistry", "offer_governor"): R("governor", NODES_GOVERNOR, "open", lambda s: (s.world.stranger,)),
    ("NodeRegistry", "accept_governor"): R(
        "keeper", "nodes: not offered to you", "open", lambda s: (), _offer_governor("NodeRegistry")
    ),
    ("JobRegistry", "post"): R(
        "submitter", NOT_SUBMITTER, "open", lambda s: (words.pack_terms(w.replace(s.terms, salt=10**6)), ())
    ),
    ("JobRegistry", "top_up"): R("submitter", NOT_SUBMITTER, "topped up", lambda s: (_terms(s), 0, MORE)),
    ("JobRegistry", "accept"): R("submitter", NOT_SUBMITTER, "submitted", lambda s: (_terms(s), 0)),
    ("JobRegistry", "cancel"): R("submitter", NOT_SUBMITTER, "running", lambda s: (_terms(s), 0)),
    ("JobRegistry", "ack"): R("operator", NOT_OPERATOR, "won", lambda s: (_terms(s), 0, bytes(32), 0)),
    ("JobRegistry", "claim"): R("operator", NOT_OPERATOR, "open", lambda s: (_terms(s), 0, s.node, bytes(32), 0)),
    ("JobRegistry", "checkpoint"): R(
        "operator", NOT_OPERATOR, "checkpointed", lambda s: (s.world.id_of(s.terms), 0, w.ROOT_DIGEST)
    ),
    ("JobRegistry", "submit"): R(
        "operator", NOT_OPERATOR, "running", lambda s: (s.world.id_of(s.terms), 0, w.RESULT, w.REPORT, 1, 0)
    ),
    ("JobRegistry", "finish"): R(
        "operator", NOT_OPERATOR, "seasoned", lambda s: (_terms(s), 0, w.RESULT, w.REPORT, 1, 0, True, bytes(32))
    ),
    ("JobRegistry", "decline"): R("operator", NOT_OPERATOR, "running", lambda s: (_terms(s), 0, 6, w.REPORT)),
    ("JobRegistry", "give_up"): R("operator", NOT_OPERATOR, "running", lambda s: (_terms(s), 0, w.REPORT)),
    ("JobRegistry", "propose"): R(ANYONE, "", "lapsed", lambda s: (_terms(s), 0, 2, w.ZERO), lambda s: _second(s)),
    ("JobRegistry", "settle"): R(ANYONE, "", "submitted", lambda s: (_terms(s), 0, w.ZERO)),
    ("JobRegistry", "settle_batch"): R(ANYONE, "", "submitted", lambda s: ([(_terms(s), 0)], w.ZERO)),
    ("JobRegistry", "close"): R(ANYONE, "", "noticed", lambda s: (_terms(s), 0, w.ZERO)),
    ("JobRegistry", "reclaim"): R(ANYONE, "", "overdue", lambda s: (_terms(s), 0, w.ZERO)),
    ("JobRegistry", "expire"): R(ANYONE, "", "expirable", lambda s: (_terms(s), 0, w.ZERO)),
    ("JobRegistry", "unlock"): R(
        ANYONE, "", "unlockable", lambda s: (_terms(s), s.world.parents[s.world.id_of(s.terms)], w.ZERO)
    ),
    ("JobRegistry", "dispute"): R("judge", NOT_JUDGE, "judged", lambda s: (_terms(s), 0)),
    ("JobRegistry", "rule"): R(
        "judge", NOT_JUDGE, "disputed", lambda s: (_terms(s), 0, 2, 0, [share(s.world.stranger, 7), 0, 0], w.ZERO)
    ),
    ("Rules", "set_policy"): R(
        "governor", RULES_GOVERNOR, "open", lambda s: (words.pack_policy(w.replace(w.POLICY, fee_bps=300)),)
    ),
    ("Rules", "drop_previous_policy"): R("governor", RULES_GOVERNOR, "open", lambda s: ()),
    ("Rules", "pause"): R("governor", RULES_GOVERNOR, "open", lambda s: ()),
    ("Rules", "offer_governor"): R("governor", RULES_GOVERNOR, "open", lambda s: (s.world.stranger,)),
    ("Rules", "accept_governor"): R(
        "keeper", "rules: not offered to you", "open", lambda s: (), _offer_governor("Rules")
    ),
    ("Lens", "performUpkeep"): R(ANYONE, "", "submitted", lambda s: ([(1, _terms(s), 0, 0)], w.ZERO)),
}
# What a call brings along, in base units.
AMOUNTS = {
    ("NodeRegistry", "register"): w.ETHER,
    ("NodeRegistry", "add_stake"): 5,
    ("JobRegistry", "top_up"): MORE * 10**14,
}


def _second(scene: Scene) -> None:
    """Add the node that may be proposed after the first one's lapse."""
    scene.world.register(owner=scene.world.evm.account("owner 2"), operator=scene.world.evm.account("operator 2"))


def contracts(scene: Scene) -> dict[str, Contract]:
    """Return the market's contracts by name.

    But for Attesters, which is for who has the signatures (test_attesters), and Steward, which has seats of its own
    (tests/contracts/steward/test_roles.py).
    """
    world = scene.world
    names = [name for name in CONTRACTS if name not in ("Attesters", "Steward")]
    return dict(zip(names, (world.escrow, world.nodes, world.rules, world.jobs, world.lens), strict=True))


def actors(scene: Scene) -> dict[str, str]:
    """Return every account that takes part: the parties, governor and judge, and who stands in for a JobRegistry."""
    people = {name: account for name, account in parties(scene.world).items() if name != "dead"}
    return people | {
        "governor": scene.world.deployer,
        "registry": scene.world.evm.account("registry"),
        "judge": scene.world.judge.address,
    }


def _call(scene: Scene, name: tuple[str, str], sender: str, amount: int) -> None:
    contract = contracts(scene)[name[0]]
    args = RIGHTS[name].args(scene)
    world = scene.world
    _send(scene, sender, contract, name[1], args, value=amount if world.token is None else 0)


def _send(scene: Scene, sender: str, contract: Contract, name: str, args: tuple[Any, ...], *, value: int = 0) -> None:
    """Make a call as an account; the judge has code, and is told what to call."""
    world = scene.world
    payer = world.deployer if sender == world.judge.address else sender
    if value:
        world.evm.set_balance(payer, 10**24)
    if sender == world.judge.address:
        world.judge.send.run(contract, contract.encode(name, *args), value=value)
    else:
        getattr(contract.send, name)(*args, sender=sender, value=value)


def _fund(scene: Scene, name: tuple[str, str], amount: int) -> None:
    """Give everybody the means, so that nobody is refused for lack of money."""
    world = scene.world
    for account in actors(scene).values():
        if world.token is None:
            world.evm.set_balance(account, 10**24)
        elif amount:
            world.token.send.mint(account, amount)
            _send(scene, account, world.token, "approve", (contracts(scene)[name[0]], amount))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RIGHTS, ids=".".join)
def test_roles__each_account_calls_each_function__only_the_rightful_succeed(name: tuple[str, str], kind: str) -> None:
    right = RIGHTS[name]
    found = scene(right.stage, kind)
    world = found.world
    if right.prepare is not None:
        right.prepare(found)
    amount = AMOUNTS.get(name, world.lock_of(found.terms) if name[1] == "post" else 0)
    _fund(found, name, amount)
    allowed, refused = [], []
    for role, account in actors(found).items():
        before = world.evm.state_hash()
        with world.evm.isolated():
            try:
                _call(found, name, account, amount)
            except Reverted as reverted:
                reasons = {right.reason} | ({OWN_JOB} if role == "submitter" else set())
                assert reverted.reason in reasons, (role, reverted.reason)
                assert world.evm.state_hash() == before
                refused.append(role)
            else:
                allowed.append(role)
    wanted = [right.role] if right.role != ANYONE else list(actors(found))
    assert sorted(allowed) == sorted(wanted)
    assert len(allowed) + len(refused) == len(actors(found))


def test_roles__table__names_every_function_that_writes() -> None:
    found = scene("open")
    writing = {
        (name, function.name)
        for name, contract in contracts(found).items()
        for function in contract.all_functions()
        if not function.is_view
    }
    assert set(RIGHTS) == writing


@pytest.mark.parametrize("kind", KINDS)
def test_roles__governor_with_all_his_calls__reaches_no_money(kind: str) -> None:
    """Every governor's call, with a job at every hand: no lock, no stake, no credit moves."""
    for stage in ("running", "submitted", "judged", "disputed", "closing", "array running"):
        found = scene(stage, kind)
        world = found.world
        before = (world.load(found.terms), world.node(found.node), booked(found), holding(world, world.escrow))
        for name, right in RIGHTS.items():
            if right.role == "governor":
                _call(found, name, world.deployer, 0)
        assert before == (
            world.load(found.terms),
            world.node(found.node),
            booked(found),
            holding(world, world.escrow),
        )
