"""A real market for the kill tests: anvil in real time, workers as processes, jobs as modules in a folder store.

Every scenario has a node, a key, a home folder and a module of its own, and a worker takes only its own module, so that
several scenarios share one chain without sharing work.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eth_utils.crypto import keccak

from hearth.chain import keys
from hearth.chain.tx import Sender
from hearth.jobfile import Blob, ResolvedSpec, needs_of, spec_digest
from hearth.jobfile.resolved import ResolvedInput
from hearth.jobfile.resolved import canonical as canonical_of
from hearth.local import devnet
from hearth.market.abi import codec
from hearth.market.changes import Change, ChangeOp
from hearth.market.events import Event, Finished, JobPosted, Reclaimed, Settled, Started, Submitted, decode
from hearth.protocol import words
from hearth.protocol.types import Billing, JobId, NodeId, Offer, Runtime, State, TermsFlag, Unit
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore
from tests.chaos.processes import Child
from tests.kit import build
from tests.kit.running import Process, RunningMarket, start_python, wait
from worker.journal import AttemptJournal, AttemptRow
from worker.status import read_status

ETH = 10**18
PASSWORD = "canary-5b1c"
# Writes "ok" to /out/result after as many turns of a loop as the command asks (about 1e8 a second).
PROGRAM = """
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $name (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "%s")
  (data (i32.const 64) "result")
  (data (i32.const 80) "\\80\\00\\00\\00\\02\\00\\00\\00")
  (data (i32.const 128) "ok")
  (func (export "_start") (local $n i64) (local $fd i32)
    (local.set $n (i64.const %d))
    (block (loop (br_if 1 (i64.eqz (local.get $n))) (local.set $n (i64.sub (local.get $n) (i64.const 1))) (br 0)))
    ;; /out is the preopened folder whose name has the letter o in second place
    (local.set $fd (i32.const 3))
    (block $found (loop $next
      (br_if $found (i32.eqz (i32.const 1)))
      (drop (call $name (local.get $fd) (i32.const 96) (i32.const 4)))
      (br_if $found (i32.eq (i32.load8_u (i32.const 97)) (i32.const 111)))
      (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
      (br $next)))
    (if (call $open (local.get $fd) (i32.const 0) (i32.const 64) (i32.const 6) (i32.const 9)
          (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 112)) (then unreachable))
    (if (call $write (i32.load (i32.const 112)) (i32.const 80) (i32.const 1) (i32.const 116)) (then unreachable))))
