"""What reaches a worker's machine: modules, images, the words of engines and sandboxes, requests of clients."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import wasmtime

from hearth.base.bounded_server import Limits
from hearth.base.errors import SpecError, StorageError
from hearth.jobfile import image_config, wasm_module
from hearth.jobfile.wasm_module import Module
from hearth.protocol.gpu_tiers import AMD, NVIDIA, tier_of
from hearth.storage import cid as cids
from hearth.storage.stores import MemoryStore
from hearth.storage.stores.gateway import GatewayStore
from hearth.storage.stores.gateway_server import _Handler
from hearth.storage.stores.kubo import KuboStore
from tests.fuzz.chain_targets import Wire
from tests.fuzz.target import Finding, Target, same
from worker import registries
from worker.runtimes import docker_images, docker_request, oci, wasm
from worker.runtimes.base import RunRequest, RunResult, RunStatus, SandboxLimits

ROOT: Final = Path(__file__).parents[2]

# ---- modules ----

_ENGINE: Final = wasmtime.Engine()


def _kind(one: Any) -> str:
    """Return our word for the kind of an import or export, from the engine's class: FuncType, TableType, ..."""
    word = type(one.type).__name__.removesuffix("Type").lower()
    return "function" if word == "func" else word


def _check_module(data: bytes, found: Module) -> None:
    """Where the engine takes a module too, it sees the same imports, exports and memory."""
    try:
        wasmtime.Module.validate(_ENGINE, data)
    except wasmtime.WasmtimeError:
        return
    module = wasmtime.Module(_ENGINE, data)
    same(
        "wasm-module",
        [(one.module, one.name or "", _kind(one)) for one in module.imports],
        [(one.module, one.name, one.kind) for one in found.imports],
    )
    same(
        "wasm-module",
        {one.name: _kind(one) for one in module.exports},
        {name: one.kind for name, one in found.exports.items()},
    )


def _read_module(data: bytes) -> Module:
    """Read a module, and where it is one check it as `hearth submit` does."""
    found = wasm_module.read_module(data)
    try:
        wasm_module.check_module(data, 64 << 20)
    except SpecError:
        return found
    return found


def _modules() -> Iterator[bytes]:
    texts = (
        "(module)",
        '(module (memory (export "memory") 1) (func (export "_start")))',
        '(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))'
        ' (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))'
        ' (memory (export "memory") 1 4) (data (i32.const 8) "x")'
        ' (func $go (call $exit (i32.const 0))) (export "_start" (func $go)))',
        '(module (import "e" "m" (memory 1)) (import "e" "g" (global i64)) (import "e" "t" (table 1 funcref))'
        ' (func $s) (global (export "g") (mut f64) (f64.const 1)) (table (export "t") 2 funcref) (start $s))',
        '(module (type (func (param f32 v128) (result i64 i32))) (tag (export "e")) (func (export "f")))',
        '(module (memory (export "memory") 70000) (func (export "_start") (param i32)))',
    )
    for text in texts:
        yield bytes(wasmtime.wat2wasm(text))
    yield from (
        path.read_bytes() for path in (ROOT / "hearth/local/templates").rglob("*.wasm") if path.stat().st_size < 4096
    )


# ---- HTTP ----


_GATEWAY: Final = GatewayStore("http://127.0.0.1:1")
_BLOCK: Final = cids.of(b"block")


def _gateway(data: bytes) -> bytes:
    """Read a gateway's answer from its first byte, up to the block."""
    response = HTTPResponse(Wire(data), method="GET")  # type: ignore[arg-type]
    try:
        response.begin()
        _GATEWAY._check_status(response, _BLOCK)
        body = _GATEWAY._body(response, float("inf"))
    except (OSError, HTTPException) as error:  # what `_get` turns into a store that is down
        raise StorageError(str(error)) from error
    return _BLOCK.verify(body)


def _gateway_answers() -> Iterator[bytes]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.ipld.raw\r\n"
    yield head + b"Content-Length: 5\r\n\r\nblock"
    yield head + b"Transfer-Encoding: chunked\r\n\r\n5\r\nblock\r\n0\r\n\r\n"
    yield head + b"Connection: close\r\n\r\nblock"
    yield b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    yield b"HTTP/1.1 301 Moved\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n"


