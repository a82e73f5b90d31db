"""The ABI of what a page reads, has signed and decodes (hearth/market/artifacts, calls.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from hearth.market import calls
from hearth.market.abi import codec, signature_of
from hearth.market.contracts import CONTRACTS
from hearth.market.network import NodeParameters

TOKEN: Final = "Token"
"""Under this name the market's token stands among the contracts."""
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "Escrow": ("credit",),
    "NodeRegistry": (
        *("offered_operator", "governor", "offered_governor", "paused_until", "ESCROW", "JOBS"),
        *(field.name.upper() for field in fields(NodeParameters)),
    ),
    "Rules": ("governor", "offered_governor", "paused_until"),
    "JobRegistry": ("job_id_of", "RULES", "ASSET", "ESCROW", "NODES"),
    "Lens": ("overview", "nodes", "jobs", "status", "locks", "credits", "gates"),
    "Steward": ("council", "offered_council", "guardian", "DELAY", "changes"),
    TOKEN: ("balanceOf", "allowance", "decimals"),
}
"""By contract the views that a page asks for."""
SIGNED: Final[Mapping[str, tuple[str, ...]]] = {
    "Escrow": ("withdraw",),
    "NodeRegistry": (
        *("register", "add_stake", "update_offer", "set_ask", "set_operator", "offer_owner", "accept_owner"),
        *("exit_start", "exit_cancel", "exit_finish", "check_liveness"),
    ),
    "JobRegistry": (
        *("post", "top_up", "accept", "cancel"),
        *("settle", "settle_batch", "close", "reclaim", "expire", "unlock"),
    ),
    "Lens": ("performUpkeep",),
    "Attesters": ("confirm",),
    "Steward": ("queue", "drop", "drop_previous_policy", "pause", "accept_council", "execute", "accept_governor"),
    TOKEN: ("approve",),
}
"""By contract the calls that a person signs in a page, or that a page reads of others, and that change something."""


def tables_of(wanted: Mapping[str, tuple[str, ...]], what: str) -> Mapping[str, Mapping[str, Any]]:
    """Return for each contract a file's name and its constant, with the functions that are wanted of it.

    Each contract has a file of its own, so that a part of the page carries only those that it uses.
    """
    return {_dashed(name): {constant_of(name, what): functions_of(name, all_)} for name, all_ in wanted.items()}


def constant_of(contract: str, what: str) -> str:
    """Return the name of a contract's constant: NODE_REGISTRY_CALLS."""
    return f"{_dashed(contract).replace('-', '_').upper()}_{what}"


def events() -> list[dict[str, Any]]:
    """Return every event of every contract, once."""
    found: dict[str, Any] = {}
    for name in CONTRACTS:
        found |= {signature_of(entry): _event(entry) for entry in codec(name).abi if entry["type"] == "event"}
    return list(found.values())


def refusal() -> dict[str, Any]:
    """Return the error by which every contract refuses."""
    (found,) = {signature_of(e): e for name in CONTRACTS for e in codec(name).abi if e["type"] == "error"}.values()
    return {"type": "error", "name": found["name"], "inputs": _parameters(found["inputs"])}


def functions_of(contract: str, wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return functions in the order of the contract's ABI. Raises ValueError for one that it does not have."""
    abi = calls.TOKEN_ABI if contract == TOKEN else codec(contract).abi
    entries = [entry for entry in abi if entry["type"] == "function"]
    missing = set(wanted) - {entry["name"] for entry in entries}
    if missing:
        raise ValueError(f"{contract} has no {', '.join(sorted(missing))}")
    return [
        {
            "type": "function",
            "name": entry["name"],
            "stateMutability": entry["stateMutability"],
            "inputs": _parameters(entry["inputs"]),
            "outputs": _parameters(entry["outputs"]),
        }
        for entry in entries
        if entry["name"] in wanted
    ]


def _dashed(name: str) -> str:
    """Return a contract's name as a file's: node-registry."""
    return "".join(f"-{one}" if one.isupper() and at else one for at, one in enumerate(name)).lower()


def _event(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "event", "name": entry["name"], "inputs": _parameters(entry["inputs"])}


def _parameters(parameters: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return parameters in the order of keys that every entry has here, tuples with their components."""
    found = []
    for one in parameters:
        said: dict[str, Any] = {"name": one["name"], "type": one["type"]}
        if "components" in one:
            said["components"] = _parameters(one["components"])
        if "indexed" in one:
            said["indexed"] = one["indexed"]
        found.append(said)
    return found