"""


class Exchange(RunningMarket):
    """A running market with a store; one account owns every node, another posts every job."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.user_home = home / "user"
        """Where this user's commands and workers keep what is not one worker's."""
        self.store = FolderStore(home / "store")
        self.owner = self.sender(1)
        self.submitter = self.sender(2)

    def set_policy(self, **changes: int) -> None:
        """Change the policy of new jobs through the Steward, whose council is the deployer's account."""
        market, council = self.market, self.sender(devnet.DEPLOYER)
        change = Change(ChangeOp.SET_POLICY, words.pack_policy(replace(market.policy(), **changes)), 0)
        once = secrets.token_hex(4)
        council.send(market.calls.queue(change), key=f"queue/{once}")
        due = market.change(change.id)
        wait(lambda: market.port.head().timestamp >= due, "the change is due")
        council.send(market.calls.execute(change), key=f"execute/{once}")

    def scenario(
        self,
        name: str,
        *,
        turns: int = 1_000_000,
        slots: int = 1,
        stake: int = 10,
        runtime: Runtime = Runtime.WASM,
        **changes: Any,
    ) -> Scenario:
        """Register a node for a new key with `stake` minimum stakes and write its worker.toml; nothing runs yet.

        `changes` replaces fields of what it offers on chain.
        """
        home = self.home / name
        home.mkdir()
        first_block = self.chain.head().number
        secret = secrets.token_bytes(32)
        key = keys.create_key(home / "keys", "operator", PASSWORD, secret=secret, devnet=True)
        password = home / "password"
        password.write_text(PASSWORD)
        password.chmod(0o600)
        devnet.fund(self.chain, self.net.network, key.address, wei=10 * ETH)
        offer = Offer(runtimes=runtime, cores=1, ram_gib=1, disk_gib=1, slots=slots, ask=10**9 * 10**6)
        offer = replace(offer, **changes)
        amount = stake * self.net.network.node_parameters.minimum_stake
        outcome = self.owner.send(
            self.market.calls.register(key.address, offer, bytes(32), amount), key=f"register/{name}"
        )
        registered = [e for log in outcome.logs if (e := decode(log)) is not None and hasattr(e, "operator")]
        module = self.module(name, turns)
        config = home / "worker.toml"
        config.write_text(
            f"""
network = "{self.net.network_file}"
home = "state"
rpc = ["{self.url}"]
stores = ["{self.store.url}"]

[account]
payout = "{self.owner.address}"
keystore = "keys/operator.json"
password_file = "password"

[offer]
price = "0.0000036/h"
country = "us"
gpus = "none"
runtimes = ["wasm"]
slots = {slots}

[accept]
modules = ["{module.cid}"]
confirmations = 0

[storage]
reserve = "1MiB"

[metrics]
listen = ""
"""
        )
        return Scenario(
            self, name, home, NodeId(registered[0].node), key.address, module, first_block, secret, slots=slots
        )

    def module(self, name: str, turns: int) -> Blob:
        """Store the program for one scenario; the name makes its bytes its own."""
        import wasmtime

        path = self.home / f"{name}.wasm"
        path.write_bytes(wasmtime.wat2wasm(PROGRAM % (name[:60], turns)))
        entry = self.store.add_path(path)
        return Blob(cid=str(entry.cid), size=entry.size)

    def logs(self) -> list[Event]:
        """Return every event of the job registry."""
        head = self.chain.head().number
        found = self.chain.logs([self.net.network.jobs], from_block=0, to_block=head)
        return [event for log in found if (event := decode(log)) is not None]

    def transactions_of(self, sender: str, function: str, since: int) -> int:
        """Count an account's mined calls of a function of the job registry from a block on, reverted ones too."""
        selector = "0x" + codec("JobRegistry").selector(function).hex()
        count = 0
        for number in range(since, self.chain.head().number + 1):
            block = self.chain.rpc("eth_getBlockByNumber", hex(number), True)
            for tx in block["transactions"]:
                count += tx["from"].lower() == sender and tx["input"].startswith(selector)
        return count


