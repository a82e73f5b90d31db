"""Where money may go, and what an amount's unit names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth.base.errors import UsageError
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import NATIVE

if TYPE_CHECKING:
    from hearth.market.network import Network
    from hearth.protocol.units import Asset


def recipient(text: str, network: Network, *, why: str = "what is sent there is lost") -> str:
    """Return an address that money may go to, in lower case; `why` says what is wrong with one that nobody holds.

    Raises UsageError BAD_ADDRESS for what is none or mistyped by its checksum, and where money would be lost: the zero
    address, and the market's own contracts and token.
    """
    address = address_of(text)
    if address == ZERO_ADDRESS:
        raise _bad(text, f"is the zero address: {why}", "hearth wallet list")
    owned = {**network.contracts, f"{network.asset.symbol} token": network.asset.address}
    for name, contract in owned.items():
        if contract is not None and contract.lower() == address:
            raise _bad(text, f"is this market's {name}: {why}", "hearth net params names the contracts")
    return address


def address_of(text: str) -> str:
    """Return an address in lower case. Raises UsageError BAD_ADDRESS for what is none or mistyped by its checksum."""
    from eth_utils.address import is_checksum_address, is_checksum_formatted_address, is_hex_address

    if not text.startswith("0x") or not is_hex_address(text):
        raise _bad(text, "is no address", "write 0x and 40 hex digits; hearth wallet list")
    if is_checksum_formatted_address(text) and not is_checksum_address(text):
        raise _bad(text, "is mistyped: its capital letters are a checksum, and they are wrong", "copy it again")
    return text.lower()


def _bad(text: str, why: str, hint: str) -> UsageError:
    return UsageError(f"{text} {why}", hint=hint, code="BAD_ADDRESS")


def sent_asset(amount: str, asset: Asset) -> Asset:
    """Return what an amount's unit names: the native coin by its symbol, else the market's asset."""
    unit = amount.strip().lstrip("0123456789.").strip().lower()
    return NATIVE if unit == NATIVE.symbol.lower() != asset.symbol.lower() else asset
