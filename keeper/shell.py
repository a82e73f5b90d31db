"""Run the keeper: one loop that pins every cycle to one block, reads, decides, sends, records and sleeps.

All reads of a cycle name the block by its hash, so a reorg in between is an error and not a mixture; a reorg below the
index's block costs a rebuild. Every action is estimated against the newest state first: what is refused there was done
by somebody else, a lost race, counted and not an error; what is not worth its real gas is left. Then it goes the one
transaction path (`hearth.chain.tx`). While a transaction of an earlier cycle is alive, nothing new is sent. Without a
key the keeper does everything but send, and says what it would do. Source: SPEC section "Keeper", PRODUCT section 6.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from hearth.base.errors import ChainError, ConfigError, FundsError, NotFoundError, RefusedError
from hearth.base.files import replace_text
from hearth.chain.follow import Cursor
from hearth.chain.port import Block, Call, ChainPort, reason_of
from hearth.chain.tx import Pending, Sender
from hearth.chain.tx_journal import TxState
from hearth.config.settings import asset_of
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol import units
from hearth.protocol.formulas import Market as Immutables
from hearth.protocol.types import SENTINEL, ZERO_ADDRESS, JobId
from keeper import decide as core
from keeper.decide import ALL, Action, CheckLiveness, Config, JobRow, Propose, Settle, Skip, Snapshot
from keeper.index import Index, topics
from keeper.pulse import STATUS_FILE, Pulse
from keeper.settings import Settings

LEDGER_FILE: Final = "ledger.json"
MAX_LISTED: Final = 500
"""Jobs and skips that the status file lists."""
MAX_BACKOFF: Final = 60.0
SURVIVABLE: Final = (ChainError, FundsError)
"""Errors that a later cycle may not meet; a ChainError only where it says that it is retryable."""

if TYPE_CHECKING:
    from keeper.reports import KeeperExplanation, KeeperStatus, ListedJob, Outcome

log = structlog.get_logger("keeper")


@dataclass(slots=True)
class Ledger:
    """What this keeper has spent, kept over restarts; a lost file starts the count anew. Amounts in wei, base units."""

    path: Path
    gas_paid: int = 0
    coin_cost: int = 0
    """The gas paid, in base units of the market's asset at the prices of each moment."""
    credited_before: int | None = None
    """What the payee had been credited when the ledger began."""
    mined: Counter[str] = field(default_factory=Counter)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Read the ledger, or begin one."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            before = raw["credited_before"]
            return cls(
                path,
                int(raw["gas_paid"]),
                int(raw["coin_cost"]),
                None if before is None else int(before),
                Counter({str(verb): int(count) for verb, count in raw["mined"].items()}),
            )
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("ledger.unreadable", path=str(path), error=repr(error), then="counting starts anew")
            return cls(path)

    def save(self) -> None:
        """Write the ledger, whole or not at all."""
        body = {
            "gas_paid": str(self.gas_paid),
            "coin_cost": str(self.coin_cost),
            "credited_before": None if self.credited_before is None else str(self.credited_before),
            "mined": dict(self.mined),
        }
        replace_text(self.path, json.dumps(body) + "\n")


@dataclass(slots=True)
class Cycle:
    """What one cycle did."""

    head: Block
    said: list[Action | Skip]
    outcomes: list[Outcome] = field(default_factory=list)
    unready: str = ""


