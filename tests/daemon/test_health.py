"""What the probes say while a program works, waits and hangs; and an address that cannot be had."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Counter

from hearth.base.errors import ConfigError
from hearth.daemon.health import MAX_CONNECTIONS, Health, Server

pytestmark = pytest.mark.net


def get(server: Server, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def serve(health: Health, port: int = 0) -> Server:
    registry = CollectorRegistry()
    Counter("hearth_test_rounds", "Rounds", registry=registry).inc(3)
    return Server(
        ("127.0.0.1", port),
        registry,
        health,
        {"/status": lambda: {"at": 5}},
        hosts=["keeper.example"],
        component="worker",
    )


def test_server__program_that_works_then_hangs__shows_it() -> None:
    now = [100.0]
    health = Health(30.0, "no round has ended yet", clock=lambda: now[0])
    server = serve(health)
    try:
        assert get(server, "/healthz")[0] == 200
        assert get(server, "/readyz") == (503, '{"ok": false, "why": "no round has ended yet"}')
        health.unready = ""
        assert get(server, "/readyz?from=a-probe") == (200, '{"ok": true, "why": "ready"}')
        now[0] += 29
        health.turn()
        now[0] += 29
        assert get(server, "/healthz")[0] == 200
        now[0] += 1
        assert get(server, "/healthz") == (503, '{"ok": false, "why": "the loop last turned 30 s ago"}')
        assert get(server, "/readyz") == (503, '{"ok": false, "why": "the loop last turned 30 s ago"}')
    finally:
        server.close()


def test_server__other_pages__metrics_documents_and_nothing_else() -> None:
    server = serve(Health(30.0, ""))
    try:
        code, body = get(server, "/metrics")
        assert code == 200 and "hearth_test_rounds_total 3.0" in body
        assert get(server, "/status") == (200, '{"at": 5}')
        code, body = get(server, "/key")
        assert (code, json.loads(body)) == (404, {"error": "there is /metrics, /healthz, /readyz, /status"})
    finally:
        server.close()


def test_server__closed__frees_its_port() -> None:
    server = serve(Health(30.0, ""))
    server.close()
    serve(Health(30.0, ""), server.port).close()


def test_server__address_in_use__is_a_refusal_that_names_address_and_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            serve(Health(30.0, ""), port)
    error = caught.value
    assert (error.exit_code, error.component) == (3, "worker")
    assert error.message == f"metrics.listen: 127.0.0.1:{port} cannot be had: Address already in use"
    assert "port 0" in error.hint


def silent(server: Server) -> socket.socket:
    """Return a connection that asks nothing."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_server__hundreds_of_idle_clients__keep_no_probe_out_and_cost_few_threads() -> None:
    before = threading.active_count()
    server = serve(Health(30.0, ""))
    crowd = [silent(server) for _ in range(3 * MAX_CONNECTIONS)]
    try:
        assert get(server, "/readyz")[0] == 200
        end = time.monotonic() + 10
        while threading.active_count() - before > MAX_CONNECTIONS + 2:
            assert time.monotonic() < end, "who was sent away keeps a thread"
            time.sleep(0.01)
        assert crowd[0].recv(1) == b"", "who waited longest has made room"
    finally:
        for wire in crowd:
            wire.close()
        server.close()


def test_server__clients_that_drip__are_ended_in_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hearth.daemon.health.MAX_SECONDS", 0.5)
    server = serve(Health(30.0, ""))
    wire = silent(server)
    began = time.monotonic()
    try:
        wire.sendall(b"GET /metrics HTTP/1.0\r\n")
        with pytest.raises(OSError):
            while time.monotonic() - began < 60:
                wire.sendall(b"a: b\r\n")
                time.sleep(0.05)
    finally:
        wire.close()
        server.close()


def test_server__all_are_being_answered__the_next_one_is_closed_and_nobody_is_cut_off() -> None:
    gate = threading.Event()
    pages = {"/slow": lambda: gate.wait(10) and {}}
    server = Server(("127.0.0.1", 0), CollectorRegistry(), Health(30.0, ""), pages, component="worker")
    asking = [silent(server) for _ in range(MAX_CONNECTIONS)]
    try:
        for wire in asking:
            wire.sendall(b"GET /slow HTTP/1.0\r\nHost: localhost\r\n\r\n")
        end = time.monotonic() + 10
        while sum(one.served for one in server._server.connections.values()) < MAX_CONNECTIONS:
            assert time.monotonic() < end
            time.sleep(0.01)
        late = silent(server)
        assert late.recv(1) == b""
        gate.set()
        assert all(wire.recv(12) == b"HTTP/1.0 200" for wire in asking)
        late.close()
    finally:
        gate.set()
        for wire in asking:
            wire.close()
        server.close()


# ---- whom it answers ----


def status_of(server: Server, headers: list[tuple[str, str]], path: str = "/metrics") -> int:
    asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    asked.putrequest("GET", path, skip_host=True)
    for name, value in headers:
        asked.putheader(name, value)
    asked.endheaders()
    try:
        return asked.getresponse().status
    finally:
        asked.close()


@pytest.mark.parametrize("path", ["/metrics", "/status", "/healthz", "/none"])
def test_server__a_host_of_anothers__is_told_nothing(path: str) -> None:
    """Profit: a site whose name is pointed at this machine reads a keeper's profits in its reader's browser."""
    server = serve(Health(30.0, ""))
    try:
        own = [
            *("127.0.0.1", "192.168.3.7", "[::1]", "[fe80::1]", "localhost", "LOCALHOST", socket.gethostname()),
            *("keeper.example", "Keeper.Example"),
        ]
        good = 404 if path == "/none" else 200
        assert {status_of(server, [("Host", f"{one}:{server.port}")], path) for one in own} == {good}
        assert {status_of(server, [("Host", one)], path) for one in own} == {good}
        others = [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "",
            "a b",
            "[evil]",
            "::1",
            "1.2.3.4@evil",
        ]
        assert {status_of(server, [("Host", one)], path) for one in others} == {421}
        assert status_of(server, [], path) == 421
        assert status_of(server, [("Host", "127.0.0.1"), ("Host", "evil.example")], path) == 421
    finally:
        server.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_server__a_page_of_anothers__is_told_nothing(headers: dict[str, str]) -> None:
    server = serve(Health(30.0, ""))
    host = f"127.0.0.1:{server.port}"
    try:
        sent = [(name, value.format(port=server.port)) for name, value in headers.items()]
        assert status_of(server, [("Host", host), *sent]) == 403
        own = [("Origin", f"http://{host}"), ("Sec-Fetch-Site", "same-origin")]
        assert status_of(server, [("Host", host), *own]) == 200
        assert status_of(server, [("Host", host), ("Sec-Fetch-Site", "none")]) == 200
    finally:
        server.close()
