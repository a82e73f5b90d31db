"""hearth.client.prepared: what one process prepares another reads as the same call, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import RefusedError, UsageError
from hearth.chain.port import Call
from hearth.client.nodes.workers import Workers
from hearth.client.prepared import Prepared, read_prepared
from hearth.client.reports import OwnerAction
from hearth.market.abi import codec
from hearth.market.calls import Calls
from hearth.protocol.types import NodeId, Offer
from tests.kit import build
from tests.kit.build import NATIVE, TOKEN
from tests.kit.fake_chain import FakeChain

SENDER = "0x" + "11" * 20
NETWORK = build.network(FakeChain(), asset=NATIVE)
STAKE = Prepared("stake", SENDER, Calls(NETWORK).add_stake(NodeId(3), SENDER, 5), 0, "stake/3/5/0")


@pytest.mark.parametrize("asset", [NATIVE, TOKEN], ids=["native", "token"])
def test_read_prepared__what_document_wrote__is_the_same_call(asset: Any) -> None:
    network = build.network(FakeChain(), asset=asset)
    calls = Calls(network)
    spent = 0 if asset == NATIVE else 5
    for call, approve in ((calls.add_stake(NodeId(3), SENDER, 5), spent), (calls.withdraw(SENDER, 5), 0)):
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
        # What is shown is what is paid: the native coin needs no approval, and a call takes what it says.
        {"approve": "1"},
        {"value": "6"},
        {"value": "0"},
        {"value": str(2**256)},
        {"value": float("inf")},
        {"from": "0x\x1b[2J"},
        {"action": "stake\x1b[2J"},
        {"to": NETWORK.jobs},
        {"to": NETWORK.escrow},
        {"to": NETWORK.escrow, "data": "0x" + codec("Escrow").encode("lock", bytes(32), 5).hex()},
    ],
)
def test_read_prepared__what_is_no_call_of_an_owner__is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"lacks|calls|less than nothing|hex|codec|decode|int|pays|form"):
        read_prepared({**STAKE.document(NETWORK), **changes}, NETWORK, "tx.json")


@pytest.mark.parametrize("document", [None, [], "text", {}])
def test_read_prepared__what_is_no_document__is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="it lacks something"):
        read_prepared(document, NETWORK, "tx.json")


@pytest.mark.parametrize("changes", [{"chain_id": 1}, {"to": SENDER}])
def test_read_prepared__another_market__is_refused_by_the_files_name(changes: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match=r"tx\.json is for contract") as caught:
        read_prepared({**STAKE.document(NETWORK), **changes}, NETWORK, "tx.json")
    assert caught.value.code == "WRONG_MARKET"


@pytest.mark.parametrize(("value", "approve"), [(5, 5), (5, 0), (0, 0), (0, 4), (0, 2**255)])
def test_read_prepared__token_market_that_pays_otherwise_than_its_call__is_refused(value: int, approve: int) -> None:
    network = build.network(FakeChain(), asset=TOKEN)
    document = Prepared("stake", SENDER, Calls(network).add_stake(NodeId(3), SENDER, 5), 5, "key").document(network)
    with pytest.raises(ValueError, match="it pays"):
        read_prepared({**document, "value": str(value), "approve": str(approve)}, network, "tx.json")


def test_as_strangers__key_of_a_document__names_no_effect_of_the_signers_own() -> None:
    own = [replace(STAKE, key=key).as_strangers().key for key in ("send/ETH/0xbea7/7/0", "send/ETH/0xbea7/7/0", "k")]
    # The same document has the same key, another document of the same call another.
    assert own[0] == own[1] != own[2] and all(key.startswith("tx/") for key in own)
    other = replace(STAKE, call=replace(STAKE.call, value=6)).as_strangers().key
    assert other != STAKE.as_strangers().key


# ---- sent ----


DOCUMENT = b'{"version":1}'
DIGEST = hashlib.sha256(DOCUMENT).digest()


@pytest.mark.parametrize("document", [b"", DOCUMENT])
def test_read_prepared__call_that_carries_its_manifest__is_the_same_call(document: bytes) -> None:
    calls = Calls(NETWORK)
    for call in (
        calls.register(SENDER, Offer(slots=1), DIGEST, 5, document),
        calls.update_offer(NodeId(3), Offer(slots=1), DIGEST, document),
    ):
        prepared = Prepared("register", SENDER, call, 0, "key")
        assert read_prepared(prepared.document(NETWORK), NETWORK, "tx.json")[0] == prepared


@pytest.mark.parametrize(
    "call",
    [
        Calls(NETWORK).register(SENDER, Offer(slots=1), DIGEST, 5, DOCUMENT + b"}"),
        Calls(NETWORK).update_offer(NodeId(3), Offer(slots=1), DIGEST, b"something else"),
        replace(STAKE.call, data=STAKE.call.data + DOCUMENT),
        replace(STAKE.call, data=STAKE.call.data + bytes(1)),
    ],
    ids=["longer", "another", "of a call without one", "a byte"],
)
def test_read_prepared__more_than_the_call_and_its_manifest__is_refused(call: Call) -> None:
    """What a machine that prepares gains: nothing is signed that is not shown."""
    document = Prepared("stake", SENDER, call, 0, "key").document(NETWORK)
    with pytest.raises(ValueError, match="something else behind its arguments"):
        read_prepared(document, NETWORK, "tx.json")


@dataclass
class Owner:
    """An owner's machine, which asks nobody, and the file that it is handed."""

    workers: Workers
    file: Path
    told: list[str]
    sent: list[Prepared]

    def send(self, call: Call, function: str, **changes: Any) -> OwnerAction:
        """Write a document as another machine does, and send it as a command does that stands for `function`."""
        document = Prepared("price", SENDER, call, 0, "send/1").document(NETWORK)
        self.file.write_text(json.dumps({"prepared": document}))
        return self.workers.send_prepared(self.file, function, **changes)


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owner:
    told: list[str] = []
    sent: list[Prepared] = []
    session = SimpleNamespace(
        network=NETWORK,
        asset=NATIVE,
        amount=lambda units: f"{units} units",
        key=lambda account, of=None: SimpleNamespace(address=SENDER, name="owner"),
        tell=lambda kind, facts: told.append(f"{kind}: {facts['text']}"),
    )
    workers = Workers(SimpleNamespace(session=session))  # type: ignore[arg-type]
    monkeypatch.setattr(workers, "_send", lambda prepared: sent.append(prepared) or {})
    return Owner(workers, tmp_path / "tx.json", told, sent)


