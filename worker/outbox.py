"""What a worker sends: each effect as one transaction, what became of it, what it cost, and how long it takes.

Whatever is signed is in the sender's journal, which outlives the process: what is under way is read from there.
"""

from __future__ import annotations

import time
from typing import Final

import structlog

from hearth.base.errors import ChainError, FundsError, RefusedError
from hearth.base.failpoints import fp
from hearth.chain.port import Block, reason_of
from hearth.chain.tx import TOO_DEAR, Sender
from hearth.chain.tx_journal import TxState
from hearth.daemon.ledger import Ledger
from hearth.daemon.loop import Backoff
from hearth.market.reads import Market
from hearth.protocol import formulas
from hearth.protocol.types import JobId
from worker.decide import ENGAGING, Caller, ChainAction, Checkpoint, Flight, Kind
from worker.flights import GAP, read_call
from worker.journal import AttemptJournal, Moment
from worker.lead import Lead
from worker.metrics import WorkerMetrics
from worker.requests import OWNER
from worker.watch import Watcher

log = structlog.get_logger("worker")

EFFECT_BASE: Final = 0.5
"""Half of the seconds for which an effect is left alone after its first failure."""
EFFECT_CAP: Final = 30.0
"""The longest that an effect is left alone, in seconds."""
FUNDS_SECONDS: Final = 30.0
"""How long nothing new is taken after gas money was short."""
BEAT_TOLD_SECONDS: Final = 60.0
"""How far apart the lines of the log are that tell of a beat; between them beats are told at the level debug."""
NOT_SUBMITTED: Final = "not submitted"
"""Why the contract refuses to settle what somebody else has settled."""


