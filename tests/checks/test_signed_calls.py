"""The calls that somebody signs stand in several tables, each with something else of them: all name the same calls."""

from __future__ import annotations

import re

from hearth.client.explain.call_summary import SUMMARIES
from hearth.client.explain.calldata import CALLS, OTHERS
from hearth.client.explain.money_moves import MOVES
from tests.kit.evm import ROOT
from tools.web_tables import _abi

READ = {("JobRegistry", "settle_batch"), ("Attesters", "confirm")}
"""Calls that the page reads of others, and has nobody sign."""


def named(table: dict[str, object]) -> set[tuple[str, str]]:
    return {(contract, function) for contract, functions in table.items() for function in functions}  # type: ignore[attr-defined]


def test_calls__each_that_is_explained__has_its_sentence_and_its_money() -> None:
    read = named({**CALLS}) | named({**OTHERS})

    assert set(SUMMARIES) == read
    assert set(MOVES) == read


def test_calls__the_abi_of_those_that_are_signed__has_what_is_explained() -> None:
    signed = {("token" if contract == _abi.TOKEN else contract, name) for contract, name in named({**_abi.SIGNED})}

    assert signed == named({**CALLS}) | named({**OTHERS}) | READ


def test_calls__those_that_a_file_may_hold__are_the_same_in_the_page() -> None:
    source = (ROOT / "web" / "src" / "core" / "prepared.ts").read_text(encoding="utf-8")
    (table,) = re.findall(r"^const TAKES = \{\n(.*?)^\} as const", source, re.MULTILINE | re.DOTALL)
    contracts = re.findall(r"^  (\w+): \{(.*?)\},$", table, re.MULTILINE | re.DOTALL)
    taken = {(name, function) for name, inside in contracts for function in re.findall(r"(?:^|,)\s*(\w+):", inside)}

    assert taken == named({**CALLS})
