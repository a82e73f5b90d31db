"""A market on the scripted chain behind JSON-RPC, which a page in a browser asks: what it was asked is noted.

Jobs are posted, locked for, and never taken: enough for lists, for one job, and for the books of all of them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from eth_abi.abi import encode

from hearth.base.errors import ChainError
from hearth.chain.port import Block, Call
from hearth.market.abi import artifact, codec, type_of
from hearth.market.events import Locked, topic_of
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, State, Terms, Unit
from tests.kit import build
from tests.kit.fake_chain import Event
from tests.kit.http import answering, send
from tests.kit.scripted import ScriptedMarket, answer_checks

_CORS = {"Access_Control_Allow_Origin": "*", "Access_Control_Allow_Headers": "Content-Type"}
WIDEST = 1_000
"""Blocks that one request for logs may span, as public providers have it."""


class Ask(NamedTuple):
    """One of the requests that a body holds."""

    method: str
    params: list[Any]

    @property
    def span(self) -> tuple[int, int]:
        """Return the first and last block of a request for logs, -1 for the newest, and for one block by its hash."""
        if "blockHash" in self.params[0]:
            return -1, -1
        last = self.params[0]["toBlock"]
        return int(self.params[0]["fromBlock"], 16), -1 if last == "latest" else int(last, 16)


class WebChain(ScriptedMarket):
    """A market whose provider is at `url`; `asked` are the requests in the order in which they came."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[Ask, ...]] = []
        self.posts: list[tuple[JobId, int]] = []
        """Every job and the block of its post, the oldest first."""
        self.slow = 0.0
        """Seconds that each answer about logs takes."""
        self._stored: dict[JobId, int] = {}
        self._lock = threading.Lock()
        for name, address in self.network.contracts.items():
            made = artifact(name)
            self.chain.set_code(address, made.runtime)
        answer_checks(self.chain, self.network, self.network.chain_id)
        self._lens("overview", self._overview)
        self._lens("nodes", lambda *_: [])
        self._lens("status", lambda _, places: [(*[self._stored.get(job, 0)] * 2, 0, 0, []) for job, _ in places])
        self._lens("credits", lambda _, accounts: [0] * len(accounts))
        self._lens("locks", lambda _, controller, keys: [self._locked if int.from_bytes(key) else 0 for key in keys])

    @property
    def network_file(self) -> dict[str, Any]:
        """Return the network file that names this provider alone."""
        return {**self.network.as_dict(), "rpc": [self.url], "gateways": []}

    def post(self, count: int = 1, *, empty: int = 0) -> None:
        """Post so many jobs, each in a block of its own after `empty` blocks of nothing."""
        for _ in range(count):
            with self._lock:
                self._post(empty)

    def mine(self, count: int) -> None:
        """Mine blocks of nothing."""
        with self._lock:
            self.chain.mine(count=count)

    def reorg(self, depth: int) -> None:
        """Replace the newest blocks by one more of nothing, and lose the jobs in them."""
        with self._lock:
            self.chain.reorg(depth)
            first = self.chain.head().number - depth
            self.posts = [(job, block) for job, block in self.posts if block < first]

    def stored(self, job: JobId) -> int:
        """Return the word that storage has of a job's unit."""
        return self._stored[job]

    def logs_since(self, at: int) -> list[tuple[int, int]]:
        """Return the spans of logs that were asked for from the request `at` on, but for looks at what is new."""
        spans = [one.span for asks in self.asked[at:] for one in asks if one.method == "eth_getLogs"]
        return [span for span in spans if span[1] >= 0]

    # ---- the market ----

    def _post(self, empty: int) -> None:
        if empty:
            self.chain.mine(count=empty)
        number = len(self.posts) + 1
        terms = build.terms(salt=number)
        job = self.market.job_id(terms)
        # The lock comes before the post, as the contracts write them.
        block = self.chain.mine([self._locked_for(terms), self.posted(terms, number=number, previous=self._last)])
        self.posts.append((job, block.number))
        self._stored[job] = words.pack_unit(replace(Unit(), state=State.OPEN, started=block.timestamp))

    @property
    def _last(self) -> int:
        return self.posts[-1][1] if self.posts else 0

    def _locked_for(self, terms: Terms) -> Event:
        topics = (topic_of(Locked), encode(["address"], [self.network.jobs]), formulas.lock_key(terms.submitter))
        return Event(self.network.contracts["Escrow"], topics, encode(["uint256"], [formulas.escrow_at_post(terms)]))

    @property
    def _locked(self) -> int:
        return len(self.posts) * formulas.escrow_at_post(build.terms())

    def _lens(self, name: str, answer: Callable[..., Any]) -> None:
        """Let Lens answer a view from its arguments."""
        entry = next(one for one in codec("Lens").abi if one.get("name") == name)

        def encoded(call: Call, block: Block) -> bytes:
            told = codec("Lens").decode_input(call.data)
            assert told is not None
            return encode([type_of(one) for one in entry["outputs"]], [answer(block, *told[1].values())])

        self.on("Lens", name, encoded)

    def _overview(self, block: Block) -> tuple[Any, ...]:
        posted = words.pack(words.POSTED, {"count": len(self.posts), "block": self._last})
        totals = words.pack(words.TOTALS, {"next_id": 1, "hour": 0, "burnt": 0, "total": 0})
        asset = "0x" + "00" * 20
        counted = (self._locked, 0, posted, totals, self.network.policy, 0, 0, 0, 0, 10**17)
        return (self.network.chain_id, block.number, block.timestamp, asset, *counted)

    # ---- the provider ----

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one HTTP request."""
        if handler.command != "POST":
            send(handler, 204, **_CORS)
            return
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        raw = body if isinstance(body, list) else [body]
        if any(one["method"] == "eth_getLogs" for one in raw):
            time.sleep(self.slow)
        with self._lock:
            self.asked.append(tuple(Ask(one["method"], one["params"]) for one in raw))
            said = [{"jsonrpc": "2.0", "id": one["id"], **self._say(one["method"], one["params"])} for one in raw]
        content = json.dumps(said if isinstance(body, list) else said[0]).encode()
        send(handler, 200, content, Content_Type="application/json", **_CORS)

    def _say(self, method: str, params: list[Any]) -> dict[str, Any]:
        try:
            return {"result": getattr(self, method)(*params)}
        except (ChainError, ValueError) as error:
            return {"error": {"code": -32000, "message": str(error)}}

    def eth_chainId(self) -> str:
        """Answer as a node does; so do those below."""
        return hex(self.network.chain_id)

    def eth_getCode(self, address: str, at: str) -> str:
        return "0x" + self.chain.code(address).hex()

    def eth_getBlockByNumber(self, at: str, whole: bool) -> dict[str, Any] | None:
        return _shown(self.chain.block(self._number(at)))

    def eth_getBlockByHash(self, block_hash: str, whole: bool) -> dict[str, Any] | None:
        return _shown(self.chain.block(bytes.fromhex(block_hash[2:])))

    def eth_call(self, call: dict[str, str], at: Any) -> str:
        block = "latest" if at == "latest" else bytes.fromhex(at["blockHash"][2:])
        return "0x" + self.chain.call(Call(call["to"], bytes.fromhex(call["data"][2:])), block).hex()

    def eth_getTransactionReceipt(self, tx_hash: str) -> dict[str, Any]:
        return {"transactionHash": tx_hash, "from": "0x" + "5b" * 20, "gasUsed": "0x1", "effectiveGasPrice": "0x1"}

    def eth_getLogs(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        where: dict[str, Any] = {"block_hash": bytes.fromhex(asked.get("blockHash", "0x")[2:])}
        if "blockHash" not in asked:
            first, last = (self._number(asked[name]) for name in ("fromBlock", "toBlock"))
            if last - first >= WIDEST:
                raise ValueError(f"more than {WIDEST} blocks")
            where = {"from_block": first, "to_block": last}
        topics = [
            None if one is None else [bytes.fromhex(topic[2:]) for topic in ([one] if isinstance(one, str) else one)]
            for one in asked.get("topics", [])
        ]
        found = self.chain.logs(asked["address"], topics, **where)
        return [
            {
                "address": log.address,
                "topics": ["0x" + topic.hex() for topic in log.topics],
                "data": "0x" + log.data.hex(),
                "blockNumber": hex(log.block_number),
                "blockHash": "0x" + log.block_hash.hex(),
                "transactionHash": "0x" + log.tx_hash.hex(),
                "logIndex": hex(log.log_index),
            }
            for log in found
        ]

    def _number(self, at: str) -> int:
        return self.chain.head().number if at == "latest" else int(at, 16)


def _shown(block: Block | None) -> dict[str, Any] | None:
    if block is None:
        return None
    hashes = {"hash": block.hash, "parentHash": block.parent_hash}
    return {
        "number": hex(block.number),
        "timestamp": hex(block.timestamp),
        **{name: "0x" + value.hex() for name, value in hashes.items()},
    }


@contextmanager
def web_chain() -> Iterator[WebChain]:
    """Serve one while the context is open."""
    made: list[WebChain] = []
    with answering(lambda handler: made[0].answer(handler)) as port:
        made.append(WebChain(port))
        yield made[0]
