"""Changes of a market's defaults as people write and read them, and those that its Steward tells of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from hearth.base.errors import UsageError
from hearth.client.governance.parameters import AMOUNTS, POLICY_UNITS, SHARES, SPANS, in_words
from hearth.client.money import recipient
from hearth.market.changes import DROPPED, EXECUTED, LIFE, POLICY_GRACE, Change, ChangeOp
from hearth.market.events import MAX_TIME
from hearth.protocol.units import format_amount, parse_amount, parse_duration

if TYPE_CHECKING:
    from hearth.chain.port import Block
    from hearth.client.reports import ChangedValue, ChangeRow, Plain
    from hearth.market.events import ChangeQueued, PolicyChanged
    from hearth.market.network import Network
    from hearth.market.reads import Market
    from hearth.protocol.types import Policy
    from hearth.protocol.units import Asset

ChangeState = Literal["waiting", "due", "lapsed", "dropped", "executed"]
"""What became of a change: "due" can be executed now, "lapsed" nobody executed in time."""
BOUNDS: Final[dict[str, tuple[int, int | str]]] = {
    "fee_bps": (0, 1_000),
    "min_bond_bps": (1, 65_535),
    "claim_ramp": (1, 3_600),
    "fresh_delay": (0, "min_challenge_window"),
    "fetch_floor": (1, 3_600),
    "min_match_window": (1, 300),
    "ack_time": (2, 600),
    "open_claim_after": (2, 3_600),
    "cancel_notice": (0, 4_095),
    "grace_floor": (1, 3_600),
    "start_fee_seconds": (0, 4_095),
    "min_challenge_window": (1, 604_800),
    "key_timeout": (0, 65_535),
    "min_checkpoint": (0, 1_023),
}
"""The least and the most of a share or a span, or the field that is its most. Source: protocol.md "Parameters"."""
KINDS: Final = {
    ChangeOp.SET_POLICY: "policy",
    ChangeOp.SET_MINIMUM_STAKE: "minimum-stake",
    ChangeOp.OFFER_POSTS: "governor posts",
    ChangeOp.OFFER_REGISTRATIONS: "governor registrations",
    ChangeOp.OFFER_COUNCIL: "council",
    ChangeOp.SEAT_GUARDIAN: "guardian",
}
"""How each operation is written behind `hearth gov queue`."""
OVER: Final = 10
"""Changes that are over and shown: the newest."""
MAX_LOOKED: Final = 10_000
"""Changes that may still wait and are looked up, those due first: a provider's logs could name any number.

To hide a change, as many others have to be queued before it: some 500 million gas.
"""
_QUEUE: Final = "hearth gov queue --help"
BOUNDS_HINT: Final = 'docs/protocol.md, "Parameters", has the bounds; hearth net params'


@dataclass(frozen=True, slots=True)
class Seen:
    """A change that the Steward holds: when it is or was due, what became of it, and the block that queued it."""

    change: Change
    due: int
    state: ChangeState
    block: int

    @property
    def open(self) -> bool:
        """Say whether it can be executed, now or later."""
        return self.state in ("waiting", "due")


# ---- what people write ----


def read_change(kind: str, arguments: Sequence[str], policy: Policy, network: Network) -> tuple[ChangeOp, int]:
    """Return the operation and the word that a change's words mean; a policy's other fields stay those of `policy`.

    Raises UsageError BAD_CHANGE, BAD_AMOUNT, BAD_DURATION, BAD_ADDRESS.
    """
    if kind == "policy":
        return ChangeOp.SET_POLICY, _policy_word(arguments, policy, network.asset)
    if kind == "governor":
        if len(arguments) != 2 or arguments[0] not in ("posts", "registrations"):
            raise _bad("a governor is of posts or of registrations", "hearth gov queue governor posts ADDRESS")
        op = ChangeOp.OFFER_POSTS if arguments[0] == "posts" else ChangeOp.OFFER_REGISTRATIONS
        return op, _address_word(arguments[1], network)
    if kind not in ("minimum-stake", "council", "guardian"):
        raise _bad(f"{kind} is nothing that a council changes: {', '.join(KINDS.values())}", _QUEUE)
    if len(arguments) != 1:
        raise _bad(f"{kind} takes one value", _QUEUE)
    if kind == "minimum-stake":
        return ChangeOp.SET_MINIMUM_STAKE, parse_amount(arguments[0], network.asset)
    op = ChangeOp.OFFER_COUNCIL if kind == "council" else ChangeOp.SEAT_GUARDIAN
    return op, _address_word(arguments[0], network)


def _policy_word(arguments: Sequence[str], policy: Policy, asset: Asset) -> int:
    from hearth.protocol import words

    values: dict[str, int] = {}
    for argument in arguments:
        name, sign, text = argument.partition("=")
        if not sign or name not in (*AMOUNTS, *SHARES, *SPANS):
            raise _bad(f"{argument!r} is not FIELD=VALUE of {', '.join((*SHARES, *AMOUNTS, *SPANS))}", _QUEUE)
        if name in values:
            raise _bad(f"{name} is named twice", _QUEUE)
        values[name] = _value(name, text, asset)
    if not values:
        raise _bad("it names no field of the policy", "hearth gov queue policy fee_bps=300")
    for name, value in values.items():
        _require_room(name, value, asset)
    return words.pack_policy(replace(policy, **values))


def _require_room(name: str, value: int, asset: Asset) -> None:
    """Refuse a value that no policy's word has room for; Rules refuses the rest of what is out of bounds."""
    from hearth.protocol import words

    if name in AMOUNTS:
        try:
            words.encode_amount(value)
        except ValueError as error:
            text = f"{name} is an amount of three digits, not {format_amount(value, asset)}"
            raise _bad(text, f"write it with three digits; {BOUNDS_HINT}") from error
    elif value >> words.width_of(words.POLICY, name):
        least, most = (one if isinstance(one, str) else _shown(name, one, asset) for one in BOUNDS[name])
        raise _bad(f"{name} is from {least} to {most}, not {_shown(name, value, asset)}", BOUNDS_HINT)