class _Client:
    """The socket of a client that has sent all that it will."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sent = bytearray()

    def makefile(self, mode: str, size: int) -> Any:
        """Return a reader of what it sent, or what takes the answer."""
        return (
            io.BytesIO(self.data)
            if mode == "rb"
            else SimpleNamespace(write=self.sent.extend, flush=lambda: None, close=lambda: None, closed=False)
        )

    def setsockopt(self, *_: int) -> None:
        """Take an option."""


class _Server:
    """What a handler asks of its server."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.put_block(b"block")

    def expect(self, wire: Any, seconds: float, *, served: bool) -> None:
        """Note a time."""

    def limits(self) -> Limits:
        """Return those of a server with one connection."""
        return Limits(1, 1, 1.0)


_SERVER: Final = _Server()


def _serve(data: bytes) -> bytes:
    client = _Client(data)
    _Handler(client, ("127.0.0.1", 1), _SERVER)  # type: ignore[arg-type]
    return bytes(client.sent)


def _check_served(data: bytes, sent: bytes) -> None:
    """No header of an answer was the client's to write, and no answer is longer than what there is to give."""
    if b"\nX-Injected" in sent:
        raise Finding("gateway-request: a client wrote a header")
    if len(sent) > 100 * (len(data) + 10):
        raise Finding(f"gateway-request: {len(sent)} bytes for a request of {len(data)}")


def _requests() -> Iterator[bytes]:
    yield b"GET /ipfs/%s?format=raw HTTP/1.1\r\nHost: x\r\n\r\n" % str(_BLOCK).encode()
    yield (
        b"HEAD /ipfs/%s HTTP/1.1\r\nAccept: application/vnd.ipld.raw\r\nConnection: close\r\n\r\n"
        % str(_BLOCK).encode()
    )
    yield b"GET /ipfs/bafkqaaa?format=car HTTP/1.0\r\n\r\n"
    yield b"POST /ipfs/x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n"
    yield b"GET /\r\n"
    yield b"GET /ipfs/Qm%0d%0aX-Injected:1?format=raw HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


# ---- Kubo ----


_KUBO: Final = KuboStore("127.0.0.1", 1)


def _kubo(data: bytes) -> bool:
    _KUBO._check_answer(data, ok=True)
    _KUBO._check_answer(data, ok=False)
    return True


def _kubo_answers() -> Iterator[bytes]:
    yield json.dumps({"Key": str(_BLOCK), "Size": 5}).encode()
    yield json.dumps({"Message": "block was not found locally", "Code": 0, "Type": "error"}).encode()
    yield json.dumps({"Pins": [str(_BLOCK)]}).encode()
    yield json.dumps({"Version": "0.40.0", "Commit": "", "Repo": "16", "System": "amd64/linux"}).encode()


# ---- sandboxes ----


_REQUEST: Final = RunRequest("fuzz", (), Path("/j"), Path("/i"), Path("/o"), SandboxLimits(60, 64 << 20))


def _child(data: bytes) -> RunResult:
    """Name the end of a sandbox process by what came through its pipe: whoever broke its engine wrote that."""
    said = wasm._Said(_REQUEST.limits, None)
    middle = len(data) // 2
    said.answer(data[:middle])
    said.answer(data[middle:])
    return wasm._name_end(said, 0, None, _REQUEST)


def _child_answers() -> Iterator[bytes]:
    start = json.dumps(wasm.STARTED).encode() + b"\n"
    yield start + json.dumps({"status": "ok", "detail": "", "exit_code": 0, "fuel_used": 7}).encode() + b"\n"
    yield start + json.dumps({"status": "trap", "detail": "unreachable", "exit_code": None, "fuel_used": 9}).encode()
    yield json.dumps({"status": "bad_input", "detail": "no module"}).encode() + b"\n"


