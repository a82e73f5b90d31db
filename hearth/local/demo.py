"""The market at work, in real time on a local chain: `make demo`, or `hearth demo`.

Three workers and a keeper run as processes of their own, jobs are posted by the command line, one worker is killed in
the middle of a unit that checkpoints, which is reclaimed, and which another goes on with from there; one job is paid
for once two of its three attesters have looked at the result and signed it. Two jobs wait for that: one starts then,
and one fails then, whose own child is refunded. An array pays so well that the worker of it leaves its probation on the
way: from then on its results settle themselves. One worker's machine fails a job three times, and gives it up. At the
end the whole chain is verified. Everything is stopped again, also after a failure.

The chain is an anvil of the demo's own, or one that runs already (`--rpc`), such as a geth in developer mode.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ConfigError, HearthError
from hearth.base.urls import redact_url
from hearth.chain.rpc import RpcChain
from hearth.client.judges.attester_files import load_set
from hearth.config.sections import toml
from hearth.local.examples import examples_folder
from hearth.local.market import LocalMarket
from hearth.protocol.types import JobId, State
from hearth.protocol.units import show_amount

if TYPE_CHECKING:
    from hearth.client import Client
    from hearth.client.reports import DemoReport, NetVerification
    from hearth.client.session import Tell
    from hearth.market.events import Checkpointed, Event

EXAMPLES: Final = examples_folder()
ATTESTERS_FILE: Final = EXAMPLES / "attested" / "attesters.yaml"
PRICES: Final = {"worker": "0.60/h", "worker2": "0.65/h", "worker3": "0.70/h"}
WORKERS: Final = tuple(PRICES)
CHEAPEST: Final = "worker"
"""It gets what is posted first."""
HEARTH: Final = (sys.executable, "-P", "-m", "hearth.cli")
SLOTS: Final = {"worker": 1, "worker2": 3, "worker3": 2}
"""The first is full with the job that it is killed with: nothing else is lost then."""
STAKE: Final = "20"
NUMPY_IMAGE: Final = "HEARTH_TEST_IMAGE_PYTHON_NUMPY"
"""Names an image with python3 and numpy by digest, where a container engine is (make services-up)."""
RESUME: Final = "resume"
"""The job whose worker is killed, and which another goes on with."""
STEPS: Final = 60
KILL_STEP: Final = 36
"""The first step of RESUME's, of STEPS, that may be the newest on chain when its worker is killed: 60 %."""
ANEW: Final = "its next worker began anew"
"""What is said of RESUME where that is so."""
SPOILT: Final = "digits"
"""The job that a worker gives up, since its machine kills the program at every try; another machine runs it.

Its lease goes back for nothing for 15 s. Three tries and the pauses after them, 2, 4 and 8 s, are longer.
"""
SANDBOX: Final = b"worker.runtimes.wasm_child"
"""The program, by its name in Python, in which a worker runs a WebAssembly module."""
NEWCOMERS: Final = "newcomers"
"""The array that pays so well that the worker of it leaves its probation on the way.

Its rate leaves out the third worker, and the first has no slot left: the second runs all of it.
"""
ATTESTED: Final = "attested"
"""The job whose result attesters look at."""
ATTESTERS: Final = ("attester", "attester2")
LEAST_ACCURACY: Final = 0.8
"""What they want to see."""
AFTER: Final = "after"
"""The job that starts once the attested one is settled."""
FAILING: Final = "failing"
"""The job that runs once the attested one has ended, and fails."""
ORPHAN: Final = "parent"
"""The job that waits for the failing one to end well, and is refunded."""
EXITS: Final = {FAILING: 100, ORPHAN: 102}
"""What `--wait` ends with, where that is not 0."""
OUTSIDE: Final = "--allow-outside"
"""Some examples read the data of another one."""
HEAD_START: Final = 0.5
"""Seconds by which the first job is posted before the others: the cheapest worker is to take it."""
START_SECONDS: Final = 60.0
RUN_SECONDS: Final = 300.0
ACCOUNTS: Final = ("dev", "provider", "keeper", *WORKERS)