def _value(name: str, text: str, asset: Asset) -> int:
    if name in AMOUNTS:
        return parse_amount(text, asset)
    if name in SPANS:
        return parse_duration(text)
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise _bad(f"{name} is a whole number of 1/10,000, not {text!r}", f"{name}=500 is 5 %")
    return int(text)


def _address_word(text: str, network: Network) -> int:
    return 0 if text == "none" else int(recipient(text, network, why="nobody could act as it"), 16)


def _bad(message: str, hint: str) -> UsageError:
    return UsageError(message, hint=hint, code="BAD_CHANGE")


# ---- what people read ----


def changed_values(change: Change, policy: Policy | None, asset: Asset) -> list[ChangedValue]:
    """Return which fields of `policy` a change of the policy replaces; none for other changes, or without a policy."""
    from hearth.protocol import words

    if change.op is not ChangeOp.SET_POLICY or policy is None:
        return []
    before, after = asdict(policy), asdict(words.unpack_policy(change.word))
    return [
        {
            "name": name,
            "before": _number(before[name]),
            "after": _number(after[name]),
            "before_text": _shown(name, before[name], asset),
            "after_text": _shown(name, after[name], asset),
        }
        for name in after
        if before[name] != after[name]
    ]


def policy_values(change: Change, asset: Asset) -> tuple[tuple[str, str], ...]:
    """Return all that a change of the policy sets, in the policy's order, by the change alone; nothing for others."""
    from hearth.protocol import words

    if change.op is not ChangeOp.SET_POLICY:
        return ()
    return tuple((name, _shown(name, value, asset)) for name, value in asdict(words.unpack_policy(change.word)).items())


def _number(value: int) -> Plain:
    return str(value) if value > 2**53 else value


def _shown(name: str, value: int, asset: Asset) -> str:
    return in_words(POLICY_UNITS[name], value, asset)


def ready_at(seen: Seen, free: int) -> int:
    """Return the first second at which a change can be executed, where Rules takes another policy from `free` on."""
    return max(seen.due, free) if seen.open and seen.change.op is ChangeOp.SET_POLICY else seen.due


def change_row(seen: Seen, policy: Policy | None, asset: Asset, *, free: int, now: int) -> ChangeRow:
    """Return a change for reports at the second `now`.

    `policy` is the one that a change of it replaces, and `free` the second from which Rules takes another one.
    """
    change, ready = seen.change, ready_at(seen, free)
    values = changed_values(change, policy, asset)
    what = ", ".join(f"{row['name']} {row['before_text']} -> {row['after_text']}" for row in values)
    if change.op is ChangeOp.SET_POLICY and policy is not None:
        text = f"policy: {what or ('as it was before' if seen.state == 'executed' else 'as it is today')}"
    else:
        text = change.in_words(asset)
    return {
        "change": "0x" + change.id.hex(),
        "kind": KINDS[change.op],
        "word": f"{change.word:#066x}",
        "salt": str(change.salt),
        "state": "waiting" if seen.open and now < ready else seen.state,
        "block": seen.block,
        "due": seen.due,
        "ready": ready,
        "until": seen.due + LIFE,
        "values": values,
        "text": text,
    }


# ---- what the chain says ----


def read_changes(market: Market, head: Block) -> tuple[list[Seen], int]:
    """Return what waits and the newest that are over, oldest first, and how many others were not looked at.

    They are found in the Steward's logs, and each is believed as the Steward holds it at that block; a log of a change
    that it does not hold is a stray. Of those that a log calls over, only the newest are looked up: a provider can
    leave logs out as well, and makes none wait by making one up.
    """
    queued, ended = _logged(market, head)
    over = [name for name, event in queued.items() if name in ended or head.timestamp >= event.due + LIFE]
    past = set(over)
    young = sorted((name for name in queued if name not in past), key=lambda name: queued[name].due)
    looked = {*young[:MAX_LOOKED], *over[-OVER:]}
    found = [seen for name, event in queued.items() if name in looked for seen in _seen(market, event, head)]
    newest = [seen.change.id for seen in found if not seen.open][-OVER:]
    return [seen for seen in found if seen.open or seen.change.id in newest], len(queued) - len(looked)


