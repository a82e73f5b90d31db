"""Several providers, some of which lie: who is believed, who is set aside, and what a lie can not do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError, RefusedError
from hearth.chain import providers as module
from hearth.chain.port import Call, Signed, hex_of
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from tests.chain.test_rpc import ADDRESS, Clock, Http, Provider, Rpc, block_json, chain, log_json, serving
from tests.kit import liars
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.liars import lying

pytestmark = pytest.mark.net

CALL = Call(ADDRESS, b"\1\2\3\4", label="jobs.claim")
HEAD = 100


@pytest.fixture
def three() -> Iterator[list[Provider]]:
    with ExitStack() as stack:
        made = [stack.enter_context(serving()) for _ in range(3)]
        for one in made:
            one.on("eth_getBlockByNumber", lambda at, _: block_json(HEAD if at == "latest" else int(at, 16)))
            one.on("eth_call", lambda *_: "0x01")
            one.on("eth_getLogs", lambda q: [log_json(3)])
            one.on("eth_getTransactionCount", lambda *_: "0x5")
            one.on("eth_getBalance", lambda *_: "0x64")
            one.on("eth_getCode", lambda *_: "0xfe")
            one.on("eth_estimateGas", lambda *_: "0xea60")
            one.on("eth_maxPriorityFeePerGas", lambda *_: "0x3")
            one.on("eth_getTransactionReceipt", lambda _: None)
        yield made


def refuses(*_: Any) -> Any:
    raise Rpc(3, "execution reverted: jobs: not open")


def receipt_json(tx_hash: bytes, ok: bool = True) -> dict[str, Any]:
    return {
        "transactionHash": hex_of(tx_hash),
        "blockNumber": "0x3",
        "blockHash": hex_of(b"\3" * 32),
        "status": "0x1" if ok else "0x0",
        "gasUsed": "0x5208",
        "effectiveGasPrice": "0x1",
        "from": ADDRESS,
        "to": ADDRESS,
        "contractAddress": None,
        "logs": [],
    }


LIES = {
    "a word": ("eth_call", lambda *_: "0x02", lambda port: port.call(CALL, b"\1" * 32) == b"\1"),
    "a refusal": ("eth_call", refuses, lambda port: port.call(CALL) == b"\1"),
    "a log that is not": ("eth_getLogs", lambda q: [log_json(3), log_json(4)], lambda port: len(read_logs(port)) == 1),
    "no logs": ("eth_getLogs", lambda q: [], lambda port: len(read_logs(port)) == 1),
    "a nonce too high": ("eth_getTransactionCount", lambda *_: "0xffff", lambda port: port.nonce(ADDRESS) == 5),
    "a nonce too low": ("eth_getTransactionCount", lambda *_: "0x0", lambda port: port.nonce(ADDRESS) == 5),
    "a pool too full": (
        "eth_getTransactionCount",
        lambda *_: "0xffff",
        lambda port: port.nonce(ADDRESS, pending=True) == 5,
    ),
    "no money": ("eth_getBalance", lambda *_: "0x0", lambda port: port.balance(ADDRESS) == 100),
    "other code": ("eth_getCode", lambda *_: "0x00", lambda port: port.code(ADDRESS) == b"\xfe"),
    "gas too low": ("eth_estimateGas", lambda *_: "0x5208", lambda port: port.estimate_gas(CALL, ADDRESS) == 60_000),
    "gas too high": ("eth_estimateGas", lambda *_: "0xffffff", lambda port: port.estimate_gas(CALL, ADDRESS) == 60_000),
    "gas refused": ("eth_estimateGas", refuses, lambda port: port.estimate_gas(CALL, ADDRESS) == 60_000),
    "a dear tip": ("eth_maxPriorityFeePerGas", lambda *_: "0xffffffff", lambda port: port.fees().priority_fee == 3),
    "a head far ahead": ("eth_getBlockByNumber", lambda *_: block_json(10**9), lambda port: port.head().number == HEAD),
    "an old head": ("eth_getBlockByNumber", lambda *_: block_json(40), lambda port: port.head().number == HEAD),
    "a head of last year": (
        "eth_getBlockByNumber",
        lambda at, _: {**block_json(HEAD if at == "latest" else int(at, 16)), "timestamp": "0x1"},
        lambda port: port.head().timestamp == 1000 + HEAD,
    ),
    "a cheap block": (
        "eth_getBlockByNumber",
        lambda at, _: {**block_json(HEAD if at == "latest" else int(at, 16)), "baseFeePerGas": "0x0"},
        lambda port: port.fees().base_fee == 5,
    ),
}


@pytest.mark.parametrize(
    ("said", "count", "bloom", "doubted"),
    [
        ("00" * 256, 2, b"\xff" * 256, True),
        ("00" * 256, 3, b"\xff" * 256, False),
        ("", 2, b"", True),
        (None, 3, b"", False),
    ],
    ids=["zeros, two", "zeros, three", "empty", "missing"],
)
@pytest.mark.parametrize("first", [0, 1])
def test_several__one_announces_no_log_and_another_does__it_hides_none_and_is_no_liar(
    three: list[Provider], first: int, said: str | None, count: int, bloom: bytes, doubted: bool
) -> None:
    """There are providers that fill no blooms: one of two stopped a worker so, one of three was taken for a liar."""
    for number, one in enumerate(three):
        told = "ff" * 256 if number != first else said
        field = {"logsBloom": None if told is None else "0x" + told}
        one.on(
            "eth_getBlockByNumber",
            lambda at, _, field=field: {**block_json(HEAD if at == "latest" else int(at, 16)), **field},
        )
    heard: list[str] = []
    port = chain(*three[:count], on_fault=lambda name, why: heard.append(why))
    assert port.head().bloom == bloom and port.block(7).bloom == bloom and heard == []  # type: ignore[union-attr]
    assert port.head().doubted is doubted, "what no more than half announce is no reason to wait for a log"


def read_logs(port: RpcChain) -> list[Any]:
    return port.logs([ADDRESS], from_block=1, to_block=9)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("lie", LIES)
def test_three__one_lies__the_other_two_are_believed(three: list[Provider], lie: str, first: int) -> None:
    method, answer, holds = LIES[lie]
    three[first].on(method, answer)
    assert holds(chain(*three))


def test_three__one_is_outvoted__is_set_aside_by_name(three: list[Provider]) -> None:
    three[0].on("eth_call", lambda *_: "0x02")
    heard: list[str] = []
    port = chain(*three, on_fault=lambda name, why: heard.append(f"{name} {why}"))
    port.call(CALL, b"\1" * 32)
    assert port.counts["outvoted"] == 1 and len(heard) == 1
    assert heard[0].startswith(three[0].url.partition("/v2")[0]) and "contradicts the others about eth_call" in heard[0]
    port.call(CALL, b"\1" * 32)
    assert three[0].counts["eth_call"] == 1


def test_estimate_gas__most_refuse_and_one_has_a_number__is_refused(three: list[Provider]) -> None:
    """A number alone would have a call signed for that the chain refuses."""
    for one in three[:2]:
        one.on("eth_call", refuses)
        one.on("eth_estimateGas", refuses)
    with pytest.raises(RefusedError, match="not open"):
        chain(*three).estimate_gas(CALL, ADDRESS)


def test_three__two_fail_and_one_answers__it_is_believed(three: list[Provider]) -> None:
    def down(*_: Any) -> Any:
        raise Http(500)

    for one in three[:2]:
        for method in ("eth_call", "eth_getBlockByNumber", "eth_getLogs"):
            one.on(method, down)
    port = chain(*three)
    assert port.head().number == HEAD and port.call(CALL) == b"\1" and len(read_logs(port)) == 1


def test_two__contradict_each_other__is_no_quorum_that_names_both(three: list[Provider]) -> None:
    three[1].on("eth_call", lambda *_: "0x02")
    with pytest.raises(ChainError) as caught:
        chain(*three[:2]).call(CALL, b"\1" * 32)
    assert caught.value.code == "NO_QUORUM" and caught.value.retryable
    assert all(one.url.partition("/v2")[0] in caught.value.message for one in three[:2])
    assert "third" in caught.value.hint


NOW = 1000 + HEAD + 2
"""A wall clock by which the newest block of `block_json` is two seconds old."""


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize(("first", "ahead"), [(0, 65), (1, 65), (1, 10_000)])
def test_two__one_names_a_block_far_ahead__is_not_believed_alone(
    three: list[Provider], first: int, ahead: int, down: bool
) -> None:
    """Profit: by a height alone, a liar would have the honest one set aside, and be the only one that is asked."""
    liar, third, heard = three[first], three[2], list[str]()
    for height in (HEAD + ahead, NOW - 1000):  # with a time to match, or with the time that it is
        far = block_json(HEAD + ahead) | {"timestamp": hex(1000 + height)}
        liar.on("eth_getBlockByNumber", lambda at, _, far=far: far if at == "latest" else block_json(int(at, 16)))
        liar.on("eth_call", lambda *_: "0x02")
        if down:
            third.on("eth_getBlockByNumber", lambda *_: _down())
        port = chain(*three[: 2 + down], wall=lambda: float(NOW), on_fault=lambda name, why: heard.append(name))
        for _ in range(3):
            port.begin_cycle()
            with pytest.raises(ChainError, match=f"{HEAD + ahead}") as caught:
                port.head()
            assert caught.value.code == "NO_QUORUM" and "third" in caught.value.hint
        assert set(heard) <= {third.url.partition("/v2")[0]}


def _down() -> Any:
    raise Http(500)


@pytest.mark.parametrize("count", [2, 3])
def test_two__one_stands_still__is_told_by_the_time_of_its_newest_block(three: list[Provider], count: int) -> None:
    three[0].on("eth_getBlockByNumber", lambda at, _: block_json(HEAD - 65 if at == "latest" else int(at, 16)))
    heard: list[str] = []
    port = chain(*three[:count], wall=lambda: float(NOW), on_fault=lambda name, why: heard.append(why))
    assert port.head().number == HEAD
    assert heard == ["its newest block is 65 behind that of the others"]


def test_two__both_stand_still_or_the_clock_is_wrong__is_no_quorum(three: list[Provider]) -> None:
    three[0].on("eth_getBlockByNumber", lambda at, _: block_json(HEAD - 65 if at == "latest" else int(at, 16)))
    with pytest.raises(ChainError) as caught:
        chain(*three[:2], wall=lambda: float(NOW + 3600)).head()
    assert caught.value.code == "NO_QUORUM"


def test_call__the_newest_block__is_the_one_that_all_know_by_its_hash(three: list[Provider]) -> None:
    three[2].on("eth_getBlockByNumber", lambda at, _: block_json(HEAD - 1 if at == "latest" else int(at, 16)))
    seen: list[Any] = []
    three[0].on("eth_call", lambda tx, at: seen.append(at) or "0x01")
    chain(*three).call(CALL)
    assert seen == [{"blockHash": block_json(HEAD)["hash"], "requireCanonical": True}]


def says_nothing_of_tips(*_: Any) -> Any:
    raise Rpc(-32601, "the method eth_maxPriorityFeePerGas does not exist/is not available")


@pytest.mark.parametrize("tip", [0, 10**18])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_fees__one_lies_and_two_do_not_serve_the_question__the_usual_tip(
    three: list[Provider], tip: int, first: int
) -> None:
    """The profit test: a builder's provider would name the tip that the builder gets; silence is no consent."""
    for one in three:
        one.on("eth_maxPriorityFeePerGas", says_nothing_of_tips)

    def names_a_tip(asked: Any) -> None:
        asked.say(hex(tip)) if asked.method == "eth_maxPriorityFeePerGas" else asked.forward()

    with lying(three[first].url, names_a_tip) as liar:
        urls = [one.url for one in three]
        urls[first] = liar.url
        port = RpcChain(urls, timeout=2.0)
        assert port.fees().priority_fee == 10**6 and liar.counts["eth_maxPriorityFeePerGas"] == 1
        assert RpcChain([liar.url], timeout=2.0).fees().priority_fee == tip, "alone it is believed"


