"""What wallets show of a call (ERC-7730): descriptors of the standard's form, whose paths name the right bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hearth.market.abi import codec
from hearth.market.calls import Calls
from hearth.market.network import save_network
from hearth.protocol import words
from hearth.protocol.types import Offer, Runtime
from hearth.protocol.words import LIMITS
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from tools.clear_signing import FOLDER, SHOWN, descriptor, file_name, lane, leaves, main, signature

PARAMS: Mapping[str, tuple[set[str], set[str]]] = {
    "raw": (set(), set()),
    "amount": (set(), set()),
    "duration": (set(), set()),
    "date": ({"encoding"}, set()),
    "unit": ({"base"}, {"decimals", "prefix"}),
    "addressName": (set(), {"types", "sources"}),
}
"""The formats that are used, and of each the parameters that the standard wants and allows."""
WHO = "0x" + "5b" * 20
OTHER = "0x" + "a1" * 20
DIGEST = bytes(range(32))


def all_formats() -> Iterator[tuple[str, Mapping[str, Any], str, dict[str, Any]]]:
    """Yield of each committed descriptor the contract, itself, and each of its formats."""
    for contract in SHOWN:
        found = json.loads((FOLDER / file_name(contract)).read_text())
        for key, one in found["display"]["formats"].items():
            yield contract, found, key, one


def test_descriptors__committed__are_what_the_abi_and_the_lanes_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(map(file_name, SHOWN))


def test_check__a_stale_descriptor__is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path)]) == 0
    (tmp_path / file_name("Escrow")).write_text("{}")
    (tmp_path / "calldata-Old.json").write_text("{}")

    assert main(["--check", "--folder", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert file_name("Escrow") in said and "calldata-Old.json" in said and file_name("JobRegistry") not in said
    assert main(["--folder", str(tmp_path)]) == 0 and main(["--check", "--folder", str(tmp_path)]) == 0


def test_descriptors__each__has_the_form_of_the_standard() -> None:
    """The rules of the JSON schema of version 1, as far as these descriptors use it."""
    functions = set()
    for contract, found, key, one in all_formats():
        assert set(found) == {"$schema", "context", "metadata", "display"}
        assert set(found["context"]) == {"$id", "contract"} and set(found["context"]["contract"]) == {"abi"}
        assert found["metadata"] == {"owner": "Hearth"} and set(found["display"]) == {"formats"}
        assert set(one) == {"$id", "intent", "fields", "required", "excluded"}
        functions.add(one["$id"])
        (entry,) = [entry for entry in found["context"]["contract"]["abi"] if entry["name"] == one["$id"]]
        assert key == signature(entry) and entry in codec(contract).abi
        paths = [field["path"] for field in one["fields"]]
        assert len(set(paths)) == len(paths) and set(one["required"]) == set(paths)
        assert len({field["label"] for field in one["fields"]}) == len(paths)
        # Each value of the call is shown, in part at least, or is said to be left out.
        shown = {path.partition(".[")[0] for path in paths if not path.startswith("@.")}
        assert shown | set(one["excluded"]) == set(leaves(entry["inputs"])) and not shown & set(one["excluded"])
        for field in one["fields"]:
            assert set(field) - {"params"} == {"path", "label", "format"}
            wanted, allowed = PARAMS[field["format"]]
            assert wanted <= set(field.get("params", {})) <= wanted | allowed
            assert re.fullmatch(r"@\.value|[a-z_]+(\.[a-z_]+)*(\.\[\d+:\d+\])?", field["path"])
    assert functions == {"post", "cancel", "register", "withdraw"}


def value_at(contract: str, data: bytes, value: int, path: str) -> int | bytes | str:
    """Return what a path names in a call, as a wallet reads it; of a slice the number that its bytes are."""
    if path == "@.value":
        return value
    told = codec(contract).decode_input(data)
    assert told is not None
    name, _, part = path.partition(".[")
    found: Any = told[1]
    for step in name.split("."):
        found = found[step] if isinstance(found, dict) else found[[*_names(contract, told[0])].index(step)]
    if not part:
        return found  # type: ignore[no-any-return]
    begin, end = map(int, part.removesuffix("]").split(":"))
    return int.from_bytes(int(found).to_bytes(32, "big")[begin:end], "big")


def _names(contract: str, function: str) -> Iterator[str]:
    """Yield the names of the first argument's parts."""
    entry = next(one for one in codec(contract).abi if one.get("name") == function)
    for part in entry["inputs"][0]["components"]:
        yield part["name"]