class Keeper:
    """One keeper of one market. `sender` is None for a dry run, which still simulates everything."""

    def __init__(
        self,
        settings: Settings,
        network: Network,
        port: ChainPort,
        sender: Sender | None,
        pulse: Pulse,
        *,
        address: str = ZERO_ADDRESS,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings, self.network, self.port, self.sender, self.pulse = settings, network, port, sender, pulse
        self.address = address if sender is None else sender.address
        self.market = Market(port, network)
        self.asset = asset_of(network)
        self.config: Config = settings.config(self.asset, self.address)
        self.ledger = Ledger.open(settings.home / LEDGER_FILE)
        self.metrics = pulse.metrics
        self.stopping = False
        self._followed = False
        self._head: Block | None = None
        self._rows: tuple[JobRow, ...] = ()
        self._cycles = 0
        self._waiting: list[tuple[Action, Pending]] = []
        self._wall, self._sleep = wall, sleep
        self._max_lag = units.parse_duration(settings.limits.max_lag)
        self._begin()

    # ---- the loop ----

    def start(self) -> None:
        """Refuse the wrong chain, genesis or code; bring the transaction journal and the chain together."""
        self.market.check()
        if self.sender is None:
            log.info("keeper.dry_run", why="no account is configured: nothing is sent")
        else:
            found = self.sender.reconcile()
            log.info("keeper.start", account=self.address, payee=self.config.payee, reconciled=str(found))

    def run(self, cycles: int | None = None) -> None:
        """Run cycles until `stop`, or `cycles` of them.

        Raises what is not survivable at once, and the last of `max_failures` survivable errors in a row.
        """
        failures = 0
        done = 0
        while not self.stopping and (cycles is None or done < cycles):
            try:
                self.cycle()
                failures = 0
                done += 1
                if done != cycles:
                    self._wait_for_block()
            except SURVIVABLE as error:
                if not (error.retryable or isinstance(error, FundsError)):
                    raise
                failures += 1
                self.metrics.failures.labels(error.code).inc()
                log.warning("cycle.failed", code=error.code, error=error.message, in_a_row=failures)
                if failures >= self.settings.limits.max_failures:
                    log.error("keeper.halted", failures=failures)
                    raise
                self.pulse.stay(error.message)
                self._nap(min(MAX_BACKOFF, self.settings.poll * 2 ** min(failures, 10)))
            self.metrics.failures_in_row.set(failures)

    def stop(self) -> None:
        """Let the loop end after its cycle."""
        self.stopping = True

    def cycle(self) -> Cycle:
        """Read, decide, send and record for the newest block. Raises HearthError; what was read stays consistent."""
        began = time.monotonic()
        self.port.begin_cycle()
        head = self.sync()
        snapshot = self.snapshot(head)
        unpriced = self._reprice()
        thought = time.monotonic()
        said = core.decide(snapshot, self.config, head.timestamp)
        self.metrics.decide_seconds.observe(time.monotonic() - thought)
        cycle = Cycle(head, said)
        lag = max(0, int(self._wall()) - head.timestamp)
        self.metrics.lag.set(lag)
        balance = 0 if self.sender is None else self.port.balance(self.address, head.hash)
        actions = [one for one in said if not isinstance(one, Skip)]
        cycle.unready = unpriced or self._unready(lag) or self._unfunded(balance, snapshot.gas_price)
        if not cycle.unready:
            self._send(actions, snapshot, cycle)
            self._withdraw(head)
        else:
            self._pretend(actions, cycle, head)
        self._record(cycle, snapshot, balance)
        self._cycles += 1
        self.metrics.cycles.inc()
        self.metrics.cycle_seconds.observe(time.monotonic() - began)
        return cycle

    # ---- reading ----

    def sync(self) -> Block:
        """Bring the index to the newest block that the providers agree on, and return that block."""
        try:
            head = self._follow()
            self._read_nodes(head)
            self._compare(head)
            self._rows = self.index.rows()
        except ChainError as error:
            if error.code in ("RPC_BROKEN", "RPC_LIES"):
                self._rebuild(error.code.lower())
            raise
        except ValueError as error:  # words that no contract writes: packed lanes out of range, short data, a gap
            self._rebuild("rpc_broken")
            raise ChainError(f"the RPC serves words that cannot be: {error}", code="RPC_BROKEN") from error
        return head

    def _follow(self) -> Block:
        """Apply what the chain has logged since the last cycle; a reorg below it starts the index anew."""
        while True:
            tick = self._cursor.read()
            if tick.orphaned:
                self._rebuild("reorg")
                continue
            if not tick.marks and tick.behind:
                raise ChainError(
                    f"the provider does not show block {tick.head.number - tick.behind + 1}", code="RPC_LAGS"
                )
            caught_up = tick.behind == 0
            self.index.apply(tick.logs, tick.head.timestamp if caught_up and self._followed else 0)
            self.metrics.logs.inc(len(tick.logs))
            self._cursor.advance(tick)
            if caught_up:
                self._followed = True
                self._head = tick.head
                return tick.head

    def _read_nodes(self, head: Block) -> None:
        for first, records in self.market.node_pages(head.hash):
            self.index.fleet.write(first, records)

    def _compare(self, head: Block) -> None:
        """Read when fresh jobs opened; now and then compare every job's word with the chain's."""
        jobs = self.index.live() if self._cycles % self.settings.limits.compare_every == 0 else self.index.unread()
        if not jobs:
            return
        wrong = self.index.compare(jobs, self.market.job_words(jobs, head.hash))
        if wrong:
            self._rebuild("mismatch")
            raise ChainError(
                f"{len(wrong)} jobs are not what their logs say, 0x{wrong[0].hex()} among them", code="RPC_BROKEN"
            )

    def _rebuild(self, cause: str) -> None:
        log.warning("index.rebuild", cause=cause)
        self.metrics.rebuilds.labels(cause).inc()
        self._cursor.close()
        self._followed = False
        self._begin()

    def _begin(self) -> None:
        """Start an empty index, and a cursor before the market's first block."""
        self.index = Index(self.network.chain_id, self.network.jobs, self.config.payee)
        addresses = [self.network.jobs, self.network.escrow]
        span = self.settings.limits.page_blocks
        self._cursor = Cursor(self.port, addresses, self.network.deploy_block, topics=topics(), span=span)
        self._followed = False

    def snapshot(self, head: Block) -> Snapshot:
        """Return the market as `decide` takes it; `head` is what `sync` returned."""
        parameters = self.network.node_parameters
        view = self.index.fleet.at(head.timestamp, Immutables(parameters.dead_after, parameters.minimum_stake))
        fees = self.port.fees()
        price = fees.base_fee + fees.priority_fee
        return Snapshot(head.number, head.timestamp, view, self._rows, parameters.liveness_fee, price)

    # ---- sending ----

    def _reprice(self) -> str:
        """Read the price of a coin again where a file keeps it; return why it is not known, "" where it is."""
        if self.settings.price.coin_file is not None:
            try:
                self.config = self.settings.config(self.asset, self.address)
            except ConfigError as error:
                return error.message
        return ""

    def _unready(self, lag: int) -> str:
        """Return why nothing is sent in this cycle, "" where all is well."""
        if self._max_lag and lag > self._max_lag:
            return f"the newest block is {lag} s old"
        if self.sender is None:
            return "dry run: no account is configured"
        turn = self._cycles % self.settings.limits.compare_every == 0
        if turn or self._waiting or self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST):
            self.sender.reconcile()
            self._waiting = [(action, pending) for action, pending in self._waiting if not self._ended(action, pending)]
            alive = len(self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST))
            self.metrics.pending.set(alive)
            if alive:
                return f"{alive} transactions wait to be mined"
        return ""

    def _unfunded(self, balance: int, gas_price: int) -> str:
        """Return what the account lacks for the gas of one action, "" where it can act."""
        needed = gas_price * self.config.gas.propose_next
        if balance >= needed:
            return ""
        coin = units.Asset("coin", 18)
        return (
            f"{self.address} holds {units.format_amount(balance, coin)} and one action's gas costs "
            f"{units.format_amount(needed, coin)}: send it native coin"
        )

    def _ended(self, action: Action, pending: Pending) -> bool:
        """Account for a transaction of an earlier cycle that has ended by now."""
        assert self.sender is not None
        intent = self.sender.journal.current(pending.intent)
        if intent.state.live:
            return False
        verb = core.verb_of(action)
        self._pay((intent.gas_used or 0) * (intent.gas_price or 0))
        if intent.state.done:
            self.ledger.mined[verb] += 1
        self.metrics.actions.labels(verb, "mined" if intent.state.done else "reverted").inc()
        return True

    def _send(self, actions: list[Action], snapshot: Snapshot, cycle: Cycle) -> None:
        """Start every action, then wait until each is mined.

        Raises the ChainError that cut this short, after everything that was started is accounted for or waited on.
        """
        started: list[tuple[Action, Pending]] = []
        failure: ChainError | None = None
        for action in actions:
            try:
                pending = self._start(action, snapshot, cycle)
            except RefusedError as error:
                self._lost(cycle, action, error)
            except FundsError as error:
                self._note(cycle, action, "unfunded", error.message)
                cycle.unready = error.message
                break
            except ChainError as error:
                if error.code != "FEE_CAP":  # a dear hour is no failure: it is waited out, out of readiness
                    failure = error
                    break
                self._note(cycle, action, "unworthy", error.message)
                cycle.unready = error.message
                break
            else:
                if pending is not None:
                    started.append((action, pending))
        for action, pending in started:
            failure = self._finish(action, pending, cycle) or failure
        self.ledger.save()
        if failure is not None:
            raise failure

    def _start(self, action: Action, snapshot: Snapshot, cycle: Cycle) -> Pending | None:
        """Estimate an action and send it; None where it is not worth its real gas."""
        assert self.sender is not None
        call = self.call_of(action)
        gas = self.port.estimate_gas(call, self.address)
        if not core.is_worth(action.reward, gas, snapshot.gas_price, self.config):
            cost = core.cost_of(gas, snapshot.gas_price, self.config)
            self._note(cycle, action, "unworthy", f"earns {action.reward}, costs {cost}")
            return None
        return self.sender.start(call, key=f"{core.verb_of(action)}/{action.id}/{snapshot.block}")

    def _finish(self, action: Action, pending: Pending, cycle: Cycle) -> ChainError | None:
        """Wait until a started action is mined. Return the error where the chain could not be asked."""
        assert self.sender is not None
        verb = core.verb_of(action)
        try:
            outcome = self.sender.finish(pending)
        except RefusedError as error:
            intent = self.sender.journal.current(pending.intent)
            self._pay((intent.gas_used or 0) * (intent.gas_price or 0))
            self.metrics.lost_races.labels(verb).inc()
            self._note(cycle, action, "reverted", reason_of(error) or error.message)
        except ChainError as error:
            if error.code == "NONCE_TAKEN":
                self._note(cycle, action, "replaced", error.message)
                return None
            self._waiting.append((action, pending))
            self._note(cycle, action, "pending", error.message)
            return None if error.code == "TX_PENDING" else error
        else:
            self._pay(outcome.fee)
            self.ledger.mined[verb] += 1
            self._note(cycle, action, "mined", f"0x{(outcome.tx_hash or b'').hex()}")
        return None

    def _pay(self, wei: int) -> None:
        self.ledger.gas_paid += wei
        self.ledger.coin_cost += core.cost_of(wei, 1, self.config)
        self.metrics.gas_paid.inc(wei)

    def _pretend(self, actions: Iterable[Action], cycle: Cycle, head: Block) -> None:
        for action in actions:
            try:
                self.port.call(self.call_of(action), head.hash, sender=self.address)
                self._note(cycle, action, "dry", "would be sent")
            except RefusedError as error:
                self._lost(cycle, action, error)

    def _lost(self, cycle: Cycle, action: Action, error: RefusedError) -> None:
        self.metrics.lost_races.labels(core.verb_of(action)).inc()
        self._note(cycle, action, "refused", reason_of(error) or error.message)

    def _note(self, cycle: Cycle, action: Action, outcome: str, detail: str) -> None:
        verb = core.verb_of(action)
        self.metrics.actions.labels(verb, outcome).inc()
        cycle.outcomes.append({"action": verb, "id": action.id, "outcome": outcome, "detail": detail})
        log.info(f"action.{outcome}", action=verb, id=action.id, reward=str(action.reward), detail=detail)

    def call_of(self, action: Action) -> Call:
        """Return the call that carries out an action of the last decision."""
        calls, payee, packed = self.market.calls, self.config.payee, self.index.packed
        if isinstance(action, CheckLiveness):
            return calls.check_liveness(action.nodes, payee)
        if isinstance(action, Settle):
            if len(action.items) == 1:
                job, index = action.items[0]
                return calls.settle(packed(job), index, payee)
            return calls.settle_batch([(packed(job), index) for job, index in action.items], payee)
        terms = packed(action.job)
        if isinstance(action, Propose):
            # The contract takes only the next untouched lease. One that follows it in this cycle is named NEXT, so
            # that it can be simulated now and still is the lease of its index when it is mined.
            return calls.propose(terms, SENTINEL if action.follows else action.index, action.node, payee)
        index = SENTINEL if action.index == ALL else action.index
        build = {core.Reclaim: calls.reclaim, core.Expire: calls.expire, core.Close: calls.close}[type(action)]
        return build(terms, index, payee)

    def _withdraw(self, head: Block) -> None:
        """Pay the account's credit out to it once it is large enough, so that a native market refills the gas."""
        threshold = self.settings.withdraw_threshold(self.asset)
        if self.sender is None or not threshold or self.config.payee != self.address:
            return
        credit = self.market.credit(self.address, head.hash)
        if credit >= threshold:
            try:
                outcome = self.sender.send(
                    self.market.calls.withdraw(self.address, credit), key=f"withdraw/{head.number}"
                )
            except RefusedError as error:  # another process of this account was faster
                log.info("keeper.withdrew_nothing", why=reason_of(error) or error.message)
                return
            self._pay(outcome.fee)
            self.ledger.save()
            log.info("keeper.withdrew", amount=str(credit), tx=f"0x{(outcome.tx_hash or b'').hex()}")

    # ---- recording ----

    def _record(self, cycle: Cycle, snapshot: Snapshot, balance: int) -> None:
        if self.ledger.credited_before is None:
            self.ledger.credited_before = self.index.credited
            self.ledger.save()
        metrics = self.metrics
        metrics.block.set(cycle.head.number)
        metrics.jobs.set(len(self.index))
        metrics.units.clear()
        for state, count in self.index.states().items():
            metrics.units.labels(state.name.lower()).set(count)
        metrics.nodes.set(len(self.index.fleet))
        metrics.ready_nodes.set(len(snapshot.nodes.ids))
        metrics.rewards.set(self.rewards)
        metrics.profit.set(self.rewards - self.ledger.coin_cost)
        metrics.balance.set(balance)
        self.pulse.beat(self._status(cycle, snapshot, balance), cycle.unready)

    @property
    def rewards(self) -> int:
        """Return what the payee was credited since the ledger began, in base units."""
        return max(0, self.index.credited - (self.ledger.credited_before or 0))

    def _status(self, cycle: Cycle, snapshot: Snapshot, balance: int) -> KeeperStatus:
        skips = [one for one in cycle.said if isinstance(one, Skip)]
        ledger = self.ledger
        return {
            "schema": "hearth.keeper/1",
            "pid": os.getpid(),
            "at": int(self._wall()),
            "network": self.network.name,
            "block": cycle.head.number,
            "time": cycle.head.timestamp,
            "account": None if self.sender is None else self.address,
            "payee": self.config.payee,
            "ready": not cycle.unready,
            "why": cycle.unready,
            "balance_wei": str(balance),
            "gas_price_wei": str(snapshot.gas_price),
            "nodes": len(self.index.fleet),
            "nodes_ready": len(snapshot.nodes.ids),
            "jobs": len(self.index),
            "units": {state.name.lower(): count for state, count in self.index.states().items()},
            "profit_and_loss": {
                "asset": self.asset.symbol,
                "rewards": str(self.rewards),
                "gas_wei": str(ledger.gas_paid),
                "gas": str(ledger.coin_cost),
                "profit": str(self.rewards - ledger.coin_cost),
                "mined": dict(ledger.mined),
            },
            "actions": cycle.outcomes,
            "skips": [{"id": one.id, "why": one.reason} for one in skips[:MAX_LISTED]],
            "skips_left_out": max(0, len(skips) - MAX_LISTED),
            "list": [_listed(row) for row in sorted(snapshot.jobs, key=lambda row: row.id)[:MAX_LISTED]],
        }

    # ---- sleeping ----

    def _wait_for_block(self) -> None:
        """Sleep until there is another head than the last cycle's."""
        while not self.stopping and self._head is not None:
            self._sleep(self.settings.poll)
            if self.port.agreed_head().hash != self._head.hash:
                return
            self._still_alive()

    def _still_alive(self) -> None:
        """Between blocks the loop turns: the probe must not take a quiet chain for a hanging keeper."""
        lag = int(self._wall()) - (self._head.timestamp if self._head is not None else 0)
        late = f"the newest block is {lag} s old" if self._max_lag and lag > self._max_lag else ""
        self.pulse.turn(late)

    def _nap(self, seconds: float) -> None:
        left = seconds
        while left > 0 and not self.stopping:
            step = min(1.0, left)
            self._sleep(step)
            left -= step


