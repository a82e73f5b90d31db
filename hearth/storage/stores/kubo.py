"""A Kubo node through its RPC API, with ipfshttpclient.

`ipfshttpclient.connect()` refuses daemons >= 0.8.0; its `Client` skips that check, and the calls used here (block,
pin, version) still are what Kubo answers, which the tests show against a current one. Blocks are put and read one by
one, so that every CID is computed and checked on our side. The RPC API controls the whole node: never expose it.

What answers in the node's place is a stranger: the client library sees an answer only after it was read here, by the
call's deadline, under a cap of bytes, unpacked by nobody, from nowhere else, and as the one JSON object that it is.
"""

from __future__ import annotations

import io
import ipaddress
import threading
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hearth.base.errors import BlockCorrupt, HearthError
from hearth.base.http import said
from hearth.base.text import one_line, quoted
from hearth.base.untrusted_json import read_json
from hearth.storage import cid as cids
from hearth.storage.cid import CODECS, Cid
from hearth.storage.stores.base import BLOCK_TIMEOUT_SECONDS, StoreBase, StoreStatus

if TYPE_CHECKING:
    import requests

CONNECT_SECONDS: Final = 5.0
PIN_SECONDS: Final = 600.0
MAX_ANSWER_BYTES: Final = 64 * 1024
"""Bytes of an answer that is no block."""
MAX_HANGING: Final = 8
"""Calls that may have been left behind, in the middle of an answer that does not end."""
_GRACE_SECONDS: Final = 2.0
"""What our own clock leaves Kubo's for its answer that time is up."""
_READ_BYTES: Final = 64 * 1024

Answer = TypeVar("Answer")