def _check_child(data: bytes, result: RunResult) -> None:
    """A result is of the types that documents and journals are written from."""
    if not isinstance(result.detail, str) or len(result.detail) > 100_000:
        raise Finding(f"wasm-child: the detail {result.detail!r:.100}")
    for number in (result.exit_code, result.fuel_used):
        if number is not None and (type(number) is not int or not 0 <= number < 2**53):
            raise Finding(f"wasm-child: the number {number!r:.100}")
    result.detail.encode()


# ---- engines and images ----


class _Engine:
    """A Docker engine that answers a pull with what it is given."""

    base_url, api_version = "http://engine", "1.43"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def post(self, url: str, **_: Any) -> Any:
        """Return its answer."""
        return _Answer(self.data)


class _Answer(SimpleNamespace):
    ok = True

    def __init__(self, data: bytes) -> None:
        super().__init__(data=data)

    def __enter__(self) -> _Answer:
        return self

    def __exit__(self, *_: object) -> None:
        """Close nothing."""

    def iter_lines(self) -> list[bytes]:
        """Return its lines."""
        return list(self.data.splitlines())


_DISK: Final = docker_images.EngineDisk("/nowhere")
_RULES: Final = docker_images.ImageRules()
PULLED: Final = "pulled"
FIT: Final = "fit"


class _AtOnce:
    """A thread that has ended when it is started: no handing over, which took most of an input's time."""

    def __init__(self, target: Callable[[], None], **_: object) -> None:
        self.start = target


_AT_ONCE: Final = SimpleNamespace(Thread=_AtOnce, Event=threading.Event)


def _pull(data: bytes) -> RunResult | str:
    """Read an engine's report of a pull."""
    pull = docker_images.Pull(_Engine(data), "docker.io/a", "sha256:" + "0" * 64, _RULES, _DISK)
    # By hand: mock.patch takes longer than the parser.
    docker_images.threading = _AT_ONCE  # type: ignore[attr-defined]
    try:
        return pull.to_end(float("inf"), threading.Event()) or PULLED
    finally:
        docker_images.threading = threading  # type: ignore[attr-defined]


def _check_pull(data: bytes, found: RunResult | str) -> None:
    """A report that names an error is no image, and neither is one of more bytes than are allowed."""
    for line in data.splitlines():
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict) and said.get("error") and found == PULLED:
            raise Finding("engine-pull: the engine named an error, and the image counts as there")


def _pulls() -> Iterator[bytes]:
    down = {"status": "Downloading", "id": "ab", "progressDetail": {"current": 5, "total": 10}}
    yield b"\n".join(
        json.dumps(line).encode() for line in ({"status": "Pulling from a", "id": "x"}, down, {"status": "Done"})
    )
    yield json.dumps({"error": "manifest unknown", "errorDetail": {"message": "manifest unknown"}}).encode()
    yield json.dumps({**down, "progressDetail": {}}).encode()
    yield json.dumps({**down, "progressDetail": {"current": 2**50}}).encode()


def _image(data: bytes) -> RunResult | str:
    """Judge an image by its configuration: environment and volumes, a line each."""
    lines = data.decode("utf-8", "replace").split("\n")
    env = [line[1:] for line in lines if line[:1] == "E"]
    volumes = {line[1:]: {} for line in lines if line[:1] == "V"}
    return docker_images.refuse_image({"Config": {"Env": env or None, "Volumes": volumes or None}}) or FIT


def _check_image(data: bytes, found: RunResult | str) -> None:
    """No image that is fit has the loader run code of its own, or a volume outside the guest's own folders."""
    loaded = tuple(f"E{name}=" for name in image_config.LOADER_ENV)
    lines = data.decode("utf-8", "replace").split("\n")
    for line in lines if found == FIT else ():
        if line.startswith(loaded) or line in ("V", "V/", "V/proc", "V/dev", "V/out/x"):
            raise Finding(f"image-config: an image with {line!r:.100} is fit")


def _images() -> Iterator[bytes]:
    yield from (b"EPATH=/usr/bin\nV/data", b"ELD_LIBRARY_PATH=/cuda", b"V/proc\nV/a/../b")
    yield from (b"E%s=x" % name.encode() for name in image_config.LOADER_ENV)


