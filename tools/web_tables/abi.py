"""The ABI of what a page reads, has signed and decodes (hearth/market/artifacts, calls.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hearth.market import calls
from hearth.market.abi import codec, signature_of
from hearth.market.contracts import CONTRACTS

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
}
"""By contract the calls that a person signs in a page, or that a page reads of others, and that change something."""
_TOKEN: Final = {
    "balanceOf": ("view", "uint256"),
    "allowance": ("view", "uint256"),
    "decimals": ("view", "uint8"),
    "approve": ("nonpayable", "bool"),
    "transfer": ("nonpayable", "bool"),
}
"""What ERC-20 says of its functions: mutability and answer (EIP-20)."""


def tables() -> Mapping[str, Any]:
    """Return an ABI for each contract, the token's, every event's and the refusal's.

    Of a contract it has every view, the calls that a person signs and `confirm`; what else workers, judges and other
    contracts call is left out. Each contract has a constant of its own, so that a page carries only those that it uses.
    """
    functions = {f"{_constant(name)}_ABI": _functions(name) for name in CONTRACTS}
    events: dict[str, Any] = {}
    for name in CONTRACTS:
        events |= {signature_of(entry): _event(entry) for entry in codec(name).abi if entry["type"] == "event"}
    (refusals,) = {signature_of(e) for name in CONTRACTS for e in codec(name).abi if e["type"] == "error"}
    refusal = next(entry for entry in codec("Escrow").abi if entry["type"] == "error")
    assert refusals == signature_of(refusal)
    return {
        **functions,
        "TOKEN_ABI": [_token(name, kinds) for name, kinds in calls._ERC20.items()],
        "EVENT_ABI": list(events.values()),
        "REFUSAL_ABI": [{"type": "error", "name": refusal["name"], "inputs": _parameters(refusal["inputs"])}],
    }


def _constant(name: str) -> str:
    """Return a contract's name as a constant's: NODE_REGISTRY."""
    return "".join(f"_{one}" if one.isupper() and at else one for at, one in enumerate(name)).upper()


def _functions(contract: str) -> list[dict[str, Any]]:
    wanted = set(SIGNED.get(contract, ()))
    entries = [entry for entry in codec(contract).abi if entry["type"] == "function"]
    missing = wanted - {entry["name"] for entry in entries}
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
        if entry["stateMutability"] == "view" or entry["name"] in wanted
    ]


def _event(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "event", "name": entry["name"], "inputs": _parameters(entry["inputs"])}


def _token(name: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    mutability, answer = _TOKEN[name]
    return {
        "type": "function",
        "name": name,
        "stateMutability": mutability,
        "inputs": [{"name": "", "type": kind} for kind in kinds],
        "outputs": [{"name": "", "type": answer}],
    }


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
