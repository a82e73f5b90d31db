"""The campaigns in small: each gentle fault once on one market; and what plans them and counts."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ChainError, StorageError
from hearth.chain.rpc import RpcChain
from hearth.chain.tx_journal import SCHEMA, TxJournal
from hearth.protocol.types import JobId
from hearth.storage import cid as cids
from hearth.storage.stores import GatewayStore
from tests.chaos import evidence, faults, gateways, kills, lasting, oracle, proxy, reorgs, rpc, soak
from tests.chaos.alerts import Window
from tests.chaos.market import chaos_market
from tests.chaos.proxy import Honest, Usage, between
from tests.kit import wall_clock
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.liars import Asked
from tests.kit.running import wait

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_make_old__journal_of_now__is_one_that_its_steps_bring_back(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"chain_id": 1, "address": "0x" + "5a" * 20, "genesis_hash": bytes(32)}
    path = tmp_path / "tx.db"
    TxJournal(path, **facts).close()
    lasting.make_old(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (0,)
    TxJournal(path, **facts).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA.version,)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["machines", "strangers"])
def test_gentle_faults__each_once__nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    need_anvil()
    committed = [one for one in faults.GENTLE if (one in faults.STRANGERS) == (kind == "strangers")]
    rng = random.Random(7)
    monkeypatch.setattr(rng, "uniform", lambda low, high: low)
    said: dict[str, str] = {}
    with chaos_market(tmp_path / "market", dead_after=reorgs.DEAD_AFTER) as market, ExitStack() as stack:
        scene = faults.set_scene(market, stack, "one", rng)
        market.chain.rpc("anvil_mine", hex(reorgs.MAX_DEPTH + 4))
        for fault in committed:
            scene.lane.post()
            said[fault.__name__] = fault(scene)
        soak.end(soaked := soak.Soak(), "one", scene)
        facts = oracle.gather(market, stale=[scene.lane.operator, scene.keeper.address])
        assert oracle.judge(facts) == []
    assert soaked.wrong == [] and soaked.jobs == len(committed)
    assert all(said.values()), said


def test_lacking__kind_that_nobody_saw__is_wrong() -> None:
    assert evidence.lacking(Counter(reorg=3, stall=1), Counter(reorg=1, stall=1)) == []
    (said,) = evidence.lacking(Counter(reorg=3, stall=1), Counter(stall=1))
    assert said == "evidence: reorg was seen 0 times of 3, and 1 are wanted"
    (never,) = evidence.lacking({"upgrade": 0}, {})
    assert never.startswith("evidence: upgrade was seen 0 times of 0")


@pytest.mark.parametrize(
    ("times", "seen", "right"),
    [(9, 1, True), (9, 0, False), (10, 9, True), (10, 8, False), (31, 28, True), (31, 27, False)],
)
def test_soak__kind_that_is_committed_often__is_seen_nine_times_in_ten(times: int, seen: int, right: bool) -> None:
    soaked = soak.Soak()
    each = ["seen"] * seen + [""] * (times - seen)
    # What the end of the soak cut short is neither.
    soaked.committed = [soak.Committed(Window("reorg", "steady", 0.0, 1.0), one) for one in (*each, None)]
    assert (soaked.unseen() == []) is right


def test_soak__fault_that_shows_nothing__is_wrong_in_the_end() -> None:
    soaked = soak.Soak()
    soaked.commit("reorg", SimpleNamespace(lane=SimpleNamespace(name="steady")), lambda: "")  # type: ignore[arg-type]
    assert [said.partition(" was")[0] for said in soaked.unseen()] == ["evidence: reorg"]


def test_soak__fault_that_it_has_to_commit_and_never_did__is_wrong() -> None:
    (said,) = soak.Soak(wanted=("upgrade",)).unseen()
    assert said.startswith("evidence: upgrade was seen 0 times of 0")


def test_soak__thread_that_ends_early__is_wrong() -> None:
    def falls() -> None:
        raise KeyError("VmRSS")

    soaked = soak.Soak()
    with ThreadPoolExecutor(2) as pool:
        soaked.join([pool.submit(falls), pool.submit(lambda: None)])
    assert soaked.wrong == ["a thread of the soak ended with KeyError('VmRSS')"]


def test_kills__point_that_nobody_died_at_often_enough__is_wrong() -> None:
    plan = kills.Plan(("wasm", "docker"), rounds=2, lanes=1, seed=1)
    result = kills.Result(wanted=plan.cells("keeper", kills.KEEPER_POINTS[:2]))
    for runtime in plan.runtimes:
        for point in kills.KEEPER_POINTS[:2] * 2:
            result.add(kills.Kill("keeper", runtime, point, JobId(bytes(32)), 0.0, evidence="settle/1 signed"))
    assert result.lacking() == []
    result.kills[0].evidence = ""
    (said,) = result.lacking()
    assert said == f"evidence: keeper, wasm, {kills.KEEPER_POINTS[0]} was seen 1 times of 2, and 2 are wanted"


def test_rpc__daemon_that_used_nothing_and_answer_that_nobody_used__are_wrong() -> None:
    heard, deaf = Usage(), Usage()
    heard.answered("lags")
    heard.asked()
    pair = rpc.Pair("one that lags", None, None, {"worker": heard, "keeper": heard}, [])  # type: ignore[arg-type]
    assert rpc.unheard([pair]) == []
    deaf.answered("breaks")
    pair.usages["keeper"] = deaf
    said = [one.partition(" was")[0] for one in rpc.unheard([pair])]
    assert said == ["evidence: what a keeper hears of one that lags", "evidence: breaks"]


def test_gateway__each_lie__is_no_block_and_is_on_record_and_nobody_follows(tmp_path: Path) -> None:
    with gateways.larder(tmp_path, gateways=1) as larder:
        (one,), wanted = larder.gateways, cids.parse(larder.input().cid)
        store = GatewayStore(one.url.removeprefix("gateway+"))
        for lie in gateways.LIES:
            one.says(lie)
            with pytest.raises(StorageError):
                store.get_block(wanted, 10)
            wait(lambda lie=lie: one.told[lie], f"{lie} is on record", 10)  # type: ignore[misc]
        one.says("truth")
        assert store.get_block(wanted, 10)
        store.close()
        wait(lambda: one.told["truth"], "the truth is on record", 10)
        assert one.told == Counter([*gateways.LIES, "truth"])


def test_gateway__stopped__what_nobody_read_is_seen(tmp_path: Path) -> None:
    with gateways.larder(tmp_path, gateways=1) as larder:
        (one,), wanted = larder.gateways, cids.parse(larder.input().cid)
        os.kill(one.pid, signal.SIGSTOP)
        assert not one.waiting
        with pytest.raises(StorageError, match="deadline"):
            GatewayStore(one.url.removeprefix("gateway+")).get_block(wanted, 0.5)
        assert one.waiting
        os.kill(one.pid, signal.SIGCONT)


def test_clock__moved__a_programs_wall_clock_changes_and_no_other(tmp_path: Path) -> None:
    clock = wall_clock.Clock(tmp_path / "clock")
    clock.set(-7200)
    code = (
        "import time; true = time.time; from tests.chaos import preload\nprint(time.time() - true(), time.monotonic())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **clock.environ}, capture_output=True, text=True, check=True
    )
    shift, monotonic = map(float, done.stdout.split())
    assert round(shift) == -7200 and 0 <= time.monotonic() - monotonic < 60


def test_worker_jobs__rounds__every_point_as_often_and_in_the_order_of_life() -> None:
    jobs = kills.worker_jobs(random.Random(1), 5)
    met = Counter(point for job in jobs for point in job)
    assert met == dict.fromkeys((*kills.WORKER_LIFE, *kills.WORKER_FINAL), 5)
    for job in jobs:
        life = kills.WORKER_LIFE if job[0] in kills.WORKER_LIFE else kills.WORKER_FINAL
        assert list(job) == sorted(job, key=life.index)
        assert len(kills.RUN & set(job)) <= 2


def test_depths__64_runs__each_depth_once() -> None:
    assert sorted(reorgs.depths(random.Random(1), 64)) == list(range(1, 65))


@pytest.mark.parametrize("what", soak.GROWTH)
def test_swollen__a_leak_or_no_samples__is_wrong(what: str) -> None:
    level = 50.0 * soak.MIB if what == "memory" else 40.0
    flat = [level + random.Random(1).random() for _ in range(90)]
    leak = [value + at * (level / 150 if what == "memory" else 0.5) for at, value in enumerate(flat)]
    warm = [level / 2] * 30 + [level] * 60
    others = {other: [1.0] * soak.MIN_SAMPLES for other in soak.GROWTH}
    assert soak.swollen({**others, what: flat}) == soak.swollen({**others, what: warm}) == []
    assert soak.swollen({**others, what: leak})[0].startswith(f"{what} grew")
    assert soak.swollen({**others, what: flat[:8]}) == [f"{what} was sampled 8 times, and 9 are wanted"]
    assert len(soak.swollen({})) == len(soak.GROWTH)


def test_used_by__a_process_that_takes_memory_and_descriptors__is_measured() -> None:
    code = (
        "import time; kept = bytearray(64 << 20); files = [open('/dev/null') for _ in range(50)]\n"
        "print(flush=True); time.sleep(60)"
    )
    plain = subprocess.Popen(["sleep", "60"])
    greedy = subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE)
    try:
        assert greedy.stdout is not None and greedy.stdout.readline()
        less, more = soak.used_by(plain.pid), soak.used_by(greedy.pid)
        assert more["memory"] > less["memory"] + (60 << 20)
        assert more["descriptors"] >= less["descriptors"] + 45
    finally:
        for process in (plain, greedy):
            process.kill()
            process.wait()


def test_proxy__answer_that_nobody_came_back_after__is_told_and_not_used() -> None:
    need_anvil()
    usage = Usage()
    with bare_chain() as url, between(url, [{"breaks": (proxy.breaks, 1.0)}], usage, rate=1.0, seed=1) as (one,):
        chain = RpcChain([one.url], attempts=2, sleep=lambda seconds: None)
        with pytest.raises(ChainError):
            chain.head()
        wait(lambda: usage.told["breaks"] == 2, "both false answers are counted", 10)
        assert usage.used["breaks"] == 1
        one.rate = 0.0
        assert chain.head().number == 0
        assert (usage.told["breaks"], usage.used["breaks"]) == (2, 2)


def test_proxy__lie_with_nothing_to_falsify__is_the_truth_and_not_counted() -> None:
    need_anvil()
    usage = Usage()
    with bare_chain() as url, between(url, [{"drops": (proxy.drops_a_log, 1.0)}], usage, rate=1.0, seed=1) as (one,):
        assert RpcChain([one.url]).head().number == 0
    assert not usage.told


@pytest.mark.parametrize("name", sorted(set(proxy.LYING) - set(proxy.BROKEN) - {"lags"}))
def test_lies__method_that_they_are_not_about__are_honest(name: str) -> None:
    asked = Asked("eth_chainId", [], 1, "http://127.0.0.1:9", None, None)  # type: ignore[arg-type]
    with pytest.raises(Honest):
        proxy.LYING[name][0](asked)


def test_lags__newest_block__is_three_blocks_old() -> None:
    need_anvil()
    with bare_chain() as url, between(url, [proxy.LAGGING], usage := Usage(), rate=1.0, seed=1) as (one,):
        RpcChain([url]).rpc("anvil_mine", "0xa")
        assert RpcChain([one.url]).head().number == 10 - proxy.LAG_BLOCKS
        wait(lambda: usage.told["lags"], "the false answer is counted", 10)


def test_proxy__what_never_ends__is_counted_when_the_daemon_hangs_up() -> None:
    need_anvil()
    usage = Usage()
    with (
        bare_chain() as url,
        between(url, [{"drips": proxy.BROKEN["drips_a_body"]}], usage, rate=1.0, seed=1) as (one,),
    ):
        with pytest.raises(ChainError):
            RpcChain([one.url], 0.3, attempts=1).head()
        wait(lambda: usage.told["drips"] == 1, "the answer without an end is counted", 10)
        one.rate = 0.0
        urllib.request.urlopen(
            urllib.request.Request(one.url, b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'), timeout=10
        ).read()
        assert usage.used["drips"] == 1
