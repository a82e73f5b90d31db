"""Typed reads over the scripted chain, and a builder for every call that the contracts take."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from functools import partial
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, NotFoundError
from hearth.chain.port import Block, Call, refused
from hearth.market.abi import artifact, codec
from hearth.market.calls import Calls, Upkeep, UpkeepOp, token_call, transfer
from hearth.market.changes import Change, ChangeOp
from hearth.market.contracts import CONTRACTS
from hearth.market.immutables import LAYOUT, said_of
from hearth.market.network import NodeParameters
from hearth.market.profiles import DEVNET
from hearth.market.reads import PAGE, Market
from hearth.market.strays import NAMED
from hearth.protocol import formulas, words
from hearth.protocol.attest import Signature
from hearth.protocol.types import (
    LOCAL_CHAIN_ID,
    SENTINEL,
    ZERO_ADDRESS,
    Accused,
    Best,
    Billing,
    Gate,
    Header,
    JobId,
    Kept,
    Node,
    NodeId,
    NodeState,
    Offer,
    Outcome,
    Runtime,
    State,
    Unit,
)
from hearth.protocol.units import Asset
from tests.kit import build
from tests.kit.build import NATIVE, TOKEN
from tests.kit.fake_chain import Event
from tests.kit.scripted import ScriptedMarket, answer_checks, answer_word

SUBMITTER = "0x" + "5b" * 20
JOB = JobId(b"\x0a" * 32)
TERMS = build.terms(submitter=SUBMITTER, salt=7)


class Rig(ScriptedMarket):
    """A scripted market one block after its deployment."""

    def __init__(self, asset: Asset = NATIVE) -> None:
        super().__init__(asset)
        self.chain.mine()

    def store(self, job: int, unit: int = 0, second: int = 0, accused: int = 0) -> None:
        self.answer("JobRegistry", "load", ["uint256"] * 4, [job, unit, second, accused])


@pytest.fixture
def rig() -> Rig:
    return Rig()


# ---- terms ----


def test_terms_of__a_posted_job__is_the_terms(rig: Rig) -> None:
    job = rig.market.job_id(TERMS)
    other = replace(TERMS, salt=8, submitter="0x" + "99" * 20)
    rig.chain.mine([rig.posted(TERMS), rig.posted(other)])
    found = rig.market.terms_of(job)
    assert found.terms == TERMS and found.job_id == job and found.parents == ()
    head = rig.chain.head().number
    assert [p.terms for p in rig.market.posted(from_block=0, to_block=head)] == [TERMS, other]
    assert [p.terms for p in rig.market.posted(from_block=0, to_block=head, submitter=SUBMITTER)] == [TERMS]


def test_terms_of__only_a_log_that_lies_about_its_id__is_the_providers_fault(rig: Rig) -> None:
    job = rig.market.job_id(TERMS)
    rig.chain.mine([rig.posted(replace(TERMS, ceiling=TERMS.ceiling + 1), job)])
    rig.store(words.pack_unit(Unit(state=State.OPEN)))
    with pytest.raises(ChainError) as caught:
        rig.market.terms_of(job)
    assert caught.value.code == "RPC_LIES"


def test_terms_of_all__some_jobs__are_those_by_their_ids(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    posted = [replace(TERMS, salt=salt) for salt in range(1, 5)]
    rig.chain.mine([rig.posted(terms) for terms in posted])
    ids = [rig.market.job_id(terms) for terms in posted]
    found = rig.market.terms_of_all([ids[2], ids[0], ids[2]])
    assert {job: one.terms for job, one in found.items()} == {ids[0]: posted[0], ids[2]: posted[2]}
    rig.store(0)
    with pytest.raises(NotFoundError):
        rig.market.terms_of_all([ids[0], JOB])
    # Providers take an empty list of ids for any id.
    monkeypatch.setattr(rig.chain, "logs", None)
    assert rig.market.terms_of_all([]) == {}


def test_terms_of__never_posted__is_not_found(rig: Rig) -> None:
    rig.store(0)
    with pytest.raises(NotFoundError):
        rig.market.terms_of(JOB)


# ---- strays ----


def strays_of(rig: Rig) -> list[Event]:
    """Return logs of posts that no registry writes, of a posted job and of others."""
    job = rig.market.job_id(TERMS)
    good = rig.posted(TERMS)
    other = replace(TERMS, salt=8)
    beyond = (*words.pack_terms(other)[:2], SENTINEL, *words.pack_terms(other)[3:])
    return [
        rig.posted(replace(TERMS, ceiling=TERMS.ceiling + 1), job),
        good._replace(data=good.data[:-65]),
        good._replace(data=b""),
        good._replace(topics=(*good.topics[:2], bytes(12) + bytes(20))),
        rig.posted(other)._replace(data=encode([formulas.TERMS_TYPE, "bytes32[]"], [beyond, []])),
    ]


def test_posted__strays_among_the_logs__are_counted_named_and_stepped_over(rig: Rig) -> None:
    """No log stops a client."""
    bad, twice = strays_of(rig), rig.posted(TERMS)
    rig.chain.mine([*bad, rig.posted(TERMS), rig.posted(replace(TERMS, salt=9)), twice])
    head = rig.chain.head().number
    for _ in range(2):
        assert [one.terms.salt for one in rig.market.posted(from_block=0, to_block=head)] == [7, 9]
        assert len(rig.market.strays) == len(bad) + 1, "each is counted once, however often it is read"
    assert rig.market.terms_of(rig.market.job_id(TERMS)).terms == TERMS
    assert len(rig.market.strays.first) == NAMED
    assert rig.market.strays.first[0].startswith(f"log 0 of block {head}: ")
    said = rig.market.strays.in_words()
    assert said.startswith(f"{len(bad) + 1} logs under the market's addresses are none that its contracts write")


def test_posted__log_that_names_another_submitter_than_its_terms__is_not_listed_as_his(rig: Rig) -> None:
    other = "0x" + "99" * 20
    mine = rig.posted(TERMS)
    rig.chain.mine([mine._replace(topics=(*mine.topics[:2], bytes(12) + bytes.fromhex(other[2:])))])
    assert rig.market.posted(from_block=0, to_block=rig.chain.head().number, submitter=other) == []
    assert "under another submitter than its own" in rig.market.strays.in_words()


def test_posted__nothing_wrong__has_no_strays(rig: Rig) -> None:
    rig.chain.mine([rig.posted(TERMS)])
    assert len(rig.market.posted(from_block=0, to_block=rig.chain.head().number)) == 1
    assert not rig.market.strays and rig.market.strays.in_words() == ""


def test_events_in__logs_of_a_strangers_contract__are_left_out_and_no_strays(rig: Rig) -> None:
    """Whoever settles by a contract of his own writes what he likes into the same receipt."""
    mine = rig.posted(TERMS)
    rig.chain.mine([mine._replace(address="0x" + "77" * 20, data=b""), mine])
    logs = rig.chain.logs([], from_block=0, to_block=rig.chain.head().number)
    assert [event.log.address for event in rig.market.events_in(logs)] == [rig.network.jobs]
    assert not rig.market.strays


# ---- units ----


def test_unit__of_a_one_lease_job__is_the_job_word(rig: Rig) -> None:
    unit = Unit(state=State.OPEN, node=NodeId(3), rate=5, started=10, mark=20)
    best = Best(payee="0x" + "01" * 20, node=NodeId(9), key=77)
    rig.store(words.pack_unit(unit), words.pack_unit(unit), words.pack_best(best), 4 | 60 << 32)
    view = rig.market.unit(JOB)
    assert (view.unit, view.best, view.accused) == (unit, best, Accused(NodeId(4), 60))
    assert rig.market.header(JOB) is None


def test_unit__without_a_live_proposal__has_no_best(rig: Rig) -> None:
    unit = Unit(state=State.RUNNING, node=NodeId(3), rate=5, started=10, mark=20)
    rig.store(words.pack_unit(unit), 0, words.pack_best(Best(node=NodeId(9), key=1)))
    assert rig.market.unit(JOB).best == Best()


@pytest.mark.parametrize(
    ("closed", "index", "state"),
    [(False, 0, State.OPEN), (False, 9, State.OPEN), (True, 1, State.OPEN), (True, 2, State.CANCELLED)],
)
def test_unit__an_untouched_lease__follows_its_header(rig: Rig, closed: bool, index: int, state: State) -> None:
    header = Header(closed=closed, touched=2, opened=99)
    rig.store(words.pack_header(header))
    view = rig.market.unit(JOB, index)
    assert (view.unit.state, view.unit.started) == (state, 99)
    assert rig.market.header(JOB) == header


def test_unit__an_unknown_job__is_not_found(rig: Rig) -> None:
    rig.store(0)
    for read in (rig.market.unit, rig.market.header):
        with pytest.raises(NotFoundError):
            read(JOB)


def test_units__a_large_array__comes_in_pages(rig: Rig) -> None:
    rig.store(words.pack_header(Header(touched=PAGE + 40, opened=5)))
    word = words.pack_unit(Unit(state=State.RUNNING, node=NodeId(1), rate=1, started=1, mark=2))
    asked: list[tuple[int, int]] = []

    def page(call: Call, block: Block) -> bytes:
        decoded = codec("Lens").decode_input(call.data)
        assert decoded is not None
        first, count = decoded[1]["first"], decoded[1]["count"]
        asked.append((first, count))
        return encode(
            ["(uint256,uint256,uint256)[]"], [[(word if i % 2 else 0, i, 0) for i in range(first, first + count)]]
        )

    rig.chain.on_call(rig.market.network.lens, codec("Lens").selector("units"), page)
    views = rig.market.units(JOB, 10, 300)
    assert asked == [(10, PAGE), (10 + PAGE, 44)]
    assert [v.second for v in views if v.unit.state is State.RUNNING] == list(range(11, 310, 2))


@pytest.mark.parametrize("name", ["jobs", "locks", "credits"])
def test_pages__many_of_them__are_whole_and_in_order(rig: Rig, name: str) -> None:
    """A page that lacks an entry is no answer: what comes after would be taken for another's."""
    short = 0
    asked: list[int] = []

    def page(call: Call, block: Block) -> bytes:
        decoded = codec("Lens").decode_input(call.data)
        assert decoded is not None
        ids = next(value for value in decoded[1].values() if not isinstance(value, str))
        asked.append(len(ids))
        values = [int(one, 16) if isinstance(one, str) else int.from_bytes(one, "big") for one in ids]
        return encode(["uint256[]"], [values[: len(values) - short]])

    rig.chain.on_call(rig.market.network.lens, codec("Lens").selector(name), page)
    numbers = list(range(1, PAGE + 45))
    if name == "credits":
        read = partial(rig.market.credits, [f"0x{number:040x}" for number in numbers])
    else:
        ids = [JobId(number.to_bytes(32, "big")) for number in numbers]
        read = partial(rig.market.job_words, ids) if name == "jobs" else partial(rig.market.locks, SUBMITTER, ids)
    assert read() == numbers and asked == [PAGE, 44]
    short = 1
    with pytest.raises(ChainError, match=f"Lens.{name} did not answer: the answer is not what its ABI says"):
        read()


