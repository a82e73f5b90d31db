"""A static host of the page, which knows nothing of it: files alone, each under its name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from hearth.web.files import read_page
from tests.kit.http import answering, send


@contextmanager
def static_host(under: str = "/", network: Mapping[str, object] | bytes | None = None) -> Iterator[str]:
    """Serve the built page below a path, and a network file beside it where one is given; yield the page's address."""
    page = read_page()
    beside = network if isinstance(network, bytes) else json.dumps(network).encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.removeprefix(under) or "index.html"
        if network is not None and path == "network.json":
            send(handler, 200, beside, Content_Type="application/json")
        elif path in page.files:
            send(handler, 200, page.files[path].data, Content_Type=page.files[path].kind)
        else:
            send(handler, 404, b"<html>not here</html>", Content_Type="text/html")

    with answering(answer) as port:
        yield f"http://127.0.0.1:{port}{under}"
