"""Payments that no contract refuses to repeat: each leaves once, however often its command is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError, FundsError
from hearth.protocol.units import parse_amount

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.chain.tx import Sender
    from hearth.chain.tx_journal import Intent
    from hearth.client.reports import Transaction
    from hearth.client.session import DryRun, Session

REPORTED: Final = "reported"
"""The remark in the journal on a payment whose end the user heard of."""


def _is_ready(_: Sender | DryRun) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Payment:
    """A call that pays: `effect` names who gets what, and ends in "/"; `text` says it to people.

    `command` is what shows an earlier one. `ready` is called before a new one is sent: it raises where that cannot be
    paid or is refused, may send an approval, and answers False where a dry run cannot go on.
    """

    call: Call
    effect: str
    text: str
    command: str
    ready: Callable[[Sender | DryRun], bool] = _is_ready


def pay_once(
    session: Session, payment: Payment, *, again: bool, role: str = "submitter", of: str | None = None
) -> tuple[list[Transaction], bool]:
    """Pay, or wait for the earlier payment of the same effect and say True; `again` pays once more.

    `role` and `of` choose the key, as `Session.key` has it.
    Never signs while an earlier payment's bytes may be on the chain. Raises ChainError TX_UNCLEAR where nobody says
    whether they are, and TX_PENDING where `again` comes before the last one was reported: whoever was killed in
    between did not mean to pay twice. All happens under one hold of the key, so that nothing changes in between.
    """
    from hearth.chain.tx import Sender

    with session.sender(role, of=of) as sender:
        if not isinstance(sender, Sender):
            return [session.send(sender, payment.call, payment.effect)] if payment.ready(sender) else [], False
        last = sender.journal.newest(payment.effect, replaced=True)
        try:
            known = earlier(sender, payment.effect)
        except ChainError as error:
            # Whoever pays again pays beside one whose end nobody knows.
            if not again or error.code != "TX_UNCLEAR":
                raise
            known = None
        if known is not None and not again:
            facts = session.send(sender, known.call, known.key, step="an earlier call sent it; looking for it")
            _reported(sender, known.key)
            return [facts], True
        if known is not None and known.note != REPORTED:
            raise ChainError(
                f"the last {payment.text} was not reported yet",
                hint=f"{payment.command} without --again waits for it and shows it",
                code="TX_PENDING",
            )
        payment.ready(sender)
        number = 0 if last is None else int(last.key.removeprefix(payment.effect)) + 1
        key = f"{payment.effect}{number}"
        try:
            facts = session.send(sender, payment.call, key)
        except KeyboardInterrupt:
            _tell_sent(session, sender, key, payment.command)
            raise
        _reported(sender, key)
        return [facts], False


def earlier(sender: Sender, effect: str) -> Intent | None:
    """Return the newest intent of an effect that is on its way or done, None for none.

    One that was given up is looked up again first. Raises ChainError TX_UNCLEAR where nobody says what became of it.
    """
    last = sender.journal.newest(effect, replaced=True)
    if last is not None and not (last.state.live or last.state.done):
        found = sender.look_again(last)
        if found is not None and (found.state.live or found.state.done):
            return found
    return sender.journal.newest(effect)


def _reported(sender: Sender, key: str) -> None:
    intent = sender.journal.find(key)
    assert intent is not None, "what was sent is in the journal"
    sender.journal.remark(intent, REPORTED)


def _tell_sent(session: Session, sender: Sender, key: str, command: str) -> None:
    """Name the transaction that goes on after Ctrl-C, and what shows its end."""
    intent = sender.journal.find(key)
    if intent is not None and intent.state.live:
        tx = "0x" + sender.journal.attempts(intent)[-1].hash.hex()
        text = f"{intent.call.label}: {tx} is sent; the same command again waits for it"
        session.tell("step", {"text": text, "sending": ""})


def credit_to_withdraw(session: Session, address: str, amount: str | None) -> int:
    """Return what of an address's credit in Escrow is to be withdrawn, all of it by default, in base units.

    Raises FundsError NO_CREDIT where there is less than asked for, or nothing.
    """
    credit = session.market.credit(address)
    wanted = credit if amount is None else parse_amount(amount, session.asset)
    if wanted == 0 or wanted > credit:
        raise FundsError(
            f"{address} has {session.amount(credit)} of credit in Escrow"
            + (f", and {session.amount(wanted)} is asked for" if wanted else ": there is nothing to withdraw"),
            hint="hearth wallet balance",
            code="NO_CREDIT",
            credit=str(credit),
        )
    return wanted