STATUS = ["(uint256,uint256,uint256,uint256,uint256[])[]"]
RESUMED = words.pack_unit(Unit(state=State.SETTLED, node=NodeId(3), attempts=4, resume=3))


def chain_of(*resumes: int) -> list[int]:
    """Return the words of checkpoints of which each names the attempt that it was resumed from."""
    return [words.pack_kept(Kept(10, 1, NodeId(2), resume)) for resume in resumes]


def test_statuses__many_places__come_in_pages_and_each_with_its_checkpoints(rig: Rig) -> None:
    asked: list[int] = []

    def page(call: Call, block: Block) -> bytes:
        decoded = codec("Lens").decode_input(call.data)
        assert decoded is not None
        places = decoded[1]["places"]
        asked.append(len(places))
        return encode(STATUS, [[(RESUMED, RESUMED, index, 0, chain_of(1, 0)) for _, index in places]])

    rig.chain.on_call(rig.market.network.lens, codec("Lens").selector("status"), page)
    found = rig.market.statuses([(JOB, index) for index in range(PAGE + 45)])
    assert asked == [PAGE, 45] and [one.view.second for one in found] == list(range(PAGE + 45))
    for one in found:
        assert dict(one.kept) == {3: Kept(10, 1, NodeId(2), 1), 1: Kept(10, 1, NodeId(2), 0)}
    assert rig.market.statuses([]) == []


