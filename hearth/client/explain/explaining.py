"""What a wallet is asked to sign, told on another machine than the one that asks it: `hearth job explain`.

It reads a call's data, or a file of prepared calls, by the ABIs and the network file alone. No RPC is asked: what it
says hangs on nobody's word. A file is held to what the page holds it to (web/src/core/prepared.ts).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum, Flag
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import RefusedError, UsageError
from hearth.base.text import brief, one_line
from hearth.base.untrusted_json import read_json
from hearth.client.explain.call_summary import summarize
from hearth.client.explain.calldata import Read, addresses, four_words, read_call, terms_in
from hearth.client.explain.money_moves import moves
from hearth.protocol.units import NATIVE, format_amount

if TYPE_CHECKING:
    from hearth.client.reports import ExplainedCall, Explanation
    from hearth.market.network import Network

MOST_TEXT: Final = 1 << 20
"""Characters of what is read, as in the page; of a file no more bytes than one above that are read."""
MOST_CALLS: Final = 16
_DATA: Final = re.compile("0x(?:[0-9a-fA-F]{2}){4,}")
_ADDRESS: Final = re.compile("0x[0-9a-fA-F]{40}")
_AMOUNT: Final = re.compile("0|[1-9][0-9]{0,77}")
_ACTION: Final = re.compile("[a-z][a-z_. ]{0,31}")
_MOST_KEY: Final = 256
_FIELDS: Final = frozenset(("schema", "action", "chain_id", "from", "to", "data", "value", "approve", "key"))


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that somebody is asked to sign: of data alone what goes with it is not known.

    `key` is what its file calls the effect.
    """

    read: Read
    value: int | None = None
    approve: int | None = None
    key: str | None = None


def explain(text: str, network: Network) -> Explanation:
    """Return what a text asks somebody to sign: a call's data as 0x-hex, or a file of --print-tx or the page.

    Raises UsageError BAD_TX for anything else, and for a file that pays otherwise than its calls take or does what is
    none of its sender's; RefusedError WRONG_MARKET for another market's.
    """
    try:
        calls = [told for _, told in read_calls(text, network)]
    except ValueError as error:
        raise UsageError(
            f"this is no call that can be explained: {brief(one_line(str(error)), 500)}",
            hint="give the data that the wallet shows, as 0x and hex digits, or the file; --network names the market",
            code="BAD_TX",
        ) from error
    return {
        "schema": "hearth.explanation/1",
        "network": network.name,
        "chain_id": network.chain_id,
        "calls": calls,
    }


def read_calls(text: str, network: Network) -> list[tuple[Asked, ExplainedCall]]:
    """Return the calls of a text, each with what is said of it. Raises ValueError, RefusedError WRONG_MARKET."""
    return [(one, _explained(one, network)) for one in _asked(text.strip(), network)]


def rows_of(one: ExplainedCall) -> list[tuple[str, str]]:
    """Return what stands below a call's sentence: its job's words, its arguments, its money, its sender."""
    four = [] if one["four_words"] is None else [("four words", one["four_words"])]
    sender = [] if one["from"] is None else [("as", one["from"])]
    return [*four, *((row["name"], row["text"]) for row in one["rows"]), ("moves", one["moves"]), *sender]


