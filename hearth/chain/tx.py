"""The one transaction path: simulate, estimate, check funds, sign, journal, broadcast, wait, replace within a cap.

Every part of Hearth that sends, sends through `Sender`. Contracts make each transition idempotent or harmless to
repeat; the journal makes sure that one process never signs twice for one effect; the simulation before each send stops
what became stale. A lost race is a `RefusedError` with the contract's reason. Source: threats.md "Threats".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from hearth.base.errors import ChainError, FundsError, HearthError, RefusedError
from hearth.base.failpoints import fp
from hearth.chain.fees import Bid, opening, raised
from hearth.chain.port import Block, Call, ChainPort, Fees, Log, Receipt, hex_of, reason_of, refused
from hearth.chain.tx_journal import Intent, SignedTx, TxJournal, TxState
from hearth.protocol.units import Asset, show_amount, show_at_least

if TYPE_CHECKING:
    from eth_account.datastructures import SignedTransaction

GWEI: Final = 10**9
LOOKS: Final = 3
"""Looks, a poll apart, at a receipt that ought to be there: a lagging provider is given that long."""
MAX_GAP: Final = 64
"""Nonces that an account may be ahead of what is mined and what the journal knows: as many as a pool keeps of one.

What is further ahead nobody has signed for; it is a provider that names a false nonce.
"""
TOO_DEAR: Final = frozenset({"FEE_CAP", "SPEND_CAP"})
"""The codes of what may not be paid now, and can be sent later."""
KEPT_BLOCKS: Final = 512
"""Blocks below a head that are remembered: more than any network's `finality`."""
ROLLUP_MARGIN: Final = 2
"""Times the estimate that are kept for what a rollup takes beside gas: prices of the chain below move meanwhile."""
CANCEL_GAS: Final = 21_000
"""What a transaction uses that only uses a nonce up."""
_ANY: Final = 1 << 62
"""More wei per gas than anybody has."""


class Signer(Protocol):
    """What signs for one account: eth-account's LocalAccount, or whatever holds the key for us."""

    @property
    def address(self) -> str:
        """Return the account's address."""

    def sign_transaction(self, transaction_dict: dict[str, Any], /) -> SignedTransaction:
        """Sign the fields of an EIP-1559 transaction."""


@dataclass(frozen=True, slots=True)
class SenderConfig:
    """How transactions are paid and waited for: fees in wei per gas, times in seconds."""

    max_fee: int
    """Hard cap of maxFeePerGas, which whoever sends has named; no replacement goes above it."""
    day_budget: int | None = None
    """Wei that the gas of 24 hours may cost, None for any. What has a ceiling leaves a quarter of it to the rest."""
    gas_margin_bps: int = 12_000
    """Gas limit as a share of the estimate."""
    timeout: float = 180.0
    """How long `send` waits until it reports TX_PENDING; the transaction stays alive."""
    replace_after: float = 20.0
    """How long an attempt may be pending before it is replaced."""
    poll: float = 0.5
    finality: int = 64
    """Blocks after which a mined transaction is taken as final."""
    dry_run: bool = False
    symbol: str = "ETH"
    """The native coin, for messages."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a send came to: fee in wei. A dry run has no hash, and its gas and fee are estimates.

    `repeated` says that the key's transaction had been mined before, and nothing was sent now.
    """

    key: str
    label: str
    tx_hash: bytes | None
    block_number: int | None
    block_hash: bytes | None
    gas_used: int
    fee: int
    logs: tuple[Log, ...] = ()
    repeated: bool = False


@dataclass(slots=True)
class Pending:
    """A started send: hand it to `finish`."""

    intent: Intent
    sent: Sent | None = None
    urgent: bool = False
    """The pool refused the fees, so the first thing to do is to replace."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What `reconcile` found: counts of intents by what became of them."""

    mined: int = 0
    failed: int = 0
    rebroadcast: int = 0
    replaced: int = 0
    reorged: int = 0
    dropped: int = 0