def find_changes(market: Market, digits: str, head: Block) -> list[Seen]:
    """Return the changes, of all that were ever queued, whose ids begin with these hex digits, oldest first."""
    queued, _ = _logged(market, head)
    begun = [event for name, event in queued.items() if name.hex().startswith(digits)][:MAX_LOOKED]
    return [seen for event in begun for seen in _seen(market, event, head)]


def _logged(market: Market, head: Block) -> tuple[dict[bytes, ChangeQueued], set[bytes]]:
    """Return the changes that logs queue, by id and oldest first, and the ids of those that logs call over."""
    from hearth.market.events import ChangeDropped, ChangeExecuted, ChangeQueued, topic_of

    network = market.network
    topics = [topic_of(ChangeQueued), topic_of(ChangeDropped), topic_of(ChangeExecuted)]
    logs = market.port.logs([network.steward], (topics,), from_block=network.deploy_block, to_block=head.number)
    queued: dict[bytes, ChangeQueued] = {}
    ended: set[bytes] = set()
    for event in market.events_in(logs):
        if isinstance(event, ChangeDropped | ChangeExecuted):
            ended.add(event.change)
        elif not isinstance(event, ChangeQueued):
            continue
        elif event.change in queued:
            market.strays.note(event.log, f"change 0x{event.change.hex()[:12]} is queued already")
        else:
            queued[event.change] = event
    return queued, ended


def _seen(market: Market, event: ChangeQueued, head: Block) -> Iterator[Seen]:
    """Yield the change that a log queued as the Steward holds it, nothing where it does not."""
    change = Change(ChangeOp(event.op), event.word, event.salt)
    state = market.change(change.id, head.hash)
    if state == 0 or state > MAX_TIME:
        why = "was never queued" if state == 0 else "is due at a time beyond reason"
        market.strays.note(event.log, f"change 0x{change.id.hex()[:12]} {why}")
        return
    if state > EXECUTED and state != event.due:
        market.strays.note(event.log, f"change 0x{change.id.hex()[:12]} is due at {state}, not at {event.due}")
    due = state if state > EXECUTED else event.due
    yield Seen(change, due, state_of(state, head.timestamp), event.log.block_number)


def state_of(state: int, now: int) -> ChangeState:
    """Return what became of a change of which the Steward holds `state`, which is not 0."""
    if state in (DROPPED, EXECUTED):
        return "dropped" if state == DROPPED else "executed"
    if now < state:
        return "waiting"
    return "due" if now < state + LIFE else "lapsed"


def _policies_set(market: Market, head: Block) -> list[PolicyChanged]:
    """Return the events of each policy that replaced another one, oldest first, as Rules' logs tell them."""
    from hearth.market.events import PolicyChanged, topic_of

    network = market.network
    logs = market.port.logs(
        [network.rules], (topic_of(PolicyChanged),), from_block=network.deploy_block, to_block=head.number
    )
    return [
        event
        for event in market.events_in(logs)
        # The first policy replaced none, and one that is dropped is told of without an end.
        if isinstance(event, PolicyChanged) and event.previous and event.until
    ]


def replaced_policies(market: Market, head: Block) -> dict[int, Policy]:
    """Return by word of each policy that was set the one that it replaced at last, as Rules' logs tell it."""
    from hearth.protocol import words

    return {event.policy: words.unpack_policy(event.previous) for event in _policies_set(market, head)}


def next_policy_from(market: Market, head: Block) -> int:
    """Return the second from which Rules takes another policy: 24 h after it took the last one, 0 for at any time.

    It is when the replaced policy ends. Where that one was dropped, Rules no longer says when, and its logs do.
    """
    until = market.policies(head.hash).until
    until = until or max((event.until for event in _policies_set(market, head)), default=0)
    # None was set later than now, whatever a provider says.
    return min(until, head.timestamp + POLICY_GRACE)


def change_rows(market: Market, head: Block, seen: Iterable[Seen]) -> list[ChangeRow]:
    """Return changes for reports: a policy's fields against those it replaced, or would replace now."""
    asset, policy = market.network.asset, market.policies(head.hash).policy
    shown = list(seen)
    waits = any(one.open and one.change.op is ChangeOp.SET_POLICY for one in shown)
    free = next_policy_from(market, head) if waits else 0
    executed = [one for one in shown if one.state == "executed" and one.change.op is ChangeOp.SET_POLICY]
    replaced = replaced_policies(market, head) if executed else {}
    against = [replaced.get(one.change.word) if one in executed else policy for one in shown]
    return [
        change_row(one, before, asset, free=free, now=head.timestamp)
        for one, before in zip(shown, against, strict=True)
    ]
