"""One provider with its bounds: whatever a hostile server sends costs little, and is that provider's failure."""

from __future__ import annotations

import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hearth.base import peer
from hearth.base.errors import ChainError, ConfigError
from hearth.chain import answers, endpoint
from hearth.chain.answers import ProviderFailed
from hearth.chain.endpoint import Endpoint
from hearth.chain.rpc import RpcChain
from tests.chain.test_rpc import Provider, Rpc, block_json, serving
from tests.kit import liars
from tests.kit.http import answering, certified, send
from tests.kit.liars import Asked, Liar, lying

# What is not bounded would wait for ever.
pytestmark = [pytest.mark.net, pytest.mark.timeout(60)]

SECONDS = 0.4


def open_endpoint(url: str, timeout: float = SECONDS) -> Endpoint:
    return Endpoint(url, timeout)


@pytest.fixture
def honest() -> Iterator[Provider]:
    with serving() as made:
        made.on("eth_getBlockByNumber", lambda *_: block_json(7))
        yield made


@pytest.fixture(params=liars.BROKEN, ids=lambda lie: lie.__name__)
def liar(request: pytest.FixtureRequest, honest: Provider) -> Iterator[Liar]:
    with lying(honest.url, request.param) as made:
        yield made


def test_ask__answer_that_breaks_a_bound__is_the_providers_failure_in_time_and_memory(liar: Liar) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    with pytest.raises(ProviderFailed) as caught:
        open_endpoint(liar.url).ask("eth_getBlockByNumber", ["latest", False], answers.block)
    assert time.monotonic() - began < SECONDS + 15
    # KiB: far below what the answer would be.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024
    assert 0 < len(caught.value.why) < 600 and caught.value.why.isascii()


def test_head__one_of_two_breaks_a_bound__the_other_answers_and_the_fault_is_named(
    liar: Liar, honest: Provider
) -> None:
    heard: list[tuple[str, str]] = []
    chain = RpcChain(
        [liar.url, honest.url], SECONDS, chain_id=31337, on_fault=lambda name, why: heard.append((name, why))
    )
    assert chain.head().number == 7
    ((name, why),) = heard
    assert name == liar.url and why
    asked = liar.counts.total()
    assert chain.head().number == 7
    assert liar.counts.total() == asked, "it is left alone for a while"


def test_chain_id__only_a_hostile_provider__is_an_error_that_may_pass_or_a_named_wrong_chain(liar: Liar) -> None:
    with pytest.raises(ChainError) as caught:
        RpcChain([liar.url], SECONDS, chain_id=31337, attempts=1).chain_id()
    wrong = liar.lies == [liars.serves_another_chain]
    assert caught.value.retryable is not wrong and (caught.value.code == "WRONG_CHAIN") is wrong


def test_ask__resolver_that_hangs__is_the_providers_failure_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(peer.socket, "getaddrinfo", lambda *_, **__: [over.wait(30)][:0])
    began = time.monotonic()
    with pytest.raises(ProviderFailed, match="no whole answer within") as caught:
        open_endpoint("http://rpc.example.org").ask("eth_chainId", [], answers.quantity)
    assert caught.value.timeout and time.monotonic() - began < SECONDS + 15
    over.set()