def _reference(data: bytes) -> tuple[str, str] | None:
    """Read an image's reference, and judge its registry."""
    text = data.decode("utf-8", "replace")
    registries.refuse(text, (*registries.DEFAULT_REGISTRIES, "*.example.org", "localhost:5000", "*"))
    return docker_request.parse_image(text)


def _check_reference(data: bytes, found: tuple[str, str]) -> None:
    name, digest = found
    same("image-reference", docker_request.parse_image(f"{name}@{digest}"), found)
    if any(character.isspace() or not character.isprintable() for character in name + digest):
        raise Finding(f"image-reference: {name!r}@{digest!r}")


def _references() -> Iterator[bytes]:
    digest = "sha256:" + "ab" * 32
    for name in ("docker.io/library/python", "ghcr.io/a/b:1", "localhost:5000/x", "[::1]:5000/x", "a/b", "10.0.0.1/x"):
        yield f"{name}@{digest}".encode()


NOWHERE: Final = "manifest for {} not found: manifest unknown: manifest unknown"


def _versions(data: bytes) -> Any:
    """Read what an engine, a driver and a registry say of themselves."""
    text = data.decode("utf-8", "replace")
    for patched in (frozenset[str](), frozenset({text})):
        oci.check_runc(text, 1, patched)
    oci.check_toolkit(text, 31337)
    tier_of(NVIDIA, text)
    tier_of(AMD, text)
    docker_images.name_pull_failure("a", text)
    parsed = docker_request.parse_image(f"{text.rpartition(' ')[2]}@sha256:{'ab' * 32}")
    image = "@".join(parsed or ())
    return oci.parse_version(text), docker_images.name_pull_failure(image, NOWHERE.format(image)) if parsed else None


def _check_versions(data: bytes, found: tuple[Any, RunResult | None]) -> None:
    """An image that is nowhere is missing, whatever a stranger called it."""
    if found[1] is not None and found[1].status is not RunStatus.IMAGE_MISSING:
        raise Finding(f"version-text: {data!r:.100} as an image's name makes its absence the machine's fault")


def _version_texts() -> Iterator[bytes]:
    for text in (
        *("runc version 1.1.5+ds1", "1.4.0-rc.2", "NVIDIA Container Toolkit CLI version 1.17.8", "v1.2.8~rc3"),
        *("NVIDIA GeForce RTX 4090", "NVIDIA H200", "toomanyrequests: x509 dial tcp no space left"),
        *("maint/certificate", "toomanyrequests", "r.example:5000/x509/e"),
    ):
        yield text.encode()


TARGETS: Final = (
    Target("wasm-module", "bytes", "a WebAssembly module", _read_module, _modules, (SpecError,), _check_module),
    Target("gateway-answer", "bytes", "the HTTP answer of a gateway", _gateway, _gateway_answers, (StorageError,)),
    Target(
        "gateway-request",
        "bytes",
        "an HTTP request to a worker",
        _serve,
        _requests,
        (),
        _check_served,
        lambda sent: sent.startswith(b"HTTP/1.1 200"),
    ),
    Target("kubo-answer", "json", "an answer of Kubo's", _kubo, _kubo_answers, (StorageError,)),
    Target(
        "wasm-child",
        "bytes",
        "the answer of a sandbox process",
        _child,
        _child_answers,
        (),
        _check_child,
        lambda result: result.status is RunStatus.OK,
    ),
    Target(
        "engine-pull",
        "bytes",
        "an engine's report of a pull",
        _pull,
        _pulls,
        (),
        _check_pull,
        lambda found: found == PULLED,
    ),
    Target(
        "image-config",
        "bytes",
        "an image's environment and volumes",
        _image,
        _images,
        (),
        _check_image,
        lambda found: found == FIT,
    ),
    Target("image-reference", "bytes", "an image's name", _reference, _references, (), _check_reference),
    Target(
        "version-text",
        "bytes",
        "versions and names in an engine's words",
        _versions,
        _version_texts,
        (),
        _check_versions,
        lambda found: found[0] is not None,
    ),
)
