"""Workers as the market sees them: offers, gates, and what an owner does with a node.

Owner actions can be prepared on one machine (`print_tx`) and sent from the one with the owner's key (`send_prepared`).
What a worker's own machine knows (its settings, its process, its books) is in the package `worker`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ConfigError, RefusedError, UsageError
from hearth.base.strangers import MAX_BYTES, read_json
from hearth.client.gates import GATE_WORDS
from hearth.client.money import address_of, recipient
from hearth.client.paying import Payment, pay_once
from hearth.client.prepared import TAKES, Holder, Prepared, owner_gas, read_prepared
from hearth.client.standing import START, waits_of
from hearth.client.views import job_hex, moment, until
from hearth.client.wallet import credit_to_withdraw
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import amount_at_least, format_amount, parse_amount, parse_rate, show_rate

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.chain.tx import Sender
    from hearth.client.reading import JobReader
    from hearth.client.reports import NodeGates, NodeStatus, OfferRow, Offers, OwnerAction, Transaction, UnitGate
    from hearth.client.session import DryRun
    from hearth.protocol.types import Node, Offer

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

    def offers(self, *, gpu: str | None = None, vram: str | None = None, max_price: str | None = None) -> Offers:
        """Return the live workers' offers, cheapest first, optionally of a GPU tier, memory and price."""
        from hearth.protocol import formulas, reputation, zones
        from hearth.protocol.gpu_tiers import TIERS
        from hearth.protocol.types import Runtime, Status
        from hearth.protocol.units import gib_ceil, parse_size
        from hearth.spec import tier_number

        tier = tier_number(gpu, TIERS) if gpu else 0
        least = gib_ceil(parse_size(vram if not vram.isdigit() else f"{vram}GiB")) if vram else 0
        most = parse_rate(max_price, self.session.asset) if max_price else None
        head = self.session.market.port.head()
        parameters = self.session.network.node_parameters
        slugs = {number: slug for slug, number in TIERS.items()}
        rows: list[OfferRow] = []
        for node in self.session.market.nodes(head.hash):
            status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
            ask = formulas.ask_in_force(node, head.timestamp)
            offer = node.offer
            if status is not Status.ACTIVE or offer.tier < tier or offer.vram_gib < least:
                continue
            if most is not None and ask > most:
                continue
            rows.append(
                {
                    "node": node.id,
                    "owner": node.owner,
                    "ask": str(ask),
                    "ask_text": show_rate(ask, self.session.asset),
                    "runtimes": [flag.name.lower() for flag in Runtime if flag & offer.runtimes and flag.name],
                    "gpus": offer.gpu_count,
                    "tier": slugs.get(offer.tier, "") if offer.gpu_count else "",
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
        return {"schema": "hearth.offers/1", "network": self.session.network.name, "block": head.number, "offers": rows}

    def status(self, node: Node, *, start: str = START) -> NodeStatus:
        """Return what the chain says of a node; `start` is the command that makes it beat where it does not."""
        from hearth.protocol import formulas, reputation

        session = self.session
        head = session.market.port.head()
        parameters = session.network.node_parameters
        status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
        ask = formulas.ask_in_force(node, head.timestamp)
        return {
            "node": node.id,
            "status": status.name.lower(),
            "owner": node.owner,
            "operator": node.operator,
            "stake": str(node.stake),
            "stake_text": session.amount(node.stake),
            "stake_short": str(formulas.stake_short(node, parameters.minimum_stake)),
            "bond": str(node.state.bond),
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
        from hearth.protocol.types import Gate, State

        view = self._reads.look(job)
        indices = [index for index, unit in enumerate(view.units) if unit.state is State.OPEN][:20]
        if view.untouched:
            indices.append(len(view.units))
        rows: list[UnitGate] = []
        for index in indices:
            claim = formulas.claimable(view.terms, view.policy, view.stored(index), view.now)
            try:
                gate = self.session.market.fit(view.posted.packed, index, node.id, claim=claim)
            except RefusedError:
                if view.terms.replicas < 2:
                    raise
                # A stranger's judge is asked who may run a replica: what it says instead is not for people's eyes.
                text = "its judge does not answer who may run it"
                rows.append({"unit": index, "gate": "judge_silent", "text": text})
                continue
            word = GATE_WORDS.get(gate, gate.name.lower().replace("_", " "))
            text = "it fits" if gate is Gate.FITS else f"this node is {word}"
            if gate is Gate.PRICE:
                rate = formulas.ask_in_force(node, view.now)
                rises = self.session.market.claimable_from(view.posted.packed, index, rate)
                if rises is not None:
                    text = f"it can claim once the price has risen to its ask: from {until(rises, view.now)}"
            rows.append({"unit": index, "gate": gate.name.lower(), "text": text})
        return {"job": job_hex(view.posted.job_id), "state": view.state, "node": node.id, "units": rows}

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
        call = session.market.calls.register(operator, offer, _digest(manifest), amount, manifest)
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
        """Change a node's ask; it takes effect after the market's notice. Raises RefusedError while one is pending."""
        asset = self.session.asset
        ask = parse_rate(rate, asset)
        key = f"ask/{node.id}/{ask}"
        call = self.session.market.calls.set_ask(node.id, ask)
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
        call = session.market.calls.add_stake(node.id, node.owner, units)
        effect = f"stake/{session.network.nodes}/{node.id}/{units}/"
        text = f"stake of {session.amount(units)} for node {node.id}"
        command = f'hearth worker stake "{format_amount(units, session.asset)}"'
        payment = Payment(call, effect, text, command, lambda sender: True)
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

        Raises RefusedError UNBONDING where it is too early for that.
        """
        if cancel and finish:
            raise UsageError("--cancel and --finish exclude each other", hint="hearth worker exit --help")
        now = self.session.market.port.head().timestamp
        if finish and now < node.exit_at and not print_tx:
            raise RefusedError(
                f"node {node.id} unbonds until {moment(node.exit_at)}, and its stake is free only then",
                hint="hearth worker exit --finish then; hearth worker exit --cancel stays",
                code="UNBONDING",
                component="worker",
                exit_at=node.exit_at,
            )
        calls = self.session.market.calls
        name = "cancel" if cancel else "finish" if finish else "start"
        call = {"cancel": calls.exit_cancel, "finish": calls.exit_finish, "start": calls.exit_start}[name](node.id)
        key = f"exit/{name}/{node.id}"
        report = self._act(f"exit {name}", call, key, node.owner, print_tx=print_tx)
        return {**report, "node": node.id, "unbonding": self.session.network.node_parameters.unbonding}

    def send_prepared(
        self,
        path: Path,
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
        if mine.address == owner or (adds_stake and self.session.settings.account is not None):
            return mine.address
        name = next((key.name for key in list_keys(self.session.settings.keys_folder) if key.address == owner), "NAME")
        more = f"--account {name}, whichever pays the stake" if adds_stake else f"--account {name}"
        raise ConfigError(
            f"{owner} owns this node, and the key {mine.name} is {mine.address}",
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
