"""Every row of tests/e2e/bad_input.py on a real market: the right words, the right exit code, and nothing lost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock
from urllib.request import Request, urlopen

import pytest

from hearth.base.errors import RefusedError, SpecError
from hearth.chain import keys
from hearth.client.posting.post import Posting
from hearth.client.posting.sources import resolve_image
from hearth.local import devnet
from hearth.storage.stores import FolderStore
from tests.e2e.bad_input import GOOD, PLACE_ROWS, RAN_ROWS, SPEC_ROWS, Ran, Row
from tests.kit.disks import MIB, fill, small_disk
from tests.kit.hints import faults_in
from tests.kit.http import answering, send
from tests.kit.require import require
from tests.kit.town import ROOT, Said, Town, check_reports, example_text, town

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PASSWORD = "bad input"
PROGRAMS = {
    "good": '(module (memory (export "memory") 1) (func (export "_start")))',
    "trap": '(module (memory (export "memory") 1) (func (export "_start") unreachable))',
    "loop": '(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))',
    # It takes what it gets, and fails where it gets no more.
    "hungry": """(module (memory (export "memory") 1) (func (export "_start")
        (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable))""",
    # 2,000 pages of 64 KiB are twice what the spec gives it.
    "greedy": '(module (memory (export "memory") 2000) (func (export "_start")))',
    "stranger": '(module (import "env" "alert" (func)) (memory (export "memory") 1) (func (export "_start")))',
    "library": '(module (memory (export "memory") 1) (func (export "_initialize")))',
    "mindless": '(module (func (export "_start")))',
    "threads": '(module (memory (export "memory") 1 1 shared) (func (export "_start")))',
}
STATEFUL = ("chain.json", "devnet.lock", "status.json", ".lock", ".log")
"""How the files end that the chain, the workers and the keeper write all the time."""


def _key(place: Town, name: str, *, wei: int = 0) -> keys.KeyFile:
    key = keys.create_key(place.home / "keys", name, PASSWORD, devnet=True)
    market = place.session.market
    if wei:
        devnet.fund(market.port, place.session.network, key.address, wei=wei)  # type: ignore[arg-type]
    return key


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """A native market with one worker and a keeper."""
    with town(tmp_path_factory.mktemp("bad")) as made:
        made.add_worker()
        made.add_keeper()
        yield made


@pytest.fixture(scope="module")
def names(place: Town) -> dict[str, str]:
    """The prepared files, keys and settings that rows name."""
    import wasmtime

    folder = place.home / "user"
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / f"{name}.wasm").write_bytes(wasmtime.wat2wasm(text))
    (folder / "cut.wasm").write_bytes((folder / "good.wasm").read_bytes()[:-3])
    (folder / "hides").mkdir()
    (place.home.parent / "ssh").mkdir()
    (place.home.parent / "ssh" / "id_rsa").write_text("a key")
    (place.home.parent / "ssh" / "diary").write_text("a day")
    (folder / "link").symlink_to("../../ssh")
    (folder / "hides" / "invoice\u202egpj.exe").touch()
    job = folder / "job.yaml"
    job.write_text(GOOD)
    for name, text, mode in (
        ("password", PASSWORD, 0o600),
        ("wrong_password", "not it", 0o600),
        ("open_password", PASSWORD, 0o644),
        ("weak_password", "secret", 0o600),
    ):
        (folder / name).write_text(text + "\n")
        (folder / name).chmod(mode)
    _key(place, "poor", wei=2 * 10**15)
    _key(place, "broke")
    _key(place, "mute", wei=10**18)
    _key(place, "open", wei=10**18).path.chmod(0o644)
    network = json.loads((place.home / "networks" / "devnet.json").read_text())
    for name, change in (
        ("other_chain", {"chain_id": 1}),
        ("other_deployment", {"deployed_chain_id": 1}),
        ("other_code", {"code_hashes": {**network["code_hashes"], "Escrow": "0x" + "00" * 32}}),
        ("other_version", {"protocol_version": 2}),
    ):
        (folder / f"{name}.json").write_text(json.dumps({**network, **change}))
    store = FolderStore(place.home / "store")
    cid = store.add_bytes(b"an input that will rot").cid
    for path in (place.home / "store").rglob("*"):
        if path.is_file() and path.read_bytes() == b"an input that will rot":
            path.chmod(0o600)
            path.write_bytes(b"an input that has rot!")
    (folder / "corrupt.yaml").write_text(GOOD + f'inputs: [{{src: "ipfs://{cid}", dst: /in/x}}]\n')
    odd_keeper = folder / "keeper.toml"
    odd_keeper.write_text('network = "devnet"\nhome = "odd"\n')
    (folder / "odd").mkdir()
    (folder / "odd" / "status.json").write_text('{"schema": "hearth.worker/1", "pid": 1}')
    full = folder / "full"
    full.mkdir()
    (full / "kept").write_text("mine")
    # Nobody asks this little: the jobs stay open.
    cheap = folder / "cheap.yaml"
    cheap.write_text(GOOD.replace("1.20/h", "0.01/h").replace("name: good", "name: cheap"))
    waiting, cancelled = (place.hearth("submit", str(cheap), "--anyway", "--again", "-q").out.strip() for _ in range(2))
    assert place.hearth("job", "cancel", cancelled).code == 0
    blocked = place.hearth("submit", str(cheap), "--anyway", "--after", f"{waiting}:always", "-q").out.strip()
    running = place.home / "worker.toml"
    second = folder / "second.toml"
    second.write_text(running.read_text().replace("/workers/worker", "/workers/second"))
    idle = place.worker_file("worker2")
    lodger = idle.read_text().replace("/workers/worker2", "/workers/worker")
    (folder / "lodger.toml").write_text(lodger)
    poor = folder / "poor.toml"
    deaf = re.sub(r"(?m)^rpc = .*$", 'rpc = ["http://127.0.0.1:9"]', idle.read_text())
    (folder / "deaf.toml").write_text(deaf)
    flat = re.sub(r"(?m)^home = .*$", f'home = "{folder / "password"}"', idle.read_text())
    (folder / "flat.toml").write_text(flat)
    (folder / "bad.toml").write_text('price = "0,60/h"\nnode = 0\n')
    address = keys.find_key(place.home / "keys", "poor").address
    poor.write_text(idle.read_text().replace(place.session.key("owner").address, address))
    return {
        "job": str(job),
        "full_folder": str(full),
        "open_job": waiting,
        "steward": place.session.network.steward,
        "cancelled_job": cancelled,
        "blocked_job": blocked,
        "corrupt_job": str(folder / "corrupt.yaml"),
        "idle_worker": str(idle),
        "lodger": str(folder / "lodger.toml"),
        "odd_keeper": str(odd_keeper),
        "poor_worker": str(poor),
        "running_worker": str(running),
        "second_worker": str(second),
        "gone": str(folder / "gone.toml"),
        "flat_worker": str(folder / "flat.toml"),
        "deaf_worker": str(folder / "deaf.toml"),
        "bad_settings": str(folder / "bad.toml"),
        **{name: str(folder / name) for name in ("password", "wrong_password", "open_password", "weak_password")},
        **{
            name: str(folder / f"{name}.json")
            for name in ("other_chain", "other_deployment", "other_code", "other_version")
        },
    }


def _state(place: Town) -> dict[str, Any]:
    """Return balances, credits and nonces of the users, the locks, and every file that a command could touch."""
    market = place.session.market
    facts: dict[str, Any] = {}
    for key in keys.list_keys(place.home / "keys"):
        if key.name not in place.processes:  # these beat and settle meanwhile
            balances = (market.port.balance(key.address), market.credit(key.address), market.port.nonce(key.address))
            facts[key.name] = balances
    for path in sorted(place.home.rglob("*")):
        inside = path.relative_to(place.home).parts
        if path.is_file() and inside[0] not in ("workers", "keeper") and not path.name.endswith(STATEFUL):
            facts[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return facts


def _expect(told: Said, row: Row, names: dict[str, str]) -> None:
    assert told.code == row.code, (told.code, told.out, told.err)
    assert told.error["code"] == row.error, told.out
    hint = row.hint
    for name, value in names.items():
        hint = hint.replace(f"{{{name}}}", value)
    # Of several problems of a job file, each has its hint behind it.
    several = told.error["hint"] == "correct each of these, then the same command"
    assert hint in told.error["message" if several else "hint"], told.out
    assert told.error["message"] and told.error["hint"], told.out
    assert faults_in(told.error["hint"]) == [], told.out


@pytest.mark.parametrize("row", SPEC_ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_submit__bad_job_file__refused_and_nothing_lost(place: Town, names: dict[str, str], row: Row) -> None:
    text = GOOD
    for old, new in row.edits:
        assert old in text, "the row replaces nothing"
        text = text.replace(old, new)
    file = Path(names["job"]).with_name("row.yaml")
    file.write_text(text)
    before = _state(place)
    _expect(place.hearth("submit", str(file), "--json"), row, names)
    assert _state(place) == before


def test_submit__url_whose_server_breaks_off__is_refused_and_a_whole_one_has_the_files_cid(
    place: Town, names: dict[str, str]
) -> None:
    good = Path(names["job"]).with_name("good.wasm")

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = good.read_bytes()
        part = body[: len(body) // 2] if handler.path == "/short" else body
        send(handler, 206 if handler.path == "/206" else 200, part, Content_Length=str(len(body)))
        handler.close_connection = True

    def at(src: str) -> tuple[str, ...]:
        file = Path(names["job"]).with_name("url.yaml")
        file.write_text(f"{GOOD}inputs: [{{src: '{src}', dst: /in/x}}]\n")
        return str(file), "--allow-private", "--json"

    file = Path(names["job"]).with_name("url.yaml")
    file.touch()
    before = _state(place)
    del before[str(file)]
    with answering(answer) as port:
        for path in ("short", "206"):
            told = place.hearth("submit", *at(f"http://127.0.0.1:{port}/{path}"))
            assert (told.code, told.error["code"], told.error["details"]["field"]) == (9, "URL_DOWN", "inputs[0].src")
        whole = place.hearth("check", *at(f"http://127.0.0.1:{port}/whole"))
    assert (
        whole.code == 0 and "takes what 127.0.0.1 answers, in a private network (--allow-private)" in whole.json["text"]
    )
    assert place.hearth("check", *at("./good.wasm")).json["spec"] == whole.json["spec"]
    after = _state(place)
    del after[str(file)]
    assert after == before
    file.unlink()


@pytest.mark.parametrize("row", PLACE_ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_command__bad_place__refused_and_nothing_lost(place: Town, names: dict[str, str], row: Row) -> None:
    arguments = [part.format(**names) for part in row.command]
    before = _state(place)
    if row.error == "KEY_IN_USE" or arguments[:2] == ["worker", "start"]:
        # A worker hardens its process, so it gets one of its own.
        environ = {**os.environ, "HEARTH_HOME": str(place.home), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-m", "hearth.cli", *arguments, "--json"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        told = Said(done.returncode, done.stdout.splitlines()[-1], done.stderr)
        check_reports(("--json",), told.out)
    else:
        told = place.hearth("--json", *arguments, environ=dict(row.environ))
    _expect(told, row, names)
    assert _state(place) == before


def test_worker_init__full_disk__leaves_no_half_of_a_file(place: Town, tmp_path: Path) -> None:
    with small_disk(tmp_path / "full", MIB) as full:
        fill(full / "rest")
        given = ("--account", "worker2", "--price", "1/h", "--country", "de", "--runtimes", "wasm", "--json")
        told = place.hearth("worker", "init", "--config", str(full / "worker.toml"), *given)
        assert (told.code, told.error["code"], told.error["hint"]) == (9, "FILE_REFUSED", "make room: df -h")
        assert [one.name for one in full.iterdir()] == ["rest"]


# ---- jobs that run and fail ----


def _ran_file(names: dict[str, str], row: Ran) -> Path:
    folder = Path(names["job"]).parent
    text = GOOD.replace("name: good", f"name: {row.name.replace(' ', '-')}")
    for old, new in row.edits:
        assert old in text
        text = text.replace(old, new)
    if row.program == "writer":
        example_text("wordcount-array", folder)
        text = text.replace("./good.wasm", "./wordcount.wasm")
        text += "inputs: [{src: text.txt, dst: /in/text.txt}]\n"
    else:
        text = text.replace("./good.wasm", f"./{row.program}.wasm")
    file = folder / f"{row.name.replace(' ', '-')}.yaml"
    file.write_text(text)
    return file


def _post(place: Town, names: dict[str, str], row: Ran) -> Path:
    """Post the job of a row and return its file."""
    file = _ran_file(names, row)
    told = place.hearth("submit", str(file), "--json")
    assert told.code == 0, told.err + told.out
    return file


@pytest.fixture(scope="module")
def posted(place: Town, names: dict[str, str]) -> dict[str, Path]:
    """Post every short job that will fail at once, so that they run side by side."""
    return {row.name: _post(place, names, row) for row in RAN_ROWS if not row.deep}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.deep] if row.deep else [], id=row.name.replace(" ", "-"))
        for row in RAN_ROWS
    ],
)
def test_submit__job_that_fails__exit_100_with_its_status_and_books_that_add_up(
    place: Town, names: dict[str, str], posted: dict[str, Path], row: Ran
) -> None:
    file = posted.get(row.name) or _post(place, names, row)
    # The same file again finds the posted job, waits for it, and pays nothing.
    nonce = place.session.market.port.nonce(place.session.key().address)
    told = place.hearth("submit", str(file), "--wait", "--json", "--timeout", "4m")
    assert told.code == 100, told.out + told.err
    assert place.session.market.port.nonce(place.session.key().address) == nonce
    error = told.error
    assert error["code"] == "JOB_FAILED" and error["details"]["status"] in row.statuses, told.out
    assert error["hint"].startswith("hearth job logs 0x")
    assert place.hearth("job", "logs", told.json["job"]).code == 0
    receipt = place.hearth("job", "receipt", told.json["job"], "--json").json
    parts = sum(int(receipt[name]) for name in ("workers", "market_fee", "keepers", "refunded", "still_locked"))
    assert parts == int(receipt["escrow"]) and receipt["still_locked"] == "0"


@pytest.mark.docker
@pytest.mark.parametrize(
    ("name", "command", "limits", "status"),
    [
        ("exit", ["sh", "-c", "exit 4"], "10s", "exit"),
        ("oom", ["sh", "-c", "tail /dev/zero"], "20s", "oom"),
        # A lease has a tenth of it more, 10 s at least: a busy machine that begins later gives the unit back.
        pytest.param("timeout", ["sleep", "90"], "60s", "timeout", marks=pytest.mark.deep),
    ],
)
def test_submit__container_that_fails__exit_100(
    place: Town, names: dict[str, str], name: str, command: list[str], limits: str, status: str
) -> None:
    from worker.runtimes.docker import DockerRuntime

    image = os.environ.get("HEARTH_TEST_IMAGE_BUSYBOX", "")
    works, why = DockerRuntime().available()
    require("docker", works and bool(image), f"{why}; HEARTH_TEST_IMAGE_BUSYBOX={image!r}")
    if "worker3" not in place.processes:
        path = place.worker_file("worker3")
        registry = f'\n[docker]\nregistries = ["{image.partition("/")[0]}"]\n'
        path.write_text(path.read_text().replace('["wasm"]', '["docker"]') + registry)
        place.start_worker(path, "worker3")
    text = GOOD.replace("runtime: wasm", "runtime: docker").replace('module: "./good.wasm"', f'image: "{image}"')
    text = text.replace("runtime: 10s", f"runtime: {limits}") + f"command: {json.dumps(command)}\n"
    file = Path(names["job"]).with_name(f"docker-{name}.yaml")
    file.write_text(text)
    told = place.hearth("submit", str(file), "--wait", "--json", "--timeout", "4m")
    assert told.code == 100, told.out + told.err
    assert told.error["details"]["status"] == status
    # Nobody said how it bills: the time from its start to its result is paid, not all that it might have taken.
    assert told.json["end"]["billing"] == "metered"
    view = place.client.jobs.reads.look(told.json["job"])
    unit, receipt = view.units[0], place.hearth("job", "receipt", told.json["job"], "--json").json
    paid = unit.rate * min(unit.mark - unit.started, view.terms.max_seconds) // 10**6
    assert int(receipt["workers"]) + int(receipt["market_fee"]) == paid


@pytest.mark.docker
def test_worker_register__engine_with_known_holes__refused_but_on_a_local_chain(
    place: Town, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from worker.runtimes import oci
    from worker.runtimes.docker import DockerRuntime

    works, why = DockerRuntime().available()
    require("docker", works, why)
    (runc,) = [row.detail for row in DockerRuntime().capabilities(1) if row.name == "runc"]
    file = Path(names["job"]).with_name("unsafe.toml")
    file.write_text(Path(names["idle_worker"]).read_text().replace('["wasm"]', '["wasm", "docker"]'))
    command = ("worker", "register", "--config", str(file), "--stake", "20", "--dry-run", "--json")
    assert place.hearth(*command).code == 0
    # The devnet stands in for a chain on which strangers post jobs, with an engine that every fix came after.
    monkeypatch.setattr(oci, "LOCAL_CHAIN_ID", 0)
    monkeypatch.setattr(oci, "RUNC_MINIMUM", dict.fromkeys([(1, minor) for minor in range(20)], "9.9.9"))
    before = _state(place)
    refused = place.hearth(*command)
    assert (refused.code, refused.error["code"]) == (3, "UNSAFE_ENGINE"), refused.out
    assert "runc" in refused.error["message"] and "patched_runc" in refused.error["hint"]
    assert _state(place) == before
    version = runc.split(" is below")[0].removesuffix(", patched by the distribution")
    file.write_text(file.read_text() + f'\n[docker]\npatched_runc = ["{version}"]\n')
    assert place.hearth(*command).code == 0
    known = file.read_text()
    file.write_text(known + 'runtime = "runsc-nowhere"\n')
    before = _state(place)
    refused = place.hearth(*command)
    assert (refused.code, refused.error["code"]) == (3, "NO_OCI_RUNTIME"), refused.out
    assert "hearth worker doctor" in refused.error["hint"] and _state(place) == before
    file.write_text(known.replace('["wasm", "docker"]', '["wasm"]').split("[docker]")[0])
    assert place.hearth(*command).code == 0


@pytest.mark.docker
def test_run__image_by_tag__resolved_to_its_digest_and_a_missing_one_refused(
    place: Town, names: dict[str, str]
) -> None:
    from worker.runtimes.docker import DockerRuntime

    image = os.environ.get("HEARTH_TEST_IMAGE_BUSYBOX", "")
    works, why = DockerRuntime().available()
    require("docker", works and bool(image), f"{why}; HEARTH_TEST_IMAGE_BUSYBOX={image!r}")
    repository, digest = image.split("@")
    environ = {"HEARTH_DOCKER_HOST": os.environ.get("HEARTH_DOCKER_HOST", "")}
    before = _state(place)
    priced = ("--max-rate", "1.2/h", "--allow-private", "--json")
    command = ("run", *priced, "--anyway", "--dry-run", f"{repository}:1", "true")
    told = place.hearth(*command, environ=environ)
    assert told.code == 0, told.out + told.err
    assert resolve_image(f"{repository}:1", allow_private=True) == f"{repository}@{digest}"
    command = ("run", *priced, f"{repository}:gone", "true")
    told = place.hearth(*command, environ=environ)
    assert (told.code, told.error["code"]) == (2, "NO_IMAGE"), told.out
    assert _state(place) == before


def test_worker_doctor__rpc_of_its_file_is_dead__fails_as_the_start_does(place: Town, names: dict[str, str]) -> None:
    """The network file's own provider answers all the while: it is not the one that the worker would ask."""
    told = place.hearth("worker", "doctor", "--config", names["deaf_worker"], "--json")
    rows = {row["name"]: row for row in told.json["checks"]}
    assert told.code == 3 and rows["rpc"]["level"] == "FAIL", told.out
    assert "asks http://127.0.0.1:9, rpc in worker.toml, and does not start" in rows["rpc"]["detail"]
    assert rows["node"]["detail"] == "see rpc"


def test_worker_drain__no_worker_runs__says_that_a_start_works_again(place: Town, names: dict[str, str]) -> None:
    told = place.hearth("worker", "drain", "--config", names["idle_worker"])
    assert told.code == 0 and told.out.startswith("no worker runs here now\n  next: ")
    assert "it will read this" in place.hearth("worker", "pause", "--config", names["idle_worker"]).out
    assert place.hearth("worker", "resume", "--config", names["idle_worker"]).code == 0


# ---- moments in the middle ----


def _submit_process(place: Town, file: Path, *arguments: str) -> subprocess.Popen[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HEARTH_")}
    environ |= {"HEARTH_HOME": str(place.home), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "hearth.cli", "submit", str(file), "--json", *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _cheap(names: dict[str, str], name: str) -> Path:
    """Write a job that no worker takes, so that it stays as it is."""
    file = Path(names["job"]).with_name(f"{name}.yaml")
    file.write_text(GOOD.replace("name: good", f"name: {name}").replace("1.20/h", "0.01/h"))
    return file


def test_submit__ctrl_c_while_waiting__130_and_the_same_file_finds_the_job(place: Town, names: dict[str, str]) -> None:
    file = _cheap(names, "interrupted")
    process = _submit_process(place, file, "--anyway", "--wait")
    assert process.stderr is not None
    job = next(line.split()[1] for line in process.stderr if line.startswith("job 0x"))
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(60) == 130
    assert "is alive" in rest
    before = _state(place)
    again = place.hearth("submit", str(file), "--anyway", "--json")
    assert (again.code, again.json["job"], again.json["transactions"]) == (0, job, [])
    assert _state(place) == before
    assert place.hearth("job", "cancel", job).code == 0


class _Cut(ThreadingHTTPServer):
    """A proxy to the chain that goes silent once a transaction is to be sent, or was with `passes_on`."""

    daemon_threads = True

    def __init__(self, url: str, passes_on: bool = False) -> None:
        self.url, self.cut, self.sends, self.passes_on = url, True, 0, passes_on
        super().__init__(("127.0.0.1", 0), _CutHandler)


class _CutHandler(BaseHTTPRequestHandler):
    server: _Cut

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_send = b"eth_sendRawTransaction" in body
        request = Request(self.server.url, body, {"Content-Type": "application/json"})
        if is_send and self.server.passes_on and not self.server.sends:
            urlopen(request, timeout=20).close()
        if is_send:
            self.server.sends += 1
        if self.server.cut and self.server.sends:
            self.connection.close()
            return
        with urlopen(request, timeout=20) as answer:
            data = answer.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return


def test_submit__rpc_cut_while_posting__exit_4_and_the_same_file_pays_once(place: Town, names: dict[str, str]) -> None:
    file = _cheap(names, "cut")
    proxy = _Cut(place.url)
    Thread(target=proxy.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{proxy.server_address[1]}"
    market, address = place.session.market, place.session.key().address
    before = (market.port.nonce(address), market.port.balance(address))
    try:
        told = place.hearth("submit", str(file), "--anyway", "--rpc", url, "--timeout", "5s", "--json")
        assert told.code == 4, told.out
        assert told.error["retryable"] is True and told.error["hint"]
        assert proxy.sends >= 1
        assert (market.port.nonce(address), market.port.balance(address)) == before
    finally:
        proxy.shutdown()
        proxy.server_close()
    again = place.hearth("submit", str(file), "--anyway", "--json")
    assert again.code == 0, again.out + again.err
    third = place.hearth("submit", str(file), "--anyway", "--json")
    assert third.json["job"] == again.json["job"]
    assert market.port.nonce(address) == before[0] + 1
    assert place.hearth("job", "cancel", again.json["job"]).code == 0


@pytest.mark.parametrize("again", [(), ("--again",)])
def test_submit__ctrl_c_once_the_post_was_sent__says_that_it_may_be_on_its_way(
    place: Town, names: dict[str, str], again: tuple[str, ...]
) -> None:
    file = _cheap(names, f"sent{len(again)}")
    proxy = _Cut(place.url, passes_on=True)
    Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{proxy.server_address[1]}"
        process = _submit_process(place, file, "--anyway", "--rpc", url, *again)
        end = time.monotonic() + 60
        while not proxy.sends and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    finally:
        proxy.shutdown()
        proxy.server_close()
    job = next(line.split()[2] for line in said.splitlines() if line.startswith("posting job 0x"))
    way = "the same command without --again finds it" if again else "the same command finds it"
    assert process.returncode == 130
    assert said.endswith(
        f"\nstopped; the post of job {job} may be on its way: {way}\n  next: hearth job show {job[:14]}\n"
    )
    found = place.hearth("submit", str(file), "--anyway", "--json")
    assert (found.code, found.json["job"]) == (0, job), found.out + found.err
    assert place.hearth("job", "cancel", job).code == 0


def test_post__the_same_terms_twice__refused_by_the_contract(place: Town, names: dict[str, str]) -> None:
    file = _cheap(names, "twice")
    job = place.hearth("submit", str(file), "--anyway", "-q").out.strip()
    session = place.session
    terms = session.market.terms_of(session.job_id(job)).terms
    before = (session.market.port.balance(terms.submitter), session.market.port.nonce(terms.submitter))
    with session.sender() as sender, pytest.raises(RefusedError) as refused:
        sender.send(session.market.calls.post(terms), key="post/once-more")
    assert refused.value.exit_code == 5 and "jobs:" in refused.value.message
    assert (session.market.port.balance(terms.submitter), session.market.port.nonce(terms.submitter)) == before
    assert place.hearth("job", "cancel", job).code == 0
    with session.sender() as sender, pytest.raises(RefusedError):
        sender.send(session.market.calls.post(terms), key="post/after-its-end")


def test_submit__source_that_grows_meanwhile__refused(place: Town, names: dict[str, str]) -> None:
    file = Path(names["job"])
    client, upload = place.client, Posting._upload
    module = file.with_name("good.wasm")
    kept = module.read_bytes()

    def late(posting: Posting, plan: Any) -> None:
        module.write_bytes(kept + b"\0")
        upload(posting, plan)

    nonce = client.session.market.port.nonce(client.session.key().address)
    try:
        with mock.patch.object(Posting, "_upload", late), pytest.raises(SpecError, match="changed while it was read"):
            client.jobs.submit(file)
    finally:
        module.write_bytes(kept)
    assert client.session.market.port.nonce(client.session.key().address) == nonce


@pytest.mark.parametrize(
    "command",
    [
        ("submit", "{job}"),
        ("submit", "{job}", "--wait"),
        ("submit", "{job}", "--print-tx"),
        ("wallet", "withdraw", "--account", "provider"),
        ("wallet", "send", "0x" + "fe" * 20, "1"),
        ("devnet", "fund"),
        ("worker", "register", "--config", "{idle_worker}", "--stake", "20"),
        ("worker", "stake", "1", "--config", "{running_worker}"),
        ("worker", "pause", "--config", "{running_worker}"),
        ("init", "{gone}"),
        ("keeper", "run", "--cycles", "1"),
    ],
    ids=lambda command: "-".join(part for part in command if part[0] not in "{-"),
)
def test_dry_run__what_would_change_something__changes_nothing_and_asks_no_password(
    place: Town, names: dict[str, str], command: tuple[str, ...]
) -> None:
    if "withdraw" in command and not int(place.client.wallet.balance("provider")["credit"]):
        assert place.hearth("submit", names["job"], "--wait", "--again", "--timeout", "3m").code == 0
    hidden = [path.rename(path.with_suffix(".hidden")) for path in (place.home / "keys").glob("*.password")]
    try:
        before = _state(place)
        told = place.hearth(*(part.format(**names) for part in command), "--dry-run", "--json")
        assert told.code == 0, told.out + told.err
        assert _state(place) == before
    finally:
        for path in hidden:
            path.rename(path.with_suffix(".password"))
