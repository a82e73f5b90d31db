"""The server of hearth web: what it serves, to whom, under which headers, and what it takes."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import ConfigError
from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore, MemoryStore
from hearth.web import files, policy
from hearth.web.files import File, Page
from hearth.web.server import Served, WebServer
from tests.kit.http import NAME
from tests.kit.require import require

pytestmark = pytest.mark.net

PAGE = Page(
    {
        "index.html": File(b"<!doctype html>", "text/html", "bafk-index"),
        "index.js": File(b"export {};", "text/javascript; charset=utf-8", "bafk-script"),
    },
    "bafy-page",
)
NETWORK = {"name": "devnet", "rpc": ["http://127.0.0.1:8545"], "gateways": ["https://gw.example/base"]}


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "store")


@pytest.fixture
def web(store: FolderStore) -> Iterator[WebServer]:
    with WebServer(Served(PAGE, "devnet", NETWORK, store, writable=True), 0, name=NAME) as running:
        yield running


class Reply:
    """One whole answer."""

    def __init__(self, raw: http.client.HTTPResponse) -> None:
        self.status = raw.status
        self.headers = raw.headers
        self.body = raw.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


def ask(
    web: WebServer,
    path: str,
    method: str = "GET",
    *,
    body: bytes | None = None,
    token: str | None = "own",
    **headers: str,
) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", web.server_address[1], timeout=20)
    given = {"Host": web.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if token is not None:
        given["X-Hearth-Token"] = web.token if token == "own" else token
    try:
        connection.request(method, path, body=body, headers=given)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def raw(web: WebServer, request: bytes) -> bytes:
    """Send bytes as they are and return all that is answered."""
    with socket.create_connection(("127.0.0.1", web.server_address[1]), timeout=20) as wire:
        wire.sendall(request)
        wire.shutdown(socket.SHUT_WR)
        found = b""
        while part := wire.recv(65_536):
            found += part
    return found


# ---- the page ----


@pytest.mark.parametrize("path", ["/", "/index.html", "/?x=1"])
def test_get__the_page__needs_no_token(web: WebServer, path: str) -> None:
    reply = ask(web, path, token=None)

    assert (reply.status, reply.body) == (200, b"<!doctype html>")
    assert reply.headers["Content-Type"] == "text/html"


def test_get__a_file_that_is_known__is_not_sent_again(web: WebServer) -> None:
    first = ask(web, "/index.js", token=None)
    again = ask(web, "/index.js", token=None, If_None_Match=first.headers["Etag"])

    assert first.headers["Cache-Control"] == "no-cache"
    assert (again.status, again.body) == (304, b"")


def test_policy__the_page_of_a_static_host__differs_in_whom_it_may_ask_alone() -> None:
    told = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"', (files.APP / files.INDEX).read_text())
    served = policy.policy_of({"rpc": [], "gateways": []})

    assert told is not None
    assert [part for part in told[1].split("; ") if not part.startswith("connect-src ")] == [
        # frame-ancestors holds in a header alone
        part
        for part in served.split("; ")
        if not part.startswith(("connect-src ", "frame-ancestors "))
    ]


def test_get__every_answer__carries_the_policy(web: WebServer) -> None:
    wanted = (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self' http://127.0.0.1:8545 https://gw.example; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types hearth-offline"
    )
    for path, token in (
        ("/", None),
        ("/index.js", None),
        ("/nothing", "own"),
        ("/local.json", "own"),
        ("/ipfs/x", "own"),
    ):
        reply = ask(web, path, token=token)
        assert reply.headers["Content-Security-Policy"] == wanted, path
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert reply.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["X-Frame-Options"] == "DENY"
        assert "Access-Control-Allow-Origin" not in reply.headers
        assert "Set-Cookie" not in reply.headers


def test_head__the_page__is_its_headers_alone(web: WebServer) -> None:
    reply = ask(web, "/", "HEAD", token=None)

    assert (reply.status, reply.body, reply.headers["Content-Length"]) == (200, b"", "15")


@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "//etc/passwd", "/index.html/", "/app.cid", "/.", "/networks/other.json"],
)
def test_get__what_is_no_file_of_the_page__is_not_found(web: WebServer, path: str) -> None:
    assert ask(web, path).status == 404


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_request__another_method__is_refused(web: WebServer, method: str) -> None:
    assert ask(web, "/", method).status == 501


# ---- whose request it is ----


@pytest.mark.parametrize(
    "host",
    ["localhost:{port}", "evil.example", "127.0.0.1:{port}", "[::1]:{port}", "{name}.localhost", "", "127.0.0.1"]
    + [
        "{name}.localhost:1",
        "{name}:{port}",
        "x.{name}.localhost:{port}",
        "{name}.localhost.:{port}",
        "b{name}.localhost:{port}",
    ],
)
@pytest.mark.parametrize("path", ["/", "/index.js", "/local.json"])
def test_request__another_host__is_misdirected_and_is_told_no_name(web: WebServer, host: str, path: str) -> None:
    reply = ask(web, path, Host=host.format(port=web.server_address[1], name=NAME))

    assert reply.status == 421
    assert b"open the address that hearth web printed" in reply.body
    assert NAME not in f"{reply.headers}{reply.body!r}"


def test_plain__is_served_at_127_0_0_1_alone(store: FolderStore) -> None:
    with WebServer(Served(PAGE, "devnet", NETWORK, store, writable=True), 0, name=None) as web:
        assert web.origin == f"http://127.0.0.1:{web.server_address[1]}"
        assert ask(web, "/local.json").status == 200
        assert ask(web, "/local.json", Host=f"{NAME}.localhost:{web.server_address[1]}").status == 421


def test_name__is_served_by_ipv6_too(web: WebServer) -> None:
    need_ipv6()
    connection = http.client.HTTPConnection("::1", web.server_address[1], timeout=20)
    connection.request("GET", "/local.json", headers={"Host": web.host, "X-Hearth-Token": web.token})

    assert Reply(connection.getresponse()).json["network"] == "devnet"
    connection.close()


def test_name__whose_port_somebody_serves_by_ipv6__is_not_served(store: FolderStore) -> None:
    need_ipv6()
    served = Served(PAGE, "devnet", NETWORK, store, writable=True)
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as others:
        port = others.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            WebServer(served, port, name=NAME)
    assert caught.value.code == "PORT_BUSY"
    # What it had taken of the port is free again.
    with WebServer(served, port, name=NAME):
        pass


def need_ipv6() -> None:
    """Skip or fail a test on a machine without IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        found = True
    except OSError:
        found = False
    require("IPv6", found, "no ::1")


