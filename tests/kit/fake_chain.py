"""A scripted chain: the port's second implementation, for unit tests of what lies above it, without an EVM.

Blocks are mined by hand (`mine`), calls are answered by handlers keyed by (address, selector), transactions are real
signed ones that wait in a pool and run scripted effects when mined. `reorg` replaces blocks and returns their
transactions to the pool; `faults` makes the next requests fail as a provider would.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from hearth.base.errors import ChainError, FundsError, RefusedError
from hearth.chain.port import (
    Block,
    BlockRef,
    Call,
    Fees,
    Log,
    Receipt,
    Signed,
    Topics,
    Transaction,
    match_topics,
    refused,
)
from hearth.protocol.types import LOCAL_CHAIN_ID

GWEI = 10**9
BLOOM_BYTES = 256


class Event(NamedTuple):
    """A log to mine: what a contract emits, before the chain gives it a place."""

    address: str
    topics: tuple[bytes, ...]
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a mined transaction did."""

    ok: bool = True
    events: tuple[Event, ...] = ()
    gas_used: int = 50_000


@dataclass(frozen=True, slots=True)
class Fault:
    """Make the next `times` requests of `method` ("" for any) fail: no answer, a time-out, or a 429."""

    kind: Literal["down", "timeout", "throttled"]
    method: str = ""
    times: int = 1


CallHandler = Callable[[Call, Block], bytes]
"""Answer a call at a block; raise `refused(reason)` to revert."""
SendHandler = Callable[[Transaction, Block], Effect]
"""Run a mined transaction; raising RefusedError makes its receipt fail."""


@dataclass(slots=True)
class _Mined:
    block: Block
    logs: list[Log] = field(default_factory=list)
    transactions: list[tuple[Transaction, bytes, Receipt]] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)


