"""Every abuse program twice: through a real worker on a real chain, where it achieves nothing and the beats stay on
time; and with the one defence that stops it removed, where it succeeds.

The host alone says what came about: its processes, files, sockets, memory (stage.py). `make abuse` runs this folder and
prints the figures.
"""

from __future__ import annotations

import json
import shutil
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hearth.chain.tx import Pending
from hearth.jobfile import Blob, needs_of, spec_digest
from hearth.jobfile.resolved import ResolvedInput, ResolvedOutput
from hearth.jobfile.resolved import canonical as canonical_of
from hearth.market.abi import codec
from hearth.market.events import Declined, Reclaimed, Submitted
from hearth.protocol.types import Billing, JobId, Runtime, TermsFlag
from hearth.storage import cid as cids
from tests.abuse import programs
from tests.abuse.programs import OUT_BYTES, ROWS, Mutation, Row
from tests.abuse.stage import Scene, Sight, Watch, open_scene
from tests.kit import build
from tests.kit.anvil import need_anvil
from tests.kit.exchange import Exchange, Scenario
from tests.kit.running import start_python, wait
from tests.worker.runtimes.engines import HOST, NUMPY, published, rules, runtime_of
from tests.worker.wasm_tools import from_c
from worker.runtimes import wasm
from worker.runtimes.base import OutputRule, RunRequest, SandboxLimits
from worker.runtimes.docker import DockerRuntime
from worker.runtimes.docker_request import JANITOR_LABEL
from worker.status import read_status

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.slow]

SLOTS = 8
AT_ONCE = 4
GUEST = Path(__file__).parent / "guest.py"
SET_USER_ID = 'cp "$(readlink -f "$(command -v python3)")" /set-user-id; chmod 4755 /set-user-id'
SIGNS_OF_LIFE = (("NodeRegistry", "beat"), ("JobRegistry", "ack"), ("JobRegistry", "claim"), ("JobRegistry", "submit"))


@dataclass
class Ground:
    """What all runs share: the engine, the images, the scene, and who watches."""

    runtime: DockerRuntime
    api: Any
    images: dict[str, str]
    scene: Scene
    watch: Watch
    folder: Path
    modules: dict[str, Path] = field(default_factory=dict)

    def sight(self, row: Row, mark: str, token: str, cores: float) -> Sight:
        made = Sight(mark, token, row.during, row.after, row.seconds, cores, self.scene)
        return self.watch.add(made)

    def command(self, row: Row, token: str) -> tuple[str, ...]:
        """Return the arguments of a program."""
        scene = self.scene
        if row.runtime == "wasm":
            if row.program.startswith("(module"):
                return ()
            if row.name.startswith("hole"):
                return (str(scene.key), token, scene.ports["udp"])
            return tuple(row.program.split())
        named = {**scene.ports, "key": str(scene.key), "segment": str(programs.segment_bytes(token))}
        return ("python3", "guest.py", row.program, token, *(named.get(word, word) for word in row.words))

    def module(self, row: Row) -> Path:
        """Return the module of a program, built once."""
        import wasmtime

        if row.name not in self.modules:
            path = self.folder / f"module-{len(self.modules)}.wasm"
            if row.name.startswith("hole"):
                name = row.program.encode()
                path.write_bytes(wasmtime.wat2wasm(programs.HOLE) + bytes([0, 5 + len(name)]) + b"\x04hole" + name)
            elif row.program.startswith("(module"):
                path.write_bytes(wasmtime.wat2wasm(row.program))
            else:
                path = from_c("probe")
            self.modules[row.name] = path
        return self.modules[row.name]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """The engine, an image with a set-user-ID program, and what the host has to lose."""
    import docker

    runtime = runtime_of(rules())
    # Where the worker has its home: what a guest finds above its folders is the same in both runs.
    folder = tmp_path_factory.mktemp("abuse") / "home" / "state"
    folder.mkdir(parents=True, mode=0o700)
    with docker.APIClient(base_url=HOST, version="auto") as api:
        images = {"": NUMPY, "set-user-id": published(api, [], SET_USER_ID, image=NUMPY)}
        with open_scene(folder, uuid.uuid4().hex[:12]) as scene:
            scene.engine_root = Path(api.info()["DockerRootDir"])
            watch = Watch()
            watch.start()
            yield Ground(runtime, api, images, scene, watch, folder.parent)
            watch.close()
            programs.drop_segments({one.token for one in watch.sights})


