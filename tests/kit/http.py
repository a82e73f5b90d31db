"""HTTP servers on loopback that answer as a test says, for as long as their clients listen."""

from __future__ import annotations

import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Answer = Callable[[BaseHTTPRequestHandler], None]

MIB = 2**20
NAME = "a2b3c4d5e6f7g2h3i4j5"
"""A name of a page under localhost, as `hearth web` draws them."""


def to_loopback(url: str, **more: Any) -> urllib.request.Request:
    """Return a request for an address of `hearth web` as a browser makes it, whatever this machine's resolver knows."""
    found = urlsplit(url)
    request = urllib.request.Request(url.replace(found.netloc, f"127.0.0.1:{found.port}", 1), **more)
    request.add_header("Host", found.netloc)
    return request


@contextmanager
def answering(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer every GET, POST and OPTIONS; yield the port. Clients that hang up are no error."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            answer(self)

        do_POST = do_OPTIONS = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    with Quiet(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """Send a whole answer; of headers `_` stands for `-`."""
    handler.send_response(status)
    for name, value in {"Content_Length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def pour(handler: BaseHTTPRequestHandler, fill: bytes, written: list[int]) -> None:
    """Send a GiB in chunks; `written` takes up how many bytes have gone out."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(1024):
        written.append(handler.wfile.write(b"%x\r\n%s\r\n" % (MIB, fill * MIB)))


def certified(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """Make a certificate for a name; return a server's TLS with it, and the file by which a client trusts it."""
    certificate = folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", str(folder / "key.pem")]
        + ["-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, folder / "key.pem")
    return tls, certificate
