"""The ABI of the views that the page asks for, of one contract (tools/web_tables/_abi.py:READ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.web_tables._abi import READ, tables_of


def folder() -> Mapping[str, Mapping[str, Any]]:
    """Return the views by contract."""
    return tables_of(READ, "READS")
