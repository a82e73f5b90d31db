"""The narrow port through which every part of Hearth reads and writes the chain.

Addresses are lower-case hex strings with 0x, hashes are 32 bytes, amounts are base units, times chain seconds.
`RpcChain` (hearth.chain.rpc) talks JSON-RPC; unit tests of what lies above the port have a scripted chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, Literal, NamedTuple, Protocol

from hearth.base.errors import HearthError, RefusedError
from hearth.protocol import reasons

Tag = Literal["latest", "pending", "safe", "finalized", "earliest"]
BlockRef = int | bytes | Tag
"""A block number, a block hash (32 bytes, so that a reorg cannot change what is read), or a tag."""
Topics = Sequence[bytes | Sequence[bytes] | None]
"""One entry per topic position: a value, several alternatives, or None for any."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block's header. `base_fee` is wei per gas, None of a chain whose headers have none.

    `bloom` is the 256-byte log bloom, empty where it is unknown. There are providers that leave it out or write zeros:
    of several, who agree on the rest, whatever one of them announces counts. It is `doubted` where no more than half
    of them announce all of that, so that one alone may have made it up.
    """

    number: int
    hash: bytes
    parent_hash: bytes
    timestamp: int
    base_fee: int | None
    bloom: bytes = field(default=b"", compare=False)
    doubted: bool = field(default=False, compare=False)

    def announcing(self, others: Iterable[Block]) -> Block:
        """Return it with all that any of its equals among others announces; the unknown may be anything."""
        blooms = [one.bloom for one in others if one == self]
        bits = reduce(int.__or__, (int.from_bytes(bloom, "big") for bloom in blooms), 0).to_bytes(256, "big")
        return replace(self, bloom=bits if all(blooms) else b"", doubted=2 * blooms.count(bits) <= len(blooms))


class Log(NamedTuple):
    """One event log. A NamedTuple, since a catching-up reader makes 50,000 of these a second."""

    address: str
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a mined transaction.

    `gas_price` is the effective price in wei per gas, which a provider need not say: what a port returns has it.
    `rollup_fee` are the wei that a rollup took beside (hearth.chain.rollup), None where the receipt says nothing of it.
    What a receipt says of fees may be left out by one of several providers that agree on the rest: what more than half
    say of them counts, nothing included.
    """

    tx_hash: bytes
    block_number: int
    block_hash: bytes
    ok: bool
    gas_used: int
    gas_price: int | None = field(compare=False)
    sender: str
    to: str | None
    contract: str | None
    logs: tuple[Log, ...]
    rollup_fee: int | None = field(default=None, compare=False)

    @property
    def fee(self) -> int:
        """Return what the sender paid beside the call's value, in wei."""
        assert self.gas_price is not None
        return self.gas_used * self.gas_price + (self.rollup_fee or 0)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that the node knows; `block_number` is None while it is pending."""

    hash: bytes
    sender: str
    to: str | None
    nonce: int
    value: int
    data: bytes
    gas: int
    max_fee: int
    priority_fee: int
    block_number: int | None
    block_hash: bytes | None


class Signed(NamedTuple):
    """The limits that a transaction was signed with: its gas, and its two fees in wei per gas."""

    gas: int
    max_fee: int
    priority_fee: int

    def price_at(self, base_fee: int | None) -> int:
        """Return the price per gas that it pays in a block (EIP-1559), the most where the base fee is unknown."""
        return self.max_fee if base_fee is None else min(self.max_fee, base_fee + self.priority_fee)


@dataclass(frozen=True, slots=True)
class Fees:
    """A suggestion for the next block, wei per gas; `beside` is what a typical call pays a rollup beside its gas."""

    base_fee: int
    priority_fee: int
    beside: int = 0

    @property
    def price(self) -> int:
        """Return what gas costs now, all in all."""
        return self.base_fee + self.priority_fee + self.beside

    @property
    def most(self) -> int:
        """Return what is kept for each unit of gas: six blocks of rising base fees, here and on the chain below."""
        return 2 * self.base_fee + self.priority_fee + 2 * self.beside


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make: `to` is None for a deployment. `label` names it for people, such as "jobs.claim"."""

    to: str | None
    data: bytes
    value: int = 0
    label: str = ""