class _Line:
    """The blocks of a chain that are known to be below one head, by their numbers; nothing without a head.

    Each block names its parent by hash, so the blocks below a head are below its children too.
    """

    def __init__(self, head: Block | None = None, known: Mapping[int, bytes] | None = None) -> None:
        self._head = head
        self._known = dict(known or {})
        self._asked = False
        if head is not None:
            self._known[head.number] = head.hash

    def below(self, head: Block | None) -> _Line:
        """Return what of it is below another head."""
        last = self._head
        if head is None or last is None or last.hash not in (head.hash, head.parent_hash):
            return _Line(head)
        return _Line(head, self._known)

    def holds(self, port: ChainPort, number: int, digest: bytes) -> bool:
        """Say whether a block is the chain's, asking for the one of its number where that is not known."""
        if number not in self._known:
            found = port.block(number)
            if found is None:
                return False
            self._known[number] = found.hash
            self._asked = True
        return self._known[number] == digest

    def kept(self, port: ChainPort) -> _Line:
        """Return it for the next pass: nothing, where the head has left the chain while blocks were asked for."""
        if self._head is None:
            return _Line()
        if self._asked:
            now = port.block(self._head.number)
            if now is None or now.hash != self._head.hash:
                return _Line()
        lowest = self._head.number - KEPT_BLOCKS
        return _Line(self._head, {number: digest for number, digest in self._known.items() if number > lowest})


