"""The gateway client against our own server and against servers that lie, stall, drip, swell and redirect."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from hearth.base import peer
from hearth.base.errors import BlockCorrupt, BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.stores import Chain, FolderStore, GatewayStore, MemoryStore, open_store
from hearth.storage.stores import gateway_server as server_module
from hearth.storage.stores.gateway import Floor
from hearth.storage.stores.gateway_server import GatewayServer
from tests.kit.http import Answer, answering, certified, send

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
def hostile(answer: Answer) -> Iterator[str]:
    """Run an HTTP server that answers every GET by `answer`; yield its base URL."""
    with answering(answer) as port:
        yield f"http://127.0.0.1:{port}"


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


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "/other",
        "{inside}/admin?delete=1",
        "https://example.com/",
        "file:///etc/passwd",
        "http://[",
        "http://:80/x",
        "\xff",
        "",
    ],
)
def test_gateway__redirect__named_and_never_followed(location: str, status: int) -> None:
    asked: list[str] = []

    def inner(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        send(handler, 200, BLOCK)

    with hostile(inner) as inside:
        told = location.format(inside=inside)
        with hostile(lambda handler: send(handler, status, b"", Location=told)) as outside:
            with pytest.raises(StoreDown, match="redirects to") as caught:
                GatewayStore(outside).get_block(CID)
    assert caught.value.retryable
    assert repr(told) in caught.value.message
    assert asked == []


@pytest.mark.parametrize("head", [b"HTTP/1.1 500 \x1b]0;x\x07 \x85", b"hello \x1b[31m\x85", b"HTTP/\x1b[2J 200 OK"])
def test_gateway__its_own_words__are_told_in_quotes_on_one_line(head: bytes) -> None:
    with hostile(lambda handler: handler.wfile.write(head + b"\r\nContent-Length: 0\r\n\r\n") and None) as url:
        with pytest.raises(StoreDown) as caught:
            GatewayStore(url).get_block(CID)
    assert caught.value.message.isprintable() and "\\x1b" in caught.value.message and '"' in caught.value.message


def test_gateway__huge_or_endless_heads__store_down() -> None:
    def long_lines(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for number in range(200):
            handler.send_header(f"X-{number}", "x" * 60_000)
        handler.end_headers()

    def one_line(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**20)
        handler.close_connection = True

    def not_yet(handler: BaseHTTPRequestHandler) -> None:
        while True:
            handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.01)

    for answer in (long_lines, one_line, not_yet):
        with hostile(answer) as url, pytest.raises(StoreDown):
            GatewayStore(url).get_block(CID, timeout=1.0)


def test_gateway__packed_bomb__never_unpacked() -> None:
    bomb = zlib.compress(bytes(64 * 2**20))
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers.get("Accept-Encoding", ""))
        send(handler, 200, bomb, Content_Encoding="deflate")

    with hostile(answer) as url, pytest.raises(BlockCorrupt, match=str(len(bomb))):
        GatewayStore(url).get_block(CID)
    assert asked == ["identity"]


def test_gateway__shorter_than_it_says_it_is__the_rest_is_nobodys_block() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        send(handler, 200, BLOCK * 2, Content_Length=str(len(BLOCK)))

    with hostile(answer) as url:
        gateway = GatewayStore(url)
        for _ in range(4):
            # What was left over is read as the next answer: a typed failure, and then a new connection.
            with suppress(StoreDown):
                assert gateway.get_block(CID) == BLOCK


# ---------------------------------------------------------------- where a name leads


def leads(monkeypatch: pytest.MonkeyPatch, **names: str) -> list[str]:
    """Let names (`_` for `.`) lead to addresses; return the list of what is looked up from now on."""
    known = {name.replace("_", "."): addresses.split() for name, addresses in names.items()}
    asked: list[str] = []

    def look(host: str, port: int, *args: object, **options: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port))
            for one in known[host]
        ]

    monkeypatch.setattr(peer.socket, "getaddrinfo", look)
    return asked


@pytest.mark.parametrize("answer", ["127.0.0.1", "93.184.216.34 127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"])
def test_gateway__public_name_that_leads_inside__refused_before_a_byte(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    asked: list[str] = []
    with hostile(lambda handler: asked.append(handler.path)) as url:
        port = urlsplit(url).port
        leads(monkeypatch, gateway_example_com=answer)
        with pytest.raises(StoreDown, match=r"leads to .*no public address.*https"):
            GatewayStore(f"http://gateway.example.com:{port}").get_block(CID)
    assert asked == []


def test_gateway__local_name__looked_up_once_per_connection_and_named_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        hosts.append(handler.headers.get("Host"))
        send(handler, 200, BLOCK)

    with hostile(answer) as url:
        port = urlsplit(url).port
        asked = leads(monkeypatch, gateway_lan="127.0.0.1")
        gateway = GatewayStore(f"http://gateway.lan:{port}")
        assert [gateway.get_block(CID) for _ in range(3)] == [BLOCK] * 3
        gateway.close()
    assert asked == ["gateway.lan"]
    assert hosts == [f"gateway.lan:{port}"] * 3


def test_gateway__first_address_dead__the_next_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(lambda handler: send(handler, 200, BLOCK)) as url:
        leads(monkeypatch, gateway_lan="::1 127.0.0.1")
        assert GatewayStore(f"http://gateway.lan:{urlsplit(url).port}").get_block(CID) == BLOCK


def test_gateway__resolver_that_hangs_or_a_name_that_is_none__typed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreDown, match="no name of a host"):
        GatewayStore(f"http://{'x' * 70}.lan").get_block(CID)
    over = threading.Event()
    monkeypatch.setattr(peer.socket, "getaddrinfo", lambda *args, **options: [over.wait(30)][:0])
    began = time.monotonic()
    with pytest.raises(StoreDown, match="too slow"):
        GatewayStore("http://gateway.lan").get_block(CID, timeout=0.3)
    assert time.monotonic() - began < 10
    over.set()


def test_gateway__https__the_name_is_in_tls_and_host_and_the_certificate_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tls, authority = certified(tmp_path, "gateway.example.com")
    names: list[str | None] = []
    tls.sni_callback = lambda wire, asked, _: names.append(asked)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        names.append(handler.headers.get("Host"))
        send(handler, 200, BLOCK)

    with answering(answer, tls) as port:
        leads(monkeypatch, gateway_example_com="127.0.0.1", other_example_com="127.0.0.1")
        with pytest.raises(StoreDown, match=r"(?i)certificate"):
            GatewayStore(f"https://gateway.example.com:{port}").get_block(CID)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        names.clear()
        # By its certificate it is the host that was meant, and so it may stand inside.
        assert GatewayStore(f"https://gateway.example.com:{port}").get_block(CID) == BLOCK
        assert names == ["gateway.example.com", f"gateway.example.com:{port}"]
        with pytest.raises(StoreDown, match=r"(?i)certificate"):
            GatewayStore(f"https://other.example.com:{port}").get_block(CID)


def test_gateway__tls_handshake_that_drips__aborted_by_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip_hello() -> None:
            wire, _ = server.accept()
            with suppress(OSError):
                # The head of a record of 16 KiB, and then its bytes one by one.
                wire.sendall(b"\x16\x03\x03\x40\x00")
                for _ in range(600):
                    wire.sendall(b"\x02")
                    time.sleep(0.05)

        threading.Thread(target=drip_hello, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(StoreDown, match="too slow"):
            GatewayStore(f"https://127.0.0.1:{server.getsockname()[1]}").get_block(CID, timeout=0.5)
        assert time.monotonic() - began < 10


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
        assert "immutable" in headers["cache-control"] and headers["access-control-allow-origin"] == "*"
        assert ask(server, "GET", f"/ipfs/{CID}", **raw)[0] == 200
        status, headers, body = ask(server, "HEAD", f"/ipfs/{CID}?format=raw")
        assert (status, headers["content-length"], body) == (200, str(len(BLOCK)), b"")
        assert ask(server, "GET", "/ipfs/bafkqaaa?format=raw")[::2] == (200, b"")
        assert ask(server, "GET", f"/ipfs/{CID}")[0] == 406
        assert ask(server, "GET", f"/ipfs/{CID}?format=car")[0] == 406
        status, headers, _ = ask(server, "GET", "/ipfs/nonsense?format=raw")
        assert (status, headers["access-control-allow-origin"]) == (400, "*")
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


def idle(server: GatewayServer, count: int, clients: int) -> list[socket.socket]:
    """Open connections of several addresses that ask nothing, and wait until the server has taken them all."""
    address = server.server_address[:2]
    made = [
        socket.create_connection(address, 10, source_address=(f"127.0.1.{1 + number % clients}", 0))  # type: ignore[arg-type]
        for number in range(count)
    ]
    end = time.monotonic() + 10
    while len(server.connections) < count and time.monotonic() < end:
        time.sleep(0.01)
    assert len(server.connections) == count
    return made


def is_open(wire: socket.socket) -> bool:
    """Say whether the other side has not ended a connection."""
    wire.settimeout(0.3)
    try:
        return wire.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_gateway_server__64_idle_clients__do_not_stop_a_65th() -> None:
    store = MemoryStore()
    store.put_block(BLOCK)
    with GatewayServer(store) as server:
        wires = idle(server, server_module.MAX_CONNECTIONS, clients=8)
        began = time.monotonic()
        for _ in range(20):
            assert ask(server, "GET", f"/ipfs/{CID}?format=raw")[::2] == (200, BLOCK)
        assert time.monotonic() - began < server_module.READ_SECONDS - 1
        # The one that waited longest made room, the youngest are still there.
        assert not is_open(wires[0])
        assert is_open(wires[-1])
        for wire in wires:
            wire.close()


def test_gateway_server__many_idle_of_one_address__cost_the_others_nothing() -> None:
    store = MemoryStore()
    store.put_block(BLOCK)
    with GatewayServer(store) as server:
        others = idle(server, 4, clients=4)
        crowd = [
            socket.create_connection(server.server_address[:2], 10, source_address=("127.0.2.1", 0))  # type: ignore[arg-type]
            for _ in range(3 * server_module.MAX_PER_CLIENT)
        ]
        assert ask(server, "GET", f"/ipfs/{CID}?format=raw")[0] == 200
        assert sum(is_open(wire) for wire in crowd[-1:]) == 1
        assert len([one for one in server.connections.values() if one.client == "127.0.2.1"]) == 16
        assert all(is_open(wire) for wire in others)
        for wire in crowd + others:
            wire.close()


def test_gateway_server__all_are_being_served__the_next_hears_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_CONNECTIONS", 3)
    go_on = threading.Event()

    class Slow(MemoryStore):
        def get_block(self, cid: Cid, timeout: float = 60.0) -> bytes:
            go_on.wait(30)
            return super().get_block(cid, timeout)

    store = Slow()
    store.put_block(BLOCK)
    with GatewayServer(store) as server:
        found: list[int] = []
        busy = [
            threading.Thread(target=lambda: found.append(ask(server, "GET", f"/ipfs/{CID}?format=raw")[0]))
            for _ in range(3)
        ]
        for thread in busy:
            thread.start()
        end = time.monotonic() + 10
        while sum(one.served for one in list(server.connections.values())) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        assert ask(server, "GET", f"/ipfs/{CID}?format=raw")[0] == 503
        go_on.set()
        for thread in busy:
            thread.join(10)
        assert found == [200] * 3
        assert ask(server, "GET", f"/ipfs/{CID}?format=raw")[0] == 200


def test_gateway_server__store_that_takes_its_time__is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "FLOOR", 2**30)  # no time but the store's

    class Slow(MemoryStore):
        def get_block(self, cid: Cid, timeout: float = 60.0) -> bytes:
            time.sleep(0.1)
            server.service_actions()
            return super().get_block(cid, timeout)

    store = Slow()
    store.put_block(BLOCK)
    with GatewayServer(store) as server:
        assert ask(server, "GET", f"/ipfs/{CID}?format=raw")[::2] == (200, BLOCK)


def test_gateway_server__a_head_byte_by_byte__ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "WAIT_SECONDS", 2.0)
    with GatewayServer(MemoryStore()) as server:
        (wire,) = idle(server, 1, clients=1)
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 10:
                wire.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 10
        assert server.connections == {}


def test_gateway_server__a_client_that_does_not_read__ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "READ_SECONDS", 0.3)
    monkeypatch.setattr(server_module, "FLOOR", 2**22)
    store = MemoryStore()
    big = store.put_block(bytes(2**21))
    with GatewayServer(store) as server:
        (wire,) = idle(server, 1, clients=1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # More answers than any buffer holds; none is read.
        wire.sendall(f"GET /ipfs/{big}?format=raw HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 20)
        end = time.monotonic() + 10
        while server.connections and time.monotonic() < end:
            time.sleep(0.05)
        assert server.connections == {}


def test_gateway_server__odd_requests__refused_and_never_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    store = MemoryStore()
    store.put_block(BLOCK)
    good = f"GET /ipfs/{CID}?format=raw HTTP/1.1\r\nHost: x\r\n"
    with GatewayServer(store) as server:

        def answers(raw: bytes) -> bytes:
            with socket.create_connection(server.server_address[:2], 10) as wire:  # type: ignore[arg-type]
                with suppress(OSError):
                    wire.sendall(raw)
                    wire.shutdown(socket.SHUT_WR)
                data = bytearray()
                with suppress(OSError):
                    while piece := wire.recv(65536):
                        data += piece
                return bytes(data)

        assert answers(b"GET http://[ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert answers(b"GET /ipfs/x?" + b"a=1&" * 20 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert answers(b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431")
        assert b" 200 " not in answers(b"GET /" + b"x" * 2**20)
        # A body is no second request.
        smuggled = good.encode() + b"\r\n"
        twice = answers(f"{good}Content-Length: {len(smuggled)}\r\n\r\n".encode() + smuggled)
        assert twice.count(b"HTTP/1.1 200") == 1
        assert answers(smuggled * 2).count(b"HTTP/1.1 200") == 2
    assert capfd.readouterr().err == ""


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


@pytest.mark.net
def test_main__store_and_port__is_served_there_until_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = FolderStore(tmp_path).put_block(b"served")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    read: list[bytes] = []

    def interrupted() -> None:
        read.append(GatewayStore(f"http://127.0.0.1:{port}").get_block(block))
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["gateway_server", str(tmp_path), "--port", str(port)])
    monkeypatch.setattr(server_module, "threading", Mock(wraps=threading, Event=lambda: Mock(wait=interrupted)))
    server_module.main()
    assert read == [b"served"]
    assert capsys.readouterr().out == f"gateway+http://127.0.0.1:{port}\n"
