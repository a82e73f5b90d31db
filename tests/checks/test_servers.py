"""Every HTTP server of ours, and what holds for whoever asks it: a new one has to say."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SERVERS: Final = {
    ("hearth/web/server.py", "WebServer"): "its one Host and Origin, and a token: tests/web/test_server.py",
    ("hearth/web/server.py", "_Other"): "the same, by IPv6",
    ("hearth/daemon/health.py", "_Probes"): "Hosts that nobody can point here, no page: tests/daemon/test_health.py",
    ("hearth/storage/stores/gateway_server.py", "GatewayServer"): "anybody, on purpose: what it has is public, is named"
    " by its hash, and is read alone; what it costs is bounded: tests/storage/test_stores_gateway.py",
}
"""By file and class, whom it answers and where that is tried."""
BASES: Final = {
    *("BaseServer", "TCPServer", "UDPServer", "HTTPServer", "ThreadingHTTPServer", "BoundedServer"),
    *(name for _, name in SERVERS),
}
LISTENS: Final = {"listen", "create_server", "start_server", "start_unix_server", "start_http_server", "make_server"}


def test_servers__each_class_and_each_socket_that_listens__says_whom_it_answers() -> None:
    found, listening = set(), set()
    for file in (file for room in ("hearth", "worker", "keeper", "scripts") for file in (ROOT / room).rglob("*.py")):
        name = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and {ast.unparse(base).rpartition(".")[2] for base in node.bases} & BASES:
                found.add((name, node.name))
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in LISTENS:
                listening.add(ast.unparse(node.func))
    base = ("hearth/base/bounded_server.py", "BoundedServer")
    assert found - {base} == set(SERVERS)
    # None listens but by those classes; a reloader listens for a signal.
    assert listening == {"reloader.listen"}
