"""Send a file of prepared calls with a key of this machine: what `--print-tx` and the page write, each call once.

A file is held to what `hearth job explain` holds it to. What it calls an effect is its writer's word, so no call of the
sender's own is looked up by it: a post goes by its job, anything else by a key of its own (`Prepared.as_strangers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hearth.base.errors import ChainError, HearthError, RefusedError, UsageError
from hearth.base.text import brief, one_line
from hearth.chain.port import Call
from hearth.client.explain.explaining import Asked, lines_of, read_calls, rows_of
from hearth.client.governance.gov import GOV_GAS
from hearth.client.jobs import CANCEL_GAS
from hearth.client.paying import earlier
from hearth.client.posting.post import APPROVE_GAS, POST_GAS, WITHDRAW_GAS
from hearth.client.prepared import Prepared, owner_gas
from hearth.market.contracts import CONTRACTS
from hearth.protocol.types import JobId
from hearth.protocol.units import NATIVE, format_amount, show_at_least

if TYPE_CHECKING:
    from hearth.chain.tx import Sender
    from hearth.client.reports import ExplainedCall, FileSending, SentCall, SentState, Transaction
    from hearth.client.session import DryRun, Session


@dataclass(frozen=True, slots=True)
class Step:
    """One call to send. `key` names its effect in the journal, `approve` is what must be approved before."""

    told: ExplainedCall
    call: Call
    key: str
    takes: int
    gives: int
    approve: int
    gas: int

    @property
    def post(self) -> JobId | None:
        """Return the job that it posts."""
        job = self.told["job"]
        return JobId(bytes.fromhex(job[2:])) if job is not None and self.told["function"] == "post" else None


def send_file(session: Session, text: str) -> FileSending:
    """Send the calls of a file in its order, and before each the approval that it needs, where less is approved.

    Each is sent once: what an earlier call of this sent is waited for, and a job that the chain has is not posted. What
    is refused is refused before anything is signed: UsageError BAD_TX; RefusedError WRONG_MARKET, NOT_YOURS where the
    file is for another account, and what the contract says; FundsError. Of a later call that hangs on an earlier one
    that can come when it is its turn: the same file then goes on where it stopped.
    """
    steps, sender = _read(session, text)
    account = session.key(of=sender).address
    if account != sender:
        raise RefusedError(
            f"the file is for {sender}, and this account is {account}",
            hint="use --account NAME; hearth wallet list",
            code="NOT_YOURS",
        )
    over = _posted(session, steps)
    left = [step for step in steps if step.key not in over]
    short = {step.key for step in left if _allowed(session, sender, step) < step.approve}
    gas = sum(step.gas + (APPROVE_GAS if step.key in short else 0) for step in left)
    fees, takes = session.market.port.fees(), sum(step.takes for step in left)
    most = gas * fees.most
    takes_text, most_text = format_amount(takes, session.network.asset), show_at_least(most, NATIVE)
    states: dict[str, SentCall] = {key: _state(step, "posted_before") for key, step in over.items()}
    sent: list[Transaction] = []
    if left:
        if not session.dry_run:
            calls = "1 call" if len(left) == 1 else f"{len(left)} calls"
            text = (
                f"send {calls} as {sender} on {session.network.name}, for {takes_text} and {most_text} of gas at most?"
            )
            session.tell("confirm", {"text": text, "needed": True})
        _send(session, sender, left, states, sent)
    return {
        "schema": "hearth.action/1",
        "action": "send-file",
        "from": sender,
        "takes": str(takes),
        "takes_text": takes_text,
        "gas_most": str(most),
        "gas_most_text": most_text,
        "calls": [states[step.key] for step in steps],
        "already_sent": not session.dry_run and all(one["repeated"] for one in sent),
        "transactions": sent,
        "dry_run": session.dry_run,
    }


# ---- reading ----


def _read(session: Session, text: str) -> tuple[list[Step], str]:
    """Return a file's calls, each effect once, and their sender; says what each does. Raises BAD_TX, WRONG_MARKET."""
    try:
        calls = read_calls(text, session.network)
        sender = calls[0][0].read.sender
        if sender is None:
            raise ValueError("it is a call's data alone, which names no account, contract and chain")
    except ValueError as error:
        raise UsageError(
            f"this is no file of prepared calls: {brief(one_line(str(error)), 500)}",
            hint="prepare another: --print-tx writes one, and so does the page",
            code="BAD_TX",
        ) from error
    for _, told in calls:
        _say(session, told)
    # An approval stands with the call that it is for, which says how much: the reader has compared them.
    steps = [_step(asked, told) for asked, told in calls if asked.read.contract != "token"]
    return list({step.key: step for step in steps}.values()), sender


def _step(asked: Asked, told: ExplainedCall) -> Step:
    read = asked.read
    assert read.sender is not None and asked.approve is not None and asked.value is not None
    call = Call(read.address, read.data, asked.value, f"{CONTRACTS[read.contract]}.{read.function}")
    prepared = Prepared(call.label, read.sender, call, asked.approve, asked.key or "").as_strangers()
    is_post = read.function == "post" and told["job"] is not None
    return Step(
        told,
        call,
        # As `hearth submit` names it: whichever of them comes second finds the first. The data say which job it is.
        f"post/{(told['job'] or '')[2:]}" if is_post else prepared.key,
        takes=read.takes or 0,
        gives=int(read.arguments["amount"]) if read.function == "withdraw" else 0,
        approve=asked.approve,
        gas=_gas(read.contract, read.function, read.data),
    )