def test_fees__one_of_two_does_not_serve_the_question__the_smaller_tip(three: list[Provider]) -> None:
    three[0].on("eth_maxPriorityFeePerGas", says_nothing_of_tips)
    three[1].on("eth_maxPriorityFeePerGas", lambda *_: hex(10**18))
    assert chain(*three[:2]).fees().priority_fee == 10**6
    assert chain(*three[1:]).fees().priority_fee == 3


def test_receipt__one_hides_it__the_others_have_it(three: list[Provider]) -> None:
    tx_hash = b"\7" * 32
    for one in three[1:]:
        one.on("eth_getTransactionReceipt", lambda _: receipt_json(tx_hash))
    found = chain(*three).receipt(tx_hash)
    assert found is not None and found.ok


def test_receipt__one_says_that_it_failed__is_outvoted(three: list[Provider]) -> None:
    tx_hash = b"\7" * 32
    for i, one in enumerate(three):
        one.on("eth_getTransactionReceipt", lambda _, ok=i > 0: receipt_json(tx_hash, ok=ok))
    found = chain(*three).receipt(tx_hash)
    assert found is not None and found.ok


TX = b"\7" * 32


def of_block(number: int, **more: Any) -> dict[str, Any]:
    return receipt_json(TX) | {"blockNumber": hex(number), "blockHash": block_json(number)["hash"], **more}


