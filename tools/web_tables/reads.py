"""The ABI of the views that the page asks for, of one contract, with selectors (tools/web_tables/_abi.py:READ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eth_utils import keccak

from hearth.market.abi import signature_of
from tools.web_tables._abi import READ, tables_of


def folder() -> Mapping[str, Mapping[str, Any]]:
    """Return the views by contract."""
    return {
        name: {constant: [{"selector": _selector(one), **one} for one in views] for constant, views in tables.items()}
        for name, tables in tables_of(READ, "READS").items()
    }


def _selector(view: Mapping[str, Any]) -> str:
    return f"0x{keccak(text=signature_of(view))[:4].hex()}"
