"""The ABI of the calls that wallets sign and the page decodes, of one contract (tools/web_tables/_abi.py:SIGNED)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.web_tables._abi import SIGNED, tables_of


def folder() -> Mapping[str, Mapping[str, Any]]:
    """Return the calls by contract."""
    return tables_of(SIGNED, "CALLS")