@dataclass
class DemoStage:
    """What the demo started and found out."""

    client: Client
    folder: Path
    tell: Tell
    began: float
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    submits: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    seen: int = 0
    gas: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, str] = field(default_factory=dict)
    killed: str = ""
    reclaimed: bool = False
    seasoned: set[int] = field(default_factory=set)
    finished: int = 0
    given_up: int = 0
    beside: list[Future[None]] = field(default_factory=list)
    attested: bool = False
    over: threading.Event = field(default_factory=threading.Event)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(3))
    """Runs what is done beside the timeline: `_hold`, `_spoil` and `_attest` at once."""

    def say(self, text: str) -> None:
        """Write a line of the timeline."""
        self.tell("note", {"text": f"{time.monotonic() - self.began:6.1f}s  {text}"})


def run_demo(
    tell: Tell, *, keep: bool = False, port: int = 0, rpc: Sequence[str] = (), web: bool = False
) -> DemoReport:
    """Run the demo; return what `hearth net verify` says of its chain, and how long the demo and its set-up took.

    Its chain is an anvil of its own on `port`, 0 for a free one, or that of the providers `rpc`, which runs already and
    stays. With `web` the market goes on after its last scene, and its page is served, until Ctrl-C. Raises ChainError
    WRONG_CHAIN where that is no local one, ConfigError NO_PAGE where there is no page to serve, HearthError where a
    part fails.
    """
    from hearth.local.devnet import find_anvil, free_port
    from hearth.local.page import page_files

    if web:
        page_files()  # a clone may have none: said before the market is played, not after it
    if not rpc:
        find_anvil()
    began = time.monotonic()
    stage, verified, setup, wall = _run(tell, keep, rpc or port or free_port(), began, web=web)
    tell("note", {"text": f"{wall:6.1f}s  everything is stopped; set-up took {setup:.1f}s of it"})
    return {
        **verified,
        "finished": stage.finished,
        "given_up": stage.given_up,
        "setup_seconds": setup,
        "wall_seconds": wall,
    }


def _run(
    tell: Tell, keep: bool, chain: int | Sequence[str], began: float, *, web: bool
) -> tuple[DemoStage, NetVerification, float, float]:
    """Run the demo from set-up to verification and stop everything; return its stage, the verification, and the seconds
    of its set-up and of all scenes.

    `chain` is the port of the demo's own chain, or the providers of another.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="hearth-demo-"))
        if not keep:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stage = DemoStage(_client(folder), folder, tell, began)
        stack.enter_context(_signals_end_it())
        stack.callback(stage.client.close)
        stack.callback(_stop_chain, stage)
        stack.callback(stage.pool.shutdown)
        stack.callback(_stop_processes, stage)
        _set_up(stage, chain)
        setup = round(time.monotonic() - began, 1)
        before = _balances(stage)
        _post(stage)
        _watch(stage)
        _collect(stage)
        _show_money(stage, before, _balances(stage))
        stage.say("verifying: replaying every event, reading every result again")
        verified = stage.client.net.verify()
        stage.say(_verdict(verified))
        if keep:
            then = "devnet up" if isinstance(chain, int) else "net status --network devnet"
            stage.say(f"kept in {folder}: HEARTH_HOME={shlex.quote(str(folder))} hearth {then}")
        wall = round(time.monotonic() - began, 1)
        if web:
            _serve(stage)
        return stage, verified, setup, wall


def _serve(stage: DemoStage) -> None:
    """Serve the page of the market, which goes on, until Ctrl-C."""
    from hearth.local.page import open_page, wallet_lines

    with open_page(stage.client.session, port=0) as server, suppress(KeyboardInterrupt):
        stage.say(f"the page: {server.url}")
        for line in wallet_lines(server):
            stage.say(line)
        stage.say(f"its network file, for the page at another host: {stage.folder / 'networks' / 'devnet.json'}")
        home = shlex.quote(str(stage.folder))
        stage.say(f"the command, in another shell: HEARTH_HOME={home} hearth jobs --all --network devnet")
        stage.say("the market goes on; Ctrl-C ends it")
        threading.Event().wait()


# ---- set-up ----


def _client(folder: Path) -> Client:
    from hearth.client import Client
    from hearth.config.settings import Settings

    client = Client(Settings(home=folder, timeout=int(RUN_SECONDS)))
    client.session.program = False
    return client


def _set_up(stage: DemoStage, chain: int | Sequence[str]) -> None:
    local = LocalMarket(stage.client.session)
    if isinstance(chain, int):
        stage.say(f"starting a local chain on port {chain} and deploying the market (devnet profile, real time)")
        local.up(port=chain)
    else:
        client = RpcChain(chain).rpc("web3_clientVersion")
        stage.say(f"deploying the market on a chain of {client}, at {redact_url(chain[0])} (devnet profile, real time)")
        local.join(chain)
    docker = bool(os.environ.get(NUMPY_IMAGE)) and _engine_answers()
    payout = stage.client.session.key("owner").address
    for name in WORKERS:
        config = str(stage.folder / f"{name}.toml")
        # What is killed has no container, which would run on.
        runtimes = "wasm,docker" if docker and name != CHEAPEST else "wasm"
        size = ("--slots", str(SLOTS[name]), "--cores", "1", "--memory", "1GiB", "--disk", "2GiB", "--gpus", "none")
        place = ("--country", "de", "--payout", payout, "--runtimes", runtimes)
        _hearth(stage, "worker", "init", "--config", config, "--account", name, "--price", PRICES[name], *place, *size)
        _trust_attesters(Path(config))
        if docker:
            _allow_registry(Path(config), os.environ[NUMPY_IMAGE])
        registered = _hearth(stage, "worker", "register", "--config", config, "--stake", STAKE)
        stage.nodes[name] = int(registered["node"])
        stage.say(f"{name} is node {registered['node']} with {registered['stake_text']} of stake")
        _start(stage, name, ["worker", "start", "--config", config])
    _start(stage, "keeper", ["keeper", "run", "--config", str(_keeper_file(stage))])
    _wait_for_workers(stage)


def _trust_attesters(config: Path) -> None:
    """Let a worker take jobs that are paid for by the word of the example's attesters."""
    line = f"attesters = [{json.dumps(f'{load_set(ATTESTERS_FILE).judge_data:#066x}')}]"
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"^(\[accept\].*)$", rf"\1\n{line}", text, count=1, flags=re.MULTILINE), encoding="utf-8")


