"""Every stage of a job's life as a scene to attack: a market, one node, and one job that has come that far.

A stage is finer than a state: the same word means something else once its time has come. `FINISH` names the calls that
anyone may make, and `finish` ends a job with nothing but those and time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hearth.protocol import formulas
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import SENTINEL, Billing, NodeId, State, Terms, TermsFlag
from tests.kit import world as w
from tests.kit.evm import Contract, Evm
from tests.kit.steps import RESUMABLE, season

KINDS = ("native", "erc20")
# Traits of ZooToken.
FEE, LIE, REVERT, FREEZE, PAUSE, HOOK = 1 << 0, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6


def market(kind: str, *, exact_gas: bool = False, policy: w.Policy = w.POLICY) -> w.World:
    """Deploy a market of the native coin, or of a token with switches."""
    return w.World(Evm(exact_gas=exact_gas), erc20=kind == "erc20", token=w.ZOO, policy=policy)


@dataclass
class Scene:
    """One market with one node and one job."""

    world: w.World
    node: NodeId
    terms: Terms

    def index(self) -> int:
        """Name the unit that the stage is about."""
        return 0

    def unit_state(self) -> State:
        """Read the unit's state, as stored."""
        return self.world.state(self.terms, self.index())

    def to(self, moment: int) -> None:
        """Let time pass until `moment`, if it has not come yet."""
        self.world.evm.at(max(moment, self.world.evm.now))


def _open(scene: Scene) -> None:
    scene.world.post(scene.terms)


def _expirable(scene: Scene) -> None:
    _open(scene)
    scene.to(formulas.expirable_from(scene.terms))


def _proposed(scene: Scene) -> None:
    scene.terms = replace(scene.terms, match_window=30)
    _open(scene)
    scene.world.propose(scene.terms, scene.node)


def _won(scene: Scene) -> None:
    _proposed(scene)
    scene.world.evm.warp(30)


def _lapsed(scene: Scene) -> None:
    _won(scene)
    scene.world.evm.warp(scene.world.policy.ack_time)


def _running(scene: Scene) -> None:
    _open(scene)
    scene.world.claim(scene.terms, scene.node)


def _seasoned(scene: Scene) -> None:
    """Run as a node that is on probation no more: what it makes may be finished."""
    season(scene.world, scene.node)
    _running(scene)


def _acked(scene: Scene) -> None:
    _won(scene)
    scene.world.ack(scene.terms)


def _overdue(scene: Scene) -> None:
    _running(scene)
    scene.to(scene.world.unit(scene.terms).mark)


def _last_overdue(scene: Scene) -> None:
    scene.terms = replace(scene.terms, max_attempts=1)
    _overdue(scene)


def _silent(scene: Scene) -> None:
    scene.terms = replace(scene.terms, max_seconds=20_000)
    _running(scene)
    scene.world.evm.warp(w.DEAD_AFTER)


def _reopened(scene: Scene) -> None:
    _running(scene)
    scene.world.decline(scene.terms)


def _checkpointed(scene: Scene) -> None:
    scene.terms = replace(scene.terms, **RESUMABLE)
    _running(scene)
    scene.world.evm.warp(40)
    scene.world.checkpoint(scene.terms)
    scene.world.evm.warp(1)


def _resumable(scene: Scene) -> None:
    """The first attempt left a checkpoint and nobody has taken the second."""
    scene.terms = replace(scene.terms, max_attempts=max(2, scene.terms.max_attempts))
    _checkpointed(scene)
    scene.world.give_up(scene.terms)


def _resumed(scene: Scene) -> None:
    """Its owner's other node left what this one resumes."""
    world = scene.world
    scene.terms = replace(scene.terms, max_attempts=max(2, scene.terms.max_attempts), **RESUMABLE)
    first = world.register(stake=world.node(scene.node).stake)
    _open(scene)
    world.claim(scene.terms, first)
    world.evm.warp(40)
    world.checkpoint(scene.terms)
    world.give_up(scene.terms)
    world.claim(scene.terms, scene.node, resume_from=1)


def _resumed_submitted(scene: Scene) -> None:
    _resumed(scene)
    scene.world.evm.warp(5)
    scene.world.submit(scene.terms)


def _topped_up(scene: Scene) -> None:
    most = formulas.MAX_SECONDS - 600
    scene.terms = replace(scene.terms, billing=Billing.METERED, max_seconds=min(most, scene.terms.max_seconds))
    _running(scene)
    scene.world.top_up(scene.terms, 600)


def _closing(scene: Scene) -> None:
    _running(scene)
    scene.world.evm.warp(7)
    scene.world.cancel(scene.terms)


