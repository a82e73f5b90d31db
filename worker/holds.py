"""Why a worker takes nothing new now, or leaves a job alone, and what the log and the metrics hear of it: each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from hearth.chain.port import Block
from hearth.chain.tx import Sender
from hearth.client.nodes.obstacles import stake_command
from hearth.daemon.chain_clock import ChainClock, Doubt
from hearth.protocol import formulas
from hearth.protocol.gas import BEAT_GAS, LEASE_GAS
from hearth.protocol.types import JobId, Node
from hearth.protocol.units import Asset, format_amount
from worker.attempt.intake import UNASKED
from worker.decide import NO_GPU, OWN, Action, Reason, Skip
from worker.disk import Disk
from worker.metrics import WorkerMetrics
from worker.mode import read_mode
from worker.reason_texts import REASON_TEXTS
from worker.rows import Row
from worker.settings import Settings, accepting_at

log = structlog.get_logger("worker")

GAS_NEXT: Final = "raise max_gas_price or gas.max_per_day in worker.toml, then hearth worker reload"
OWNER_NEXT: Final = "where that owner is yours, set account.payout to it in worker.toml, then hearth worker start"
STORE_NEXT: Final = "hearth worker doctor; it is tried again by itself"
_TOLD: Final = NO_GPU | {
    *(Reason.OTHER_OWNER, Reason.NOT_READY, Reason.DISK_FULL, Reason.STORE_DOWN, Reason.GAS_CAPPED),
}
"""Holds of which the log hears more elsewhere."""


class Holds:
    """What keeps one worker from taking work, as of the last look."""

    def __init__(
        self, sender: Sender, metrics: WorkerMetrics, clock: ChainClock | None, wall: Callable[[], float]
    ) -> None:
        """`clock` is None for a local chain, whose second is whatever its owner asks for; `wall` is unix time."""
        self.now: Reason | None = None
        self.stake_short = 0
        """What the stake lacks, in base units."""
        self.disk_short = False
        self.refusal = ""
        """Why the store takes no results; empty where it takes them."""
        self.capped = ""
        """What waits for cheaper gas, in words; empty for nothing."""
        self._refused = False
        self._other_owner = ""
        self._status = ""
        self._sender = sender
        self._metrics = metrics
        self._clock = clock
        self._wall = wall

    def look(
        self,
        head: Block,
        node: Node,
        settings: Settings,
        disk: Disk,
        *,
        refusal: str,
        funds_short: bool,
        sent: bool,
        gpus: Reason | None = None,
    ) -> Reason | None:
        """Return why nothing new is taken now, or None; one that is `sent` for a unit hears no mode.

        `refusal` is why the store takes no results, "" where it takes them; `gpus` why no slot has its GPUs.
        """
        self._tell_store(refusal)
        why = self._why(head, node, settings, disk, funds_short=funds_short, sent=sent)
        before, self.now = self.now, why or gpus
        if self.now is not before:
            if self.now is not None and self.now not in _TOLD:
                log.warning("nothing new is taken", reason=self.now.value, why=REASON_TEXTS[self.now])
            elif self.now is None and before not in _TOLD:
                log.info("new work is taken again")
        return self.now

    def _why(
        self, head: Block, node: Node, settings: Settings, disk: Disk, *, funds_short: bool, sent: bool
    ) -> Reason | None:
        short, dear = self._tell_disk(disk), self._tell_gas(head)
        if self._tell_owner(node, settings.account.payout):
            return Reason.OTHER_OWNER
        mode = read_mode(settings.home)
        if mode != "run" and not sent:
            return Reason.DRAINING if mode == "drain" else Reason.PAUSED
        local = time.localtime(self._wall())
        if not accepting_at(settings.accept.schedule, local.tm_hour * 60 + local.tm_min):
            return Reason.OUTSIDE_SCHEDULE
        doubt = None if self._clock is None else self._clock.doubt()
        if doubt is not None:
            return Reason.CLOCK_SKEW if doubt is Doubt.CLOCK else Reason.CHAIN_SILENT
        if funds_short:
            return Reason.NOT_READY
        if short:
            return Reason.DISK_FULL
        if self.refusal:
            return Reason.STORE_DOWN
        return Reason.GAS_CAPPED if dear else None

    def _tell_gas(self, head: Block) -> bool:
        """Say whether gas is too dear to take new work; the log hears what is kept back, and since when no more."""
        half, base_fee = self._sender.config.max_fee // 2, self._sender.base_fee(head)
        everything = self._sender.why_capped(base_fee, BEAT_GAS)
        work = everything or self._sender.why_capped(base_fee, LEASE_GAS, half)
        self._metrics.gas_capped.labels("everything").set(bool(everything))
        self._metrics.gas_capped.labels("new work").set(bool(work))
        said = (
            f"beats and submits wait: {everything}" if everything else f"nothing new is taken: {work}" if work else ""
        )
        if said.partition(":")[0] != self.capped.partition(":")[0]:
            if said:
                log.warning("gas is too dear", what=said, next=GAS_NEXT)
            else:
                log.info("gas is not too dear any more")
        self.capped = said
        return bool(work)

    def _tell_disk(self, disk: Disk) -> bool:
        """Say whether the disk is short of its reserve; the log hears of each change."""
        short = disk.short
        if short is not self.disk_short:
            told = log.warning if short else log.info
            told("the disk is full: nothing new is taken" if short else "the disk has room again", disk=disk.in_words())
            self.disk_short = short
        return short

    def _tell_owner(self, node: Node, payout: str) -> bool:
        """Say whether the node has an owner that this worker was not told of; the log hears of each change."""
        other = node.owner if node.owner != payout else ""
        if other != self._other_owner:
            if other:
                log.warning("the node has another owner: nothing new is taken", owner=other, next=OWNER_NEXT)
            else:
                log.info("the node is account.payout's again")
            self._other_owner = other
        return bool(other)

    def _tell_store(self, refusal: str) -> None:
        """Keep why the store takes no results; the log hears of each change, and not of a store that has yet to say."""
        if bool(refusal) is not self._refused and refusal != UNASKED:
            self._refused = bool(refusal)
            if refusal:
                log.warning("the store takes no results: nothing new is taken", why=refusal, next=STORE_NEXT)
            else:
                log.info("the store takes results again")
        self.refusal = refusal

    def tell_stake(self, node: Node, minimum: int, asset: Asset) -> int:
        """Return how much stake the node lacks, in base units; the log hears of each change."""
        short = formulas.stake_short(node, minimum)
        if short != self.stake_short:
            if short:
                log.warning(
                    "stake is short: no work comes",
                    short=format_amount(short, asset),
                    next=stake_command(short, minimum, asset),
                )
            else:
                log.info("stake suffices", stake=format_amount(node.stake, asset))
            self.stake_short = short
        return short

    def tell_status(self, steps: Iterable[Action | Skip]) -> None:
        """Let the log hear that open jobs are left alone for what the node is on the chain, at each change."""
        found = next((one.detail for one in steps if isinstance(one, Skip) and one.reason is Reason.NODE_STATUS), "")
        if found and found != self._status:
            log.warning("nothing new is taken", reason=Reason.NODE_STATUS.value, why=found, next="hearth worker status")
        self._status = found


def tell_left(steps: Iterable[Action | Skip], rows: Mapping[JobId, Row]) -> None:
    """Let the log hear of each job that this worker does not take for a reason of its own, once a reason."""
    for step in steps:
        if not isinstance(step, Skip) or step.reason not in OWN or (row := rows.get(step.job)) is None:
            continue
        reason = Reason(step.reason)
        if reason not in row.told:
            row.told.add(reason)
            log.info(
                "a job is left alone", job=step.job.hex(), reason=reason.value, why=step.detail or REASON_TEXTS[reason]
            )
