"""The same life with a real Kubo in the middle: nothing but CIDs passes between submitter and worker."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hearth.stores import open_store
from tests.e2e.town import EXAMPLES, town
from tests.require import require

pytestmark = [pytest.mark.e2e, pytest.mark.kubo, pytest.mark.timeout(600)]


def test_submit__data_through_kubo__result_fetched_and_verified(tmp_path: Path) -> None:
    url = os.environ.get("HEARTH_KUBO_API", "")
    require("kubo", bool(url), "HEARTH_KUBO_API is not set")
    parts = urlsplit(url)
    store = open_store(f"kubo://{parts.hostname}:{parts.port}")
    require("kubo", store.status().reachable, f"no Kubo answers at {url}")
    environ = {"HEARTH_STORE": f"/ip4/{parts.hostname}/tcp/{parts.port}"}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with town(tmp_path / "home", port) as place:
        config = place.worker_file()
        config.write_text(config.read_text().replace(f"folder://{place.home / 'store'}", store.url))
        assert store.url in config.read_text()
        node = place.hearth("worker", "register", "--config", str(config), "--stake", "5", "--json").json["node"]
        place.start("worker", "-m", "worker", "--config", str(config))
        place.wait_beat(node)
        job = str(EXAMPLES / "digits" / "job.yaml")
        told = place.hearth("submit", job, "--wait", "--json", "--timeout", "4m", environ=environ)
        assert told.code == 0, told.out + told.err
        got = place.hearth("job", "get", told.json["job"], "-o", str(tmp_path / "out"), environ=environ)
        assert got.code == 0, got.out + got.err
        assert int(json.loads((tmp_path / "out" / "accuracy.json").read_text())["correct"]) > 300
        assert not any(path.is_file() for path in (place.home / "store").rglob("*"))
        verified = place.hearth("net", "verify", "--json", environ=environ)
        assert (verified.code, verified.json["results_checked"]) == (0, 1)