class Sender:
    """Send one account's transactions. Threads may share it: nonces are given out one at a time."""

    def __init__(
        self,
        port: ChainPort,
        account: Signer,
        journal: TxJournal,
        config: SenderConfig,
        *,
        chain_id: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.port = port
        self.address: str = account.address.lower()
        self.journal = journal
        self.config = config
        self._account = account
        self._chain_id = port.chain_id() if chain_id is None else chain_id
        self._clock, self._sleep = clock, sleep
        self._lock = threading.RLock()
        self._line = _Line()
        # When this process first saw an attempt, by its own clock: no jump of the wall clock delays a replacement.
        self._seen: dict[bytes, float] = {}

    # ---- sending ----

    def send(self, call: Call, *, key: str, nonce: int | None = None, ceiling: int | None = None) -> Sent:
        """Send a call once and wait until it is mined.

        Raises RefusedError where the contract refuses it (nothing was sent) or it reverted, FundsError where the
        balance is short, ChainError TX_PENDING where the wait ended first, NONCE_TAKEN where another transaction
        of this account used its nonce; after any of these the same key may be sent again.
        """
        return self.finish(self.start(call, key=key, nonce=nonce, ceiling=ceiling))

    def start(
        self, call: Call, *, key: str, nonce: int | None = None, ceiling: int | None = None, spare_gas: int = 0
    ) -> Pending:
        """Simulate, sign, journal and broadcast a call; several may be started before the first is finished.

        `ceiling` is the most wei per gas that its effect is worth, None for what must be sent at any price that the
        settings allow. Raises ChainError FEE_CAP, SPEND_CAP, with nothing signed, where it may not be paid now.
        `spare_gas` is what it may use beyond its estimate, where it does more if it can.

        A call whose effect depends on its nonce names it: where the account's next one is another, nothing is signed,
        and ChainError NONCE_TAKEN says so.
        """
        with self._lock:
            self._flush()
            known = self.journal.find(key)
            if known is not None and known.state.done:
                self._recheck(known)
                known = self.journal.current(known)
            if known is not None and (known.state.live or known.state.done):
                return Pending(known)
            if known is not None and known.state is TxState.INTENT:
                # Its bytes could not be written, so there are none.
                self.journal.failed(known, "never signed")
            gas, fees, bid, beside = self._prepare(call, ceiling, spare_gas)
            if self.config.dry_run:
                fee = gas * min(fees.base_fee + fees.priority_fee, self.config.max_fee) + self._estimate(call, gas)
                return Pending(_unsent(key, call), Sent(key, call.label, None, None, None, gas, fee, repeated=False))
            intent = self.journal.intend(key, call, None if ceiling is None else min(ceiling, _ANY))
            fp("m2.intent", call.label)
            try:
                free = self._free_nonce()
                if nonce not in (None, free):
                    raise ChainError(
                        f"{call.label or 'the call'} is for nonce {nonce} of {self.address}, whose next one is {free}",
                        code="NONCE_TAKEN",
                        hint="run one process per key; then the same command again",
                    )
                attempt = self._sign(call, free, gas, bid, beside)
            except HearthError:
                self.journal.failed(intent, "never signed")
                raise
            intent = self.journal.signed(intent, free, attempt)
            fp("m7.signed", call.label)
            pending = Pending(intent)
            self._broadcast(pending, attempt)
            return pending

    def finish(self, pending: Pending) -> Sent:
        """Wait until a started call is mined, replacing it with higher fees within the cap."""
        if pending.sent is not None:
            return pending.sent
        end = self._clock() + self.config.timeout
        if pending.intent.state.done:
            self._await_its_block(pending, end)
        if pending.intent.state.done:
            return self._repeated(pending.intent)
        sent_at = self._clock()
        missed = 0
        while True:
            try:
                pending.intent = self.journal.current(pending.intent)
                if pending.intent.state is TxState.FAILED:
                    raise refused(pending.intent.note, label=pending.intent.call.label)
                if pending.intent.state is TxState.REPLACED:
                    raise self._given_up(pending.intent)
                # What is mined has used its nonce: a receipt alone may be a lie.
                used = self._nonce_is_used(pending.intent)
                sent = self._look(pending) if used else None
                if sent is not None:
                    return sent
                missed = missed + 1 if used else 0
                if missed >= LOOKS and not self._is_known(pending.intent):
                    pending.intent = self.journal.replaced(pending.intent, "another transaction used its nonce")
                    continue
                if pending.urgent or self._clock() - sent_at >= self.config.replace_after:
                    # First: what an outage keeps from every pool is not bid higher at each look.
                    sent_at = self._clock()
                    self._replace(pending)
            except ChainError as error:
                if not error.retryable or error.code == "NONCE_TAKEN":
                    raise
            if self._clock() >= end:
                raise ChainError(
                    f"{pending.intent.call.label or 'the transaction'} is not mined after {self.config.timeout:.0f} s; "
                    "it stays in the journal",
                    code="TX_PENDING",
                    hint="run the same command again to go on waiting",
                    key=pending.intent.key,
                    tx_hashes=[hex_of(a.hash) for a in self.journal.attempts(pending.intent)],
                )
            self._sleep(self.config.poll)

    def reconcile(self, head: Block | None = None) -> Reconciled:
        """Bring the journal and the chain together: at start, after an outage, and now and then.

        Looks up what is pending or not final, rebroadcasts the same bytes of what is unknown, replaces what waited
        too long, and drops intents that a crash left unsigned. Where the account has fewer transactions on the chain
        than the journal saw mined, final ones are looked up again too: no depth is beyond a rollback. `head` is the
        newest block where the caller knows it; without it, one below a transaction's block is a provider that lags.
        """
        counts = dict.fromkeys(Reconciled.__dataclass_fields__, 0)
        with self._lock:
            for intent in self.journal.intents(TxState.INTENT):
                self.journal.failed(intent, "never signed")
                counts["dropped"] += 1
            open_ones = {intent.id: intent for intent in self.journal.intents(TxState.MINED)}
            mined = self.port.nonce(self.address)
            open_ones |= {intent.id: intent for intent in self.journal.mined_from(mined)}
            line = self._line.below(head)
            for intent in sorted(open_ones.values(), key=lambda one: one.nonce or 0):
                counts["reorged"] += self._recheck(intent, head, line)
            for intent in self.journal.intents(TxState.SIGNED, TxState.BROADCAST):
                counts[self._settle_fate(intent, mined, line)] += 1
            self._line = line.kept(self.port)
            waiting = self.journal.intents(TxState.SIGNED, TxState.BROADCAST)
            hashes = {attempt.hash for intent in waiting for attempt in self.journal.attempts(intent)}
            self._seen = {tx_hash: at for tx_hash, at in self._seen.items() if tx_hash in hashes}
        return Reconciled(**counts)

    def look_again(self, intent: Intent) -> Intent | None:
        """Find out what became of an intent that was given up; None where its nonce is another's for sure.

        Its bytes may have been mined after all, unseen by a lagging provider, or still wait where a reorg gave the
        nonce back. Raises ChainError TX_UNCLEAR where its nonce is used and nobody says by what, or is out of reach.
        """
        with self._lock:
            found = self._search(intent)
            if found is not None:
                return found
            if intent.nonce is not None and not self._nonce_is_used(intent):
                return self.journal.unmined(intent)
            if intent.nonce is not None and self.journal.nonce_is_known(intent):
                return None
        hashes = [hex_of(attempt.hash) for attempt in self.journal.attempts(intent)]
        raise ChainError(
            f"an earlier {intent.call.label or 'transaction'} of {self.address} may have been mined, or still be: "
            + (f"its nonce {intent.nonce} is used" if intent.nonce is not None else intent.note)
            + f", and this RPC knows none of {', '.join(hashes)}",
            code="TX_UNCLEAR",
            hint="look these up in an explorer, or try again with another --rpc; --again pays once more on purpose",
            tx_hashes=hashes,
            nonce=intent.nonce,
        )

    # ---- steps ----

    def _await_its_block(self, pending: Pending, end: float) -> None:
        """Wait until the chain is as long as where a call was mined, or has it earlier: before, nobody knows it there.

        Below that block a provider that lags and a chain that went back look alike. The same bytes are right for both,
        and make a chain go on that mines on demand. Raises ChainError RPC_LAGS at a time `end` of this sender's clock.
        """
        intent = pending.intent
        last = self.journal.attempts(intent)[-1]
        is_sent = False
        while (newest := self.port.head().number) < (intent.block_number or 0):
            if self._nonce_is_used(intent) and self._receipt_of(intent) is not None:
                break
            if not is_sent:
                with suppress(HearthError):
                    self.port.send_raw(last.raw)
                is_sent = True
            if self._clock() >= end:
                raise ChainError(
                    f"{intent.call.label or 'the transaction'} was mined in block {intent.block_number}, and after "
                    f"{self.config.timeout:.0f} s this RPC's newest block is {newest}: it lags, or its chain went back",
                    code="RPC_LAGS",
                    hint="wait, or use another --rpc; then the same command again",
                    retryable=True,
                    key=intent.key,
                )
            self._sleep(self.config.poll)
            intent = self.journal.current(intent)
        with self._lock:
            self._recheck(intent)
            pending.intent = self.journal.current(intent)
            if pending.intent.state.live:
                self._broadcast(pending, last)

    def _free_nonce(self) -> int:
        """Return the nonce to sign for next. Raises ChainError RPC_LIES where the provider names one beyond reason."""
        pending, known = self.port.nonce(self.address, pending=True), self.journal.next_nonce()
        if pending > known + MAX_GAP:
            # A journal that is new, or was lost, knows less than the chain.
            mined = self.port.nonce(self.address)
            if pending > mined + MAX_GAP:
                raise ChainError(
                    f"the RPC says that {self.address} has {pending - mined} transactions waiting, which no pool keeps",
                    code="RPC_LIES",
                    hint="hearth doctor; use another --rpc",
                )
        return max(pending, known)

    def _prepare(self, call: Call, ceiling: int | None, spare_gas: int) -> tuple[int, Fees, Bid, int]:
        """Check that the call can be paid and is not refused.

        Return its gas limit, today's fees, its bid, and the wei that are kept by an estimate of what a rollup takes.
        """
        balance = self.port.balance(self.address)
        if balance < call.value:
            raise self._short(call, balance, call.value, 0)
        # The estimate runs the call too: what would be refused is refused by it.
        gas = self.port.estimate_gas(call, self.address) * self.config.gas_margin_bps // 10_000 + spare_gas
        fees, beside = self.port.fees(), self._beside(call, gas)
        kept = self._kept(beside)
        # What an effect is worth pays for both.
        most = self._per_gas(ceiling if ceiling is None else max(0, ceiling - -(-kept // max(1, gas))))
        if fees.base_fee > most:
            raise ChainError(
                f"the base fee of {fees.base_fee} wei is above the cap of {most} for {call.label or 'the call'}",
                code="FEE_CAP",
                hint="wait, or raise max_gas_price in the configuration",
                for_all=most == self.config.max_fee,
            )
        bid = opening(fees, self._most(ceiling, gas, beside))
        if bid is None:
            raise ChainError(
                f"{call.label or 'the call'} could cost more gas than is left of this day's budget: "
                f"{self.journal.spent()} of {self.config.day_budget} wei are spent or promised",
                code="SPEND_CAP",
                hint="wait, or raise max_per_day (of a worker), max_gas_per_day (of a keeper) in the configuration",
                for_all=True,
            )
        needed = call.value + gas * bid.max_fee + kept
        if balance < needed:
            raise self._short(call, balance, call.value, needed - call.value)
        return gas, fees, bid, beside

    def _beside(self, call: Call, gas: int) -> int:
        """Return twice the wei that a rollup takes beside gas by its contract's estimate; 0 where there is none."""
        return ROLLUP_MARGIN * self.port.rollup_fee(call.data, gas)

    def _kept(self, beside: int) -> int:
        """Return the wei that are kept for what a rollup takes: twice the estimate, else what receipts have shown.

        No signature bounds it. What was only seen elsewhere is no cost of a transaction whose receipt says nothing.
        """
        return beside or self.journal.rollup_fee()

    def _estimate(self, call: Call, gas: int) -> int:
        """Return the wei that a rollup is expected to take beside gas."""
        return self.port.rollup_fee(call.data, gas) or self.journal.rollup_fee()

    def base_fee(self, head: Block) -> int:
        """Return a block's base fee in wei per gas, or what gas costs now on a chain whose headers name none."""
        return self.port.fees().base_fee if head.base_fee is None else head.base_fee

    def why_capped(self, base_fee: int, gas: int, ceiling: int | None = None) -> str:
        """Say which limit keeps back a call of some gas and ceiling at a base fee in wei per gas, "" for none."""
        most = self._per_gas(ceiling)
        if base_fee > most:
            share = "" if most == self.config.max_fee else "its share of "
            return f"the base fee of {_gwei(base_fee)} is above {share}the highest gas price, {_gwei(most)}"
        if self._left(ceiling) < gas * base_fee + self.journal.rollup_fee():
            return "gas has cost, or may yet cost, what its budget for 24 hours allows"
        return ""

    def is_parked(self, intent: Intent, base_fee: int) -> bool:
        """Say whether a waiting transaction bids less than the base fee and may not bid more."""
        last = self.journal.attempts(intent)[-1]
        return not last.cancels and last.max_fee < base_fee and self._per_gas(intent.ceiling) < base_fee

    def cancel(self, intent: Intent) -> None:
        """Use up the nonce of a waiting transaction at once, since what is worth more waits behind it."""
        with self._lock:
            last = self.journal.attempts(intent)[-1]
            call = _cancel(self.address)
            beside = self._beside(call, CANCEL_GAS)
            bid = raised(_bid(last), self.port.fees(), self._most(None, CANCEL_GAS, beside, intent))
            if bid is not None:
                self._sign_again(Pending(intent), call, CANCEL_GAS, bid, beside)

    def _per_gas(self, ceiling: int | None) -> int:
        return self.config.max_fee if ceiling is None else min(self.config.max_fee, ceiling)

    def _left(self, ceiling: int | None, besides: Intent | None = None) -> int:
        """Return the wei that gas may still cost today: all of the budget, or what has a ceiling may take of it."""
        budget = self.config.day_budget
        if budget is None:
            return _ANY * _ANY
        return max(0, (budget if ceiling is None else budget * 3 // 4) - self.journal.spent(besides))

    def _most(self, ceiling: int | None, gas: int, beside: int, replaced: Intent | None = None) -> int:
        """Return the most wei per gas that a transaction may bid of which a rollup takes `beside` by an estimate."""
        kept = self._kept(beside)
        most = self._per_gas(ceiling if ceiling is None else ceiling - -(-kept // gas))
        return min(most, (self._left(ceiling, replaced) - kept) // gas)

    def _short(self, call: Call, balance: int, value: int, gas: int) -> FundsError:
        needed = value + gas
        coin = Asset(self.config.symbol, 18)
        what = f"{show_at_least(value, coin)} for {call.label or 'the call'}"
        if gas:
            what = f"{show_at_least(gas, coin)} for gas" + (f" and {what}" if value else "")
        return FundsError(
            f"{self.address} on chain {self._chain_id} is short of {show_at_least(needed - balance, coin)}: "
            f"it holds {show_amount(balance, coin)} and needs {what}",
            hint=f"send {self.config.symbol} to {self.address}; then hearth wallet balance",
            short_by=str(needed - balance),
            balance=str(balance),
            needed=str(needed),
            asset=self.config.symbol,
            address=self.address,
            chain_id=self._chain_id,
        )

    def _sign(self, call: Call, nonce: int, gas: int, bid: Bid, beside: int, *, cancels: bool = False) -> SignedTx:
        fields: dict[str, Any] = {
            "type": 2,
            "chainId": self._chain_id,
            "nonce": nonce,
            "gas": gas,
            "maxFeePerGas": bid.max_fee,
            "maxPriorityFeePerGas": bid.priority_fee,
            "value": call.value,
            "data": call.data,
        }
        if call.to is not None:
            from eth_utils.address import to_checksum_address

            fields["to"] = to_checksum_address(call.to)
        signed = self._account.sign_transaction(fields)
        self._seen[bytes(signed.hash)] = self._clock()
        return SignedTx(
            hash=bytes(signed.hash),
            raw=bytes(signed.raw_transaction),
            gas=gas,
            max_fee=bid.max_fee,
            priority_fee=bid.priority_fee,
            cancels=cancels,
            rollup_fee=beside,
        )

    def _broadcast(self, pending: Pending, attempt: SignedTx) -> None:
        """Send signed bytes. An outage leaves the intent SIGNED: the next start sends the same bytes again."""
        try:
            self.port.send_raw(attempt.raw)
        except ChainError as error:
            if error.code == "UNDERPRICED":
                pending.urgent = True
                return
            if error.code == "NONCE_TOO_LOW":
                # Mined already (a rebroadcast), or used by another transaction: `finish` finds out which.
                pending.intent = self.journal.broadcast(pending.intent)
                return
            if error.code == "POOL_FULL":
                # In no pool: the same bytes again at the next look, and with higher fees once they have waited.
                return
            if error.code != "ALREADY_KNOWN":
                raise
        except HearthError as error:
            # A definite no (funds, malformed): these bytes are in no pool.
            if len(self.journal.attempts(pending.intent)) == 1:
                self.journal.failed(pending.intent, error.message)
            raise
        pending.intent = self.journal.broadcast(pending.intent)
        fp("m8.broadcast", pending.intent.call.label)

    def _flush(self) -> None:
        """Broadcast again what an outage kept from the pool, so that later nonces do not wait behind a gap."""
        for intent in self.journal.intents(TxState.SIGNED):
            # A definite no ends that intent, in the journal; it is not this caller's error.
            with suppress(FundsError, RefusedError):
                self._broadcast(Pending(intent), self.journal.attempts(intent)[-1])

    def _look(self, pending: Pending) -> Sent | None:
        """Return what the send came to, None while no attempt is mined. Raises RefusedError where it failed."""
        receipt = self._receipt_of(pending.intent)
        if receipt is None:
            return None
        failure = self._failure(pending.intent, receipt)
        pending.intent = self.journal.mined(pending.intent, receipt, failure)
        label = pending.intent.call.label
        if failure is None:
            fp("m9.mined", label)
            return _sent(pending.intent, receipt.logs)
        error = refused(failure, label=label)
        error.details.update(tx_hash=hex_of(receipt.tx_hash), gas_used=receipt.gas_used, mined=True)
        raise error

    def _failure(self, intent: Intent, receipt: Receipt) -> str | None:
        """Say why a mined transaction did not have the intent's effect; None where it had."""
        if any(a.cancels and a.hash == receipt.tx_hash for a in self.journal.attempts(intent)):
            if intent.key.startswith("gap/"):
                return "it only used a nonce up that nobody had signed for, and that held up later ones"
            return "it became pointless or too dear while it waited, and was cancelled"
        if receipt.ok:
            return None
        return self._why(intent.call, receipt) or "it reverted after its simulation passed"

    def _receipt_of(self, intent: Intent, line: _Line | None = None) -> Receipt | None:
        """Return the receipt of what was mined for an intent whose nonce is used, None for none.

        A geth that crashed serves receipts of blocks that its chain lost, for ever: what is no block of the chain is
        no receipt.
        """
        for attempt in reversed(self.journal.attempts(intent)):
            receipt = self.port.receipt(attempt.hash, signed=attempt.limits)
            if receipt is not None and (line or _Line()).holds(self.port, receipt.block_number, receipt.block_hash):
                return receipt
        return None

    def _search(self, intent: Intent, mined: int | None = None, line: _Line | None = None) -> Intent | None:
        """Return the intent as its receipt moves it; None where its nonce is not used, or after `LOOKS` looks.

        The first look goes by the account's next nonce `mined`, and by a `line` of blocks, where they are known.
        """
        for look in range(LOOKS):
            used = self.port.nonce(self.address) if look or mined is None else mined
            if intent.nonce is None or used <= intent.nonce:
                return None
            receipt = self._receipt_of(intent, None if look else line)
            if receipt is not None:
                return self.journal.mined(intent, receipt, self._failure(intent, receipt))
            if look + 1 < LOOKS:
                self._sleep(self.config.poll)
        return None

    def _why(self, call: Call, receipt: Receipt) -> str:
        """Run a reverted call again where it failed, for its reason; "" where it does not revert there."""
        try:
            self.port.call(call, receipt.block_hash, sender=self.address)
        except RefusedError as error:
            return reason_of(error)
        except HearthError:
            return ""
        return ""

    def _is_known(self, intent: Intent) -> bool:
        """Say whether the provider knows one of an intent's transactions: a receipt may come later than they do."""
        return any(self.port.transaction(attempt.hash) for attempt in self.journal.attempts(intent))

    def _nonce_is_used(self, intent: Intent) -> bool:
        return intent.nonce is not None and self.port.nonce(self.address) > intent.nonce

    def _given_up(self, intent: Intent) -> ChainError:
        """Return the error of what was given up, so that its caller decides anew."""
        return ChainError(
            f"{intent.call.label or 'a transaction'} of {self.address} is given up: {intent.note}",
            code="NONCE_TAKEN",
            hint="run one process per key; then the same command again",
        )

    def _replace(self, pending: Pending) -> None:
        """Raise both fees (hearth.chain.fees); where no more may be bid, send the same bytes again.

        A call that would be refused by now is replaced by one that only uses its nonce up, and so is one whose ceiling
        is below the base fee where something that may cost more waits behind it.
        """
        with self._lock:
            pending.urgent = False
            intent = pending.intent
            nonce = intent.nonce
            assert nonce is not None
            self._send_forgotten(nonce)
            gaps = self._gaps_below(intent)
            if gaps is None:
                pending.intent = self.journal.given_up(
                    intent, f"its nonce {nonce}, which an RPC named, is out of reach: nobody signed for those before it"
                )
                return
            for gap in gaps:
                self._fill(gap)
            last = self.journal.attempts(intent)[-1]
            fees, before = self.port.fees(), _bid(last)
            behind = self._worth_behind(intent)
            beside = self._beside(intent.call, last.gas)
            bid = raised(before, fees, self._most(intent.ceiling, last.gas, beside, intent))
            # What was cancelled once stays so: its gas is that of a cancel.
            cancels = last.cancels or self._is_pointless(intent)
            if bid is None and behind != intent.ceiling:
                cancels |= last.max_fee < fees.base_fee <= self._per_gas(behind)
            call, gas = intent.call, last.gas
            if cancels:
                call, gas = _cancel(self.address), CANCEL_GAS
                beside = self._beside(call, gas)
                bid = raised(before, fees, self._most(behind, gas, beside, intent))
            if bid is None:
                self._broadcast(pending, last)
            else:
                self._sign_again(pending, call, gas, bid, beside)
            pending.urgent = False

    def _sign_again(self, pending: Pending, call: Call, gas: int, bid: Bid, beside: int) -> None:
        """Sign, journal and broadcast a replacement."""
        intent = pending.intent
        assert intent.nonce is not None
        attempt = self._sign(call, intent.nonce, gas, bid, beside, cancels=call is not intent.call)
        pending.intent = self.journal.signed(intent, intent.nonce, attempt)
        fp("m7.replaced", intent.call.label)
        self._broadcast(pending, attempt)

    def _worth_behind(self, intent: Intent) -> int | None:
        """Return the highest ceiling of an intent and of those whose nonces come after it; None for no ceiling."""
        nonce = intent.nonce or 0
        waiting = self.journal.intents(TxState.SIGNED, TxState.BROADCAST)
        ceilings = [one.ceiling for one in waiting if one.id == intent.id or (one.nonce or 0) > nonce]
        return None if None in ceilings else max((one for one in ceilings if one is not None), default=intent.ceiling)

    def _is_pointless(self, intent: Intent) -> bool:
        try:
            self.port.call(intent.call, "latest", sender=self.address)
        except RefusedError:
            return True
        return False

    def _send_forgotten(self, nonce: int) -> None:
        """Send again what was mined with a lower nonce and left the chain since: what waits here waits for it."""
        for earlier in self.journal.mined_from(self.port.nonce(self.address)):
            if earlier.nonce is None or earlier.nonce >= nonce or not self._recheck(earlier):
                continue
            lost = self.journal.current(earlier)
            if lost.state.live:  # the nonce of one that had reverted there is used up as a gap
                with suppress(FundsError, RefusedError):
                    self._broadcast(Pending(lost), self.journal.attempts(lost)[-1])

    def _gaps_below(self, intent: Intent) -> list[int] | None:
        """Return the nonces before an intent's that are neither mined nor known to the journal; None for too many."""
        mined, nonce = self.port.nonce(self.address), intent.nonce
        assert nonce is not None
        known = {one for one in self.journal.nonces() if mined <= one < nonce}
        if nonce - mined - len(known) > MAX_GAP:
            return None
        return [gap for gap in range(mined, nonce) if gap not in known]

    def _fill(self, gap: int) -> None:
        """Use up a nonce that the journal does not know, so that it holds up no later one.

        A journal that was lost leaves transactions in the pool whose bytes nobody has, and a provider may have named a
        nonce too high. Raises the fee until the pool takes it, within the cap.
        """
        fees = self.port.fees()
        call = _cancel(self.address)
        beside = self._beside(call, CANCEL_GAS)
        bid = opening(fees, self._most(None, CANCEL_GAS, beside))
        while bid is not None:
            known = self.journal.find(f"gap/{gap}")
            intent = known if known is not None and known.state.live else self.journal.intend(f"gap/{gap}", call)
            attempt = self._sign(call, gap, CANCEL_GAS, bid, beside, cancels=True)
            pending = Pending(self.journal.signed(intent, gap, attempt))
            self._broadcast(pending, attempt)
            if not pending.urgent:
                return
            bid = raised(bid, fees, self._most(None, CANCEL_GAS, beside, pending.intent))

    def _repeated(self, intent: Intent) -> Sent:
        """Return what an intent that was mined before came to, with its logs where the provider has them."""
        receipt = self._receipt_of(intent)
        return _sent(intent, () if receipt is None else receipt.logs, repeated=True)

    # ---- reconciliation ----

    def _recheck(self, intent: Intent, head: Block | None = None, line: _Line | None = None) -> int:
        """Move a mined intent to final, or back to pending where a reorg took it out; return 1 for the latter.

        A block that is still the chain's holds what it held, so that its hash says all; `line` are those that this
        pass knows.
        """
        newest = head or self.port.head()
        if intent.block_number is not None and intent.block_number > newest.number:
            newest = self.port.head()  # it may have been mined since the caller looked
        if self._stands(intent, newest, line or _Line()):
            self._finalise(intent, newest)
            return 0
        receipt = self._receipt_of(intent) if self._nonce_is_used(intent) else None
        if receipt is None:
            if self._may_stand(intent, newest, lags=head is None):
                return 0
            self.journal.unmined(intent)
            return 1
        if receipt.block_hash != intent.block_hash and intent.state.done:
            intent = self.journal.mined(intent, receipt, self._failure(intent, receipt))
        self._finalise(intent, newest)
        return 0

    def _stands(self, intent: Intent, newest: Block, line: _Line) -> bool:
        """Say whether the block in which an intent was found mined is a block of the chain."""
        number = intent.block_number
        if number is None or intent.block_hash is None or number > newest.number:
            return False
        return line.holds(self.port, number, intent.block_hash)

    def _finalise(self, intent: Intent, newest: Block) -> None:
        """Move a mined intent to final once `finality` blocks are on top of its own."""
        number = intent.block_number
        if intent.state is TxState.MINED and number is not None and newest.number - number >= self.config.finality:
            self.journal.final(intent)
            fp("m10.final", intent.call.label)

    def _may_stand(self, intent: Intent, newest: Block, *, lags: bool) -> bool:
        """Say whether the block of a mined intent may still be in the chain though nobody has the receipt."""
        if intent.block_number is None:
            return False
        if newest.number < intent.block_number:
            return lags
        block = self.port.block(intent.block_number)
        return block is not None and block.hash == intent.block_hash

    def _settle_fate(self, intent: Intent, mined: int, line: _Line) -> str:
        """Find out what became of signed bytes; rebroadcast them where nothing did. `mined` is the next nonce."""
        found = self._search(intent, mined, line)
        if found is not None:
            return "mined" if found.state is TxState.MINED else "failed"
        attempts = self.journal.attempts(intent)
        is_used = intent.nonce is not None and intent.nonce < mined and self._nonce_is_used(intent)
        # Of what waits, pools need not say the same.
        if is_used and not self._is_known(intent):
            self.journal.replaced(intent, "another transaction used its nonce")
            return "replaced"
        pending = Pending(intent)
        try:
            if self._waited(attempts[-1]) >= self.config.replace_after:
                self._replace(pending)
            else:
                self._broadcast(pending, attempts[-1])
        except (FundsError, RefusedError):
            return "failed"
        return "replaced" if pending.intent.state is TxState.REPLACED else "rebroadcast"

    def _waited(self, attempt: SignedTx) -> float:
        """Return the seconds that an attempt has waited: by this process's clock, and before it by the wall clock."""
        now = self._clock()
        before = max(0.0, time.time() - attempt.at)
        return now - self._seen.setdefault(attempt.hash, now - before)


def _bid(attempt: SignedTx) -> Bid:
    return Bid(attempt.max_fee, attempt.priority_fee)


def _gwei(wei: int) -> str:
    return show_amount(wei, Asset("gwei", 9))


def _cancel(address: str) -> Call:
    """Return the call that does nothing but use up a nonce."""
    return Call(address, b"", 0, "cancel")


def _sent(intent: Intent, logs: tuple[Log, ...], *, repeated: bool = False) -> Sent:
    """Return what a mined intent came to; its fee is what the journal counts."""
    return Sent(
        key=intent.key,
        label=intent.call.label,
        tx_hash=intent.tx_hash,
        block_number=intent.block_number,
        block_hash=intent.block_hash,
        gas_used=intent.gas_used or 0,
        fee=intent.fee,
        logs=logs,
        repeated=repeated,
    )


def _unsent(key: str, call: Call) -> Intent:
    return Intent(0, key, call, TxState.INTENT, None, "dry run", None, None, None, None, None)
