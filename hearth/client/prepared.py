"""A call of a node's owner that one process prepares and another signs: what `--print-tx` prints, checked again.

The document's own word for what it does is not taken: its calldata says it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from hearth.base.errors import RefusedError
from hearth.base.text import plain
from hearth.chain.port import Call

if TYPE_CHECKING:
    from hearth.chain.tx import Sent
    from hearth.client.reports import PreparedTx
    from hearth.market.network import Network

TAKES: Final = {"register": "stake", "add_stake": "amount"}
"""The functions that take money of the market's asset, and the argument that says how much."""
OWNER_GAS: Final = 300_000
ARGUMENT_BYTES: Final = 256
"""Of an owner's call, at most; what is beyond them is the document that it carries."""
BYTE_GAS: Final = 40
"""What a byte that a call carries costs at most (EIP-7623)."""
_ADDRESS: Final = re.compile("0x[0-9a-f]{40}")
_ACTION: Final = re.compile("[a-z][a-z_. ]{0,31}")


@dataclass(frozen=True, slots=True)
class Prepared:
    """One call: `approve` is what its sender must approve before, in base units; `key` names the effect."""

    action: str
    sender: str
    call: Call
    approve: int
    key: str

    @property
    def paid(self) -> int:
        """Return what the call takes of the market's asset, in base units."""
        return self.approve or self.call.value

    def as_strangers(self) -> Prepared:
        """Return the same under a key of its own in the journal of whoever signs it.

        A document's key is its writer's word: taken as it stands, it could make a call of the signer's own look sent.
        Here it only tells two documents of one call apart, so the same document is not sent twice.
        """
        return replace(self, key=f"tx/{call_digest(self.call, self.key)}")

    def document(self, network: Network) -> PreparedTx:
        """Return what another process reads."""
        assert self.call.to is not None
        return {
            "schema": "hearth.tx/1",
            "action": self.action,
            "chain_id": network.chain_id,
            "from": self.sender,
            "to": self.call.to,
            "data": "0x" + self.call.data.hex(),
            "value": str(self.call.value),
            "approve": str(self.approve),
            "key": self.key,
        }


class Holder(Protocol):
    """Whoever may know a running process that holds a key, and that sends calls of an owner for it."""

    def send(self, prepared: Prepared, check: Callable[[], object]) -> list[Sent] | None:
        """Have a call sent and wait for what it came to; None where no process holds its sender's key.

        `check` raises where the call cannot be paid; it is called before it is asked for, not where it was before.
        """


def owner_gas(data: bytes) -> int:
    """Return more gas than a call of a node's owner takes."""
    return OWNER_GAS + BYTE_GAS * max(0, len(data) - ARGUMENT_BYTES)


def call_digest(call: Call, *more: str) -> str:
    """Return 32 hex digits that name what a call does, and `more` that tells it from another of the kind."""
    text = " ".join((str(call.to), str(call.value), call.data.hex(), *more))
    return hashlib.sha256(plain(text).encode()).hexdigest()[:32]


def read_prepared(document: Any, network: Network, name: str) -> tuple[Prepared, str, Mapping[str, Any]]:
    """Return the call of a document, which people know by `name`, with the function that it calls and its arguments.

    Raises ValueError for what is no such document, or pays otherwise than its call says, RefusedError WRONG_MARKET for
    another market's.
    """
    from hearth.market.abi import codec

    try:
        chain, to = int(document["chain_id"]), str(document["to"]).lower()
        data, value = bytes.fromhex(document["data"][2:]), int(document["value"])
        sender, approve = str(document["from"]).lower(), int(document["approve"])
        action, key = str(document["action"]), str(document["key"])
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("it lacks something, or a field is of another kind") from error
    if not (_ADDRESS.fullmatch(to) and _ADDRESS.fullmatch(sender) and _ACTION.fullmatch(action)):
        raise ValueError("its from, to or action is of no form that --print-tx writes")
    names = {network.nodes: ("NodeRegistry", "nodes"), network.escrow: ("Escrow", "escrow")}
    if chain == network.chain_id and to == network.jobs:
        raise ValueError("it calls JobRegistry, as posting a job does: sign it with the account's own wallet")
    if chain != network.chain_id or to not in names:
        raise RefusedError(
            f"{name} is for contract {to} on chain {chain}, not for {network.name}",
            hint="use --network NAME",
            code="WRONG_MARKET",
        )
    contract, short = names[to]
    told = codec(contract).decode_input(data)
    if told is None or (contract == "Escrow" and told[0] != "withdraw"):
        raise ValueError(f"its data calls nothing of {contract} that an owner calls")
    if value < 0 or approve < 0:
        raise ValueError("it pays less than nothing")
    function, arguments = told
    _refuse_more(data, codec(contract).encode(function, *arguments.values()), arguments.get("manifest"))
    takes = int(arguments[TAKES[function]]) if function in TAKES else 0
    due = (takes, 0) if network.asset.address is None else (0, takes)
    if (value, approve) != due:
        raise ValueError(f"it pays {value} and approves {approve}, and {function} takes {due[0]} and {due[1]}")
    return Prepared(action, sender, Call(to, data, value, f"{short}.{function}"), approve, key), function, arguments


def _refuse_more(data: bytes, call: bytes, manifest: bytes | None) -> None:
    """Refuse what stands behind a call's arguments, but for the document that its `manifest` is the digest of.

    No contract looks at it, and whoever signs is not shown it. Raises ValueError.
    """
    more = data.removeprefix(call)
    if data != call and (not data.startswith(call) or hashlib.sha256(more).digest() != manifest):
        raise ValueError("there is something else behind its arguments than the manifest that they name")