@pytest.mark.parametrize(
    "kept",
    [
        [],
        chain_of(2),
        chain_of(2, 1),
        chain_of(0, 0),
        chain_of(2, 3, 0),
        chain_of(3),
    ],
    ids=["none", "one", "two", "beyond", "round", "itself"],
)
def test_statuses__checkpoints_that_are_not_those_that_are_named__are_no_answer(rig: Rig, kept: list[int]) -> None:
    """A result's pay follows from them: with one left out there would be nothing to compare it with."""
    rig.answer("Lens", "status", STATUS, [[(RESUMED, RESUMED, 0, 0, kept)]])
    with pytest.raises(ChainError, match=r"Lens\.status did not answer: the answer is not what its ABI says"):
        rig.market.statuses([(JOB, 0)])


def test_statuses__eight_checkpoints__are_the_most_that_a_result_pays(rig: Rig) -> None:
    word = words.pack_unit(Unit(state=State.SETTLED, node=NodeId(3), attempts=10, resume=9))
    for count, whole in ((7, False), (8, True)):
        rig.answer("Lens", "status", STATUS, [[(word, word, 0, 0, chain_of(*range(8, 8 - count, -1)))]])
        if whole:
            assert list(rig.market.statuses([(JOB, 0)])[0].kept) == list(range(9, 1, -1))
        else:
            with pytest.raises(ChainError):
                rig.market.statuses([(JOB, 0)])


