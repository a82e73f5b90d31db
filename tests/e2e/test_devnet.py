"""The devnet with real processes: up, down, up again; a whole job through market reads and the transaction path."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import ChainError, ConfigError, FundsError, NotFoundError, RefusedError
from hearth.base.files import make_private
from hearth.chain.follow import Cursor
from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal, TxState
from hearth.client.session import MAX_FEE, Session
from hearth.config.settings import Settings
from hearth.local import devnet
from hearth.local.devnet import free_port
from hearth.local.market import LocalMarket
from hearth.market.calls import Upkeep, UpkeepOp
from hearth.market.deployment import read_back
from hearth.market.events import (
    JobPosted,
    NodeRegistered,
    NodeUnitEvent,
    Settled,
    Started,
    Submitted,
    Withdrawn,
    topic_of,
)
from hearth.market.network import load_network
from hearth.market.reads import Market
from hearth.protocol import formulas
from hearth.protocol.types import (
    LOCAL_CHAIN_ID,
    SENTINEL,
    Gate,
    JobId,
    Needs,
    NodeId,
    Offer,
    Outcome,
    Runtime,
    State,
    Status,
    Terms,
)
from hearth.protocol.words import pack_policy, pack_terms
from tests.kit import build
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.running import RunningMarket, wait
from tools import schemas
from worker.build import label_of

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
ETHER = 10**18
OFFER = Offer(runtimes=Runtime.WASM, cores=4, ram_gib=8, disk_gib=10, slots=4, ask=10**18)
NEEDS = Needs(runtimes=Runtime.WASM, cores=1, ram_gib=1, disk_gib=1)


@pytest.fixture(scope="module", autouse=True)
def _needs_anvil() -> None:
    need_anvil()


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.deep)], ids=["native", "erc20"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMarket]:
    made = RunningMarket(tmp_path_factory.mktemp("devnet"), erc20=request.param)
    yield made
    made.close()


def terms_of(stage: RunningMarket, submitter: str, **changes: Any) -> Terms:
    plain = build.terms(
        submitter=submitter.lower(),
        salt=time.monotonic_ns() & (2**96 - 1),
        needs=NEEDS,
        ceiling=2 * 10**18,
        deadline=stage.chain.head().timestamp + 3_600,
        policy=stage.market.policies().word,
        max_attempts=2,
    )
    return replace(plain, **changes)


def pay(stage: RunningMarket, actor: int, approval: Any, call: Call, key: str) -> Any:
    """Approve where the asset is a token, then send."""
    sender = stage.sender(actor)
    if stage.net.network.asset.address is not None:
        sender.send(approval(), key=f"{key}/approve")
    return sender.send(call, key=key)


def test_market__a_whole_job__every_read_agrees_and_everybody_is_paid(stage: RunningMarket) -> None:
    market, chain, calls = stage.market, stage.chain, stage.market.calls
    submitter, owner, operator, keeper = (devnet.account(i).address.lower() for i in (1, 2, 3, 4))
    market.identity.check()

    stake = 10 * ETHER
    outcome = pay(
        stage,
        2,
        lambda: calls.approve_stake(stake),
        calls.register(operator, OFFER, b"\x55" * 32, stake),
        "register",
    )
    (registered,) = [e for e in stage.market.events_in(outcome.logs) if isinstance(e, NodeRegistered)]
    node = registered.node
    assert (registered.owner, registered.operator, registered.stake) == (owner, operator, stake)
    stage.sender(3).send(calls.beat(node), key="beat/1")

    head = chain.head()
    read = market.node(node, head.hash)
    assert (read.owner, read.operator, read.stake, read.offer) == (owner, operator, stake, OFFER)
    assert market.nodes(head.hash)[node - 1] == read
    assert read.state.beat == market.last_seen(node, head.hash)
    parameters = market.network.node_parameters
    assert formulas.status(read, head.timestamp, parameters.dead_after, parameters.minimum_stake) is Status.ACTIVE
    assert market.totals(head.hash).total == stake

    terms = terms_of(stage, submitter)
    job = market.job_id(terms)
    posted = pay(stage, 1, lambda: calls.approve_post(terms), calls.post(terms), "post")
    key = formulas.lock_key(terms.submitter)
    assert market.locked(market.network.jobs, key) == formulas.escrow_at_post(terms)
    assert market.terms_of(job).terms == terms
    assert market.terms_of(job).log.tx_hash == posted.tx_hash
    assert market.unit(job).unit.state is State.OPEN and market.header(job) is None

    # The node beats every two seconds in life; here it may have lapsed while posting.
    stage.sender(3).send(calls.beat(node), key="beat/2")
    assert market.fit(terms, 0, node, claim=True) is Gate.FITS
    opened = market.unit(job).unit.started
    assert market.claimable_from(terms, 0, terms.ceiling // 4) == opened
    assert market.claimable_from(terms, 0, terms.ceiling) == opened + market.policy().claim_ramp
    assert market.claimable_from(terms, 0, terms.ceiling + 1) is None
    rate, score, key = market.score(terms, 0, node)
    assert rate == OFFER.ask and 0 < score <= 10**8 and key >> 40 == score // formulas.BUCKET
    stage.sender(3).send(calls.claim(terms, 0, node), key="claim")
    with pytest.raises(RefusedError) as caught:
        stage.sender(3).send(calls.claim(terms, 0, node), key="claim/again")
    assert caught.value.details["reason"] == "jobs: not open"
    assert market.unit_now(terms, 0).unit.node == node

    stage.sender(3).send(calls.submit(job, 0, b"\x11" * 32, b"\x22" * 32, Outcome.OK), key="submit")
    candidates = [Upkeep(UpkeepOp.SETTLE, pack_terms(terms), 0), Upkeep(UpkeepOp.LIVENESS, None, 1, 1)]
    # The node is new: its result waits, and it does not beat meanwhile.
    due_at = formulas.settleable_from(terms, market.unit(job).unit)
    assert due_at == market.unit(job).unit.mark + market.policy().fresh_delay
    head = chain.head()
    if head.timestamp < due_at:
        assert candidates[0] not in market.check_upkeep(candidates, head.hash)
    wait(lambda: chain.head().timestamp >= due_at, "the delay is over")
    due = market.check_upkeep(candidates)
    assert due[0] == Upkeep(UpkeepOp.SETTLE, pack_terms(terms), 0)
    settled = stage.sender(4).send(calls.perform_upkeep(due[:1]), key="upkeep")
    (event,) = [e for e in market.events_in(settled.logs) if isinstance(e, Settled)]
    assert (event.job_id, event.index, event.node) == (job, 0, node)
    expected = formulas.pay_at_settle(terms, replace(market.unit(job).unit, started=0, mark=60))
    assert event.pay == expected and event.fee == formulas.fee_of(expected, market.policy())

    treasury = devnet.account(devnet.TREASURY).address.lower()
    credits = {who: market.credit(who) for who in (owner, treasury, keeper, submitter)}
    assert credits[owner] == event.pay - event.fee and credits[treasury] == event.fee
    assert sum(credits.values()) == formulas.escrow_at_post(terms)
    owed = stake + formulas.escrow_at_post(terms)
    assert market.asset_balance(market.network.escrow) == owed
    assert market.tracked() == (0 if market.network.asset.address is None else owed)
    before = market.asset_balance("0x" + "12" * 20)
    withdrawn = stage.sender(2).send(calls.withdraw("0x" + "12" * 20, credits[owner]), key="withdraw")
    assert market.asset_balance("0x" + "12" * 20) == before + credits[owner] and market.credit(owner) == 0
    assert [e.amount for e in market.events_in(withdrawn.logs) if isinstance(e, Withdrawn)] == [credits[owner]]

    # A reader that starts from nothing sees the same end, by the events alone.
    contracts, topics = list(market.network.contracts.values()), map(topic_of, (Started, Submitted, Settled))
    cursor = Cursor(chain, contracts, market.network.deploy_block, topics=topics)
    tick = cursor.read()
    rows = [event for event in market.events_in(tick.logs) if isinstance(event, NodeUnitEvent)]
    assert [type(row).__name__ for row in rows] == ["Started", "Submitted", "Settled"]
    assert rows[-1].word == market.job_word(job)
    cursor.close()


def test_market__an_array__pages_and_headers_agree(stage: RunningMarket) -> None:
    market, calls = stage.market, stage.market.calls
    submitter = devnet.account(1).address
    terms = terms_of(stage, submitter, units=300)
    pay(stage, 1, lambda: calls.approve_post(terms), calls.post(terms), "array")
    job = market.job_id(terms)
    head = stage.chain.head().hash
    header = market.header(job, head)
    assert header is not None and (header.touched, header.closed) == (0, False)
    views = market.units(job, 0, 300, head)
    assert len(views) == 300 and {view.unit.state for view in views} == {State.OPEN}
    assert {view.unit.started for view in views} == {header.opened}
    stage.sender(1).send(calls.cancel(terms, SENTINEL), key="array/cancel")
    header = market.header(job)
    assert header is not None and header.closed
    assert market.unit(job, 7).unit.state is State.CANCELLED
    assert market.locked(market.network.jobs, formulas.lock_key(terms.submitter)) == 0
    assert market.job_words([job, JobId(b"\1" * 32)]) == [market.job_word(job), 0]


def test_market__what_is_not_there__is_not_found(stage: RunningMarket) -> None:
    nobody = JobId(b"\x01" * 32)
    with pytest.raises(NotFoundError):
        stage.market.unit(nobody)
    with pytest.raises(NotFoundError):
        stage.market.terms_of(nobody)
    with pytest.raises(NotFoundError):
        stage.market.node(NodeId(4_000_000))


def test_check__another_market_or_chain__is_refused(stage: RunningMarket) -> None:
    network = stage.net.network
    wrong = [
        (replace(network, chain_id=1), "WRONG_CHAIN"),
        (replace(network, genesis_hash=b"\x01" * 32), "WRONG_CHAIN"),
        (replace(network, contracts={**network.contracts, "Lens": "0x" + "99" * 20}), "WRONG_CONTRACTS"),
        (replace(network, contracts={**network.contracts, "Lens": network.escrow}), "WRONG_CONTRACTS"),
        (replace(network, contracts={**network.contracts, "Rules": network.lens}, code_hashes={}), "WRONG_CONTRACTS"),
    ]
    for other, code in wrong:
        with pytest.raises(ChainError) as caught:
            Market(stage.chain, other).identity.check()
        assert caught.value.code == code and not caught.value.retryable


def test_send__the_same_terms_twice__is_refused_before_paying(stage: RunningMarket) -> None:
    calls = stage.market.calls
    terms = terms_of(stage, devnet.account(5).address)
    pay(stage, 5, lambda: calls.approve_post(terms), calls.post(terms), "twice/1")
    balance = stage.chain.balance(devnet.account(5).address)
    with pytest.raises(RefusedError, match="jobs: "):
        stage.sender(5).send(calls.post(terms), key="twice/2")
    assert stage.chain.balance(devnet.account(5).address) == balance


def test_send__an_empty_account__is_told_what_is_short(stage: RunningMarket) -> None:
    from eth_account import Account

    poor = Account.from_key(b"\x42" * 32)
    folder = stage.home / "poor"
    journal = TxJournal(
        folder / "tx.db",
        chain_id=LOCAL_CHAIN_ID,
        genesis_hash=stage.net.network.genesis_hash,
        address=poor.address,
    )
    with pytest.raises(FundsError) as caught:
        Sender(stage.chain, poor, journal, SenderConfig(MAX_FEE)).send(Call(poor.address, b"", 5), key="x")
    assert caught.value.details["short_by"] == "5"
    devnet.fund(stage.chain, stage.net.network, poor.address, wei=ETHER, tokens=7)
    assert stage.chain.balance(poor.address) == ETHER
    if stage.net.network.asset.address is not None:
        assert stage.market.asset_balance(poor.address) == 7
    journal.close()


# ---- up and down ----


def test_up__called_again__finds_what_runs(stage: RunningMarket) -> None:
    again = devnet.up(stage.home, stage.port, erc20=stage.net.network.asset.address is not None)
    assert (again.pid, again.started, again.deployed) == (stage.net.pid, False, False)
    assert again.network == stage.net.network == load_network(stage.net.network_file)
    shown = devnet.status(stage.home)
    assert shown.running and shown.pid == again.pid and shown.head is not None and shown.head >= 4


def test_up__the_other_asset__is_refused(stage: RunningMarket) -> None:
    with pytest.raises(ConfigError) as caught:
        devnet.up(stage.home, stage.port, erc20=stage.net.network.asset.address is None)
    assert caught.value.code == "DEVNET_ASSET"


def test_up__market_of_an_older_version__is_refused_with_the_way_to_a_new_one(stage: RunningMarket) -> None:
    path = stage.net.network_file
    good = path.read_text()
    older = json.loads(good)
    del older["contracts"]["Rules"]
    path.write_text(json.dumps(older))
    try:
        with pytest.raises(ConfigError, match="Rules") as caught:
            devnet.up(stage.home, stage.port, erc20=stage.net.network.asset.address is not None)
        assert (caught.value.code, caught.value.hint) == ("BAD_NETWORK", "hearth devnet down --wipe")
    finally:
        path.write_text(good)


def test_up__busy_port__is_refused_with_another_one(stage: RunningMarket, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        devnet.up(tmp_path, stage.port)
    assert caught.value.code == "PORT_BUSY" and str(stage.port + 1) in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        devnet.up(stage.home, free_port())
    assert caught.value.code == "DEVNET_RUNS"


def test_down__then_up__keeps_the_chain_and_the_market(tmp_path: Path) -> None:
    port = free_port()
    first = devnet.up(tmp_path, port)
    try:
        chain = RpcChain([first.url], timeout=10)
        height = chain.head().number
        assert devnet.down(tmp_path) and not devnet.down(tmp_path)
        assert not devnet.status(tmp_path).running
        with pytest.raises(ChainError):
            RpcChain([first.url], timeout=2, attempts=1).chain_id()
        second = devnet.up(tmp_path, port)
        assert second.started and not second.deployed and second.network == first.network
        assert chain.head().number >= height
        assert chain.head().timestamp >= chain.block(height).timestamp  # type: ignore[union-attr]
        # Killed without a word, the process file is stale and the chain is what the last dump holds.
        os.kill(second.pid, signal.SIGKILL)
        third = devnet.up(tmp_path, port)
        assert third.started and third.pid != second.pid
        Market(chain, third.network).identity.check()
    finally:
        devnet.down(tmp_path)
    devnet.wipe(tmp_path)
    assert not (tmp_path / "chain.json").exists() and not (tmp_path / "networks").exists()


def test_up__again_and_again__is_the_same_chain_with_the_same_market(tmp_path: Path) -> None:
    port = free_port()
    first = devnet.up(tmp_path, port)
    try:
        for _ in range(4):
            devnet.down(tmp_path)
            again = devnet.up(tmp_path, port)
            assert (again.deployed, again.network, again.lost) == (False, first.network, None)
    finally:
        devnet.down(tmp_path)


def test_up__two_in_one_second__are_two_chains_whose_workers_name_their_sandboxes_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = tmp_path / "anvil-of-one-second"
    second.write_text(f'#!/bin/sh\nexec {devnet.find_anvil()} "$@" --timestamp {int(time.time())}\n')
    second.chmod(0o700)
    monkeypatch.setenv("HEARTH_ANVIL", str(second))
    homes = [tmp_path / name for name in ("one", "other")]
    try:
        found = [devnet.up(home, free_port()) for home in homes]
        zeros = [RpcChain([net.url], timeout=10).block(0) for net in found]
        assert len({zero.timestamp for zero in zeros if zero is not None}) == 1, "they began in one second"
        assert len({label_of(net.network, build.node(1)) for net in found}) == 2
    finally:
        for home in homes:
            devnet.down(home)


def test_up__killed__says_which_blocks_it_lost_and_the_same_key_sends_again(tmp_path: Path) -> None:
    port, home = free_port(), tmp_path / "home"
    home.mkdir(mode=0o700)
    first = devnet.up(home, port)
    chain, account = RpcChain([first.url], timeout=10), devnet.account(1)
    genesis = first.network.genesis_hash
    journal = TxJournal(tmp_path / "tx.db", chain_id=LOCAL_CHAIN_ID, genesis_hash=genesis, address=account.address)
    try:
        sender = Sender(chain, account, journal, SenderConfig(MAX_FEE, poll=0.1, timeout=60))
        call = Call(devnet.account(2).address, b"", 1)
        kept = sender.send(call, key="kept").tx_hash
        assert kept is not None
        wait(
            lambda: _stopped_with(first.pid, home / devnet.SAVED, kept), "the chain saves itself every few seconds", 60
        )
        os.kill(first.pid, signal.SIGKILL)
        second = devnet.up(home, port)
        assert not second.deployed and chain.receipt(kept) is not None
        assert second.lost is None or second.lost.blocks <= devnet.SAVE_SECONDS + 3

        gone = sender.send(call, key="gone")
        assert gone.tx_hash is not None and gone.block_number is not None
        os.kill(second.pid, signal.SIGKILL)
        wait(lambda: not devnet.status(home).running, "it is gone", 30)
        # Killed while it wrote: what it was started with is whole.
        saved = _read(home / devnet.SAVED)
        (home / devnet.SAVED).write_bytes(saved[: len(saved) // 2])
        heard: list[str] = []
        session = Session(Settings(home=home), tell=lambda kind, facts: heard.append(f"{kind}: {facts.get('text')}"))
        third = LocalMarket(session).up(port=port)
        schemas.validate(dict(third))
        assert (third["started"], third["deployed"]) == (True, False)
        assert third["lost"]["transactions"] == ["0x" + gone.tx_hash.hex()]
        assert third["lost"]["reached"] >= gone.block_number > third["lost"]["reached"] - third["lost"]["blocks"]
        (warning,) = [line for line in heard if line.startswith("warning")]
        assert heard[0] == "step: starting the chain and the market"
        assert gone.tx_hash.hex() in warning and f"passed block {third['lost']['reached']} again" in warning
        assert chain.receipt(kept) is not None
        heard.clear()
        assert not LocalMarket(session).up(port=port)["started"]
        assert heard == ["step: looking at the chain and the market"]

        while chain.head().number <= third["lost"]["reached"]:
            time.sleep(0.2)
        sender.reconcile()
        again = sender.send(call, key="gone")
        assert again.tx_hash == gone.tx_hash and chain.receipt(gone.tx_hash) is not None
    finally:
        journal.close()
        devnet.down(home)


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _stopped_with(pid: int, saved: Path, transaction: bytes) -> bool:
    """Stop a chain while it is not writing what it saves, and say whether a transaction is in that; else let it go on.

    Killed while it writes the first of it, it would begin anew.
    """
    os.kill(pid, signal.SIGSTOP)
    with contextlib.suppress(ValueError):
        text = _read(saved)
        json.loads(text)  # it is whole
        if transaction.hex().encode() in text:
            return True
    os.kill(pid, signal.SIGCONT)
    return False


def test_up__stale_process_file_with_another_process_id__is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "anvil.json").write_text(json.dumps({"pid": os.getpid(), "port": 1, "binary": "x"}))
    assert not devnet.status(tmp_path).running
    assert not devnet.down(tmp_path), "it must never stop a process that it did not start"
    (tmp_path / "anvil.json").write_text("{")
    assert not devnet.status(tmp_path).running


def test_up__anvil_dies_at_start__says_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "anvil"
    broken.write_text("#!/bin/sh\necho no room left\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("HEARTH_ANVIL", str(broken))
    with pytest.raises(ChainError) as caught:
        devnet.up(tmp_path / "home", free_port(), timeout=10)
    assert caught.value.code == "DEVNET_START" and "no room left" in caught.value.message


def test_up__child_without_its_arguments_yet__is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\nsleep 0.5\nexec {shlex.quote(str(need_anvil()))} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("HEARTH_ANVIL", str(slow))
    home = tmp_path / "home"
    try:
        assert devnet.up(home, free_port()).started
    finally:
        devnet.down(home)


def test_find_anvil__nowhere__says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTH_ANVIL", str(tmp_path / "none"))
    with pytest.raises(ConfigError):
        devnet.find_anvil()
    monkeypatch.delenv("HEARTH_ANVIL")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(devnet, "__file__", str(tmp_path / "clone" / "hearth" / "local" / "devnet.py"))
    lasting = tmp_path / "a home"
    monkeypatch.setenv("HEARTH_HOME", str(lasting))
    with pytest.raises(ConfigError) as caught:
        devnet.find_anvil(tmp_path / "other")
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]
    install = f"npm install --prefix '{lasting}' @foundry-rs/anvil@{wanted['@foundry-rs/anvil']}"
    assert caught.value.code == "NO_ANVIL" and caught.value.hint == f"mkdir -p -m 700 '{lasting}' && {install}"
    # As npm does, the folders that it misses are made for everybody to enter: the home is to be private all the same.
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\numask 022\nmkdir -p "$3/node_modules/.bin" && : > "$3/node_modules/.bin/anvil"\n')
    npm.chmod(0o755)
    for _ in range(2):
        subprocess.run(caught.value.hint, shell=True, check=True, env={"PATH": f"{tmp_path}:{os.defpath}"})
        make_private(lasting)
    # Where the command puts it, it is found, whatever home the chain has; a chain's own home comes first.
    assert devnet.find_anvil() == devnet.find_anvil(tmp_path / "other") == lasting / "node_modules" / ".bin" / "anvil"
    _put_anvil(tmp_path / "other")
    assert devnet.find_anvil(tmp_path / "other") == tmp_path / "other" / "node_modules" / ".bin" / "anvil"


def _put_anvil(folder: Path) -> None:
    program = folder / "node_modules" / ".bin" / "anvil"
    program.parent.mkdir(parents=True)
    program.write_text("", encoding="utf-8")


def test_deploy__read_back_again_later__still_as_planned_but_for_the_counters(stage: RunningMarket) -> None:
    from hearth.market.deployment import make_plan
    from hearth.market.profiles import DEVNET

    first = 11 if stage.net.network.asset.address else 0
    nonce = next(n for n in range(first + 20) if _first_address(n) == stage.net.network.escrow)
    plan = make_plan(
        DEVNET,
        stage.net.network.asset,
        deployer=devnet.account(devnet.DEPLOYER).address,
        nonce=nonce,
        treasury=devnet.account(devnet.TREASURY).address,
        council=devnet.account(devnet.DEPLOYER).address,
    )
    fixed = {name: {g: v for g, v in values.items() if g.isupper()} for name, values in plan.expected.items()}
    assert read_back(replace(plan, expected=fixed), stage.chain) == stage.net.network.code_hashes
    assert stage.net.network.policy == pack_policy(DEVNET.policy)


def _first_address(nonce: int) -> str:
    from hearth.market.creation import create_address

    return create_address(devnet.account(devnet.DEPLOYER).address, nonce)


def test_logs__of_a_real_chain__by_range_and_by_hash_agree(stage: RunningMarket) -> None:
    head = stage.chain.head().number
    addresses = list(stage.net.network.contracts.values())
    ranged = stage.chain.logs(addresses, from_block=0, to_block=head)
    single = [
        log
        for number in {log.block_number for log in ranged}
        for log in stage.chain.logs(addresses, block_hash=stage.chain.block(number).hash)  # type: ignore[union-attr]
    ]
    assert sorted(single) == sorted(ranged) and len(ranged) > 5
    posts = stage.chain.logs(addresses, [topic_of(JobPosted)], from_block=0, to_block=head)
    assert len(posts) == len([log for log in ranged if log.topics[0] == topic_of(JobPosted)])


# ---- kill -9 at every moment of a transaction ----

_VICTIM = """
import sys
from pathlib import Path
from hearth.local import devnet
from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.chain.tx_journal import TxJournal
from hearth.chain.tx import Sender, SenderConfig
from hearth.client.session import MAX_FEE
from hearth.protocol.types import LOCAL_CHAIN_ID
url, folder, index = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
chain = RpcChain([url], timeout=10)
account = devnet.account(index)
genesis = chain.genesis_hash()
journal = TxJournal(folder / "tx.db", chain_id=LOCAL_CHAIN_ID, genesis_hash=genesis, address=account.address)
sender = Sender(chain, account, journal, SenderConfig(MAX_FEE, poll=0.1, timeout=60, finality=1))
print(sender.reconcile())
outcome = sender.send(Call("0x" + "fe" * 20, b"", 1, "test.pay"), key="pay")
print(outcome.tx_hash.hex())
while journal.find("pay").state != "final":
    sender.reconcile()