class KuboStore(StoreBase):
    """Keep blocks in a Kubo node; `block_seconds` bounds a block's way and `pin_seconds` a pin's."""

    def __init__(self, host: str, port: int = 5001, *, pin_seconds: float = PIN_SECONDS) -> None:
        super().__init__(f"kubo://{f'[{host}]' if ':' in host else host}:{port}", writable=True)
        self._address = f"/{_host_kind(host)}/{host}/tcp/{port}/http"
        self._pin_seconds = pin_seconds
        self._client: Any = None
        self._opening = threading.Lock()
        self._ends = threading.local()
        self._hanging: list[threading.Thread] = []

    def _connected(self) -> Any:
        with self._opening:
            if self._client is None:
                import ipfshttpclient

                # It passes urllib3 an old parameter; the user can do nothing about that.
                warnings.filterwarnings("ignore", message="The 'strict' parameter", category=FutureWarning)
                client = ipfshttpclient.Client(self._address, session=True)
                # The library's own session: it offers no way to bound an answer, and its version is pinned.
                session = client._client._session
                session.trust_env = False  # no proxy, no password of .netrc: the node's address is all there is
                session.headers["Accept-Encoding"] = "identity"
                session.hooks["response"].append(self._bounded)
                self._client = client
        return self._client

    def _bounded(self, response: requests.Response, **_: Any) -> requests.Response:
        """Read an answer within its bounds and return it whole, before the library makes anything of it."""
        import requests
        from ipfshttpclient.http_requests import urllib3  # the wire under the library's own session

        if 300 <= response.status_code < 400:
            raise self._down(f"it redirects to {response.headers.get('Location', '')[:200]!r}, which is not followed")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise self._down("its answer is packed, which was not asked for")
        block = response.ok and (response.request.path_url or "").partition("?")[0].endswith("/block/get")
        cap = cids.MAX_BLOCK_BYTES if block else MAX_ANSWER_BYTES
        body = bytearray()
        try:
            while len(body) <= cap and (piece := response.raw.read1(_READ_BYTES, decode_content=False)):
                body += piece
                if time.monotonic() > self._ends.end:
                    raise self._down("its answer comes too slowly")
        except urllib3.exceptions.HTTPError as error:
            raise self._down(f"its answer broke off: {said(error)}") from error
        if len(body) > cap and not block:
            raise self._down(f"its answer has more than {cap} bytes")
        # A longer block is refused by its size, where it is verified.
        response.close()
        if not block:
            self._check_answer(bytes(body), ok=response.ok)
        whole = requests.Response()
        whole.status_code, whole.reason, whole.url = response.status_code, response.reason, response.url
        whole.headers, whole.request = response.headers, response.request
        whole.raw = io.BytesIO(body)
        return whole

    def _check_answer(self, body: bytes, *, ok: bool) -> None:
        """Refuse an answer that is not the one JSON object that the library takes apart. Raises StoreDown.

        An error may be any text; one that is JSON is an object with a message.
        """
        try:
            answer = read_json(body)
        except ValueError as error:
            if ok:
                raise self._down(f"its answer is no JSON: {error}") from error
            raise self._down(f"it answers with an error that is not its own: {bytes(body[:200])!r}") from error
        said = answer.get("Message", "") if isinstance(answer, dict) else None
        if not isinstance(said, str) or (answer.get("Type") == "error" and not said):
            raise self._down(f"its answer is not what this call gives: {bytes(body[:200])!r}")

    def _call(self, timeout: float, call: Callable[[Any, dict[str, Any]], Answer], what: str) -> Answer:
        """Run one API call and wait `timeout` seconds for all of it.

        The client's own timeouts are per read, so the head of an answer that drips would never end; the call therefore
        runs on a thread that is left behind when the time is up, and MAX_HANGING of them are enough.
        """
        from ipfshttpclient import exceptions

        client = self._connected()
        self._hanging = [thread for thread in self._hanging if thread.is_alive()]
        if len(self._hanging) >= MAX_HANGING:
            raise self._down(f"{len(self._hanging)} earlier calls hang in the middle of its answers")
        box: list[Answer] = []
        failure: list[Exception] = []

        def run() -> None:
            self._ends.end = time.monotonic() + timeout + _GRACE_SECONDS
            limits = {"timeout": (CONNECT_SECONDS, timeout + _GRACE_SECONDS)}
            try:
                box.append(call(client, limits))
            except Exception as error:  # noqa: BLE001 - the waiting thread raises it
                failure.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(timeout + _GRACE_SECONDS)
        if box:
            return box[0]
        if not failure:
            self._hanging.append(thread)
            raise self._down(f"{what} took more than {timeout:g} s")
        if isinstance(failure[0], exceptions.ErrorResponse):
            raise _Refused(quoted(str(failure[0])))
        if isinstance(failure[0], (exceptions.Error, OSError)):  # requests' own errors are OSErrors
            raise self._down(f"{what}: {said(failure[0])}") from failure[0]
        raise failure[0]

    def _read(self, cid: Cid, timeout: float) -> bytes:
        def get(client: Any, limits: dict[str, Any]) -> bytes:
            data = bytearray()
            with client.block.get(str(cid), opts={"timeout": f"{timeout:g}s"}, stream=True, **limits) as pieces:
                for piece in pieces:
                    data += piece
                    if len(data) > cids.MAX_BLOCK_BYTES:
                        break  # verify() refuses it by its size
            return bytes(data)

        try:
            return self._call(timeout, get, f"reading {cid}")
        except _Refused as error:
            raise self._missing(cid, str(error)) from error

    def _write(self, cid: Cid, data: bytes) -> None:
        opts = {"cid-codec": CODECS[cid.codec], "mhtype": "sha2-256"}
        try:
            answer = self._call(
                BLOCK_TIMEOUT_SECONDS,
                lambda client, limits: client.block.put(io.BytesIO(data), opts=opts, **limits),
                f"storing {cid}",
            )
        except _Refused as error:
            raise self._down(f"it refuses block {cid}: {error}") from error
        key = answer.get("Key")
        if not isinstance(key, str) or cids.parse(key) != cid:
            raise BlockCorrupt(
                f"the store {self.url} answers {quoted(str(key))} for block {cid}",
                hint="hearth doctor",
                store=self.url,
            )

    def _remove(self, cid: Cid) -> None:
        try:
            self._call(
                BLOCK_TIMEOUT_SECONDS,
                # The library has no method for this call.
                lambda client, limits: client.block._client.request(
                    "/block/rm", (str(cid),), decoder="json", opts={"force": "true"}, **limits
                ),
                f"removing {cid}",
            )
        except _Refused as error:
            raise self._down(f"it refuses to remove block {cid}: {error}") from error

    def has(self, cid: Cid) -> bool:
        """Return whether the block is in the node's own repository."""
        try:
            self._call(
                BLOCK_TIMEOUT_SECONDS,
                lambda client, limits: client.block.stat(str(cid), opts={"offline": "true"}, **limits),
                f"looking for {cid}",
            )
        except _Refused:
            return False
        return True

    def pin(self, cid: Cid) -> None:
        """Pin the DAG recursively; the node fetches from its peers what it lacks."""
        opts = {"timeout": f"{self._pin_seconds:g}s"}
        try:
            self._call(
                self._pin_seconds,
                lambda client, limits: client.pin.add(str(cid), opts=dict(opts), **limits),
                f"pinning {cid}",
            )
        except _Refused as error:
            raise self._missing(cid, str(error)) from error

    def unpin(self, cid: Cid) -> None:
        """Remove the recursive pin, if there is one."""
        try:
            self._call(
                BLOCK_TIMEOUT_SECONDS,
                lambda client, limits: client.pin.rm(str(cid), **limits),
                f"unpinning {cid}",
            )
        except _Refused as error:
            if "not pinned" not in str(error):
                raise self._down(f"it refuses to unpin {cid}: {error}") from error

    def status(self) -> StoreStatus:
        """Return the node's version."""
        try:
            answer = self._call(CONNECT_SECONDS, lambda client, limits: client.version(**limits), "asking its version")
        except (HearthError, _Refused) as error:
            return StoreStatus(self.url, False, False, str(error))
        return StoreStatus(self.url, True, True, f"Kubo {one_line(str(answer.get('Version', '?'))[:40])}")

    def close(self) -> None:
        """Close the connections to the node."""
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = None


class _Refused(Exception):
    """Carry the message of an error that the node itself answered."""


def _host_kind(host: str) -> str:
    try:
        return f"ip{ipaddress.ip_address(host).version}"
    except ValueError:
        return "dns"