def behind(provider: Provider, blocks: int) -> None:
    """Have a provider's newest block be older than that of the others."""
    provider.on("eth_getBlockByNumber", lambda at, _: block_json(HEAD - blocks if at == "latest" else int(at, 16)))


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("ahead", [0, 1, 64])
def test_receipt__one_invents_it__is_outvoted(three: list[Provider], first: int, ahead: int) -> None:
    """Profit: of what honest providers do not have, one lie would be the only vote, and its gas the day's budget."""
    behind(three[first], -ahead)
    three[first].on("eth_getTransactionReceipt", lambda _: of_block(3))
    heard: list[str] = []
    assert chain(*three, on_fault=lambda name, why: heard.append(f"{name} {why}")).receipt(TX) is None
    assert all(one.startswith(three[first].url.partition("/v2")[0]) for one in heard)
    # Where the two that are believed were asked first, the liar was not asked at all.
    assert len(heard) == (first < 2)


@pytest.mark.parametrize("invented", [True, False])
@pytest.mark.parametrize("first", [0, 1, 2])
def test_receipt__one_lies_while_another_lags__is_open(three: list[Provider], first: int, invented: bool) -> None:
    """Profit: "there is none" is as dear as a lie: who believes it too early sends what it has sent once more."""
    behind(three[(first + 1) % 3], 1)
    for i, one in enumerate(three):
        told = (i == first) == invented and i != (first + 1) % 3
        one.on("eth_getTransactionReceipt", lambda _, told=told: of_block(HEAD) if told else None)
    port = chain(*three)
    with pytest.raises(ChainError) as caught:
        port.receipt(TX)
    assert caught.value.code == "NO_QUORUM" and caught.value.retryable
    three[(first + 1) % 3].on("eth_getTransactionReceipt", lambda _: None if invented else of_block(HEAD))
    behind(three[(first + 1) % 3], 0)
    port.begin_cycle()
    assert (port.receipt(TX) is None) is invented


