"""Attack: a deployer plants something in his market, and publishes a network file that `hearth net verify` likes.

Each case deploys the market of the sources but for one thing, names its addresses, code hashes and transactions, and
asks the client. `plain` is the control. A file without the transactions proves nothing, and is said to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_utils.crypto import keccak

import tests.kit.live as live_module
from hearth.base.abi import encode
from hearth.client import Client
from hearth.config.settings import Settings
from hearth.market.contracts import CONTRACTS
from hearth.market.network import save_network
from tests.kit.anvil import AnvilEvm, need_anvil
from tests.kit.evm import NATIVE, Contract, Evm, compile_contract
from tests.kit.live import LiveMarket
from tests.kit.world import ETHER

pytestmark = pytest.mark.net
USED = 1 << 255
THIEF = "0x" + "00" * 12 + "7e" * 8
STEWARD_AT = 7  # of the deployer's contracts, by LiveMarket


def planting(code: bytes, slots: dict[int, int], told: dict[str, int] | None = None) -> bytes:
    """Return creation code that writes storage, logs events of one indexed address, and leaves `code`."""
    init = b"".join(
        b"\x7f" + value.to_bytes(32, "big") + b"\x7f" + slot.to_bytes(32, "big") + b"\x55"
        for slot, value in slots.items()
    )
    for event, address in (told or {}).items():
        init += b"\x7f" + address.to_bytes(32, "big") + b"\x7f" + keccak(event.encode()) + b"\x5f\x5f\xa2"
    size = len(code).to_bytes(3, "big")
    head = len(init) + 16
    return init + b"\x62" + size + b"\x62" + head.to_bytes(3, "big") + b"\x5f\x39\x62" + size + b"\x5f\xf3" + code


def map_slot(position: int, *path: int) -> int:
    found = position
    for key in path:
        found = int.from_bytes(keccak(found.to_bytes(32, "big") + key.to_bytes(32, "big")), "big")
    return found


class Planted(AnvilEvm):
    """Deploys as the world says, governed by the Steward, but for what `plant` does to one of them."""

    plant: Callable[[Planted, str, tuple[Any, ...]], Contract | tuple[Any, ...] | None] = staticmethod(lambda *_: None)

    def deploy(self, name: str, *args: Any, **options: Any) -> Contract:
        if not hasattr(self, "steward"):
            self.steward = self.create_address(self.deployer, STEWARD_AT)
        if name in ("NodeRegistry", "Rules"):
            args = (*args[:-1], self.steward)
        found = type(self).plant(self, name, args)
        if isinstance(found, Contract):
            return found
        return super().deploy(name, *(found or args), **options)


def escrow_with_credit(evm: Planted, name: str, args: tuple[Any, ...]) -> Contract | None:
    """The runtime code of the sources, and in storage a credit that nobody paid."""
    if name != "Escrow":
        return None
    scratch = Evm()
    runtime = scratch.code_at(scratch.deploy("Escrow", NATIVE))
    address = evm.deploy_code(planting(runtime, {map_slot(1, int(THIEF, 16)): USED | 50 * ETHER}))
    assert evm.code_at(address) == runtime
    return evm.contract_at("Escrow", address)


def steward_of_a_second(evm: Planted, name: str, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    return (*args[:-1], 1) if name == "Steward" else None


def steward_of_others(evm: Planted, name: str, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """It governs nothing of this market: no pause, no change, for ever."""
    return ("0x" + "11" * 20, "0x" + "22" * 20, *args[2:]) if name == "Steward" else None


def attesters_of_others(evm: Planted, name: str, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """It can rule on nothing here: what has to be proven ends in a refund and a slash."""
    return ("0x" + "11" * 20,) if name == "Attesters" else None


def steward_with_a_change(evm: Planted, name: str, args: tuple[Any, ...]) -> Contract | None:
    """A change of which no event told, due now: it offers the rights over posts to the thief."""
    if name != "Steward":
        return None
    from hearth.protocol.types import ZERO_ADDRESS

    code = compile_contract("Steward").bytecode + encode(
        ["address"] * 4 + ["uint256"], [str(getattr(arg, "address", arg)) for arg in args[:4]] + [args[4]]
    )
    runtime = evm.code_at(evm._create(code, evm.account("scratch"), 0)[0])
    change = keccak(b"".join(part.to_bytes(32, "big") for part in (3, int(THIEF, 16), 0)))
    council, guardian = int(str(args[2]), 16), int(ZERO_ADDRESS, 16)
    slots = {0: council, 2: guardian, map_slot(3, int.from_bytes(change, "big")): evm.now}
    told = {"CouncilChanged(address)": council, "GuardianChanged(address)": guardian}
    address = evm.deploy_code(planting(runtime, slots, told))
    assert address.lower() == evm.steward.lower() and evm.code_at(address) == runtime
    return evm.contract_at("Steward", address)


def other_code(evm: Planted, name: str, args: tuple[Any, ...]) -> Contract | None:
    """A Lens of other sources: it says of every lock, credit, node and job what its author likes."""
    if name != "Lens":
        return None
    code = compile_contract("Lens").bytecode + encode(["address", "address"], [str(arg.address) for arg in args])
    scratch_address = evm._create(code, evm.account("scratch"), 0)[0]
    runtime = evm.code_at(scratch_address)
    # One more byte of code that is never reached: another keccak than any build of the sources has.
    address = evm.deploy_code(planting(runtime + b"\xfe", {}))
    return evm.contract_at("Lens", address)


PLANTS = {
    "plain": lambda *_: None,
    "escrow credit": escrow_with_credit,
    "steward delay 1 s": steward_of_a_second,
    "steward of others": steward_of_others,
    "attesters of others": attesters_of_others,
    "steward's hidden change": steward_with_a_change,
    "lens of other code": other_code,
}


FOUND = {
    "escrow credit": "Escrow was created by other code",
    "steward delay 1 s": "a change waits 1s",
    "steward of others": "Steward was created with nodes",
    "attesters of others": "Attesters was created with jobs",
    "steward's hidden change": "Steward was created by other code",
    "lens of other code": "Lens was created by other code",
}
"""What the proof says of each."""


@pytest.mark.parametrize("plant", PLANTS)
def test_net_verify__market_with_something_planted__is_not_called_good(
    plant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_anvil()
    monkeypatch.setattr(Planted, "plant", staticmethod(PLANTS[plant]))
    monkeypatch.setattr(live_module, "AnvilEvm", Planted)
    live = LiveMarket(tmp_path)
    try:
        world = live.world
        world.register()
        world.post()
        live.warp(1)
        save_network(live.network(), tmp_path / "test.json")
        client = Client(Settings(home=tmp_path / "home", network=str(tmp_path / "test.json"), rpc=(live.url,)))
        told = client.net.verify()
        assert "unproven" not in told
        assert told["solvent"] == (plant == "plain") and (told["delay"] == 1) == (plant == "steward delay 1 s")
        if plant != "plain":
            assert any(FOUND[plant] in fault for fault in told["faults"]), told["faults"]
        # Without the transactions nobody can say, whatever else holds.
        save_network(live.network(creations={}), tmp_path / "test.json")
        bare = Client(Settings(home=tmp_path / "home", network=str(tmp_path / "test.json"), rpc=(live.url,)))
        assert bare.net.verify()["unproven"] == list(CONTRACTS)
    finally:
        live.close()
