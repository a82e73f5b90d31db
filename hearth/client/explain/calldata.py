"""What a call's data says, and nothing beside it: which function of a market's contracts, with which arguments.

Only what the commands and the page prepare is read. Whatever else a contract takes is refused, and so are data that the
ABI would write otherwise, with which two readers could see two calls. Mirrors `decoded` of web/src/core/prepared.ts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hearth.base.errors import StorageError
from hearth.market.abi import Codec, codec
from hearth.market.calls import token_codec
from hearth.market.manifest import read_manifest
from hearth.market.network import Network
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, Terms

Arguments = Mapping[str, Any]


def _nothing(_: Arguments) -> int:
    return 0


CALLS: Final[Mapping[str, Mapping[str, Callable[[Arguments], int]]]] = {
    "JobRegistry": {
        "post": lambda arguments: formulas.escrow_at_post(terms_in(arguments)),
        "cancel": _nothing,
        "accept": _nothing,
    },
    "NodeRegistry": {
        "register": lambda arguments: int(arguments["stake"]),
        "add_stake": lambda arguments: int(arguments["amount"]),
        **dict.fromkeys(("update_offer", "set_ask", "set_operator", "offer_owner", "accept_owner"), _nothing),
        **dict.fromkeys(("exit_start", "exit_cancel", "exit_finish"), _nothing),
    },
    "Escrow": {"withdraw": _nothing},
    "Steward": {
        **dict.fromkeys(("queue", "drop", "drop_previous_policy", "pause"), _nothing),
        **dict.fromkeys(("accept_council", "execute", "accept_governor"), _nothing),
    },
    "token": {"approve": _nothing},
}
"""What is prepared, and what each call takes of the market's asset from its sender, in base units."""
OTHERS: Final[Mapping[str, frozenset[str]]] = {
    "JobRegistry": frozenset(("top_up", "settle", "close", "reclaim", "expire", "unlock")),
    "NodeRegistry": frozenset(("check_liveness",)),
    "Lens": frozenset(("performUpkeep",)),
}
"""What a wallet is asked for by the page alone, and no file holds."""


@dataclass(frozen=True, slots=True)
class Read:
    """One call: `document` is the manifest that stands behind its arguments, None where there is none."""

    contract: str
    address: str
    function: str
    arguments: Arguments
    data: bytes
    document: bytes | None
    sender: str | None = None

    @property
    def takes(self) -> int | None:
        """Return what it takes of the market's asset from its sender, in base units; None where the chain says it."""
        if self.function == "top_up":
            return None
        return CALLS.get(self.contract, {}).get(self.function, _nothing)(self.arguments)

    @property
    def digest(self) -> bytes:
        """Return keccak256 of the data."""
        from eth_utils.crypto import keccak

        return bytes(keccak(self.data))


def addresses(network: Network) -> dict[str, str]:
    """Return the contracts whose calls are read, by name."""
    token = {} if network.asset.address is None else {"token": network.asset.address}
    return {**{name: network.contracts[name] for name in (*CALLS, "Lens") if name != "token"}, **token}


def read_call(data: bytes, network: Network, contract: str | None = None) -> Read:
    """Read a call's data: of a file's contract, or of whichever of this market's has such a function.

    Raises ValueError.
    """
    known = addresses(network)
    for name in known if contract is None else (contract,):
        told = _codec(name).decode_input(data)
        more = OTHERS.get(name, frozenset()) if contract is None else frozenset()
        if told is not None and told[0] in {*CALLS.get(name, ()), *more}:
            function, arguments = told
            document = _behind(data, _codec(name).encode(function, *arguments.values()), arguments.get("manifest"))
            read = Read(name, known[name], function, arguments, data, document)
            if "terms" in arguments:
                terms_in(arguments)
            return read
    whose = "a contract of this market" if contract is None else contract
    raise ValueError(f"its data calls nothing of {whose} that is prepared for a wallet")


def _codec(name: str) -> Codec:
    return token_codec() if name == "token" else codec(name)


def _behind(data: bytes, plain: bytes, manifest: bytes | None) -> bytes | None:
    """Return the document behind a call's arguments, None for nothing. Raises ValueError for anything else."""
    if not data.startswith(plain):
        raise ValueError("its arguments are not written as the contract's ABI writes them")
    document = data.removeprefix(plain)
    if not document:
        return None
    if hashlib.sha256(document).digest() != manifest:
        raise ValueError("there is something else behind its arguments than the manifest that they name")
    try:
        read_manifest(document)
    except StorageError as error:
        raise ValueError("what stands behind its arguments is no manifest, or longer than one") from error
    return document


def terms_in(arguments: Arguments) -> Terms:
    """Return the terms of a call about a job. Raises ValueError for some that no contract takes."""
    try:
        terms = words.unpack_terms(arguments["terms"])
    except (ValueError, TypeError) as error:
        raise ValueError(f"its terms are none: {error}") from error
    if not terms.chunk or not terms.ceiling:
        raise ValueError("its terms are none that a market takes")
    return terms


def job_in(arguments: Arguments, network: Network) -> JobId:
    """Return the job that a call is about, by its terms."""
    return formulas.job_id_of_words(network.job_chain_id, network.jobs, arguments["terms"])


def four_words(job: bytes) -> str:
    """Return the last 44 bits of a job's id as four words of the English list of BIP-39.

    They tell a mistake, and not a forger: see page.md "The independent check".
    """
    from eth_account.hdaccount.mnemonic import get_wordlist

    listed, number = get_wordlist("english"), int.from_bytes(job[-6:], "big")
    return " ".join(listed[number >> at & 0x7FF] for at in (33, 22, 11, 0))