def test_request__two_hosts__is_misdirected(web: WebServer) -> None:
    host = web.host.encode()
    found = raw(web, b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nHost: " + host + b"\r\n\r\n")

    assert found.startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://other.localhost:{port}"},
        {"Origin": "https://{host}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    ],
)
def test_request__of_another_page__is_forbidden(web: WebServer, headers: Mapping[str, str]) -> None:
    given = {name: value.format(host=web.host, port=web.server_address[1]) for name, value in headers.items()}
    for path, method in (("/local.json", "GET"), ("/index.js", "GET"), ("/ipfs/bafk", "PUT")):
        assert ask(web, path, method, **given).status == 403


@pytest.mark.parametrize(
    ("path", "status"), [("/", 200), ("/?x", 200), ("/local.json", 403), ("/index.js", 403), ("/ipfs/bafk", 403)]
)
def test_request__a_click_on_another_page__opens_the_page_alone(web: WebServer, path: str, status: int) -> None:
    assert ask(web, path, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == status


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "{origin}"}, {"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}]
)
def test_request__of_the_page_or_a_person__is_answered(web: WebServer, headers: Mapping[str, str]) -> None:
    given = {name: value.format(origin=web.origin) for name, value in headers.items()}

    assert ask(web, "/local.json", **given).status == 200


@pytest.mark.parametrize("token", [None, "", "wrong", "ä"])
@pytest.mark.parametrize("path", ["/local.json", "/networks/devnet.json", "/ipfs/bafk?format=raw", "/nothing"])
def test_get__what_is_the_users__needs_the_token(web: WebServer, path: str, token: str | None) -> None:
    reply = ask(web, path, token=token)

    assert (reply.status, reply.code) == (403, "BAD_TOKEN")


def test_token__each_start__draws_another(store: FolderStore) -> None:
    served = Served(PAGE, "devnet", NETWORK, store, writable=True)
    with WebServer(served, 0, name=NAME) as one, WebServer(served, 0, name=NAME) as other:
        assert one.token != other.token
        assert len(one.token) >= 32
        assert one.url == f"{one.origin}/#token={one.token}"


def test_get__local__says_what_was_started(web: WebServer) -> None:
    assert ask(web, "/local.json").json == {"served_by": "hearth web", "network": "devnet", "writable": True}
    assert ask(web, "/networks/devnet.json").json == NETWORK


# ---- blocks ----


def test_get__a_block__is_of_the_store(web: WebServer, store: FolderStore) -> None:
    cid = store.put_block(b"block")
    reply = ask(web, f"/ipfs/{cid}?format=raw")

    assert (reply.status, reply.body) == (200, b"block")
    assert reply.headers["Content-Type"] == "application/vnd.ipld.raw"
    assert ask(web, f"/ipfs/{cid}").status == 406
    assert ask(web, f"/ipfs/{cids.of(b'other')}?format=raw").status == 404
    assert ask(web, "/ipfs/none?format=raw").status == 400


def test_put__a_block__is_in_the_store(web: WebServer, store: FolderStore) -> None:
    cid = cids.of(b"block")
    reply = ask(web, f"/ipfs/{cid}", "PUT", body=b"block")

    assert (reply.status, reply.json) == (201, {"cid": str(cid), "bytes": 5, "kept": False})
    assert store.get_block(cid) == b"block"


def test_put__with_keep__pins_all_of_it(web: WebServer, store: FolderStore, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(b"leaf")
    leaf, elsewhere = cids.of(b"leaf"), MemoryStore()
    root = elsewhere.add_path(tmp_path / "tree").cid
    root_block = elsewhere.get_block(root)

    early = ask(web, f"/ipfs/{root}?keep", "PUT", body=root_block)
    assert (early.status, early.code) == (409, "BLOCK_MISSING")
    assert ask(web, f"/ipfs/{leaf}", "PUT", body=b"leaf").status == 201
    assert ask(web, f"/ipfs/{root}?keep", "PUT", body=root_block).json["kept"] is True
    store.collect()
    assert store.get_block(leaf) == b"leaf"


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/ipfs/{cid}", b"other", 400, "BLOCK_CORRUPT"),
        ("/ipfs/none", b"block", 400, "BAD_CID"),
        ("/ipfs/{v0}", b"block", 400, "BAD_CID"),
        ("/ipfs/{identity}", b"block", 400, "BAD_CID"),
        ("/ipfs/{cid}?keep=1", b"block", 404, "NOT_FOUND"),
        ("/ipfs/{cid}/x", b"block", 400, "BAD_CID"),
        ("/local.json", b"block", 404, "NOT_FOUND"),
        ("/index.html", b"block", 404, "NOT_FOUND"),
    ],
)
def test_put__what_is_no_block_of_its_name__is_refused(
    web: WebServer, store: FolderStore, path: str, body: bytes, status: int, code: str
) -> None:
    names = {
        "cid": cids.of(b"block"),
        "v0": cids.Cid(0, cids.DAG_PB, cids.SHA2_256, cids.of(b"block").digest),
        "identity": cids.Cid(1, cids.RAW, cids.IDENTITY, b"block"),
    }
    reply = ask(web, path.format(**names), "PUT", body=body)

    assert (reply.status, reply.code) == (status, code)
    assert not store.has(cids.of(b"block"))


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_put__without_the_token__is_refused_unread(web: WebServer, store: FolderStore, token: str | None) -> None:
    reply = ask(web, f"/ipfs/{cids.of(b'block')}", "PUT", body=b"block", token=token)

    assert (reply.status, reply.code) == (403, "BAD_TOKEN")
    assert not store.has(cids.of(b"block"))


