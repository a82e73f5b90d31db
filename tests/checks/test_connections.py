"""Every place of the product that opens a connection, reads a socket or listens at one, with the reason why it may.

What goes to a stranger goes through `hearth/base/http.py`, over `hearth/base/peer.py`: one deadline, one length, no
redirect, addresses that were looked at. Every other place talks to what its user's own machine runs, or answers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("hearth", "worker", "keeper", "scripts")
PLACES = {
    "hearth/base/http.py": (
        "the one place: bounded HTTP with a host that may be hostile",
        {
            *("HTTPConnection", "HTTPSConnection", "HTTPException", "create_default_context", "poll", "SSLSocket"),
            *("peer.connect", "connection.getresponse", "socket", "super().recv_into"),
        },
    ),
    "hearth/base/peer.py": (
        "the sockets under it, to addresses that were looked at",
        {"socket", "getaddrinfo", "peer.connect"},
    ),
    "hearth/base/bounded_server.py": (
        "answers, and asks nobody",
        {"ThreadingHTTPServer", "BaseHTTPRequestHandler", "LineTooLong"},
    ),
    "hearth/daemon/health.py": ("answers, and asks nobody", {"BaseHTTPRequestHandler", "gethostname"}),
    "hearth/local/devnet.py": (
        "looks whether a port of this machine is free; its chain is asked as any RPC",
        {"socket", "probe.bind", "probe.connect_ex"},
    ),
    "hearth/storage/stores/kubo.py": (
        "the user's own Kubo, whose answers this file reads itself, bounded, before the client library sees them",
        {"Client", "Response"},
    ),
    "hearth/chain/web3_provider.py": ("web3 asks our chain port; it opens nothing", {"BaseProvider"}),
    "hearth/client/__init__.py": ("web3 over that provider", {"Web3"}),
    "hearth/client/posting/engine.py": ("the container engine of this machine", {"from_env", "get_context"}),
    "worker/runtimes/docker.py": (
        "the container engine of this machine",
        {"APIClient", "decode_json_header", "kwargs_from_env"},
    ),
    "worker/runtimes/docker_images.py": ("the container engine of this machine", {"CancellableStream"}),
    "worker/runtimes/wasm.py": ("waits for the pipe of a child", {"DefaultSelector"}),
    "scripts/_shared.py": (
        "ape's own command line and keys; what is sent goes through our chain port",
        {"ConnectedProviderCommand", "load", "create_transaction"},
    ),
}
"""File -> why it may, and what it calls or is."""

NETWORK = {
    *(
        "socket",
        "ssl",
        "select",
        "selectors",
        "http",
        "urllib",
        "socketserver",
        "ftplib",
        "smtplib",
        "poplib",
        "imaplib",
    ),
    *("telnetlib", "nntplib", "xmlrpc", "wsgiref", "asyncio", "requests", "urllib3", "httpx", "aiohttp", "websockets"),
    *("websocket", "grpc", "paramiko", "pycurl", "docker", "ipfshttpclient", "web3", "ape"),
}
"""Modules that can open a connection. Ours are found by what they call."""
HARMLESS = {"urllib.parse", "docker.errors", "requests.exceptions", "ape.exceptions", "ipfshttpclient.exceptions"}
"""Text and errors."""
METHODS = {
    *("connect", "connect_ex", "bind", "recv", "recv_into", "recvfrom", "recvmsg", "sendall"),
    *("sendto", "makefile", "create_connection", "getresponse", "urlopen", "getaddrinfo"),
}
"""What a socket or a connection does, whatever it is called."""
FILES = {"sqlite3"}
"""Modules of no network that have such methods."""


def _names(tree: ast.AST) -> dict[str, str]:
    """Return the names of a file that are imported, each with the module's whole name."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(one.asname or one.name).split(".")[0]: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


def _used(tree: ast.AST) -> Iterator[str]:
    """Yield what a file calls, or is, that can open a connection, read one or listen."""
    names = _names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            parts = [node.func]
        elif isinstance(node, ast.ClassDef):
            parts = list(node.bases)
        else:
            continue
        for part in parts:
            words = ast.unparse(part).split(".")
            # What is done with an answer, as by gethostname().lower(), is the answer's.
            module = "" if "(" in "".join(words[:-1]) else names.get(words[0], "")
            whole = ".".join((module, *words[1:]))
            if module.split(".")[0] in NETWORK and not any(whole.startswith(one) for one in HARMLESS):
                yield words[-1] if len(words) > 1 else module.split(".")[-1]
            elif isinstance(part, ast.Attribute) and words[-1] in METHODS and module.split(".")[0] not in FILES:
                yield ".".join(words[-2:])


def test_connections__every_place__stands_in_the_table() -> None:
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            used = set(_used(ast.parse(path.read_text())))
            if used:
                found[path.relative_to(ROOT).as_posix()] = used
    assert found == {place: used for place, (_, used) in PLACES.items()}


def test_used__each_way_to_open_a_connection__is_seen() -> None:
    for text in (
        "from urllib.request import urlopen as get\nget('x')",
        "import urllib.request\nurllib.request.urlopen('x')",
        "def f():\n    import requests\n    requests.get('x')",
        "import http.client as h\nh.HTTPConnection('x')",
        "from http.client import HTTPSConnection\nHTTPSConnection('x')",
        "import socket as s\ns.create_connection(('x', 1))",
        "def f(wire):\n    return wire.recv(1)",
        "from web3 import HTTPProvider\nHTTPProvider('x')",
        "import asyncio\nasyncio.open_connection('x', 1)",
        "from http.server import ThreadingHTTPServer\nclass Own(ThreadingHTTPServer): pass",
    ):
        assert list(_used(ast.parse(text))), text
    assert not list(
        _used(ast.parse("import sqlite3\nfrom urllib.parse import quote\nquote('x')\nsqlite3.connect('x')"))
    )
