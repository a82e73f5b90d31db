"""Sending money, in its parts: who may get it, what a unit names, and a token that says no."""

from __future__ import annotations

from pathlib import Path

import pytest
from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from hearth.base.errors import RefusedError, UsageError
from hearth.chain import keys
from hearth.chain.fake import FakeChain
from hearth.client.money import recipient, sent_asset
from hearth.client.session import NATIVE, Session
from hearth.client.wallet import Wallet
from hearth.config.settings import Settings
from hearth.protocol.units import Asset
from tests.kit import build

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
