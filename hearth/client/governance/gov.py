"""Who may change a market's defaults, what waits to be changed, and what council, guardian and anybody do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from hearth.base.errors import ChainError, ConfigError, NotFoundError, RefusedError, UsageError
from hearth.chain.port import reason_of
from hearth.client.face import refusing
from hearth.client.governance.changes import (
    BOUNDS_HINT,
    Seen,
    change_row,
    change_rows,
    find_changes,
    next_policy_from,
    read_change,
    read_changes,
    state_of,
)
from hearth.client.money import recipient
from hearth.client.prepared import Prepared
from hearth.client.views import moment, strays_in
from hearth.market.changes import DROPPED, GOVERNED, LIFE, POLICY_GRACE, Change, ChangeOp, pausable_from
from hearth.protocol.reasons import REASONS
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import format_duration

if TYPE_CHECKING:
    from hearth.chain.port import Block, Call
    from hearth.client.reports import ChangeRow, GovAction, Governed, GovStatus
    from hearth.client.session import Session
    from hearth.market.reads import Seats

GOV_GAS: Final = 200_000
"""More than any call to the Steward takes."""
PREVIOUS_POLICY: Final = "previous-policy"
LEAST_DIGITS: Final = 4
"""Of a change's id, by which it is executed or dropped for good: a slip of the finger is no id."""
MAX_SALTS: Final = 1_000
"""How often one change is ever queued, before a provider that says so is not believed any more."""
_CHANGED_LATELY: Final = REASONS[5004].text
_PAUSED_LATELY: Final = (REASONS[5003].text, REASONS[2133].text)
_STATUS: Final = "hearth gov status"


