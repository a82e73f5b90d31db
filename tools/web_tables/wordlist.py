"""The English list of BIP-39, 2,048 words, four of which name a job (hearth/client/explain/calldata.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_account.hdaccount.mnemonic import get_wordlist


def tables() -> Mapping[str, Any]:
    """Return the list."""
    return {"WORDLIST": " ".join(get_wordlist("english"))}
