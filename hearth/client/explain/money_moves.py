"""What money a call moves, and whose, as the contracts move it: beside each sentence of `call_summary.py` one of money.

The table has every call that is told, and no default: a call that is added says here what it moves, "none" where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from hearth.client.explain.calldata import Arguments, Read, terms_in
from hearth.market.calls import UpkeepOp
from hearth.market.network import Network
from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, ZERO_ADDRESS, TermsFlag
from hearth.protocol.units import format_amount

_Mover = Callable[[Read, Network], str]


def moves(call: Read, network: Network) -> str:
    """Say what money a call moves, and whose."""
    return MOVES[call.contract, call.function](call, network)


def _lower(address: Any) -> str:
    return str(address).lower()


def _payee(given: Arguments) -> str:
    payee = _lower(given["payee"])
    return "the sender" if payee == ZERO_ADDRESS else payee


# ---- what a unit holds ----


def _holds(given: Arguments) -> str:
    return "what the units that nobody took hold" if given["index"] == SENTINEL else "what the unit holds"


def _paid(given: Arguments, earned: str, payee: str | None, submitter: str) -> str:
    keeper = "" if payee is None else f"a keeper's pay to the credit of {payee}; "
    fee = "less the market's fee to its treasury's"
    return f"{_holds(given)}, out of Escrow: {earned}, {fee}; {keeper}the rest to the credit of {submitter}"


_OF_RESULT: Final = "what its result earned to the credit of the owners of its nodes"


def _settled(given: Arguments, payee: str, submitter: str) -> str:
    if terms_in(given).flags & TermsFlag.PROVEN:
        # Its judge did not confirm it: the node loses what a lost lease does.
        back = f"{_holds(given)}, out of Escrow to the credit of {submitter}"
        return f"nobody proved its result, so {back}; {_slash(payee)}"
    return _paid(given, _OF_RESULT, payee, submitter)


def _closed(given: Arguments, payee: str, submitter: str) -> str:
    return _paid(given, "its node's time to the credit of the node's owner", payee, submitter)


def _reclaimed(given: Arguments, payee: str, submitter: str) -> str:
    back = f"{_holds(given)}, out of Escrow to the credit of {submitter}"
    return f"{_slash(payee)}; where the unit does not open again, {back}"


def _slash(payee: str) -> str:
    return f"of the stake of its node a part: a keeper's pay to the credit of {payee}, the rest burnt"


def _expired(given: Arguments, payee: str, submitter: str) -> str:
    back = f"{_holds(given)}, out of Escrow to the credit of {submitter}"
    # A unit of an array pays nobody: the array pays once, for those that nobody took.
    if terms_in(given).leases > 1 and given["index"] != SENTINEL:
        return back
    return f"{back}, less a keeper's pay to the credit of {payee}"


_OfUnit = Callable[[Arguments, str, str], str]


def _kept(say: _OfUnit) -> _Mover:
    return lambda call, _: say(call.arguments, _payee(call.arguments), terms_in(call.arguments).submitter)


# ---- calls about a job ----


def _post(call: Read, network: Network) -> str:
    terms, asset = terms_in(call.arguments), network.asset
    takes = format_amount(formulas.escrow_at_post(terms), asset)
    work = format_amount(terms.leases * formulas.price(terms), asset)
    return f"{takes} of {terms.submitter} into Escrow: at most {work} for work, the rest for keepers"


def _cancel(call: Read, _: Network) -> str:
    given = call.arguments
    back = f"{_holds(given)}, out of Escrow to the credit of {terms_in(given).submitter}"
    if given["index"] == SENTINEL:
        return back
    return f"where no node works on the unit, {back}; where one does, none now: it is given notice, and paid at its end"


def _top_up(call: Read, _: Network) -> str:
    submitter = terms_in(call.arguments).submitter
    return f"what the added time costs at the job's price, of {submitter} into Escrow"


def _unlock(call: Read, network: Network) -> str:
    given, terms = call.arguments, terms_in(call.arguments)
    fee = format_amount(formulas.unlock_fee(terms), network.asset)
    rest = f"what the job holds besides, to the credit of {terms.submitter}"
    paid = f"{fee} out of Escrow to the credit of {_payee(given)}"
    return f"{paid}; where a job that it waits for ended otherwise than asked, {rest}"


# ---- calls about nodes, and about no money of a job ----


def _silence(network: Network, payee: str) -> str:
    fee = format_amount(network.node_parameters.liveness_fee, network.asset)
    return f"of the stake of each node that is silent while it runs something at most {fee}, to the credit of {payee}"


def _stake(name: str, whose: Callable[[Arguments], str]) -> _Mover:
    def mover(call: Read, network: Network) -> str:
        amount = format_amount(call.arguments[name], network.asset)
        return f"{amount} of the sender into Escrow, as stake{whose(call.arguments)}"

    return mover


def _offered(call: Read, _: Network) -> str:
    owner = _lower(call.arguments["owner"])
    if owner == ZERO_ADDRESS:
        return "none"
    return f"none now; the node's stake, and its pay from then on, are {owner}'s once he accepts"


def _withdraw(call: Read, network: Network) -> str:
    amount = format_amount(call.arguments["amount"], network.asset)
    return f"{amount} of the sender's credit, from Escrow to {_lower(call.arguments['to'])}"


def _approve(call: Read, network: Network) -> str:
    amount = format_amount(call.arguments["amount"], network.asset)
    return f"none now; {_lower(call.arguments['spender'])} may take {amount} of the sender's tokens later"


_UPKEEP: Final[Mapping[UpkeepOp, _OfUnit]] = {
    UpkeepOp.SETTLE: _settled,
    UpkeepOp.CLOSE: _closed,
    UpkeepOp.RECLAIM: _reclaimed,
    UpkeepOp.EXPIRE: _expired,
}


def _upkeep(call: Read, network: Network) -> str:
    """Say what each kind of its pieces moves, once."""
    return " | ".join(dict.fromkeys(_pieces(call, network))) or "none"


def _pieces(call: Read, network: Network) -> Iterator[str]:
    payee = _payee(call.arguments)
    for op, terms, index, _ in call.arguments["candidates"]:
        kind = UpkeepOp(op)
        if kind is UpkeepOp.LIVENESS:
            said = _silence(network, payee)
        else:
            said = _UPKEEP[kind]({"terms": terms, "index": index}, payee, "its submitter")
        yield f"{kind.name.lower()}: {said}"


def _none(_: Read, __: Network) -> str:
    return "none"


MOVES: Final[Mapping[tuple[str, str], _Mover]] = {
    ("JobRegistry", "post"): _post,
    ("JobRegistry", "top_up"): _top_up,
    ("JobRegistry", "cancel"): _cancel,
    ("JobRegistry", "accept"): lambda call, _: _paid(
        call.arguments, _OF_RESULT, None, terms_in(call.arguments).submitter
    ),
    ("JobRegistry", "settle"): _kept(_settled),
    ("JobRegistry", "close"): _kept(_closed),
    ("JobRegistry", "reclaim"): _kept(_reclaimed),
    ("JobRegistry", "expire"): _kept(_expired),
    ("JobRegistry", "unlock"): _unlock,
    ("NodeRegistry", "register"): _stake("stake", lambda _: ""),
    ("NodeRegistry", "add_stake"): _stake("amount", lambda given: f" of a node of {_lower(given['owner'])}"),
    ("NodeRegistry", "update_offer"): _none,
    ("NodeRegistry", "set_ask"): _none,
    ("NodeRegistry", "set_operator"): _none,
    ("NodeRegistry", "offer_owner"): _offered,
    ("NodeRegistry", "accept_owner"): lambda *_: (
        "none out of Escrow; the node's stake, and its pay from now on, become the sender's"
    ),
    ("NodeRegistry", "exit_start"): _none,
    ("NodeRegistry", "exit_cancel"): _none,
    ("NodeRegistry", "exit_finish"): lambda *_: "the node's whole stake, in Escrow, to the credit of its owner",
    ("NodeRegistry", "check_liveness"): lambda call, network: _silence(network, _payee(call.arguments)),
    ("Lens", "performUpkeep"): _upkeep,
    ("Escrow", "withdraw"): _withdraw,
    ("token", "approve"): _approve,
    ("Steward", "queue"): _none,
    ("Steward", "execute"): _none,
    ("Steward", "drop"): _none,
    ("Steward", "drop_previous_policy"): _none,
    ("Steward", "pause"): _none,
    ("Steward", "accept_council"): _none,
    ("Steward", "accept_governor"): _none,
}
