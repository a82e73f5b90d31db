"""The gateway client against our own server and against servers that lie, stall, drip, swell and redirect."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hearth.base.errors import BlockCorrupt, BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.stores import Chain, FolderStore, GatewayStore, MemoryStore, open_store
from hearth.storage.stores import gateway as gateway_module
from hearth.storage.stores import gateway_server as server_module
from hearth.storage.stores.gateway import Floor
from hearth.storage.stores.gateway_server import GatewayServer

pytestmark = pytest.mark.net
ROOT = Path(__file__).parents[2]
BLOCK = b"block" * 1000
CID = cids.of(BLOCK)


@contextmanager
def served(store: MemoryStore | FolderStore) -> Iterator[GatewayStore]:
    with GatewayServer(store) as server:
        opened = open_store(server.url)
        assert isinstance(opened, GatewayStore)
        yield opened
        opened.close()


@contextmanager
def hostile(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """Run an HTTP server that answers every GET by `answer`; yield its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    with Quiet(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"Content_Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


# ---------------------------------------------------------------- our client with our server


def test_gateway__tree__fetched_block_by_block(tmp_path: Path) -> None:
    store = MemoryStore()
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "big").write_bytes(os.urandom(2 * 2**20 + 3))
    (source / "empty").write_bytes(b"")
    entry = store.add_path(source)
    document = store.put_json({"a": "1"})
    with served(store) as gateway:
        gateway.fetch(entry.cid, tmp_path / "dest", timeout=60)
        assert gateway.get_json(document) == {"a": "1"}
        assert gateway.has(entry.cid)
        assert not gateway.has(CID)
        status = gateway.status()
    assert (status.reachable, status.writable) == (True, False)
    assert (tmp_path / "dest" / "sub" / "big").read_bytes() == (source / "sub" / "big").read_bytes()
    assert (tmp_path / "dest" / "empty").read_bytes() == b""


def test_gateway__version_0_and_blake3_names__asked_as_they_are() -> None:
    import blake3

    store = MemoryStore()
    cid = store.put_block(b"\x0a\x02\x08\x01", cids.DAG_PB)
    with served(store) as gateway:
        assert gateway.get_block(Cid(0, cids.DAG_PB, cids.SHA2_256, cid.digest)) == b"\x0a\x02\x08\x01"
    with hostile(lambda handler: send(handler, 200, BLOCK)) as url:
        assert GatewayStore(url).get_block(Cid(1, cids.RAW, cids.BLAKE3, blake3.blake3(BLOCK).digest())) == BLOCK


def test_gateway__many_blocks__over_one_connection() -> None:
    connections: list[object] = []

    class Counting(GatewayServer):
        def get_request(self) -> tuple[socket.socket, object]:
            connections.append(None)
            return super().get_request()

    store = MemoryStore()
    names = [store.put_block(bytes([number])) for number in range(50)]
    with Counting(store) as server:
        gateway = GatewayStore(server.url.removeprefix("gateway+"))
        for number, name in enumerate(names):
            assert gateway.get_block(name) == bytes([number])
        gateway.close()
    assert len(connections) == 1


def test_gateway__idle_connection_closed_by_the_server__asked_again() -> None:
    store = MemoryStore()
    cid = store.put_block(BLOCK)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, BLOCK)
        handler.close_connection = True  # without saying so

    with hostile(answer) as url:
        gateway = GatewayStore(url)
        for _ in range(3):
            assert gateway.get_block(cid) == BLOCK


def test_gateway__every_block_with_a_bit_flipped__rejected_all(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    (tmp_path / "source").mkdir()
    for number in range(4):
        (tmp_path / "source" / f"{number}").write_bytes(os.urandom(100 + number))
    entry = folder.add_path(tmp_path / "source")
    names = {cid.digest: cid for cid, _ in unixfs.blocks_of(entry.cid, folder)}
    spoilt = MemoryStore()
    tried = 0

    def answer(handler: BaseHTTPRequestHandler) -> None:
        name = cids.parse(urlsplit(handler.path).path.removeprefix("/ipfs/"))
        send(handler, 200, spoilt.blocks[name.digest])

    with hostile(answer) as url:
        gateway = GatewayStore(url)
        whole = {cid.digest: folder.get_block(cid) for cid in names.values()}
        for digest, block in whole.items():
            for bit in range(0, len(block) * 8, 97):
                flipped = bytearray(block)
                flipped[bit // 8] ^= 1 << bit % 8
                spoilt.blocks = {**whole, digest: bytes(flipped)}
                with pytest.raises(BlockCorrupt):
                    gateway.get_block(names[digest])
                tried += 1
            with pytest.raises(BlockCorrupt):
                gateway.fetch(entry.cid, tmp_path / "dest")
            assert not (tmp_path / "dest").exists()
        spoilt.blocks = whole
        gateway.fetch(entry.cid, tmp_path / "dest")
    assert tried > 40


def test_gateway__put_and_pin__read_only() -> None:
    gateway = GatewayStore("http://127.0.0.1:9")
    for refused in (lambda: gateway.put_block(b"x"), lambda: gateway.pin(CID), lambda: gateway.unpin(CID)):
        with pytest.raises(StorageError) as caught:
            refused()
        assert caught.value.code == "READ_ONLY"


# ---------------------------------------------------------------- hostile servers


@pytest.mark.parametrize("status", [404, 410, 504])
def test_gateway__server_lacks_the_block__block_missing(status: int) -> None:
    with hostile(lambda handler: send(handler, status)) as url, pytest.raises(BlockMissing, match=str(status)):
        GatewayStore(url).get_block(CID)


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503, 204, 206])
def test_gateway__server_refuses__store_down_and_retryable(status: int) -> None:
    with hostile(lambda handler: send(handler, status)) as url, pytest.raises(StoreDown, match=str(status)) as caught:
        GatewayStore(url).get_block(CID)
    assert caught.value.retryable


