"""Run the keeper: one loop that pins every cycle to one block, reads, decides, sends, records and sleeps.

Every action is estimated against the newest state first: a refusal means that somebody else was faster, and is
counted as a lost race; what is not worth its real gas is left. Then it goes the one transaction path
(`hearth.chain.tx`). While a transaction of an earlier cycle is alive, nothing new is sent. Without a key the keeper
does everything but send, and says what it would do. Source: docs/keeper-program.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from hearth.base.errors import ChainError, ConfigError, FundsError, NotFoundError, RefusedError, StorageError
from hearth.chain.port import Block, Call, ChainPort, reason_of
from hearth.chain.tx import CANCEL_GAS, TOO_DEAR, Pending, Sender
from hearth.chain.tx_journal import Intent, TxState
from hearth.config.settings import asset_of
from hearth.daemon.chain_clock import ChainClock
from hearth.daemon.ledger import LEDGER_FILE, Ledger
from hearth.daemon.loop import Backoff
from hearth.daemon.reload import Reloader
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol import units
from hearth.protocol.gas import PROPOSE_NEXT_GAS, WITHDRAW_GAS
from hearth.protocol.types import ZERO_ADDRESS
from keeper.actions import Action, Rest, Skip
from keeper.config import Config
from keeper.decide import decide
from keeper.health import KeeperHealth
from keeper.reader import Reader
from keeper.settings import MEND_CODE, Settings
from keeper.status import Cycle, status_of, with_age, write_status

MAX_PAUSE: Final = 60.0
"""The longest pause after failed cycles, in seconds."""
SURVIVABLE: Final = (ChainError, FundsError, StorageError)
"""Errors that a later cycle may not meet; before the first good one only where they say so themselves."""

if TYPE_CHECKING:
    from keeper.reports import KeeperStatus

log = structlog.get_logger("keeper")


class Keeper:
    """One keeper of one market.

    `sender` is None for a dry run, which simulates everything and writes neither books nor status.
    """

    def __init__(
        self,
        settings: Settings,
        network: Network,
        port: ChainPort,
        sender: Sender | None,
        health: KeeperHealth,
        *,
        address: str = ZERO_ADDRESS,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings, self.network, self.port, self.sender, self.health = settings, network, port, sender, health
        self.address = address if sender is None else sender.address
        self.market = Market(port, network)
        self.asset = asset_of(network)
        self.config: Config = settings.config(self.asset, self.address)
        self.ledger = Ledger(None) if sender is None else Ledger.open(settings.home / LEDGER_FILE)
        self.metrics = health.metrics
        self.stopping = False
        self.reader = Reader(
            port,
            self.market,
            network,
            payee=self.config.payee,
            sent=None if sender is None else sender.journal.signed_here,
            span=settings.limits.page_blocks,
            metrics=self.metrics,
        )
        self._cycles = 0
        self._waiting: list[tuple[Action, Pending]] = []
        self._wall, self._sleep = wall, sleep
        self._clock = ChainClock(lambda: self._wall())
        # Asked at each scrape: a loop that hangs, or can read no block, must not leave the age as it was.
        self.metrics.head_age.set_function(lambda: self._clock.age)
        self.metrics.follows(lambda: self.reader.suspicions, lambda: self.reader.blooms)
        self._max_lag = units.parse_duration(settings.limits.max_lag)
        self.reloader: Reloader[Settings] | None = None
        self.adopt: Callable[[Settings], None] = self.take_up

    def take_up(self, settings: Settings) -> None:
        """Work by other settings from now on. Raises ConfigError, with nothing taken up."""
        config = settings.config(self.asset, self.address)
        settings.max_loss(self.asset), settings.withdraw_threshold(self.asset)
        limits = settings.limits
        wait, lag = float(units.parse_duration(limits.wait)), units.parse_duration(limits.max_lag)
        self.settings, self.config, self._max_lag = settings, config, lag
        if self.sender is not None:
            self.sender.config = replace(
                self.sender.config, max_fee=limits.max_gas_wei, day_budget=limits.day_budget, timeout=wait
            )

    def _reload(self) -> None:
        """Take up what has changed in the settings file, where that was asked for."""
        if self.reloader is not None:
            self.reloader.turn(self.settings.home, self.settings, self.adopt)
            self.metrics.settings_refused.set(self.reloader.refused)

    # ---- the loop ----

    def start(self) -> None:
        """Refuse the wrong chain, genesis or code; bring the transaction journal and the chain together."""
        self.market.identity.check()
        if self.sender is None:
            log.info("keeper.dry_run", why="no account is configured: nothing is sent")
        else:
            try:
                self.market.identity.check_code(self.settings.code)
            except ChainError as error:
                error.hint = MEND_CODE if error.code == "UNKNOWN_CODE" else error.hint
                raise
            found = self.sender.reconcile()
            log.info("keeper.start", account=self.address, payee=self.config.payee, reconciled=str(found))

    def run(self, cycles: int | None = None) -> None:
        """Run cycles until `stop`, or `cycles` of them.

        Raises what is not survivable at once, and the last of `max_failures` survivable errors in a row. What no retry
        helps is survivable after a good cycle: a provider that answers otherwise than it did is to blame for it.
        """
        backoff = Backoff(base=self.settings.poll, cap=MAX_PAUSE)
        done = 0
        while not self.stopping and (cycles is None or done < cycles):
            self._reload()
            try:
                self.cycle()
                backoff.succeeded()
                done += 1
                if done != cycles:
                    self._wait_for_block()
            except SURVIVABLE as error:
                # Once a cycle has ended well, no single answer of a provider ends the process; many in a row do.
                if not (error.retryable or isinstance(error, FundsError) or self._cycles):
                    raise
                backoff.failed()
                self.metrics.failures.labels(error.code).inc()
                log.warning("cycle.failed", code=error.code, error=error.message, in_a_row=backoff.failures)
                if backoff.failures >= self.settings.limits.max_failures:
                    log.error("keeper.halted", failures=backoff.failures)
                    raise
                self.health.stay(error.message)
                self._nap(backoff.pause)
            self.metrics.failures_in_row.set(backoff.failures)

    def status(self) -> KeeperStatus:
        """Return what the last cycle of this process said, with its age in seconds.

        Raises NotFoundError where none has ended yet.
        """
        if not self.health.status:
            raise NotFoundError("no cycle has ended", hint="hearth keeper run", component="keeper", code="NO_KEEPER")
        return with_age(self.health.status, self._wall())

    def stop(self) -> None:
        """Let the loop end after its cycle."""
        self.stopping = True

    def cycle(self) -> Cycle:
        """Read, decide, send and record for the newest block. Raises HearthError; what was read stays consistent."""
        began = time.monotonic()
        self.port.begin_cycle()
        compares = self._cycles % self.settings.limits.compare_every == 0
        head = self.reader.sync(compare_all=compares)
        self._clock.saw(head)
        snapshot = self.reader.snapshot(head)
        unpriced = self._reprice()
        thought = time.monotonic()
        said = decide(snapshot, self.config, head.timestamp)
        self.metrics.decide_seconds.observe(time.monotonic() - thought)
        lag = max(0, int(self._wall()) - head.timestamp)
        balance = 0 if self.sender is None else self.port.balance(self.address, head.hash)
        cycle = Cycle(head, snapshot, said, balance)
        actions = [one for one in said if not isinstance(one, Skip)]
        cycle.unready = unpriced or self._unready(lag, cycle, compares) or self._unfunded(balance, snapshot.gas_price)
        if not cycle.unready:
            self._send(actions, cycle)
            self._withdraw(head, snapshot.gas_price)
        else:
            self._pretend(actions, cycle, head)
        self._record(cycle)
        self._cycles += 1
        self.metrics.cycles.inc()
        self.metrics.cycle_seconds.observe(time.monotonic() - began)
        return cycle

    # ---- sending ----

    def _reprice(self) -> str:
        """Read the price of a coin again where a file keeps it; return why it is not known, "" where it is."""
        if self.settings.price.coin_file is not None:
            try:
                self.config = self.settings.config(self.asset, self.address)
            except ConfigError as error:
                return error.message
        return ""

    def _unready(self, lag: int, cycle: Cycle, reconciles: bool) -> str:
        """Return why nothing is sent in this cycle, "" where all is well; `reconciles` looks at final ones too."""
        if self._max_lag and lag > self._max_lag:
            return f"the newest block is {lag} s old"
        if self.sender is None:
            return "dry run: no account is configured"
        if reconciles or self._waiting or self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST):
            self.sender.reconcile(self.reader.head)
            self._waiting = [(action, pending) for action, pending in self._waiting if not self._ended(action, pending)]
            alive = self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST)
            self.metrics.pending.set(len(alive))
            if alive:
                return f"{len(alive)} transactions wait to be mined" + self._unpark(alive, cycle)
        capped = self.sender.why_capped(self.sender.base_fee(cycle.head), WITHDRAW_GAS, self.sender.config.max_fee)
        self.metrics.gas_capped.labels("everything").set(bool(capped))
        return capped

    def _unpark(self, alive: list[Intent], cycle: Cycle) -> str:
        """Cancel what waits for lower fees than there are, where there is work that pays for that too."""
        assert self.sender is not None
        base_fee = self.sender.base_fee(cycle.head)
        parked = [intent for intent in alive if self.sender.is_parked(intent, base_fee)]
        if len(parked) < len(alive):
            return ""
        gas, price = CANCEL_GAS * len(parked), cycle.snapshot.gas_price
        actions = [one for one in cycle.said if not isinstance(one, Skip)]
        if not any(self.config.is_worth(one.reward, one.gas + gas, price) for one in actions):
            return ": they are not worth what gas costs now"
        for intent in parked:
            self.sender.cancel(intent)
        return ", and are cancelled for what is worth more"

    def _unfunded(self, balance: int, gas_price: int) -> str:
        """Return what the account lacks for the gas of one action, "" where it can act."""
        needed = gas_price * PROPOSE_NEXT_GAS
        if balance >= needed:
            return ""
        coin = units.Asset("coin", 18)
        return (
            f"{self.address} holds {units.show_amount(balance, coin)} and one action's gas costs "
            f"{units.show_at_least(needed, coin)}: send it native coin"
        )

    def _ended(self, action: Action, pending: Pending) -> bool:
        """Account for a transaction of an earlier cycle that has ended by now."""
        assert self.sender is not None
        intent = self.sender.journal.current(pending.intent)
        if intent.state.live:
            return False
        self._pay(intent.fee)
        if intent.state.done:
            self.ledger.mined[action.kind] += 1
        self.metrics.actions.labels(action.kind, "mined" if intent.state.done else "reverted").inc()
        return True

    def _send(self, actions: list[Action], cycle: Cycle) -> None:
        """Start every action, then wait until each is mined.

        Raises the error of chain or journal that cut this short, after everything that was started is accounted for or
        waited on.
        """
        started: list[tuple[Action, Pending]] = []
        failure: ChainError | StorageError | None = None
        for action in actions:
            try:
                pending = self._start(action, cycle)
            except RefusedError as error:
                self._lost(cycle, action, error)
            except FundsError as error:
                self._note(cycle, action, "unfunded", error.message)
                cycle.unready = error.message
                break
            except ChainError as error:
                if error.code not in TOO_DEAR:
                    failure = error
                    break
                # Too high a gas price is no failure: the action waits, and others may be worth it.
                self._note(cycle, action, "unworthy", error.message)
                if error.details["for_all"]:
                    cycle.unready = error.message
                    break
            except StorageError as error:
                failure = error
                break
            else:
                if pending is not None:
                    started.append((action, pending))
        for action, pending in started:
            failure = self._finish(action, pending, cycle) or failure
        self.ledger.save()
        if failure is not None:
            raise failure

    def _start(self, action: Action, cycle: Cycle) -> Pending | None:
        """Estimate an action and send it; None where it is not worth its real gas."""
        assert self.sender is not None
        call, price = self._call(action), cycle.snapshot.gas_price
        gas = self.port.estimate_gas(call, self.address)
        if not self.config.is_worth(action.reward, gas, price):
            cost = self.config.cost_of(gas, price)
            self._note(cycle, action, "unworthy", f"earns {action.reward}, costs {cost}")
            return None
        ceiling = self.config.worth_of(action.reward, gas)
        return self.sender.start(call, key=action.tx_key(cycle.snapshot.block), ceiling=ceiling)

    def _finish(self, action: Action, pending: Pending, cycle: Cycle) -> ChainError | StorageError | None:
        """Wait until a started action is mined. Return the error where chain or journal could not be asked."""
        assert self.sender is not None
        try:
            sent = self.sender.finish(pending)
        except RefusedError as error:
            intent = self.sender.journal.current(pending.intent)
            self._pay(intent.fee)
            self.metrics.lost_races.labels(action.kind).inc()
            self._note(cycle, action, "reverted", reason_of(error) or error.message)
        except (ChainError, StorageError) as error:
            if error.code == "NONCE_TAKEN":
                self._note(cycle, action, "replaced", error.message)
                return None
            self._waiting.append((action, pending))
            self._note(cycle, action, "pending", error.message)
            return None if error.code == "TX_PENDING" else error
        else:
            self._pay(sent.fee)
            self.ledger.mined[action.kind] += 1
            self._note(cycle, action, "mined", f"0x{(sent.tx_hash or b'').hex()}")
        return None

    def _pay(self, wei: int) -> None:
        self.ledger.pay(wei, self.config.coin_price)
        self.metrics.gas_spent.inc(wei)

    def _pretend(self, actions: Iterable[Action], cycle: Cycle, head: Block) -> None:
        for action in actions:
            try:
                self.port.call(self._call(action), head.hash, sender=self.address)
                self._note(cycle, action, "dry", "would be sent")
            except RefusedError as error:
                self._lost(cycle, action, error)

    def _lost(self, cycle: Cycle, action: Action, error: RefusedError) -> None:
        self.metrics.lost_races.labels(action.kind).inc()
        self._note(cycle, action, "refused", reason_of(error) or error.message)

    def _note(self, cycle: Cycle, action: Action, outcome: str, detail: str) -> None:
        self.metrics.actions.labels(action.kind, outcome).inc()
        cycle.outcomes.append({"action": action.kind, "id": action.id, "outcome": outcome, "detail": detail})
        log.info(f"action.{outcome}", action=action.kind, id=action.id, reward=str(action.reward), detail=detail)

    def _call(self, action: Action) -> Call:
        return action.call(self.market.calls, self.reader.index.packed, self.config.payee)

    def _withdraw(self, head: Block, gas_price: int) -> None:
        """Pay the account's credit out to it once it is large enough, so that a native market refills the gas."""
        threshold = self.settings.withdraw_threshold(self.asset)
        if self.sender is None or not threshold or self.config.payee != self.address:
            return
        credit = self.market.credit(self.address, head.hash)
        if credit >= threshold and self.config.is_worth(credit, WITHDRAW_GAS, gas_price):
            ceiling = self.config.worth_of(credit, WITHDRAW_GAS)
            call = self.market.calls.withdraw(self.address, credit)
            try:
                sent = self.sender.send(call, key=f"withdraw/{head.number}", ceiling=ceiling)
            except RefusedError as error:  # another process of this account was faster
                log.info("keeper.withdrew_nothing", why=reason_of(error) or error.message)
                return
            except ChainError as error:
                if error.code not in TOO_DEAR:
                    raise
                log.info("keeper.withdrew_nothing", why=error.message)
                return
            self._pay(sent.fee)
            self.ledger.save()
            log.info("keeper.withdrew", amount=str(credit), tx=f"0x{(sent.tx_hash or b'').hex()}")

    # ---- recording ----

    def _record(self, cycle: Cycle) -> None:
        self.ledger.begin(self.reader.index.credited)
        metrics = self.metrics
        metrics.head.set(cycle.head.number)
        metrics.jobs.set(len(self.reader.index))
        metrics.units.clear()
        for state, count in self.reader.index.states().items():
            metrics.units.labels(state.name.lower()).set(count)
        metrics.nodes.set(len(self.reader.index.fleet))
        metrics.ready_nodes.set(len(cycle.snapshot.nodes.ids))
        resting = {one.id.split("/")[0] for one in cycle.said if isinstance(one, Rest)}
        nodes = sum(name.startswith("node ") for name in resting)
        metrics.resting.labels("node").set(nodes)
        metrics.resting.labels("job").set(len(resting) - nodes)
        rewards = self.ledger.rewards(self.reader.index.credited)
        metrics.rewards.set(rewards)
        metrics.profit.set(rewards - self.ledger.coin_cost)
        metrics.balance.set(cycle.balance)
        told = status_of(
            cycle,
            self.reader.index,
            self.ledger,
            network=self.network.name,
            asset=self.asset,
            account=None if self.sender is None else self.address,
            payee=self.config.payee,
            at=int(self._wall()),
        )
        self.health.beat(told, cycle.unready)
        if self.sender is not None:
            write_status(self.settings.home, told)

    # ---- sleeping ----

    def _wait_for_block(self) -> None:
        """Sleep until there is another head than the last cycle's."""
        while not self.stopping and self.reader.head is not None:
            self._sleep(self.settings.poll)
            self._reload()
            if self.port.head().hash != self.reader.head.hash:
                return
            self._still_alive()

    def _still_alive(self) -> None:
        """Between blocks the loop turns: the probe must not take a quiet chain for a hanging keeper."""
        lag = int(self._wall()) - (self.reader.head.timestamp if self.reader.head is not None else 0)
        late = f"the newest block is {lag} s old" if self._max_lag and lag > self._max_lag else ""
        self.health.wait(late)

    def _nap(self, seconds: float) -> None:
        left = seconds
        while left > 0 and not self.stopping:
            step = min(1.0, left)
            self._sleep(step)
            self._reload()
            left -= step