class FakeChain:
    """A scripted chain of one provider. Time moves by `block_time` seconds per block unless `mine` says otherwise."""

    def __init__(self, chain_id: int = LOCAL_CHAIN_ID, *, block_time: int = 1, start: int = 1_700_000_000) -> None:
        self._chain_id = chain_id
        self._block_time = block_time
        self._fork = 0
        self._handlers: dict[tuple[str, bytes], CallHandler] = {}
        self._effects: dict[tuple[str, bytes], SendHandler] = {}
        self._codes: dict[str, bytes] = {}
        self._pool: dict[tuple[str, int], tuple[Transaction, bytes]] = {}
        self._faults: deque[Fault] = deque()
        self.base_fee = GWEI
        self.priority_fee = GWEI // 10
        self.gas_estimate = 60_000
        self.rollup_estimate = 0
        self.rollup_fee_of: Callable[[Transaction], int] = lambda tx: 0
        """What a rollup takes beside gas, of the sender's balance: 0 is no rollup, whose receipts say nothing of it."""
        self.late: Callable[[bytes], bool] = lambda tx_hash: False
        """Which receipts a provider does not have yet, of what is mined."""
        self.counts: Counter[str] = Counter()
        """Requests by method."""
        self.sent: list[bytes] = []
        """Every raw transaction that reached the pool, rebroadcasts included, in order."""
        self._blocks = [_Mined(self._make_block(0, bytes(32), start))]

    # ---- scripting ----

    def on_call(self, address: str, selector: bytes, handler: CallHandler) -> None:
        """Answer calls of `selector` (the first four bytes) to `address`."""
        self._handlers[address.lower(), selector] = handler

    def on_send(self, address: str, selector: bytes, handler: SendHandler) -> None:
        """Run `handler` where a transaction of `selector` to `address` is mined."""
        self._effects[address.lower(), selector] = handler

    def set_code(self, address: str, code: bytes) -> None:
        """Put runtime code at an address."""
        self._codes[address.lower()] = code

    def set_balance(self, address: str, wei: int) -> None:
        """Set an account's native balance."""
        self._blocks[-1].balances[address.lower()] = wei

    def fail(self, *faults: Fault) -> None:
        """Queue faults; each request meets the first one that names its method."""
        self._faults.extend(faults)

    def mine(
        self, events: Sequence[Event] = (), *, timestamp: int | None = None, include_pool: bool = True, count: int = 1
    ) -> Block:
        """Mine `count` blocks, the last with `events`, each with what the pool holds and pays the base fee for."""
        for _ in range(count - 1):
            self._mine_one((), None, include_pool)
        return self._mine_one(events, timestamp, include_pool)

    def drop_pool(self) -> None:
        """Forget every pending transaction, as a node does that restarts."""
        self._pool.clear()

    def reorg(self, depth: int, *, remine: Sequence[Sequence[Event]] | None = None) -> list[Block]:
        """Replace the newest `depth` blocks and return the orphaned ones, oldest first.

        Their transactions go back to the pool. `remine` gives the events of the new blocks, one entry each
        (default: `depth` + 1 empty ones); the pool is not mined into them.
        """
        if not 0 < depth < len(self._blocks):
            raise ValueError(f"cannot reorg {depth} of {len(self._blocks)} blocks")
        dropped = self._blocks[-depth:]
        del self._blocks[-depth:]
        self._fork += 1
        for mined in dropped:
            for tx, raw, _ in mined.transactions:
                self._pool[tx.sender, tx.nonce] = (tx, raw)
        for events in remine if remine is not None else [()] * (depth + 1):
            self._mine_one(events, None, False)
        return [mined.block for mined in dropped]

    @property
    def pending(self) -> list[Transaction]:
        """List the pool by sender and nonce."""
        return [self._pool[key][0] for key in sorted(self._pool)]

    def _make_block(self, number: int, parent: bytes, timestamp: int, events: Sequence[Event] = ()) -> Block:
        from eth_utils.crypto import keccak

        seed = b"hearth fake %d %d %d %d" % (self._chain_id, self._fork, number, timestamp)
        bloom = bloom_of(events)
        return Block(number, keccak(seed + parent), parent, timestamp, self.base_fee, bloom)

    def _mine_one(self, events: Sequence[Event], timestamp: int | None, include_pool: bool) -> Block:
        parent = self._blocks[-1]
        at = parent.block.timestamp + self._block_time if timestamp is None else timestamp
        if at <= parent.block.timestamp:
            raise ValueError("block times must rise")
        number = parent.block.number + 1
        draft = self._make_block(number, parent.block.hash, at)
        balances, nonces = dict(parent.balances), dict(parent.nonces)
        outcomes: list[tuple[Transaction, bytes, Effect]] = []
        if include_pool:
            for key in sorted(self._pool):
                tx, raw = self._pool[key]
                if tx.nonce != nonces.get(tx.sender, 0) or tx.max_fee < self.base_fee:
                    continue
                effect = self._run(tx, draft)
                nonces[tx.sender] = tx.nonce + 1
                price = min(tx.max_fee, self.base_fee + tx.priority_fee)
                spent = effect.gas_used * price + self.rollup_fee_of(tx) + (tx.value if effect.ok else 0)
                balances[tx.sender] = balances.get(tx.sender, 0) - spent
                if effect.ok and tx.to is not None:
                    balances[tx.to] = balances.get(tx.to, 0) + tx.value
                outcomes.append((tx, raw, effect))
                del self._pool[key]
        every = [event for _, _, effect in outcomes if effect.ok for event in effect.events] + list(events)
        block = self._make_block(number, parent.block.hash, at, every)
        mined = _Mined(block, balances=balances, nonces=nonces)
        for tx, raw, effect in outcomes:
            self._record(mined, tx, raw, effect)
        for event in events:
            tx_hash = b"\xee" * 24 + len(mined.logs).to_bytes(8, "big")
            mined.logs.append(self._place(event, block, tx_hash, len(mined.logs)))
        self._blocks.append(mined)
        return block

    def _run(self, tx: Transaction, block: Block) -> Effect:
        handler = self._effects.get((tx.to or "", tx.data[:4]))
        if handler is None:
            return Effect()
        try:
            return handler(tx, block)
        except RefusedError:
            return Effect(ok=False)

    def _record(self, mined: _Mined, tx: Transaction, raw: bytes, effect: Effect) -> None:
        block = mined.block
        first = len(mined.logs)
        if effect.ok:
            for event in effect.events:
                mined.logs.append(self._place(event, block, tx.hash, len(mined.logs)))
        receipt = Receipt(
            tx_hash=tx.hash,
            block_number=block.number,
            block_hash=block.hash,
            ok=effect.ok,
            gas_used=effect.gas_used,
            gas_price=min(tx.max_fee, self.base_fee + tx.priority_fee),
            sender=tx.sender,
            to=tx.to,
            contract=None,
            logs=tuple(mined.logs[first:]),
            rollup_fee=self.rollup_fee_of(tx) or None,
        )
        mined.transactions.append((tx, raw, receipt))

    @staticmethod
    def _place(event: Event, block: Block, tx_hash: bytes, index: int) -> Log:
        return Log(event.address.lower(), event.topics, event.data, block.number, block.hash, tx_hash, index)

    def _meet(self, method: str) -> None:
        """Count a request, and fail it where a fault waits for it."""
        self.counts[method] += 1
        for fault in self._faults:
            if fault.method in ("", method):
                self._faults.remove(fault)
                if fault.times > 1:
                    self._faults.appendleft(Fault(fault.kind, fault.method, fault.times - 1))
                raise ChainError(f"scripted fault: {fault.kind}", hint="hearth doctor", kind=fault.kind)

    # ---- the port ----

    def begin_cycle(self) -> None:
        """Do nothing: there is one provider."""

    def chain_id(self) -> int:
        """Return the chain id."""
        self._meet("chain_id")
        return self._chain_id

    def genesis_hash(self) -> bytes:
        """Return the hash of block 0."""
        self._meet("genesis_hash")
        return self._blocks[0].block.hash

    def head(self) -> Block:
        """Return the newest block."""
        self._meet("head")
        return self._blocks[-1].block

    def block(self, at: BlockRef) -> Block | None:
        """Return a block, or None where it is unknown or orphaned."""
        self._meet("block")
        mined = self._find(at)
        return None if mined is None else mined.block

    def _find(self, at: BlockRef) -> _Mined | None:
        if isinstance(at, bytes):
            return next((m for m in reversed(self._blocks) if m.block.hash == at), None)
        if isinstance(at, int):
            return self._blocks[at] if 0 <= at < len(self._blocks) else None
        return self._blocks[0] if at == "earliest" else self._blocks[-1]

    def _known(self, at: BlockRef) -> _Mined:
        mined = self._find(at)
        if mined is None:
            raise ChainError("the provider does not know that block", code="BLOCK_UNKNOWN", hint="hearth doctor")
        return mined

    def logs(
        self,
        addresses: Sequence[str],
        topics: Topics = (),
        *,
        from_block: int | None = None,
        to_block: int | None = None,
        block_hash: bytes | None = None,
    ) -> list[Log]:
        """Return the logs of a range or of one block, in chain order."""
        self._meet("logs")
        if block_hash is not None:
            blocks = [self._known(block_hash)]
        elif from_block is not None and to_block is not None:
            blocks = self._blocks[max(0, from_block) : to_block + 1]
        else:
            raise ValueError("logs need a range or a block hash")
        allowed = {a.lower() for a in addresses}
        return [
            log
            for mined in blocks
            for log in mined.logs
            if (not allowed or log.address in allowed) and match_topics(log.topics, topics)
        ]

    def call(self, call: Call, block: BlockRef = "latest", *, sender: str | None = None) -> bytes:
        """Answer by the scripted handler; nothing at an address without one."""
        self._meet("call")
        mined = self._known(block)
        return self._answer(call, mined.block)

    def _answer(self, call: Call, block: Block) -> bytes:
        handler = self._handlers.get(((call.to or "").lower(), call.data[:4]))
        if handler is None:
            return b""
        try:
            return handler(call, block)
        except RefusedError as error:
            raise refused(str(error.details.get("reason", "")), label=call.label) from error

    def code(self, address: str, block: BlockRef = "latest") -> bytes:
        """Return scripted code."""
        self._meet("code")
        self._known(block)
        return self._codes.get(address.lower(), b"")

    def balance(self, address: str, block: BlockRef = "latest") -> int:
        """Return an account's native balance at a block."""
        self._meet("balance")
        return self._known(block).balances.get(address.lower(), 0)

    def nonce(self, address: str, *, pending: bool = False) -> int:
        """Return an account's next nonce; the pool's are counted while they follow without a gap."""
        self._meet("nonce")
        account = address.lower()
        nonce = self._blocks[-1].nonces.get(account, 0)
        while pending and (account, nonce) in self._pool:
            nonce += 1
        return nonce

    def estimate_gas(self, call: Call, sender: str) -> int:
        """Return the scripted estimate, after the call's handler had its chance to refuse."""
        self._meet("estimate_gas")
        self._answer(call, self._blocks[-1].block)
        return self.gas_estimate

    def rollup_fee(self, data: bytes, gas: int) -> int:
        """Return the scripted estimate of what a rollup takes beside gas."""
        return self.rollup_estimate

    def fees(self) -> Fees:
        """Return the scripted fees."""
        self._meet("fees")
        return Fees(self.base_fee, self.priority_fee)

    def send_raw(self, raw: bytes) -> bytes:
        """Put a signed transaction into the pool, with a node's checks."""
        self._meet("send_raw")
        tx = decode_raw(raw)
        self.sent.append(raw)
        head = self._blocks[-1]
        if any(known.hash == tx.hash for known, _ in self._pool.values()):
            raise ChainError("the transaction is in the pool already", code="ALREADY_KNOWN", hint="hearth doctor")
        if tx.nonce < head.nonces.get(tx.sender, 0):
            raise ChainError("the nonce is used already", code="NONCE_TOO_LOW", hint="hearth doctor")
        if tx.value + tx.gas * tx.max_fee > head.balances.get(tx.sender, 0):
            raise FundsError("the account cannot pay for this call", hint="hearth wallet balance")
        rival = self._pool.get((tx.sender, tx.nonce))
        if rival is not None:
            least_max, least_tip = rival[0].max_fee * 110, rival[0].priority_fee * 110
            if tx.max_fee * 100 < least_max or tx.priority_fee * 100 < least_tip:
                raise ChainError("the fees are too low to replace", code="UNDERPRICED", hint="hearth doctor")
        self._pool[tx.sender, tx.nonce] = (tx, raw)
        return tx.hash

    def receipt(self, tx_hash: bytes, *, signed: Signed | None = None) -> Receipt | None:
        """Return a mined transaction's receipt, which is true, so that nothing is beyond what was signed."""
        self._meet("receipt")
        if self.late(tx_hash):
            return None
        for mined in reversed(self._blocks):
            for tx, _, receipt in mined.transactions:
                if tx.hash == tx_hash:
                    return receipt
        return None

    def transaction(self, tx_hash: bytes) -> Transaction | None:
        """Return a mined or pending transaction."""
        self._meet("transaction")
        for tx, _ in self._pool.values():
            if tx.hash == tx_hash:
                return tx
        for mined in reversed(self._blocks):
            for tx, _, receipt in mined.transactions:
                if tx.hash == tx_hash:
                    return _mined_at(tx, receipt)
        return None