def _noticed(scene: Scene) -> None:
    _closing(scene)
    scene.to(scene.world.unit(scene.terms).mark)


def _submitted(scene: Scene) -> None:
    _running(scene)
    scene.world.evm.warp(5)
    scene.world.submit(scene.terms)


def _judged(scene: Scene) -> None:
    scene.terms = replace(scene.terms, **scene.world.judged())
    _submitted(scene)


def _disputed(scene: Scene) -> None:
    _judged(scene)
    scene.world.dispute(scene.terms)


def _proven(scene: Scene) -> None:
    scene.terms = replace(scene.terms, **scene.world.judged(flags=scene.terms.flags | TermsFlag.PROVEN))
    _submitted(scene)


def _proven_disputed(scene: Scene) -> None:
    _proven(scene)
    scene.world.dispute(scene.terms)


def _window_over(scene: Scene) -> None:
    _judged(scene)
    scene.to(formulas.challenge_end(scene.terms, scene.world.unit(scene.terms)))


def _stale(scene: Scene) -> None:
    _disputed(scene)
    scene.to(formulas.settleable_from(scene.terms, scene.world.unit(scene.terms)))


def _unproven(scene: Scene) -> None:
    _proven(scene)
    scene.to(scene.terms.deadline + scene.terms.challenge_window)


def _settled(scene: Scene) -> None:
    _submitted(scene)
    scene.world.settle(scene.terms)


def _refunded(scene: Scene) -> None:
    _last_overdue(scene)
    scene.world.reclaim(scene.terms)


def _cancelled(scene: Scene) -> None:
    _open(scene)
    scene.world.cancel(scene.terms)


def _closed(scene: Scene) -> None:
    _noticed(scene)
    scene.world.close(scene.terms)


def _expired(scene: Scene) -> None:
    _expirable(scene)
    scene.world.expire(scene.terms)


def _array(scene: Scene) -> None:
    scene.terms = replace(scene.terms, units=3)
    _open(scene)


def _array_expirable(scene: Scene) -> None:
    _array(scene)
    scene.to(formulas.expirable_from(scene.terms))


def _array_running(scene: Scene) -> None:
    _array(scene)
    scene.world.claim(scene.terms, scene.node, SENTINEL)


def _array_submitted(scene: Scene) -> None:
    _array_running(scene)
    scene.world.submit(scene.terms)


def _array_closed(scene: Scene) -> None:
    _array_running(scene)
    scene.world.cancel(scene.terms, SENTINEL)


def _wait(scene: Scene, parent: Terms, condition: Condition) -> None:
    world = scene.world
    packed = pack_parents([Parent(world.id_of(parent), condition)])
    scene.terms = replace(scene.terms, parents_hash=parents_hash(packed))
    world.parents[world.id_of(scene.terms)] = packed
    world.post_receipt(scene.terms, parents=packed)


def _blocked(scene: Scene) -> None:
    """Wait for a job that was never posted."""
    _wait(scene, scene.world.terms(), Condition.ALWAYS)


def _blocked_expirable(scene: Scene) -> None:
    _blocked(scene)
    scene.to(formulas.expirable_from(scene.terms))


def _ended_parent(scene: Scene, condition: Condition) -> None:
    """Wait for a job that has been cancelled."""
    parent = scene.world.post()
    scene.world.cancel(parent)
    _wait(scene, parent, condition)


def _unlockable(scene: Scene) -> None:
    _ended_parent(scene, Condition.FAILURE)


def _failing(scene: Scene) -> None:
    _ended_parent(scene, Condition.SUCCESS)


def _array_blocked(scene: Scene) -> None:
    scene.terms = replace(scene.terms, units=3)
    _blocked(scene)


def _array_blocked_expirable(scene: Scene) -> None:
    scene.terms = replace(scene.terms, units=3)
    _blocked_expirable(scene)


def _array_unlockable(scene: Scene) -> None:
    scene.terms = replace(scene.terms, units=3)
    _unlockable(scene)


def _array_failing(scene: Scene) -> None:
    scene.terms = replace(scene.terms, units=3)
    _failing(scene)


def _failed(scene: Scene) -> None:
    _failing(scene)
    scene.world.unlock(scene.terms)


def _array_failed(scene: Scene) -> None:
    _array_failing(scene)
    scene.world.unlock(scene.terms)


