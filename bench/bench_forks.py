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
"""Under Amsterdam's rules; docs/decisions/0031 says why it is not the 190,000 that were asked for."""
BY_CHANCE: Final = 1_500
"""What one call may differ by between two runs under the same rules: a ramp moves with the seconds that passed."""
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
TRACED: Final = ("post", "claim", "submit", "settle", "finish")
"""The calls whose gas is split: two lives are made of them."""
SENT, DATA, NEW, COLD = "sent", "data", "new slots", "cold"
WRITES, READS, CALLS, EVENTS, COMPUTE, REFUND = "writes", "reads", "calls", "events", "compute", "refund"
WHAT: Final = {
    SENT: "the transaction itself",
    DATA: "its data",
    NEW: "new storage slots",
    COLD: "first touch of slots and accounts",
    WRITES: "storage written",
    READS: "storage read",
    CALLS: "calls of other contracts",
    EVENTS: "events",
    COMPUTE: "all other instructions",
    REFUND: "refund",
}
_GROUPS: Final = {"SLOAD": READS, "SSTORE": WRITES, "CALL": CALLS, "STATICCALL": CALLS, "DELEGATECALL": CALLS}
_SLOT_COLD: Final = {"SLOAD": (2_100, 2_000), "SSTORE": (2_200, 2_100)}
"""What an instruction costs at least where it is the first to touch its slot, and what of it is for that (EIP-2929)."""
_ACCOUNT_COLD: Final = (2_600, 2_500)
_ACCOUNTS: Final = ("CALL", "STATICCALL", "DELEGATECALL", "EXTCODESIZE", "EXTCODEHASH", "BALANCE")
_CALLS: Final = ("CALL", "STATICCALL", "DELEGATECALL")
_WARM_WRITES: Final = (2_900, 20_000)
_VALUE_GAS: Final = 9_000 - 2_300
"""What a call that sends value costs beside its touch, less what the called contract gets for nothing."""


class GethBench(Bench):
    """A bench on geth that also counts the new storage slots of each sample, and says where its gas goes."""

    world: World

    def __init__(self, world: World) -> None:
        self.slots: dict[str, int] = {}
        self.split: dict[str, dict[str, int]] = {}
        super().__init__(world)

    def sample(self, key: str, event: str, receipt: Receipt, *, per: int = 1) -> Receipt:
        """Record one figure and its new slots."""
        assert isinstance(self.world.evm, GethEvm)
        self.slots[key] = self.world.evm.new_slots()
        if key in TRACED:
            self.split[key] = spent(self.world.evm, receipt.gas_used, self.slots[key])
        return super().sample(key, event, receipt, per=per)