@pytest.mark.parametrize("first", [0, 1, 2])
def test_receipt__one_names_another_price__is_outvoted_and_set_aside(three: list[Provider], first: int) -> None:
    """Profit: what a transaction cost counts towards the day's budget, and a lie about it would pass every day."""
    for one in three:
        price = 7 if one is three[first] else 2
        one.on("eth_getTransactionReceipt", lambda _, price=price: of_block(HEAD, effectiveGasPrice=hex(price)))
    heard: list[str] = []
    port = chain(*three, on_fault=lambda name, why: heard.append(name))
    found = port.receipt(TX)
    assert found is not None and found.gas_price == 2
    assert set(heard) <= {three[first].url.partition("/v2")[0]} and len(heard) == (first < 2)


def test_receipt__of_a_block_that_two_do_not_have__is_not_yet_and_nobodys_fault(three: list[Provider]) -> None:
    behind(three[0], -1)
    three[0].on("eth_getTransactionReceipt", lambda _: of_block(HEAD + 1))
    heard: list[str] = []
    port = chain(*three, on_fault=lambda name, why: heard.append(why))
    assert port.receipt(TX) is None
    for one in three:
        behind(one, -1)
        one.on("eth_getTransactionReceipt", lambda _: of_block(HEAD + 1))
    port.begin_cycle()
    assert port.receipt(TX) is not None and heard == []


def test_receipt__one_that_has_the_block_says_null_for_a_moment__is_not_set_aside(three: list[Provider]) -> None:
    for one in three[1:]:
        one.on("eth_getTransactionReceipt", lambda _: of_block(3))
    heard: list[str] = []
    assert chain(*three, on_fault=lambda name, why: heard.append(why)).receipt(TX) is not None and heard == []


def test_receipt__one_of_two_invents_it__is_no_quorum(three: list[Provider]) -> None:
    three[0].on("eth_getTransactionReceipt", lambda _: of_block(3))
    with pytest.raises(ChainError) as caught:
        chain(*three[:2]).receipt(TX)
    assert caught.value.code == "NO_QUORUM"


