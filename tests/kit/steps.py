"""Steps and measures that the tests of the registries share. Amounts are base units, times Unix seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hearth.market.network import NodeParameters
from hearth.protocol import words
from hearth.protocol.formulas import MAX_UINT
from hearth.protocol.types import Billing, Needs, NodeId, NodeState, Terms, TermsFlag, UnitFlag
from tests.kit.evm import Contract, Receipt
from tests.kit.world import DEAD, FEE_REFERENCE, NEEDS, ZOO, World

# Traits of contracts/mocks/ZooToken.vy.
SILENT, LIE = 2, 4
# Of a job with World's defaults on a node with OFFER: a price of 1e20 x 1000 s, a rate of 25e18, fee 500 bps.
PRICE = 10**17
PAY = 25 * 10**15
FEE = 125 * 10**13
KEEPER_FEE = 10**14
BUDGET = PRICE + 3 * KEEPER_FEE
BOND = 5 * 10**16
SLASH = 5 * 10**15
SETTLE_PAY = 125 * 10**11  # keeper_fee // 8
TIP = 5 * 10**13
LEASE = 1_300  # max_seconds and the grace floor
# Of a judged one: the policy's shortest window, and what a voided unit pays for 60 s.
WINDOW = 7_200
STALE = 30 * 86_400
VOID_PAY = 15 * 10**14
VOID_FEE = 75 * 10**12
# Of a job whose leases may checkpoint.
RESUMABLE: dict[str, Any] = {"billing": Billing.METERED, "checkpoint_every": 60}


def around(world: World, second: int) -> Iterator[int]:
    """Visit the second before, at and after a boundary, each from the present state; yield -1, 0, 1."""
    for offset in (-1, 0, 1):
        with world.evm.isolated():
            world.evm.at(second + offset)
            yield offset


@contextmanager
def credited(world: World) -> Iterator[dict[str, int]]:
    """Collect, by the end of the block, whose credit in Escrow rose and by how much."""
    accounts = {
        "owner": world.owner,
        "treasury": world.treasury,
        "submitter": world.submitter,
        "keeper": world.keeper,
        "operator": world.operator,
        "stranger": world.stranger,
        "deployer": world.deployer,
        "dead": DEAD,
    }
    before = {name: world.credit(account) for name, account in accounts.items()}
    found: dict[str, int] = {}
    yield found
    after = {name: world.credit(account) for name, account in accounts.items()}
    found.update({name: after[name] - before[name] for name in accounts if after[name] != before[name]})


def node_state(world: World, node: NodeId) -> NodeState:
    """Return a node state."""
    return world.node(node).state


def ask(
    *, needs: Needs = NEEDS, ceiling: int = 100 * 10**18, bond: int = BOND, probation: int = MAX_UINT
) -> tuple[int, int, int, int]:
    """Return what a job asks of a node, as NodeRegistry takes it."""
    return words.pack_needs(needs), ceiling, bond, probation


def seat(world: World) -> World:
    """Put a NodeRegistry in place that takes a plain account for its JobRegistry, so that `from_jobs` can call it."""
    world.nodes = world.deploy_nodes(world.evm.account("registry"))
    return world


def from_jobs(world: World, name: str, *args: Any) -> Receipt:
    """Call a seated NodeRegistry as its JobRegistry."""
    return getattr(world.nodes.send, name)(*args, sender=world.evm.account("registry"))


def set_totals(world: World, **lanes: int) -> None:
    """Write the totals of a NodeRegistry that has no node yet (`words.TOTALS`): what nobody registers or burns here."""
    evm = world.evm
    assert evm.storage_at(world.nodes, 0) == 1, "totals lie in the first slot"
    word = words.pack(words.TOTALS, {"next_id": 1, "hour": 0, "burnt": 0, "total": 0, **lanes})
    evm.settle()
    point = evm._machine.snapshot()
    evm._machine.insert_account_storage(world.nodes.address, 0, word)
    evm._machine.revert(point)


def engage(world: World, node: NodeId, *, rate: int = 0, operator: str | None = None, **changes: Any) -> Receipt:
    """Engage a node as JobRegistry."""
    return from_jobs(world, "engage", node, operator or world.operator, ask(**changes), rate)


def running(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Register a node, post a job (`overrides` of its terms) and claim it."""
    node = world.register()
    terms = world.post(**overrides)
    world.claim(terms, node)
    return terms, node


def other(world: World, name: str = "other", **options: Any) -> tuple[NodeId, str]:
    """Register a node of another owner, `name`, and return it with its operator's account."""
    operator = world.evm.account(f"{name} operator")
    return world.register(owner=world.evm.account(name), operator=operator, **options), operator


def lost(world: World, *, seconds: int = 100, ending: str = "give_up", **overrides: Any) -> tuple[Terms, NodeId]:
    """Claim a job whose leases may checkpoint, checkpoint it after some seconds, and lose the lease."""
    terms, node = running(world, **{**RESUMABLE, **overrides})
    world.evm.warp(seconds)
    world.checkpoint(terms)
    lose(world, terms, ending)
    return terms, node


def lose(world: World, terms: Terms, ending: str, index: int = 0, *, sender: str | None = None) -> None:
    """Lose a running lease: its operator gives it up, or the keeper reclaims it when it is over."""
    if ending == "reclaim":
        world.evm.at(max(world.evm.now, world.unit(terms, index).mark))
        world.reclaim(terms, index)
    else:
        world.give_up(terms, index, sender=sender)


def season(world: World, node: NodeId, *, operator: str | None = None) -> None:
    """End a node's probation by work for others, of which each fee counts in full."""
    while not world.node(node).state.seasoned:
        terms = world.post()
        world.evm.warp(world.policy.claim_ramp)
        world.claim(terms, node, sender=operator)
        world.submit(terms, sender=operator)
        world.settle(terms)


def seasoned(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Register a node whose probation is over, post a job (`overrides` of its terms) and claim it."""
    node = world.register()
    season(world, node)
    terms = world.post(**overrides)
    world.claim(terms, node)
    return terms, node


def won(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Register a node, post a job, propose the node, and let the window end."""
    node, terms = world.register(), world.post(**{"match_window": 30, **overrides})
    world.propose(terms, node)
    world.evm.warp(terms.match_window)
    return terms, node


def submitted(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Register a node, post a job, claim it, and submit after 100 s."""
    terms, node = running(world, **overrides)
    world.evm.warp(100)
    world.submit(terms)
    return terms, node


def judged(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Submit a result of a job that names the market's judge."""
    return submitted(world, **world.judged(**overrides))


def proven(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Submit a result that its judge has to confirm."""
    return judged(world, **{"flags": TermsFlag.NEWCOMERS | TermsFlag.PROVEN, **overrides})


def disputed(world: World, **overrides: Any) -> tuple[Terms, NodeId]:
    """Submit a result that its judge holds at once."""
    terms, node = judged(world, **overrides)
    world.dispute(terms)
    return terms, node


def awkward(world: World) -> tuple[Contract, Contract, Contract]:
    """Deploy a market of an awkward token in `world`'s chain: (token, NodeRegistry, JobRegistry)."""
    parameters = NodeParameters(900, 600, 86_400, 1, FEE_REFERENCE, 0, 0)
    made = World(world.evm, erc20=True, token=ZOO, policy=world.policy, parameters=parameters)
    assert made.token is not None
    return made.token, made.nodes, made.jobs


def noticed(world: World, terms: Terms) -> bool:
    """Say whether a unit's lease was cancelled while it ran."""
    return bool(world.unit(terms).flags & UnitFlag.NOTICED)
