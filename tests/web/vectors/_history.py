"""Lives of jobs on the contracts themselves, in this process: all their logs, and what storage held after each block.

The lives are written out here, so that the same are lived whatever else the tests of the contracts do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from eth_utils.address import to_checksum_address

from hearth.chain.port import Block, Call, Log, Receipt, match_topics
from hearth.client.reading import JobReader
from hearth.market.contracts import CONTRACTS
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol import words
from hearth.protocol.parents import Condition
from hearth.protocol.types import SENTINEL, Billing, NodeId, Outcome, Terms, TermsFlag, Verdict
from hearth.protocol.units import NATIVE, Asset, show_amount
from tests.kit.evm import CHAIN_ID, Evm
from tests.kit.steps import RESUMABLE
from tests.kit.world import NODES, POLICY, World

FUEL_USED: Final = 400


class Recorded(Evm):
    """A chain that keeps every log, by the block of its transaction."""

    def __init__(self) -> None:
        self.logs: list[Log] = []
        self.times: dict[int, int] = {}
        self.watch: Callable[[], None] = lambda: None
        super().__init__()

    def raw_call(self, *args: Any, **options: Any) -> bytes:
        answer = super().raw_call(*args, **options)
        self._keep()
        return answer

    def _create(self, *args: Any, **options: Any) -> tuple[str, int]:
        created = super()._create(*args, **options)
        self._keep()
        return created

    def _keep(self) -> None:
        self.times[self.block] = self.now
        for at, log in enumerate(self._machine.result.logs):
            topics, data = log.data
            place = (self.block, hash_of(self.block), tx_of(self.block), at)
            self.logs.append(Log(log.address.lower(), tuple(bytes(topic) for topic in topics), bytes(data), *place))
        self.watch()


def hash_of(block: int) -> bytes:
    """Return a block's hash, which nothing here is made of."""
    return block.to_bytes(32, "big")


def tx_of(block: int) -> bytes:
    """Return the hash of a block's one transaction."""
    return b"\x7c" + block.to_bytes(31, "big")


class Port:
    """As much of a chain port as readers of jobs ask, over a recorded chain."""

    def __init__(self, evm: Recorded) -> None:
        self.evm = evm

    def chain_id(self) -> int:
        """Return the chain's id."""
        return CHAIN_ID

    def genesis_hash(self) -> bytes:
        """Return the first block's hash."""
        return hash_of(0)

    def head(self) -> Block:
        """Return the newest block."""
        evm = self.evm
        return Block(evm.block, hash_of(evm.block), hash_of(evm.block - 1), evm.now, 0)

    @property
    def all_logs(self) -> Sequence[Log]:
        """Return every log, of contracts of the market and of others."""
        return self.evm.logs

    def logs(self, addresses: Any, topics: Any = (), *, from_block: int = 0, to_block: int = 2**63) -> list[Log]:
        """Return logs of a range."""
        return [
            log
            for log in self.all_logs
            if log.address in addresses
            and from_block <= log.block_number <= to_block
            and match_topics(log.topics, topics)
        ]

    def call(self, call: Call, block: Any = "latest") -> bytes:
        """Return what a contract answers now."""
        assert call.to is not None
        return self.evm._run(to_checksum_address(call.to), call.data, None, 0, 30_000_000, static=True)

    def balance(self, address: str, block: Any = "latest") -> int:
        """Return an account's native balance."""
        return self.evm.balance(to_checksum_address(address))

    def receipt(self, tx_hash: bytes) -> Receipt:
        """Return the receipt of a block's one transaction."""
        block = int.from_bytes(tx_hash[1:], "big")
        logs = tuple(log for log in self.evm.logs if log.block_number == block)
        return Receipt(tx_hash, block, hash_of(block), True, 21_000, 1, "", None, None, logs)


