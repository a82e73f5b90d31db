"""hearth.client.prepared: what one process prepares another reads as the same call, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.base.errors import RefusedError
from hearth.chain.fake import FakeChain
from hearth.client.prepared import Prepared, read_prepared
from hearth.market.abi import codec
from hearth.market.calls import Calls
from hearth.protocol.types import NodeId
from tests.kit import build
from tests.kit.build import NATIVE, TOKEN

SENDER = "0x" + "11" * 20
NETWORK = build.network(FakeChain(), asset=NATIVE)
STAKE = Prepared("stake", SENDER, Calls(NETWORK).add_stake(NodeId(3), 5), 0, "stake/3/5/0")


@pytest.mark.parametrize("asset", [NATIVE, TOKEN], ids=["native", "token"])
def test_read_prepared__what_document_wrote__is_the_same_call(asset: Any) -> None:
    network = build.network(FakeChain(), asset=asset)
    calls = Calls(network)
    for call, approve in ((calls.add_stake(NodeId(3), 5), 5), (calls.withdraw(SENDER, 5), 0)):
        prepared = Prepared("stake", SENDER, call, approve, "key")
        found, function, arguments = read_prepared(prepared.document(network), network, "tx.json")
        assert found == prepared and call.label.endswith(function) and arguments["amount"] == 5
    assert replace(STAKE, approve=7).paid == 7 and STAKE.paid == 5


@pytest.mark.parametrize(
    "changes",
    [
        *({name: None} for name in ("chain_id", "data", "value", "approve")),
        {"data": "0x1"},
        {"data": "0x" + "00" * 36},
        {"data": 7},
        {"value": "-5"},
        {"approve": "-5"},
        {"to": NETWORK.escrow},
        {"to": NETWORK.escrow, "data": "0x" + codec("Escrow").encode("lock", bytes(32), 5).hex()},
    ],
)
def test_read_prepared__what_is_no_call_of_an_owner__is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lacks|calls nothing|less than nothing|hex|codec|decode|int"):
        read_prepared({**STAKE.document(NETWORK), **changes}, NETWORK, "tx.json")


@pytest.mark.parametrize("document", [None, [], "text", {}])
def test_read_prepared__what_is_no_document__is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="it lacks something"):
        read_prepared(document, NETWORK, "tx.json")


@pytest.mark.parametrize("changes", [{"chain_id": 1}, {"to": SENDER}, {"to": NETWORK.jobs}])
def test_read_prepared__another_market__is_refused_by_the_files_name(changes: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=r"tx\.json is for contract") as caught:
        read_prepared({**STAKE.document(NETWORK), **changes}, NETWORK, "tx.json")
    assert caught.value.code == "WRONG_MARKET"
