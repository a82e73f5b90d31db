"""What a keeper that leaves nothing to others does about a unit, an array's rest and silent nodes, and its calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from eth_utils.crypto import keccak

from hearth.chain.port import Call
from hearth.market.calls import Calls, Upkeep, UpkeepOp
from hearth.protocol import formulas, parents, words
from hearth.protocol.formulas import Immutables
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import (
    BPS,
    SENTINEL,
    Header,
    JobId,
    Node,
    NodeId,
    Outcome,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from keeper.actions import Action, CheckLiveness, Skip, _OnUnit
from keeper.config import Config
from keeper.decide import decide
from keeper.fleet import Fleet, encode_node
from keeper.snapshot import JobRow, ParentWord, Snapshot, UnitRow
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import NOW, node_fields, terms_words
from tests.web.vectors._plain import plain
from tests.web.vectors.network import NETWORK

COUNT = 180
PAYEE = "0x" + "9a" * 20
FEE = 10**14
PRICES = (10**6, 10**8, 10**9)
"""Wei per gas."""
ALL = -1
_OPS = {
    "settle": UpkeepOp.SETTLE,
    "close": UpkeepOp.CLOSE,
    "reclaim": UpkeepOp.RECLAIM,
    "expire": UpkeepOp.EXPIRE,
    "check_liveness": UpkeepOp.LIVENESS,
}
_WELL = words.pack_unit(Unit(State.SETTLED, Outcome.OK))
_PARENTS = (
    *(0, words.pack_unit(Unit(State.RUNNING)), _WELL, _WELL, words.pack_unit(Unit(State.CANCELLED))),
    *(words.pack_header(Header(touched=2, done=done, failed=1, leases=3)) for done in (1, 2)),
)


@dataclass(frozen=True)
class Case:
    """A job at a second, with a unit or with its header, and a node or two."""

    terms: Terms
    unit: Unit
    header: Header | None
    parents: tuple[Parent, ...]
    words: tuple[int, ...]
    nodes: tuple[Node, ...]
    dead_after: int
    now: int


def cases() -> dict[str, Any]:
    """Return jobs and nodes with what is to be done about them, and the calls that do it for `payee`."""
    random = _chance.source("upkeep")
    return {
        "network": NETWORK.as_dict(),
        "payee": PAYEE,
        "fee": str(FEE),
        "prices": [str(price) for price in PRICES],
        "cases": _chance.telling((_written(_case(random)) for _ in _chance.rows(COUNT)), _kinds, 1),
    }


def _kinds(row: dict[str, Any]) -> set[Any]:
    """Return what is done, of a unit or of an array's rest, and at which prices of gas it is worth it."""
    tasks = {(task["does"], task["index"] == "0", *task["worth"]) for task in row["tasks"]}
    return {*tasks, ("silent", len(row["silent"])), len(row["tasks"])}


def _written(case: Case) -> dict[str, Any]:
    job = JobRow(JobId(b"\x07" * 32), case.terms, (), case.header, 0, parents=case.parents)
    of_unit = _decided(case, replace(job, units=(UnitRow(0, case.unit),), header=None))
    of_rest = [] if case.header is None else _decided(case, job)
    nodes = [one for one in of_unit if isinstance(one, CheckLiveness)]
    of_job = [one for one in (*of_unit, *of_rest) if isinstance(one, _OnUnit) or one.kind == "settle"]
    calls, packed = Calls(NETWORK), words.pack_terms(case.terms)
    upkeep = [
        Upkeep(_OPS[one.kind], packed, SENTINEL if getattr(one, "index", 0) == ALL else 0)
        for one in of_job
        if one.kind in _OPS
    ]
    return {
        "terms": terms_words(case.terms),
        "unit": hex(words.pack_unit(case.unit)),
        "header": None if case.header is None else hex(words.pack_header(case.header)),
        "parents": [f"0x{one.hex()}" for one in parents.pack_parents(case.parents)],
        "words": [hex(one) for one in case.words],
        "nodes": [node_fields(node) for node in case.nodes],
        "deadAfter": case.dead_after,
        "now": case.now,
        "tasks": [
            {
                "does": one.kind,
                "index": str(SENTINEL if getattr(one, "index", 0) == ALL else 0),
                "pay": plain(one.reward),
                "gas": one.gas,
                "worth": [Config(PAYEE, PAYEE).is_worth(one.reward, one.gas, price) for price in PRICES],
                "call": _plain(one.call(calls, lambda _: packed, PAYEE)),
            }
            for one in of_job
        ],
        "batch": _plain(calls.perform_upkeep(upkeep, PAYEE)),
        "silent": [int(node) for one in nodes for node in one.nodes],
        "silencesPay": plain(sum(one.reward for one in nodes)),
        "silence": _plain(calls.check_liveness([nodes[0].nodes[0]], PAYEE)) if nodes else None,
    }