@dataclass
class Scenario:
    """One node with its key, home, module and worker process."""

    exchange: Exchange
    name: str
    home: Path
    node: NodeId
    operator: str
    module: Blob
    first_block: int
    secret: bytes
    slots: int = 1
    process: Process | None = None
    jobs: list[JobId] = field(default_factory=list)

    # ---- jobs ----

    @property
    def submitter(self) -> Sender:
        """Return who posts this scenario's jobs."""
        return self.exchange.submitter

    def spec(self, **changes: Any) -> ResolvedSpec:
        """Return the spec of a job that only this scenario's worker takes."""
        return build.spec(name="chaos", module=self.module, **changes)

    def input_without_a_leaf(self, *, spoilt: bool = False) -> tuple[ResolvedInput, Cid]:
        """Store an input whose root is there, and whose first leaf is nowhere, or not what it was; return both."""
        store = self.exchange.store
        entry = store.add_bytes(self.name.encode() + bytes(3 << 20))
        lost = unixfs.links_of(entry.cid, store.get_block(entry.cid))[0]
        path = store.root / "blocks" / lost.digest.hex()[:2] / lost.digest.hex()
        if spoilt:
            path.write_bytes(b"spoilt")
        else:
            path.unlink()
        return ResolvedInput(cid=str(entry.cid), dst="/in/data", size=entry.size), lost

    def post(
        self,
        *,
        window: int = 0,
        units: int = 1,
        seconds: int = 600,
        newcomers: bool = False,
        inputs: tuple[ResolvedInput, ...] = (),
        by: Sender | None = None,
        **changes: Any,
    ) -> JobId:
        """Post a job that only this scenario's worker takes; `changes` replaces fields of its terms."""
        market, submitter = self.exchange.market, by or self.submitter
        spec = self.spec(runtime_seconds=seconds, units=units, inputs=inputs)
        self.exchange.store.put_json(canonical_of(spec))
        policies = market.policies()
        terms = build.terms(
            submitter=submitter.address,
            salt=secrets.randbits(90),
            spec=spec_digest(spec),
            needs=needs_of(spec.resources, spec.runtime),
            ceiling=10**12 * 10**6,
            max_seconds=seconds,
            deadline=self.exchange.chain.head().timestamp + 3_600,
            keeper_fee=policies.policy.min_keeper_fee,
            policy=policies.word,
            units=units,
            match_window=window,
            max_attempts=2,
            billing=Billing.FIXED,
            flags=TermsFlag.NEWCOMERS if newcomers else TermsFlag(0),
        )
        terms = replace(terms, **changes)
        job = market.job_id(terms)
        submitter.send(market.calls.post(terms), key=f"post/{job.hex()}")
        self.jobs.append(job)
        return job

    def season(self) -> None:
        """Let the node be off probation, as after five units that paid the market a full fee each: its word says so.

        The word, which its first beat begins, lies in a map by operator and node, whose place among the contract's own
        is looked for.
        """
        wait(lambda: self.exchange.market.node(self.node).state.beat, f"{self.name} beats")
        rpc, nodes = self.exchange.chain.rpc, self.exchange.net.network.nodes
        operator, node = bytes(12) + bytes.fromhex(self.operator[2:]), int(self.node).to_bytes(32, "big")
        stored = {}
        # A beat that is mined meanwhile would be undone, and its worker would not send it again.
        with self.exchange.still():
            for place in range(64):
                at = "0x" + keccak(keccak(place.to_bytes(32, "big") + operator) + node).hex()
                stored[at] = int(rpc("eth_getStorageAt", nodes, at, "latest"), 16)
            ((at, word),) = [(at, word) for at, word in stored.items() if word]
            seasoned = word | 1 << words.shift_of(words.HOT, "seasoned")
            rpc("anvil_setStorageAt", nodes, at, f"0x{seasoned:064x}")
        assert self.exchange.market.node(self.node).state.seasoned

    def unit(self, job: JobId, index: int = 0) -> Unit:
        """Return a unit as the chain has it."""
        return self.exchange.market.unit(job, index).unit

    def state(self, job: JobId, index: int = 0) -> State:
        """Return a unit's state."""
        return self.unit(job, index).state

    # ---- the worker ----

    def copied(self) -> Scenario:
        """Return the same node once more, by copies of its key and its worker.toml, with a home of its own."""
        made = replace(self, home=self.home / "copy", process=None)
        shutil.copytree(self.home / "keys", made.home / "keys", ignore=shutil.ignore_patterns(".*"))
        for name in ("password", "worker.toml"):
            shutil.copy(self.home / name, made.home / name)
        return made

    def start(self, failpoint: str = "", *, fresh: bool = False) -> None:
        """Start the worker as a process of its own, perhaps one that dies at a named point.

        It is forked from a server with its imports done, or with `fresh` a new interpreter, as a provider starts it:
        for what is read of a process from outside, and is not the worker's.
        """
        environ = {"HEARTH_HOME": str(self.exchange.user_home), "HEARTH_FAILPOINT": failpoint}
        log, arguments = self.home / "log", ("--json", "--config", str(self.home / "worker.toml"))
        if fresh:
            self.process = start_python(log, "-m", "worker", *arguments, **environ)
        else:
            self.process = Child(log, "worker", *arguments, **environ)

    def log(self) -> str:
        """Return what the worker's processes wrote."""
        path = self.home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def died(self, seconds: float = 150) -> None:
        """Wait until the process was killed by its failpoint."""
        assert self.process is not None
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} never met its failpoint\n{self.log()[-4000:]}") from None
        assert code == -signal.SIGKILL, f"{code}\n{self.log()[-4000:]}"

    def working(self) -> None:
        """Wait until the newest process has done its first round."""
        assert self.process is not None
        wait(lambda: (status(self.home) or {}).get("pid") == self.process.pid, f"{self.name} works")  # type: ignore[union-attr]

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask the worker to end and check that it does so well."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
                assert self.process.returncode == 0, self.log()[-4000:]
                return
            self.process.kill()
            raise AssertionError(f"{self.name} did not stop\n{self.log()[-4000:]}")

    def forget(self) -> None:
        """Delete the state folder; the key is kept."""
        shutil.rmtree(self.home / "state")

    def settled(self, job: JobId, index: int = 0, seconds: float = 150) -> None:
        """Wait until a unit is settled."""
        try:
            wait(lambda: self.state(job, index) is State.SETTLED, f"{self.name} settles", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.unit(job, index)}\n{self.log()[-6000:]}") from None

    # ---- evidence ----

    def entries(self) -> list[AttemptRow]:
        """Return the rows of the worker's journal, read from a copy as a dead process left it."""
        copy = self._copy("work.db")
        if copy is None:
            return []
        journal = AttemptJournal(copy)
        try:
            return journal.entries()
        finally:
            journal.close()

    def transactions(self) -> dict[str, str]:
        """Return the state of every transaction of the tx journal by key, as a dead process left it."""
        import sqlite3

        found = list((self.home / "state").glob("tx-*.db"))
        if not found:
            return {}
        copy = self._copy(found[0].name)
        assert copy is not None
        with sqlite3.connect(copy) as db:
            return dict(db.execute("SELECT key, state FROM intents ORDER BY id"))

    def _copy(self, name: str) -> Path | None:
        source = self.home / "state" / name
        if not source.exists():
            return None
        folder = self.home / f"copy-{time.monotonic_ns()}"
        folder.mkdir()
        for path in source.parent.glob(f"{name}*"):
            if not path.name.endswith(".lock"):
                shutil.copy(path, folder / path.name)
        return folder / name

    def sandboxes(self) -> list[int]:
        """List the sandbox processes of this node."""
        from worker.runtimes.wasm import children

        network = self.exchange.net.network
        mine = f"{network.chain_id}-{network.genesis_hash.hex()[:6]}-{self.node}-"
        return [pid for pid, label in children() if label.startswith(mine)]

    def assert_once(self, job: JobId, index: int = 0, *, attempts: int = 1) -> None:
        """Check the oracle: settled well, started and submitted and paid exactly once, in one call or two, the result
        readable."""
        events = [e for e in self.exchange.logs() if not isinstance(e, JobPosted) and getattr(e, "job_id", None) == job]
        mine = [e for e in events if getattr(e, "index", None) == index]
        kinds = (Started, Submitted, Settled, Finished, Reclaimed)
        count = {cls: sum(isinstance(e, cls) for e in mine) for cls in kinds}
        once = int(not count[Finished])
        wanted = {Started: attempts, Submitted: once, Settled: once, Finished: 1 - once, Reclaimed: 0}
        assert count == wanted, count
        unit = self.unit(job, index)
        assert (unit.state, unit.outcome.name, unit.node) == (State.SETTLED, "OK", self.node)
        submitted = next(e for e in mine if isinstance(e, Submitted | Finished))
        result = self.exchange.store.get_json(submitted.result)
        out = self.home / f"got-{time.monotonic_ns()}"
        self.exchange.store.fetch(cids.parse(result["outputs"]["cid"]), out)
        assert (out / "result").read_bytes() == b"ok"
        self.exchange.store.get_json(submitted.report)

    def assert_secret_kept(self) -> None:
        """Check that neither the key nor its password stands in any output or state file."""
        files = [self.home / "log", *(p for p in (self.home / "state").rglob("*") if p.is_file())]
        for path in files:
            content = path.read_bytes()
            for canary in (self.secret, self.secret.hex().encode(), PASSWORD.encode()):
                assert canary not in content, path

    def submits(self) -> int:
        """Count the submits and finishes of this node's key that were mined, reverted ones too."""
        calls = ("submit", "finish")
        return sum(self.exchange.transactions_of(self.operator, name, self.first_block) for name in calls)


def status(home: Path) -> dict[str, Any] | None:
    """Return the status file of a scenario's worker, None where it wrote none yet."""
    return read_status(home / "state")
