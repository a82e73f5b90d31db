"""hearth.client.nodes.workers: whose key signs what an owner does, and when a node may leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ConfigError, RefusedError, UsageError
from hearth.chain import keys
from hearth.chain.port import Call
from hearth.client.nodes.obstacles import HOUR, dearest
from hearth.client.nodes.workers import Workers
from hearth.client.reading import JobReader
from hearth.client.session import Session
from hearth.config.settings import Settings
from hearth.market.profiles import PUBLIC
from hearth.market.reads import Market
from hearth.protocol.units import parse_rate, show_rate
from tests.kit import build
from tests.kit.fake_chain import FakeChain

OTHER = "0x" + "77" * 20


@pytest.fixture
def workers(tmp_path: Path) -> Workers:
    """A devnet's home: the key `provider`, and one that the user made."""
    for name in ("provider", "mine"):
        keys.create_key(tmp_path / "keys", name, "pw", devnet=True)
    chain = FakeChain()
    session = Session(Settings(home=tmp_path), port=chain)
    session.__dict__["network"] = build.network(chain)
    return Workers(JobReader(session))


def test_payer__no_account_chosen__is_the_owners_key_whatever_the_devnet_calls_it(workers: Workers) -> None:
    session = workers.session
    owner = keys.read_key(session.settings.keys_folder / "mine.json").address
    calls = Market(FakeChain(), session.network).calls
    for call in (calls.exit_start(build.node(1).id), calls.add_stake(build.node(1).id, owner, 5)):
        assert workers._payer(call, owner) == owner
        with pytest.raises(ConfigError) as caught:
            workers._payer(call, "0x" + "77" * 20)
        assert caught.value.code == "NOT_OWNER"
    assert session.key("owner").name == "provider"
    # What names an account for every command pays nobody else's stake.
    session.settings = replace(session.settings, account="provider", origins={"account": "HEARTH_ACCOUNT"})
    assert session.key("owner", of=owner).name == "mine" and session.key().name == "provider"
    with pytest.raises(ConfigError):
        workers._payer(calls.add_stake(build.node(1).id, OTHER, 5), OTHER)
    # An account that this command names stays chosen.
    session.settings = replace(session.settings, origins={"account": "--account"})
    assert session.key("owner", of=owner).name == "provider"
    assert workers._payer(calls.add_stake(build.node(1).id, OTHER, 5), OTHER) == session.key().address


def test_exit__before_the_stake_is_free__is_refused_with_the_moment(workers: Workers) -> None:
    port = workers.session.unchecked_market.port
    assert isinstance(port, FakeChain)
    workers.session._checked = True
    node = replace(build.node(1), exit_at=port.head().timestamp + 86_400)
    with pytest.raises(RefusedError, match=r"20\d\d-\d\d-\d\d .* UTC") as caught:
        workers.exit(node, finish=True)
    assert caught.value.code == "UNBONDING" and port.sent == []
    # What another machine sends later is prepared today.
    assert workers.exit(node, finish=True, print_tx=True)["prepared"]["from"] == node.owner


def test_exit__answer_that_is_no__sends_nothing(workers: Workers) -> None:
    session, asked = workers.session, []
    port = session.unchecked_market.port
    assert isinstance(port, FakeChain)
    session._checked = True

    def no(kind: str, facts: Mapping[str, Any]) -> None:
        asked.append((kind, facts["needed"], facts["text"]))
        raise ConfigError("no", code="NOT_CONFIRMED")

    session.tell = no  # type: ignore[method-assign]
    node = replace(build.node(1), owner=keys.read_key(session.settings.keys_folder / "mine.json").address)
    with pytest.raises(ConfigError, match="no"):
        workers.exit(node)
    ((kind, needed, text),) = asked
    assert (kind, needed, port.sent) == ("confirm", True, [])
    assert (
        f"leave the market with node {node.id}: " in text
        and f"its stake of {session.amount(node.stake)} is free" in text
    )
    # What another machine sends is asked for there.
    assert "prepared" in workers.exit(node, print_tx=True)
    # Whose key is not the owner's is refused before it is asked.
    session.settings = replace(session.settings, account="provider")
    with pytest.raises(ConfigError) as caught:
        workers.exit(node)
    assert (caught.value.code, len(asked)) == ("NOT_OWNER", 1)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("nodes.exit_start", "owns this node, and the key mine is"),
        ("nodes.register", "is to own this node, by account.payout in worker.toml, and the key"),
        ("escrow.withdraw", "has this credit, and the key"),
    ],
)
def test_payer__key_of_another__says_what_the_owner_is(workers: Workers, label: str, said: str) -> None:
    workers.session.settings = replace(workers.session.settings, account="mine")
    with pytest.raises(ConfigError) as caught:
        workers._payer(Call("0x" + "11" * 20, b"", label=label), "0x" + "77" * 20)
    assert f"{'0x' + '77' * 20} {said}" in caught.value.message


LEAVES = 86_400