def test_transaction__one_invents_it__is_outvoted(three: list[Provider]) -> None:
    """Profit: what somebody knows is not given up, so that a nonce that another program used would be waited for."""
    fields = {"nonce": "0x0", "value": "0x0", "input": "0x", "gas": "0x5208", "gasPrice": "0x1", "to": ADDRESS}
    for one in three:
        one.on("eth_getTransactionByHash", lambda _: None)
    three[0].on("eth_getTransactionByHash", lambda _: {"hash": hex_of(TX), "from": ADDRESS, **fields})
    assert chain(*three).transaction(TX) is None


@pytest.mark.parametrize("beyond", [{"gasUsed": hex(21_001)}, {"effectiveGasPrice": hex(10)}])
def test_receipt__beyond_what_was_signed__is_its_providers_lie(three: list[Provider], beyond: dict[str, str]) -> None:
    for one in three:
        one.on("eth_getTransactionReceipt", lambda _: of_block(3))
    three[0].on("eth_getTransactionReceipt", lambda _: of_block(3, **beyond))
    found = chain(*three[:2]).receipt(TX, signed=Signed(21_000, 9, 1))
    assert found is not None and (found.gas_used, found.gas_price) == (21_000, 1)
    with pytest.raises(ChainError) as caught:
        chain(three[0]).receipt(TX, signed=Signed(21_000, 9, 1))
    assert caught.value.code == "RPC_LIES" and caught.value.retryable and "signed for" in caught.value.message


def test_send__the_only_provider_tells_of_endless_gas__the_budget_of_the_day_stays(tmp_path: Path) -> None:
    """Profit: a rival that serves the RPC would have a worker's beats wait a day, until its leases are over."""
    need_anvil()

    def tells_of_endless_gas(asked: liars.Asked) -> None:
        if asked.method == "eth_getTransactionReceipt" and (true := asked.truth()) is not None:
            asked.say(true | {"gasUsed": hex(2**62), "effectiveGasPrice": hex(2**62)})
        else:
            asked.forward()

    account = Account.from_key(b"\x11" * 32)
    with bare_chain() as url, lying(url, tells_of_endless_gas) as liar:
        honest = RpcChain([url])
        honest.rpc("anvil_setBalance", account.address, hex(10**18))
        port = RpcChain([liar.url], attempts=1)
        place = {"chain_id": 31337, "genesis_hash": honest.genesis_hash(), "address": account.address}
        journal = TxJournal(tmp_path / "tx.db", **place)  # type: ignore[arg-type]
        config = SenderConfig(max_fee=10**11, day_budget=10**17, timeout=0.5, poll=0.05)
        sender = Sender(port, account, journal, config)
        call = Call(ADDRESS, b"", 0, "beat")
        with pytest.raises(ChainError) as caught:
            sender.send(call, key="beat/1")
        assert caught.value.code == "TX_PENDING" and journal.spent() < config.day_budget
        liar.lies = [liars.honest]
        first, second = sender.send(call, key="beat/1"), sender.send(call, key="beat/2")
        assert first.gas_used == second.gas_used == 21_000 and journal.spent() == first.fee + second.fee
        journal.close()


def test_receipt__of_another_transaction__is_its_providers_failure(three: list[Provider]) -> None:
    three[0].on("eth_getTransactionReceipt", lambda _: receipt_json(b"\1" * 32))
    assert chain(*three).receipt(b"\7" * 32) is None
    with pytest.raises(ChainError) as caught:
        chain(three[0]).receipt(b"\7" * 32)
    assert caught.value.code == "RPC_BROKEN"


def test_send_raw__one_keeps_it_back__the_others_have_it(three: list[Provider]) -> None:
    fields = {"nonce": 0, "gas": 21_000, "gasPrice": 1, "to": Account.create().address, "value": 0, "chainId": 31337}
    raw = bytes(Account.create().sign_transaction(fields).raw_transaction)
    sent: list[str] = []
    three[0].on("eth_sendRawTransaction", lambda data: hex_of(keccak(raw)))
    for one in three[1:]:
        one.on("eth_sendRawTransaction", lambda data: sent.append(data) or hex_of(keccak(raw)))
    assert chain(*three).send_raw(raw) == keccak(raw)
    assert sent == [hex_of(raw)] * 2


def test_send_raw__one_takes_it_and_others_have_it_already__is_sent(three: list[Provider]) -> None:
    def known(_: str) -> Any:
        raise Rpc(-32000, "already known")

    for one in three[1:]:
        one.on("eth_sendRawTransaction", known)
    three[0].on("eth_sendRawTransaction", lambda data: hex_of(keccak(b"\1")))
    assert chain(*three).send_raw(b"\1") == keccak(b"\1")


