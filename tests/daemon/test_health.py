"""What the probes say while a program works, waits and hangs; and an address that cannot be had."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Counter

from hearth.base.errors import ConfigError
from hearth.daemon.health import Health, Server

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
    return Server(("127.0.0.1", port), registry, health, {"/status": lambda: {"at": 5}}, component="worker")


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