# ---- with the profile, through a worker ----


@dataclass
class Beats:
    """The seconds between a node's signs of life on chain, and how many were allowed."""

    gaps: list[int]
    allowed: int
    usual: int

    @property
    def late(self) -> list[int]:
        """Return by how many seconds each was later than the worker means it to be."""
        return sorted(max(0, gap - self.usual) for gap in self.gaps)

    def __str__(self) -> str:
        late = self.late
        at = {share: late[min(len(late) - 1, int(len(late) * share / 100))] for share in (50, 99)}
        told = f"{at[50]} s late at p50, {at[99]} s at p99, {late[-1]} s at most"
        return f"{len(late)} signs of life, {told}; {self.allowed} s without one would end its leases"


@dataclass
class Worked:
    """What a worker made of every program."""

    sights: dict[str, Sight]
    kinds: dict[str, str]
    beats: Beats
    scenario: Scenario
    stake: tuple[int, int]
    events: list[Any]


class Market:
    """A worker that takes every program, on a chain of its own."""

    def __init__(self, home: Path, ground: Ground) -> None:
        self.ground = ground
        self.exchange = Exchange(home)
        self.jobs: dict[str, JobId] = {}
        self.sights: dict[str, Sight] = {}
        # A devnet's leases end three seconds after their run, which a busy machine may need to kill and store; and they
        # are given back where the data is not here some five seconds after the match, which it may need to begin.
        self.exchange.set_policy(grace_floor=60, fetch_floor=60)
        offer = {"runtimes": Runtime.WASM | Runtime.DOCKER, "cores": 1, "ram_gib": 1, "disk_gib": 1}
        self.scenario = self.exchange.scenario("abused", slots=SLOTS, stake=50, **offer)
        config = self.scenario.home / "worker.toml"
        text = config.read_text().replace('home = "state"', f'home = "{ground.folder / "state"}"')
        text = text.replace(
            'runtimes = ["wasm"]', 'runtimes = ["wasm", "docker"]\ncores = 1\nmemory = "1GiB"\ndisk = "1GiB"'
        )
        text = text.replace(f'modules = ["{self.scenario.module.cid}"]\n', "")
        registry = NUMPY.partition("/")[0]
        config.write_text(text + f'\n[docker]\nhost = "{HOST}"\nregistries = ["{registry}"]\n')

    def post(self, row: Row) -> Pending:
        """Post one program as a job of its own."""
        exchange, ground, token = self.exchange, self.ground, f"abuse-{uuid.uuid4().hex[:12]}"
        store = exchange.store
        data = store.add_bytes(b"as the submitter has it")
        values: dict[str, Any] = {
            "name": "abuse",
            "runtime": row.runtime,
            "command": ground.command(row, token),
            "inputs": (ResolvedInput(cid=str(data.cid), dst="/in/data.txt", size=data.size),),
            "outputs": (ResolvedOutput(path="/out", required=False, max_size=OUT_BYTES),),
            "resources": build.spec().resources.model_copy(update={"memory_mib": row.memory}),
            "runtime_seconds": row.seconds,
        }
        if row.runtime == "wasm":
            entry = store.add_path(ground.module(row))
            values["module"] = Blob(cid=str(entry.cid), size=entry.size)
        else:
            entry = store.add_path(self.work)
            values |= {"image": ground.images[row.image], "workdir": Blob(cid=str(entry.cid), size=entry.size)}
        spec = build.spec(**values)
        store.put_json(canonical_of(spec))
        policies = exchange.market.policies()
        terms = build.terms(
            submitter=exchange.submitter.address,
            salt=len(self.jobs),
            spec=spec_digest(spec),
            needs=needs_of(spec.resources, row.runtime),
            ceiling=10**12 * 10**6,
            max_seconds=row.seconds,
            deadline=exchange.chain.head().timestamp + 3_600,
            keeper_fee=policies.policy.min_keeper_fee,
            policy=policies.word,
            match_window=0,
            max_attempts=1,
            flags=TermsFlag.NEWCOMERS,
            billing=Billing.FUEL if row.fuel else Billing.FIXED,
        )
        job = self.jobs[row.name] = exchange.market.job_id(terms)
        mark = f"-{job.hex()[:12]}-" if row.runtime == "wasm" else token
        self.sights[row.name] = ground.sight(row, mark, token, 1.0)
        return exchange.submitter.start(exchange.market.calls.post(terms), key=f"post/{job.hex()}")

    @property
    def work(self) -> Path:
        """Return the working directory of every container."""
        path = self.exchange.home / "work"
        if not path.exists():
            path.mkdir()
            shutil.copy(GUEST, path)
        return path

    def run(self) -> Worked:
        """Post everything, let a worker work, and read what it said of each."""
        exchange, scenario = self.exchange, self.scenario
        stake = exchange.market.node(scenario.node).stake
        scenario.process = start_python(
            scenario.home / "log",
            *("-m", "tests.abuse.holed_worker", "--json", "--config", str(scenario.home / "worker.toml")),
            HEARTH_HOME=str(exchange.user_home),
        )
        wait(lambda: exchange.market.node(scenario.node).state.beat, "it beats")
        first = exchange.chain.head().number
        for pending in [self.post(row) for row in ROWS.values()]:
            exchange.submitter.finish(pending)

        def over() -> list[Any] | None:
            ended = [event for event in exchange.logs() if isinstance(event, Submitted | Declined | Reclaimed)]
            return ended if {event.job_id for event in ended} >= set(self.jobs.values()) else None

        try:
            events = wait(over, "every program has ended", 240)
        except AssertionError as error:
            ended = {event.job_id for event in exchange.logs() if isinstance(event, Submitted | Declined | Reclaimed)}
            left = [name for name, job in self.jobs.items() if job not in ended]
            status: Any = read_status(self.ground.folder / "state") or {}
            why = {name: status.get("reasons", {}).get(self.jobs[name].hex()) for name in left}
            raise AssertionError(f"{error}: {left}; {why}\n{scenario.log()[-1500:]}") from None
        beats = self.beats(first, exchange.chain.head().number)
        stakes = (stake, exchange.market.node(scenario.node).stake)
        scenario.stop()
        kinds: dict[str, str] = {}
        for event in events:
            name = next(name for name, job in self.jobs.items() if job == event.job_id)
            kinds[name] = type(event).__name__
            self.read(self.sights[name], event)
            self.sights[name].end()
        return Worked(self.sights, kinds, beats, scenario, stakes, events)

    def read(self, sight: Sight, event: Any) -> None:
        """Take up what the worker published of a run."""
        store = self.exchange.store
        if isinstance(event, Declined) and not any(event.report):
            sight.status = "broken"  # nobody declines without a report but for trouble of the machine
        elif isinstance(event, Declined):
            refusal = store.get_json(event.report)
            sight.status, sight.detail = refusal["outcome"], refusal["detail"]
        elif isinstance(event, Submitted):
            result, report = store.get_json(event.result), store.get_json(event.report)
            sight.status, sight.detail = result["status"], report["detail"]
            read = self.exchange.home / "read" / sight.token
            read.mkdir(parents=True)
            for document, name in ((result["outputs"], "out"), (report["logs"], "logs")):
                if document:
                    store.fetch(cids.parse(document["cid"]), read / name)
            sight.out = read / "out"
            with suppress(FileNotFoundError):
                sight.stdout = (read / "logs" / "stdout").read_bytes()

    def beats(self, first: int, last: int) -> Beats:
        """Return the node's signs of life on chain between two blocks."""
        network = self.exchange.net.network
        signs = {"0x" + codec(name).selector(function).hex() for name, function in SIGNS_OF_LIFE}
        seen = []
        for number in range(first, last + 1):
            block = self.exchange.chain.rpc("eth_getBlockByNumber", hex(number), True)
            for tx in block["transactions"]:
                if tx["from"].lower() == self.scenario.operator and tx["input"][:10] in signs:
                    receipt = self.exchange.chain.receipt(bytes.fromhex(tx["hash"][2:]))
                    if receipt is not None and receipt.ok:
                        seen.append(int(block["timestamp"], 16))
        end = int(self.exchange.chain.rpc("eth_getBlockByNumber", hex(last), False)["timestamp"], 16)
        times = sorted({*seen, end})
        allowed = network.node_parameters.dead_after
        return Beats([after - before for before, after in pairwise(times)], allowed, allowed // 3)


@pytest.fixture(scope="module")
def worked(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worked]:
    """Every program, run by one worker."""
    need_anvil()
    market = Market(tmp_path_factory.mktemp("abused"), ground)
    try:
        yield market.run()
    finally:
        if market.scenario.process is not None and market.scenario.process.poll() is None:
            market.scenario.kill()
        market.exchange.close()


@pytest.mark.parametrize("name", ROWS)
def test_worker__abuse__achieves_nothing_and_is_named_as_the_jobs_doing(name: str, worked: Worked) -> None:
    row, sight = ROWS[name], worked.sights[name]
    if name.startswith("hole:") and (why := programs.lacking(name)):
        pytest.skip(why)
    if row.during is not None:
        assert sight.since, f"nobody looked: the host never saw a process with {sight.mark} in its arguments"
    assert not sight.won.is_set(), sight.told(row.achieves)
    assert sight.status in row.ends, (sight.status, sight.detail)
    assert worked.kinds[name] == ("Declined" if sight.status == "bad_input" else "Submitted")


def test_worker__all_abuse_at_once__beats_on_time_and_loses_nothing(worked: Worked) -> None:
    print(f"\nabuse: {len(ROWS)} programs, {worked.beats}")
    assert max(worked.beats.gaps) < worked.beats.allowed
    assert worked.stake[0] == worked.stake[1]
    assert not [event for event in worked.events if isinstance(event, Reclaimed)]
    assert worked.scenario.sandboxes() == []
    text = worked.scenario.log()
    for bad in ("fault of the worker", "Traceback", "could not be taken back", "the engine failed"):
        assert bad not in text, text[-1500:]


# ---- without the defence, and with no other ----


@dataclass(frozen=True)
class Pair:
    """What came of a program in the runtime itself: without its defence, and with it where others are out in both."""

    without: Sight
    beside: Sight | None


class ChildWatch(wasm.Watch):
    """The worker's look at a child, but at one whose label says that it has none."""

    def __init__(self, pid: int, request: RunRequest, tmp: Path) -> None:
        super().__init__(pid, request, tmp)
        self.blind = "watch" in request.unit.split("-without-")

    def excess(self) -> str:
        """Return what it holds too much of."""
        return "" if self.blind else super().excess()


class Bench:
    """Run programs by their runtimes, with what is asked of the engine and of the children changed, run by run."""

    def __init__(self, ground: Ground, patch: pytest.MonkeyPatch) -> None:
        import docker

        self.ground = ground
        self.changes: dict[str, list[Mutation]] = {}
        patch.setattr(wasm, "CHILD", "tests.abuse.holed_child")
        patch.setattr(wasm, "Watch", ChildWatch)
        plain = docker.APIClient.create_container_from_config

        def create(api: Any, config: dict[str, Any], *values: Any, **named: Any) -> Any:
            """Change the body of the engine's create call, at the last moment before it is sent."""
            labels = config.get("Labels", {}).values()
            changes = [self.changes[label] for label in labels if label in self.changes]
            if changes and config["Labels"][JANITOR_LABEL] == "0":  # what measures a guest is no guest
                config = json.loads(json.dumps(config))
                for change in changes[0]:
                    change(config)
            return plain(api, config, *values, **named)

        patch.setattr(docker.APIClient, "create_container_from_config", create)

    def pair(self, row: Row) -> Pair:
        """Run a program in the one or the two ways of a pair."""
        beside = self.run(row, row.loosen) if row.loosen else None
        return Pair(self.run(row, (*row.loosen, *row.remove)), beside)

    def run(self, row: Row, changes: tuple[Mutation | str, ...]) -> Sight:
        """Run a program until it ends or has won."""
        ground, token = self.ground, f"abuse-{uuid.uuid4().hex[:12]}"
        # As deep below the secret as an attempt of a worker.
        folder = ground.folder / "state" / "direct" / token
        for name in ("in", "job", "out", "scratch"):
            (folder / name).mkdir(parents=True, mode=0o700)
        (folder / "in" / "data.txt").write_text("as the submitter has it")
        shutil.copy(GUEST, folder / "job")
        request = RunRequest(
            unit="-without-".join((token, *(name for name in changes if isinstance(name, str)))),
            command=ground.command(row, token),
            job_dir=folder / "job",
            in_dir=folder / "in",
            out_dir=folder / "out",
            limits=SandboxLimits(
                wall_seconds=600 if row.timeless else row.seconds,
                memory_bytes=row.memory << 20,
                out_bytes=OUT_BYTES,
                fuel=row.fuel or None,
            ),
            outputs=(OutputRule("/out", required=False),),
        )
        sight = ground.sight(row, token, token, row.cores)
        sight.out, sight.hears = folder / "out", True
        self.changes[token] = [change for change in changes if not isinstance(change, str)]
        if row.runtime == "wasm":
            runtime = wasm.WasmRuntime(folder / "scratch")
            result = runtime.run(replace(request, module=ground.module(row)), sight.won)
        else:
            result = ground.runtime.run(replace(request, image=ground.images[row.image]), sight.won)
        sight.status, sight.detail, sight.stdout = result.status.value, result.detail, result.stdout
        sight.end()
        return sight


@pytest.fixture(scope="module")
def pairs(ground: Ground) -> Iterator[dict[str, Pair]]:
    """Every program in its runtime: several at once, but those whose defence is this process's own."""

    def count(*_: Any) -> None:
        ground.scene.signals += 1

    before = signal.signal(signal.SIGUSR1, count)
    found: dict[str, Pair] = {}
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(AT_ONCE) as pool:
        bench = Bench(ground, patch)
        runs = {name: pool.submit(bench.pair, row) for name, row in ROWS.items() if row.patch is None}
        found |= {name: run.result() for name, run in runs.items()}
        for name, row in ROWS.items():
            if row.patch is not None:
                with pytest.MonkeyPatch.context() as own:
                    row.patch(own)
                    found[name] = bench.pair(row)
    yield found
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.deep
@pytest.mark.parametrize("name", ROWS)
def test_runtime__abuse_without_the_one_defence__succeeds(name: str, pairs: dict[str, Pair]) -> None:
    row, pair = ROWS[name], pairs[name]
    if why := programs.lacking(name):
        pytest.skip(why)
    if pair.beside is not None:
        # Another defence would do as well: it was gone in both runs, and this one was enough.
        assert not pair.beside.won.is_set(), pair.beside.told(row.achieves)
    assert pair.without.won.is_set(), pair.without.told(row.achieves)