def _mined_at(tx: Transaction, receipt: Receipt) -> Transaction:
    return replace(tx, block_number=receipt.block_number, block_hash=receipt.block_hash)


def bloom_of(events: Sequence[Event]) -> bytes:
    """Return the 256-byte log bloom of `events` (yellow paper, section 4.3.1)."""
    from eth_utils.crypto import keccak

    bits = 0
    for event in events:
        for item in (bytes.fromhex(event.address[2:]), *event.topics):
            digest = keccak(item)
            for i in (0, 2, 4):
                bits |= 1 << (int.from_bytes(digest[i : i + 2], "big") & 2047)
    return bits.to_bytes(BLOOM_BYTES, "big")


def decode_raw(raw: bytes) -> Transaction:
    """Decode and verify a signed EIP-1559 transaction."""
    from eth_account import Account
    from eth_account.typed_transactions.typed_transaction import TypedTransaction
    from eth_utils.crypto import keccak
    from hexbytes import HexBytes

    fields = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    to = bytes(fields["to"])
    return Transaction(
        hash=keccak(raw),
        sender=Account.recover_transaction(raw).lower(),
        to="0x" + to.hex() if to else None,
        nonce=int(fields["nonce"]),
        value=int(fields["value"]),
        data=bytes(fields["data"]),
        gas=int(fields["gas"]),
        max_fee=int(fields["maxFeePerGas"]),
        priority_fee=int(fields["maxPriorityFeePerGas"]),
        block_number=None,
        block_hash=None,
    )