def _allow_registry(config: Path, image: str) -> None:
    """Let a worker fetch from the registry of an image, which is on this machine here."""
    with config.open("a", encoding="utf-8") as file:
        file.write(f"\n[docker]\nregistries = {json.dumps([image.partition('/')[0]])}\n")


def _keeper_file(stage: DemoStage) -> Path:
    """Write the keeper's settings; a local chain has nobody to share the work with."""
    path = stage.folder / "keeper.toml"
    settings = stage.client.session.settings
    path.write_text(
        f"""\
network = {toml(str(settings.home / "networks" / "devnet.json"))}
home = "keeper"
poll = 0.2

[account]
keystore = "keys/keeper.json"
password_file = "keys/keeper.password"

[work]
jitter = "0s"
latency = "0s"
max_loss = "unlimited"

[metrics]
listen = ""
""",
        encoding="utf-8",
    )
    return path


def _hearth(stage: DemoStage, *arguments: str) -> dict[str, Any]:
    """Run a command of the demo's user and return what it reports. Raises HearthError with the command's own error."""
    done = subprocess.run(
        [*HEARTH, *arguments, "--json", "--yes"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=_environment(stage),
        timeout=RUN_SECONDS,
        check=False,
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        report = {"error": {"message": done.stderr.decode(errors="replace").strip()[-400:], "hint": "hearth doctor"}}
    if done.returncode:
        error = report["error"]
        raise HearthError(
            f"hearth {' '.join(arguments[:2])}: {error['message']}", hint=error["hint"], code="DEMO_START"
        )
    return report


def _start(stage: DemoStage, name: str, arguments: Sequence[str]) -> None:
    """Start a command that runs until it is stopped."""
    with (stage.folder / f"{name}.log").open("wb") as log:
        stage.processes[name] = subprocess.Popen(
            [*HEARTH, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(stage),
            start_new_session=True,
        )


def _environment(stage: DemoStage) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_") or "TEST" in name}
    docker = {name: os.environ[name] for name in ("HEARTH_DOCKER_HOST",) if name in os.environ}
    return {**kept, **docker, "HEARTH_HOME": str(stage.folder), "PYTHONUNBUFFERED": "1"}


def _wait_for_workers(stage: DemoStage) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        rows = {row["node"]: row["status"] for row in stage.client.net.workers()["workers"]}
        if all(rows.get(node) == "active" for node in stage.nodes.values()):
            new = [str(row["node"]) for row in stage.client.workers.offers()["offers"] if row["probation"]]
            stage.say(
                f"all workers beat; on probation until they have been paid for some work: {', '.join(new) or 'none'}"
            )
            return
        for name, process in stage.processes.items():
            if process.poll() is not None:
                raise HearthError(f"{name} ended at its start: {_last_words(stage, name)}", hint="hearth worker doctor")
        if time.monotonic() > end:
            raise HearthError(f"the workers do not all beat: {rows}", code="DEMO_START", hint="hearth doctor")
        time.sleep(0.5)


def _engine_answers() -> bool:
    from hearth.client.doctor import see_engine

    try:
        see_engine()
    except ConfigError:
        return False
    return True


# ---- the run ----


def _post(stage: DemoStage) -> None:
    """Post the jobs that wait for no other from the command line, each in a process that waits for its end."""
    _submit(stage, RESUME, f"{RESUME}/job.yaml")
    time.sleep(HEAD_START)
    _submit(stage, SPOILT, f"{SPOILT}/job.yaml")
    _submit(stage, NEWCOMERS, f"wordcount-array/{NEWCOMERS}.yaml")
    _submit(stage, ATTESTED, f"{ATTESTED}/job.yaml", OUTSIDE)
    if os.environ.get(NUMPY_IMAGE) and _engine_answers():
        variables = ("--var", f"IMAGE={os.environ[NUMPY_IMAGE]}")
        _submit(stage, "numpy-train", "numpy-train/job.yaml", OUTSIDE, *variables)


def _submit(stage: DemoStage, name: str, file: str, *options: str) -> None:
    """Post a job of the examples from the command line, in a process that waits for its end."""
    shown = " ".join([file, *options])
    stage.say(f"$ hearth submit examples/{shown} --wait")
    command = ["submit", str(EXAMPLES / file), "--wait", "--json"]
    command += ["--results", str(stage.folder / "results" / name), "--timeout", f"{RUN_SECONDS:.0f}s", *options]
    out = (stage.folder / f"{name}.json").open("wb")
    with out, (stage.folder / f"{name}.log").open("wb") as log:
        stage.submits[name] = subprocess.Popen(
            [*HEARTH, *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            env=_environment(stage),
            start_new_session=True,
        )


def _follow_post(stage: DemoStage, name: str, job: str) -> None:
    """Post the jobs that wait for one that has just been posted, and do what is to be done beside another one."""
    if name == RESUME:
        stage.beside.append(stage.pool.submit(_hold, stage, job))
    elif name == SPOILT:
        stage.beside.append(stage.pool.submit(_spoil, stage, job))
    elif name == ATTESTED:
        _submit(stage, AFTER, f"{AFTER}/job.yaml", OUTSIDE, "--var", f"PARENT={job}")
        _submit(stage, FAILING, f"{FAILING}/job.yaml", "--after", f"{job}:always")
    elif name == FAILING:
        _submit(stage, ORPHAN, f"{AFTER}/{ORPHAN}.yaml", OUTSIDE, "--after", job)


def _watch(stage: DemoStage) -> None:
    """Show the timeline, kill the worker of one unit when it is at 60 %, and go on until every job has ended."""
    stage.seen = stage.client.session.market.port.head().number
    end = time.monotonic() + RUN_SECONDS
    while any(process.poll() is None for process in stage.submits.values()):
        _read_events(stage)
        for one in stage.beside:
            if one.done():
                one.result()
        if time.monotonic() > end:
            raise HearthError(
                "the jobs of the demo do not end", code="DEMO_TIMEOUT", hint="hearth demo --keep", retryable=True
            )
        time.sleep(0.3)
    _read_events(stage)
    missed = {
        f"the worker of {RESUME} was not killed in time": not stage.reclaimed,
        f"{SPOILT} was not given up": not stage.given_up,
        f"no result of {NEWCOMERS} settled itself": not stage.finished,
    }
    for what, is_so in missed.items():
        if is_so:
            raise HearthError(what, code="DEMO_NO_VICTIM", hint="hearth demo", retryable=True)


def _read_events(stage: DemoStage) -> None:
    """Print the registry's events since the last look, and do what some of them are waited for."""
    from hearth.client.views import event_facts
    from hearth.market.events import JobPosted

    client = stage.client
    market = client.session.market
    head = market.port.head().number
    if head <= stage.seen:
        return
    logs = market.port.logs([client.session.network.jobs], from_block=stage.seen + 1, to_block=head)
    stage.seen = head
    used: dict[bytes, Event] = {}
    for event in market.events_in(logs):
        used.setdefault(event.log.tx_hash, event)
        if isinstance(event, JobPosted):
            job = "0x" + event.job_id.hex()
            stage.names[job] = _job_name(stage, event)
            _follow_post(stage, stage.names[job], job)
        facts = event_facts(event, client.session.asset)
        name = stage.names.get(str(facts.get("job")), "?")
        unit = f" unit {facts['unit']}" if "unit" in facts else ""
        stage.say(f"{name}{unit}: {facts['text']}")
        _follow(stage, event, name, str(facts.get("job")))
    for tx_hash, event in used.items():
        receipt = market.port.receipt(tx_hash)
        if receipt is not None:
            stage.gas[type(event).__name__].append(receipt.gas_used)


def _follow(stage: DemoStage, event: Event, name: str, job: str) -> None:
    """Say what an event of a job means where it is the first of its kind, and do what it is waited for."""
    from hearth.market.events import Checkpointed, Finished, GaveUp, Reclaimed, Settled, Submitted

    if isinstance(event, Submitted) and name == ATTESTED and not stage.attested:
        stage.attested = True
        stage.beside.append(stage.pool.submit(_attest, stage, job, event.result.hex()))
    elif isinstance(event, Checkpointed) and name == RESUME and not stage.killed:
        _kill(stage, event)
    elif isinstance(event, Reclaimed):
        stage.reclaimed |= name == RESUME
    elif isinstance(event, GaveUp):
        stage.given_up += 1
        stage.say("  that was a give_up: the time to give it back for nothing was over, and it cost a part of the bond")
    elif isinstance(event, Settled) and event.node not in stage.seasoned:
        if stage.client.session.market.node(event.node).state.seasoned:
            stage.seasoned.add(event.node)
            stage.say(f"node {event.node} is off probation: the market has earned enough fees on its work")
    elif isinstance(event, Finished):
        stage.finished += 1
        if stage.finished == 1:
            stage.say("  that was a finish: the result settled itself as it was submitted, in one call and at once")


def _kill(stage: DemoStage, checkpoint: Checkpointed) -> None:
    """Kill the worker that named a checkpoint, once the count in it is far enough."""
    from hearth.storage import cid
    from hearth.storage.unixfs.reader import walk

    found = walk(cid.of_root(checkpoint.root), stage.client.session.store)
    steps = [_step(entry.path) for entry in found if "step-" in entry.path]
    if max(steps, default=0) < KILL_STEP:
        return
    stage.killed = next(name for name, node in stage.nodes.items() if node == checkpoint.node)
    # Its containers, if it has any, would outlive it: it is stopped then, which looks the same to everybody else.
    _signal(stage.processes[stage.killed], signal.SIGKILL if stage.killed == CHEAPEST else signal.SIGSTOP)
    stage.say(f"{stage.killed} was killed at step {max(steps)} of {STEPS} of {RESUME}: it beats no more")


def _hold(stage: DemoStage, job: str) -> None:
    """Stop the program of a job's first attempt once it is far enough to lose its worker.

    A checkpoint takes seconds to come on chain. On a fast machine, or a busy one, the rest of the count may take less.
    """
    states = f"workers/*/jobs/{job[2:]}-0-1/out/checkpoints/step-*"
    while not (stage.over.is_set() or stage.killed):
        step = 0
        with suppress(FileNotFoundError):  # a folder that goes while it is looked into
            step = max((_step(path.name) for path in stage.folder.glob(states)), default=0)
        if step >= KILL_STEP:
            held = 0
            for pid in _sandboxes(_label(job)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    held += 1
            if held:
                stage.say(f"{RESUME} stands still at step {step} of {STEPS}, until its worker is killed")
                return
        time.sleep(0.02)


def _spoil(stage: DemoStage, job: str) -> None:
    """Kill the program of a job's first attempt at every try, until its worker has given the job up.

    A kernel that is short of memory does the same. It says nothing against the job, so the worker tries again.
    """
    label = _label(job)
    killed: set[int] = set()
    with closing(_client(stage.folder)) as client:
        while not stage.over.is_set():
            unit = client.session.market.unit(JobId(bytes.fromhex(job[2:]))).unit
            if unit.attempts and unit.state is not State.RUNNING:
                return
            # Before its lease begins a worker looks at the program in the same sandbox.
            for pid in _sandboxes(label) if unit.attempts else ():
                if pid not in killed:
                    killed.add(pid)
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    where = f"the machine of node {unit.node}"
                    stage.say(f"{where} killed {SPOILT}, as one short of memory does: try {len(killed)}")
            time.sleep(0.05)


def _step(state: str) -> int:
    """Return the step that the name of a state of RESUME's ends with."""
    return int(state.rpartition("-")[2])


def _label(job: str) -> bytes:
    """Return what the label of the first attempt at a job's unit ends with."""
    return f"{job[2:14]}-0-1".encode()


def _sandboxes(label: bytes) -> Iterator[int]:
    """Yield the processes in which a module runs whose label ends so."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if SANDBOX in arguments and any(one.endswith(label) for one in arguments):
                yield int(entry.name)


def _attest(stage: DemoStage, job: str, result: str) -> None:
    """Have attesters look at a result and sign it, each with a key of its own, and bring both to the chain."""
    files = []
    for name in ATTESTERS:
        folder, file = stage.folder / "seen" / name, stage.folder / f"{name}.json"
        _hearth(stage, "job", "get", job, "--output", str(folder))
        accuracy = float(json.loads((folder / "accuracy.json").read_text(encoding="utf-8"))["accuracy"])
        if accuracy < LEAST_ACCURACY:
            raise HearthError(f"{name} does not sign an accuracy of {accuracy}", code="DEMO_RESULT", hint="hearth demo")
        of_set = ("--attesters", str(ATTESTERS_FILE))
        _hearth(stage, "job", "attest", job, "--account", name, "--result", result, "--out", str(file), *of_set)
        stage.say(f"{name} read an accuracy of {accuracy} and signed the result of {ATTESTED}")
        files.append(str(file))
    _hearth(stage, "job", "confirm", job, *files, *of_set)


def _job_name(stage: DemoStage, event: Any) -> str:
    from hearth.protocol.words import unpack_terms

    terms = unpack_terms(event.terms)
    return str(stage.client.session.store.get_json(terms.spec)["name"])


# ---- results and books ----


def _collect(stage: DemoStage) -> None:
    """Show what each job's command printed, check the exit codes, and add the array up."""
    for one in stage.beside:
        one.result()
    for name, process in stage.submits.items():
        expected = EXITS.get(name, 0)
        report = json.loads((stage.folder / f"{name}.json").read_text(encoding="utf-8") or "{}")
        if process.returncode != expected:
            raise HearthError(
                f"the submit of {name} ended with {process.returncode}, not {expected}: "
                f"{report.get('error', {}).get('message') or _last_words(stage, name)}",
                code="DEMO_RESULT",
                hint="hearth demo --keep",
            )
        results = report["results"]
        folder = stage.folder / "results" / name
        stage.say(
            f"{name}: {results['verdict']}, exit code {process.returncode}, {results['verified']} results verified"
        )
        if name in SHOWN:
            SHOWN[name](stage, report, folder)


def _show_file(name: str) -> Callable[[DemoStage, dict[str, Any], Path], None]:
    """Return what shows a small file of a result."""

    def show(stage: DemoStage, report: dict[str, Any], folder: Path) -> None:
        stage.say(f"  {name}: {(folder / name).read_text(encoding='utf-8').strip()}")

    return show


def _show_count(stage: DemoStage, report: dict[str, Any], folder: Path) -> None:
    steps = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    stage.say(f"  result.json: {json.dumps(steps)}")
    _check_steps(stage, report["job"], steps["steps_of_attempts"])


def _show_last_words(stage: DemoStage, report: dict[str, Any], folder: Path) -> None:
    stage.say(f"  its last words: {str(report['results']['failure']['stderr_tail']).strip()[-120:]}")


def _show_error(stage: DemoStage, report: dict[str, Any], folder: Path) -> None:
    stage.say(f"  {report['error']['message']}")


def _show_sum(stage: DemoStage, report: dict[str, Any], folder: Path) -> None:
    """Add an array up, and show the end of what it comes to."""
    counted = stage.client.jobs.get(
        report["job"], folder=stage.folder / "counted", reduce=EXAMPLES / "wordcount-array" / "reduce.py"
    )
    for line in str(counted["reduced"]).splitlines()[-4:]:
        stage.say(f"  {line.strip()}")


SHOWN: Final[dict[str, Callable[[DemoStage, dict[str, Any], Path], None]]] = {
    SPOILT: _show_file("accuracy.json"),
    ATTESTED: _show_file("accuracy.json"),
    "numpy-train": _show_file("metrics.json"),
    RESUME: _show_count,
    FAILING: _show_last_words,
    ORPHAN: _show_error,
    NEWCOMERS: _show_sum,
}
"""What is shown of a job's results, given what its command printed and the folder of its results, by its name."""


def _check_steps(stage: DemoStage, job: str, steps: list[int]) -> None:
    """Fail where a count lost steps, or began anew for no reason that a worker logged."""
    first, *rest = steps
    if first + sum(rest) != STEPS or (rest and first < KILL_STEP):
        raise HearthError(f"{RESUME} lost steps: {steps}", code="DEMO_RESULT", hint="hearth demo --keep")
    if not rest:
        why = _why_anew(stage, job)
        if not why:
            told = f"{RESUME} began anew, and no worker logged why"
            raise HearthError(told, code="DEMO_RESULT", hint="hearth demo --keep")
        stage.say(f"  {ANEW}, which logged: {' | '.join(why)}")


def _why_anew(stage: DemoStage, job: str) -> list[str]:
    """Return what a worker logged of a job's first unit after which it may begin anew, though a state of it is kept.

    Of a very busy machine the state may not be whole in the seconds before its lease is taken. And who gathered for
    the job in vain twice fetches none before a claim.
    """
    for name in WORKERS:
        lines = (stage.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        own = [line for line in lines if f"{job[2:]}-0-" in line]
        unusable = [line for line in own if "a state cannot be used" in line]
        in_vain = [line for line in own if "gathered in vain" in line]
        if unusable or len(in_vain) > 1:
            return unusable or in_vain
    return []


def _balances(stage: DemoStage) -> dict[str, tuple[int, int]]:
    """Return (coin, credit in Escrow) by account."""
    from hearth.local import devnet

    keys = {row["name"]: row["address"] for row in stage.client.wallet.list()["keys"]}
    keys["treasury"] = devnet.account(devnet.TREASURY).address.lower()
    market = stage.client.session.market
    return {name: (market.port.balance(keys[name]), market.credit(keys[name])) for name in (*ACCOUNTS, "treasury")}


def _show_money(stage: DemoStage, before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> None:
    asset = stage.client.session.asset
    stage.say("balances: coin and credit before, after, change")
    for name, (coin, credit) in before.items():
        now_coin, now_credit = after[name]
        change = show_amount(now_coin + now_credit - coin - credit, asset)
        shown = [show_amount(value, asset, symbol=False) for value in (coin + credit, now_coin + now_credit)]
        stage.say(f"  {name:10} {shown[0]:>14} {shown[1]:>14}  {change}")
    stage.say(f"{stage.finished} results settled themselves as they were submitted; {stage.given_up} unit was given up")
    stage.say("gas per transaction, mean (the same keeper transaction may hold several units)")
    for name, used in sorted(stage.gas.items()):
        stage.say(f"  {name:10} {sum(used) // len(used):>8,} x {len(used)}")


def _verdict(verified: NetVerification) -> str:
    """Say in a sentence what the verification came to."""
    if not verified["solvent"]:
        return "the books do not hold: the last line says why"
    jobs, paid, read = (f"{verified[name]:,}" for name in ("jobs", "settled", "results_checked"))
    return f"the books hold: {jobs} jobs, {paid} units paid, {read} results read again; Escrow has all that it owes"


# ---- the end ----


@contextmanager
def _signals_end_it() -> Iterator[None]:
    """Turn SIGTERM into the end of the demo, so that what it started is stopped."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a process and its children: each has a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _stop_processes(stage: DemoStage) -> None:
    stage.over.set()
    everything = [*stage.submits.values(), *stage.processes.values()]
    for process in everything:
        if process.poll() is None:
            _signal(process, signal.SIGCONT)
            _signal(process, signal.SIGTERM)
    end = time.monotonic() + 10
    for process in everything:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, end - time.monotonic()))
        # Children of a worker that was killed in between run on otherwise.
        _signal(process, signal.SIGKILL)
        process.wait()


def _stop_chain(stage: DemoStage) -> None:
    from hearth.local import devnet

    devnet.down(stage.folder)


def _last_words(stage: DemoStage, name: str) -> str:
    text = (stage.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip()
    return text.splitlines()[-1] if text else "it said nothing"
