"""A worker that stores traps in place of results, on a real market: what its submitter sees, and what it costs him.

One job of an array whose units were all claimed and submitted by one cheating operator: some results are honest, each
of the others is one attack. Everything is read by the command line, from a real store on disk.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hearth.chain.port import Call
from hearth.client.job import results
from hearth.jobfile import Blob, needs_of, spec_digest
from hearth.jobfile.resolved import ResolvedOutput
from hearth.jobfile.resolved import canonical as canonical_of
from hearth.local import devnet
from hearth.market.events import NodeRegistered
from hearth.market.manifest import Manifest
from hearth.market.reads import Market
from hearth.protocol.types import SENTINEL, Billing, Needs, Offer, Outcome, Runtime, Terms, TermsFlag
from hearth.storage import canonical, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore, MemoryStore, StoreBase, provider_gateways
from hearth.storage.stores.gateway_server import GatewayServer
from hearth.storage.unixfs import Link
from tests.kit import build
from tests.kit.http import answering, send
from tests.kit.running import wait
from tests.kit.town import Town, example_text, town
from tests.storage.test_unixfs import SHARD, bomb, directory, put

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ETH = 10**18
LOG_CAP = 64
OUTPUTS = (
    ResolvedOutput(path="/out/data", required=False, max_size=1 << 20),
    ResolvedOutput(path="/out/log", required=False, max_size=LOG_CAP),
)


def honest(store: MemoryStore) -> Cid:
    return directory(store, (b"data", store.put_block(b"good")), (b"log", store.put_block(b"said")))


def petabyte(store: MemoryStore) -> Cid:
    return directory(store, (b"data", bomb(store, 50)))


def shared_shards(store: MemoryStore) -> Cid:
    here = put(store, SHARD, (b"00name", store.put_block(b"x")))
    for _ in range(7):
        here = put(store, SHARD, *((b"%02X" % slot, here) for slot in range(256)))
    return here


def many_entries(store: MemoryStore) -> Cid:
    leaf = store.put_block(b"")
    return unixfs.put_directory([Link(leaf, b"%d" % number, 0) for number in range(16_385)], store)[0]


def long_log(store: MemoryStore) -> Cid:
    return directory(store, (b"log", store.put_block(bytes(LOG_CAP + 1))))


def repository(store: MemoryStore) -> Cid:
    git = directory(store, (b"config", store.put_block(b"[core]\n\tfsmonitor = touch /tmp/owned\n")))
    return directory(store, (b".git", git), (b"data", store.put_block(b"good")))


def reordered(store: MemoryStore) -> Cid:
    return directory(store, ("invoice\u202egpj.exe".encode(), store.put_block(b"x")))


def absent(store: MemoryStore) -> Cid:
    return directory(store, (b"data", cids.of(os.urandom(8))))


@dataclass(frozen=True)
class Trap:
    """One unit: the outputs that its result names, changes of that document, and the fault that its row must name."""

    outputs: Callable[[MemoryStore], Cid] = honest
    changes: tuple[tuple[str, Any], ...] = ()
    fault: str = ""
    says: str = ""
    stored: bool = True


TRAPS = (
    Trap(),
    Trap(petabyte, fault="TOO_LARGE", says="the data has more than 1048640 bytes"),
    Trap(shared_shards, fault="BLOCK_CORRUPT", says="no part of a sharded directory"),
    Trap(many_entries, fault="TOO_LARGE", says="more than 16385 entries"),
    Trap(long_log, fault="TOO_LARGE", says="more than 64 bytes in log"),
    Trap(reordered, fault="UNSAFE_PATH", says="U+202E (RIGHT-TO-LEFT OVERRIDE)"),
    Trap(absent, fault="BLOCK_MISSING", says="does not have block"),
    Trap(stored=False, fault="BLOCK_MISSING", says="does not have block"),
    Trap(changes=(("index", 0),), fault="BAD_DOCUMENT", says="not this unit's"),
    Trap(changes=(("outputs", {"cid": "bafy", "size": 1}),), fault="BAD_CID", says="is no CID"),
    Trap(changes=(("outputs", {"cid": "bafy", "size": "many"}),), fault="BAD_DOCUMENT", says="no outputs that can"),
    Trap(repository),
)
LOGS_TRAP = len(TRAPS) - 1
"""The unit whose outputs are there and whose logs are a bomb."""
LOST = [index for index, trap in enumerate(TRAPS) if trap.fault]


class Cheat:
    """An operator with one node, which claims what it finds and submits what it likes."""

    def __init__(self, place: Town) -> None:
        self.place, self.calls = place, place.market.calls
        operator, stake = devnet.account(3).address, 20 * ETH
        offer = Offer(runtimes=Runtime.WASM, cores=1, ram_gib=1, disk_gib=1, slots=32, ask=10**9 * 10**6)
        done = place.sender(2).send(self.calls.register(operator, offer, bytes(32), stake), key="register")
        (self.node,) = [e.node for e in place.market.events_in(done.logs) if isinstance(e, NodeRegistered)]
        self.store = FolderStore(place.home / "store")

    def post(self, units: int) -> tuple[str, Terms]:
        """Post a job of so many units and claim all of them; return its id and terms."""
        module = Blob(cid=str(cids.of(b"module")), size=6)
        spec = build.spec(name="trapped", module=module, outputs=OUTPUTS, units=units, runtime_seconds=600)
        self.store.put_json(canonical_of(spec))
        policies = self.place.market.policies()
        terms = build.terms(
            submitter=devnet.account(1).address.lower(),
            salt=units,
            spec=spec_digest(spec),
            needs=needs_of(spec.resources, "wasm"),
            ceiling=10**12 * 10**6,
            max_seconds=spec.runtime_seconds,
            units=units,
            deadline=self.place.chain.head().timestamp + 3_600,
            keeper_fee=policies.policy.min_keeper_fee,
            policy=policies.word,
            match_window=0,
            billing=Billing.FIXED,
            flags=TermsFlag.NEWCOMERS,
        )
        assert terms.needs != Needs()
        job = self.place.market.job_id(terms)
        self.place.sender(1).send(self.calls.post(terms), key=f"post/{units}")
        sender = self.place.sender(3)
        sender.send(self.calls.beat(self.node), key=f"beat/{units}")
        claim = self.calls.claim(terms, SENTINEL if units > 1 else 0, self.node)
        for started in [sender.start(claim, key=f"claim/{units}/{at}") for at in range(units)]:
            sender.finish(started)
        return "0x" + job.hex(), terms

    def submit(self, terms: Terms, traps: Sequence[Trap]) -> None:
        """Submit a trap for each unit as a good result."""
        sender, calls = self.place.sender(3), [self.call(terms, at, trap) for at, trap in enumerate(traps)]
        for started in [sender.start(call, key=f"submit/{terms.units}/{at}") for at, call in enumerate(calls)]:
            sender.finish(started)

    def call(self, terms: Terms, index: int, trap: Trap) -> Call:
        """Store what a trap names and return the call that submits it."""
        memory = MemoryStore()
        root = trap.outputs(memory)
        logs = directory(memory, (b"stdout", memory.put_block(b"out")), (b"stderr", memory.put_block(b"err")))
        if trap is TRAPS[LOGS_TRAP]:
            logs = directory(memory, (b"stdout", bomb(memory, 50)), (b"stderr", memory.put_block(b"err")))
        for block in memory.blocks.values():
            # Whatever codec a name has, a store keeps bytes by their hash.
            self.store.put_block(block)
        document = {
            "version": 1,
            "spec": terms.spec.hex(),
            "index": index,
            "outcome": "ok",
            "status": "ok",
            "exit_code": 0,
            "outputs": {"cid": str(root), "size": 4},
            "fuel": 1,
            "engine": "none",
        }
        document |= dict(trap.changes)
        result = self.store.put_json(document) if trap.stored else os.urandom(32)
        report = self.store.put_json({"logs": {"cid": str(logs), "size": 6}, "stderr_tail": "last words", "detail": ""})
        return self.calls.submit(self.place.market.job_id(terms), index, result, report, Outcome.OK)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with town(tmp_path_factory.mktemp("hostile")) as made:
        yield made


@pytest.fixture(scope="module")
def cheat(place: Town) -> Cheat:
    return Cheat(place)


@pytest.fixture(scope="module")
def job(place: Town, cheat: Cheat) -> str:
    """Return a job whose units are the TRAPS, all submitted."""
    name, terms = cheat.post(len(TRAPS))
    cheat.submit(terms, TRAPS)
    return name


def test_job_get__array_of_traps__each_is_one_line_and_the_rest_is_fetched(
    place: Town, job: str, tmp_path: Path
) -> None:
    """What a cheat gains: its pay for these units, as ever without a court. What it can cost beyond: nothing."""
    out = tmp_path / "out"
    script = tmp_path / "reduce.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    told = place.hearth("job", "get", job, "-o", str(out), "--reduce", str(script), "--json")
    assert (told.code, told.error["code"]) == (9, "RESULTS_INCOMPLETE"), told.out
    assert f"of {len(TRAPS)} units of job {job[:14]}, {len(LOST)} have a result" in told.error["message"]
    rows = told.json["units"]
    assert [row["unit"] for row in rows] == list(range(len(TRAPS)))
    for row, trap in zip(rows, TRAPS, strict=True):
        fault = row.get("fault", {"code": "", "message": ""})
        assert fault["code"] == trap.fault and trap.says in fault["message"], row
        assert (row["path"] is None) is bool(trap.fault)
    note = (out / "INCOMPLETE.txt").read_text()
    assert [f"the result of unit {index} cannot be read" in note for index in range(len(TRAPS))] == [
        index in LOST for index in range(len(TRAPS))
    ]
    assert (out / "0000" / "data").read_bytes() == b"good"
    kept = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    last = f"{LOGS_TRAP:04d}"
    assert kept == ["0000/data", "0000/log", f"{last}/data", f"{last}/renamed-.git/config", "INCOMPLETE.txt"]
    assert rows[LOGS_TRAP]["renamed"] == [{"path": ".git", "name": "renamed-.git"}]
    assert not (tmp_path / "ran").exists()
    assert told.json["unread"] == len(LOST) and told.json["missing"] == 0


def test_job_get__for_people__says_what_went_wrong_and_what_to_do(place: Town, job: str, tmp_path: Path) -> None:
    told = place.hearth("job", "get", job, "-o", str(tmp_path / "out"))
    assert told.code == 9
    assert "unit 1: ok, not fetched: the result of unit 1 cannot be read: the data has more than" in told.out
    assert "  .git is written as renamed-.git: a program" in told.out and "\u202e" not in told.out + told.err
    assert "hearth job rerun" in told.err and "--unit N" in told.err


@pytest.mark.parametrize("index", [1, 7])
def test_job_get__one_trap__its_own_error_and_no_folder(place: Town, job: str, tmp_path: Path, index: int) -> None:
    told = place.hearth("job", "get", job, "--unit", str(index), "-o", str(tmp_path / "out"), "--pin", "--json")
    assert (told.code, told.error["code"]) == (9, TRAPS[index].fault)
    assert "hearth job rerun" in told.error["hint"] and list(tmp_path.iterdir()) == []


def test_job_get__one_good_unit_of_them__whole(place: Town, job: str, tmp_path: Path) -> None:
    told = place.hearth("job", "get", job, "--unit", "0", "-o", str(tmp_path / "out"), "--json")
    assert told.code == 0, told.out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["data", "log"]


def test_job_get__spec_that_is_gone__the_disk_of_the_terms_bounds_it(place: Town, job: str, tmp_path: Path) -> None:
    spec = place.client.jobs.reads.look(job).terms.spec
    path = place.home / "store" / "blocks" / spec.hex()[:2] / spec.hex()
    kept = path.read_bytes()
    path.unlink()
    try:
        told = place.hearth("job", "get", job, "-o", str(tmp_path / "out"), "--json")
    finally:
        path.write_bytes(kept)
    rows = told.json["units"]
    assert (
        f"more than {1 << 30} bytes" in rows[1]["fault"]["message"] and (tmp_path / "out" / "0000" / "data").is_file()
    )


def test_job_logs__one_bomb_among_them__is_one_line(place: Town, job: str) -> None:
    told = place.hearth("job", "logs", job, "--json")
    assert (told.code, told.error["code"], told.json["unread"]) == (9, "RESULTS_INCOMPLETE", 1)
    rows = told.json["units"]
    assert [row["stdout"] for row in rows] == ["out"] * LOGS_TRAP + [""]
    assert rows[LOGS_TRAP]["fault"]["code"] == "TOO_LARGE" and rows[LOGS_TRAP]["stderr"] == "last words"


def test_job_logs__more_than_one_call_shows__the_rest_is_named(
    place: Town, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MAX_LOGS_BYTES", 10)
    rows = place.hearth("job", "logs", job, "--json").json["units"]
    assert [row["stdout"] for row in rows] == ["out", "out"] + [""] * (len(TRAPS) - 2)
    assert "logs are shown at once" in rows[2]["fault"]["message"] and rows[2]["stderr"] == "last words"
    (row,) = place.hearth("job", "logs", job, "--unit", "2", "--json").json["units"]
    assert row["stdout"] == "out"


def test_job_get__ended_by_hand__leaves_no_folder_that_looks_whole(
    place: Town, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch, fetched = StoreBase.fetch, []

    def pressed(self: StoreBase, root: Cid, dest: Path, *args: Any, **named: Any) -> Any:
        fetched.append(dest)
        if len(fetched) > 1:
            raise KeyboardInterrupt
        return fetch(self, root, dest, *args, **named)

    monkeypatch.setattr(StoreBase, "fetch", pressed)
    assert place.hearth("job", "get", job, "-o", str(tmp_path / "out")).code == 130
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0000", "INCOMPLETE.txt"]
    assert "has not come to its end" in (tmp_path / "out" / "INCOMPLETE.txt").read_text()


def test_net_verify__results_that_are_traps__are_named_and_leave_the_books_alone(place: Town, job: str) -> None:
    told = place.hearth("net", "verify", "--json")
    assert (told.code, told.json["solvent"], told.error["code"]) == (9, True, "RESULTS_INCOMPLETE")
    assert told.json["results_checked"] + len(told.json["unread"]) == len(TRAPS)
    assert any(line.startswith("unit 8 of ") and "not this unit's" in line for line in told.json["unread"])


def test_net_verify__stores_that_stall__ends_in_time_and_counts_what_it_did_not_see(
    place: Town, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. Each result has a deadline, and so have all of them together."""
    get_block = FolderStore.get_block

    def slowly(self: FolderStore, cid: Cid, timeout: float = 30.0) -> bytes:
        time.sleep(min(timeout, 0.7))
        return get_block(self, cid, timeout)

    monkeypatch.setattr(FolderStore, "get_block", slowly)
    began = time.monotonic()
    told = place.hearth("net", "verify", "--timeout", "4s", "--json")
    assert time.monotonic() - began < 60
    assert (told.code, told.error["code"], told.json["solvent"]) == (10, "WAIT_TIMEOUT", True), told.out
    report = told.json
    assert report["unverified"] >= len(TRAPS) - 6
    assert report["results_checked"] + len(report.get("unread", ())) + report["unverified"] == len(TRAPS)
    assert "not verified: 4 s were too short" in told.error["message"] and "--timeout 40s" in told.error["hint"]


