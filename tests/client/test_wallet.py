"""Sending money, in its parts: who may get it, what a unit names, and a token that says no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, RefusedError, UsageError
from hearth.chain import keys
from hearth.chain.port import Block, BlockRef, Call
from hearth.client.money import recipient, sent_asset
from hearth.client.paying import Payment, pay_once
from hearth.client.session import NATIVE, Session
from hearth.client.wallet import Wallet
from hearth.config.settings import Settings
from hearth.protocol.units import Asset
from tests.kit import build
from tests.kit.fake_chain import FakeChain

TOKEN = Asset("USDX", 6, "0x" + "70" * 20)
FRIEND = "0x" + "fe" * 20


@pytest.mark.parametrize("text", [FRIEND, to_checksum_address(FRIEND), "0x" + "FE" * 20])
def test_recipient__an_address_however_written__in_lower_case(text: str) -> None:
    assert recipient(text, build.network(FakeChain(), asset=TOKEN)) == FRIEND


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no address"),
        ("friend", "no address"),
        (FRIEND[2:], "no address"),
        (FRIEND + "0", "no address"),
        (to_checksum_address(FRIEND).replace("E", "e", 1), "mistyped"),
        ("0x" + "00" * 20, "zero address"),
        (build.ADDRESSES["Escrow"], "this market's Escrow"),
        (to_checksum_address(build.ADDRESSES["JobRegistry"]), "this market's JobRegistry"),
        (TOKEN.address or "", "this market's USDX token"),
    ],
)
def test_recipient__none_or_one_that_loses_it__refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        recipient(text, build.network(FakeChain(), asset=TOKEN))
    assert caught.value.code == "BAD_ADDRESS" and caught.value.hint
    with pytest.raises(UsageError, match=why) as signing:
        recipient(text, build.network(FakeChain(), asset=TOKEN), why="nobody can sign as it")
    assert "sent there" not in signing.value.message


@pytest.mark.parametrize(
    ("amount", "asset", "wanted"),
    [
        ("1", TOKEN, TOKEN),
        ("1.5 usdx", TOKEN, TOKEN),
        ("1.5 ETH", TOKEN, NATIVE),
        ("1.5eth", TOKEN, NATIVE),
        ("1 DOGE", TOKEN, TOKEN),  # refused by whoever reads the amount
        ("1", NATIVE, NATIVE),
        ("1 ETH", NATIVE, NATIVE),
        ("1 ETH", Asset("ETH", 6, TOKEN.address), Asset("ETH", 6, TOKEN.address)),
    ],
)
def test_sent_asset__unit__is_the_coin_or_the_asset(amount: str, asset: Asset, wanted: Asset) -> None:
    assert sent_asset(amount, asset) == wanted


@pytest.fixture
def payer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, FakeChain]:
    """Return a session whose account holds coin, on a chain that mines at once."""
    monkeypatch.setattr(keys, "SCRYPT_N", 1 << 10)
    home, chain = tmp_path / "home", FakeChain()
    home.mkdir(mode=0o700)
    key = keys.create_key(home / "keys", "me", "correct horse")
    session = Session(Settings(home=home), port=chain, ask_password=lambda question: "correct horse")
    session.__dict__["network"] = build.network(chain, asset=NATIVE)
    session._checked = True
    chain.set_balance(key.address, 10**18)
    chain.on_call(FRIEND, b"", lambda call, block: b"")
    take = chain.send_raw

    def send_raw(raw: bytes) -> bytes:
        tx_hash = take(raw)
        chain.mine()
        return tx_hash

    monkeypatch.setattr(chain, "send_raw", send_raw)
    return session, chain


def _interrupted(session: Session, chain: FakeChain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send, and be stopped before the receipt is seen."""

    def stop(tx_hash: bytes, **_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(chain, "receipt", stop)
        with pytest.raises(KeyboardInterrupt):
            Wallet(session).send(FRIEND, "0.1")


def test_pay_once__of_another_key_of_the_folder__signs_with_that(payer: tuple[Session, FakeChain]) -> None:
    session, chain = payer
    owner = keys.create_key(session.settings.keys_folder, "owner", "correct horse").address
    chain.set_balance(owner, 10**18)
    payment = Payment(Call(FRIEND, b"", value=5, label="pay"), "pay/5/", "payment", "pay", lambda sender: True)
    paid, already = pay_once(session, payment, again=False, role="owner", of=owner)
    assert len(paid) == 1 and not already
    assert (chain.nonce(owner), chain.nonce(session.key("owner", of=owner).address)) == (1, 1)
    assert [chain.nonce(one.address) for one in keys.list_keys(session.settings.keys_folder)] == [0, 1]


def test_send__again_before_the_last_was_reported__is_refused_and_pays_nothing(
    payer: tuple[Session, FakeChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was stopped before the end was told did not mean to pay twice."""
    session, chain = payer
    _interrupted(session, chain, monkeypatch)
    with pytest.raises(ChainError) as caught:
        Wallet(session).send(FRIEND, "0.1", again=True)
    assert caught.value.code == "TX_PENDING" and "without --again" in caught.value.hint
    assert chain.balance(FRIEND) == 10**17
    # Once it is reported, paying again is on purpose.
    assert Wallet(session).send(FRIEND, "0.1")["already_sent"]
    assert not Wallet(session).send(FRIEND, "0.1", again=True)["already_sent"]
    assert chain.balance(FRIEND) == 2 * 10**17


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("lies", range(1, 11))
def test_send__provider_denies_what_is_mined__pays_once(
    payer: tuple[Session, FakeChain], monkeypatch: pytest.MonkeyPatch, lies: int, reported: bool
) -> None:
    session, chain = payer
    if reported:
        Wallet(session).send(FRIEND, "0.1")
    else:
        _interrupted(session, chain, monkeypatch)
    left = [lies]
    for name in ("receipt", "transaction"):
        honest = getattr(chain, name)

        def lie(tx_hash: bytes, honest: Callable[[bytes], object] = honest, **_: object) -> object:
            left[0] -= 1
            return honest(tx_hash) if left[0] < 0 else None

        monkeypatch.setattr(chain, name, lie)
    for _ in range(4):
        try:
            assert Wallet(session).send(FRIEND, "0.1")["already_sent"]
        except ChainError as error:
            assert error.code in ("TX_UNCLEAR", "NONCE_TAKEN")
        assert chain.balance(FRIEND) == 10**17
    assert Wallet(session).send(FRIEND, "0.1")["already_sent"]


def test_send__nobody_knows_the_earlier_one__refused_and_again_pays_on_purpose(
    payer: tuple[Session, FakeChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, chain = payer
    tx = Wallet(session).send(FRIEND, "0.1")["transactions"][0]["tx"]
    honest, block = chain.receipt, chain.block
    first = bytes.fromhex(str(tx)[2:])
    mined = honest(first)
    assert mined is not None
    monkeypatch.setattr(chain, "receipt", lambda one, **_: None if one == first else honest(one))
    monkeypatch.setattr(chain, "transaction", lambda one: None)
    # The block that it was mined in still stands, so the transaction does.
    assert Wallet(session).send(FRIEND, "0.1")["already_sent"]

    def another(at: BlockRef) -> Block | None:
        found = block(at)
        return replace(found, hash=bytes(32)) if found is not None and found.number == mined.block_number else found

    monkeypatch.setattr(chain, "block", another)
    with pytest.raises(ChainError) as caught:
        Wallet(session).send(FRIEND, "0.1")
    assert caught.value.code == "TX_UNCLEAR" and str(tx) in caught.value.message and chain.balance(FRIEND) == 10**17
    assert Wallet(session).send(FRIEND, "0.1", again=True)["already_sent"] is False
    assert chain.balance(FRIEND) == 2 * 10**17


def test_send__interrupted__names_the_transaction_and_the_way_on(
    payer: tuple[Session, FakeChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, chain = payer
    told: list[str] = []
    session.tell = lambda event, facts: told.append(str(facts))
    _interrupted(session, chain, monkeypatch)
    assert "0x" in told[-1] and "the same command again" in told[-1]
    assert Wallet(session).send(FRIEND, "0.1")["already_sent"]
    assert not any("transfer: sending" in line for line in told[2:])


def test_withdraw__an_amount_to_somebody_else_and_the_same_again__pays_once(payer: tuple[Session, FakeChain]) -> None:
    session, chain = payer
    escrow = session.network.escrow
    chain.on_call(escrow, _selector("credit(address)"), lambda call, block: encode(["uint256"], [10**18]))
    chain.on_call(escrow, _selector("withdraw(address,uint256)"), lambda call, block: b"")
    wallet = Wallet(session)
    first = wallet.withdraw(amount="0.1", to=FRIEND)
    # The credit may have gone meanwhile: the earlier one is found before it is asked for.
    chain.on_call(escrow, _selector("credit(address)"), lambda call, block: encode(["uint256"], [0]))
    same = wallet.withdraw(amount="0.1", to=FRIEND)
    assert (first["already_sent"], same["already_sent"]) == (False, True)
    assert same["transactions"][0]["tx"] == first["transactions"][0]["tx"]


def test_send__two_tokens_of_one_symbol__are_two_payments(payer: tuple[Session, FakeChain]) -> None:
    session, chain = payer
    for letter in "78":
        token = Asset("USDX", 6, "0x" + letter * 40)
        session.__dict__["network"] = build.network(chain, asset=token)
        session.__dict__.pop("market", None)
        session.__dict__.pop("asset", None)
        assert token.address is not None
        chain.on_call(token.address, _selector("balanceOf(address)"), lambda call, block: encode(["uint256"], [10**9]))
        chain.on_call(
            token.address, _selector("transfer(address,uint256)"), lambda call, block: encode(["bool"], [True])
        )
        assert Wallet(session).send(FRIEND, "5")["already_sent"] is False


def test_send__token_that_answers_false__refused_and_nothing_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "SCRYPT_N", 1 << 10)
    home, chain = tmp_path / "home", FakeChain()
    home.mkdir(mode=0o700)
    key = keys.create_key(home / "keys", "me", "correct horse")
    session = Session(Settings(home=home), port=chain, ask_password=lambda question: "correct horse")
    session.__dict__["network"] = build.network(chain, asset=TOKEN)
    session._checked = True
    chain.set_balance(key.address, 10**18)
    assert TOKEN.address is not None
    chain.on_call(TOKEN.address, _selector("balanceOf(address)"), lambda call, block: encode(["uint256"], [10**9]))
    chain.on_call(TOKEN.address, _selector("transfer(address,uint256)"), lambda call, block: encode(["bool"], [False]))
    with pytest.raises(RefusedError) as caught:
        Wallet(session).send(FRIEND, "5")
    assert caught.value.code == "TOKEN_REFUSES" and not chain.pending


def _selector(signature: str) -> bytes:
    return bytes(keccak(text=signature)[:4])