def test_send_raw__most_say_that_it_is_used__is_not_believed_to_wait(three: list[Provider]) -> None:
    def says(text: str) -> Any:
        def answer(_: str) -> Any:
            raise Rpc(-32000, text)

        return answer

    for one, text in zip(three, ("already known", "nonce too low", "nonce too low: next 5"), strict=True):
        one.on("eth_sendRawTransaction", says(text))
    with pytest.raises(ChainError) as caught:
        chain(*three).send_raw(b"\1")
    assert caught.value.code == "NONCE_TOO_LOW"


def test_send_raw__hash_of_another_transaction__is_its_providers_failure(three: list[Provider]) -> None:
    three[0].on("eth_sendRawTransaction", lambda data: hex_of(b"\1" * 32))
    with pytest.raises(ChainError) as caught:
        chain(three[0]).send_raw(b"\1")
    assert caught.value.code == "RPC_BROKEN"


@pytest.mark.parametrize(
    "lie", [lambda q: [log_json(3), log_json(3)], lambda q: [{**log_json(3), "topics": [hex_of(b"\2" * 32)]}]]
)
def test_logs__one_twice_or_of_another_topic__is_no_answer(three: list[Provider], lie: Any) -> None:
    three[0].on("eth_getLogs", lie)
    with pytest.raises(ChainError) as caught:
        chain(three[0]).logs([ADDRESS], [b"\1" * 32], from_block=1, to_block=9)
    assert caught.value.code == "RPC_BROKEN"


def test_logs__one_serves_more_at_once_than_the_others__is_not_believed_alone(three: list[Provider]) -> None:
    def small(query: dict[str, Any]) -> Any:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        if last - first >= 4:
            raise Rpc(-32005, "query returned more than 10000 results")
        return [log_json(n) for n in range(first, last + 1)]

    three[0].on("eth_getLogs", lambda q: [])
    for one in three[1:]:
        one.on("eth_getLogs", small)
    assert [log.block_number for log in read_logs(chain(*three))] == list(range(1, 10))


def test_verified_once__another_chain_later__may_pass(three: list[Provider]) -> None:
    clock = Clock()
    port = chain(three[0], clock=clock, chain_id=31337)
    port.head()

    def down(*_: Any) -> Any:
        raise Http(500)

    three[0].on("eth_getBlockByNumber", down)
    three[0].on("eth_chainId", lambda: "0x1")
    with pytest.raises(ChainError) as caught:
        port.head()
    assert caught.value.retryable, "a running program is not ended by it"
    three[0].on("eth_chainId", lambda: "0x7a69")
    three[0].on("eth_getBlockByNumber", lambda *_: block_json(HEAD))
    clock.now += 600
    assert port.head().number == HEAD


def test_one_serves_another_chain_while_the_other_is_down__may_pass(three: list[Provider]) -> None:
    def down(*_: Any) -> Any:
        raise Http(500)

    three[0].on("eth_chainId", lambda: "0x1")
    three[1].on("eth_chainId", down)
    with pytest.raises(ChainError) as caught:
        chain(*three[:2], chain_id=31337).head()
    assert caught.value.retryable


def test_failures__again_and_again__grow_the_pause_though_it_answers_in_between(three: list[Provider]) -> None:
    clock, turn = Clock(), [0]

    def every_other(*_: Any) -> Any:
        turn[0] += 1
        if turn[0] % 2:
            raise Http(500)
        return "0x01"

    three[0].on("eth_call", every_other)
    port = chain(*three, clock=clock)
    for _ in range(2_000):
        clock.now += 1
        port.begin_cycle()
        port.call(CALL, b"\1" * 32)
    assert three[0].counts["eth_call"] < 60


def test_slow__each_answer_in_time_but_never_a_cycle__is_set_aside(three: list[Provider]) -> None:
    clock, heard = Clock(), []

    def slowly(*_: Any) -> str:
        clock.now += module.PATIENCE_SECONDS + 0.5
        return "0x01"

    three[0].on("eth_call", slowly)
    port = chain(*three[:2], clock=clock, on_fault=lambda name, why: heard.append(why))
    for _ in range(40):
        port.call(CALL, b"\1" * 32)
    assert heard == ["it answered 6 s too slowly in a minute"]
    assert three[0].counts["eth_call"] == 11