def test_ask__https__the_certificate_is_that_of_the_name_or_the_provider_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tls, authority = certified(tmp_path, "rpc.example.org")
    hosts: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        hosts.append(handler.headers.get("Host"))
        send(handler, 200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": "0x7a69"}).encode())

    with answering(answer, tls) as port:
        place = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
        monkeypatch.setattr(peer.socket, "getaddrinfo", lambda *_, **__: [place])
        with pytest.raises(ProviderFailed, match="its certificate does not hold: self-signed"):
            open_endpoint(f"https://rpc.example.org:{port}", 5).ask("eth_chainId", [], answers.quantity)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        found = open_endpoint(f"https://rpc.example.org:{port}", 5)
        assert [found.ask("eth_chainId", [], answers.quantity) for _ in range(2)] == [31337, 31337]
        with pytest.raises(ProviderFailed, match=r"its certificate does not hold: .*mismatch"):
            open_endpoint(f"https://other.example.org:{port}", 5).ask("eth_chainId", [], answers.quantity)
    assert hosts == [f"rpc.example.org:{port}"] * 2


@pytest.mark.parametrize("status", ["300 Multiple Choices", "307 Temporary Redirect", "399 Whatever"])
def test_ask__redirect__takes_no_request_elsewhere(honest: Provider, status: str) -> None:
    """Nor is the body believed that comes with it, though it looks like an answer."""

    def redirects(asked: Asked) -> None:
        content = json.dumps({"jsonrpc": "2.0", "id": asked.id, "result": "0x1234"}).encode()
        asked.body(content, status, f"Location: {asked.upstream}")

    with lying(honest.url, redirects) as liar, pytest.raises(ProviderFailed, match="redirects"):
        open_endpoint(liar.url).ask("eth_sendRawTransaction", ["0x01"], answers.data)
    assert honest.counts == {}


def test_ask__gzip_within_the_bounds__is_read(honest: Provider) -> None:
    import gzip

    def packs(asked: Asked) -> None:
        content = json.dumps({"jsonrpc": "2.0", "id": asked.id, "result": asked.truth()}).encode()
        asked.body(gzip.compress(content), "200 OK", "Content-Encoding: gzip")

    with lying(honest.url, packs) as liar:
        found = open_endpoint(liar.url, 5)
        for _ in range(3):
            assert found.ask("eth_getBlockByNumber", ["latest", False], answers.block).number == 7


def test_ask__answer_at_the_cap__is_read_and_one_byte_more_is_not(
    honest: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest.on("eth_call", lambda *_: "0x" + "ab" * 2000)
    size = len(json.dumps({"jsonrpc": "2.0", "id": 1, "result": "0x" + "ab" * 2000}))
    monkeypatch.setattr(endpoint, "MAX_ANSWER", size)
    assert len(open_endpoint(honest.url, 5).ask("eth_call", [], answers.data)) == 2000
    monkeypatch.setattr(endpoint, "MAX_ANSWER", size - 1)
    with pytest.raises(ProviderFailed, match=f"more than {size - 1} bytes"):
        open_endpoint(honest.url, 5).ask("eth_call", [], answers.data)


def test_logs__more_than_an_answer_may_have__are_asked_for_in_halves(
    honest: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.chain.test_rpc import ADDRESS, log_json

    honest.on("eth_getLogs", lambda q: [log_json(n) for n in range(int(q["fromBlock"], 16), int(q["toBlock"], 16) + 1)])
    monkeypatch.setattr(endpoint, "MAX_LOGS", 2_000)
    chain = RpcChain([honest.url], 5)
    assert [log.block_number for log in chain.logs([ADDRESS], from_block=0, to_block=40)] == list(range(41))
    assert chain.counts["halved"] > 0


def test_endpoint__secret_in_its_url__is_used_and_never_shown() -> None:
    found = Endpoint("https://me:s%20ecret@rpc.example.org/v2/KEY?x=KEY", 1)
    assert found.name == "https://rpc.example.org"
    assert found._target == "/v2/KEY?x=KEY" and found._headers["Host"] == "rpc.example.org"
    assert found._headers["Authorization"] == "Basic bWU6cyBlY3JldA=="


@pytest.mark.parametrize("password", ["32000", 'say "no"', "pässword"])
def test_ask__the_refusal_repeats_the_password__is_hidden_whatever_it_is_made_of(
    honest: Provider, password: str
) -> None:
    """A password that stands in JSON otherwise than in the URL; one that is as well the code of the error."""
    honest.on("eth_chainId", refuses(password))
    port = honest.url.rpartition(":")[2].partition("/")[0]
    with pytest.raises(ProviderFailed) as caught:
        open_endpoint(f"http://me:{quote(password)}@127.0.0.1:{port}/").ask("eth_chainId", [], answers.quantity)
    assert caught.value.why == "eth_chainId: no such user: me with ..."


def refuses(password: str) -> Callable[[], Any]:
    def answer() -> Any:
        raise Rpc(-32000, f"no such user: me with {password}")

    return answer


@pytest.mark.parametrize("url", ["http://host:99999", "http://host:x", "ws://host", "https://"])
def test_endpoint__no_rpc_address__is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_endpoint(url)
    assert caught.value.code == "BAD_RPC_URL"