def test_put__to_a_start_that_only_reads__is_refused(store: FolderStore) -> None:
    with WebServer(Served(PAGE, "devnet", NETWORK, store, writable=False), 0, name=NAME) as web:
        reply = ask(web, f"/ipfs/{cids.of(b'block')}", "PUT", body=b"block")

        assert (reply.status, reply.code) == (403, "READ_ONLY")
        assert ask(web, "/local.json").json["writable"] is False
        assert not store.has(cids.of(b"block"))


@pytest.mark.parametrize(
    ("length", "status"),
    [(b"2097153", 413), (b"9999999999999", 413), (b"-1", 411), (b"+5", 411), (b"", 411), ("٣".encode(), 411)],
)
def test_put__a_length_beyond_a_block__is_refused_before_it_is_read(web: WebServer, length: bytes, status: int) -> None:
    head = f"PUT /ipfs/{cids.of(b'x')} HTTP/1.1\r\nHost: {web.host}\r\nX-Hearth-Token: {web.token}\r\nContent-Length: "
    found = raw(web, head.encode() + length + b"\r\n\r\n")

    assert found.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Connection: close" in found or found.count(b"HTTP/1.1 ") == 1


def test_put__in_chunks__is_refused(web: WebServer) -> None:
    head = f"PUT /ipfs/{cids.of(b'x')} HTTP/1.1\r\nHost: {web.host}\r\nX-Hearth-Token: {web.token}\r\n"
    found = raw(web, head.encode() + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n")

    assert found.startswith(b"HTTP/1.1 411 ")
    assert found.count(b"HTTP/1.1 ") == 1


def test_put__a_body_that_ends_early__puts_nothing(web: WebServer, store: FolderStore) -> None:
    cid = cids.of(b"block")
    head = f"PUT /ipfs/{cid} HTTP/1.1\r\nHost: {web.host}\r\nX-Hearth-Token: {web.token}\r\nContent-Length: 5\r\n\r\n"
    found = raw(web, head.encode() + b"blo")

    assert b" 400 " in found
    assert not store.has(cid)


def test_put__the_largest_block__is_taken(web: WebServer, store: FolderStore) -> None:
    data = bytes(cids.MAX_BLOCK_BYTES)

    assert ask(web, f"/ipfs/{cids.of(data)}", "PUT", body=data).status == 201
    assert store.has(cids.of(data))


def test_get__a_body_behind_it__is_no_next_request(web: WebServer) -> None:
    found = raw(
        web,
        f"GET / HTTP/1.1\r\nHost: {web.host}\r\nContent-Length: 30\r\n\r\nGET /local.json HTTP/1.1\r\n\r\n".encode(),
    )

    assert found.count(b"HTTP/1.1 ") == 1


def test_request__a_long_head__is_431(web: WebServer) -> None:
    long = b"X-Long: " + b"x" * 20_000

    assert b" 431 " in raw(web, f"GET / HTTP/1.1\r\nHost: {web.host}\r\n".encode() + long + b"\r\n\r\n")[:40]


# ---- its parts ----


def test_server__a_port_that_is_taken__is_refused(web: WebServer) -> None:
    with pytest.raises(ConfigError) as caught:
        WebServer(web.served, web.server_address[1], name=NAME)
    assert caught.value.code == "PORT_BUSY"
    assert "--port 0" in caught.value.hint


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://rpc.example/v3/secret", "https://rpc.example"),
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://[::1]:8545/x", "http://[::1]:8545"),
        ("https://user:word@rpc.example/", "https://rpc.example"),
        ("https://RPC.Example:443/", "https://rpc.example:443"),
        ("ftp://rpc.example", ""),
        ("https://", ""),
        ("https://a;script-src *", ""),
        ("https://a 'unsafe-inline'", ""),
        ("https://a:99999", ""),
        ("https://*", ""),
        ("https://ä.example", ""),
        ("https://[::1", ""),
    ],
)
def test_origin_of__a_url__is_an_origin_or_nothing(url: str, origin: str) -> None:
    assert policy.origin_of(url) == origin