class ChainPort(Protocol):
    """Read and write one chain. Every method may raise ChainError, retryable unless the chain is the wrong one."""

    def begin_cycle(self) -> None:
        """Start a cycle: the head is asked for anew, and the most preferred provider before the others."""

    def chain_id(self) -> int:
        """Return the chain id."""

    def genesis_hash(self) -> bytes:
        """Return the hash of block 0, which tells two chains of one id apart."""

    def head(self) -> Block:
        """Return the newest block, of several providers the newest that more than half of those that answer know."""

    def block(self, at: BlockRef) -> Block | None:
        """Return a block, or None where the provider does not know it."""

    def logs(
        self,
        addresses: Sequence[str],
        topics: Topics = (),
        *,
        from_block: int | None = None,
        to_block: int | None = None,
        block_hash: bytes | None = None,
    ) -> list[Log]:
        """Return the logs of `addresses` in [from_block, to_block], or of one block by hash, in chain order."""

    def call(self, call: Call, block: BlockRef = "latest", *, sender: str | None = None) -> bytes:
        """Run a call without sending it. Raises RefusedError with the contract's reason where it reverts."""

    def code(self, address: str, block: BlockRef = "latest") -> bytes:
        """Return a contract's runtime code, empty where there is none."""

    def balance(self, address: str, block: BlockRef = "latest") -> int:
        """Return an account's native balance in wei."""

    def nonce(self, address: str, *, pending: bool = False) -> int:
        """Return an account's next nonce, that of the mined state or with the pool's transactions."""

    def estimate_gas(self, call: Call, sender: str) -> int:
        """Return the gas that a call needs. Raises RefusedError where it reverts."""

    def fees(self) -> Fees:
        """Suggest fees for the next block."""

    def rollup_fee(self, data: bytes, gas: int) -> int:
        """Estimate the wei that a rollup takes for a transaction beside its gas, 0 on every other chain."""

    def send_raw(self, raw: bytes) -> bytes:
        """Broadcast a signed transaction and return its hash.

        Raises ChainError with code ALREADY_KNOWN, NONCE_TOO_LOW, UNDERPRICED or POOL_FULL, FundsError where the balance
        is short, RefusedError where the pool refuses it for good.
        """

    def receipt(self, tx_hash: bytes, *, signed: Signed | None = None) -> Receipt | None:
        """Return a mined transaction's receipt, or None. None is not a failure: a lagging node says it too.

        No true receipt is beyond what was `signed`, and one without a price is priced by it. Of a stranger's
        transaction the provider is asked for it then.
        """

    def transaction(self, tx_hash: bytes) -> Transaction | None:
        """Return a transaction that the node knows, or None."""


def match_topics(have: Sequence[bytes], topics: Topics) -> bool:
    """Say whether a log with these topics is one that `topics` ask for."""
    if len(topics) > len(have):
        return False
    for value, wanted in zip(have, topics, strict=False):
        if wanted is None:
            continue
        if isinstance(wanted, bytes):
            if value != wanted:
                return False
        elif value not in wanted:
            return False
    return True


def hex_of(value: bytes) -> str:
    """Return 0x-prefixed hex."""
    return "0x" + value.hex()


_REFUSED = bytes.fromhex("590a5151")
_ERROR = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
_PANICS = {
    0x01: "an assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division by zero",
    0x21: "value out of an enum's range",
    0x32: "index out of bounds",
}


def revert_reason(data: bytes) -> str:
    """Return what a revert's return data say: a text of the market's, a token's or the compiler's; "" where it is none.

    The market's contracts give `Refused(uint256)`, tokens `Error(string)`, and checked arithmetic may `Panic(uint256)`.
    """
    if data[:4] == _REFUSED and len(data) >= 36:
        return reasons.text_of(int.from_bytes(data[4:36], "big"))
    if data[:4] == _ERROR and len(data) >= 68:
        length = int.from_bytes(data[36:68], "big")
        return data[68 : 68 + min(length, len(data) - 68)].decode("utf-8", "replace")
    if data[:4] == _PANIC and len(data) >= 36:
        code = int.from_bytes(data[4:36], "big")
        return f"panic {code:#04x}: {_PANICS.get(code, 'unknown')}"
    return ""


_HINTS: Final = {
    "jobs: paused": "hearth net status says until when",
    "nodes: paused": "the same command later: registrations are paused for a while",
    "rules: paused lately": "hearth gov status says from when on the next pause works",
    "nodes: paused lately": "hearth gov status says from when on the next pause works",
    "rules: not the governor": "hearth gov status",
    "nodes: not the governor": "hearth gov status",
    "jobs": "hearth job show JOB",
    "nodes": "hearth worker status",
    "rules": "hearth net events",
    "steward": "hearth gov status",
    "escrow": "hearth wallet balance",
}
"""The command that shows what a refusal is about: by the whole reason, else by the part of the market that refused."""


def refused(reason: str, *, label: str = "", data: bytes = b"") -> RefusedError:
    """Build the error of a call that a contract refuses.

    `details["reason"]` is the contract's reason in words ("jobs: not open"), "" where it gave none.
    """
    what = f"{label} is refused" if label else "the contract refuses the call"
    why = reason or "it reverted without a reason"
    parts = (reason, reason.partition(":")[0], label.partition(".")[0])
    hint = next((_HINTS[part] for part in parts if part in _HINTS), "hearth doctor")
    return RefusedError(f"{what}: {why}", hint=hint, reason=reason, label=label, data=hex_of(data))


def reason_of(error: HearthError) -> str:
    """Return the contract's reason of a refusal in words, "" for any other error."""
    return str(error.details.get("reason", ""))