def spent(evm: GethEvm, gas: int, slots: int) -> dict[str, int]:
    """Split the gas of the last transaction into what it was for; the parts add up to it, a refund counts below zero.

    What is the first touch is told apart under Osaka's rules alone; under Amsterdam's it is in the part that touches.
    """
    amsterdam = evm.rules == "amsterdam"
    found = Counter(dict.fromkeys(WHAT, 0))
    found[NEW] = slots * SLOT_GAS if amsterdam else 0
    data = evm.data()
    found[DATA] = sum(16 if byte else 4 for byte in data)
    steps = evm.trace()
    for step, own in zip(steps, owns(steps), strict=True):
        op = step["op"]
        cold = 0 if amsterdam else first_touch(step, own)
        kind = _GROUPS.get(op) or (EVENTS if op.startswith("LOG") else COMPUTE)
        found[COLD] += cold
        found[kind] += own - cold
    found[REFUND] = -min(steps[-1].get("refund", 0), (gas + steps[-1].get("refund", 0)) // 5)
    found[SENT] = gas - sum(found.values())
    assert min(part for kind, part in found.items() if kind != REFUND) >= 0, found
    return dict(found)


def owns(steps: list[dict[str, Any]]) -> list[int]:
    """Return what each step took by itself: of a call, without the gas that the called contract used."""
    found = [step["gasCost"] for step in steps]
    callers: list[int] = []  # by depth: the step that called, and is not back yet
    for at, step in enumerate(steps):
        while len(callers) >= step["depth"]:
            caller = callers.pop()
            found[caller] = steps[caller]["gas"] - step["gas"] - sum(found[caller + 1 : at])
        if at + 1 < len(steps) and steps[at + 1]["depth"] > step["depth"]:
            callers.append(at)
        elif step["op"] in _CALLS and at + 1 < len(steps):
            # A call of an account without code: what it was given came back at once.
            found[at] = step["gas"] - steps[at + 1]["gas"]
    return found


def first_touch(step: dict[str, Any], own: int) -> int:
    """Return what of a step's gas was for touching a slot or an account first."""
    if step["op"] in _ACCOUNTS:
        value = step["op"] == "CALL" and int(step["stack"][-3], 16)
        least, part = _ACCOUNT_COLD
        return part if own - (_VALUE_GAS if value else 0) >= least else 0
    least, part = _SLOT_COLD.get(step["op"], (0, 0))
    return part if least and own >= least and own not in _WARM_WRITES else 0


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
        found = {"client": evm.version(), "gas": bench.figures, "slots": slots, "split": bench.split}
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
    parts = Counter({WHAT[kind]: gas for kind, gas in amsterdam["split"]["post"].items() if gas})
    post = "".join(f"| {what} | {gas:,} |\n" for what, gas in parts.most_common())
    total, asked = amsterdam["gas"]["post"], ASKED["post"]
    furthest = max(ROWS, key=lambda key: abs(osaka["gas"][key] - cancun["gas"][key]))
    apart = abs(osaka["gas"][furthest] - cancun["gas"][furthest])
    because = "bytes of addresses, and seconds that passed" if apart <= BY_CHANCE else "more than chance does"
    versions = ", ".join(sorted({re.sub(r"/linux.*|-stable.*", "", one["client"]) for one in found.values()}))
    return f"""
The same calls under three sets of rules: cancun on anvil, Osaka (mainnet's since December 2025) and the rules announced
as Amsterdam, which are not final, on geth ({versions}). New slots are storage words that were zero
before. `make bench-forks` writes this part and `bench/results/forks.json`, which has every call.

| call | cancun | Osaka | Amsterdam | new slots |
|---|---:|---:|---:|---:|
{rows}
A call costs at most {apart:,} gas more or less under Osaka's rules than under cancun's (`{furthest}`): {because}.
Under Amsterdam's a new slot costs {SLOT_GAS:,} beside its write, a write 10,000 where it was 2,900, a first read 3,000
where it was 2,100. The new slots of a job in its life: {amsterdam["slots"]["life"]}, its own word at post; one more
each for a proposal, a judge, a checkpoint, and a unit of an array. Deploying takes {deploy(amsterdam)}
(Osaka's: {deploy(osaka)}), most of it for the code's bytes.

A post's {total:,} under Amsterdam's rules (ceiling {CEILINGS["post"]:,}; the {asked:,} that were asked for are not
held, see decision 0031) go to:

| what for | gas |
|---|---:|
{post}
Under Osaka's rules the calls of the two lives go to:

{traced(osaka)}
Sent is the 21,000 of any transaction, cold what the first touch of a slot or an account adds, writes and reads what
they cost beside that, and a refund what the end of a zeroed word gives back.
"""


def traced(found: dict[str, Any]) -> str:
    """Return the table of what each traced call and each life spends its gas on."""
    split: dict[str, dict[str, int]] = {key: found["split"][key] for key in TRACED}
    lives = {life: [split[key] for key in LIVES[life]] for life in ("life", "life_finish")}
    split |= {life: {kind: sum(part[kind] for part in parts) for kind in WHAT} for life, parts in lives.items()}
    kinds = [kind for kind in WHAT if any(parts[kind] for parts in split.values())]
    head = f"| call | {' | '.join(kinds)} | all |\n|---|{'---:|' * (len(kinds) + 1)}\n"
    rows = (
        f"| `{key}` | {' | '.join(f'{parts[kind]:,}' for kind in kinds)} | {sum(parts.values()):,} |\n"
        for key, parts in split.items()
    )
    return head + "".join(rows)


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