def test_net_verify__no_time_for_the_books__says_nothing_of_them(
    place: Town, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = Market.locks

    def slowly(self: Market, *given: Any) -> list[int]:
        time.sleep(1)
        return locks(self, *given)

    monkeypatch.setattr(Market, "locks", slowly)
    told = place.hearth("net", "verify", "--timeout", "1s", "--json")
    assert (told.code, told.error["code"]) == (10, "WAIT_TIMEOUT") and "solvent" not in told.json
    assert "books are not verified" in told.error["message"]


def test_job_wait__single_unit_without_a_document__ends_with_9_and_its_id(
    place: Town, job: str, cheat: Cheat, tmp_path: Path
) -> None:
    name, terms = cheat.post(1)
    cheat.submit(terms, [Trap(stored=False)])
    place.sender(1).send(cheat.calls.accept(terms, 0), key="accept/single")
    told = place.hearth("job", "wait", name, "--results", str(tmp_path / "out"), "--json")
    assert (told.code, told.error["code"], told.json["job"]) == (9, "RESULTS_INCOMPLETE", name)
    (row,) = told.json["results"]["units"]
    assert row["text"].startswith("ok, but the result of unit 0 cannot be read") and list(tmp_path.iterdir()) == []


# ---- results that lie with their worker alone ----


@pytest.fixture(scope="module")
def apart(place: Town, job: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Let a worker run a job whose store is its own folder, which nobody else reads but through its gateway.

    It reads the job of the submitter's store, through a gateway as well. Yields the job and the worker's gateway.
    """
    port = devnet.free_port()
    config = place.worker_file("worker2", slots=1)
    with GatewayServer(FolderStore(place.home / "store")) as submitters:
        own = place.home / "apart"
        lines = config.read_text().splitlines()
        lines = [f'stores = ["folder://{own}", "{submitters.url}"]' if "stores = " in line else line for line in lines]
        text = "\n".join(lines).replace('# listen = "0.0.0.0:8080"', f'listen = "127.0.0.1:{port}"')
        config.write_text(text.replace('# urls = ["https://..."]', f'urls = ["http://127.0.0.1:{port}"]'))
        for command in ("register", "doctor"):
            told = place.hearth("worker", command, "--config", str(config), "--json")
            assert told.code == 0 or command == "doctor", told.out
        (row,) = [row for row in told.json["checks"] if row["name"] == "gateway"]
        assert (row["level"], row["detail"]) == (
            "PASS",
            f"http://127.0.0.1:{port} gives the block of the node's manifest",
        )
        place.start("apart", "-m", "worker", "--config", str(config), "--json")
        file = tmp_path_factory.mktemp("apart") / "job.yaml"
        file.write_text(example_text("wordcount-array", file.parent).replace("units: 24", "units: 2"))
        posted = place.hearth("submit", str(file), "--anyway", "--json")
        assert posted.code == 0, posted.err + posted.out
        name = posted.json["job"]

        def submitted() -> bool:
            facts = place.hearth("job", "show", name, "--json").json
            return not {"open", "running"} & facts["counts"].keys()

        wait(submitted, "the worker has run the job", 200)
        yield name, f"http://127.0.0.1:{port}"
        if "apart" in place.processes:
            place.stop("apart")


def test_job_get__results_in_the_workers_own_store_alone__come_from_its_gateway(
    place: Town, apart: tuple[str, str], tmp_path: Path
) -> None:
    name, gateway = apart
    held = set((place.home / "store" / "blocks").rglob("*"))
    told = place.hearth("job", "get", name, "-o", str(tmp_path / "out"), "--json")
    assert told.code == 0, told.out + told.err
    assert {row["unit"] for row in told.json["units"]} == {0, 1} and told.json["unread"] == 0
    assert all((tmp_path / "out" / f"{unit:04d}" / "counts.tsv").stat().st_size for unit in range(2))
    assert told.err.count(f"blocks come from {gateway}, a gateway of node 2") == 1
    assert place.hearth("job", "logs", name, "--json").json["unread"] == 0
    # Nothing of it stays here but what is asked for.
    assert set((place.home / "store" / "blocks").rglob("*")) == held
    kept = place.hearth("job", "get", name, "--unit", "0", "-o", str(tmp_path / "kept"), "--pin", "--json")
    assert kept.code == 0 and set((place.home / "store" / "blocks").rglob("*")) > held
    assert place.session.store.has(cids.parse(kept.json["units"][0]["outputs"]))


def test_worker_status__node_with_a_gateway__says_where_its_results_are(place: Town, apart: tuple[str, str]) -> None:
    status = ("worker", "status", "--config", str(place.home / "worker2.toml"))
    assert place.hearth(*status, "--json").json["process"]["gateways"] == [apart[1]]
    assert f"  results can be fetched at {apart[1]}\n" in place.hearth(*status).out
    # The log says no difference between worker.toml and the chain.
    assert "another manifest" not in (place.home / "apart.log").read_text()


def test_worker_drain__serves_to_its_end_and_lets_go_of_the_port(place: Town, apart: tuple[str, str]) -> None:
    url = urlsplit(apart[1])
    address = (str(url.hostname), int(url.port or 0))
    socket.create_connection(address, timeout=5).close()
    assert place.hearth("worker", "drain", "--config", str(place.home / "worker2.toml"), "--json").code == 0
    assert place.processes["apart"].wait(150) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)


def test_job_get__gateways_that_lie_stall_and_lead_elsewhere__cost_seconds_and_give_nothing(
    place: Town, job: str, cheat: Cheat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains by the gateways that it names: a few seconds of who asks for its own results, and no more."""
    monkeypatch.setattr(provider_gateways, "BLOCK_SECONDS", 1.0)
    elsewhere: list[str] = []

    def lead(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 307, b"", Location=f"{place.url}/admin")

    def lie(handler: BaseHTTPRequestHandler) -> None:
        elsewhere.append(handler.path)
        send(handler, 200, b"lies")

    with answering(lambda handler: time.sleep(30)) as stalls, answering(lead) as leads, answering(lie) as lies:
        urls = tuple(f"http://127.0.0.1:{port}" for port in (stalls, leads, lies, place.port))
        document = canonical.encode(Manifest("x", "de", (), urls).document())
        offer = Offer(runtimes=Runtime.WASM, cores=1, ram_gib=1, disk_gib=1, slots=32)
        call = cheat.calls.update_offer(cheat.node, offer, hashlib.sha256(document).digest(), document)
        place.sender(2).send(call, key="update/hostile")
        began = time.monotonic()
        told = place.hearth("job", "get", job, "--unit", "7", "-o", str(tmp_path / "out"), "--json")
        took = time.monotonic() - began
        assert (told.code, told.error["code"]) == (9, "BLOCK_CORRUPT") and list(tmp_path.iterdir()) == []
        assert len(elsewhere) == 1 and took < 20
        assert f"the gateways that it names are asked, {len(urls)} in all" in told.err
        whole = place.hearth("job", "get", job, "-o", str(tmp_path / "all"), "--json")
        assert whole.error["code"] == "RESULTS_INCOMPLETE" and whole.json["unread"] == len(LOST)
