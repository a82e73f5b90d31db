"""What an engine says of a pull, over a real socket: a report of another form ends the pull by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import docker
import pytest

from worker.runtimes.base import RunResult, RunStatus
from worker.runtimes.docker_images import EngineDisk, ImageRules, Pull

pytestmark = [pytest.mark.net, pytest.mark.timeout(60)]

GOOD = b'{"status": "Downloading", "id": "a", "progressDetail": {"current": 1, "total": 2}}\n{"status": "Done"}\n'


class _Engine(BaseHTTPRequestHandler):
    report = b""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.report)))
        self.end_headers()
        self.wfile.write(self.report)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def engine() -> Iterator[Any]:
    with HTTPServer(("127.0.0.1", 0), _Engine) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with docker.APIClient(base_url=f"tcp://127.0.0.1:{server.server_address[1]}", version="1.43") as api:
            yield api
        server.shutdown()


def pulled(api: Any, report: bytes, monkeypatch: pytest.MonkeyPatch) -> RunResult | None:
    monkeypatch.setattr(_Engine, "report", report)
    pull = Pull(api, "docker.io/a", "sha256:" + "0" * 64, ImageRules(), EngineDisk("/nowhere"))
    return pull.to_end(time.monotonic() + 30, threading.Event())


@pytest.mark.parametrize(
    "line",
    [
        *(b"7", b"[]", b"null", b'"text"', b"[" * 100_000, b"{", b'{"progressDetail": 7}'),
        b'{"status": "Downloading", "id": "a", "progressDetail": {"total": "many"}}',
        b'{"status": "Downloading", "id": "a", "progressDetail": {"current": 1e400}}',
    ],
    ids=lambda line: line[:40].decode(),
)
def test_to_end__line_that_no_engine_writes__names_the_engine(
    engine: Any, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    found = pulled(engine, GOOD + line + b"\n" + GOOD, monkeypatch)
    assert found is not None and found.status is RunStatus.BROKEN
    assert found.detail.startswith("docker.io/a@sha256:") and "was not pulled" in found.detail


def test_to_end__report_of_the_form__is_a_pull(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pulled(engine, GOOD, monkeypatch) is None
