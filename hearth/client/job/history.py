"""What an account spent and earned on a market, by job, and what its gas cost: by events and its own transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

from hearth.client.job.receipt import keeper_at, refund_at, splits_of
from hearth.client.reading import market_events, misplaced
from hearth.client.views import job_hex, strays_in
from hearth.protocol.units import NATIVE, parse_duration, show_amount

if TYPE_CHECKING:
    from hearth.chain.port import ChainPort, Receipt
    from hearth.client.reading import JobReader
    from hearth.client.reports import AccountHistory, HistoryRow
    from hearth.market.events import Event, Split
    from hearth.market.reads import Posted

CONTRACTS: Final = ("JobRegistry", "NodeRegistry", "Escrow")


@dataclass
class _Row:
    """What one job moved for the account, base units."""

    locked: int = 0
    spent: int = 0
    refunded: int = 0
    earned: int = 0


@dataclass
class _Books:
    """What the events of a span moved for one account."""

    address: str
    key: bytes
    registry: str
    mine: frozenset[bytes]
    """The jobs that it posted, ever."""
    jobs: dict[bytes, _Row] = field(default_factory=dict)
    staked: int = 0
    from_nodes: int = 0
    withdrawn: int = 0
    keeping: int = 0
    """What it had for keeper's work: of `earned` the shares of whoever moved another's unit, and of nodes' stake."""
    touched: set[bytes] = field(default_factory=set)
    """The transactions that moved something of it; another account may have sent them."""

    def row(self, job: bytes) -> _Row:
        return self.jobs.setdefault(job, _Row())

    def apply(self, events: Sequence[Event]) -> None:
        """Book the events of one transaction, in their order."""
        from hearth.market.events import (
            CheckpointPaid,
            Finished,
            NodeLapsed,
            NodeRegistered,
            Slashed,
            Split,
            StakeAdded,
            ToppedUp,
            Withdrawn,
        )

        moved = 0
        for event in events:
            if isinstance(event, ToppedUp) and event.job_id in self.mine:
                self.row(event.job_id).locked += (moved := event.amount)
            elif isinstance(event, Withdrawn) and event.account == self.address:
                self.withdrawn += (moved := event.amount)
            elif isinstance(event, NodeRegistered) and event.owner == self.address:
                self.staked += (moved := event.stake)
            elif isinstance(event, StakeAdded) and event.payer == self.address:
                self.staked += (moved := event.amount)
            elif isinstance(event, Slashed | NodeLapsed) and event.payee == self.address:
                self.keeping += event.reward if isinstance(event, Slashed) else event.fee
            elif isinstance(event, Split) and event.controller != self.registry:
                own = sum(amount for account, amount in _shares(event) if account == self.address)
                self.from_nodes += own
                moved = moved or own
        for split, unit in splits_of(events, self.registry):
            moved += self._book(_shares(split), refund_at(unit), unit.job_id)
            # What was finished pays its settler's share to the node's owner, and a checkpoint's split has none.
            account, amount = _shares(split)[keeper_at(unit)]
            if account == self.address and not isinstance(unit, Finished | CheckpointPaid):
                self.keeping += amount
        if moved:
            self.touched.add(events[0].log.tx_hash)

    def _book(self, shares: Sequence[tuple[str, int]], back: int | None, job: bytes) -> int:
        """Book a split of a job's lock, of which the share `back` is its submitter's; return what of it concerns this
        account."""
        refund = 0 if back is None else shares[back][1]
        earned = sum(amount for at, (account, amount) in enumerate(shares) if account == self.address and at != back)
        if job not in self.mine and not earned:
            return 0
        row = self.row(job)
        row.earned += earned
        if job in self.mine:
            row.spent += (paid := sum(amount for _, amount in shares) - refund)
            row.refunded += refund
            return paid + refund
        return earned

    def totals(self) -> dict[str, int]:
        """Return the sums of all jobs."""
        return {
            name: sum(getattr(row, name) for row in self.jobs.values())
            for name in ("locked", "spent", "refunded", "earned")
        }


def _shares(event: Split) -> list[tuple[str, int]]:
    from hearth.protocol import words

    return [words.unpack_share(share) for share in event.shares]


@dataclass(frozen=True, slots=True)
class _Gas:
    """What an account's transactions cost, wei: `unknown` have no receipt here, `others` are none of the market's that
    are known; None where nobody can say how many those are."""

    paid: int
    count: int
    unknown: int
    others: int | None


def history(reads: JobReader, address: str, since: str | None = None) -> AccountHistory:
    """Return what an account spent and earned since a span ago, such as "30d", by default since the market began.

    Every event of the span is read. Raises UsageError for what is no span, ChainError.
    """
    session, market = reads.session, reads.session.market
    head, first = market.port.head(), session.network.deploy_block
    begin = None if since is None else head.timestamp - parse_duration(since)
    if begin is not None:
        first = block_from(market.port, begin, first, head.number)
    posted: dict[bytes, Posted] = {one.job_id: one for one in reads.posted(head)}
    books = _read(reads, posted, address, first, head.number)
    gas = _gas(reads, books, address, first, head.number, whole=begin is None)
    sums = {
        **books.totals(),
        "still_locked": market.locked(session.network.jobs, books.key, head.hash),
        "staked": books.staked,
        "from_nodes": books.from_nodes,
        "withdrawn": books.withdrawn,
    }
    report: AccountHistory = {
        "schema": "hearth.account/1",
        "network": session.network.name,
        "address": address,
        "since": begin,
        "first_block": first,
        "block": head.number,
        "asset": session.asset.symbol,
        "locked": str(sums["locked"]),
        "spent": str(sums["spent"]),
        "refunded": str(sums["refunded"]),
        "still_locked": str(sums["still_locked"]),
        "earned": str(sums["earned"]),
        "staked": str(sums["staked"]),
        "from_nodes": str(sums["from_nodes"]),
        "withdrawn": str(sums["withdrawn"]),
        "gas": str(gas.paid),
        "gas_transactions": gas.count,
        "gas_unknown": gas.unknown,
        "other_transactions": gas.others,
        "text": {**{name: session.amount(units) for name, units in sums.items()}, "gas": show_amount(gas.paid, NATIVE)},
        "jobs": _rows(reads, books, posted),
    }
    if strays := strays_in(market.strays):
        report["strays"] = strays["strays"]
    return report