def _decided(case: Case, job: JobRow) -> list[Action]:
    """Return what is sent where nothing is left to others and any loss is borne."""
    config = Config(keeper=PAYEE, payee=PAYEE, jitter=0, latency=0, max_loss=10**60)
    fleet = Fleet()
    fleet.write(NodeId(1), b"".join(encode_node(node) for node in case.nodes))
    view = fleet.at(case.now, Immutables(case.dead_after, 10**18))
    found = {parent.job: ParentWord(word, 0) for parent, word in zip(case.parents, case.words, strict=True)}
    said = decide(Snapshot(100, case.now, view, (job,), FEE, 10**9, parents=found), config, case.now)
    return [one for one in said if not isinstance(one, Skip)]


def _plain(call: Call) -> dict[str, str]:
    """Return a call, its data by their hash: they are long, and equal or not."""
    return {"to": call.to.lower(), "data": f"0x{keccak(call.data).hex()}", "label": call.label}


def _case(random: Random) -> Case:
    policy = _drawn.drawn_policy(random)
    waits = tuple(
        Parent(JobId(bytes([at + 1]) * 32), random.choice([*Condition])) for at in range(random.randrange(1, 4))
    )
    state = random.choice(
        (State.OPEN, State.OPEN, State.BLOCKED, State.BLOCKED)
        + (State.RUNNING, State.RUNNING, State.CLOSING, State.SUBMITTED, State.DISPUTED, None)
    )
    terms = replace(_drawn.drawn_terms(random, policy), match_window=0, keeper_fee=random.choice((0, 7, 1_001, 10**14)))
    terms = replace(terms, parents_hash=parents.parents_hash(parents.pack_parents(waits)))
    if random.random() < 0.5:
        terms = replace(terms, units=terms.chunk, replicas=1)
    if random.random() < 0.2:
        terms = replace(terms, flags=TermsFlag.PROVEN)
    unit = _drawn.drawn_unit(random, state=state)
    if terms.leases > 1:
        unit = replace(unit, flags=unit.flags | UnitFlag.ARRAY)
    header = None
    if terms.leases > 1:
        touched = random.randint(0, min(5, terms.leases))
        header = Header(random.random() < 0.2, random.random() < 0.4, touched, 0, 0, NOW, leases=terms.leases)
    dead_after = random.choice((90, 900))
    nodes = tuple(_node(random, number) for number in ((1, 2) if random.random() < 0.3 else (1,)))
    beats = {int(node.id): node.state.beat for node in nodes}
    turns = [
        formulas.expirable_from(formulas.topped(terms, unit)),
        formulas.settleable_from(terms, unit),
        formulas.reclaimable_from(unit, beats.get(int(unit.node), unit.started), dead_after),
        *(unit.mark, NOW),
    ]
    now = max(1, random.choice(turns) + random.choice((-1, 0, 1, 120, 5_000)))
    said = tuple(random.choice(_PARENTS) for _ in waits)
    return Case(terms, unit, header, waits, said, nodes, dead_after, now)


def _node(random: Random, number: int) -> Node:
    node = replace(_drawn.drawn_node(random), id=NodeId(number), stake=10**18)
    return replace(node, state=replace(node.state, bond=random.choice((0, 10**18 * 9_999 // BPS, 10**18))))
