"""What credit in Escrow pays of a post: what is refused at each bound, and the calls and documents in their order."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from hearth.base.errors import FundsError
from hearth.chain.port import Fees
from hearth.client.posting.post import APPROVE_GAS, POST_GAS, WITHDRAW_GAS, Posting
from hearth.client.posting.preflight import escrow_of
from hearth.client.session import Session
from hearth.market.calls import Calls
from hearth.market.network import Network
from hearth.protocol import formulas
from hearth.protocol.types import Terms
from hearth.protocol.units import show_amount
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from tests.web.vectors._drawn import terms_words

FEES = Fees(base_fee=7, priority_fee=3)


def cases() -> Any:
    """Return, in coin and in a token, the terms, purses with what becomes of each, and what is signed."""
    return [_of(build.network(FakeChain(), **changes)) for changes in ({}, {"asset": build.TOKEN})]


def _of(network: Network) -> dict[str, Any]:
    terms = build.terms()
    escrow = escrow_of(terms)
    token = network.asset.address is not None
    purses = []
    for owned in (0, 1, escrow // 2, escrow - 1, escrow, escrow + 1):
        for use in (False, True):
            credit, gas = (min(owned, escrow) if use else 0), POST_GAS + APPROVE_GAS * token
            gas_cost = (gas + (WITHDRAW_GAS if credit else 0)) * (2 * FEES.base_fee + FEES.priority_fee)
            rest = escrow - credit
            for more in (-1, 0, 1):
                coin = max(0, gas_cost + more + (0 if token else rest))
                purses.append({"coin": coin, "asset": rest if token else coin, "credit": owned, "use": use})
            if token and rest:
                purses.append({"coin": gas_cost, "asset": rest - 1, "credit": owned, "use": use})
    return {
        "network": network.as_dict(),
        "fees": {"base": str(FEES.base_fee), "tip": str(FEES.priority_fee)},
        "terms": terms_words(terms),
        "purses": [
            {**{name: _said(value) for name, value in one.items()}, **_judged(network, terms, one)} for one in purses
        ],
        "signed": [_signed(network, terms, credit) for credit in (0, 1, escrow)],
    }


def _said(value: int | bool) -> str | bool:
    return value if isinstance(value, bool) else str(value)


def _posting(network: Network, purse: dict[str, Any]) -> Posting:
    """Return a posting whose session has this purse, and no chain."""
    session: Any = SimpleNamespace(network=network, asset=network.asset, tell=lambda *_: None)
    session.amount = lambda units: show_amount(units, network.asset)
    session.market = SimpleNamespace(
        port=SimpleNamespace(fees=lambda: FEES, balance=lambda _: purse["coin"]),
        asset_balance=lambda _: purse["asset"],
        credit=lambda _: purse["credit"],
        allowance=lambda *_: 0 if network.asset.address is not None else 2**256 - 1,
        calls=Calls(network),
        job_id=lambda terms: formulas.job_id(network.job_chain_id, network.jobs, terms),
    )
    session.require_funds = partial(Session.require_funds, session)
    session._short = partial(Session._short, session)
    return Posting(SimpleNamespace(session=session), SimpleNamespace())  # type: ignore[arg-type]


def _judged(network: Network, terms: Terms, purse: dict[str, Any]) -> dict[str, Any]:
    try:
        pays = _posting(network, purse)._require_price(terms, purse["use"])
    except FundsError as error:
        return {"pays": None, "message": error.message}
    return {"pays": str(pays), "message": ""}


def _signed(network: Network, terms: Terms, credit: int) -> dict[str, Any]:
    """Return the documents of `--print-tx` after the approval, which the page has beside its post."""
    posting = _posting(network, {"coin": 0, "asset": 0, "credit": credit})
    calls = [(key, call) for key, call in posting._calls(terms, (), credit) if call.label != "token.approve"]
    return {"credit": str(credit), "documents": [posting._prepared(key, call, terms) for key, call in calls]}
