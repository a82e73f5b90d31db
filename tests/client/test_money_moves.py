"""What `hearth job explain` says of money: of each call by the contracts, and of none by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from hearth.chain.port import Call
from hearth.client.explain.calldata import CALLS, OTHERS
from hearth.client.explain.explaining import explain
from hearth.market.calls import Calls, Upkeep, UpkeepOp
from hearth.market.changes import Change, ChangeOp
from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, ZERO_ADDRESS, NodeId, Terms, TermsFlag, Unit
from hearth.protocol.units import format_amount
from tests.web.vectors import _drawn, prepared
from tests.web.vectors.calls import TOKEN
from tests.web.vectors.network import NETWORK

IN_TOKEN = replace(NETWORK, asset=TOKEN)
C, T = Calls(NETWORK), Calls(IN_TOKEN)
OTHER, NODE = prepared.OTHER, NodeId(7)
CHANGE = Change(ChangeOp.SET_MINIMUM_STAKE, 5, 0)


def drawn(**changes: Any) -> Terms:
    random = Random("moves")
    terms = _drawn.drawn_terms(random, _drawn.drawn_policy(random))
    one: dict[str, Any] = {"units": 1, "chunk": 1, "replicas": 1, "flags": TermsFlag(0), "keeper_fee": 10**15}
    return replace(terms, **{**one, "max_attempts": 2, "parents_hash": bytes(32), **changes})


ONE, ARRAY, PROVEN = drawn(), drawn(units=4), drawn(flags=TermsFlag.PROVEN)
ME = ONE.submitter


def eth(amount: int) -> str:
    return format_amount(amount, NETWORK.asset)


def said(call: Call, network: Any = NETWORK) -> tuple[tuple[str, str], str]:
    (one,) = explain("0x" + call.data.hex(), network)["calls"]
    return (one["contract"], one["function"]), one["moves"]


BACK = f"what the unit holds, out of Escrow to the credit of {ME}"
REST = f"the rest to the credit of {ME}"
EARNED = (
    "what the unit holds, out of Escrow: what its result earned to the credit of the owners of its nodes, "
    "less the market's fee to its treasury's; "
)
SLASH = f"of the stake of its node a part: a keeper's pay to the credit of {OTHER}, the rest burnt"
SILENT = (
    "of the stake of each node that is silent while it runs something at most "
    f"{eth(NETWORK.node_parameters.liveness_fee)}, to the credit of "
)
UNTAKEN = f"what the units that nobody took hold, out of Escrow to the credit of {ME}"
CASES: list[tuple[str, Callable[[], Call], str]] = [
    (
        "JobRegistry.post",
        lambda: C.post(ARRAY),
        f"{eth(formulas.escrow_at_post(ARRAY))} of {ME} into Escrow: at most "
        f"{eth(4 * formulas.price(ARRAY))} for work, the rest for keepers",
    ),
    (
        "JobRegistry.top_up",
        lambda: C.top_up(ONE, 0, Unit(), 60),
        f"what the added time costs at the job's price, of {ME} into Escrow",
    ),
    (
        "JobRegistry.cancel",
        lambda: C.cancel(ONE, 0),
        f"where no node works on the unit, {BACK}; where one does, none now: it is given notice, and paid at its end",
    ),
    ("JobRegistry.cancel", lambda: C.cancel(ARRAY, SENTINEL), UNTAKEN),
    ("JobRegistry.accept", lambda: C.accept(ONE, 0), EARNED + REST),
    (
        "JobRegistry.settle",
        lambda: C.settle(ONE, 0, OTHER),
        f"{EARNED}a keeper's pay to the credit of {OTHER}; {REST}",
    ),
    (
        "JobRegistry.settle",
        lambda: C.settle(ONE, 0),
        f"{EARNED}a keeper's pay to the credit of the sender; {REST}",
    ),
    (
        "JobRegistry.settle",
        lambda: C.settle(PROVEN, 0, OTHER),
        f"nobody proved its result, so {BACK}; {SLASH}",
    ),
    (
        "JobRegistry.close",
        lambda: C.close(ONE, 0, OTHER),
        "what the unit holds, out of Escrow: its node's time to the credit of the node's owner, less the market's fee "
        f"to its treasury's; a keeper's pay to the credit of {OTHER}; {REST}",
    ),
    (
        "JobRegistry.reclaim",
        lambda: C.reclaim(ONE, 0, OTHER),
        f"{SLASH}; where the unit does not open again, {BACK}",
    ),
    ("JobRegistry.expire", lambda: C.expire(ONE, 0, OTHER), f"{BACK}, less a keeper's pay to the credit of {OTHER}"),
    ("JobRegistry.expire", lambda: C.expire(ARRAY, 2, OTHER), BACK),
    (
        "JobRegistry.expire",
        lambda: C.expire(ARRAY, SENTINEL, OTHER),
        f"{UNTAKEN}, less a keeper's pay to the credit of {OTHER}",
    ),
    (
        "JobRegistry.unlock",
        lambda: C.unlock(ONE, [], OTHER),
        f"{eth(10**15)} out of Escrow to the credit of {OTHER}; where a job that it waits for ended otherwise "
        f"than asked, what the job holds besides, to the credit of {ME}",
    ),
    (
        "NodeRegistry.register",
        lambda: C.register(OTHER, _drawn.drawn_node(Random(1)).offer, bytes(32), 10**18),
        f"{eth(10**18)} of the sender into Escrow, as stake",
    ),
    (
        "NodeRegistry.add_stake",
        lambda: C.add_stake(NODE, OTHER, 10**18),
        f"{eth(10**18)} of the sender into Escrow, as stake of a node of {OTHER}",
    ),
    (
        "NodeRegistry.update_offer",
        lambda: C.update_offer(NODE, _drawn.drawn_node(Random(1)).offer, bytes(32)),
        "none",
    ),
    ("NodeRegistry.set_ask", lambda: C.set_ask(NODE, 5), "none"),
    ("NodeRegistry.set_operator", lambda: C.set_operator(NODE, OTHER), "none"),
    (
        "NodeRegistry.offer_owner",
        lambda: C.offer_owner(NODE, OTHER),
        f"none now; the node's stake, and its pay from then on, are {OTHER}'s once he accepts",
    ),
    ("NodeRegistry.offer_owner", lambda: C.offer_owner(NODE, ZERO_ADDRESS), "none"),
    (
        "NodeRegistry.accept_owner",
        lambda: C.accept_owner(NODE),
        "none out of Escrow; the node's stake, and its pay from now on, become the sender's",
    ),
    ("NodeRegistry.exit_start", lambda: C.exit_start(NODE), "none"),
    ("NodeRegistry.exit_cancel", lambda: C.exit_cancel(NODE), "none"),
    (
        "NodeRegistry.exit_finish",
        lambda: C.exit_finish(NODE),
        "the node's whole stake, in Escrow, to the credit of its owner",
    ),
    ("NodeRegistry.check_liveness", lambda: C.check_liveness([NODE], OTHER), SILENT + OTHER),
    ("Escrow.withdraw", lambda: C.withdraw(OTHER, 5), f"{eth(5)} of the sender's credit, from Escrow to {OTHER}"),
    (
        "token.approve",
        lambda: T.approve(OTHER, 5),
        f"none now; {OTHER} may take {format_amount(5, TOKEN)} of the sender's tokens later",
    ),
    ("Steward.queue", lambda: C.queue(CHANGE), "none"),
    ("Steward.execute", lambda: C.execute(CHANGE), "none"),
    ("Steward.drop", lambda: C.drop(CHANGE.id), "none"),
    ("Steward.drop_previous_policy", C.steward_drop_previous_policy, "none"),
    ("Steward.pause", lambda: C.steward_pause(posts=True), "none"),
    ("Steward.accept_council", C.accept_council, "none"),
    ("Steward.accept_governor", lambda: C.steward_accept_governor(posts=True), "none"),
    ("Lens.performUpkeep", lambda: C.perform_upkeep([]), "none"),
    (
        "Lens.performUpkeep",
        lambda: C.perform_upkeep(
            [
                Upkeep(UpkeepOp.LIVENESS, None, 2, 5),
                *(Upkeep(UpkeepOp.RECLAIM, words.pack_terms(ONE), index) for index in (0, 1)),
                Upkeep(UpkeepOp.EXPIRE, words.pack_terms(ARRAY), SENTINEL),
                Upkeep(UpkeepOp.SETTLE, words.pack_terms(PROVEN), 0),
                Upkeep(UpkeepOp.CLOSE, words.pack_terms(ONE), 0),
            ],
            OTHER,
        ),
        " | ".join(
            [
                f"liveness: {SILENT}{OTHER}",
                f"reclaim: {SLASH}; where the unit does not open again, {BACK}",
                f"expire: {UNTAKEN}, less a keeper's pay to the credit of {OTHER}",
                f"settle: nobody proved its result, so {BACK}; {SLASH}",
                "close: what the unit holds, out of Escrow: its node's time to the credit of the node's owner, less "
                f"the market's fee to its treasury's; a keeper's pay to the credit of {OTHER}; {REST}",
            ]
        ).replace(ME, "its submitter"),
    ),
]


@pytest.mark.parametrize(("name", "call", "money"), CASES, ids=[f"{at}-{one[0]}" for at, one in enumerate(CASES)])
def test_moves__each_call__says_what_its_contract_moves(name: str, call: Callable[[], Call], money: str) -> None:
    network = IN_TOKEN if name.startswith("token.") else NETWORK

    assert said(call(), network) == (tuple(name.split(".")), money)


def test_moves__every_call_that_is_explained__has_a_case() -> None:
    named = {f"{contract}.{name}" for table in (CALLS, OTHERS) for contract in table for name in table[contract]}

    assert {name for name, _, _ in CASES} == named
