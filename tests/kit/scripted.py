"""A market on the scripted chain of `tests.kit.fake_chain`: its contracts answer what a test lets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eth_abi.abi import encode

from hearth.chain.port import Block, Call
from hearth.market.abi import codec
from hearth.market.events import JobPosted, topic_of
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, Terms
from hearth.protocol.units import Asset
from tests.kit import build
from tests.kit.fake_chain import Event, FakeChain


def answer_job_ids(chain: FakeChain, registry: str, chain_id: int) -> None:
    """Let `job_id_of` of a scripted JobRegistry answer as one that was deployed under a chain id."""

    def job_id_of(call: Call, block: Block) -> bytes:
        told = codec("JobRegistry").decode_input(call.data)
        assert told is not None
        return formulas.job_id_of_words(chain_id, registry, told[1]["terms"])

    chain.on_call(registry, codec("JobRegistry").selector("job_id_of"), job_id_of)


def answer_checks(chain: FakeChain, network: Network, chain_id: int) -> None:
    """Let a scripted JobRegistry answer all that `Market.check` asks, as one that was deployed under a chain id."""
    answer_job_ids(chain, network.jobs, chain_id)
    rules = encode(["address"], [network.rules])
    chain.on_call(network.jobs, codec("JobRegistry").selector("RULES"), lambda call, block: rules)


class ScriptedMarket:
    """One market without contracts."""

    def __init__(self, asset: Asset = build.NATIVE) -> None:
        self.chain = FakeChain()
        self.network = build.network(self.chain, asset=asset)
        self.market = Market(self.chain, self.network)

    def on(self, contract: str, name: str, answer: Callable[[Call, Block], bytes]) -> None:
        """Let a function of a contract answer from each call."""
        self.chain.on_call(self.network.contracts[contract], codec(contract).selector(name), answer)

    def answer(self, contract: str, name: str, types: list[str], values: list[Any]) -> None:
        """Let a function of a contract answer with these values."""
        self.on(contract, name, lambda call, block: encode(types, values))

    def posted(
        self,
        terms: Terms,
        job: JobId | None = None,
        parents: Sequence[bytes] = (),
        *,
        number: int = 1,
        previous: int = 0,
    ) -> Event:
        """Return the log of a post with its list of parents, under another id than the terms' where `job` says so.

        It is the market's `number`th, after one in the block `previous`.
        """
        submitter = bytes(12) + bytes.fromhex(terms.submitter[2:])
        topics = (topic_of(JobPosted), job or self.market.job_id(terms), submitter)
        data = encode(
            [formulas.TERMS_TYPE, "bytes32[]", "uint256", "uint256"],
            [words.pack_terms(terms), list(parents), number, previous],
        )
        return Event(self.network.jobs, topics, data)