def test_network_for__urls_that_a_browser_refuses__are_left_out() -> None:
    found = policy.network_for(
        {"name": "x", "rpc": ["http://own"], "gateways": []},
        ["https://user:word@rpc.example/", "https://rpc.example/key", "https://a;b"],
        ["http://gw.example"],
    )

    assert found == {"name": "x", "rpc": ["https://rpc.example/key"], "gateways": ["http://gw.example"]}


def test_get__a_network_with_a_strange_name__is_found_by_it_alone() -> None:
    served = Served(PAGE, "../a b", {**NETWORK, "name": "../a b"}, MemoryStore(), writable=True)
    with WebServer(served, 0, name=NAME) as web:
        assert ask(web, "/networks/..%2Fa%20b.json").json["name"] == "../a b"
        assert ask(web, "/networks/../a").status == 404


# ---- the built files ----


def test_read_page__the_committed_files__are_named_by_the_committed_cid() -> None:
    page = files.read_page()

    files.require_named(page)
    assert page.files["index.html"].kind == "text/html"
    assert page.files["index.js"].kind == "text/javascript; charset=utf-8"
    listed = json.loads(page.files["files.json"].data)
    assert sorted(page.files) == sorted([*listed, "files.json"])
    assert listed == {name: hashlib.sha256(page.files[name].data).hexdigest() for name in listed}


def test_require_named__a_changed_file__is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "index.html").write_text("one")
    (tmp_path / "app.cid").write_text(files.read_page(folder).cid + "\n")
    files.require_named(files.read_page(folder), folder)
    (folder / "index.html").write_text("two")

    with pytest.raises(ConfigError) as caught:
        files.require_named(files.read_page(folder), folder)
    assert caught.value.code == "OTHER_PAGE"


def test_read_page__no_page__says_so(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError) as caught:
            files.read_page(folder)
        assert caught.value.code == "NO_PAGE"
    with pytest.raises(ConfigError) as caught:
        files.named_cid(tmp_path / "app")
    assert caught.value.code == "NO_PAGE"
