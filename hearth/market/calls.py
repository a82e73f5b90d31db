"""Builders of every call that a market takes.

They return `Call` values, which the one transaction path (hearth.chain.tx) simulates and sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, Final

from hearth.chain.port import Call
from hearth.market.abi import Codec, codec
from hearth.market.changes import Change
from hearth.market.contracts import CONTRACTS
from hearth.market.network import Network
from hearth.protocol import formulas, words
from hearth.protocol.attest import Signature
from hearth.protocol.types import (
    ZERO_ADDRESS,
    ZERO_HASH,
    JobId,
    NodeId,
    Offer,
    Outcome,
    Policy,
    Terms,
    Unit,
)
from hearth.protocol.units import Asset
from hearth.protocol.words import TermsWords

_NO_TERMS: Final[TermsWords] = (0, ZERO_HASH, 0, 0, 0, 0, 0, 0, ZERO_HASH)
_OWNER, _SPENDER, _TO, _AMOUNT = (
    {"name": name, "type": kind}
    for name, kind in (("owner", "address"), ("spender", "address"), ("to", "address"), ("amount", "uint256"))
)
_ERC20: Final[Mapping[str, tuple[tuple[Mapping[str, str], ...], str, str]]] = {
    "balanceOf": ((_OWNER,), "view", "uint256"),
    "allowance": ((_OWNER, _SPENDER), "view", "uint256"),
    "decimals": ((), "view", "uint8"),
    "approve": ((_SPENDER, _AMOUNT), "nonpayable", "bool"),
    "transfer": ((_TO, _AMOUNT), "nonpayable", "bool"),
}
"""What EIP-20 says of its functions, but for the arguments' names: arguments, mutability and answer."""
TOKEN_ABI: Final[tuple[Mapping[str, Any], ...]] = tuple(
    {
        "type": "function",
        "name": name,
        "stateMutability": mutability,
        "inputs": list(inputs),
        "outputs": [{"name": "", "type": answer}],
    }
    for name, (inputs, mutability, answer) in _ERC20.items()
)


class UpkeepOp(IntEnum):
    """What a piece of upkeep does."""

    SETTLE = 1
    CLOSE = 2
    RECLAIM = 3
    EXPIRE = 4
    LIVENESS = 5


@dataclass(frozen=True, slots=True)
class Upkeep:
    """One piece of upkeep: a unit of `terms`, or for LIVENESS the nodes index .. index + count - 1 (terms None)."""

    op: UpkeepOp
    terms: TermsWords | None
    index: int
    count: int = 0