def test_statuses__short_page__is_no_answer(rig: Rig) -> None:
    rig.answer("Lens", "status", STATUS, [[(1, 1, 0, 0, [])]])
    with pytest.raises(ChainError, match=r"Lens\.status did not answer"):
        rig.market.statuses([(JOB, 0), (JOB, 1)])


@pytest.mark.parametrize("count", [0, 1, PAGE, PAGE + 3])
def test_gates__of_every_node__come_in_pages(rig: Rig, count: int) -> None:
    asked: list[tuple[int, int]] = []
    ask = formulas.ask_of(TERMS)

    def page(call: Call, block: Block) -> bytes:
        decoded = codec("Lens").decode_input(call.data)
        assert decoded is not None
        first, wanted = decoded[1]["first"], decoded[1]["count"]
        assert decoded[1]["ask"] == (words.pack_needs(TERMS.needs), *ask[1:])
        asked.append((first, wanted))
        return encode(["uint256[]"], [[node % 17 for node in range(first, first + wanted)]])

    rig.chain.on_call(rig.market.network.lens, codec("Lens").selector("gates"), page)
    totals = words.pack(words.TOTALS, {"next_id": count + 1, "hour": 0, "burnt": 0, "total": 0})
    rig.answer("NodeRegistry", "totals", ["uint256"], [totals])
    assert rig.market.gates(ask) == [Gate(node % 17) for node in range(1, count + 1)]
    assert asked == [(first, min(PAGE, count + 1 - first)) for first in range(1, count + 1, PAGE)]


def test_reads__pinned_to_a_block__ask_for_that_block(rig: Rig) -> None:
    seen: list[int] = []

    def credit(call: Call, block: Block) -> bytes:
        seen.append(block.number)
        return encode(["uint256"], [1])

    rig.chain.on_call(rig.market.network.escrow, codec("Escrow").selector("credit"), credit)
    pinned = rig.chain.head()
    rig.chain.mine(count=3)
    rig.market.credit(SUBMITTER, pinned.hash)
    rig.market.credit(SUBMITTER, 2)
    rig.market.credit(SUBMITTER)
    assert seen == [1, 2, 4]
    rig.chain.reorg(4)
    with pytest.raises(ChainError) as caught:
        rig.market.credit(SUBMITTER, pinned.hash)
    assert caught.value.code == "BLOCK_UNKNOWN"


def test_reads__no_contract_there__says_so(rig: Rig) -> None:
    for read in (rig.market.policies, rig.market.totals, lambda: rig.market.node(NodeId(1))):
        with pytest.raises(ChainError) as caught:
            read()
        assert caught.value.code == "WRONG_CONTRACTS"


def test_reads__an_answer_of_another_shape__is_refused(rig: Rig) -> None:
    rig.answer("Rules", "policies", ["uint256"], [1])
    rig.answer("NodeRegistry", "get", ["uint256"], [1])
    for read in (rig.market.policies, lambda: rig.market.node(NodeId(1))):
        with pytest.raises(ChainError):
            read()


@pytest.mark.parametrize(
    ("word", "held"),
    [(TERMS.policy, 0), (0, TERMS.policy), (TERMS.policy, 99)],
    ids=["never paused", "paused lately", "set since a pause"],
)
def test_policies__paused_now_lately_or_never__tells_the_parameters_in_force(rig: Rig, word: int, held: int) -> None:
    rig.answer("Rules", "policies", ["uint256"] * 5, [word, held, 5, 6, 7])
    found = rig.market.policies()
    assert found.policy == DEVNET.policy == rig.market.policy()
    assert (found.word, found.previous, found.until, found.paused_until) == (TERMS.policy, 5, 6, 7)


# ---- nodes ----


def node_record(node: Node) -> list[int]:
    return [
        int(node.owner, 16),
        int(node.operator, 16),
        node.stake,
        words.pack_offer(node.offer),
        words.pack_node_state(node.state),
        node.next_ask_at << 80 | node.next_ask,
        node.exit_at,
    ]


def some_node(n: int) -> Node:
    return Node(
        id=NodeId(n),
        owner=f"0x{n:040x}",
        operator=f"0x{n + 10**6:040x}",
        stake=n * 10**18,
        offer=Offer(runtimes=Runtime.WASM | Runtime.NVIDIA, cores=n % 100, ask=n, pending=True),
        state=NodeState(beat=n, busy=1, r=n, s=2 * n),
        next_ask=n + 1,
        next_ask_at=n + 2,
        exit_at=n + 3,
    )