"""


@pytest.mark.parametrize("stage", [False], ids=["native"], indirect=True)
@pytest.mark.parametrize("point", ["m2.intent", "m7.signed", "m8.broadcast", "m9.mined", "m10.final"])
def test_send__killed_at_each_moment__is_done_exactly_once(stage: RunningMarket, tmp_path: Path, point: str) -> None:
    index = 8
    account = devnet.account(index).address
    nonce, paid = stage.chain.nonce(account), stage.chain.balance("0x" + "fe" * 20)
    command = [sys.executable, "-c", _VICTIM, stage.net.url, str(tmp_path), str(index)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    first = subprocess.run(
        command, env={**environment, "HEARTH_FAILPOINT": f"{point}@test.pay"}, capture_output=True, timeout=120
    )
    assert first.returncode == -signal.SIGKILL, first.stderr
    assert f"failpoint {point}".encode() in first.stderr
    second = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert second.returncode == 0, second.stderr
    assert stage.chain.nonce(account) == nonce + 1
    assert stage.chain.balance("0x" + "fe" * 20) == paid + 1


# ---- reorgs on a real chain ----


def test_reorg__on_a_real_chain__cursor_and_journal_end_at_the_truth(tmp_path: Path) -> None:
    """anvil_reorg drops the last blocks; their transactions are gone, as in a pool that forgot them."""
    with bare_chain() as url:
        chain = RpcChain([url], timeout=5, attempts=1)
        account = devnet.account(0)
        genesis = chain.genesis_hash()
        journal = TxJournal(tmp_path / "tx.db", chain_id=LOCAL_CHAIN_ID, genesis_hash=genesis, address=account.address)
        sender = Sender(chain, account, journal, SenderConfig(MAX_FEE, poll=0.02, timeout=20))
        cursor = Cursor(chain, ["0x" + "aa" * 20], 0, tmp_path / "cursor.db", topics=(bytes(32),))
        chain.rpc("anvil_mine", "0x5")
        outcome = sender.send(Call("0x" + "fd" * 20, b"", 3, "test.pay"), key="pay")
        tick = cursor.read()
        cursor.advance(tick)
        assert tick.behind == 0 and cursor.position == chain.head().number
        chain.rpc("anvil_reorg", 3, [])
        assert chain.receipt(outcome.tx_hash or b"") is None
        tick = cursor.read()
        assert [mark.number for mark in tick.orphaned] == sorted((m.number for m in tick.orphaned), reverse=True)
        assert len(tick.orphaned) == 3
        cursor.advance(tick)
        assert sender.reconcile().reorged == 1
        assert sender.send(Call("0x" + "fd" * 20, b"", 3, "test.pay"), key="pay").tx_hash == outcome.tx_hash
        assert chain.balance("0x" + "fd" * 20) == 3 and chain.nonce(account.address) == 1
        assert journal.intents(TxState.MINED)[0].block_hash == chain.head().hash
        with pytest.raises(ChainError):
            chain.call(Call("0x" + "fd" * 20, b""), outcome.block_hash or b"")
        journal.close()
        cursor.close()


# ---- a chain that somebody else runs ----


def test_join__a_local_chain_that_runs__deploys_once_and_makes_the_keys(tmp_path: Path) -> None:
    with bare_chain("--chain-id", str(LOCAL_CHAIN_ID)) as url:
        local = LocalMarket(Session(Settings(home=tmp_path)))
        local.join([url])
        network = load_network(tmp_path / "networks" / "devnet.json")
        assert network.rpc == (url,)
        Market(RpcChain([url]), network).identity.check()
        nonce = RpcChain([url]).nonce(devnet.account(devnet.DEPLOYER).address)
        local.join([url])
        assert load_network(tmp_path / "networks" / "devnet.json") == network
        assert RpcChain([url]).nonce(devnet.account(devnet.DEPLOYER).address) == nonce
    assert {path.stem for path in (tmp_path / "keys").glob("*.json")} >= {"dev", "worker", "keeper", "provider"}
    assert not devnet.status(tmp_path).running


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--chain-id", "4242"), "serves chain 4242: the keys are public"),
        (("--chain-id", str(LOCAL_CHAIN_ID), "--balance", "99"), "10 of the 10 public accounts have less than 100"),
    ],
)
def test_join__a_chain_that_is_not_local_or_whose_accounts_are_poor__is_sent_nothing(
    tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    with bare_chain(*arguments) as url:
        with pytest.raises(ChainError, match=why) as refused:
            LocalMarket(Session(Settings(home=tmp_path))).join([url])
        assert refused.value.code == "WRONG_CHAIN" and RpcChain([url]).head().number == 0
    assert not list((tmp_path / "networks").glob("*")) and not list((tmp_path / "keys").glob("*"))