def shown(contract: str, function: str, data: bytes, value: int = 0) -> dict[str, Any]:
    """Return what a wallet shows of a call, by label."""
    _, fields = SHOWN[contract][function]
    return {field["label"]: value_at(contract, data, value, field["path"]) for field in fields}


@pytest.fixture
def calls() -> Calls:
    return Calls(build.network(FakeChain()))


def test_post__the_call_of_a_job__is_shown_with_its_own_values(calls: Calls) -> None:
    terms = build.terms(
        submitter=WHO, spec=DIGEST, ceiling=123_456_789, keeper_fee=987_654_321, max_seconds=3_601, units=77,
        deadline=1_900_000_123, salt=5,
    )  # fmt: skip
    call = calls.post(terms)
    found = shown("JobRegistry", "post", call.data, call.value)

    assert found == {
        "Locked for it": call.value,
        "Submitter": int(WHO, 16),
        "Pays at most": 123_456_789,
        "Keeper's fee": 987_654_321,
        "Runs at most": 3_601,
        "Units": 77,
        "Deadline": 1_900_000_123,
        "Job file's digest": DIGEST,
    }


def test_cancel__the_call__is_shown_with_the_job_and_the_unit(calls: Calls) -> None:
    call = calls.cancel(words.pack_terms(build.terms(submitter=WHO, spec=DIGEST, salt=9)), 3)

    assert shown("JobRegistry", "cancel", call.data) == {
        "Submitter": int(WHO, 16),
        "Job file's digest": DIGEST,
        "Unit": 3,
    }


def test_register__the_call__is_shown_with_stake_operator_and_ask(calls: Calls) -> None:
    offer = Offer(runtimes=Runtime.WASM, zone=5, slots=63, pending=True, ask=31_415_926)
    call = calls.register(OTHER, offer, DIGEST, 10**19)

    assert shown("NodeRegistry", "register", call.data) == {
        "Stake": 10**19,
        "Operator": OTHER,
        "Asks": 31_415_926,
        "Manifest's digest": DIGEST,
    }


def test_withdraw__the_call__is_shown_with_amount_and_account(calls: Calls) -> None:
    assert shown("Escrow", "withdraw", calls.withdraw(OTHER, 12_345).data) == {"Amount": 12_345, "To": OTHER}


def test_lane__that_shares_a_byte__cannot_be_shown() -> None:
    assert lane("x", LIMITS, "max_seconds") == "x.[29:32]"
    for name in ("billing", "max_attempts", "replicas"):
        with pytest.raises(ValueError, match=name):
            lane("x", LIMITS, name)


def test_network__of_a_deployment__binds_the_descriptors_to_it(tmp_path: Path) -> None:
    network = build.network(FakeChain())
    save_network(network, tmp_path / "net.json")
    out = tmp_path / "out"
    assert main(["--network", str(tmp_path / "net.json"), "--folder", str(out)]) == 0
    found = json.loads((out / file_name("Escrow")).read_text())

    (bound,) = found["context"]["contract"]["deployments"]
    assert (bound["chainId"], bound["address"].lower()) == (network.chain_id, network.escrow)
    assert "deployments" not in descriptor("Escrow")["context"]["contract"]
    with pytest.raises(SystemExit):
        main(["--network", str(tmp_path / "net.json")])  # the repository's own name no deployment