def test_nodes__more_than_a_page__are_all_there(rig: Rig) -> None:
    count = PAGE + 5
    rig.answer("NodeRegistry", "totals", ["uint256"], [count + 1])
    structs = "(address,address,uint256,uint256,uint256,uint256,uint256)[]"

    def page(call: Call, block: Block) -> bytes:
        decoded = codec("Lens").decode_input(call.data)
        assert decoded is not None
        first, wanted = decoded[1]["first"], decoded[1]["count"]
        rows = []
        for n in range(first, first + wanted):
            owner, operator, *rest = node_record(some_node(n))
            rows.append((f"0x{owner:040x}", f"0x{operator:040x}", *rest))
        return encode([structs], [rows])

    rig.chain.on_call(rig.market.network.lens, codec("Lens").selector("nodes"), page)
    found = rig.market.nodes(rig.chain.head().hash)
    assert found == [some_node(n) for n in range(1, count + 1)]
    assert [first for first, _ in rig.market.node_pages("latest")] == [1, PAGE + 1]


def test_node__one__is_decoded_and_a_missing_one_is_not_found(rig: Rig) -> None:
    rig.answer("NodeRegistry", "get", ["uint256"] * 7, node_record(some_node(8)))
    assert rig.market.node(NodeId(8)) == some_node(8)
    rig.answer("NodeRegistry", "get", ["uint256"] * 7, [0] * 7)
    with pytest.raises(NotFoundError):
        rig.market.node(NodeId(9))


# ---- identity ----


def deployed(rig: Rig) -> Rig:
    for address in rig.market.network.contracts.values():
        rig.chain.set_code(address, b"code of " + address.encode())
    answer_checks(rig.chain, rig.market.network, LOCAL_CHAIN_ID)
    rig.market.identity.check()
    return rig


def test_check__a_rules_that_posts_do_not_go_by__is_refused(rig: Rig) -> None:
    network = deployed(rig).market.network
    other = "0x" + "99" * 20
    rig.chain.set_code(other, rig.chain.code(network.rules))
    with pytest.raises(ChainError, match=f"goes by the Rules at {network.rules}, not by those at {other}") as caught:
        Market(rig.chain, replace(network, contracts={**network.contracts, "Rules": other})).identity.check()
    assert (caught.value.code, caught.value.retryable) == ("WRONG_CONTRACTS", False)


def test_check__code_hashes__are_compared(rig: Rig) -> None:
    deployed(rig)
    hashes = {n: keccak(rig.chain.code(a)) for n, a in rig.market.network.contracts.items()}
    Market(rig.chain, replace(rig.market.network, code_hashes=hashes)).identity.check()
    rig.chain.set_code(rig.market.network.escrow, b"another")
    with pytest.raises(ChainError) as caught:
        Market(rig.chain, replace(rig.market.network, code_hashes=hashes)).identity.check()
    assert caught.value.code == "WRONG_CONTRACTS" and "Escrow" in caught.value.message


def test_check_code__of_no_source_of_ours__is_refused_until_its_hash_is_named(rig: Rig) -> None:
    """Profit: a stranger's network file names a stranger's contracts, and is itself their only witness."""
    network = deployed(rig).market.network
    hashes = {name: f"0x{keccak(rig.chain.code(address)).hex()}" for name, address in network.contracts.items()}
    market = Market(rig.chain, replace(network, code_hashes={n: bytes.fromhex(h[2:]) for n, h in hashes.items()}))
    with pytest.raises(ChainError) as caught:
        market.identity.check_code(())
    assert (caught.value.code, caught.value.retryable) == ("UNKNOWN_CODE", False)
    assert all(f"{name} ({code})" in caught.value.message for name, code in hashes.items())
    assert all(f"--code {code}" in caught.value.hint for code in hashes.values())
    *others, last = hashes.values()
    with pytest.raises(ChainError, match=r": Steward \(0x[0-9a-f]{64}\)$") as caught:
        market.identity.check_code(others)
    assert caught.value.hint.endswith(f"name it: --code {last}")
    market.identity.check_code(tuple(hashes.values()))


