"""Measure the gas of every call on a real anvil: writes bench/results/gas.json and docs/GAS.md.

Run it with `make bench-gas`. The figures are gasUsed of receipts; tests/contracts/test_gas.py keeps later changes near.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from bench.sections import marks, part
from tests.kit.anvil import AnvilEvm
from tests.kit.gas import CEILINGS, POST_10000_EXTRA, measure
from tests.kit.world import World

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "gas.json"
PAGE = ROOT / "docs" / "GAS.md"
# Boundless, receipts of its own documentation: the best peer that publishes such figures.
PEER = {
    "post": ("Boundless submit", 52_939),
    "claim": ("Boundless lock", 149_434),
    "settle": ("Boundless fulfil", 116_712),
    "withdraw": ("Boundless withdraw", 40_509),
}
PEER_LIFE = (319_085, 287_096)
FLOOR = 143_127

INTRO = """# Gas

What each call costs in steady state, as receipts on anvil (cancun) say. `make bench-gas` writes this page and
`bench/results/gas.json`; `tests/contracts/test_gas.py` fails on a rise above 1 %, on a figure above its ceiling, and
on a figure that moves by more than 5 % with 10,000 nodes and jobs.

The terms are those that `hearth submit examples/digits/job.yaml` makes, posted once for each path that a key needs.
The fee is on, keeper_fee is above zero, reputation is written, and owner, operator, submitter, settler and treasury
are five accounts. STORE is off but where a row says so: those jobs name a judge, a contract that passes the call on and
does nothing else, and the four calls of `life_judged` are those of `life`. The parents of `post_after` and `unlock`
have ended; `unlock_refund` has one. A first payment to a new account costs 17.1k more, a node's first beat about 49k.
What keepers and workers reckon with is in `hearth/protocol/gas.py`: the dearest kind of unit, which the same test
measures.

| call | gas | ceiling | a peer |
|---|---:|---:|---|
"""


def _row(key: str, gas: int) -> str:
    peer = ""
    if key in PEER:
        peer = f"{PEER[key][0]} {PEER[key][1]:,}"
    elif key == "life":
        peer = f"Boundless {PEER_LIFE[0]:,}, its older version {PEER_LIFE[1]:,}; any four calls cost {FLOOR:,}"
    return f"| `{key}` | {gas:,} | {CEILINGS[key]:,} | {peer} |\n"


@click.command()
def main() -> None:
    """Measure, write both files, and exit 1 where a figure is above its ceiling."""
    evm = AnvilEvm()
    try:
        figures = measure(World(evm))
    finally:
        evm.close()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    page = INTRO + "".join(_row(key, figures[key]) for key in CEILINGS)
    extra = figures["post_10000"] - figures["post"]
    page += f"\nPosting 10,000 units costs {extra:,} more than posting one (ceiling {POST_10000_EXTRA}).\n"
    begin, end = marks("forks")
    PAGE.write_text(f"{page}\n## Other rules\n\n{begin}{part(PAGE, 'forks')}{end}")
    over = {key: gas for key, gas in figures.items() if gas > CEILINGS.get(key, gas)}
    click.echo(f"{len(figures)} figures in {RESULT.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")
    if over or extra > POST_10000_EXTRA:
        raise click.ClickException(f"above the ceiling: {over or extra}")


if __name__ == "__main__":
    main()
