"""Workers as the market sees them: offers, gates, and what an owner does with a node.

Owner actions can be prepared on one machine (`print_tx`) and sent from the one with the owner's key (`send_prepared`).
What a worker's own machine knows (its settings, its process, its books) is in the package `worker`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ConfigError, RefusedError, UsageError
from hearth.base.files import AnyPath, path_of
from hearth.base.untrusted_json import MAX_BYTES, read_json
from hearth.client.face import refusing
from hearth.client.job.gates import GATE_SENTENCES, Fleet, again_from
from hearth.client.money import address_of, recipient
from hearth.client.nodes.manifests import said_by
from hearth.client.nodes.obstacles import START, short_of, waits_of
from hearth.client.paying import Payment, credit_to_withdraw, pay_once
from hearth.client.prepared import TAKES, Holder, Prepared, owner_gas, read_prepared
from hearth.client.views import job_hex, moment, until
from hearth.protocol.state_labels import STATUS_LABELS
from hearth.protocol.types import MAX_RATE, MAX_STAKE, ZERO_ADDRESS, Gate
from hearth.protocol.units import (
    amount_at_least,
    amount_at_most,
    format_amount,
    format_duration,
    parse_amount,
    parse_rate,
    rate_at_most,
    show_rate,
)

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.chain.tx import Sender
    from hearth.client.reading import JobReader
    from hearth.client.reports import (
        NodeEstimate,
        NodeGates,
        NodeStatus,
        OfferRow,
        Offers,
        OwnerAction,
        Transaction,
        UnitGate,
    )
    from hearth.client.session import DryRun
    from hearth.client.views import JobView
    from hearth.protocol.types import Node, Offer
    from hearth.protocol.units import Asset

COMMANDS: Final = {
    "register": "hearth worker register",
    "update_offer": "hearth worker update",
    "set_ask": "hearth worker price",
    "set_operator": "hearth worker operator ADDRESS",
    "add_stake": "hearth worker stake",
    "withdraw": "hearth worker withdraw",
    "exit_start": "hearth worker exit",
    "exit_cancel": "hearth worker exit --cancel",
    "exit_finish": "hearth worker exit --finish",
}
"""The function that each command of an owner sends."""
OWNING: Final = {
    "nodes.register": "is to own this node, by account.payout in worker.toml",
    "escrow.withdraw": "has this credit",
}
"""What an owner is to a call of his, but for those about a node that is there."""


@refusing
class Workers:
    """The market's workers, and what their owners do: `client.workers`."""

    def __init__(self, reads: JobReader, holder: Holder | None = None) -> None:
        """Read nothing yet; `holder` is asked first to send what an owner does."""
        self.session = reads.session
        self._reads = reads
        self._holder = holder

    def through(self, holder: Holder) -> Workers:
        """Return the same whose owner actions a process that holds the key sends, where one runs."""
        return Workers(self._reads, holder)

    # ---- looking ----

    def offers(
        self, *, gpu: str | None = None, vram: str | None = None, max_price: str | None = None, wide: bool = False
    ) -> Offers:
        """Return the live workers' offers, cheapest first; `wide` with what each says of its machine."""
        from hearth.jobfile import tier_number, tier_slug
        from hearth.protocol import formulas, reputation, zones
        from hearth.protocol.gpu_tiers import slug_of, vendor_of, vendor_of_slug
        from hearth.protocol.types import NodeId, Runtime, Status
        from hearth.protocol.units import gib_ceil, parse_size

        tier = tier_number(gpu) if gpu else 0
        maker = vendor_of_slug(tier_slug(gpu)) if gpu else None
        least = gib_ceil(parse_size(vram if not vram.isdigit() else f"{vram}GiB")) if vram else 0
        most = parse_rate(max_price, self.session.asset) if max_price else None
        head = self.session.market.port.head()
        parameters = self.session.network.node_parameters
        rows: list[OfferRow] = []
        others: Counter[Status] = Counter()
        for node in self.session.market.nodes(head.hash):
            status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
            ask = formulas.ask_in_force(node, head.timestamp)
            offer = node.offer
            vendor = vendor_of(offer.runtimes) if offer.gpu_count else None
            small = offer.tier < tier or offer.vram_gib < least or (maker is not None and vendor is not maker)
            if status is not Status.ACTIVE or small or (most is not None and ask > most):
                others[status] += status is not Status.EXITED
                continue
            rows.append(
                {
                    "node": node.id,
                    "owner": node.owner,
                    "ask": str(ask),
                    "ask_text": show_rate(ask, self.session.asset),
                    "runtimes": [flag.name.lower() for flag in Runtime if flag & offer.runtimes and flag.name],
                    "gpus": offer.gpu_count,
                    "tier": slug_of(vendor, offer.tier) if offer.gpu_count else "",
                    "vram_gib": offer.vram_gib,
                    "cores": offer.cores,
                    "ram_gib": offer.ram_gib,
                    "disk_gib": offer.disk_gib,
                    "zone": zones.ZONES[offer.zone].slug,
                    "slots": offer.slots,
                    "free": _free(node, head.timestamp),
                    "probation": not node.state.seasoned,
                    "quarantined_until": formulas.quarantined_until(node, head.timestamp),
                    "reputation_bps": reputation.reputation(node.state.r, node.state.s),
                }
            )
        rows.sort(key=lambda row: (int(str(row["ask"])), row["node"]))
        said = said_by(self.session.market, [NodeId(row["node"]) for row in rows]) if wide else {}
        for row in rows:
            row.update({"says": said[NodeId(row["node"])]} if NodeId(row["node"]) in said else {})
        words = {**STATUS_LABELS, Status.ACTIVE: "live with other offers"}
        return {
            "schema": "hearth.offers/1",
            "network": self.session.network.name,
            "block": head.number,
            "offers": rows,
            "others": {status.name.lower(): count for status, count in sorted(others.items()) if count},
            "others_text": ", ".join(f"{count} {words[status]}" for status, count in sorted(others.items()) if count),
        }

    def estimate(
        self,
        gpu: str,
        *,
        count: int = 1,
        watts: int | None = None,
        kwh: str | None = None,
        coin: str | None = None,
        days: int = 30,
    ) -> NodeEstimate:
        """Return what `count` GPUs of a model would earn in a node, by what the market's events of the last `days` say.

        `watts` are those of one GPU under load, `kwh` what a kWh costs in the market's asset, such as "0.0001 ETH";
        they are given together. `coin` is what one native coin is worth where the market pays in a token. Every event
        of the market is read. Raises UsageError, also UNKNOWN_TIER, ChainError.
        """
        from hearth.client.nodes.income import estimate

        return estimate(self.session, gpu, count=count, watts=watts, kwh=kwh, coin=coin, days=days)

    def status(self, node: Node, *, start: str = START) -> NodeStatus:
        """Return what the chain says of a node; `start` is the command that makes it beat where it does not."""
        from hearth.protocol import formulas, reputation

        session = self.session
        head = session.market.port.head()
        parameters = session.network.node_parameters
        status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
        ask, credit = formulas.ask_in_force(node, head.timestamp), session.market.credit(node.owner)
        return {
            "node": node.id,
            "status": status.name.lower(),
            "status_text": STATUS_LABELS[status],
            "owner": node.owner,
            "operator": node.operator,
            "stake": str(node.stake),
            "stake_text": session.amount(node.stake),
            "stake_short": str(formulas.stake_short(node, parameters.minimum_stake)),
            "bond": str(node.state.bond),
            "owner_credit": str(credit),
            "owner_credit_text": session.amount(credit),
            "busy": node.state.busy,
            "slots": node.offer.slots,
            "ask": str(ask),
            "ask_text": show_rate(ask, session.asset),
            "last_beat": node.state.beat,
            "seconds_since_beat": head.timestamp - node.state.beat if node.state.beat else None,
            "reputation_bps": reputation.reputation(node.state.r, node.state.s),
            "quarantined_until": formulas.quarantined_until(node, head.timestamp),
            "exit_at": node.exit_at or None,
            "waits": waits_of(node, head.timestamp, parameters, session.asset, start=start),
        }

    def gates(self, job: str, node: Node) -> NodeGates:
        """Return the chain's gate between a node and each open unit of a job; a claim's where it takes claims."""
        from hearth.protocol import formulas
        from hearth.protocol.types import State

        view = self._reads.look(job)
        indices = [index for index, unit in enumerate(view.units) if unit.state is State.OPEN][:20]
        if view.untouched:
            indices.append(len(view.units))
        rows: list[UnitGate] = []
        for index in indices:
            claim = formulas.claimable(view.terms, view.stored(index), view.now)
            try:
                gate = self.session.market.fit(view.posted.packed, index, node.id, claim=claim)
            except RefusedError:
                if view.terms.replicas < 2:
                    raise
                # A stranger's judge is asked who may run a replica: what it says instead is not for people's eyes.
                text = "its judge does not answer who may run it"
                rows.append({"unit": index, "gate": "judge_silent", "text": text})
                continue
            text = "it fits" if gate is Gate.FITS else GATE_SENTENCES[gate]
            if gate is Gate.STAKE_SHORT:
                text = self._bond_words(view, node)
            if gate is Gate.PROBATION:
                most = self.session.amount(formulas.policy_of(view.terms).probation_price)
                text += f"; such a job costs {most} at most, or welcomes newcomers"
            again = gate is Gate.EXCLUDED and again_from(view, index)
            if gate is Gate.PRICE or again:
                rate = formulas.ask_in_force(node, view.now)
                rises = self.session.market.claimable_from(view.posted.packed, index, rate)
                later = (
                    "let it pass, and can claim it again" if again else "can claim once the price has risen to its ask"
                )
                if rises is not None:
                    text = f"it {later}: from {until(rises, view.now)}"
                elif gate is Gate.PRICE:
                    most = show_rate(view.terms.ceiling, self.session.asset)
                    text = f"it asks {show_rate(rate, self.session.asset)}, and the job pays at most {most}"
            rows.append({"unit": index, "gate": gate.name.lower(), "text": text})
        return {
            "job": job_hex(view.posted.job_id),
            "state": view.state,
            "state_text": view.labels[1],
            "node": node.id,
            "units": rows,
        }

    def _bond_words(self, view: JobView, node: Node) -> str:
        """Say which bond a job binds, what of a node's stake is free for it, and what mends that."""
        from hearth.protocol import formulas

        session, bond = self.session, formulas.bond(view.terms)
        parameters = session.network.node_parameters
        text = (
            f"{GATE_SENTENCES[Gate.STAKE_SHORT]}: a lease of it binds {amount_at_least(bond, session.asset)}, and "
            f"{session.amount(node.stake - node.state.bond)} of {session.amount(node.stake)} is free"
        )
        if node.stake >= bond:
            return f"{text}; more is once its leases are settled"
        fleet = Fleet((node,), view.now, parameters.dead_after, parameters.minimum_stake)
        lower = fleet.backed(view.terms, session.asset)
        most = f", which covers a job of at most {lower}" if lower else ""
        missing = amount_at_least(bond - node.stake, session.asset)
        return f'{text}{most}: hearth worker stake "{missing}"'

    # ---- owning ----

    def register(
        self,
        operator: str,
        offer: Offer,
        manifest: bytes,
        *,
        payout: str,
        stake: str | None = None,
        print_tx: bool = False,
    ) -> OwnerAction:
        """Register a node of the owner `payout` with a stake, by default the market's minimum.

        `manifest` is a stored document in canonical form; the call carries it beside its digest. Raises RefusedError
        STAKE_SHORT, FundsError.
        """
        session = self.session
        least = int(session.market.immutable("NodeRegistry", "minimum_stake"))
        amount = least if stake is None else parse_amount(stake, session.asset)
        if amount < least:
            raise RefusedError(
                f"a stake of {session.amount(amount)} is below this market's minimum of {session.amount(least)}",
                hint=f'use --stake "{amount_at_least(least, session.asset)}"',
                code="STAKE_SHORT",
                component="worker",
                minimum=str(least),
            )
        _require_stake(amount, session.asset)
        call = session.market.calls.register(operator, offer, _digest(manifest), amount, manifest)
        self._warn_of_bond(call, payout, amount, offer.ask, print_tx=print_tx)
        report = self._act("register", call, f"register/{operator}", payout, stake=amount, print_tx=print_tx)
        return {**report, "operator": operator, "stake": str(amount), "stake_text": session.amount(amount)}

    def update_offer(self, node: Node, offer: Offer, manifest: bytes, *, print_tx: bool = False) -> OwnerAction:
        """Replace an idle node's offer and its `manifest`, as for `register`. Raises RefusedError BUSY."""
        if node.state.busy:
            raise RefusedError(
                f"node {node.id} runs {node.state.busy} leases, and an offer changes only while none runs",
                hint="hearth worker drain, then hearth worker update",
                code="BUSY",
                component="worker",
            )
        call = self.session.market.calls.update_offer(node.id, offer, _digest(manifest), manifest)
        return self._act("update", call, f"offer/{node.id}", node.owner, print_tx=print_tx)

    def set_ask(self, node: Node, rate: str, *, print_tx: bool = False) -> OwnerAction:
        """Change a node's ask; it takes effect after the market's notice.

        Raises UsageError BAD_RATE for what no offer can say, RefusedError ASK_PENDING while another one waits.
        """
        asset = self.session.asset
        ask = parse_rate(rate, asset)
        _require_ask(rate, ask, asset)
        if not print_tx and node.offer.pending:
            _require_no_ask(node, self.session.market.port.head().timestamp)
        key = f"ask/{node.id}/{ask}"
        call = self.session.market.calls.set_ask(node.id, ask)
        self._warn_of_bond(call, node.owner, node.stake, ask, print_tx=print_tx)
        report = self._act("price", call, key, node.owner, print_tx=print_tx)
        return {**report, "node": node.id, "ask": str(ask), "ask_text": show_rate(ask, asset)}

    def set_operator(self, node: Node, operator: str, *, print_tx: bool = False) -> OwnerAction:
        """Offer a node to another hot key, whose first beat takes it over, with leases, bond and beat.

        Naming the present operator takes an offer back (`kept`). Where that, or the offer, is so already, nothing is
        sent (`already_sent`). Raises UsageError BAD_ADDRESS.
        """
        session = self.session
        new = recipient(operator, session.network, why="nobody could work with it")
        kept = node.operator == new
        facts: dict[str, Any] = {"node": node.id, "operator": new, "kept": kept}
        if session.market.offered_operator(node.id) == (ZERO_ADDRESS if kept else new):
            none: OwnerAction = {
                "schema": "hearth.action/1",
                "action": "operator",
                "dry_run": session.dry_run,
                "transactions": [],
            }
            return {**none, **facts, "already_sent": True}  # type: ignore[typeddict-item]
        call = session.market.calls.set_operator(node.id, new)
        report = self._act("operator", call, f"operator/{node.id}/{new}", node.owner, print_tx=print_tx)
        return {**report, **facts}  # type: ignore[typeddict-item]

    def add_stake(self, node: Node, amount: str, *, again: bool = False, print_tx: bool = False) -> OwnerAction:
        """Add stake to a node, from its owner or any account that is chosen; it leaves only by exit, to the owner.

        Where no running worker sends it, one amount for one node is added once, as `Wallet.send` pays once
        (`already_sent`, `again`). Raises ChainError TX_PENDING, TX_UNCLEAR.
        """
        session = self.session
        units = parse_amount(amount, session.asset)
        if units == 0:
            raise UsageError("a stake of nothing adds nothing", hint="hearth worker stake AMOUNT", code="BAD_AMOUNT")
        _require_stake(node.stake + units, session.asset)
        call = session.market.calls.add_stake(node.id, node.owner, units)
        effect = f"stake/{session.network.nodes}/{node.id}/{units}/"
        text = f"stake of {session.amount(units)} for node {node.id}"
        command = f'hearth worker stake "{format_amount(units, session.asset)}"'
        payment = Payment(call, effect, text, command)
        once = (payment, again)
        key = f"stake/{node.id}/{units}"
        report = self._act("stake", call, key, node.owner, stake=units, print_tx=print_tx, once=once)
        return {**report, "node": node.id, "added": str(units), "added_text": session.amount(units)}

    def withdraw(self, owner: str, amount: str | None = None, *, print_tx: bool = False) -> OwnerAction:
        """Pay an owner's credit in Escrow out to the owner, all of it by default. Raises FundsError NO_CREDIT."""
        session = self.session
        units = credit_to_withdraw(session, owner, amount)
        call = session.market.calls.withdraw(owner, units)
        report = self._act("withdraw", call, "withdraw", owner, print_tx=print_tx)
        return {**report, "amount": str(units), "amount_text": session.amount(units), "to": owner}

    def exit(self, node: Node, *, cancel: bool = False, finish: bool = False, print_tx: bool = False) -> OwnerAction:
        """Start a node's exit; after the unbonding time `finish` credits its stake; `cancel` stays after all.

        Asks before it starts one (`tell` hears "confirm", and that an answer is needed).
        Raises RefusedError EXITING where it leaves already, NOT_EXITING where there is no exit to cancel or finish,
        UNBONDING where it is too early to finish, BOND_LEFT where leases of it are not settled.
        """
        if cancel and finish:
            raise UsageError("--cancel and --finish exclude each other", hint="hearth worker exit --help")
        if not print_tx:
            _require_exit(node, self.session.market.port.head().timestamp, leaves=not (cancel or finish), ends=finish)
        unbonding = self.session.network.node_parameters.unbonding
        calls = self.session.market.calls
        name = "cancel" if cancel else "finish" if finish else "start"
        call = {"cancel": calls.exit_cancel, "finish": calls.exit_finish, "start": calls.exit_start}[name](node.id)
        if not print_tx:
            self._payer(call, node.owner)  # whose answer would count for nothing is asked nothing
        if not (cancel or finish or print_tx or self.session.dry_run):
            stake = f"its stake of {self.session.amount(node.stake)} is free in {format_duration(unbonding)}"
            text = f"leave the market with node {node.id}: it gets no new work, and {stake}?"
            self.session.tell("confirm", {"text": text, "needed": True})
        key = f"exit/{name}/{node.id}"
        report = self._act(f"exit {name}", call, key, node.owner, print_tx=print_tx)
        return {**report, "node": node.id, "unbonding": unbonding}

    def send_prepared(
        self,
        path: AnyPath,
        function: str,
        *,
        amount: str | None = None,
        rate: str | None = None,
        operator: str | None = None,
    ) -> OwnerAction:
        """Send a call that --print-tx wrote on another machine, after checking whose and for which market it is.

        It must call `function`, pay what that takes, withdraw to its payer only, and be for just the `amount`, the
        `rate` or the `operator` where one is given. What it does is told before it is signed. Raises UsageError BAD_TX,
        RefusedError.
        """
        path = path_of(path)
        try:
            with path.open("rb") as file:
                raw = read_json(file.read(MAX_BYTES + 1))
            raw = raw.get("prepared", raw)
            prepared, called, arguments = read_prepared(raw, self.session.network, str(path))
        except (OSError, ValueError, AttributeError) as error:
            why = "it is no JSON object" if isinstance(error, AttributeError) else str(error)
            raise UsageError(
                f"{path} holds no prepared transaction: {why}",
                hint=f"on the worker's machine: hearth worker register --print-tx > {path.name}",
                code="BAD_TX",
            ) from error
        if called != function:
            raise UsageError(
                f"{path} calls {called}, and this command sends {function}",
                hint=f"{COMMANDS[called]} --tx {path}, if that is meant" if called in COMMANDS else "prepare another",
                code="BAD_TX",
            )
        asset = self.session.asset
        if rate is not None:
            _agrees(path, function, arguments, "ask", parse_rate(rate, asset))
        if amount is not None:
            _agrees(path, function, arguments, TAKES.get(function, "amount"), parse_amount(amount, asset))
        if operator is not None:
            _agrees(path, function, arguments, "operator", address_of(operator))
        payer = self._payer(prepared.call, prepared.sender)
        if function == "withdraw" and str(arguments["to"]).lower() != payer:
            raise UsageError(
                f"{path} withdraws to {arguments['to']}, and a withdrawal pays its owner, {payer}",
                hint="prepare another: hearth worker withdraw --print-tx",
                code="BAD_TX",
            )
        shown = ", ".join(f"{name} {_plain(argument)}" for name, argument in arguments.items())
        summary = f"{function}({shown}) as {payer}, paying {self.session.amount(prepared.paid)}"
        # Told in any case: with --yes, or without a terminal, nobody is asked.
        self.session.tell("note", {"text": summary})
        self.session.tell("confirm", {"text": f"{summary}?", "needed": False})
        return {**self._send(replace(prepared.as_strangers(), sender=payer)), "prepared_in": str(path)}

    # ---- inside ----

    def _warn_of_bond(self, call: Call, owner: str, stake: int, ask: int, *, print_tx: bool) -> None:
        """Warn, and ask on a terminal, before a price is sent at which a node's stake covers no lease of an hour."""
        session, registers = self.session, call.label == "nodes.register"
        text = short_of(stake, ask, session.market.policies().policy, session.asset, registered=not registers)
        if text is None:
            return
        session.tell("warning", {"text": text})
        if not (print_tx or session.dry_run):
            self._payer(call, owner)
            what = f"register with {session.amount(stake)} of stake" if registers else "ask that price"
            session.tell("confirm", {"text": f"{what} all the same?", "needed": False})

    def _act(
        self,
        action: str,
        call: Call,
        key: str,
        owner: str,
        *,
        stake: int = 0,
        print_tx: bool = False,
        once: tuple[Payment, bool] | None = None,
    ) -> OwnerAction:
        """Send a call of the node's owner once, or with `print_tx` return it for another machine to send.

        `key` names the effect; with the sender's nonce it is another one for each time that it is wanted.
        `once` is the payment that the call is, where no running worker sends it.
        """
        sender = owner if print_tx else self._payer(call, owner)
        approve = stake if self.session.network.asset.address else 0
        key = f"{key}/{self.session.market.port.nonce(sender)}"
        prepared = Prepared(action, sender, call, approve, key)
        if print_tx:
            return {
                "schema": "hearth.action/1",
                "action": action,
                "dry_run": self.session.dry_run,
                "prepared": prepared.document(self.session.network),
                "transactions": [],
            }
        return self._send(prepared, once)

    def _payer(self, call: Call, owner: str) -> str:
        """Return the address that signs: the owner's, or for more stake any that is chosen. Raises NOT_OWNER.

        The contract takes stake from anyone. Whose key happens to be the only one here is not asked to pay for it.
        """
        from hearth.chain.keys import list_keys

        mine = self.session.key("owner", of=owner)
        adds_stake = call.label == "nodes.add_stake"
        if mine.address == owner or (adds_stake and self.session.settings.names_account):
            return mine.address
        name = next((key.name for key in list_keys(self.session.settings.keys_folder) if key.address == owner), "NAME")
        more = f"--account {name}, whichever pays the stake" if adds_stake else f"--account {name}"
        raise ConfigError(
            f"{owner} {OWNING.get(call.label, 'owns this node')}, and the key {mine.name} is {mine.address}",
            hint=f"use {more}, or --print-tx here and --tx FILE on the owner's machine",
            code="NOT_OWNER",
            component="worker",
        )

    def _send(self, prepared: Prepared, once: tuple[Payment, bool] | None = None) -> OwnerAction:
        """Send a call of the account that this session signs with."""
        session = self.session

        def check() -> None:
            gas, what = owner_gas(prepared.call.data), f'"{prepared.action}"'
            session.require_funds(prepared.sender, asset_units=prepared.paid, gas=gas, what=what)

        held = None if self._holder is None or session.dry_run else self._holder.send(prepared, check)
        if held is None and once is not None:
            return self._pay(prepared, once, check)
        if held is None:
            check()
            sent = self._sign(prepared)
        else:
            sent = [session.receipt_of(one) for one in held]
            for facts in sent:
                session.tell("tx", facts)
        return {
            "schema": "hearth.action/1",
            "action": prepared.action,
            "dry_run": session.dry_run,
            "transactions": sent,
        }

    def _pay(self, prepared: Prepared, once: tuple[Payment, bool], check: Callable[[], object]) -> OwnerAction:
        """Sign and send a payment here once, and its approval before it where one is needed."""
        session, (payment, again) = self.session, once
        sent: list[Transaction] = []

        def ready(sender: Sender | DryRun) -> bool:
            check()
            sent.extend(self._approved(sender, prepared))
            # Simulated without its approval, the call would be refused.
            return not (session.dry_run and sent)

        paid, already = pay_once(session, replace(payment, ready=ready), again=again, role="owner", of=prepared.sender)
        return {
            "schema": "hearth.action/1",
            "action": prepared.action,
            "dry_run": session.dry_run,
            "already_sent": already,
            "transactions": [*sent, *paid],
        }

    def _approved(self, sender: Sender | DryRun, prepared: Prepared) -> list[Transaction]:
        """Approve what a call takes, where less is approved, and return what that sent."""
        session, approve = self.session, prepared.approve
        if not approve or session.market.allowance(prepared.sender, session.network.nodes) >= approve:
            return []
        return [session.send(sender, session.market.calls.approve_stake(approve), f"approve/{prepared.key}")]

    def _sign(self, prepared: Prepared) -> list[Transaction]:
        """Sign and send a call here, and its approval before it where one is needed."""
        session = self.session
        with session.sender("owner", of=prepared.sender) as sender:
            sent = self._approved(sender, prepared)
            # Simulated without its approval, the call would be refused.
            if not (session.dry_run and sent):
                sent.append(session.send(sender, prepared.call, prepared.key))
        return sent