@pytest.mark.parametrize("name", CONTRACTS)
def test_check_code__ours_but_for_one_byte__is_refused(rig: Rig, name: str) -> None:
    network = deployed(rig).market.network
    for one, address in network.contracts.items():
        made = artifact(one)
        rig.chain.set_code(address, made.runtime)
    Market(rig.chain, network).identity.check_code(())
    code = rig.chain.code(network.contracts[name])
    shifted = artifact(name).bytecode[-len(code) :]  # as long, and a part of our creation code
    one_off = bytes((code[0] ^ 1,)) + code[1:], code[:-1] + bytes((code[-1] ^ 1,))
    for wrong in (code[:-1], *one_off, b"\x60" * len(code), shifted):
        rig.chain.set_code(network.contracts[name], wrong)
        with pytest.raises(ChainError, match=rf": {name} \(0x") as caught:
            Market(rig.chain, network).identity.check_code(())
        assert caught.value.code == "UNKNOWN_CODE"


@pytest.mark.parametrize(
    ("contract", "getter"),
    [("JobRegistry", "ESCROW"), ("JobRegistry", "NODES"), ("NodeRegistry", "ESCROW"), ("NodeRegistry", "JOBS")],
)
def test_check__our_code_over_contracts_that_the_file_does_not_name__is_refused(
    rig: Rig, contract: str, getter: str
) -> None:
    """Profit: a registry of our code that pays into an Escrow of the stranger's, beside a true Escrow for show."""
    network = deployed(rig).market.network
    answer_word(rig.chain, network.contracts[contract], codec(contract).selector(getter), 0x99)
    with pytest.raises(ChainError, match=f"{contract}.{getter}: 0x{'99':0>40} on the chain") as caught:
        rig.market.identity.check()
    assert caught.value.code == "WRONG_CONTRACTS"


def test_check__an_asset_that_is_not_the_contracts__is_refused(rig: Rig) -> None:
    network = deployed(rig).market.network
    other = replace(network, asset=Asset("USDX", 6, "0x" + "70" * 20))
    with pytest.raises(ChainError, match=f"JobRegistry.ASSET: {ZERO_ADDRESS} on the chain, 0x{'70' * 20} in the file"):
        Market(rig.chain, other).identity.check()
    answer_word(rig.chain, network.jobs, codec("JobRegistry").selector("ASSET"), 0x70)
    with pytest.raises(ChainError, match=f"JobRegistry.ASSET: 0x{'70':0>40} on the chain, {ZERO_ADDRESS} in the file"):
        rig.market.identity.check()


@pytest.mark.parametrize("said", [encode(["uint256"], [9]), encode(["uint256"], [2**255]), b"", bytes(31), None])
def test_check__a_token_of_other_decimals__is_refused(said: bytes | None) -> None:
    scripted = ScriptedMarket(TOKEN)
    for address in scripted.network.contracts.values():
        scripted.chain.set_code(address, b"code")
    answer_checks(scripted.chain, scripted.network, LOCAL_CHAIN_ID)
    scripted.market.identity.check()

    def decimals(call: Call, block: Block) -> bytes:
        if said is None:
            raise refused("no such function")
        return said

    assert TOKEN.address is not None
    scripted.chain.on_call(TOKEN.address, token_call("decimals"), decimals)
    found = int.from_bytes(said) if said and len(said) == 32 else "not answered"
    message = f"decimals of the token {TOKEN.address}: {found} on the chain, 6 in the file of network test"
    with pytest.raises(ChainError, match=message) as caught:
        scripted.market.identity.check()
    assert (caught.value.code, caught.value.retryable) == ("WRONG_CONTRACTS", False)


@pytest.mark.parametrize("name", [field.name for field in fields(NodeParameters)])
@pytest.mark.parametrize("code", ["other sources'", "ours"])
def test_check__a_parameter_of_nodes_that_the_contract_does_not_have__is_refused(
    rig: Rig, name: str, code: str
) -> None:
    """Of our own code its end tells the immutables, and the getters of others."""
    network = deployed(rig).market.network
    if code == "ours":
        for contract, names in LAYOUT.items():
            told = {getter: value for one, getter, value in said_of(network) if one == contract}
            words = b"".join(told.get(getter, 0).to_bytes(32, "big") for getter in names)
            made = artifact(contract)
            rig.chain.set_code(network.contracts[contract], made.runtime + words)
        answer_word(rig.chain, network.nodes, codec("NodeRegistry").selector(name.upper()), 3)
    before = rig.chain.counts["call"]
    rig.market.identity.check()
    assert rig.chain.counts["call"] - before == (2 if code == "ours" else 14)
    true = getattr(network.node_parameters, name)
    wrong = replace(network, node_parameters=replace(network.node_parameters, **{name: true + 1}))
    message = f"NodeRegistry.{name.upper()}: {true} on the chain, {true + 1} in the file of network test"
    with pytest.raises(ChainError, match=message) as caught:
        Market(rig.chain, wrong).identity.check()
    assert (caught.value.code, caught.value.retryable) == ("WRONG_CONTRACTS", False)