@pytest.mark.parametrize(
    ("given", "asked", "code", "text", "hint"),
    [
        ({"exit_at": LEAVES}, {}, "EXITING", "leaves already, and its stake is free from 20", "exit --finish, from 20"),
        ({"exit_at": -1}, {}, "EXITING", "its stake is free now", "hearth worker exit --finish, now"),
        ({}, {"cancel": True}, "NOT_EXITING", "does not leave", "hearth worker exit"),
        ({}, {"finish": True}, "NOT_EXITING", "does not leave", "hearth worker exit"),
        ({"exit_at": -1, "bond": 1}, {"finish": True}, "BOND_LEFT", "are not settled", "exit --finish once they are"),
    ],
)
def test_exit__that_the_contract_would_refuse__is_refused_here_with_the_next_command(
    workers: Workers, given: dict[str, int], asked: dict[str, bool], code: str, text: str, hint: str
) -> None:
    port = workers.session.unchecked_market.port
    assert isinstance(port, FakeChain)
    workers.session._checked = True
    node = build.node(1)
    if "exit_at" in given:
        node = replace(node, exit_at=port.head().timestamp + given["exit_at"])
    node = replace(node, state=replace(node.state, bond=given.get("bond", 0)))
    with pytest.raises(RefusedError) as caught:
        workers.exit(node, **asked)
    assert (caught.value.code, port.sent) == (code, [])
    assert text in caught.value.message and hint in caught.value.hint


def test_owner__amounts_beyond_what_a_node_holds__are_refused_with_the_limit(workers: Workers) -> None:
    port = workers.session.unchecked_market.port
    assert isinstance(port, FakeChain)
    workers.session._checked = True
    node = build.node(1)
    # The limits are lanes of 80 bits: 1.2e24 wei of stake, and 1.2e18 wei a second of price.
    for rate in ("2000000/h", "0/h"):
        with pytest.raises(UsageError, match=r"more than 0 and at most 4352\.13 ETH/h") as caught:
            workers.set_ask(node, rate)
        assert caught.value.code == "BAD_RATE"
    with pytest.raises(UsageError, match="no node holds more than 1208920 ETH"):
        workers.add_stake(node, "1208926")
    later = port.head().timestamp + 600
    waiting = replace(node, offer=replace(node.offer, pending=True), next_ask_at=later)
    with pytest.raises(RefusedError, match=r"has a new price that counts from 20.* one may wait at a time") as refused:
        workers.set_ask(waiting, "1/h")
    assert (refused.value.code, port.sent) == ("ASK_PENDING", [])


def test_price_and_register__above_what_the_stake_covers__warn_and_ask_before_they_send(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, told = workers.session, list[tuple[str, str]]()
    session._checked = True
    monkeypatch.setattr(Market, "policies", lambda self: SimpleNamespace(policy=PUBLIC.policy))
    monkeypatch.setattr(Market, "immutable", lambda self, *_: 10**18)
    monkeypatch.setattr(workers, "_send", lambda prepared, once=None: {"sent": prepared.action})

    def tell(kind: str, facts: Mapping[str, Any]) -> None:
        told.append((kind, facts["text"]))
        if kind == "confirm" and not facts["needed"]:
            raise ConfigError("no", code="NOT_CONFIRMED")

    session.tell = tell  # type: ignore[method-assign]
    owner = keys.read_key(session.settings.keys_folder / "mine.json").address
    node, highest = replace(build.node(1), owner=owner, stake=10**18), dearest(10**18, HOUR, PUBLIC.policy)
    cheap, dear = (show_rate(rate, session.asset) for rate in (highest // 2, 3 * highest))

    def register(rate: str, **how: bool) -> Any:
        offer = replace(node.offer, ask=parse_rate(rate, session.asset))
        return workers.register(node.operator, offer, b"{}", payout=owner, **how)

    assert workers.set_ask(node, cheap)["sent"] == "price" and register(cheap)["sent"] == "register"  # type: ignore
    assert told == []
    for act, mend in ((partial(workers.set_ask, node), "hearth worker stake"), (register, "register --stake")):
        with pytest.raises(ConfigError, match="no"):
            act(dear)
        (warned, text), (asked, question) = told
        assert (warned, asked) == ("warning", "confirm") and "all the same?" in question
        assert (
            f"at {dear} binds at least" in text and f"next: hearth worker {mend.removeprefix('hearth worker ')}" in text
        )
        told.clear()
        # What another machine sends is asked for there.
        assert "prepared" in act(dear, print_tx=True) and [kind for kind, _ in told] == ["warning"]
        told.clear()


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"prepared": {"chain_id": 1}}', '"text"'])
def test_send_prepared__file_without_a_transaction__says_so_in_words(
    workers: Workers, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "register.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        workers.send_prepared(file, "register")
    assert caught.value.code == "BAD_TX" and "Error(" not in caught.value.message
    assert caught.value.hint.endswith("hearth worker register --print-tx > register.json")
