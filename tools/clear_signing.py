"""Write the descriptors by which a wallet shows what it signs (ERC-7730) into docs/erc7730, or check them.

    python -m tools.clear_signing           write them
    python -m tools.clear_signing --check   exit 1 where one is stale
    python -m tools.clear_signing --network FILE --folder FOLDER   write those of one deployment

One file a contract: the ABI of the functions that people sign, and of each what is shown. A lane of a packed word is a
slice of its bytes, which the lane table gives; a lane that does not begin and end with a byte cannot be shown. Those of
docs/erc7730 name no deployment, so no wallet reads them: wallets ask a registry, of verified public deployments, and
there is none. They hold for markets of the native coin.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from eth_utils.address import to_checksum_address

from hearth.market.abi import codec, type_of
from hearth.market.network import Network, load_network
from hearth.protocol.words import LIMITS, MONEY, OFFER, SUBMITTER, Word, shift_of, width_of
from tools.vyper_files import ROOT

FOLDER: Final = ROOT / "docs" / "erc7730"
SCHEMA: Final = "https://eips.ethereum.org/assets/eip-7730/erc7730-v1.schema.json"
WORD_BYTES: Final = 32
Field = Mapping[str, Any]

AMOUNT: Final[Field] = {"format": "amount"}
DATE: Final[Field] = {"format": "date", "params": {"encoding": "timestamp"}}
DURATION: Final[Field] = {"format": "duration"}
RAW: Final[Field] = {"format": "raw"}
RATE: Final[Field] = {"format": "unit", "params": {"base": "wei/s", "decimals": 6}}
"""Base units x 1,000,000 a second."""
PERSON: Final[Field] = {"format": "addressName", "params": {"types": ["eoa", "wallet", "contract"]}}


def lane(path: str, layout: Word, name: str) -> str:
    """Return the path of a lane: a slice of the word's bytes, the first of which is its most significant.

    Raises ValueError for a lane that shares a byte with another.
    """
    shift, width = shift_of(layout, name), width_of(layout, name)
    if shift % 8 or width % 8:
        raise ValueError(f"lane {name} shares a byte with another")
    end = WORD_BYTES - shift // 8
    return f"{path}.[{end - width // 8}:{end}]"


def _field(path: str, label: str, shown: Field) -> dict[str, Any]:
    return {"path": path, "label": label, **shown}


SHOWN: Final[Mapping[str, Mapping[str, tuple[str, list[dict[str, Any]]]]]] = {
    "JobRegistry": {
        "post": (
            "Post a compute job",
            [
                _field("@.value", "Locked for it", AMOUNT),
                _field(lane("terms.submitter", SUBMITTER, "account"), "Submitter", PERSON),
                _field(lane("terms.money", MONEY, "ceiling"), "Pays at most", RATE),
                _field(lane("terms.money", MONEY, "keeper_fee"), "Keeper's fee", AMOUNT),
                _field(lane("terms.limits", LIMITS, "max_seconds"), "Runs at most", DURATION),
                _field(lane("terms.limits", LIMITS, "units"), "Units", RAW),
                _field(lane("terms.limits", LIMITS, "deadline"), "Deadline", DATE),
                _field("terms.spec", "Job file's digest", RAW),
            ],
        ),
        "cancel": (
            "Cancel a compute job",
            [
                _field(lane("terms.submitter", SUBMITTER, "account"), "Submitter", PERSON),
                _field("terms.spec", "Job file's digest", RAW),
                _field("index", "Unit", RAW),
            ],
        ),
    },
    "NodeRegistry": {
        "register": (
            "Register a worker",
            [
                _field("stake", "Stake", AMOUNT),
                _field("operator", "Operator", PERSON),
                _field(lane("offer", OFFER, "ask"), "Asks", RATE),
                _field("manifest", "Manifest's digest", RAW),
            ],
        ),
    },
    "Escrow": {
        "withdraw": ("Withdraw credit", [_field("amount", "Amount", AMOUNT), _field("to", "To", PERSON)]),
    },
}
"""By contract and function: what the call does, and what is shown of it, in this order."""


def descriptor(contract: str, network: Network | None = None) -> dict[str, Any]:
    """Return a contract's descriptor, bound to its deployment in a network where one is given."""
    shown = SHOWN[contract]
    entries = {entry["name"]: entry for entry in codec(contract).abi if entry.get("name") in shown}
    formats = {}
    for name, (intent, fields) in shown.items():
        paths = [field["path"] for field in fields]
        formats[signature(entries[name])] = {
            "$id": name,
            "intent": intent,
            "fields": fields,
            "required": paths,
            "excluded": [
                path for path in leaves(entries[name]["inputs"]) if path not in {_whole(one) for one in paths}
            ],
        }
    bound: dict[str, Any] = {"abi": [entries[name] for name in shown]}
    if network is not None:
        address = to_checksum_address(network.contracts[contract])
        bound["deployments"] = [{"chainId": network.chain_id, "address": address}]
    return {
        "$schema": SCHEMA,
        "context": {"$id": f"Hearth {contract}", "contract": bound},
        "metadata": {"owner": "Hearth"},
        "display": {"formats": formats},
    }


def signature(entry: Mapping[str, Any]) -> str:
    """Return a function's signature with its parameters' names, as paths name them."""
    return f"{entry['name']}({', '.join(_named(one) for one in entry['inputs'])})"


def _named(parameter: Mapping[str, Any]) -> str:
    kind = type_of(parameter)
    if "components" in parameter:
        kind = f"({', '.join(_named(one) for one in parameter['components'])})" + parameter["type"].removeprefix(
            "tuple"
        )
    return f"{kind} {parameter['name']}"


def leaves(parameters: list[dict[str, Any]], before: str = "") -> list[str]:
    """Return the paths of all values of a call; one of a list stands for all of it."""
    found: list[str] = []
    for one in parameters:
        path = before + one["name"] + (".[]" if one["type"].endswith("[]") else "")
        found += leaves(one["components"], f"{path}.") if "components" in one else [path]
    return found


def _whole(path: str) -> str:
    """Return the path of the value that a slice is of."""
    return path.partition(".[")[0]


def render(contract: str, network: Network | None = None) -> str:
    """Return the text of a descriptor; the committed one is of no network."""
    return json.dumps(descriptor(contract, network), indent=2) + "\n"


def file_name(contract: str) -> str:
    """Return a descriptor's file, named as registries name them."""
    return f"calldata-Hearth{contract}.json"


def main(argv: list[str] | None = None) -> int:
    """Write the descriptors, or with --check compare them; exit 1 on a difference."""
    parser = argparse.ArgumentParser(prog="python -m tools.clear_signing", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a descriptor is stale")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--network", type=Path, metavar="FILE", help="bind them to the deployment of a network file")
    options = parser.parse_args(argv)
    folder: Path = options.folder
    network: Network | None = load_network(options.network) if options.network else None
    if network is not None and (folder == FOLDER or network.asset.address is not None):
        parser.error("name another --folder for a deployment, of a market in the native coin")
    wanted = {file_name(contract): render(contract, network) for contract in SHOWN}
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    problems = [name for name in sorted(wanted.keys() | present.keys()) if wanted.get(name) != present.get(name)]
    if options.check:
        for name in problems:
            print(
                f"docs/erc7730/{name} is not what the ABI and the lanes give; run: make clear-signing", file=sys.stderr
            )
        print(f"clear_signing: {len(wanted)} descriptors, {len(problems)} problems")
        return 1 if problems else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in present.keys() - wanted.keys():
        (folder / name).unlink()
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    print(f"clear_signing: {len(wanted)} descriptors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