class History:
    """One market, native or of a token, in which all lives were lived."""

    def __init__(self, *, erc20: bool = False) -> None:
        self.evm = Recorded()
        self.world = World(self.evm, erc20=erc20)
        world, token = self.world, self.world.token
        self.asset = NATIVE if token is None else Asset("TEST", 18, token.address.lower())
        named = {"Escrow": world.escrow, "NodeRegistry": world.nodes, "Rules": world.rules, "JobRegistry": world.jobs}
        named["Lens"] = world.lens
        addresses = {name: c.address.lower() for name, c in named.items()}
        unused = {name: f"0x{at + 0xDEAD00:040x}" for at, name in enumerate(CONTRACTS)}
        self.network = Network(
            name="lives",
            chain_id=CHAIN_ID,
            genesis_hash=bytes(32),
            contracts={name: addresses.get(name, unused[name]) for name in CONTRACTS},
            asset=self.asset,
            policy=words.pack_policy(POLICY),
            deploy_block=0,
            node_parameters=NODES,
        )
        self.port = Port(self.evm)
        self.steps: list[dict[str, Any]] = []
        self.evm.watch = self._look
        self._seen: dict[bytes, Any] = {}
        self.node = world.register()
        self.other_operator = self.evm.account("other operator")
        self.other = world.register(owner=self.evm.account("other"), operator=self.other_operator)

    @property
    def market(self) -> Market:
        """Return a reader that has stepped over nothing yet."""
        return Market(self.port, self.network)  # type: ignore[arg-type]

    @property
    def reads(self) -> JobReader:
        """Return a reader of jobs in a session of which only this market is known."""
        return self.reads_of(self.port)

    def reads_of(self, port: Port) -> JobReader:
        """Return a reader of jobs over a port of this chain."""
        market = Market(port, self.network)  # type: ignore[arg-type]
        session: Any = SimpleNamespace(
            market=market,
            network=self.network,
            asset=self.asset,
            settings=SimpleNamespace(timeout=60),
            job_id=lambda job: bytes.fromhex(job[2:]),
            explorer=lambda what: None,
            amount=lambda amount: show_amount(amount, self.asset),
        )
        return JobReader(session)

    def _look(self) -> None:
        """Keep what storage holds of each job that the last block changed."""
        for terms in self.world.posted:
            job, word, *_ = self.world.load(terms)
            held = [word]
            if words.is_header(job):
                touched = words.unpack_header(job).touched
                held = [self.world.load(terms, index)[1] for index in range(touched)]
            name = self.world.id_of(terms)
            if job and self._seen.get(name) != (job, held):
                self._seen[name] = (job, held)
                step = {
                    "block": self.evm.block,
                    "job": "0x" + name.hex(),
                    "word": hex(job),
                    "units": list(map(hex, held)),
                }
                self.steps.append(step)

    # ---- lives ----

    def live(self) -> None:
        """Live all lives."""
        for life in (
            *(self.plain, self.matched, self.fuel, self.lost, self.array, self.replicas, self.noticed, self.expired),
            *(self.judged, self.unproven, self.parents, self.resumed, self.nodes),
        ):
            self._recover()
            life()

    def live_few(self) -> None:
        """Live those that a market of another asset is told apart by."""
        for life in (self.plain, self.lost, self.resumed, self.nodes):
            self._recover()
            life()

    def _recover(self) -> None:
        """Wait until no node is in quarantine."""
        ends = (self.world.node(node).state.quarantine for node in (self.node, self.other))
        self.evm.at(max(self.evm.now, *ends))

    def claim(self, terms: Terms, index: int = 0, *, other: bool = False, resume_from: int = 0) -> None:
        """Claim a unit once its price has risen, for one node or the other."""
        self.evm.warp(POLICY.claim_ramp)
        node, operator = (self.other, self.other_operator) if other else (self.node, self.world.operator)
        self._beat(node, operator)
        self.world.claim(terms, node, index, resume_from=resume_from, sender=operator)

    def _beat(self, node: NodeId, operator: str) -> None:
        self.world.nodes.send.beat(node, sender=operator)

    def plain(self) -> None:
        """Run and settle a job, take the money out, and lock some of it again."""
        world = self.world
        terms = world.post()
        self.claim(terms)
        self.evm.warp(100)
        world.submit(terms)
        world.settle(terms)
        earned = world.credit(world.owner)
        world.escrow.send.withdraw(world.owner, earned // 3, sender=world.owner)
        world.escrow.send.withdraw(world.stranger, earned // 3, sender=world.owner)
        world.escrow.send.lock_credit(b"\x99" * 32, earned // 5, sender=world.owner)

    def matched(self) -> None:
        """Propose twice, better the second time, let the winner ack; then let a match lapse."""
        world = self.world
        terms = world.post(match_window=30)
        self._beat(self.node, world.operator)
        self._beat(self.other, self.other_operator)
        for node in (self.node, self.other, self.node):
            try:
                world.propose(terms, node)
            except Exception as error:
                if "not a better key" not in str(error) and "best already" not in str(error):
                    raise
        self.evm.warp(30)
        best = world.best(terms).node
        operator = world.operator if best == self.node else self.other_operator
        world.ack(terms, sender=operator)
        self.evm.warp(50)
        world.submit(terms, sender=operator)
        world.accept(terms)
        lapsing = world.post(match_window=30)
        world.propose(lapsing, self.node)
        self.evm.warp(30 + POLICY.ack_time)
        world.cancel(lapsing)
        # And one that stays as it is, proposed for.
        world.propose(world.post(match_window=30), self.node)

    def fuel(self) -> None:
        """Submit a failure of a program that is paid by its fuel, whose result the chain keeps."""
        world = self.world
        terms = world.post(billing=Billing.FUEL, flags=TermsFlag.NEWCOMERS | TermsFlag.KEEP)
        self.claim(terms)
        world.submit(terms, outcome=Outcome.EXIT, used=FUEL_USED)
        world.accept(terms)

    def lost(self) -> None:
        """Lose each attempt of a job in another way."""
        world = self.world
        terms = world.post(max_attempts=3)
        self.claim(terms)
        world.decline(terms)
        self.claim(terms, other=True)
        world.give_up(terms, sender=self.other_operator)
        self.claim(terms)
        self.evm.at(world.unit(terms).mark)
        world.reclaim(terms)

    def array(self) -> None:
        """Run some leases of an array, two of them by one call each, cancel the rest, and let the last one end."""
        world = self.world
        while not world.node(self.node).state.seasoned:
            earlier = world.post()
            self.claim(earlier)
            world.submit(earlier)
            world.settle(earlier)
        terms = world.post(units=6)
        self.claim(terms, 0)
        world.finish(terms, 0, claims=True)
        world.submit(terms, 1, outcome=Outcome.TRAP)
        self.claim(terms, SENTINEL, other=True)
        world.cancel(terms, SENTINEL)
        world.settle(terms, 1)
        world.give_up(terms, 2, sender=self.other_operator)

    def replicas(self) -> None:
        """Run a unit of three replicas, of which two have to end well."""
        world = self.world
        flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
        terms = world.post(replicas=3, quorum=2, **world.judged(flags=flags))
        self.claim(terms, 0)
        self.claim(terms, 1, other=True)
        world.submit(terms, 0)
        world.submit(terms, 1, sender=self.other_operator)
        world.accept(terms, 0)
        world.accept(terms, 1)

    def noticed(self) -> None:
        """Give notice to a running lease; one submits in time, one is closed."""
        world = self.world
        for submits in (True, False):
            terms = world.post()
            self.claim(terms)
            world.cancel(terms)
            if submits:
                world.submit(terms)
                world.settle(terms)
            else:
                self.evm.at(world.unit(terms).mark)
                world.close(terms)

    def expired(self) -> None:
        """Let a job expire, and an array of which one unit was touched."""
        world = self.world
        soon = self.evm.now + 6_000
        one, many = world.post(deadline=soon), world.post(units=3, deadline=soon)
        self.claim(many, 0)
        world.decline(many, 0)
        self.evm.at(soon)
        world.expire(one)
        world.expire(many, SENTINEL)
        world.expire(many, 0)

    def judged(self) -> None:
        """Let the judge hold results, and rule in every way."""
        world = self.world
        for verdict in Verdict:
            terms = world.post(**world.judged(bond_bps=5_000))
            self.claim(terms)
            world.submit(terms)
            world.dispute(terms)
            shares = (words.pack(words.SHARE, {"account": int(world.stranger, 16), "amount": 10**15}), 0, 0)
            world.rule(terms, verdict, shares=shares if verdict is Verdict.REJECT else (0, 0, 0))
            if verdict is Verdict.RELEASE:
                self.evm.at(self.evm.now + terms.challenge_window)
                world.settle(terms)
            self._recover()

    def unproven(self) -> None:
        """Let nobody prove a result that has to be proven."""
        world = self.world
        flags = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
        terms = world.post(**world.judged(flags=flags, deadline=self.evm.now + 6_000))
        self.claim(terms)
        world.submit(terms)
        self.evm.at(terms.deadline + terms.challenge_window)
        world.settle(terms)
        # And one that waits for its judge still.
        self._recover()
        terms = world.post(**world.judged(flags=flags, deadline=self.evm.now + 6_000))
        self.claim(terms)
        world.submit(terms)

    def parents(self) -> None:
        """Let jobs wait for one that ends well, each of another kind or with another condition."""
        world = self.world
        first = world.post()
        waiting = [
            world.post_after((first, Condition.SUCCESS)),
            world.post_after((first, Condition.FAILURE)),
            world.post_after((first, Condition.ALWAYS), units=2),
            world.post_after((first, Condition.FAILURE), units=3),
        ]
        world.cancel(world.post_after((first, Condition.SUCCESS), units=2), SENTINEL)
        world.post_after((first, Condition.SUCCESS))
        self.claim(first)
        world.finish(first)
        for terms in waiting:
            world.unlock(terms)
        for index in (0, 1):
            self.claim(waiting[2], index)

    def resumed(self) -> None:
        """Top a lease up, checkpoint it, lose it, and have another one go on from there, twice."""
        world = self.world
        terms = world.post(**RESUMABLE)
        self.claim(terms)
        world.top_up(terms, 300)
        for seconds in (100, 200):
            self.evm.warp(seconds)
            world.checkpoint(terms)
        world.give_up(terms)
        self.claim(terms, other=True, resume_from=1)
        self.evm.warp(100)
        world.checkpoint(terms, sender=self.other_operator)
        world.give_up(terms, sender=self.other_operator)
        self.claim(terms, resume_from=2)
        self.evm.warp(60)
        world.submit(terms)
        world.settle(terms)

    def nodes(self) -> None:
        """Let nodes come, change and go."""
        world = self.world
        leaving = world.register(owner=self.evm.account("leaving"), operator=self.evm.account("leaving operator"))
        world.pay(
            world.nodes, "add_stake", leaving, self.evm.account("leaving"), 10**18, amount=10**18, sender=world.keeper
        )
        world.nodes.send.set_ask(leaving, 10**18, sender=self.evm.account("leaving"))
        world.nodes.send.exit_start(leaving, sender=self.evm.account("leaving"))
        self.evm.warp(NODES.unbonding)
        world.nodes.send.exit_finish(leaving, sender=self.evm.account("leaving"))
        terms = world.post()
        self.claim(terms)
        self.evm.warp(NODES.dead_after)
        world.nodes.send.check_liveness([self.node], world.keeper, sender=world.keeper)
