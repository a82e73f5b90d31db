"""A deployed market in one EVM, with actors and factories: what every contract test starts from.

Amounts are base units of the market's asset, native coin or a plain ERC-20; times Unix seconds. `World` speaks the
library's types (`hearth.protocol.types`) and packs them for the contracts, so tests name fields, not bits.
"""

from __future__ import annotations

from dataclasses import astuple, replace
from functools import lru_cache
from typing import Any

from eth_utils import to_checksum_address

from hearth.market.network import NodeParameters
from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import (
    ZERO_ADDRESS,
    Best,
    Billing,
    Header,
    JobId,
    Kept,
    Needs,
    Node,
    NodeId,
    Offer,
    Policy,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
)
from tests.kit.evm import CHAIN_ID, NATIVE, Contract, Evm, Receipt

ZERO = ZERO_ADDRESS
# Takes what is slashed.
DEAD = to_checksum_address("0x000000000000000000000000000000000000dEaD")
ETHER = 10**18
DAY = 86_400

# The public profile, as the deploy script sets it.
POLICY = replace(PUBLIC.policy, fresh_delay=0)
"""The public policy, but that results of nodes on probation, as all are at first, are settled at once."""
NODES = PUBLIC.node_parameters
# What an ERC-20 market pays in: the mock to deploy and its arguments. ZooToken has a switch for each awkward trait.
PLAIN = ("mocks/MockToken", "Test token", "TEST", 18)
ZOO = ("mocks/ZooToken", 18)
DEAD_AFTER = NODES.dead_after
ASK_NOTICE = NODES.ask_notice
UNBONDING = NODES.unbonding
MINIMUM_STAKE = NODES.minimum_stake
FEE_REFERENCE = NODES.fee_reference
LIVENESS_FEE = NODES.liveness_fee
RATION_BPS = NODES.ration_bps
MARKET = formulas.Immutables(DEAD_AFTER, MINIMUM_STAKE)

OFFER = Offer(
    runtimes=Runtime.WASM | Runtime.DOCKER | Runtime.NVIDIA,
    tier=350,
    gpu_count=1,
    vram_gib=24,
    cores=16,
    ram_gib=64,
    disk_gib=500,
    zone=3,
    slots=4,
    ask=25 * 10**18,
)
NEEDS = Needs(runtimes=Runtime.WASM, cores=4, ram_gib=8, disk_gib=10)
RESULT = bytes.fromhex("11" * 32)
REPORT = bytes.fromhex("22" * 32)
SPEC = bytes.fromhex("33" * 32)
SESSION = bytes.fromhex("44" * 32)
ROOT_DIGEST = bytes.fromhex("66" * 32)


# Invariants read the same jobs after every step.
_job_id = lru_cache(maxsize=2**14)(formulas.job_id)