def test_send_prepared__what_the_command_stands_for__is_told_and_sent_under_a_key_of_its_own(owner: Owner) -> None:
    owner.send(Calls(NETWORK).add_stake(NodeId(3), SENDER, 5), "add_stake")
    summary = f"add_stake(node 3, owner {SENDER}, amount 5) as {SENDER}, paying 5 units"
    assert owner.told == [f"note: {summary}", f"confirm: {summary}?"]
    assert [one.key[:3] for one in owner.sent] == ["tx/"]


def test_send_prepared__call_of_another_command__is_refused_with_the_command_that_sends_it(owner: Owner) -> None:
    with pytest.raises(UsageError, match=r"calls withdraw, and this command sends set_ask") as caught:
        owner.send(Calls(NETWORK).withdraw(SENDER, 5), "set_ask")
    assert caught.value.code == "BAD_TX" and "hearth worker withdraw --tx" in caught.value.hint
    with pytest.raises(UsageError, match="calls offer_owner"):
        owner.send(Calls(NETWORK).offer_owner(NodeId(3), SENDER), "set_ask")
    assert owner.told == owner.sent == []


def test_send_prepared__withdrawal_to_a_stranger__is_refused(owner: Owner) -> None:
    with pytest.raises(UsageError, match="withdraws to 0x2222") as caught:
        owner.send(Calls(NETWORK).withdraw("0x" + "22" * 20, 5), "withdraw")
    assert caught.value.code == "BAD_TX" and owner.sent == []
    owner.send(Calls(NETWORK).withdraw(SENDER, 5), "withdraw")
    assert len(owner.sent) == 1


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"value": Infinity}', '{"chain_id": 1e999}', '"\\ud800"', "[]"])
def test_send_prepared__file_of_anything__is_refused(owner: Owner, text: str) -> None:
    owner.file.write_text(text)
    with pytest.raises(UsageError) as caught:
        owner.workers.send_prepared(owner.file, "add_stake")
    assert caught.value.code == "BAD_TX"