@refusing
class Gov:
    """Govern a market: `client.gov`."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet."""
        self.session = session

    # ---- looking ----

    def status(self) -> GovStatus:
        """Return council, guardian and governors, what waits, and what was executed, dropped or lapsed lately."""
        market = self.session.market
        head = market.port.head()
        seats = market.seats(head.hash)
        seen, earlier = read_changes(market, head)
        return {
            "schema": "hearth.gov/1",
            "network": self.session.network.name,
            "block": head.number,
            "time": head.timestamp,
            "steward": self.session.network.steward,
            "council": seats.council,
            "offered_council": _or_none(seats.offered_council),
            "guardian": _or_none(seats.guardian),
            "delay": seats.delay,
            "posts": self._governed("posts", head),
            "registrations": self._governed("registrations", head),
            "changes": change_rows(market, head, seen),
            "earlier": earlier,
            **strays_in(market.strays),
        }

    def _governed(self, what: str, head: Block) -> Governed:
        market, contract = self.session.market, GOVERNED[what]
        governor = market.governor(contract, head.hash)
        paused_until = self._paused_until(what, head)
        return {
            "governor": governor,
            "steward": governor == self.session.network.steward,
            "offered": _or_none(str(market.immutable(contract, "offered_governor", head.hash)).lower()),
            "paused_until": paused_until,
            "pausable_from": pausable_from(paused_until),
        }

    def _paused_until(self, what: str, head: Block) -> int:
        return int(self.session.market.immutable(GOVERNED[what], "paused_until", head.hash))

    # ---- council ----

    def queue(self, kind: str, values: Sequence[str] = (), *, print_tx: bool = False) -> GovAction:
        """Announce a change, as the council: `kind` and `values` as in "policy", ["fee_bps=300"].

        What cannot be carried out is refused before anything is signed. A change that waits already is not queued
        again (`already_done`). With `print_tx` the transaction is returned, for a Safe or another machine to send.
        Raises UsageError BAD_CHANGE, BAD_AMOUNT, BAD_DURATION, BAD_ADDRESS; RefusedError OUT_OF_BOUNDS; ConfigError
        NOT_SEATED.
        """
        market = self.session.market
        head = market.port.head()
        seats = market.seats(head.hash)
        op, word = read_change(kind, values, market.policies(head.hash).policy, self.session.network)
        self._refuse_idle(op, word, seats, head)
        change, due = self._unused(op, word, head)
        self._require_bounds(change, seats, head)
        sender = self._sender((seats.council,), "the council", print_tx=print_tx)
        self._warn_of_others(change, head)
        waits = due or head.timestamp + seats.delay
        row = self._row(Seen(change, waits, "waiting", head.number), head)
        about = f"{row['text']}, from {moment(row['ready'])} on"
        if due:
            done = _done("queue", f"queued already as {row['change'][:14]}: {about}", change, due)
            return {**done, "ready": row["ready"]}
        report = self._act("queue", market.calls.queue(change), f"queue/{change.id.hex()}", sender, about, print_tx)
        if report["transactions"] and not self.session.dry_run:
            row = self._row(Seen(change, market.change(change.id), "waiting", head.number), head)
            report["text"] = f"queued as {row['change'][:14]}: {row['text']}, from {moment(row['ready'])} on"
        return {**report, "change": row["change"], "due": row["due"], "ready": row["ready"]}

    # ---- council and guardian ----

    def drop(self, change: str, *, print_tx: bool = False) -> GovAction:
        """Take a queued change back for good, or "previous-policy": posts under the replaced policy end at once.

        `change` is an id, or its beginning of 4 hex digits or more, as `status` shows it. Raises ConfigError
        NOT_SEATED, UsageError BAD_ID, NotFoundError NOT_FOUND, AMBIGUOUS, RefusedError CHANGE_OVER.
        """
        market = self.session.market
        head = market.port.head()
        seats = market.seats(head.hash)
        if change == PREVIOUS_POLICY:
            sender = self._seated(seats, print_tx=print_tx)
            call, about = market.calls.steward_drop_previous_policy(), "take the current policy only"
            key = f"drop/policy/{market.port.nonce(sender)}"
            return {**self._act("drop", call, key, sender, about, print_tx), "what": [PREVIOUS_POLICY]}
        wanted, seen = self._find(change, head)
        name = "0x" + wanted.hex()
        state = market.change(wanted, head.hash)
        if state == DROPPED:
            return _done("drop", f"change {name[:14]} was dropped already", wanted)
        if state != 0 and state_of(state, head.timestamp) == "executed":
            raise _over(name, "was executed")
        sender = self._seated(seats, print_tx=print_tx)
        about = f"drop {name[:14]}" if seen is None else f"drop {name[:14]}: {self._row(seen, head)['text']}"
        report = self._act("drop", market.calls.drop(wanted), f"drop/{wanted.hex()}", sender, about, print_tx)
        return {**report, "change": name}

    def pause(self, what: Sequence[str], *, print_tx: bool = False) -> GovAction:
        """Stop "posts", "registrations" or both for 7 days, each at most once in 30.

        Asks first (`tell` hears "confirm", and that an answer is needed). Raises ConfigError NOT_SEATED, NOT_CONFIRMED;
        RefusedError PAUSED_LATELY, which says from when on a pause works again.
        """
        market, chosen = self.session.market, _chosen(what, "pause")
        head = market.port.head()
        sender = self._seated(market.seats(head.hash), print_tx=print_tx)
        call = market.calls.steward_pause(**dict.fromkeys(chosen, True))
        key = f"pause/{'+'.join(chosen)}/{market.port.nonce(sender)}"
        about = f"stop new {' and '.join(chosen)} for 7 days"
        try:
            return {**self._act("pause", call, key, sender, about, print_tx, needed=True), "what": chosen}
        except RefusedError as error:
            if reason_of(error) not in _PAUSED_LATELY:
                raise
            raise self._paused_lately(chosen, head, error) from error

    def _paused_lately(self, chosen: Sequence[str], head: Block, error: RefusedError) -> RefusedError:
        """Return the refusal of a pause that comes too early as it is worth saying: from when on the next one works."""
        again = {what: pausable_from(self._paused_until(what, head)) for what in chosen}
        early = [what for what in chosen if head.timestamp < again[what]]
        if not early:
            return error  # what the RPC says now is not what it refused for
        free = [what for what in chosen if what not in early]
        return RefusedError(
            "; ".join(f"{what} were paused lately: the next time from {moment(again[what])} on" for what in early),
            hint=f"hearth gov pause {' '.join(free)}" if free else f"after that: hearth gov pause {' '.join(early)}",
            code="PAUSED_LATELY",
            reason=reason_of(error),
            pausable_from=max(again[what] for what in early),
        )

    # ---- anybody ----

    def execute(self, change: str, *, print_tx: bool = False) -> GovAction:
        """Carry out a change that is due, whoever asks for it.

        Raises UsageError BAD_ID, NotFoundError NOT_FOUND, AMBIGUOUS, RefusedError NOT_DUE, CHANGE_OVER, and whatever
        the governed contract refuses: the change then stays.
        """
        market = self.session.market
        head = market.port.head()
        wanted, seen = self._find(change, head)
        name = "0x" + wanted.hex()
        if seen is None:
            raise NotFoundError(f"no log of {self.session.network.name} queues change {name}", hint=_STATUS)
        if seen.state == "executed":
            return _done("execute", f"change {name[:14]} was executed already", wanted)
        if seen.state == "dropped":
            raise _over(name, "was dropped")
        if seen.state == "lapsed":
            raise _over(name, f"could be executed until {moment(seen.due + LIFE)}")
        row = self._row(seen, head)
        if seen.state == "waiting":
            raise _early(row, head)
        sender = self._sender(None, "", print_tx=print_tx)
        call, key = market.calls.execute(seen.change), f"execute/{wanted.hex()}"
        try:
            report = self._act("execute", call, key, sender, row["text"], print_tx)
        except RefusedError as error:
            if reason_of(error) != _CHANGED_LATELY:
                raise
            raise _early({**row, "ready": max(seen.due, self._next_policy(head))}, head) from error
        return {**report, "change": name, "due": seen.due}

    def accept(self, what: Sequence[str], *, print_tx: bool = False) -> GovAction:
        """Take what was offered: "council" for this account, "posts" and "registrations" for the Steward.

        Raises ConfigError NOT_SEATED where the council's seat was offered to another account, or to none.
        """
        market = self.session.market
        if list(what) == ["council"]:
            offered = market.seats().offered_council
            if offered == ZERO_ADDRESS:
                raise ConfigError("the council's seat is offered to nobody", hint=_STATUS, code="NOT_SEATED")
            sender = self._sender((offered,), "who was offered the council's seat", print_tx=print_tx)
            call, about, chosen = market.calls.accept_council(), f"{sender} becomes the council", ["council"]
        else:
            chosen = _chosen(what, "accept")
            sender = self._sender(None, "", print_tx=print_tx)
            call = market.calls.steward_accept_governor(**dict.fromkeys(chosen, True))
            about = f"the Steward governs {' and '.join(chosen)}"
        key = f"accept/{'+'.join(chosen)}/{market.port.nonce(sender)}"
        return {**self._act("accept", call, key, sender, about, print_tx), "what": chosen}

    # ---- inside: what is refused before anything is signed ----

    def _refuse_idle(self, op: ChangeOp, word: int, seats: Seats, head: Block) -> None:
        """Refuse what would change nothing, where nothing that waits makes a difference. Raises BAD_CHANGE."""
        market = self.session.market
        now = {
            ChangeOp.SET_POLICY: lambda: market.policies(head.hash).word,
            ChangeOp.SET_MINIMUM_STAKE: lambda: int(market.immutable("NodeRegistry", "minimum_stake", head.hash)),
            ChangeOp.OFFER_COUNCIL: lambda: int(seats.council, 16),
            ChangeOp.SEAT_GUARDIAN: lambda: int(seats.guardian, 16),
        }.get(op)
        if now is None or now() != word:
            return
        if any(one.open and one.change.op is op for one in read_changes(market, head)[0]):
            return
        raise UsageError("that is so already: it would change nothing", hint=_STATUS, code="BAD_CHANGE")

    def _unused(self, op: ChangeOp, word: int, head: Block) -> tuple[Change, int]:
        """Return the change under the first salt that the Steward does not know, or that waits there, and its due time.

        The due time is 0 for one that is not queued. So the same command queues the same change once, and once more
        after it is over.
        """
        for salt in range(MAX_SALTS):
            change = Change(op, word, salt)
            state = self.session.market.change(change.id, head.hash)
            if state == 0 or state_of(state, head.timestamp) in ("waiting", "due"):
                return change, state
        raise ChainError(
            f"the RPC says that this change was queued {MAX_SALTS} times before", code="RPC_LIES", hint="hearth doctor"
        )

    def _require_bounds(self, change: Change, seats: Seats, head: Block) -> None:
        """Refuse a change that the governed contract would refuse, asked as its Steward. Raises OUT_OF_BOUNDS."""
        call = self._forwarded(change)
        if call is None:
            return
        market = self.session.market
        try:
            market.port.call(call, sender=self.session.network.steward)
        except RefusedError as error:
            if reason_of(error) == _CHANGED_LATELY:
                free = self._next_policy(head)
                if free > head.timestamp + seats.delay:
                    text = f"a policy was set within the last 24 hours: the next can be executed from {moment(free)} on"
                    self.session.tell("note", {"text": text})
                return
            raise RefusedError(
                f"nobody could execute that: {reason_of(error) or error.message}",
                hint=BOUNDS_HINT,
                code="OUT_OF_BOUNDS",
                reason=reason_of(error),
            ) from error
        except ChainError as error:
            if error.code != "RPC_UNSUPPORTED":
                raise
            self.session.tell("warning", {"text": f"its bounds are not checked: {error.message}"})

    def _next_policy(self, head: Block) -> int:
        """Return from when on Rules, which has just said that a policy was set lately, takes the next one."""
        free = next_policy_from(self.session.market, head)
        # Where nothing tells when that was: in a day at the latest.
        return free if free > head.timestamp else head.timestamp + POLICY_GRACE

    def _forwarded(self, change: Change) -> Call | None:
        """Return what the Steward will call, None where it changes only itself."""
        from hearth.protocol import words

        calls = self.session.market.calls
        match change.op:
            case ChangeOp.SET_POLICY:
                return calls.set_policy(words.unpack_policy(change.word))
            case ChangeOp.SET_MINIMUM_STAKE:
                return calls.set_minimum_stake(change.word)
            case ChangeOp.OFFER_POSTS:
                return calls.offer_governor(GOVERNED["posts"], change.address)
            case ChangeOp.OFFER_REGISTRATIONS:
                return calls.offer_governor(GOVERNED["registrations"], change.address)
            case ChangeOp.OFFER_COUNCIL | ChangeOp.SEAT_GUARDIAN:
                return None
        assert_never(change.op)

    def _warn_of_others(self, change: Change, head: Block) -> None:
        """Say that a policy is set whole: what another change that waits sets, this one would set back."""
        if change.op is not ChangeOp.SET_POLICY:
            return
        others = [one for one in read_changes(self.session.market, head)[0] if one.open and one.change.op is change.op]
        for one in others:
            if one.change.id != change.id:
                row = self._row(one, head)
                text = f"a policy is set whole: executed after {row['change'][:14]} ({row['text']}), this undoes that"
                self.session.tell("warning", {"text": text})

    # ---- inside: who signs ----

    def _seated(self, seats: Seats, *, print_tx: bool) -> str:
        return self._sender(seats.seated, "council or guardian", print_tx=print_tx)

    def _sender(self, allowed: Sequence[str] | None, role: str, *, print_tx: bool) -> str:
        """Return who signs: one of `allowed`, or with None anybody. Raises ConfigError NOT_SEATED.

        It is --account; else a key here that is allowed; else, where nothing is signed here, the first that is.
        """
        from hearth.chain.keys import list_keys

        session = self.session
        account = session.settings.account
        here = [key.address for key in list_keys(session.settings.keys_folder)]
        if print_tx and account is not None and account.startswith("0x"):
            address = recipient(account, session.network, why="nobody can sign as it")
        elif account is None and allowed is not None:
            own = next((seat for seat in allowed if seat in here), None)
            address = allowed[0] if own is None and print_tx else own or ""
        else:
            address = session.key().address
        if allowed is not None and address not in allowed:
            mine = f"and this account is {address}" if address else "and no key here is"
            raise ConfigError(
                f"{' and '.join(allowed)} {'is' if len(allowed) == 1 else 'are'} {role}, {mine}",
                hint="use --account NAME; or --print-tx, for a Safe or another machine",
                code="NOT_SEATED",
            )
        return address

    # ---- inside: sending ----

    def _act(
        self, action: str, call: Call, key: str, sender: str, about: str, print_tx: bool, *, needed: bool = False
    ) -> GovAction:
        """Simulate a call, ask, and send it once under its key; with `print_tx` return it instead.

        `needed` says that nothing is sent without an answer, also where there is no terminal to ask on.
        """
        session = self.session
        key = f"gov/{session.network.steward}/{key}"
        report: GovAction = {
            "schema": "hearth.action/1",
            "action": action,
            "text": about,
            "already_done": False,
            "dry_run": session.dry_run,
            "transactions": [],
        }
        session.market.port.call(call, sender=sender)
        if print_tx:
            return {**report, "prepared": Prepared(f"gov {action}", sender, call, 0, key).document(session.network)}
        if not session.dry_run:
            session.require_funds(sender, asset_units=0, gas=GOV_GAS, what=f"gov {action}")
            session.tell("confirm", {"text": f"{about}; as {sender}?", "needed": needed})
        with session.sender(of=sender) as held:
            return {**report, "transactions": [session.send(held, call, key)]}

    # ---- inside: changes ----

    def _find(self, text: str, head: Block) -> tuple[bytes, Seen | None]:
        """Return the id that a text begins, and the change where a log says what it is.

        Raises UsageError BAD_ID for what is no hex and for fewer than 4 digits, NotFoundError NOT_FOUND or AMBIGUOUS.
        """
        digits = text.lower().removeprefix("0x")
        if not digits or len(digits) > 64 or set(digits) - set("0123456789abcdef"):
            raise UsageError(f'"{text}" is no id of a change: 0x and up to 64 hex digits', hint=_STATUS, code="BAD_ID")
        if len(digits) < LEAST_DIGITS:
            what = f'"{text}" is too short: a change is named by its id or the first {LEAST_DIGITS} digits, or more'
            raise UsageError(what, hint=_STATUS, code="BAD_ID")
        market = self.session.market
        found = find_changes(market, digits, head)
        if len(found) == 1:
            return found[0].change.id, found[0]
        if found:
            shown = ", ".join("0x" + seen.change.id.hex()[: len(digits) + 6] for seen in found[:8])
            raise NotFoundError(
                f"0x{digits} is the start of {len(found)} changes: {shown}", hint=_STATUS, code="AMBIGUOUS"
            )
        if len(digits) == 64 and market.change(bytes.fromhex(digits), head.hash):
            return bytes.fromhex(digits), None
        raise NotFoundError(f"no change of {self.session.network.name} starts with 0x{digits}", hint=_STATUS)

    def _row(self, seen: Seen, head: Block) -> ChangeRow:
        market = self.session.market
        free = next_policy_from(market, head) if seen.change.op is ChangeOp.SET_POLICY else 0
        policy = market.policies(head.hash).policy
        return change_row(seen, policy, self.session.network.asset, free=free, now=head.timestamp)