class World:
    """One market: `erc20` keeps its money in `token`, else it is in the native coin."""

    def __init__(
        self,
        evm: Evm | None = None,
        *,
        erc20: bool = False,
        token: tuple[Any, ...] = PLAIN,
        policy: Policy = POLICY,
        parameters: NodeParameters = NODES,
    ) -> None:
        self.evm = evm or Evm()
        self.parents: dict[JobId, tuple[bytes, ...]] = {}
        self.posted: list[Terms] = []
        self.policy = policy
        evm = self.evm
        self.deployer = evm.deployer
        self.treasury = evm.account("treasury")
        self.submitter = evm.account("submitter")
        self.owner = evm.account("owner")
        self.operator = evm.account("operator")
        self.keeper = evm.account("keeper")
        self.stranger = evm.account("stranger")
        self.token: Contract | None = evm.deploy(*token) if erc20 else None
        self.escrow = evm.deploy("Escrow", self.token or NATIVE)
        self.nodes = self.deploy_nodes(evm.create_address(self.deployer, 2), parameters)
        self.rules = evm.deploy("Rules", self.nodes, words.pack_policy(policy), self.deployer)
        self.jobs = evm.deploy("JobRegistry", self.escrow, self.nodes, self.rules, self.treasury)
        assert self.nodes.call.JOBS() == self.jobs.address
        self.lens = evm.deploy("Lens", self.jobs, self.nodes)
        # Rules as anyone tells it.
        self.judge = evm.deploy("mocks/MockJudge", self.jobs)
        self._salt = 0

    def deploy_nodes(self, jobs: str, parameters: NodeParameters = NODES) -> Contract:
        """Deploy a NodeRegistry on this market's Escrow that takes `jobs` for its JobRegistry."""
        return self.evm.deploy("NodeRegistry", self.escrow, jobs, *astuple(parameters), self.evm.deployer)

    # money

    def pay(self, contract: Contract, name: str, *args: Any, amount: int, sender: str) -> Receipt:
        """Call a function that takes `amount`: as value, or as tokens minted and approved exactly."""
        function = getattr(contract.send, name)
        if self.token is None:
            return function(*args, sender=sender, value=amount)
        self.token.send.mint(sender, amount)
        self.token.send.approve(contract, amount, sender=sender)
        return function(*args, sender=sender)

    def credit(self, account: str) -> int:
        """Return an account's credit in Escrow."""
        return self.escrow.call.credit(account)

    def locked(self, submitter: str) -> int:
        """Return what Escrow locks for a submitter, all of his jobs together."""
        return self.escrow.call.locked(self.jobs, formulas.lock_key(submitter))

    def holds(self, terms: Terms) -> int:
        """Return what a job's units hold by their words; nothing where it was not posted."""
        word = self.load(terms)[0]
        if not word:
            return 0
        if not words.is_header(word):
            return formulas.job_holds(terms, None, [words.unpack_unit(word)])
        header = words.unpack_header(word)
        return formulas.job_holds(terms, header, [self.unit(terms, at) for at in range(header.touched)])

    def lock_of(self, terms: Terms) -> int:
        """Return a job's part of its submitter's lock: what his other jobs that were posted here do not hold."""
        others = [one for one in self.posted if one.submitter == terms.submitter and one != terms]
        return self.locked(terms.submitter) - sum(self.holds(one) for one in others)

    def staked(self, node: NodeId) -> int:
        """Return what Escrow locks for a node."""
        return self.escrow.call.locked(self.nodes, node.to_bytes(32, "big"))

    # nodes

    def register(
        self,
        *,
        owner: str | None = None,
        operator: str | None = None,
        stake: int = 100 * ETHER,
        beat: bool = True,
        **offer: Any,
    ) -> NodeId:
        """Register a node (`offer` overrides fields of OFFER) and, unless told otherwise, let it beat once."""
        owner, operator = owner or self.owner, operator or self.operator
        packed = words.pack_offer(replace(OFFER, **offer))
        receipt = self.pay(self.nodes, "register", operator, packed, b"\x55" * 32, stake, amount=stake, sender=owner)
        node = NodeId(receipt.value)
        if beat:
            self.nodes.send.beat(node, sender=operator)
        return node

    def node(self, node: NodeId) -> Node:
        """Read a node as the library sees it."""
        record = self.nodes.call.get(node)
        return Node(
            id=node,
            owner=record.owner,
            operator=record.operator,
            stake=record.stake,
            offer=words.unpack_offer(record.offer),
            state=words.unpack_node_state(record.hot),
            next_ask=record.next_ask & (1 << 80) - 1,
            next_ask_at=record.next_ask >> 80,
            exit_at=record.exit_at,
        )

    # jobs

    def terms(self, **overrides: Any) -> Terms:
        """Build the terms of a one-unit job that OFFER fits, open to claims and newcomers; each has another salt."""
        self._salt += 1
        base: dict[str, Any] = dict(
            submitter=self.submitter.lower(),
            salt=self._salt,
            spec=SPEC,
            needs=NEEDS,
            ceiling=100 * 10**18,
            max_seconds=1_000,
            deadline=self.evm.now + 10 * DAY,
            keeper_fee=10**14,
            policy=words.pack_policy(self.policy),
            max_attempts=3,
            flags=TermsFlag.NEWCOMERS,
        )
        return Terms(**{**base, **overrides})

    def judged(self, **overrides: Any) -> dict[str, Any]:
        """Return the fields of terms that name the market's judge; `overrides` are fields too."""
        window = self.policy.min_challenge_window
        return {"judge": self.judge.address.lower(), "challenge_window": window, **overrides}

    def id_of(self, terms: Terms) -> JobId:
        """Return a job's id."""
        return _job_id(CHAIN_ID, self.jobs.address, terms)

    def post(self, terms: Terms | None = None, *, amount: int | None = None, **overrides: Any) -> Terms:
        """Post a job, funded exactly unless `amount` says otherwise, and return its terms."""
        terms = terms or self.terms(**overrides)
        self.post_receipt(terms, amount=amount)
        return terms

    def post_receipt(self, terms: Terms, *, amount: int | None = None, parents: tuple[bytes, ...] = ()) -> Receipt:
        """Post a job and return the receipt."""
        funding = formulas.escrow_at_post(terms) if amount is None else amount
        sender = to_checksum_address(terms.submitter)
        receipt = self.pay(self.jobs, "post", words.pack_terms(terms), parents, amount=funding, sender=sender)
        self.posted.append(terms)
        return receipt

    def post_after(self, *parents: tuple[Terms, Condition], **overrides: Any) -> Terms:
        """Post a job that waits for others, and return its terms; `unlock` knows its list."""
        packed = pack_parents([Parent(self.id_of(terms), condition) for terms, condition in parents])
        terms = self.terms(parents_hash=parents_hash(packed), **overrides)
        self.post_receipt(terms, parents=packed)
        self.parents[self.id_of(terms)] = packed
        return terms

    def unlock(
        self,
        terms: Terms,
        *,
        parents: tuple[bytes, ...] | None = None,
        payee: str = ZERO,
        sender: str | None = None,
    ) -> Receipt:
        """Open a job whose parents have ended, or refund it, as the keeper; `parents` as posted by default."""
        packed = self.parents[self.id_of(terms)] if parents is None else parents
        return self.jobs.send.unlock(words.pack_terms(terms), packed, payee, sender=sender or self.keeper)

    def claim(
        self, terms: Terms, node: NodeId, index: int = 0, *, resume_from: int = 0, sender: str | None = None
    ) -> Receipt:
        """Claim a unit for a node, as its operator; `resume_from` is an attempt whose kept checkpoint it takes up."""
        packed = words.pack_terms(terms)
        return self.jobs.send.claim(packed, index, node, SESSION, resume_from, sender=sender or self.operator)

    def propose(
        self, terms: Terms, node: NodeId, index: int = 0, *, payee: str = ZERO, sender: str | None = None
    ) -> Receipt:
        """Propose a node, as the keeper."""
        return self.jobs.send.propose(words.pack_terms(terms), index, node, payee, sender=sender or self.keeper)

    def ack(self, terms: Terms, index: int = 0, *, resume_from: int = 0, sender: str | None = None) -> Receipt:
        """Ack a won match, as the operator; `resume_from` as `claim`."""
        packed = words.pack_terms(terms)
        return self.jobs.send.ack(packed, index, SESSION, resume_from, sender=sender or self.operator)

    def checkpoint(
        self, terms: Terms, index: int = 0, *, root: bytes = ROOT_DIGEST, sender: str | None = None
    ) -> Receipt:
        """Name a running unit's checkpoint, as the operator."""
        return self.jobs.send.checkpoint(self.id_of(terms), index, root, sender=sender or self.operator)

    def top_up(
        self, terms: Terms, seconds: int, index: int = 0, *, amount: int | None = None, sender: str | None = None
    ) -> Receipt:
        """Top a running unit up, paid exactly unless `amount` says otherwise, as its job's submitter."""
        price = formulas.top_up_amount(terms, self.unit(terms, index), seconds) if amount is None else amount
        who = sender or to_checksum_address(terms.submitter)
        return self.pay(self.jobs, "top_up", words.pack_terms(terms), index, seconds, amount=price, sender=who)

    def submit(
        self, terms: Terms, index: int = 0, *, outcome: int = 1, used: int | None = None, sender: str | None = None
    ) -> Receipt:
        """Submit a result, as the operator; `used` is 1 for fuel jobs unless given."""
        seconds = (1 if terms.billing == Billing.FUEL else 0) if used is None else used
        job = self.id_of(terms)
        return self.jobs.send.submit(job, index, RESULT, REPORT, outcome, seconds, sender=sender or self.operator)

    def finish(
        self,
        terms: Terms,
        index: int = 0,
        *,
        outcome: int = 1,
        used: int | None = None,
        claims: bool = False,
        sender: str | None = None,
    ) -> Receipt:
        """Submit and settle at once, as the operator; `used` as `submit`, and with `claims` take the next unit too."""
        seconds = (1 if terms.billing == Billing.FUEL else 0) if used is None else used
        unit = (words.pack_terms(terms), index)
        said = (RESULT, REPORT, outcome, seconds)
        return self.jobs.send.finish(*unit, *said, claims, SESSION, sender=sender or self.operator)

    def call(self, name: str, terms: Terms, index: int = 0, *, sender: str | None = None, payee: str = ZERO) -> Receipt:
        """Call settle, close, reclaim or expire, as the keeper."""
        function = getattr(self.jobs.send, name)
        return function(words.pack_terms(terms), index, payee, sender=sender or self.keeper)

    def settle(self, terms: Terms, index: int = 0, **options: Any) -> Receipt:
        """Settle a unit, as the keeper."""
        return self.call("settle", terms, index, **options)

    def close(self, terms: Terms, index: int = 0, **options: Any) -> Receipt:
        """Close a cancelled lease, as the keeper."""
        return self.call("close", terms, index, **options)

    def reclaim(self, terms: Terms, index: int = 0, **options: Any) -> Receipt:
        """Reclaim a lease, as the keeper."""
        return self.call("reclaim", terms, index, **options)

    def expire(self, terms: Terms, index: int = 0, **options: Any) -> Receipt:
        """Expire a unit (or ALL), as the keeper."""
        return self.call("expire", terms, index, **options)

    def accept(self, terms: Terms, index: int = 0, *, sender: str | None = None) -> Receipt:
        """Accept a result, as the submitter."""
        return self.jobs.send.accept(words.pack_terms(terms), index, sender=sender or self.submitter)

    def dispute(self, terms: Terms, index: int = 0) -> Receipt:
        """Let the judge hold a unit."""
        return self.judge.send.dispute(words.pack_terms(terms), index, sender=self.stranger)

    def rule(
        self,
        terms: Terms,
        verdict: int,
        index: int = 0,
        *,
        fields: int = 0,
        shares: tuple[int, int, int] = (0, 0, 0),
        payee: str = ZERO,
    ) -> Receipt:
        """Let the judge say what becomes of a unit; `shares` are words as Escrow takes them."""
        packed = words.pack_terms(terms)
        return self.judge.send.rule(packed, index, verdict, fields, list(shares), payee, sender=self.stranger)

    def cancel(self, terms: Terms, index: int = 0, *, sender: str | None = None) -> Receipt:
        """Cancel a unit (or ALL), as the submitter."""
        return self.jobs.send.cancel(words.pack_terms(terms), index, sender=sender or self.submitter)

    def decline(self, terms: Terms, index: int = 0, *, outcome: int = 6, sender: str | None = None) -> Receipt:
        """Decline a lease, as the operator."""
        return self.jobs.send.decline(words.pack_terms(terms), index, outcome, REPORT, sender=sender or self.operator)

    def give_up(self, terms: Terms, index: int = 0, *, sender: str | None = None) -> Receipt:
        """Give a lease up, as the operator."""
        return self.jobs.send.give_up(words.pack_terms(terms), index, REPORT, sender=sender or self.operator)

    def load(self, terms: Terms, index: int = 0) -> tuple[int, int, int, int]:
        """Return (job word, unit word, auxiliary slot, accused) as stored."""
        job, unit, second, accused = self.jobs.call.load(self.id_of(terms), index)
        return job, unit, second, accused

    def unit(self, terms: Terms, index: int = 0) -> Unit:
        """Read a unit as stored."""
        return words.unpack_unit(self.load(terms, index)[1])

    def best(self, terms: Terms, index: int = 0) -> Best:
        """Read the auxiliary slot as a proposal."""
        return words.unpack_best(self.load(terms, index)[2])

    def header(self, terms: Terms) -> Header:
        """Read an array's header."""
        return words.unpack_header(self.load(terms)[0])

    def kept(self, terms: Terms, attempt: int, index: int = 0) -> Kept:
        """Read the checkpoint that a lost lease of a unit left, all zero for none."""
        key = formulas.unit_key(self.id_of(terms), index, terms.leases)
        return words.unpack_kept(self.jobs.call.checkpoints(key, attempt))

    def state(self, terms: Terms, index: int = 0) -> State:
        """Read a unit's state as stored."""
        return self.unit(terms, index).state
