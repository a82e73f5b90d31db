"""Measure the same calls under three sets of rules: writes bench/results/forks.json and a part of docs/GAS.md.

Cancun on anvil, and Osaka and the rules announced as Amsterdam on geth, each on a chain of its own. Run it with
`make bench-forks`; the first run builds geth.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

from bench.sections import write_part
from tests.kit.anvil import AnvilEvm
from tests.kit.evm import Receipt
from tests.kit.gas import Bench, walk
from tests.kit.geth_evm import GethEvm
from tests.kit.world import World
from tools.services import geth

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "forks.json"
PAGE = ROOT / "docs" / "GAS.md"
SLOT_GAS: Final = 97_920
"""What a new storage slot costs under Amsterdam's rules beside the write: 64 bytes of state at 1,530."""
CEILINGS: Final = {"post": 195_000}
"""Under Amsterdam's rules; docs/decisions/0072 says why it is not the 190,000 that were asked for."""
ASKED: Final = {"post": 190_000}
LIVES: Final = {
    "life": ("post", "claim", "submit", "settle"),
    "life_finish": ("post", "claim", "finish"),
    "life_judged": ("post", "claim", "submit_store", "settle"),
}
ROWS: Final = (
    *("post", "claim", "submit", "settle", "finish", "life", "life_finish", "submit_store", "life_judged"),
    *("propose", "ack", "array_claim", "finish_claims", "checkpoint", "post_after_1", "unlock_1_parents"),
    *("reclaim", "confirm_2_of_3", "register", "beat", "withdraw"),
)
_GROUPS: Final = {
    "SLOAD": "storage read",
    "SSTORE": "storage written",
    "CALL": "calls of other contracts",
    "STATICCALL": "calls of other contracts",
    "DELEGATECALL": "calls of other contracts",
}


class GethBench(Bench):
    """A bench on geth that also counts the new storage slots of each sample, and says where a post's gas goes."""

    world: World

    def __init__(self, world: World) -> None:
        self.slots: dict[str, int] = {}
        self.post: dict[str, int] = {}
        super().__init__(world)

    def sample(self, key: str, event: str, receipt: Receipt, *, per: int = 1) -> Receipt:
        """Record one figure and its new slots."""
        assert isinstance(self.world.evm, GethEvm)
        self.slots[key] = self.world.evm.new_slots()
        if key == "post":
            self.post = spent(self.world.evm, receipt.gas_used, self.slots[key])
        return super().sample(key, event, receipt, per=per)


def spent(evm: GethEvm, gas: int, slots: int) -> dict[str, int]:
    """Split the gas of the last transaction, which got no refund, into what it was for; the parts add up to it."""
    found = Counter({"new storage slots": slots * SLOT_GAS if evm.rules == "amsterdam" else 0})
    steps = evm.trace()
    for step, after in zip(steps, [*steps[1:], {"depth": 0}], strict=True):
        # A call's cost as traced has the gas in it that the called contract gets.
        given = after["gas"] if after["depth"] > step["depth"] else 0
        kind = _GROUPS.get(step["op"]) or ("events" if step["op"].startswith("LOG") else "all other instructions")
        found[kind] += step["gasCost"] - given
    found["the transaction itself, its data and value"] = gas - sum(found.values())
    assert min(found.values()) >= 0, found
    return dict(found)


def measure_geth(rules: str) -> dict[str, Any]:
    """Return gas and new slots by key, what a post and each deployment took, and the client, under one set of rules."""
    evm = GethEvm(rules)
    try:
        world = World(evm)
        bench = GethBench(world)
        walk(bench, batch=False)
        slots = bench.slots | {life: sum(bench.slots[key] for key in parts) for life, parts in LIVES.items()}
        parts = (world.escrow, world.nodes, world.rules, world.jobs, world.lens)
        deployed = {part.name: part.deploy_gas for part in parts}
        found = {"client": evm.version(), "gas": bench.figures, "slots": slots, "post": bench.post}
        return {**found, "deploy": deployed}
    finally:
        evm.close()


def measure_anvil() -> dict[str, Any]:
    """Return gas by key and the client's version on anvil under cancun."""
    evm = AnvilEvm()
    try:
        bench = walk(Bench(World(evm)), batch=False)
        return {"client": str(evm.rpc("web3_clientVersion")), "gas": bench.figures}
    finally:
        evm.close()


def said_of(found: dict[str, Any]) -> str:
    """Return the part of docs/GAS.md that these figures make."""
    cancun, osaka, amsterdam = (found[rules] for rules in ("cancun", "osaka", "amsterdam"))
    rows = "".join(
        f"| `{key}` | {cancun['gas'][key]:,} | {osaka['gas'][key]:,} | {amsterdam['gas'][key]:,} | "
        f"{amsterdam['slots'].get(key, 0)} |\n"
        for key in ROWS
    )
    post = "".join(f"| {what} | {gas:,} |\n" for what, gas in Counter(amsterdam["post"]).most_common())
    total, asked = amsterdam["gas"]["post"], ASKED["post"]
    versions = ", ".join(sorted({re.sub(r"/linux.*|-stable.*", "", one["client"]) for one in found.values()}))
    return f"""
The same calls under three sets of rules: cancun on anvil, Osaka (mainnet's since December 2025) and the rules announced
as Amsterdam, which are not final, on geth ({versions}). New slots are storage words that were zero
before. `make bench-forks` writes this part and `bench/results/forks.json`, which has every call.

| call | cancun | Osaka | Amsterdam | new slots |
|---|---:|---:|---:|---:|
{rows}
Osaka's rules change no call: what differs are bytes of addresses, and seconds that passed. Under Amsterdam's a new slot
costs {SLOT_GAS:,} beside its write, a write 10,000 where it was 2,900, a first read 3,000 where it was 2,100. The new
slots of a job in its life: {amsterdam["slots"]["life"]}, its own word at post; one more each for a proposal, a judge, a
checkpoint, and a unit of an array. Deploying takes {deploy(amsterdam)}
(Osaka's: {deploy(osaka)}), most of it for the code's bytes.

A post's {total:,} under Amsterdam's rules (ceiling {CEILINGS["post"]:,}; the {asked:,} that were asked for are not
held, see decision 0072) go to:

| what for | gas |
|---|---:|
{post}
"""


def deploy(found: dict[str, Any]) -> str:
    """Say what the two dearest contracts took to deploy, in millions."""
    dearest = sorted(found["deploy"].items(), key=lambda one: -one[1])[:2]
    return " and ".join(f"{gas / 10**6:.1f} million gas for {name}" for name, gas in dearest)


def above(found: dict[str, Any]) -> dict[str, int]:
    """Return the figures that lie above their ceilings under Amsterdam's rules."""
    gas = found["amsterdam"]["gas"]
    return {key: gas[key] for key, most in CEILINGS.items() if gas[key] > most}


@click.command()
def main() -> None:
    """Measure, write both files, and exit 1 where a figure is above its ceiling."""
    os.environ.setdefault("HEARTH_TEST_GETH_BIN", str(geth.PROGRAM.binary()))
    found = {"cancun": measure_anvil(), **{rules: measure_geth(rules) for rules in geth.RULES}}
    RESULT.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    write_part(PAGE, "forks", said_of(found))
    click.echo(f"{RESULT.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}: {', '.join(found)}")
    if over := above(found):
        raise click.ClickException(f"above the ceiling: {over}")


if __name__ == "__main__":
    main()