def _listed(row: JobRow) -> ListedJob:
    states = Counter(unit.unit.state.name.lower() for unit in row.units)
    return {
        "job": f"0x{row.id.hex()}",
        "leases": row.terms.leases,
        "touched": row.header.touched if row.header else 1,
        "units": dict(states),
        "keeper_fee": str(row.terms.keeper_fee),
        "ceiling": str(row.terms.ceiling),
        "deadline": row.terms.deadline,
    }


def explain(keeper: Keeper, job: JobId) -> KeeperExplanation:
    """Read the market and return what `keeper` would do about one job and why (`hearth keeper explain JOB`).

    Needs no key and sends nothing. Raises NotFoundError where the job ended or was never posted.
    """
    head = keeper.sync()
    try:
        told = core.explain(keeper.snapshot(head), keeper.config, head.timestamp, job)
    except KeyError as error:
        raise NotFoundError(
            f"no keeper has work in job 0x{job.hex()}: it ended, or was never posted",
            hint=f"hearth job show 0x{job.hex()}",
            component="keeper",
        ) from error
    return {"schema": "hearth.keeper.explain/1", **told}


def status(home: Path, *, now: float | None = None) -> KeeperStatus:
    """Return what the keeper whose state folder is `home` last said, with its age in seconds.

    Raises NotFoundError where no keeper has run there.
    """
    path = home / STATUS_FILE
    try:
        told: KeeperStatus = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotFoundError(
            f"no keeper has run in {home}", hint="hearth keeper run", component="keeper", code="NO_KEEPER"
        ) from error
    return {**told, "age": int((time.time() if now is None else now) - told["at"])}
