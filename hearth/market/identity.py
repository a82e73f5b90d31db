"""Whether the contracts of a network file are on the chain as it says, and whether their code is these sources'."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from hearth.base.errors import ChainError, RefusedError
from hearth.chain.port import Call, ChainPort
from hearth.market.abi import codec
from hearth.market.calls import token_call
from hearth.market.immutables import LAYOUT, immutables_in, in_words, is_ours, said_of
from hearth.market.network import Network
from hearth.market.views import values_of
from hearth.protocol import formulas
from hearth.protocol.words import TermsWords

NO_TERMS: Final[TermsWords] = (0, bytes(32), 0, 0, 0, 0, 0, 0, bytes(32))
"""Terms without any, whose id tells with which chain id ids are made."""


class Identity:
    """Compare a network file with its chain."""

    def __init__(self, port: ChainPort, network: Network) -> None:
        """Read nothing yet."""
        self.port = port
        self.network = network
        self._unknown: dict[str, str] | None = None
        """The hash of each contract's code that is not ours, by its name, once `check` has read the code."""

    def check(self) -> None:
        """Refuse a wrong chain, contracts whose code is not what the network file says, those that were deployed
        under another chain id than it says, a Rules that posts do not go by, and another asset, number of its decimals
        or parameter of nodes than the chain has.

        Of the code alone `check_code` says whether it is these sources'. Raises ChainError with code
        WRONG_CHAIN or WRONG_CONTRACTS, neither of which a retry helps.
        """
        from eth_utils.crypto import keccak

        network = self.network
        served = self.port.chain_id()
        if served != network.chain_id or self.port.genesis_hash() != network.genesis_hash:
            raise ChainError(
                f"the RPC serves chain {served} with another genesis or id than network {network.name} "
                f"({network.chain_id})",
                code="WRONG_CHAIN",
                retryable=False,
                hint="use --network NAME or --rpc URL",
            )
        codes: dict[str, bytes] = {}
        for name, address in network.contracts.items():
            code = codes[name] = self.port.code(address)
            expected = network.code_hashes.get(name)
            if not code or (expected is not None and keccak(code) != expected):
                what = "holds other code than" if code else "holds no code, unlike"
                raise ChainError(
                    f"{name} at {address} {what} the one that network {network.name} names",
                    code="WRONG_CONTRACTS",
                    retryable=False,
                    hint="use --network NAME or --rpc URL",
                )

        self._check_job_ids()
        self._check_rules()
        self._check_immutables(codes)
        self._check_decimals()
        self._unknown = {name: f"0x{keccak(code).hex()}" for name, code in codes.items() if not is_ours(name, code)}

    def check_code(self, known: Collection[str]) -> None:
        """Refuse contracts whose code is not these sources', but for code whose hash is `known`.

        A network file says itself which code its contracts have: it is no witness of what that code does. Raises
        ChainError UNKNOWN_CODE, and what `check` raises.
        """
        if self._unknown is None:
            self.check()
        found = {name: code for name, code in (self._unknown or {}).items() if code not in known}
        if found:
            named = ", ".join(f"{name} ({code})" for name, code in found.items())
            raise ChainError(
                f"network {self.network.name} has contracts of code that this version does not know, and what is paid "
                f"to them may be lost: {named}",
                code="UNKNOWN_CODE",
                retryable=False,
                hint="where you know that code, name it: " + " ".join(f"--code {code}" for code in found.values()),
            )

    def _check_job_ids(self) -> None:
        """Compare an id that JobRegistry makes with the same one of our own; terms that nobody could post will do."""
        network = self.network
        (found,) = values_of(self.port, network, "JobRegistry", "job_id_of", NO_TERMS)
        if found != formulas.job_id_of_words(network.job_chain_id, network.jobs, NO_TERMS):
            raise ChainError(
                f"JobRegistry of network {network.name} makes ids of jobs with another chain id than "
                f"{network.job_chain_id}: where the chain has changed its id since the deployment, the network file "
                'must name the former one as "deployed_chain_id"',
                code="WRONG_CONTRACTS",
                retryable=False,
                hint="use --network FILE",
            )

    def _check_rules(self) -> None:
        """Compare the Rules that JobRegistry asks with the file's: a second one of the same pair has the same code."""
        network = self.network
        (rules,) = values_of(self.port, network, "JobRegistry", "RULES")
        found = str(rules).lower()
        if found != network.rules:
            raise ChainError(
                f"JobRegistry of network {network.name} goes by the Rules at {found}, not by those at {network.rules}",
                code="WRONG_CONTRACTS",
                retryable=False,
                hint="use --network FILE",
            )

    def _check_immutables(self, codes: Mapping[str, bytes]) -> None:
        """Compare the asset and the parameters of nodes with what the contracts were made with."""
        found = {name: immutables_in(name, codes[name]) for name in LAYOUT}
        for contract, getter, wanted in said_of(self.network):
            known, label = found[contract], f"{contract}.{getter}"
            call = Call(self.network.contracts[contract], codec(contract).encode(getter), label=label)
            value = self._word_of(call) if known is None else known[getter]
            if value != wanted:
                raise self._unlike(label, in_words(getter, value), in_words(getter, wanted))

    def _check_decimals(self) -> None:
        """Compare a token's decimals with the file's: every amount is read and shown by them."""
        asset = self.network.asset
        if asset.address is None:
            return
        own = self._word_of(Call(asset.address, token_call("decimals"), label="token.decimals"))
        if own != asset.decimals:
            what = f"decimals of the token {asset.address}"
            raise self._unlike(what, in_words("decimals", own), str(asset.decimals))

    def _word_of(self, call: Call) -> int | None:
        """Return what a view answers, None for what is no contract, refuses, or says less than a word."""
        try:
            data = self.port.call(call)
        except RefusedError:
            return None
        return int.from_bytes(data[:32], "big") if len(data) >= 32 else None

    def _unlike(self, what: str, found: str, wanted: str) -> ChainError:
        return ChainError(
            f"{what}: {found} on the chain, {wanted} in the file of network {self.network.name}",
            code="WRONG_CONTRACTS",
            retryable=False,
            hint="use --network FILE",
        )