# ---- calls ----

ROLES = {
    *("engage", "submitted", "declined", "gave_up", "settled", "finished", "closed", "reclaimed", "slashed"),
    *("lock", "lock_credit", "split", "dispute", "rule"),
}
"""What only another contract calls."""
CHANGE = Change(ChangeOp.SET_MINIMUM_STAKE, 5, 7)
METERED = replace(TERMS, billing=Billing.METERED)
BUILT = {
    "post": lambda c: c.post(TERMS, (b"\1" * 32, b"\2" * 32)),
    "accept": lambda c: c.accept(TERMS, 1),
    "cancel": lambda c: c.cancel(TERMS, SENTINEL),
    "top_up": lambda c: c.top_up(METERED, 1, Unit(State.RUNNING, seconds=5), 60),
    "checkpoint": lambda c: c.checkpoint(JOB, 1, b"\1" * 32),
    "ack": lambda c: c.ack(TERMS, 1),
    "claim": lambda c: c.claim(TERMS, 1, NodeId(2)),
    "submit": lambda c: c.submit(JOB, 1, b"\1" * 32, b"\2" * 32, Outcome.OK, 3),
    "finish": lambda c: c.finish(TERMS, 1, b"\1" * 32, b"\2" * 32, Outcome.OK, 3, claims=True),
    "decline": lambda c: c.decline(TERMS, 1, Outcome.BAD_INPUT),
    "give_up": lambda c: c.give_up(TERMS, 1),
    "propose": lambda c: c.propose(TERMS, 1, NodeId(2), SUBMITTER),
    "settle": lambda c: c.settle(TERMS, 1),
    "settle_batch": lambda c: c.settle_batch([(TERMS, 1), (words.pack_terms(TERMS), 2)]),
    "close": lambda c: c.close(TERMS, 1),
    "reclaim": lambda c: c.reclaim(TERMS, 1),
    "expire": lambda c: c.expire(TERMS, 1),
    "unlock": lambda c: c.unlock(TERMS, (b"\1" * 32, b"\2" * 32)),
    "confirm": lambda c: c.confirm(TERMS, 1, [SUBMITTER], 1, [Signature(0, 27, 3, 4)]),
    "queue": lambda c: c.queue(CHANGE),
    "drop": lambda c: c.drop(CHANGE.id),
    "execute": lambda c: c.execute(CHANGE),
    "accept_council": lambda c: c.accept_council(),
    "set_policy": lambda c: c.set_policy(DEVNET.policy),
    "drop_previous_policy": lambda c: c.drop_previous_policy(),
    "pause": lambda c: c.pause("Rules"),
    "offer_governor": lambda c: c.offer_governor("NodeRegistry", SUBMITTER),
    "accept_governor": lambda c: c.accept_governor("Rules"),
    "register": lambda c: c.register(SUBMITTER, Offer(), b"\5" * 32, 9),
    "add_stake": lambda c: c.add_stake(NodeId(1), SUBMITTER, 9),
    "update_offer": lambda c: c.update_offer(NodeId(1), Offer(), b"\5" * 32),
    "set_ask": lambda c: c.set_ask(NodeId(1), 5),
    "set_operator": lambda c: c.set_operator(NodeId(1), SUBMITTER),
    "offer_owner": lambda c: c.offer_owner(NodeId(1), SUBMITTER),
    "accept_owner": lambda c: c.accept_owner(NodeId(1)),
    "exit_start": lambda c: c.exit_start(NodeId(1)),
    "exit_cancel": lambda c: c.exit_cancel(NodeId(1)),
    "exit_finish": lambda c: c.exit_finish(NodeId(1)),
    "beat": lambda c: c.beat(NodeId(1)),
    "heartbeat": lambda c: c.heartbeat([NodeId(1), NodeId(2)]),
    "check_liveness": lambda c: c.check_liveness([NodeId(1)]),
    "set_minimum_stake": lambda c: c.set_minimum_stake(5),
    "withdraw": lambda c: c.withdraw(SUBMITTER, 5),
    "performUpkeep": lambda c: c.perform_upkeep([Upkeep(UpkeepOp.LIVENESS, None, 1, 2)], SUBMITTER),
}


def writers() -> set[str]:
    return {
        entry["name"]
        for name in CONTRACTS
        for entry in artifact(name).abi
        if entry["type"] == "function" and entry["stateMutability"] in ("nonpayable", "payable")
    }


