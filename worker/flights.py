"""What a signed transaction is about, read from its calldata.

After a restart a worker knows its predecessor's transactions only as the bytes in the transaction journal. Read back
from these, what is under way is told the same way, whichever process signed it.
"""

from __future__ import annotations

from typing import Any, Final

from hearth.chain.port import Call
from hearth.market.abi import codec
from hearth.market.reads import Market
from hearth.protocol.types import SENTINEL, JobId
from worker.decide import Kind
from worker.decide.actions import Where

_KINDS: Final = {kind.value: kind for kind in Kind} | {"settle_batch": Kind.SETTLE}
"""The function that each kind of transaction calls."""
GAP: Final = "gap"
"""What metrics call a transaction that only uses up a nonce whose own was lost."""


def read_call(call: Call, market: Market) -> tuple[Kind, tuple[Where, ...]] | None:
    """Return the kind of a worker's call and the leases that it names; None for a call that is no worker's.

    What takes an array's next lease besides the one that it ends names SENTINEL after that.

    Raises ValueError where the arguments are not those of the function.
    """
    contract = next((name for name, address in market.network.contracts.items() if address == call.to), None)
    decoded = codec(contract).decode_input(call.data) if contract is not None else None
    if decoded is None or decoded[0] not in _KINDS:
        return None
    function, arguments = decoded
    leases = _leases(arguments, market)
    if arguments.get("claims"):
        leases += ((leases[0][0], SENTINEL),)
    return _KINDS[function], leases


def _leases(arguments: dict[str, Any], market: Market) -> tuple[Where, ...]:
    """Return the leases that arguments name: many, one by its terms or its job's id, or none."""
    if "items" in arguments:
        return tuple((market.job_id(terms), index) for terms, index in arguments["items"])
    if "terms" in arguments:
        return ((market.job_id(arguments["terms"]), arguments["index"]),)
    if "job_id" in arguments:
        return ((JobId(arguments["job_id"]), arguments["index"]),)
    return ()
