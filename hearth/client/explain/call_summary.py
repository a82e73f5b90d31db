"""What a call does, in words that need nothing else; whatever it names stands there whole.

Mirrors web/src/core/call-summary.ts, where the page tells a file's calls; `tests/web/vectors/call_summary.py` holds
both to the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hearth.base.text import one_line
from hearth.client.explain.calldata import Read, job_in, terms_in
from hearth.client.governance.changes import policy_values
from hearth.client.judges import judge_of
from hearth.client.views import job_hex, moment, verification
from hearth.market.calls import UpkeepOp
from hearth.market.changes import Change, ChangeOp
from hearth.market.network import Network
from hearth.protocol import formulas, parents, words
from hearth.protocol.types import SENTINEL, ZERO_HASH, Terms
from hearth.protocol.units import Asset, format_amount, format_duration, format_rate
from hearth.storage import canonical

Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CallSummary:
    """One sentence, and its arguments as names and values. `job` is the job that it is about."""

    what: str
    rows: Rows = ()
    job: bytes | None = None


def summarize(call: Read, network: Network) -> CallSummary:
    """Say what a call does. Raises ValueError for what no contract takes."""
    return SUMMARIES[call.contract, call.function](call, network)


_Summarizer = Callable[[Read, Network], CallSummary]


def _post(call: Read, network: Network) -> CallSummary:
    terms, asset, job = terms_in(call.arguments), network.asset, job_in(call.arguments, network)
    listed = tuple(call.arguments["parents"])
    if parents.parents_hash(listed) != terms.parents_hash:
        raise ValueError("its job waits for other jobs than it names")
    waits = [f"{job_hex(one.job)} ({one.condition.name.lower()})" for one in parents.unpack_parents(listed)]
    units = "one unit" if terms.units == 1 else f"{terms.units} units"
    takes = format_amount(formulas.escrow_at_post(terms), asset)
    return CallSummary(
        f"Post a job of {units}, which takes {takes}; what is not used comes back",
        (
            ("job", job_hex(job)),
            ("spec", str(canonical.cid_of_digest(terms.spec))),
            ("pays at most", f"{format_rate(terms.ceiling, asset)}, billed {terms.billing.name.lower()}"),
            ("time", f"{format_duration(terms.max_seconds)} a unit, {_attempts(terms)}"),
            *_keeper_rows(terms, asset),
            ("deadline", moment(terms.deadline)),
            ("checked by", verification(terms, judge_of(terms, network))),
            ("waits for", ", ".join(waits) or "nothing"),
        ),
        job,
    )


def _attempts(terms: Terms) -> str:
    return "1 attempt" if terms.max_attempts == 1 else f"{terms.max_attempts} attempts"


def _keeper_rows(terms: Terms, asset: Asset) -> Iterator[tuple[str, str]]:
    """Yield what is paid to whoever carries a job on, who may be anybody."""
    fee = format_amount(terms.keeper_fee, asset)
    most = format_amount(terms.leases * terms.max_attempts * terms.keeper_fee, asset)
    yield "keeper fees", f"at most {most}: {_attempts(terms)} a unit, of {fee}"
    if terms.parents_hash != ZERO_HASH:
        yield "for its start", f"{fee} for whoever starts it"


def _of_unit(say: Callable[[str], str]) -> _Summarizer:
    def summary(call: Read, network: Network) -> CallSummary:
        index, job = call.arguments["index"], job_in(call.arguments, network)
        unit = "the units that nobody took" if index == SENTINEL else f"unit {index}"
        return CallSummary(say(unit), (("job", job_hex(job)),), job)

    return summary


def _of_node(say: Callable[[str, Mapping[str, Any], Asset], str], *named: str) -> _Summarizer:
    def summary(call: Read, network: Network) -> CallSummary:
        what = say(f"node {call.arguments['node']}", call.arguments, network.asset)
        return CallSummary(what, tuple((name, str(call.arguments[name]).lower()) for name in named))

    return summary


def _register(call: Read, network: Network) -> CallSummary:
    what = f"Register a worker with a stake of {format_amount(call.arguments['stake'], network.asset)}"
    offered = _offer_rows(call, network.asset, with_ask=True)
    return CallSummary(what, (("operator", str(call.arguments["operator"]).lower()), *offered))


def _update_offer(call: Read, network: Network) -> CallSummary:
    what = f"Replace what node {call.arguments['node']} offers; its ask stays"
    return CallSummary(what, tuple(_offer_rows(call, network.asset, with_ask=False)))


def _offer_rows(call: Read, asset: Asset, *, with_ask: bool) -> Iterator[tuple[str, str]]:
    """Yield all that is offered and said of the machine; the ask of a node that is there has a call of its own."""
    offer = words.unpack_offer(call.arguments["offer"])
    if with_ask:
        yield "ask", format_rate(offer.ask, asset)
    lanes = words.unpack(words.OFFER, call.arguments["offer"])
    sizes = ((name, getattr(offer, name)) for name in lanes if name != "ask")
    yield "offer", ", ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in sizes)
    yield "manifest", "0x" + call.arguments["manifest"].hex()
    if call.document is None:
        yield "manifest: document", _NO_DOCUMENT
        return
    for key, value in canonical.decode(call.document).items():
        values = value if key == "gateways" and isinstance(value, list) and value else [value]
        for place, one in enumerate(values):
            name = key if len(values) == 1 else f"{key} {place + 1}"
            yield f"manifest: {one_line(name)}", one_line(_in_words(one))


_NO_DOCUMENT: Final = "not in this call: whoever has one of this digest says what the node says of itself"


def _number(value: int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(int(value))


def _in_words(value: Any) -> str:
    if value in ("", []):
        return "none"
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _of_change(say: str) -> _Summarizer:
    def summary(call: Read, network: Network) -> CallSummary:
        given = call.arguments
        change = Change(ChangeOp(int(given["op"])), int(given["word"]), int(given["salt"]))
        values = policy_values(change, network.asset)
        return CallSummary(f"{say}: {change.in_words(network.asset)}", (("change", "0x" + change.id.hex()), *values))

    return summary


def _governed(say: Callable[[str], str]) -> _Summarizer:
    def summary(call: Read, _: Network) -> CallSummary:
        named = [one for one in ("posts", "registrations") if call.arguments[one] is True]
        return CallSummary(say(" and ".join(named) or "nothing"))

    return summary


def _withdraw(call: Read, network: Network) -> CallSummary:
    amount, to = format_amount(call.arguments["amount"], network.asset), str(call.arguments["to"]).lower()
    own = " to the account itself" if to == call.sender else ""
    return CallSummary(f"Withdraw {amount} of credit in Escrow{own}", (("to", to),))


def _approve(call: Read, network: Network) -> CallSummary:
    spender, amount = str(call.arguments["spender"]).lower(), format_amount(call.arguments["amount"], network.asset)
    known = {address: name for name, address in network.contracts.items()}
    return CallSummary(f"Let {known.get(spender, 'another account')} take exactly {amount}", (("spender", spender),))


def _added(call: Read, network: Network) -> CallSummary:
    added, job = format_duration(call.arguments["seconds"]), job_in(call.arguments, network)
    return CallSummary(f"Give unit {call.arguments['index']} of a job {added} more", (("job", job_hex(job)),), job)


def _unlock(call: Read, network: Network) -> CallSummary:
    job = job_in(call.arguments, network)
    return CallSummary("Start a job whose wait has ended, or refund it", (("job", job_hex(job)),), job)


def _upkeep(call: Read, network: Network) -> CallSummary:
    """Tell a keeper's work of several kinds, each piece as a row."""
    rows = []
    for op, terms, index, count in call.arguments["candidates"]:
        kind = UpkeepOp(op)
        if kind is UpkeepOp.LIVENESS:
            of = f"nodes {index} to {index + count - 1}"
        else:
            of = f"unit {index} of {job_hex(formulas.job_id_of_words(network.job_chain_id, network.jobs, terms))}"
        rows.append((kind.name.lower(), of))
    return CallSummary(f"Do a keeper's work, {len(rows)} of what is due", tuple(rows))