class Calls:
    """Build every call that a market takes. Amounts are base units; a `payee` of None is the sender."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._native = network.asset.address is None

    def _build(self, contract: str, name: str, *args: Any, value: int = 0) -> Call:
        data = codec(contract).encode(name, *args)
        return Call(
            self._network.contracts[contract], data, value if self._native else 0, f"{CONTRACTS[contract]}.{name}"
        )

    # ---- submitters ----

    def post(self, terms: Terms, parents: Sequence[bytes] = ()) -> Call:
        """Post a job; the value funds it exactly."""
        value = formulas.escrow_at_post(terms)
        return self._build("JobRegistry", "post", packed_terms(terms), list(parents), value=value)

    def accept(self, terms: Terms | TermsWords, index: int) -> Call:
        """Accept a submitted result."""
        return self._build("JobRegistry", "accept", packed_terms(terms), index)

    def cancel(self, terms: Terms | TermsWords, index: int) -> Call:
        """Cancel a unit, or with ALL (`SENTINEL`) the untouched rest of an array."""
        return self._build("JobRegistry", "cancel", packed_terms(terms), index)

    def top_up(self, terms: Terms, index: int, unit: Unit, seconds: int) -> Call:
        """Give a running metered unit, as it is now, `seconds` more; the value funds what its price grows by."""
        value = formulas.top_up_amount(terms, unit, seconds)
        return self._build("JobRegistry", "top_up", packed_terms(terms), index, seconds, value=value)

    # ---- operators ----

    def ack(self, terms: Terms | TermsWords, index: int, session_key: bytes = ZERO_HASH, resume_from: int = 0) -> Call:
        """Take the unit that the node won; `resume_from` is the attempt whose kept checkpoint it goes on from."""
        return self._build("JobRegistry", "ack", packed_terms(terms), index, session_key, resume_from)

    def claim(
        self,
        terms: Terms | TermsWords,
        index: int,
        node: NodeId,
        session_key: bytes = ZERO_HASH,
        resume_from: int = 0,
    ) -> Call:
        """Take an open unit; `SENTINEL` takes an array's next untouched one."""
        return self._build("JobRegistry", "claim", packed_terms(terms), index, node, session_key, resume_from)

    def checkpoint(self, job_id: JobId, index: int, root: bytes) -> Call:
        """Name the files of which another attempt can resume a running unit: their UnixFS root's digest."""
        return self._build("JobRegistry", "checkpoint", job_id, index, root)

    def finish(
        self,
        terms: Terms | TermsWords,
        index: int,
        result: bytes,
        report: bytes,
        outcome: Outcome,
        used: int = 0,
        *,
        claims: bool = False,
        session_key: bytes = ZERO_HASH,
    ) -> Call:
        """Submit and settle a result at once, and with `claims` take the array's next untouched unit, if it can be."""
        unit = (packed_terms(terms), index)
        said = (result, report, int(outcome), used)
        return self._build("JobRegistry", "finish", *unit, *said, claims, session_key)

    def submit(self, job_id: JobId, index: int, result: bytes, report: bytes, outcome: Outcome, used: int = 0) -> Call:
        """Submit a result; `used` is fuel seconds, at least 1 where the job bills fuel."""
        return self._build("JobRegistry", "submit", job_id, index, result, report, int(outcome), used)

    def decline(self, terms: Terms | TermsWords, index: int, outcome: Outcome, report: bytes = ZERO_HASH) -> Call:
        """Give a unit back for a fault of the job, while that is found out."""
        return self._build("JobRegistry", "decline", packed_terms(terms), index, int(outcome), report)

    def give_up(self, terms: Terms | TermsWords, index: int, report: bytes = ZERO_HASH) -> Call:
        """Give a unit back that will have no result, for a part of the bond."""
        return self._build("JobRegistry", "give_up", packed_terms(terms), index, report)

    # ---- anyone ----

    def propose(self, terms: Terms | TermsWords, index: int, node: NodeId, payee: str | None = None) -> Call:
        """Propose a node for a unit."""
        return self._build("JobRegistry", "propose", packed_terms(terms), index, node, _payee(payee))

    def settle(self, terms: Terms | TermsWords, index: int, payee: str | None = None) -> Call:
        """Pay a submitted unit."""
        return self._build("JobRegistry", "settle", packed_terms(terms), index, _payee(payee))

    def settle_batch(self, items: Iterable[tuple[Terms | TermsWords, int]], payee: str | None = None) -> Call:
        """Pay up to 64 submitted units."""
        packed = [(packed_terms(terms), index) for terms, index in items]
        return self._build("JobRegistry", "settle_batch", packed, _payee(payee))

    def confirm(
        self,
        terms: Terms | TermsWords,
        index: int,
        keys: Sequence[str],
        quorum: int,
        signatures: Sequence[Signature],
        payee: str | None = None,
    ) -> Call:
        """Pay a submitted unit whose result enough attesters signed."""
        packed = packed_terms(terms)
        return self._build("Attesters", "confirm", packed, index, keys, quorum, signatures, _payee(payee))

    def close(self, terms: Terms | TermsWords, index: int, payee: str | None = None) -> Call:
        """End a unit whose notice ran out."""
        return self._build("JobRegistry", "close", packed_terms(terms), index, _payee(payee))

    def reclaim(self, terms: Terms | TermsWords, index: int, payee: str | None = None) -> Call:
        """Take a unit from a node that is late or dead."""
        return self._build("JobRegistry", "reclaim", packed_terms(terms), index, _payee(payee))

    def expire(self, terms: Terms | TermsWords, index: int, payee: str | None = None) -> Call:
        """Refund a unit that can no longer be run in time, or with ALL the untouched rest of an array."""
        return self._build("JobRegistry", "expire", packed_terms(terms), index, _payee(payee))

    def unlock(self, terms: Terms | TermsWords, parents: Sequence[bytes], payee: str | None = None) -> Call:
        """Open a job whose parents ended as asked, or refund it; `parents` as posted."""
        return self._build("JobRegistry", "unlock", packed_terms(terms), list(parents), _payee(payee))

    def check_liveness(self, nodes: Sequence[NodeId], payee: str | None = None) -> Call:
        """Record that nodes are silent."""
        return self._build("NodeRegistry", "check_liveness", list(nodes), _payee(payee))

    # ---- owners and operators of nodes ----

    def register(self, operator: str, offer: Offer, manifest: bytes, stake: int, document: bytes = b"") -> Call:
        """Register a node with its stake.

        `manifest` is the digest of its `document`, which the call carries behind its arguments, for readers alone.
        """
        sizes = words.pack_offer(offer)
        return _carrying(
            document, self._build("NodeRegistry", "register", operator, sizes, manifest, stake, value=stake)
        )

    def add_stake(self, node: NodeId, owner: str, amount: int) -> Call:
        """Add stake to a node of this owner; refused where the id is another's, as after a reorganisation."""
        return self._build("NodeRegistry", "add_stake", node, owner, amount, value=amount)

    def update_offer(self, node: NodeId, offer: Offer, manifest: bytes, document: bytes = b"") -> Call:
        """Replace an idle node's offer, its ask aside: that has its own call and its own notice.

        `manifest` is the digest of its `document`, which the call carries as that of `register` does.
        """
        sizes = words.pack_offer(replace(offer, ask=0, pending=False))
        return _carrying(document, self._build("NodeRegistry", "update_offer", node, sizes, manifest))

    def set_ask(self, node: NodeId, ask: int) -> Call:
        """Change a node's ask after its notice."""
        return self._build("NodeRegistry", "set_ask", node, ask)

    def set_operator(self, node: NodeId, operator: str) -> Call:
        """Offer a node to another operator, whose first beat takes it over; naming the present one takes that back."""
        return self._build("NodeRegistry", "set_operator", node, operator)

    def offer_owner(self, node: NodeId, owner: str) -> Call:
        """Offer a node to another owner."""
        return self._build("NodeRegistry", "offer_owner", node, owner)

    def accept_owner(self, node: NodeId) -> Call:
        """Accept an offered node."""
        return self._build("NodeRegistry", "accept_owner", node)

    def exit_start(self, node: NodeId) -> Call:
        """Start a node's exit."""
        return self._build("NodeRegistry", "exit_start", node)

    def exit_cancel(self, node: NodeId) -> Call:
        """Stay after all."""
        return self._build("NodeRegistry", "exit_cancel", node)

    def exit_finish(self, node: NodeId) -> Call:
        """Finish an exit; the stake becomes the owner's credit."""
        return self._build("NodeRegistry", "exit_finish", node)

    def beat(self, node: NodeId) -> Call:
        """Show that a node lives."""
        return self._build("NodeRegistry", "beat", node)

    def heartbeat(self, nodes: Sequence[NodeId]) -> Call:
        """Show that several nodes of one operator live."""
        return self._build("NodeRegistry", "heartbeat", list(nodes))

    # ---- money ----

    def withdraw(self, to: str, amount: int) -> Call:
        """Withdraw the sender's credit to any address."""
        return self._build("Escrow", "withdraw", to, amount)

    def approve(self, spender: str, amount: int) -> Call:
        """Let `spender` take exactly `amount` tokens. Raises ValueError on a native market."""
        token = self._network.asset.address
        if token is None:
            raise ValueError("the native coin needs no approval")
        return Call(token, token_call("approve", spender, amount), 0, "token.approve")

    def approve_post(self, terms: Terms) -> Call:
        """Approve what posting `terms` takes."""
        return self.approve(self._network.jobs, formulas.escrow_at_post(terms))

    def approve_stake(self, amount: int) -> Call:
        """Approve what registering with, or adding, `amount` of stake takes."""
        return self.approve(self._network.nodes, amount)

    # ---- governance, by way of the Steward ----

    def queue(self, change: Change) -> Call:
        """Announce a change, as the council."""
        return self._build("Steward", "queue", int(change.op), change.word, change.salt)

    def drop(self, change: bytes) -> Call:
        """Take a queued change back, as the council or the guardian; `change` is its id."""
        return self._build("Steward", "drop", change)

    def execute(self, change: Change) -> Call:
        """Carry out a change that is due."""
        return self._build("Steward", "execute", int(change.op), change.word, change.salt)

    def steward_drop_previous_policy(self) -> Call:
        """Stop accepting the previous parameters at once, as the council or the guardian."""
        return self._build("Steward", "drop_previous_policy")

    def steward_pause(self, *, posts: bool = False, registrations: bool = False) -> Call:
        """Pause posts, registrations or both for 7 days, each at most once in 30, as the council or the guardian."""
        return self._build("Steward", "pause", posts, registrations)

    def accept_council(self) -> Call:
        """Take the council's seat that the sender was offered."""
        return self._build("Steward", "accept_council")

    def steward_accept_governor(self, *, posts: bool = False, registrations: bool = False) -> Call:
        """Let the Steward take the governor's rights that it was offered."""
        return self._build("Steward", "accept_governor", posts, registrations)

    # ---- governance, as a governor that is no Steward ----

    def set_policy(self, policy: Policy) -> Call:
        """Change the parameters of new jobs."""
        return self._build("Rules", "set_policy", words.pack_policy(policy))

    def drop_previous_policy(self) -> Call:
        """Stop accepting the previous parameters at once."""
        return self._build("Rules", "drop_previous_policy")

    def set_minimum_stake(self, amount: int) -> Call:
        """Change what new registrations need."""
        return self._build("NodeRegistry", "set_minimum_stake", amount)

    def pause(self, contract: str) -> Call:
        """Pause posts ("Rules") or registrations ("NodeRegistry") for 7 days, at most once in 30."""
        return self._build(contract, "pause")

    def offer_governor(self, contract: str, governor: str) -> Call:
        """Offer the defaults of "Rules" or "NodeRegistry" to another governor."""
        return self._build(contract, "offer_governor", governor)

    def accept_governor(self, contract: str) -> Call:
        """Accept the defaults of "Rules" or "NodeRegistry"."""
        return self._build(contract, "accept_governor")

    # ---- automation ----

    def perform_upkeep(self, candidates: Iterable[Upkeep], payee: str | None = None) -> Call:
        """Run what `Market.check_upkeep` returned; the candidates' terms tell what each needs."""
        return self._build("Lens", "performUpkeep", [candidate(c) for c in candidates], _payee(payee))


def _carrying(document: bytes, call: Call) -> Call:
    """Return a call with bytes behind its arguments, which its contract does not look at."""
    return replace(call, data=call.data + document)


def transfer(asset: Asset, to: str, amount: int) -> Call:
    """Send an asset's base units, of the native coin or of a token, to an address."""
    if asset.address is None:
        return Call(to, b"", amount, "transfer")
    return Call(asset.address, token_call("transfer", to, amount), 0, "token.transfer")


def packed_terms(terms: Terms | TermsWords) -> TermsWords:
    return words.pack_terms(terms) if isinstance(terms, Terms) else terms


def candidate(upkeep: Upkeep) -> tuple[int, TermsWords, int, int]:
    return int(upkeep.op), upkeep.terms or _NO_TERMS, upkeep.index, upkeep.count


def _payee(payee: str | None) -> str:
    return ZERO_ADDRESS if payee is None else payee


@cache
def token_codec() -> Codec:
    """Return the codec of what is asked of a token."""
    return Codec("token", TOKEN_ABI)


def token_call(name: str, *args: Any) -> bytes:
    return token_codec().encode(name, *args)