def keeper_pay(reads: JobReader, address: str) -> int:
    """Return what an account had for keeper's work since the market began, base units. Every event of it is read."""
    head = reads.session.market.port.head()
    posted: dict[bytes, Posted] = {one.job_id: one for one in reads.posted(head)}
    return _read(reads, posted, address, reads.session.network.deploy_block, head.number).keeping


def _read(reads: JobReader, posted: Mapping[bytes, Posted], address: str, first: int, last: int) -> _Books:
    """Return the books of an account for the blocks `first` to `last`; `posted` are all jobs of the market."""
    from hearth.protocol import formulas

    session, market = reads.session, reads.session.market
    mine = frozenset(job for job, one in posted.items() if one.terms.submitter == address)
    books = _Books(address, formulas.lock_key(address), session.network.jobs, mine)
    for job in mine:
        if posted[job].log.block_number >= first:
            books.row(job).locked = formulas.escrow_at_post(posted[job].terms)
            books.touched.add(posted[job].log.tx_hash)
    addresses = [session.network.contracts[name] for name in CONTRACTS]
    events = market_events(market, addresses, first, last)
    for _, some in groupby(events, key=lambda event: (event.log.block_hash, event.log.tx_hash)):
        kept = []
        for event in some:
            if why := misplaced(event, posted.get(getattr(event, "job_id", b""))):
                market.strays.note(event.log, why)
            else:
                kept.append(event)
        if kept:
            books.apply(kept)
    return books


def _rows(reads: JobReader, books: _Books, posted: Mapping[bytes, Posted]) -> list[HistoryRow]:
    """Return a row for each job that moved something, newest first."""
    session = reads.session
    rows: list[HistoryRow] = []
    for job in sorted(books.jobs, key=lambda job: -posted[job].log.block_number):
        row, one = books.jobs[job], posted[job]
        rows.append(
            {
                "job": job_hex(job),
                "name": session.names.of(one.terms.spec),
                "mine": job in books.mine,
                "posted_at": session.moments.at(one.log.block_hash, session.market.port),
                "locked": str(row.locked),
                "spent": str(row.spent),
                "refunded": str(row.refunded),
                "earned": str(row.earned),
            }
        )
    session.moments.save()
    return rows


def block_from(port: ChainPort, second: int, first: int, last: int) -> int:
    """Return the first block of a range whose time is `second` or later, one after the range where none is."""
    from hearth.base.errors import ChainError

    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        block = port.block(middle)
        if block is None:
            raise ChainError(f"the RPC serves no block {middle}", code="RPC_LIES", hint="hearth doctor")
        if block.timestamp < second:
            low = middle + 1
        else:
            high = middle
    return low


def _gas(reads: JobReader, books: _Books, address: str, first: int, last: int, *, whole: bool) -> _Gas:
    """Return what the account's transactions of the span cost: those in its journal here, and those of events."""
    from hearth.chain.tx_journal import TxJournal, mined_in

    session, port = reads.session, reads.session.market.port
    network = session.network
    path = TxJournal.path_in(session.settings.home / "state", network.chain_id, network.genesis_hash, address)
    journalled = mined_in(path)
    hashes = sorted(journalled | books.touched)
    if hashes:
        session.tell("step", {"text": f"reading {len(hashes)} receipts"})
    receipts = {tx_hash: port.receipt(tx_hash) for tx_hash in hashes}
    # What an event names is there: of what the journal alone knows, and no provider, nobody says where it is.
    unknown = sum(receipts[tx_hash] is None for tx_hash in journalled)
    own = [one for one in receipts.values() if one is not None and one.sender.lower() == address]
    here = [one for one in own if first <= one.block_number <= last]
    paid, used = sum(one.fee for one in here), port.nonce(address)
    begin = 0
    if not whole:
        before = max((one for one in own if one.block_number < first), key=lambda one: one.block_number, default=None)
        if here:
            begin = min(_nonce(port, one) for one in here)
        elif before is not None and _nonce(port, before) + 1 == used:
            begin = used
        else:
            return _Gas(paid, len(here), unknown, None)
    return _Gas(paid, len(here), unknown, max(0, used - begin - len(here) - unknown))


def _nonce(port: ChainPort, receipt: Receipt) -> int:
    """Return the nonce of a mined transaction. Raises ChainError where nobody has it any more."""
    from hearth.base.errors import ChainError

    sent = port.transaction(receipt.tx_hash)
    if sent is None:
        raise ChainError(f"the RPC has a receipt of 0x{receipt.tx_hash.hex()} and no transaction", hint="hearth doctor")
    return sent.nonce
