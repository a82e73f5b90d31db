"""Signatures of EIP-712 documents, as a key makes them and as a contract checks them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    Vrs = tuple[int, int, int]

MAX_S: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Half of secp256k1's order: of the two signatures that hold for a document, the one with the lower s is taken."""


def sign(account: LocalAccount, document: Mapping[str, Any]) -> Vrs:
    """Return (v, r, s) of an account's signature of a document; v is 27 or 28, s is low."""
    signed = account.sign_typed_data(full_message=dict(document))
    return int(signed.v), int(signed.r), int(signed.s)


def signer(document: Mapping[str, Any], signature: Vrs) -> str | None:
    """Return the address, in lower case, that signed a document; None where no contract would take the signature."""
    from eth_account import Account
    from eth_account.messages import encode_typed_data
    from eth_keys.exceptions import BadSignature

    v, r, s = signature
    if v not in (27, 28) or not 0 < s <= MAX_S:
        return None
    try:
        found = Account.recover_message(encode_typed_data(full_message=dict(document)), vrs=(v, r, s))
    except BadSignature:
        return None
    return str(found).lower()