def test_gateway__nobody_listens__store_down() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gateway = GatewayStore(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(StoreDown):
            gateway.get_block(CID)
        status = gateway.status()
    assert not status.reachable
    assert "cannot be used" in status.detail


def drip(handler: BaseHTTPRequestHandler, pause: float) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BLOCK)))
    handler.end_headers()
    for at in range(len(BLOCK)):
        handler.wfile.write(BLOCK[at : at + 1])
        handler.wfile.flush()
        time.sleep(pause)


def test_gateway__drip_feed__aborted_by_the_floor() -> None:
    with hostile(lambda handler: drip(handler, 0.05)) as url:
        gateway = GatewayStore(url, floor=Floor(bytes_per_second=4096, grace_seconds=0.3))
        with pytest.raises(StoreDown, match="floor"):
            gateway.get_block(CID, timeout=600)


def test_gateway__drip_feed_above_the_floor__aborted_by_the_deadline() -> None:
    with hostile(lambda handler: drip(handler, 0.05)) as url:
        gateway = GatewayStore(url, floor=Floor(bytes_per_second=0, grace_seconds=0))
        with pytest.raises(StoreDown, match="deadline"):
            gateway.get_block(CID, timeout=0.5)


def test_gateway__silence_or_endless_headers__aborted_by_the_deadline() -> None:
    def silent(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(30)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        for number in range(10**6):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n" if number == 0 else b"X")
            time.sleep(0.02)

    for answer in (silent, endless):
        with hostile(answer) as url, pytest.raises(StoreDown):
            GatewayStore(url).get_block(CID, timeout=0.4)


def test_gateway__stalled_first_source__the_chain_goes_on() -> None:
    good = MemoryStore()
    good.put_block(BLOCK)
    with hostile(lambda handler: time.sleep(30)) as url:
        assert Chain([GatewayStore(url), good]).get_block(CID, timeout=0.3) == BLOCK


def test_gateway__answer_cut_off__no_block() -> None:
    def short(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, BLOCK[:-1], Content_Length=str(len(BLOCK)))
        handler.close_connection = True

    def short_chunked(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n" % len(BLOCK) + BLOCK[:-1])
        handler.close_connection = True

    def unmeasured(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(BLOCK[:-1])

    for answer, error in ((short, StoreDown), (short_chunked, StoreDown), (unmeasured, BlockCorrupt)):
        with hostile(answer) as url, pytest.raises(error):
            GatewayStore(url).get_block(CID)


def test_gateway__chunked_answer__read() -> None:
    def chunked(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for at in range(0, len(BLOCK), 999):
            piece = BLOCK[at : at + 999]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")

    with hostile(chunked) as url:
        gateway = GatewayStore(url)
        assert [gateway.get_block(CID) for _ in range(2)] == [BLOCK, BLOCK]


def test_gateway__swollen_answer__refused_early() -> None:
    written: list[int] = []

    def declared(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, b"", Content_Length=str(2**40))

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        for _ in range(1000):
            written.append(handler.wfile.write(bytes(2**20)))

    for answer in (declared, endless):
        with hostile(answer) as url, pytest.raises(TooLarge):
            GatewayStore(url).get_block(CID)
    assert sum(written) < 100 * 2**20


def test_gateway__redirects__followed_a_few_times() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        hop = int(handler.path.removeprefix("/hop")) if handler.path.startswith("/hop") else 0
        if hop == 3:
            send(handler, 200, BLOCK)
        else:
            send(handler, 302, b"", Location=f"/hop{hop + 1}")

    with hostile(answer) as url:
        assert GatewayStore(url).get_block(CID) == BLOCK
    with hostile(lambda handler: send(handler, 307, b"", Location=handler.path)) as url:
        with pytest.raises(StoreDown, match="more than 3"):
            GatewayStore(url).get_block(CID)


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("file:///etc/passwd", "redirects from http to file"),
        ("ftp://h/x", "redirects from http to ftp"),
        ("http://:80/x", "no host"),
        ("http://127.0.0.1:99999/", "no number"),
    ],
)
def test_gateway__redirect_to_nowhere_good__store_down(location: str, why: str) -> None:
    with hostile(lambda handler: send(handler, 302, b"", Location=location)) as url:
        with pytest.raises(StoreDown, match=why):
            GatewayStore(url).get_block(CID)


def test_gateway__public_gateway_redirects_inward__refused_before_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loopback server plays the public gateway: its own address is declared global, the target's is not."""
    asked: list[str] = []

    def inner(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, 200, BLOCK)

    with hostile(inner) as inside:
        with hostile(lambda handler: send(handler, 302, b"", Location=f"{inside}/admin?delete=1")) as outside:
            assert GatewayStore(outside).get_block(CID) == BLOCK  # a gateway at home may redirect at home
            asked.clear()
            monkeypatch.setattr(gateway_module.socket, "getaddrinfo", fake_global)
            with pytest.raises(StoreDown, match="private network"):
                GatewayStore(outside).get_block(CID)
    assert asked == []


real_getaddrinfo = socket.getaddrinfo


def fake_global(host: str, port: int | None, *args: object) -> list[tuple[object, ...]]:
    """Say that the gateway's own name has a public address, and resolve connections as usual."""
    if port is None:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    return list(real_getaddrinfo(host, port, *args))  # type: ignore[arg-type]


# ---------------------------------------------------------------- the server alone


def ask(server: GatewayServer, method: str, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=10)  # type: ignore[arg-type]
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, body


def test_gateway_server__requests__as_the_trustless_gateway_specification_says() -> None:
    store = MemoryStore()
    store.put_block(BLOCK)
    raw = {"Accept": "application/vnd.ipld.raw"}
    with GatewayServer(store) as server:
        status, headers, body = ask(server, "GET", f"/ipfs/{CID}?format=raw")
        assert (status, body) == (200, BLOCK)
        assert headers["content-type"] == "application/vnd.ipld.raw"
        assert "immutable" in headers["cache-control"]
        assert ask(server, "GET", f"/ipfs/{CID}", **raw)[0] == 200
        status, headers, body = ask(server, "HEAD", f"/ipfs/{CID}?format=raw")
        assert (status, headers["content-length"], body) == (200, str(len(BLOCK)), b"")
        assert ask(server, "GET", "/ipfs/bafkqaaa?format=raw")[::2] == (200, b"")
        assert ask(server, "GET", f"/ipfs/{CID}")[0] == 406
        assert ask(server, "GET", f"/ipfs/{CID}?format=car")[0] == 406
        assert ask(server, "GET", "/ipfs/nonsense?format=raw")[0] == 400
        assert ask(server, "GET", f"/ipfs/{cids.of(b'absent')}?format=raw")[0] == 404
        for path in ("/", f"/ipfs/{CID}/a?format=raw", f"/ipns/{CID}?format=raw", "/ipfs/../../etc/passwd?format=raw"):
            assert ask(server, "GET", path)[0] == 404
        assert ask(server, "POST", f"/ipfs/{CID}?format=raw")[0] == 501


def test_gateway_server__spoilt_block__never_served(tmp_path: Path) -> None:
    store = MemoryStore()
    store.put_block(BLOCK)
    store.blocks[CID.digest] = b"spoilt"
    with GatewayServer(store) as server:
        status, _, body = ask(server, "GET", f"/ipfs/{CID}?format=raw")
    assert (status, body) == (502, b"BLOCK_CORRUPT\n")


def test_gateway_server__idle_connections__cannot_use_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 3)
    store = MemoryStore()
    store.put_block(BLOCK)
    with GatewayServer(store) as server:
        address = server.server_address[:2]
        idle = [socket.create_connection(address, timeout=10) for _ in range(3)]  # type: ignore[arg-type]
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            for _ in range(50):  # the idle ones are accepted in their own time
                ask(server, "GET", f"/ipfs/{CID}?format=raw")
        for connection in idle:
            connection.close()
        for _ in range(50):
            try:
                assert ask(server, "GET", f"/ipfs/{CID}?format=raw")[0] == 200
                break
            except (http.client.RemoteDisconnected, ConnectionResetError):
                time.sleep(0.05)
        else:
            pytest.fail("the slots were not freed")


def test_gateway_server__ipv6_loopback__served() -> None:
    store = MemoryStore()
    store.put_block(BLOCK)
    try:
        server = GatewayServer(store, "::1")
    except OSError:
        pytest.skip("the machine has no IPv6 loopback")
    with server:
        assert open_store(server.url).get_block(CID) == BLOCK


def test_gateway_server__own_process_killed_mid_fetch__nothing_half_written(tmp_path: Path) -> None:
    folder = FolderStore(tmp_path / "store")
    entry = folder.add_bytes(os.urandom(6 * 2**20))
    process = subprocess.Popen(
        [sys.executable, "-m", "hearth.storage.stores.gateway_server", str(tmp_path / "store")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    gateway = open_store(process.stdout.readline().strip())
    (tmp_path / "out").mkdir()
    moved: list[int] = []

    def kill(path: str, size: int) -> None:
        moved.append(size)
        process.kill()
        process.wait()

    with pytest.raises(StoreDown):
        gateway.fetch(entry.cid, tmp_path / "out" / "x", progress=kill)
    assert len(moved) == 1
    assert list((tmp_path / "out").iterdir()) == []
    process.stdout.close()