def _gas(contract: str, function: str, data: bytes) -> int:
    """Return more gas than a call takes."""
    match contract:
        case "JobRegistry":
            return POST_GAS if function == "post" else CANCEL_GAS
        case "NodeRegistry":
            return owner_gas(data)
        case "Escrow":
            return WITHDRAW_GAS
    return GOV_GAS


def _say(session: Session, told: ExplainedCall) -> None:
    """Tell what a call does, in the words of `hearth job explain`; with --yes too, where nobody is asked."""
    for line in lines_of(told["what"], rows_of(told)):
        session.tell("note", {"text": line})


# ---- what the chain has ----


def _posted(session: Session, steps: Sequence[Step]) -> dict[str, Step]:
    """Return the posts whose job the chain has, and the withdrawals right before them, that were to pay for them."""
    over: dict[str, Step] = {}
    for step, following in reversed(list(zip(steps, [*steps[1:], None], strict=True))):
        job = step.post
        pays = step.told["function"] == "withdraw" and following is not None and following.key in over
        if pays or (job is not None and session.market.job_word(job)):
            over[step.key] = step
    return over


def _allowed(session: Session, sender: str, step: Step) -> int:
    """Return what a call's contract may take of the sender's tokens; unlimited for the native coin."""
    return session.market.allowance(sender, str(step.call.to)) if step.approve else 0


def _earlier(sender: Sender | DryRun, step: Step) -> bool:
    """Say whether an earlier call of this sent a step. Raises TX_UNCLEAR where nobody says what became of that."""
    from hearth.chain.tx import Sender

    if not isinstance(sender, Sender):
        return False
    try:
        return earlier(sender, step.key) is not None
    except ChainError as error:
        if error.code == "TX_UNCLEAR":
            error.hint = "look these up in an explorer, or try again with another --rpc"
        raise


# ---- sending ----


def _send(
    session: Session, account: str, left: Sequence[Step], states: dict[str, SentCall], sent: list[Transaction]
) -> None:
    """Send what is left, and write down what became of it. All happens under one hold of the key."""
    with session.sender(of=account) as sender:
        before = {step.key for step in left if _earlier(sender, step)}
        new = [step for step in left if step.key not in before]
        ready = _require_ready(session, account, new) if new else set()
        try:
            for step in left:
                if step.key in before:
                    facts = session.send(sender, step.call, step.key, step="an earlier call sent it; looking for it")
                    sent.append(facts)
                    states[step.key] = _state(step, "sent_before", facts["tx"])
                    continue
                sent.extend(_approved(session, sender, account, step))
                if session.dry_run and step.key not in ready:
                    states[step.key] = _state(step, "not_tried")
                    continue
                _announce(session, step)
                facts = session.send(sender, step.call, step.key)
                sent.append(facts)
                states[step.key] = _state(step, "tried" if session.dry_run else "sent", facts["tx"])
        except HearthError as error:
            if any(one["tx"] and not one["repeated"] for one in sent):
                error.message += "; what came before it in the file is sent, and the same command goes on from there"
            raise


def _require_ready(session: Session, account: str, new: Sequence[Step]) -> set[str]:
    """Refuse what cannot be paid or is refused by its contract, and return what could be tried, before any is sent.

    Raises FundsError, RefusedError. The first is tried, and a post behind it where nothing before has to pay for it.
    """
    market, held, need = session.market, 0, 0
    gas = 0
    ready = set()
    for place, step in enumerate(new):
        held += step.gives - step.takes
        need = max(need, -held)
        gas += step.gas
        if _allowed(session, account, step) < step.approve:
            gas += APPROVE_GAS
        elif place == 0 or (step.post is not None and market.asset_balance(account) >= step.takes):
            ready.add(step.key)
    what = f'"{new[0].told["what"]}"' if len(new) == 1 else "this file"
    session.require_funds(account, asset_units=need, gas=gas, what=what)
    for step in new:
        if step.key in ready:
            market.port.call(step.call, sender=account)
    return ready


def _approved(session: Session, sender: Sender | DryRun, account: str, step: Step) -> list[Transaction]:
    """Approve exactly what a call takes, where less is approved, and return what that sent."""
    if _allowed(session, account, step) >= step.approve:
        return []
    call = session.market.calls.approve(str(step.call.to), step.approve)
    # Once more where an earlier one was used up by something else: while it waits, the next nonce is the same.
    return [session.send(sender, call, f"approve/{step.key}/{session.market.port.nonce(account)}")]


def _announce(session: Session, step: Step) -> None:
    """Name a job before its post is sent: from here on it may be on its way."""
    if step.post is not None and not session.dry_run:
        job = step.told["job"]
        session.tell("posting", {"job": job, "once": "the same command finds it", "text": f"posting job {job}"})


def _state(step: Step, state: SentState, tx: str | None = None) -> SentCall:
    told = step.told
    return {
        "contract": told["contract"],
        "function": told["function"],
        "what": told["what"],
        "job": told["job"],
        "state": state,
        "tx": tx,
    }