SUMMARIES: Final[Mapping[tuple[str, str], _Summarizer]] = {
    ("JobRegistry", "post"): _post,
    ("JobRegistry", "cancel"): _of_unit(lambda unit: f"Cancel {unit} of a job"),
    ("JobRegistry", "accept"): _of_unit(lambda unit: f"Accept the result of {unit} of a job, which pays it at once"),
    ("NodeRegistry", "register"): _register,
    ("NodeRegistry", "update_offer"): _update_offer,
    ("NodeRegistry", "add_stake"): _of_node(
        lambda node, given, asset: f"Add {format_amount(given['amount'], asset)} to the stake of {node}", "owner"
    ),
    ("NodeRegistry", "set_ask"): _of_node(
        lambda node, given, asset: f"Ask {format_rate(given['ask'], asset)} for {node}, after its notice"
    ),
    ("NodeRegistry", "set_operator"): _of_node(
        lambda node, *_: f"Offer {node} to another operator, whose first beat takes it over", "operator"
    ),
    ("NodeRegistry", "offer_owner"): _of_node(
        lambda node, *_: f"Offer {node} to another owner, who must accept it", "owner"
    ),
    ("NodeRegistry", "accept_owner"): _of_node(lambda node, *_: f"Become the owner of {node}"),
    ("NodeRegistry", "exit_start"): _of_node(lambda node, *_: f"Start the exit of {node}"),
    ("NodeRegistry", "exit_cancel"): _of_node(lambda node, *_: f"Stay with {node} after all"),
    ("NodeRegistry", "exit_finish"): _of_node(
        lambda node, *_: f"Finish the exit of {node}: its stake becomes its owner's credit"
    ),
    ("Steward", "queue"): _of_change("Announce a change, which anybody can carry out after its delay"),
    ("Steward", "execute"): _of_change("Carry out a change"),
    ("Steward", "drop"): lambda call, _: CallSummary(
        "Take a queued change back, for good", (("change", "0x" + call.arguments["change"].hex()),)
    ),
    ("Steward", "drop_previous_policy"): lambda *_: CallSummary(
        "Take posts under the current policy only, from now on"
    ),
    ("Steward", "pause"): _governed(lambda what: f"Stop new {what} for 7 days"),
    ("Steward", "accept_council"): lambda *_: CallSummary("Become the council"),
    ("Steward", "accept_governor"): _governed(lambda what: f"Let the Steward take the governor's rights over {what}"),
    ("Escrow", "withdraw"): _withdraw,
    ("token", "approve"): _approve,
    ("JobRegistry", "top_up"): _added,
    ("JobRegistry", "settle"): _of_unit(lambda unit: f"Settle {unit} of a job, which pays its worker"),
    ("JobRegistry", "close"): _of_unit(lambda unit: f"Close {unit} of a job, whose notice is over"),
    ("JobRegistry", "reclaim"): _of_unit(lambda unit: f"Take {unit} of a job from a worker that is late or silent"),
    ("JobRegistry", "expire"): _of_unit(lambda unit: f"End {unit} of a job, for which no time is left"),
    ("JobRegistry", "unlock"): _unlock,
    ("NodeRegistry", "check_liveness"): lambda call, _: CallSummary(
        "Record that nodes are silent", (("nodes", ", ".join(str(one) for one in call.arguments["nodes"])),)
    ),
    ("Lens", "performUpkeep"): _upkeep,
}