# Stages that are no end, then the ends.
LIVE: dict[str, Callable[[Scene], None]] = {
    "open": _open,
    "expirable": _expirable,
    "proposed": _proposed,
    "won": _won,
    "lapsed": _lapsed,
    "running": _running,
    "seasoned": _seasoned,
    "acked": _acked,
    "overdue": _overdue,
    "last overdue": _last_overdue,
    "silent": _silent,
    "reopened": _reopened,
    "checkpointed": _checkpointed,
    "resumable": _resumable,
    "resumed": _resumed,
    "resumed submitted": _resumed_submitted,
    "topped up": _topped_up,
    "closing": _closing,
    "noticed": _noticed,
    "submitted": _submitted,
    "judged": _judged,
    "window over": _window_over,
    "disputed": _disputed,
    "stale": _stale,
    "proven": _proven,
    "proven disputed": _proven_disputed,
    "unproven": _unproven,
    "array": _array,
    "array expirable": _array_expirable,
    "array running": _array_running,
    "array submitted": _array_submitted,
    "array closed": _array_closed,
    "blocked": _blocked,
    "blocked expirable": _blocked_expirable,
    "unlockable": _unlockable,
    "failing": _failing,
    "array blocked": _array_blocked,
    "array blocked expirable": _array_blocked_expirable,
    "array unlockable": _array_unlockable,
    "array failing": _array_failing,
}
ENDED: dict[str, Callable[[Scene], None]] = {
    "settled": _settled,
    "refunded": _refunded,
    "cancelled": _cancelled,
    "closed": _closed,
    "expired": _expired,
    "failed": _failed,
    "array failed": _array_failed,
}
STAGES = LIVE | ENDED


def scene(stage: str, kind: str = "native", *, stake: int = 100 * w.ETHER, **overrides: Any) -> Scene:
    """Deploy a market and bring one job to a stage; `overrides` are fields of its terms."""
    world = market(kind)
    node = world.register(stake=stake)
    found = Scene(world, node, world.terms(**{"flags": TermsFlag.NEWCOMERS, **overrides}))
    STAGES[stage](found)
    return found


def units(found: Scene) -> list[int]:
    """Return the touched units that are not at an end."""
    job = found.world.load(found.terms)[0]
    if job & 15 != 15:
        return [] if found.world.state(found.terms).terminal else [0]
    touched = found.world.header(found.terms).touched
    return [i for i in range(touched) if not found.world.state(found.terms, i).terminal]


def untouched(found: Scene) -> bool:
    """Say whether an array's rest is still open."""
    if found.world.load(found.terms)[0] & 15 != 15:
        return False
    header = found.world.header(found.terms)
    return not header.closed and header.touched < found.terms.leases


def finish(found: Scene, *, payee: str = w.ZERO) -> int:
    """End the job as a stranger, with time and calls that anyone may make; return the number of calls."""
    world, terms = found.world, found.terms
    calls = 0
    for index in units(found):
        while not world.state(terms, index).terminal:
            unit = world.unit(terms, index)
            if unit.state in (State.OPEN, State.BLOCKED):
                found.to(formulas.expirable_from(terms))
                world.expire(terms, index, sender=world.stranger, payee=payee)
            elif unit.state == State.RUNNING:
                found.to(unit.mark)
                world.reclaim(terms, index, sender=world.stranger, payee=payee)
            elif unit.state == State.CLOSING:
                found.to(unit.mark)
                world.close(terms, index, sender=world.stranger, payee=payee)
            else:
                found.to(formulas.settleable_from(terms, unit))
                world.settle(terms, index, sender=world.stranger, payee=payee)
            calls += 1
    if untouched(found):
        found.to(formulas.expirable_from(terms))
        world.expire(terms, SENTINEL, sender=world.stranger, payee=payee)
        calls += 1
    return calls


def ended(found: Scene) -> bool:
    """Say whether every unit of the job has ended and its lock is empty."""
    return not units(found) and not untouched(found) and found.world.lock_of(found.terms) == 0


def parties(world: w.World) -> dict[str, str]:
    """Return everybody whom this market may owe something."""
    return {
        "submitter": world.submitter,
        "owner": world.owner,
        "operator": world.operator,
        "keeper": world.keeper,
        "stranger": world.stranger,
        "treasury": world.treasury,
        "dead": w.DEAD,
    }


def credits(world: w.World) -> dict[str, int]:
    """Return everybody's credit."""
    return {name: world.credit(account) for name, account in parties(world).items()}


def holding(world: w.World, who: str | Contract) -> int:
    """Return the base units of the asset that an account holds outside the books."""
    return int(world.token.call.balanceOf(who)) if world.token else world.evm.balance(who)


def booked(found: Scene) -> int:
    """Return the sum of the books of a scene: its job, its nodes, everybody's credit."""
    world = found.world
    staked = sum(world.staked(NodeId(node)) for node in range(1, world.nodes.call.totals() & 0xFFFFFFFF))
    return world.lock_of(found.terms) + staked + sum(credits(world).values())