def _require_ask(text: str, ask: int, asset: Asset) -> None:
    """Refuse an ask that no offer can say."""
    if 0 < ask <= MAX_RATE:
        return
    raise UsageError(
        f'"{text}" is no price of an offer: it is more than 0 and at most {rate_at_most(MAX_RATE, asset)}',
        hint="hearth worker price RATE; hearth offers shows what others ask",
        code="BAD_RATE",
        component="worker",
    )


def _require_no_ask(node: Node, now: int) -> None:
    """Refuse another ask while one waits."""
    if now < node.next_ask_at:
        raise RefusedError(
            f"node {node.id} has a new price that counts from {moment(node.next_ask_at)}, and one may wait at a time",
            hint="the same command after that; hearth worker status",
            code="ASK_PENDING",
            component="worker",
            retryable=True,
        )


def _require_stake(stake: int, asset: Asset) -> None:
    """Refuse more stake than a node can hold."""
    if stake > MAX_STAKE:
        raise UsageError(
            f"no node holds more than {amount_at_most(MAX_STAKE, asset)}",
            hint="hearth worker stake AMOUNT, of less; hearth worker status shows the stake",
            code="BAD_AMOUNT",
            component="worker",
        )


def _require_exit(node: Node, now: int, *, leaves: bool, ends: bool) -> None:
    """Refuse to begin an exit twice, to cancel or finish one that was not begun, and to finish one too early."""

    def refuse(code: str, text: str, hint: str) -> RefusedError:
        return RefusedError(text, hint=hint, code=code, component="worker", exit_at=node.exit_at)

    if leaves and node.exit_at:
        then = "now" if now >= node.exit_at else f"from {moment(node.exit_at)}"
        raise refuse(
            "EXITING",
            f"node {node.id} leaves already, and its stake is free {then}",
            f"hearth worker exit --finish, {then}; hearth worker exit --cancel stays",
        )
    if not leaves and not node.exit_at:
        raise refuse("NOT_EXITING", f"node {node.id} does not leave", "hearth worker exit")
    if ends and now < node.exit_at:
        raise refuse(
            "UNBONDING",
            f"node {node.id} unbonds until {moment(node.exit_at)}, and its stake is free only then",
            "hearth worker exit --finish then; hearth worker exit --cancel stays",
        )
    if ends and node.state.bond:
        raise refuse(
            "BOND_LEFT",
            f"node {node.id} has leases whose results are not settled",
            "hearth worker status; hearth worker exit --finish once they are",
        )


def _digest(document: bytes) -> bytes:
    """Return the digest of a document in canonical form, by which the chain names it."""
    return hashlib.sha256(document).digest()


def _free(node: Node, now: int) -> int:
    """Count the slots that a job could take now: none in quarantine."""
    return 0 if now < node.state.quarantine else max(0, node.offer.slots - node.state.busy)


def _agrees(path: Path, function: str, arguments: Mapping[str, Any], name: str, wanted: int | str) -> None:
    """Refuse a prepared call whose argument is not what the command line says. Raises UsageError BAD_TX."""
    found = arguments.get(name)
    if (found.lower() if isinstance(found, str) else found) != wanted:
        raise UsageError(
            f"{path} calls {function} with {name} {arguments.get(name)}, and {wanted} is asked for",
            hint="leave it out, since the file says it, or prepare another: --print-tx",
            code="BAD_TX",
        )


def _plain(argument: object) -> str:
    """Return an argument of a call for people."""
    return "0x" + argument.hex() if isinstance(argument, bytes) else str(argument)
