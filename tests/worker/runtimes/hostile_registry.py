"""An image registry on a real socket that a stranger could run: it stalls, drips, bombs, and answers with secrets."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MIB = 1 << 20
SECRET = "the-text-of-another-service"


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer_of(tar: bytes) -> tuple[bytes, str]:
    """Return a gzipped layer of these bytes, and the digest of the layer unpacked."""
    return gzip.compress(tar, mtime=0), digest_of(tar)


def bomb(size: int) -> tuple[bytes, str]:
    """Return a gzipped layer with one file of `size` zeros (whole MiB), and the digest of the layer unpacked."""
    entry = tarfile.TarInfo("zeros")
    entry.size = size
    header = entry.tobuf()
    zeros = bytes(MIB)
    whole = hashlib.sha256(header)
    for _ in range(size // MIB):
        whole.update(zeros)
    whole.update(bytes(1024))
    # A gzip file may have many members: the zeros are packed once.
    packed = gzip.compress(header, mtime=0) + gzip.compress(zeros, mtime=0) * (size // MIB)
    return packed + gzip.compress(bytes(1024), mtime=0), "sha256:" + whole.hexdigest()


@dataclass
class HostileRegistry:
    """What it serves and what it saw.

    `says` answers everything with an error of these words, `asks_login` with one that wants a login, `stalls` never
    answers for a manifest, `claims` is the size of a layer that drips. `changes` are made in the image's configuration
    (None: the key is left out), and the types are those that its manifest names.
    """

    layer: bytes = b""
    unpacked: str = "sha256:" + "00" * 32
    claims: int = 0
    stalls: bool = False
    says: str = ""
    changes: dict[str, Any] = field(default_factory=dict)
    config_type: str = "application/vnd.docker.container.image.v1+json"
    layer_type: str = "application/vnd.docker.image.rootfs.diff.tar.gzip"
    asks_login: bool = False
    paths: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    dripping: threading.Event = field(default_factory=threading.Event)
    cut_off: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    host: str = ""

    def documents(self) -> dict[str, bytes]:
        """Return what is served, by digest."""
        facts = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": ["true"]},
            "rootfs": {"type": "layers", "diff_ids": [self.unpacked]},
            **self.changes,
        }
        config = json.dumps({key: value for key, value in facts.items() if value is not None}).encode()
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
                "config": {
                    "mediaType": self.config_type,
                    "size": len(config),
                    "digest": digest_of(config),
                },
                "layers": [
                    {
                        "mediaType": self.layer_type,
                        "size": self.claims or len(self.layer),
                        "digest": digest_of(self.layer),
                    }
                ],
            }
        ).encode()
        return {digest_of(each): each for each in (config, manifest, self.layer)}

    def image(self) -> str:
        """Return the reference of the one image."""
        manifest = next(text for text in self.documents().values() if b"schemaVersion" in text)
        return f"{self.host}/stranger/x@{digest_of(manifest)}"

    def drip(self, handler: BaseHTTPRequestHandler) -> None:
        """Send a layer a few bytes at a time until the engine hangs up; of a large one the first MiB at once.

        An engine tells how large a layer is when a hundredth of it or half a MiB has come.
        """
        self.dripping.set()
        try:
            handler.wfile.write(bytes(MIB if self.claims > 8 * MIB else 0))
            while not self.over.is_set():
                handler.wfile.write(bytes(64))
                handler.wfile.flush()
                time.sleep(0.05)
        except OSError:
            self.cut_off.set()


@contextmanager
def serving(registry: HostileRegistry) -> Iterator[HostileRegistry]:
    """Serve on a free loopback port while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def _answer(self, status: int, body: bytes, kind: str, length: int | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if registry.asks_login:
                self.send_header("WWW-Authenticate", 'Basic realm="a stranger"')
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_GET(self) -> None:
            registry.paths.append(self.path)
            registry.logins += self.headers.get_all("Authorization", [])
            asked = self.path.rpartition("/")[2]
            documents = registry.documents()
            if registry.says or registry.asks_login:
                error = {"errors": [{"code": "UNAUTHORIZED", "message": registry.says, "detail": registry.says}]}
                self._answer(401, json.dumps(error).encode(), "application/json")
            elif asked not in documents:
                self._answer(200 if self.path == "/v2/" else 404, b"{}", "application/json")
            elif "/manifests/" in self.path:
                if registry.stalls:
                    registry.dripping.set()
                    registry.over.wait(90)
                kind = "application/vnd.docker.distribution.manifest.v2+json"
                self._answer(200, documents[asked], kind)
            elif registry.claims and documents[asked] == registry.layer:
                self._answer(200, b"", "application/octet-stream", registry.claims)
                if self.command == "GET":
                    registry.drip(self)
            else:
                self._answer(200, documents[asked], "application/octet-stream")

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.host = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield registry
    finally:
        registry.over.set()
        server.shutdown()
        server.server_close()