class Outbox:
    """The transactions of one worker, by `sender`; `caller` builds their calls, `ledger` books what they cost."""

    def __init__(
        self,
        sender: Sender,
        *,
        market: Market,
        journal: AttemptJournal,
        watcher: Watcher,
        caller: Caller,
        ledger: Ledger,
        metrics: WorkerMetrics,
    ) -> None:
        self.sender = sender
        self.lead = Lead()
        self._market = market
        self._journal = journal
        self._watcher = watcher
        self._caller = caller
        self._ledger = ledger
        self._metrics = metrics
        # Effects that failed: until when of time.monotonic each is left alone, and its growing pause.
        self._failed: dict[str, tuple[float, Backoff]] = {}
        self._funds_short_until = 0.0
        self._reconciled_at = 0.0
        self._beat_told_at = -BEAT_TOLD_SECONDS

    @property
    def funds_short(self) -> bool:
        """Say whether gas money was short a moment ago."""
        return time.monotonic() < self._funds_short_until

    @property
    def stale(self) -> bool:
        """Say whether what is under way was looked up so long ago that it may have to be replaced."""
        return time.monotonic() - self._reconciled_at >= self.sender.config.replace_after

    def send(self, action: ChainAction) -> None:
        """Send one action. A refusal by a contract is a lost race: the next cycle decides anew."""
        key, begins = action.key(), action.begins
        if key in self._failed and time.monotonic() < self._failed[key][0]:
            return
        if begins is not None:
            if self._journal.entry(begins) is None:
                self._journal.intend(begins, Moment.SEEN)
            self._journal.intend(begins, Moment.INTENT, key)
        try:
            ceiling = action.ceiling(self.sender.config.max_fee)
            due = time.monotonic()
            call = action.call(self._caller)
            pending = self.sender.start(call, key=key, ceiling=ceiling, spare_gas=action.spare_gas)
        except ChainError as error:
            if error.code not in TOO_DEAR:
                raise
            # What may cost more than this is sent all the same.
            self._metrics.failures.labels(error.code).inc()
            log.warning("not sent: gas is too dear", key=_short(key), why=error.message)
            self._back_off(key)
        except RefusedError as error:
            reason = reason_of(error) or "no reason"
            self._over(action, taken=False)
            self._metrics.refused.labels(action.kind.value, reason).inc()
            # Keepers settle too: who comes second has lost nothing.
            say = log.debug if action.kind is Kind.SETTLE and NOT_SUBMITTED in reason else log.info
            say("refused", key=_short(key), why=error.message)
            self._back_off(key)
        except FundsError as error:
            self._funds_short_until = time.monotonic() + FUNDS_SECONDS
            self._metrics.funds_short.set(1)
            self._metrics.failures.labels(error.code).inc()
            log.error("gas money is short", why=error.message, hint=error.hint)
            self._back_off(key)
        else:
            self._failed.pop(key, None)
            self._metrics.funds_short.set(0)
            # Done already: mined in a block that is newer than the one that this cycle reads.
            if pending.intent.state.done:
                self._over(action, taken=True)
            else:
                if ceiling is None:  # what may wait for cheaper gas says nothing of what may not
                    self.lead.sent(key, due)
                say = log.debug if action.kind is Kind.BEAT else log.info
                say("sent", key=_short(key))

    def reconcile(self, head: Block | None, coin_price: int) -> None:
        """Learn what became of transactions: mined, dropped, replaced, reorganised; send again what is unknown.

        Their gas is booked at `coin_price` base units for a coin.
        """
        self._reconciled_at = time.monotonic()
        before = self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST)
        found = self.sender.reconcile(head)
        if found.reorged:
            known = {intent.id for intent in before}
            again = [one for one in self.sender.journal.intents(TxState.BROADCAST) if one.id not in known]
            log.warning(
                "transactions left the chain", count=found.reorged, sent_again=[_short(one.key) for one in again]
            )
        for intent in before:
            after = self.sender.journal.find(intent.key)
            if after is None or after.id != intent.id or after.state.live:
                continue
            read = read_call(intent.call, self._market)
            kind = OWNER if intent.key.startswith(f"{OWNER}/") else read[0].value if read else GAP
            self._metrics.transactions.labels(kind, after.state.value).inc()
            self._pay(after.fee, coin_price)
            self.lead.ended(intent.key, mined=after.state.done)
            if kind == Kind.CHECKPOINT and read is not None:
                self._take_back(*read[1][0], taken=after.state.done)
            if after.state.done:
                fp("m9.mined", intent.call.label)
                say = log.info if self._is_told(kind) else log.debug
                say("mined", key=_short(intent.key), block=after.block_number)
                continue
            if kind == Kind.SETTLE and NOT_SUBMITTED in after.note:
                log.info("settled by somebody else first", key=_short(intent.key))
            else:
                log.warning("failed", key=_short(intent.key), state=after.state.value, why=after.note)
            self._back_off(intent.key)

    def flights(self) -> tuple[Flight, ...]:
        """Return what is signed and not mined, as the tx journal knows it."""
        flights: list[Flight] = []
        for intent in self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST):
            read = read_call(intent.call, self._market)
            if read is None:
                continue
            kind, leases = read
            if not leases:
                flights.append(Flight(kind))
            for job, index in leases:
                row = self._watcher.rows.get(job)
                bond = formulas.bond(row.terms) if row is not None and kind in ENGAGING else 0
                flights.append(Flight(kind, job, index, bond))
        return tuple(flights)

    def pending(self) -> list[str]:
        """Name what is signed and not mined."""
        return [_short(one.key) for one in self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST)]

    def _over(self, action: ChainAction, *, taken: bool) -> None:
        """Note that a checkpoint is not to be sent any more: the chain has it, or refused it, and a next one comes."""
        if isinstance(action, Checkpoint):
            self._journal.take_back(action.attempt, taken=taken)

    def _take_back(self, job: JobId, index: int, *, taken: bool) -> None:
        for execution in self._journal.executions():
            if (execution.key.job, execution.key.index) == (job, index):
                self._journal.take_back(execution.key, taken=taken)

    def forget(self) -> None:
        """Drop what failed and may be tried again."""
        self._failed = {key: held for key, held in self._failed.items() if held[0] > time.monotonic()}

    def _pay(self, wei: int, coin_price: int) -> None:
        """Enter gas into the books."""
        if wei:
            self._metrics.gas_spent.inc(wei)
            self._ledger.pay(wei, coin_price)
            self._ledger.save()

    def _is_told(self, kind: str) -> bool:
        """Say whether everybody is told of what was mined: of beats one a minute is enough."""
        now = time.monotonic()
        if kind == Kind.BEAT and now < self._beat_told_at + BEAT_TOLD_SECONDS:
            return False
        self._beat_told_at = now if kind == Kind.BEAT else self._beat_told_at
        return True

    def _back_off(self, key: str) -> None:
        """Leave an effect alone for a while, longer each time: 1, 2, 4 .. 30 s."""
        _, pauses = self._failed.get(key, (0.0, Backoff(base=EFFECT_BASE, cap=EFFECT_CAP)))
        pauses.failed()
        self._failed[key] = (time.monotonic() + pauses.pause, pauses)


def _short(key: str) -> str:
    """Cut a key down to what a log line can hold."""
    return key if len(key) <= 120 else key[:117] + "..."
