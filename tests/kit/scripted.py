"""A market on the scripted chain of `tests.kit.fake_chain`: its contracts answer what a test lets them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from eth_abi.abi import encode
from eth_account import Account
from eth_utils.address import to_checksum_address

from hearth.chain.port import Block, Call
from hearth.market.abi import codec
from hearth.market.calls import token_call
from hearth.market.events import JobPosted, OfferChanged, topic_of
from hearth.market.immutables import said_of
from hearth.market.manifest import Named
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol import formulas, words
from hearth.protocol.types import ZERO_ADDRESS, JobId, NodeId, Offer, Terms
from hearth.protocol.units import Asset
from tests.kit import build
from tests.kit.fake_chain import Effect, Event, FakeChain

OWNER: Final = Account.from_key(b"\x51" * 32)
"""Whose nodes name manifests."""


def answer_job_ids(chain: FakeChain, registry: str, chain_id: int) -> None:
    """Let `job_id_of` of a scripted JobRegistry answer as one that was deployed under a chain id."""

    def job_id_of(call: Call, block: Block) -> bytes:
        told = codec("JobRegistry").decode_input(call.data)
        assert told is not None
        return formulas.job_id_of_words(chain_id, registry, told[1]["terms"])

    chain.on_call(registry, codec("JobRegistry").selector("job_id_of"), job_id_of)


def answer_checks(chain: FakeChain, network: Network, chain_id: int) -> None:
    """Let scripted contracts, and a token, answer all that `Market.check` asks, deployed under a chain id."""
    answer_job_ids(chain, network.jobs, chain_id)
    answer_word(chain, network.jobs, codec("JobRegistry").selector("RULES"), int(network.rules, 16))
    for contract, getter, value in said_of(network):
        answer_word(chain, network.contracts[contract], codec(contract).selector(getter), value)
    if network.asset.address is not None:
        answer_word(chain, network.asset.address, token_call("decimals"), network.asset.decimals)


def answer_word(chain: FakeChain, address: str, selector: bytes, value: int) -> None:
    """Let a view without arguments answer with a word."""
    chain.on_call(address, selector, lambda call, block: encode(["uint256"], [value]))


OVERVIEW: Final = (
    "(uint256,uint256,uint256,address,uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256,uint256)"
)
"""What Lens.overview returns."""


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

    def tell_end(self, posted: int, *, ahead: int = 0) -> None:
        """Let Lens tell the word of JobRegistry.posted, and that contracts see numbers of blocks so far `ahead`."""

        def overview(call: Call, block: Block) -> bytes:
            here = (self.network.chain_id, block.number + ahead, block.timestamp, ZERO_ADDRESS)
            return encode([OVERVIEW], [(*here, 0, 0, posted, 0, self.network.policy, 0, 0, 0, 0, 0)])

        self.on("Lens", "overview", overview)

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

    def name_manifest(
        self, node: int, document: bytes, *, digest: bytes | None = None, carried: bool = True, inside: bytes = b""
    ) -> Named:
        """Mine the call by which a node names a manifest, and return what it named; unless told not to, it carries it.

        `digest` is another one than the document's; `inside` is what a wallet's own call has before the owner's.
        """
        named = digest or hashlib.sha256(document).digest()
        call = self.market.calls.update_offer(NodeId(node), Offer(slots=1), named, document if carried else b"")
        data = inside + call.data + bytes(40 if inside else 0)
        offer = int.from_bytes(call.data[36:68], "big")
        told = Event(
            self.network.nodes,
            (topic_of(OfferChanged), node.to_bytes(32, "big")),
            encode(["uint256", "bytes32"], [offer, named]),
        )
        self.chain.on_send(self.network.nodes, data[:4], lambda tx, block: Effect(events=(told,)))
        self.chain.set_balance(OWNER.address, 10**20)
        fields = {"type": 2, "chainId": self.chain.chain_id(), "nonce": self.chain.nonce(OWNER.address), "value": 0}
        fields |= {"to": to_checksum_address(self.network.nodes), "data": data, "gas": 10**6}
        fields |= {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9}
        tx_hash = self.chain.send_raw(bytes(OWNER.sign_transaction(fields).raw_transaction))
        self.chain.mine()
        return Named(NodeId(node), named, tx_hash)