def lines_of(what: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return a sentence and what stands below it as lines, the names in a column of their own."""
    width = max(len(name) for name, _ in rows)
    return [what, *(f"  {name:<{width}}  {text}" for name, text in rows)]


def _asked(text: str, network: Network) -> list[Asked]:
    if len(text) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT} characters")
    if text[:2] == "0x":
        if not _DATA.fullmatch(text):
            raise ValueError("it is no hex of whole bytes, or too short for a call")
        return [Asked(read_call(bytes.fromhex(text[2:]), network))]
    found = read_json(text)
    found = found.get("prepared", found) if isinstance(found, dict) else found
    documents = found if isinstance(found, list) else [found]
    if not 0 < len(documents) <= MOST_CALLS:
        raise ValueError(f"it holds {len(documents)} calls, and 1 to {MOST_CALLS} are read")
    asked = [_of_document(one, network) for one in documents]
    if len({one.read.sender for one in asked}) > 1:
        raise ValueError("its calls are for several accounts")
    for one, following in zip(asked, [*asked[1:], None], strict=True):
        if one.read.contract == "token":
            _require_needed(one, following)
    return asked


def _of_document(raw: Any, network: Network) -> Asked:
    if not isinstance(raw, Mapping) or raw.get("schema") != "hearth.tx/1":
        raise ValueError("its schema is not hearth.tx/1")
    if set(raw) != _FIELDS:
        raise ValueError(f"it does not hold {', '.join(sorted(_FIELDS))}, and nothing else")
    _matching(_ACTION, raw, "action")
    if not isinstance(raw["key"], str) or len(raw["key"]) > _MOST_KEY:
        raise ValueError("key is no name of an effect")
    if type(raw["chain_id"]) is not int or not 0 < raw["chain_id"] < 1 << 53:
        raise ValueError("chain_id is no chain's id")
    sender, to = (_matching(_ADDRESS, raw, name).lower() for name in ("from", "to"))
    value, approve = (int(_matching(_AMOUNT, raw, name)) for name in ("value", "approve"))
    data = bytes.fromhex(_matching(_DATA, raw, "data")[2:])
    contract = next((name for name, address in addresses(network).items() if address == to), None)
    if raw["chain_id"] != network.chain_id or contract is None:
        raise RefusedError(
            f"the file is for contract {to} on chain {raw['chain_id']}, not for {network.name}",
            hint="use --network NAME",
            code="WRONG_MARKET",
        )
    asked = Asked(replace(read_call(data, network, contract), sender=sender), value, approve)
    takes = asked.read.takes
    due = (takes, 0) if network.asset.address is None else (0, takes)
    if (value, approve) != due:
        raise ValueError(
            f"it pays {value} and approves {approve}, and {asked.read.function} takes {due[0]} and {due[1]}"
        )
    _require_own(asked)
    return replace(asked, key=raw["key"])


def _matching(form: re.Pattern[str], raw: Mapping[str, Any], name: str) -> str:
    value = raw[name]
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{name} is of no form that --print-tx writes")
    return value


def _require_own(asked: Asked) -> None:
    """Refuse what is not its sender's: a withdrawal of a file pays him, and a job is his. Raises ValueError."""
    given, sender = asked.read.arguments, asked.read.sender
    if asked.read.function == "withdraw" and str(given["to"]).lower() != sender:
        raise ValueError(f"it withdraws to {given['to']}, and a withdrawal pays its owner, {sender}")
    if asked.read.contract == "JobRegistry" and terms_in(given).submitter != sender:
        raise ValueError(f"it is of a job of {terms_in(given).submitter}, and was made for {sender}")


def _require_needed(asked: Asked, following: Asked | None) -> None:
    """Refuse an approval but of what the next call takes, for the contract that takes it. Raises ValueError."""
    spender, amount = str(asked.read.arguments["spender"]).lower(), asked.read.arguments["amount"]
    if following is None or not amount or (amount, spender) != (following.approve, following.read.address):
        raise ValueError(f"it lets {spender} take {amount} of the token, which no call behind it takes")


def _terms_of(read: Read) -> dict[str, str] | None:
    """Return every field of a job's terms by its name, as it stands in the call."""
    if "terms" not in read.arguments:
        return None
    terms = terms_in(read.arguments)
    return {one.name: _plain(getattr(terms, one.name)) for one in fields(terms)}


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Flag):
        return "+".join(str(one.name).lower() for one in type(value) if one in value) or "none"
    if isinstance(value, Enum):
        return value.name.lower()
    if is_dataclass(value):
        return ", ".join(f"{one.name.replace('_', ' ')} {_plain(getattr(value, one.name))}" for one in fields(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _explained(asked: Asked, network: Network) -> ExplainedCall:
    read = asked.read
    told = summarize(read, network)
    coin = network.asset if network.asset.address is None else NATIVE
    pays, approves = (read.takes, 0) if network.asset.address is None else (0, read.takes)
    return {
        "contract": read.contract,
        "address": read.address,
        "function": read.function,
        "from": read.sender,
        "data_bytes": len(read.data),
        "data_hash": "0x" + read.digest.hex(),
        "job": None if told.job is None else "0x" + told.job.hex(),
        "four_words": None if told.job is None else four_words(told.job),
        "what": told.what,
        "rows": [{"name": name, "text": text} for name, text in told.rows],
        "moves": moves(read, network),
        "terms": _terms_of(read),
        "value": None if pays is None else str(pays),
        "value_text": None if pays is None else format_amount(pays, coin),
        "approve": None if approves is None else str(approves),
        "approve_text": format_amount(approves, network.asset) if approves else None,
    }
