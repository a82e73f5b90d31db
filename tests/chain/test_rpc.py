"""RpcChain against a scripted provider on loopback: every fault of a provider, and what it must come to."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hearth.base.errors import ChainError, ConfigError, FundsError, RefusedError
from hearth.chain.pace import TokenBucket
from hearth.chain.port import Call, hex_of, refused, revert_reason
from hearth.chain.rpc import RpcChain

pytestmark = pytest.mark.net

ADDRESS = "0x" + "ab" * 20
REFUSED, PANIC = bytes.fromhex("590a5151"), bytes.fromhex("4e487b71")
NOT_OPEN, NO_SLOT = (REFUSED + number.to_bytes(32, "big") for number in (1037, 2005))
OVERFLOW = "0x4e487b71" + "11".rjust(64, "0")
REASON = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (14).to_bytes(32, "big") + b"jobs: not open".ljust(32)


class Http(Exception):
    """Answer with an HTTP status instead of a result."""

    def __init__(self, status: int, headers: dict[str, str] | None = None, body: str = "") -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers or {}, body


class Rpc(Exception):
    """Answer with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class Provider:
    """A JSON-RPC server whose answers a test scripts by method."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[..., Any]] = {"eth_chainId": lambda: "0x7a69", "eth_call": lambda *_: "0x"}
        self.counts: Counter[str] = Counter()
        self.url = ""
        self.release = threading.Event()

    def on(self, method: str, answer: Callable[..., Any]) -> None:
        self.answers[method] = answer


@contextmanager
def serving() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method = request["method"]
            provider.counts[method] += 1
            status, headers, body = 200, {}, ""
            try:
                answer = provider.answers[method](*request["params"])
                body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer})
            except Rpc as failed:
                body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": failed.error})
            except Http as failed:
                status, headers, body = failed.status, failed.headers, failed.body
            raw = body.encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}/v2/SECRET-KEY"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.release.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as made:
        yield made


@pytest.fixture
def second() -> Iterator[Provider]:
    with serving() as made:
        yield made


class Clock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def chain(*providers: Provider, clock: Clock | None = None, **options: Any) -> RpcChain:
    clock = clock or Clock()
    return RpcChain(
        [p.url for p in providers], timeout=options.pop("timeout", 5.0), clock=clock, sleep=clock.sleep, **options
    )


def block_json(number: int, fork: int = 0) -> dict[str, str]:
    return {
        "number": hex(number),
        "hash": hex_of(bytes([fork]) * 16 + number.to_bytes(16, "big")),
        "parentHash": hex_of(bytes(32)),
        "timestamp": hex(1000 + number),
        "baseFeePerGas": "0x5",
        "logsBloom": "0x" + "00" * 256,
    }


def log_json(number: int, index: int = 0, address: str = ADDRESS) -> dict[str, Any]:
    return {
        "address": address,
        "topics": [hex_of(b"\x01" * 32)],
        "data": "0x1234",
        "blockNumber": hex(number),
        "blockHash": hex_of(number.to_bytes(32, "big")),
        "transactionHash": hex_of(b"\x02" * 32),
        "logIndex": hex(index),
        "removed": False,
    }


def serve_logs(limit: int, refusal: Callable[[], Exception]) -> Callable[[dict[str, Any]], Any]:
    """Serve one log per block, and refuse ranges of more than `limit` blocks."""

    def answer(query: dict[str, Any]) -> Any:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        if last - first + 1 > limit:
            raise refusal()
        return [log_json(n) for n in range(first, last + 1)]

    return answer


# ---- failover and limits ----


@pytest.mark.parametrize(
    "fault",
    [
        lambda: Http(500),
        lambda: Http(502, body="<html>bad gateway</html>"),
        lambda: Http(429),
        lambda: Http(200, body='{"jsonrpc":"2.0","id":0,"resu'),
        lambda: Http(200, body="[]"),
        lambda: Http(200, body='{"jsonrpc":"2.0","id":0}'),
        lambda: Rpc(-32603, "internal error"),
        lambda: Rpc(-32005, "daily request count exceeded, request rate limited"),
    ],
)
def test_request__first_provider_fails__second_answers_and_stays(
    provider: Provider, second: Provider, fault: Callable[[], Exception]
) -> None:
    def broken() -> Any:
        raise fault()

    provider.on("eth_chainId", broken)
    port = chain(provider, second)
    assert port.chain_id() == 31337 and port.chain_id() == 31337
    assert provider.counts["eth_chainId"] == 1 and second.counts["eth_chainId"] == 2
    assert port.counts["failovers"] == 1


def test_begin_cycle__a_provider_that_recovered__is_preferred_again(provider: Provider, second: Provider) -> None:
    failing = [True]

    def answer() -> Any:
        if failing[0]:
            raise Http(503)
        return "0x7a69"

    provider.on("eth_chainId", answer)
    clock = Clock()
    port = chain(provider, second, clock=clock)
    port.chain_id()
    failing[0] = False
    port.begin_cycle()
    port.chain_id()
    assert provider.counts["eth_chainId"] == 1, "a provider that just failed is left alone"
    clock.now += 100
    port.chain_id()
    assert provider.counts["eth_chainId"] == 1, "within a cycle the provider stays"
    port.begin_cycle()
    port.chain_id()
    assert provider.counts["eth_chainId"] == 2


def fails_once(provider: Provider, failure: Http) -> None:
    """Let a provider fail its first answer, and serve the second."""
    answers = iter([failure, None])

    def answer() -> Any:
        failed = next(answers)
        if failed:
            raise failed
        return "0x1"

    provider.on("eth_chainId", answer)


def test_request__throttled__waits_what_retry_after_asks(provider: Provider) -> None:
    fails_once(provider, Http(429, {"Retry-After": "7"}))
    clock = Clock()
    assert chain(provider, clock=clock).chain_id() == 1
    assert clock.slept == [7.0]


def test_request__throttled_for_an_hour__gives_up_instead_of_hanging(provider: Provider) -> None:
    def answer() -> Any:
        raise Http(429, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"})

    provider.on("eth_chainId", answer)
    clock = Clock()
    with pytest.raises(ChainError) as caught:
        chain(provider, clock=clock).chain_id()
    assert caught.value.retryable and all(seconds <= 30 for seconds in clock.slept)


@pytest.mark.parametrize("status", [429, 503])
def test_request__throttled_until_a_date__waits_for_it(provider: Provider, status: int) -> None:
    fails_once(provider, Http(status, {"Retry-After": formatdate(time.time() + 20, usegmt=True)}))
    clock = Clock()
    assert chain(provider, clock=clock).chain_id() == 1
    assert clock.slept == [pytest.approx(19, abs=1.1)]


def test_request__the_only_one_is_asked_too_often__is_not_hammered(provider: Provider) -> None:
    def answer() -> Any:
        raise Http(429, {"Retry-After": "20"})

    provider.on("eth_chainId", answer)
    clock = Clock()
    port, began = chain(provider, clock=clock), clock.now
    for _ in range(5):
        with pytest.raises(ChainError, match="asked too often") as caught:
            port.chain_id()
        assert caught.value.code == "RPC_UNAVAILABLE" and caught.value.retryable
    assert provider.counts["eth_chainId"] <= 1 + (clock.now - began) / 20


@pytest.mark.parametrize(
    "limit",
    [
        lambda: Http(429),
        lambda: Http(503, {"Retry-After": "1"}),
        lambda: Rpc(-32005, "limit exceeded"),
        lambda: Rpc(-32005, "project ID request rate exceeded"),
        lambda: Rpc(-32007, "50/second request limit reached - reduce calls per second"),
        lambda: Rpc(-32029, "slow down"),
        lambda: Rpc(-32016, "over rate limit"),
        lambda: Rpc(429, "busy"),
    ],
)
def test_request__asked_too_often__is_no_failure(provider: Provider, limit: Callable[[], Exception]) -> None:
    refusals = iter([limit()])

    def answer(*_: Any) -> Any:
        for refusal in refusals:
            raise refusal
        return "0x64"

    provider.on("eth_getBalance", answer)
    clock = Clock()
    port = chain(provider, clock=clock, chain_id=31337)
    assert port.balance(ADDRESS) == 100 and len(clock.slept) == 1
    assert port.counts["throttled"] == 1
    assert provider.counts["eth_chainId"] == 1, "it is not verified anew, as one that failed is"


def test_request__ten_a_second_are_served__that_is_found_out(provider: Provider) -> None:
    clock, served = Clock(), deque[float](maxlen=10)

    def answer(*_: Any) -> Any:
        if len(served) == 10 and clock.now - served[0] < 1:
            raise Http(429)
        served.append(clock.now)
        return "0x64"

    provider.on("eth_getBalance", answer)
    port, began = chain(provider, clock=clock), clock.now
    for _ in range(300):
        port.balance(ADDRESS)
    assert 0 < port.counts["throttled"] <= 6
    assert clock.now - began < 60, "what is served is made use of"


def test_begin_cycle__one_of_two_is_asked_too_often__rests_as_it_says_and_no_longer(
    provider: Provider, second: Provider
) -> None:
    waits = iter(["10", "31536000", None])

    def answer() -> Any:
        wait = next(waits)
        if wait:
            raise Http(429, {"Retry-After": wait})
        return "0x7a69"

    provider.on("eth_chainId", answer)
    clock = Clock()
    port = chain(provider, second, clock=clock)
    for pause in (9.9, 0.2, 29.9, 0.2):
        port.begin_cycle()
        port.chain_id()
        clock.now += pause
    assert provider.counts["eth_chainId"] == 2
    port.begin_cycle()
    port.chain_id()
    assert provider.counts["eth_chainId"] == 3, "a year is no answer: it is asked again after half a minute"
    assert clock.slept == [], "the other one answers meanwhile"


def test_request__nobody_listens__is_an_error_without_the_secret(provider: Provider) -> None:
    clock = Clock()
    port = RpcChain(["http://127.0.0.1:9/v2/SECRET-KEY"], timeout=1, clock=clock, sleep=clock.sleep)
    with pytest.raises(ChainError) as caught:
        port.chain_id()
    assert caught.value.exit_code == 4 and caught.value.code == "RPC_UNAVAILABLE"
    assert "SECRET" not in json.dumps(caught.value.as_dict()) and "127.0.0.1:9" in caught.value.message
    assert len(clock.slept) == 2


def test_is_connected__nobody_answers__is_false_or_raises_as_web3_wants_it(provider: Provider) -> None:
    from hearth.chain.web3_provider import PortProvider

    def fail() -> Any:
        raise Http(500)

    asks = PortProvider(chain(provider))
    assert asks.is_connected()
    provider.on("eth_chainId", fail)
    asks = PortProvider(chain(provider))
    assert not asks.is_connected()
    with pytest.raises(ChainError):
        asks.is_connected(show_traceback=True)


def test_request__a_provider_that_hangs__fails_over(provider: Provider, second: Provider) -> None:
    provider.on("eth_chainId", lambda: provider.release.wait(10))
    assert chain(provider, second, timeout=0.3).chain_id() == 31337
    assert second.counts["eth_chainId"] == 1


def test_web3chain__bad_urls__are_refused() -> None:
    for urls in ([], ["localhost:8545"], ["ftp://x/"], ["http://"]):
        with pytest.raises(ConfigError):
            RpcChain(urls)


def test_token_bucket__more_than_the_burst__waits_for_the_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=10, burst=3, clock=clock, sleep=clock.sleep)
    for _ in range(3):
        bucket.take()
    assert clock.slept == []
    bucket.take()
    assert clock.slept == [pytest.approx(0.1)]
    clock.now += 100
    for _ in range(3):
        bucket.take()
    assert len(clock.slept) == 1, "it never saves up more than the burst"


# ---- the right chain ----


def test_verify__another_chain_id__is_refused_for_good(provider: Provider) -> None:
    for act in (lambda port: port.verify(), lambda port: port.chain_id()):
        with pytest.raises(ChainError) as caught:
            act(chain(provider, chain_id=1))
        assert caught.value.code == "WRONG_CHAIN" and not caught.value.retryable


def test_verify__another_genesis__is_refused_for_good(provider: Provider) -> None:
    provider.on("eth_getBlockByNumber", lambda *_: block_json(0))
    good = bytes.fromhex(block_json(0)["hash"][2:])
    chain(provider, chain_id=31337, genesis_hash=good).verify()
    with pytest.raises(ChainError) as caught:
        chain(provider, genesis_hash=b"\1" * 32).head()
    assert caught.value.code == "WRONG_CHAIN"


def test_verify__one_of_two_is_forked__refuses_to_start(provider: Provider, second: Provider) -> None:
    second.on("eth_chainId", lambda: "0x1")
    with pytest.raises(ChainError) as caught:
        chain(provider, second, chain_id=31337).verify()
    assert caught.value.code == "WRONG_CHAIN"


def test_verify__one_of_two_is_down__starts(provider: Provider, second: Provider) -> None:
    def down() -> Any:
        raise Http(500)

    second.on("eth_chainId", down)
    chain(provider, second, chain_id=31337).verify()
    provider.on("eth_chainId", down)
    with pytest.raises(ChainError) as caught:
        chain(provider, second, chain_id=31337).verify()
    assert caught.value.code == "RPC_UNAVAILABLE"


def test_head__providers_at_different_heights__is_the_lower_one(provider: Provider, second: Provider) -> None:
    provider.on("eth_getBlockByNumber", lambda at, _: block_json(10 if at == "latest" else int(at, 16)))
    second.on("eth_getBlockByNumber", lambda at, _: block_json(8 if at == "latest" else int(at, 16)))
    assert chain(provider, second).head().number == 8


def test_head__the_newest_blocks_differ__walks_back_to_the_shared_one(provider: Provider, second: Provider) -> None:
    provider.on("eth_getBlockByNumber", lambda at, _: block_json(10 if at == "latest" else int(at, 16)))

    def forked(at: str, _: bool) -> Any:
        number = 10 if at == "latest" else int(at, 16)
        return block_json(number, fork=1 if number > 7 else 0)

    second.on("eth_getBlockByNumber", forked)
    assert chain(provider, second).head().number == 7


def test_head__providers_on_other_chains__is_no_quorum(provider: Provider, second: Provider) -> None:
    provider.on("eth_getBlockByNumber", lambda at, _: block_json(3 if at == "latest" else int(at, 16)))
    second.on("eth_getBlockByNumber", lambda at, _: block_json(3 if at == "latest" else int(at, 16), fork=1))
    with pytest.raises(ChainError) as caught:
        chain(provider, second).head()
    assert caught.value.code == "NO_QUORUM"


def test_head__one_is_down_or_stalled__goes_by_the_others(provider: Provider, second: Provider) -> None:
    provider.on("eth_getBlockByNumber", lambda at, _: block_json(500 if at == "latest" else int(at, 16)))
    second.on("eth_getBlockByNumber", lambda at, _: block_json(8 if at == "latest" else int(at, 16)))
    assert chain(provider, second, wall=lambda: 1500.0).head().number == 500

    def down(*_: Any) -> Any:
        raise Http(500)

    second.on("eth_getBlockByNumber", down)
    assert chain(provider, second).head().number == 500


# ---- logs ----


@pytest.mark.parametrize(
    "refusal",
    [
        lambda: Rpc(-32005, "query returned more than 10000 results"),
        lambda: Rpc(-32602, "eth_getLogs is limited to a 10,000 range"),
        lambda: Rpc(-32000, "block range too large"),
        lambda: Rpc(-32602, "Log response size exceeded. You can make requests with up to a 2K block range"),
        lambda: Rpc(-32600, "under this plan you can make eth_getLogs requests with up to a 10 block range"),
        lambda: Rpc(-32000, "query timeout exceeded"),
        lambda: Rpc(-32701, "please specify an address, or narrow the range"),
        lambda: Http(413),
        lambda: Http(504, body="<html>gateway timeout</html>"),
        lambda: Http(400, body=json.dumps({"error": {"code": -32600, "message": "range exceeds the limit"}})),
    ],
)
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_logs__ranges_refused__halves_until_served_and_loses_nothing(
    provider: Provider, refusal: Callable[[], Exception], limit: int
) -> None:
    provider.on("eth_getLogs", serve_logs(limit, refusal))
    port = chain(provider, max_span=256)
    found = port.logs([ADDRESS], from_block=5, to_block=204)
    assert [log.block_number for log in found] == list(range(5, 205))
    assert port.counts["halved"] > 0


def test_logs__after_a_refusal__grows_back(provider: Provider) -> None:
    limit = [10]
    provider.on("eth_getLogs", lambda q: serve_logs(limit[0], lambda: Http(413))(q))
    port = chain(provider, max_span=64)
    port.logs([ADDRESS], from_block=0, to_block=63)
    limit[0] = 64
    port.logs([ADDRESS], from_block=0, to_block=2000)
    before = provider.counts["eth_getLogs"]
    port.logs([ADDRESS], from_block=0, to_block=63)
    assert provider.counts["eth_getLogs"] == before + 1


def test_logs__timeouts_on_wide_ranges__halve_as_well(provider: Provider) -> None:
    def answer(query: dict[str, Any]) -> Any:
        if int(query["toBlock"], 16) - int(query["fromBlock"], 16) >= 4:
            provider.release.wait(5)
        return serve_logs(4, lambda: Http(413))(query)

    provider.on("eth_getLogs", answer)
    found = chain(provider, timeout=0.3, max_span=8).logs([ADDRESS], from_block=0, to_block=7)
    assert [log.block_number for log in found] == list(range(8))


@pytest.mark.parametrize(
    "text", ["project ID request rate exceeded", "You've exceeded the RPS limit available on the current plan"]
)
def test_logs__asked_too_often__halves_nothing(provider: Provider, text: str) -> None:
    refusals = iter([Rpc(-32005, text)])

    def answer(query: dict[str, Any]) -> Any:
        for refusal in refusals:
            raise refusal
        return serve_logs(100, lambda: Http(413))(query)

    provider.on("eth_getLogs", answer)
    port = chain(provider)
    assert len(port.logs([ADDRESS], from_block=0, to_block=63)) == 64
    assert port.counts["halved"] == 0 and port.counts["throttled"] == 1


def test_logs__one_block_is_too_much__is_a_named_error(provider: Provider) -> None:
    provider.on("eth_getLogs", serve_logs(0, lambda: Rpc(-32005, "query returned more than 10000 results")))
    with pytest.raises(ChainError) as caught:
        chain(provider).logs([ADDRESS], from_block=3, to_block=9)
    assert caught.value.code == "RPC_LOGS_LIMIT"


def test_logs__a_third_of_the_requests_fail__ends_with_every_log_once(provider: Provider, second: Provider) -> None:
    """Every third request fails in one of five ways; catching up still ends, with nothing lost or doubled."""
    faults = [lambda: Http(429), lambda: Http(500), lambda: Rpc(-32005, "more than 10000 results"), lambda: Http(413)]

    def flaky(seed: int) -> Callable[[dict[str, Any]], Any]:
        count = [seed]

        def answer(query: dict[str, Any]) -> Any:
            count[0] += 1
            if count[0] % 3 == 0:
                raise faults[count[0] // 3 % len(faults)]()
            return serve_logs(50, lambda: Http(413))(query)

        return answer

    provider.on("eth_getLogs", flaky(0))
    second.on("eth_getLogs", flaky(1))
    port = chain(provider, second, attempts=8, rate=1e9, burst=1e9)
    for start in range(0, 3_000, 500):
        port.begin_cycle()
        found = port.logs([ADDRESS], from_block=start, to_block=start + 499)
        assert [log.block_number for log in found] == list(range(start, start + 500))


@pytest.mark.parametrize(
    "lie",
    [
        lambda: log_json(3, address="0x" + "cd" * 20),
        lambda: log_json(99),
        lambda: {**log_json(3), "data": "0xzz"},
        lambda: {k: v for k, v in log_json(3).items() if k != "topics"},
        lambda: "no log",
    ],
)
def test_logs__what_was_not_asked_for_or_is_malformed__is_refused(provider: Provider, lie: Callable[[], Any]) -> None:
    provider.on("eth_getLogs", lambda q: [lie()])
    with pytest.raises(ChainError) as caught:
        chain(provider).logs([ADDRESS], from_block=1, to_block=5)
    assert caught.value.code == "RPC_BROKEN"


def test_logs__by_block_hash__refuses_another_blocks_log(provider: Provider) -> None:
    wanted = bytes.fromhex(log_json(3)["blockHash"][2:])
    provider.on("eth_getLogs", lambda q: [log_json(3, 1), log_json(3, 0), {**log_json(3, 2), "removed": True}])
    assert [log.log_index for log in chain(provider).logs([ADDRESS], block_hash=wanted)] == [0, 1]
    provider.on("eth_getLogs", lambda q: [log_json(4)])
    with pytest.raises(ChainError):
        chain(provider).logs([ADDRESS], block_hash=wanted)


def test_logs__indexes_count_in_each_transaction__are_in_the_chains_order_and_none_twice(provider: Provider) -> None:
    def at(turn: int, index: int) -> dict[str, Any]:
        return {**log_json(3, index), "transactionHash": hex_of(bytes([turn]) * 32), "transactionIndex": hex(turn)}

    provider.on("eth_getLogs", lambda q: [at(2, 0), at(1, 1), at(1, 0), at(2, 1)])
    found = chain(provider).logs([ADDRESS], from_block=3, to_block=3)
    assert [(log.tx_hash[0], log.log_index) for log in found] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    provider.on("eth_getLogs", lambda q: [at(1, 0), at(1, 0)])
    with pytest.raises(ChainError, match="a log twice"):
        chain(provider).logs([ADDRESS], from_block=3, to_block=3)


def test_logs__topics__are_sent_as_alternatives(provider: Provider) -> None:
    seen: list[Any] = []
    provider.on("eth_getLogs", lambda q: seen.append(q["topics"]) or [])
    chain(provider).logs([ADDRESS], [None, b"\1" * 32, [b"\2" * 32, b"\3" * 32]], from_block=1, to_block=1)
    assert seen == [[None, hex_of(b"\1" * 32), [hex_of(b"\2" * 32), hex_of(b"\3" * 32)]]]


# ---- refusals ----


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Rpc(3, "execution reverted: jobs: not open", hex_of(REASON)), "jobs: not open"),
        (Rpc(-32000, "execution reverted", {"data": hex_of(REASON)}), "jobs: not open"),
        (Rpc(-32015, "VM execution error.", "Reverted " + hex_of(REASON)), "jobs: not open"),
        (Rpc(-32000, "execution reverted: jobs: not open"), "jobs: not open"),
        (Rpc(3, "execution reverted", hex_of(NOT_OPEN)), "jobs: not open"),
        (Rpc(-32000, "execution reverted", {"data": hex_of(NO_SLOT)}), "nodes: no free slot"),
        (Rpc(-32015, "VM execution error.", "Reverted " + hex_of(REFUSED + bytes(32))), "refused with reason 0"),
        (Rpc(3, "execution reverted", hex_of(REFUSED + bytes(31))), ""),
        (Rpc(3, "execution reverted", "0x"), ""),
        (Rpc(3, "execution reverted", OVERFLOW), "panic 0x11: arithmetic overflow or underflow"),
    ],
)
def test_call__reverts__carries_the_contracts_reason(provider: Provider, error: Rpc, reason: str) -> None:
    def answer(*_: Any) -> Any:
        raise error

    provider.on("eth_call", answer)
    with pytest.raises(RefusedError) as caught:
        chain(provider).call(Call(ADDRESS, b"\1\2\3\4", label="jobs.claim"))
    assert caught.value.details["reason"] == reason and "jobs.claim is refused" in caught.value.message
    assert provider.counts["eth_call"] == 1, "a refusal is an answer, not a fault"


def test_call__by_hash__asks_for_the_canonical_block(provider: Provider) -> None:
    seen: list[Any] = []

    def answer(tx: Any, at: Any) -> str:
        seen.append((tx, at))
        return "0x0102"

    provider.on("eth_call", answer)
    port = chain(provider)
    assert port.call(Call(ADDRESS, b"\xaa", 5), b"\1" * 32, sender=ADDRESS) == b"\1\2"
    port.call(Call(ADDRESS, b"\xaa"), 16)
    assert seen[0] == (
        {"to": ADDRESS, "data": "0xaa", "value": "0x5", "from": ADDRESS},
        {"blockHash": hex_of(b"\1" * 32), "requireCanonical": True},
    )
    assert seen[1] == ({"to": ADDRESS, "data": "0xaa"}, "0x10")


def test_call__an_orphaned_block__is_a_retryable_error(provider: Provider) -> None:
    def answer(*_: Any) -> Any:
        raise Rpc(-32000, "header not found")

    provider.on("eth_call", answer)
    provider.on("eth_getBlockByHash", answer)
    with pytest.raises(ChainError) as caught:
        chain(provider).call(Call(ADDRESS, b""), b"\1" * 32)
    assert caught.value.code == "BLOCK_UNKNOWN" and caught.value.retryable
    assert chain(provider).block(b"\1" * 32) is None


@pytest.mark.parametrize(
    ("message", "expected", "code"),
    [
        ("already known", ChainError, "ALREADY_KNOWN"),
        ("transaction already imported", ChainError, "ALREADY_KNOWN"),
        ("nonce too low: next nonce 5, tx nonce 3", ChainError, "NONCE_TOO_LOW"),
        ("replacement transaction underpriced", ChainError, "UNDERPRICED"),
        ("max fee per gas less than block base fee", ChainError, "UNDERPRICED"),
        ("FeeTooLow", ChainError, "UNDERPRICED"),
        ("FeeTooLowToCompete", ChainError, "UNDERPRICED"),
        ("txpool is full", ChainError, "POOL_FULL"),
        ("transaction pool is full", ChainError, "POOL_FULL"),
        ("Failed imported to deferred pool: Transaction Pool is full", ChainError, "POOL_FULL"),
        ("pending sub-pool is full", ChainError, "POOL_FULL"),
        ("baseFee sub-pool is full", ChainError, "POOL_FULL"),
        ("queued sub-pool is full", ChainError, "POOL_FULL"),
        ("transaction discarded outright due to pool size constraints", ChainError, "POOL_FULL"),
        ("There are too many transactions in the queue. Try increasing the fee.", ChainError, "POOL_FULL"),
        ("Insufficient funds for gas * price + value", FundsError, "FUNDS_SHORT"),
    ],
)
def test_send_raw__the_pool_refuses__names_which_case(
    provider: Provider, message: str, expected: type[Exception], code: str
) -> None:
    def answer(*_: Any) -> Any:
        raise Rpc(-32000, message)

    provider.on("eth_sendRawTransaction", answer)
    with pytest.raises(expected) as caught:
        chain(provider).send_raw(b"\1")
    assert getattr(caught.value, "code") == code  # noqa: B009
    assert provider.counts["eth_sendRawTransaction"] == 1


@pytest.mark.parametrize("code", [-32601, -32004])
@pytest.mark.parametrize(("base", "tip"), [(5, 10**6), (10**7, 10**7), (10**9, 10**9), (10**11, 10**9)])
def test_fees__no_priority_method__falls_back(provider: Provider, base: int, tip: int, code: int) -> None:
    """As much as the base fee, so that it at most doubles a price; never less than clients take by default."""

    def answer(*_: Any) -> Any:
        raise Rpc(code, "the method does not exist")

    provider.on("eth_maxPriorityFeePerGas", answer)
    provider.on("eth_getBlockByNumber", lambda *_: {**block_json(4), "baseFeePerGas": hex(base)})
    fees = chain(provider).fees()
    assert (fees.base_fee, fees.priority_fee) == (base, tip)


def test_fees__asked_often__are_asked_for_once_a_block(provider: Provider) -> None:
    height = [4]
    provider.on("eth_maxPriorityFeePerGas", lambda *_: hex(height[0]))
    provider.on("eth_getBlockByNumber", lambda *_: {**block_json(height[0]), "baseFeePerGas": hex(height[0])})
    port = chain(provider)
    assert [(port.fees().base_fee, port.fees().priority_fee) for _ in range(3)] == [(4, 4)] * 3
    assert (provider.counts["eth_maxPriorityFeePerGas"], provider.counts["eth_getBlockByNumber"]) == (1, 1)
    height[0] = 5
    port.begin_cycle()
    assert (port.fees().base_fee, port.fees().priority_fee) == (5, 5)


def test_fees__other_providers_are_asked_instead__are_theirs_at_the_same_block(
    provider: Provider, second: Provider
) -> None:
    """The old one may have been left for what it made the keeper pay."""
    for one, tip in ((provider, 900), (second, 4)):
        one.on("eth_getBlockByNumber", lambda *_: {**block_json(4), "baseFeePerGas": "0x5"})
        one.on("eth_maxPriorityFeePerGas", lambda *_, tip=tip: hex(tip))
    port = chain(provider)
    assert port.fees().priority_fee == 900
    port.ask_instead(chain(second))
    assert port.fees().priority_fee == 4


def test_receipt__unknown__is_none(provider: Provider) -> None:
    provider.on("eth_getTransactionReceipt", lambda _: None)
    provider.on("eth_getTransactionByHash", lambda _: None)
    assert chain(provider).receipt(b"\1" * 32) is None and chain(provider).transaction(b"\1" * 32) is None


def test_receipt__of_a_block_that_a_crash_took_away__is_none(provider: Provider) -> None:
    def answer(_: Any) -> Any:
        raise Rpc(-32000, f"receipt not found, 140, {'c0' * 32}, 0")

    provider.on("eth_getTransactionReceipt", answer)
    assert chain(provider).receipt(b"\1" * 32) is None


@pytest.mark.parametrize(
    ("reason", "label", "hint"),
    [
        ("jobs: not open", "jobs.claim", "hearth job show JOB"),
        ("jobs: paused", "jobs.post", "hearth net status says until when"),
        ("nodes: still unbonding", "nodes.exit_finish", "hearth worker status"),
        ("rules: paused lately", "rules.pause", "hearth gov status says from when on the next pause works"),
        ("escrow: short", "escrow.withdraw", "hearth wallet balance"),
        ("panic 0x11: arithmetic overflow or underflow", "nodes.add_stake", "hearth worker status"),
        ("", "jobs.settle", "hearth job show JOB"),
        ("", "", "hearth doctor"),
    ],
)
def test_refused__part_of_the_market__hints_at_what_shows_it(reason: str, label: str, hint: str) -> None:
    assert refused(reason, label=label).hint == hint


def test_revert_reason__odd_data__is_empty_or_cut() -> None:
    assert revert_reason(b"") == "" and revert_reason(b"\1\2\3\4") == ""
    assert revert_reason(REASON) == "jobs: not open"
    assert revert_reason(NOT_OPEN) == "jobs: not open"
    for selector in (REFUSED, PANIC):
        assert revert_reason(selector) == revert_reason(selector + bytes(31)) == ""
    assert revert_reason(NOT_OPEN + b"more" * 2**18) == "jobs: not open"
    assert revert_reason(REFUSED + b"\xff" * 32) == f"refused with reason {2**256 - 1}"
    long = REASON[:36] + (2**200).to_bytes(32, "big") + b"abc"
    assert revert_reason(long) == "abc"