def _chosen(what: Sequence[str], command: str) -> list[str]:
    """Return what of a market is meant, each once. Raises UsageError."""
    wrong = [one for one in what if one not in GOVERNED]
    if wrong or not what:
        said = f"{wrong[0]} is neither posts nor registrations" if wrong else "it names neither posts nor registrations"
        raise UsageError(said, hint=f"hearth gov {command} posts")
    return list(dict.fromkeys(what))


def _done(action: str, text: str, change: Change | bytes, due: int | None = None) -> GovAction:
    """Return the report of what the chain holds already."""
    report: GovAction = {
        "schema": "hearth.action/1",
        "action": action,
        "text": text,
        "already_done": True,
        "dry_run": False,
        "transactions": [],
        "change": "0x" + (change if isinstance(change, bytes) else change.id).hex(),
    }
    return report if due is None else {**report, "due": due}


def _early(row: ChangeRow, head: Block) -> RefusedError:
    """Return the refusal of a change that cannot be executed yet, with the second from which it can."""
    name, ready = row["change"][:14], row["ready"]
    why = "" if ready == row["due"] else ", 24 hours after the last policy was set"
    if ready >= row["until"]:
        return _over(
            row["change"], f"cannot be executed before {moment(ready)}{why}, and lapses {moment(row['until'])}"
        )
    return RefusedError(
        f"change {name} can be executed from {moment(ready)} on{why}, in {format_duration(ready - head.timestamp)}",
        hint=f"after that: hearth gov execute {name}",
        code="NOT_DUE",
        due=row["due"],
        ready=ready,
    )


def _over(name: str, why: str) -> RefusedError:
    return RefusedError(
        f"change {name[:14]} {why}: it is over",
        hint="hearth gov queue --help says how to announce it anew",
        code="CHANGE_OVER",
    )


def _or_none(address: str) -> str | None:
    return None if address == ZERO_ADDRESS else address
