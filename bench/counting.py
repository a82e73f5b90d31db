"""A JSON-RPC provider on loopback that passes everything on to another one, and counts what it is asked."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class Counting:
    """A provider at `url`: `calls` are its calls by method, those within a batch one by one; `requests` are HTTP's."""

    def __init__(self, upstream: str) -> None:
        self.calls: Counter[str] = Counter()
        self.requests = 0
        lock, there, counting = threading.Lock(), urlsplit(upstream), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                self.upstream = http.client.HTTPConnection(there.hostname or "", there.port, timeout=30)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = json.loads(body)
                with lock:
                    counting.requests += 1
                    counting.calls.update(one["method"] for one in (asked if isinstance(asked, list) else [asked]))
                self.upstream.request("POST", "/", body, {"Content-Type": "application/json"})
                answer = self.upstream.getresponse()
                content = answer.read()
                head = f"HTTP/1.1 {answer.status} {answer.reason}\r\nContent-Length: {len(content)}\r\n\r\n"
                with suppress(OSError):  # whoever asked may have ended
                    self.wfile.write(head.encode() + content)

            def finish(self) -> None:
                self.upstream.close()
                super().finish()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
