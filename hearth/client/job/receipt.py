"""Where a job's money went, by its events and the transactions that held them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hearth.base.errors import ChainError
from hearth.chain.port import hex_of
from hearth.client.job.checkpoints import paid_in
from hearth.client.views import job_hex, strays_in

if TYPE_CHECKING:
    from hearth.client.reading import JobReader
    from hearth.client.reports import JobReceipt, ReceiptLine
    from hearth.market.events import Event, Split, UnitEvent


def receipt(reads: JobReader, job: str) -> JobReceipt:
    """Return where a job's money went: paid, fees, tips, keepers, refunds, and every transaction with its gas."""
    from hearth.market.events import CheckpointPaid, Closed, Finished, Ruled, Settled, ToppedUp
    from hearth.protocol import formulas

    session = reads.session
    view = reads.look(job)
    market = session.market
    events = reads.events(view.posted, view.posted.log.block_number, view.number)
    paid = [event for event in events if isinstance(event, Settled | Finished | Closed | Ruled | CheckpointPaid)]
    pay = sum(event.pay for event in paid)
    fee = sum(event.fee for event in paid)
    topped_up = sum(event.amount for event in events if isinstance(event, ToppedUp))
    receipts, refunded, settled, keepers = _transactions(reads, view.posted.job_id, events)
    workers = pay - fee + settled
    escrow = formulas.escrow_at_post(view.terms) + topped_up
    checkpoints = paid_in(events)
    kept = sum(int(one["pay"]) - int(one["fee"]) for one in checkpoints)
    locked = formulas.job_holds(view.terms, view.header, view.units)
    shown = {
        "escrow": escrow,
        **({"of it topped up": topped_up} if topped_up else {}),
        "still locked": locked,
        "workers": workers,
        **({"of it for checkpoints": kept} if checkpoints else {}),
        "market fee": fee,
        "keepers": keepers,
        "refunded": refunded,
    }
    return {
        "schema": "hearth.receipt/1",
        "job": job_hex(view.posted.job_id),
        "state": view.state,
        "asset": session.asset.symbol,
        "escrow": str(escrow),
        "topped_up": str(topped_up),
        "still_locked": str(locked),
        "workers": str(workers),
        "checkpoints": checkpoints,
        "market_fee": str(fee),
        "keepers": str(keepers),
        "refunded": str(refunded),
        "text": {name: session.amount(value) for name, value in shown.items()},
        "transactions": receipts,
        **strays_in(market.strays),
    }


def refund_at(event: Event) -> int | None:
    """Return which share of a split is its submitter's refund, by the event of a unit that came last before it.

    The place of a share says whose it is (contracts/JobRegistry.vy), an account may be several parties at once.
    """
    from hearth.market.events import (
        Cancelled,
        Closed,
        Declined,
        Expired,
        Finished,
        GaveUp,
        Reclaimed,
        Ruled,
        Settled,
        Unlocked,
        Unproven,
    )
    from hearth.protocol.types import Verdict

    if isinstance(event, Finished | Settled | Closed) or (isinstance(event, Ruled) and event.verdict != Verdict.REJECT):
        return 3
    ended = Cancelled | Declined | GaveUp | Reclaimed | Expired | Ruled | Unproven | Unlocked
    return 0 if isinstance(event, ended) else None


def keeper_at(event: Event) -> int:
    """Return which share of a split is that of whoever sent it, or proposed what it acks, by the same event."""
    back = refund_at(event)
    return 0 if back is None else 2 if back else 1


def _transactions(reads: JobReader, job: bytes, events: Iterable[Event]) -> tuple[list[ReceiptLine], int, int, int]:
    """Return the transactions of a job's events, and what they gave back to its submitter, to owners of nodes for
    settling, and to keepers."""
    session, market = reads.session, reads.session.market
    receipts: dict[bytes, ReceiptLine] = {}
    refunded = settled = keepers = 0
    for event in events:
        if event.log.tx_hash in receipts:
            continue
        receipt = market.port.receipt(event.log.tx_hash)
        if receipt is None:
            # Without it the sums would be short of what it moved.
            raise ChainError(
                f"the RPC has no receipt of transaction {hex_of(event.log.tx_hash)}, whose events it serves",
                code="RPC_LAGS",
                hint="wait, or use another --rpc; then the same command again",
            )
        receipts[event.log.tx_hash] = {
            "tx": "0x" + event.log.tx_hash.hex(),
            "event": type(event).__name__,
            "block": receipt.block_number,
            "from": receipt.sender,
            "gas": receipt.gas_used,
            "fee": str(receipt.fee),
            "explorer": session.explorer("0x" + event.log.tx_hash.hex()),
        }
        back, own, earned = shares_of(market.events_in(receipt.logs), job, session.network.jobs)
        refunded += back
        settled += own
        keepers += earned
    return list(receipts.values()), refunded, settled, keepers


def splits_of(events: Iterable[Event], registry: str) -> Iterator[tuple[Split, UnitEvent]]:
    """Yield each split of a job's lock in a transaction with these events, and the event of a unit that it is of.

    A split names the submitter, who may have other jobs in the same transaction: it is of the job whose event came
    last before it, since the registry tells of a unit and then splits. Between a unit's end and the split of what it
    held stands what was paid for its checkpoint: that event's split is the next one.
    """
    from hearth.market.events import CheckpointPaid, Split, UnitEvent

    last: UnitEvent | None = None
    checkpoint: UnitEvent | None = None
    for event in events:
        if isinstance(event, CheckpointPaid):
            checkpoint = event
        elif isinstance(event, UnitEvent):
            last = event
        elif isinstance(event, Split) and event.controller == registry:
            if checkpoint is not None:
                yield event, checkpoint
                checkpoint = None
            elif last is not None:
                yield event, last
                last = None


def shares_of(events: Iterable[Event], job: bytes, registry: str) -> tuple[int, int, int]:
    """Return what a transaction with these events gave back to a job's submitter, what it gave to owners of nodes for
    settling their own results, and what to keepers; what was paid for checkpoints is told by their own events.
    """
    from hearth.market.events import CheckpointPaid, Finished
    from hearth.protocol import words

    refunded = settled = keepers = 0
    for event, unit in splits_of(events, registry):
        if unit.job_id != job or isinstance(unit, CheckpointPaid):
            continue
        shares = [words.unpack_share(share)[1] for share in event.shares]
        back = refund_at(unit)
        refunded += 0 if back is None else shares[back]
        earned = shares[keeper_at(unit)]
        if isinstance(unit, Finished):
            # What a settler gets is the node's owner's.
            settled += earned
        else:
            keepers += earned
    return refunded, settled, keepers
