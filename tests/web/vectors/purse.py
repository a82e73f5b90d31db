"""What a wallet page signs and takes: the call that revokes an allowance, and accounts that money may not go to."""

from __future__ import annotations

from typing import Any

from eth_utils.address import to_checksum_address

from hearth.base.errors import UsageError
from hearth.client.money import recipient
from hearth.market.calls import Calls
from tests.kit import build
from tests.kit.fake_chain import FakeChain

ACCOUNT = "0x" + "5b" * 19 + "a1"


def cases() -> Any:
    """Return the network, the calls by spender, and typed accounts with what becomes of each."""
    network = build.network(FakeChain(), asset=build.TOKEN)
    token = network.asset.address
    assert token is not None
    right = to_checksum_address(ACCOUNT)
    typed = [
        *(ACCOUNT, right, "0x" + ACCOUNT[2:].upper(), right.swapcase().replace("0X", "0x"), ACCOUNT[2:], ACCOUNT[:-1]),
        *(ACCOUNT + "0", "", "0x", "vitalik.eth", f" {ACCOUNT}", "0X" + ACCOUNT[2:], "0x" + "00" * 20, token),
        *network.contracts.values(),
        *map(to_checksum_address, network.contracts.values()),
    ]
    calls = Calls(network)
    return {
        "network": network.as_dict(),
        "revokes": [
            {
                "spender": spender,
                "to": call.to,
                "data": f"0x{call.data.hex()}",
                "value": str(call.value),
                "label": call.label,
            }
            for spender in (network.jobs, network.nodes, network.escrow)
            for call in (calls.approve(spender, 0),)
        ],
        "typed": [{"text": text, **_taken(text, network)} for text in typed],
    }


def _taken(text: str, network: Any) -> dict[str, str | None]:
    try:
        return {"to": recipient(text, network), "refused": None}
    except UsageError as error:
        return {"to": None, "refused": error.code}