def test_calls__every_function_that_people_call__has_a_builder() -> None:
    assert set(BUILT) == writers() - ROLES
    builders = {n for n, _ in inspect.getmembers(Calls, inspect.isfunction) if not n.startswith("_")}
    named = {"perform_upkeep" if n == "performUpkeep" else n for n in BUILT}
    steward = {"steward_pause", "steward_drop_previous_policy", "steward_accept_governor"}
    assert builders - named == {"approve", "approve_post", "approve_stake", *steward}


@pytest.mark.parametrize(
    ("build", "name", "arguments"),
    [
        (lambda c: c.steward_pause(posts=True), "pause", {"posts": True, "registrations": False}),
        (lambda c: c.steward_pause(registrations=True), "pause", {"posts": False, "registrations": True}),
        (lambda c: c.steward_drop_previous_policy(), "drop_previous_policy", {}),
        (lambda c: c.steward_accept_governor(posts=True), "accept_governor", {"posts": True, "registrations": False}),
        (lambda c: c.queue(CHANGE), "queue", {"op": 2, "word": 5, "salt": 7}),
        (lambda c: c.execute(CHANGE), "execute", {"op": 2, "word": 5, "salt": 7}),
        (lambda c: c.drop(CHANGE.id), "drop", {"change": CHANGE.id}),
    ],
)
def test_calls__of_the_steward__are_what_it_decodes(build: Any, name: str, arguments: dict[str, Any]) -> None:
    rig = Rig()
    call = build(rig.market.calls)
    assert (call.to, call.label) == (rig.market.network.steward, f"steward.{name}")
    assert codec("Steward").decode_input(call.data) == (name, arguments)


@pytest.mark.parametrize("name", sorted(BUILT))
@pytest.mark.parametrize("asset", [NATIVE, TOKEN], ids=["native", "erc20"])
def test_calls__each__is_what_the_contract_decodes(name: str, asset: Asset) -> None:
    rig = Rig(asset)
    network = rig.market.network
    call = BUILT[name](rig.market.calls)  # type: ignore[no-untyped-call]
    (contract,) = [n for n, a in network.contracts.items() if a == call.to]
    decoded = codec(contract).decode_input(call.data)
    assert decoded is not None and decoded[0] == name
    assert call.label.endswith(f".{name}")
    topped = formulas.top_up_amount(METERED, Unit(State.RUNNING, seconds=5), 60)
    funded = {"post": formulas.escrow_at_post(TERMS), "top_up": topped, "register": 9, "add_stake": 9}
    assert call.value == (funded.get(name, 0) if asset.address is None else 0)
    if "payee" in decoded[1]:
        assert decoded[1]["payee"] == (SUBMITTER if name in ("propose", "performUpkeep") else ZERO_ADDRESS)
    if "terms" in decoded[1]:
        assert decoded[1]["terms"] == words.pack_terms(METERED if name == "top_up" else TERMS)


def test_calls__approvals__are_exact_and_only_for_tokens() -> None:
    calls = Rig(TOKEN).market.calls
    market = Rig(TOKEN).market
    types = ["address", "uint256"]
    selector = keccak(text="approve(address,uint256)")[:4]
    for call, spender, amount in (
        (calls.approve_post(TERMS), market.network.jobs, formulas.escrow_at_post(TERMS)),
        (calls.approve_stake(5), market.network.nodes, 5),
    ):
        assert (call.to, call.value) == (TOKEN.address, 0)
        assert call.data == selector + encode(types, [spender, amount])
    with pytest.raises(ValueError, match="approval"):
        Rig().market.calls.approve(SUBMITTER, 1)


def test_transfer__coin_or_token__moves_the_amount_and_nothing_else() -> None:
    data = keccak(text="transfer(address,uint256)")[:4] + encode(["address", "uint256"], [SUBMITTER, 7])
    assert transfer(TOKEN, SUBMITTER, 7) == Call(TOKEN.address, data, 0, "token.transfer")
    assert transfer(NATIVE, SUBMITTER, 7) == Call(SUBMITTER, b"", 7, "transfer")


def test_asset_balance__native_and_token__ask_the_right_place() -> None:
    native = Rig()
    native.chain.set_balance(SUBMITTER, 12)
    assert native.market.asset_balance(SUBMITTER) == 12
    assert native.market.allowance(SUBMITTER, SUBMITTER) == SENTINEL
    token = Rig(TOKEN)
    for name, value in (("balanceOf(address)", 34), ("allowance(address,address)", 56)):
        data = encode(["uint256"], [value])
        token.chain.on_call(TOKEN.address or "", keccak(text=name)[:4], lambda call, block, data=data: data)
    assert token.market.asset_balance(SUBMITTER) == 34 and token.market.allowance(SUBMITTER, SUBMITTER) == 56
