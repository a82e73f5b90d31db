"""A real geth: built once from the pinned module in tools/geth, run in developer mode on loopback without peers.

The chain is one of our own: chain id CHAIN_ID, every fork of mainnet up to osaka, a block a second, the ten public
accounts of `hearth devnet` rich at its start. A bench makes other ones: under the rules announced as Amsterdam, too,
and with blocks made by hand.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tools.services.base import Service, free_port, instance_folder, log, run, spawn, wait_for
from tools.services.golang import GoProgram

PROGRAM: Final = GoProgram("geth", "github.com/ethereum/go-ethereum/cmd/geth", "geth")
CHAIN_ID: Final = 4242
BLOCK_GAS: Final = 30_000_000
COINS: Final = 10_000
"""What each public account has at the start, in whole coins."""
FORKS: Final = (
    *("homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock", "constantinopleBlock"),
    *("petersburgBlock", "istanbulBlock", "berlinBlock", "londonBlock", "terminalTotalDifficulty"),
    *("shanghaiTime", "cancunTime", "pragueTime", "osakaTime"),
)
"""What is in force from block 0 on, as geth's genesis files name it."""
RULES: Final = {"osaka": FORKS, "amsterdam": (*FORKS, "amsterdamTime")}
"""The forks of each set of rules; geth's plain `--dev` chain mixes them."""
# Mainnet's (EIP-7840); a fork with blobs does not start without.
_BLOBS: Final = {
    "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477},
    "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
    "osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
    "amsterdam": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
}
START_SECONDS: Final = 60.0


def genesis(rules: str = "osaka", *, chain_id: int = CHAIN_ID, **fields: Any) -> dict[str, Any]:
    """Return the chain's block 0 under one of RULES; its time is now, so that each one made is another chain.

    `fields` take the place of its own but in `config`. The contracts that mainnet's forks placed (deposits,
    withdrawals, history) are left out: geth makes blocks without them, and no transaction's gas depends on them.
    """
    from hearth.local.devnet import KEYS, account

    return {
        "config": {"chainId": chain_id, **dict.fromkeys(RULES[rules], 0), "blobSchedule": _BLOBS},
        "difficulty": "0x0",
        "gasLimit": hex(BLOCK_GAS),
        "baseFeePerGas": hex(10**9),
        "timestamp": hex(int(time.time())),
        "alloc": {account(index).address[2:]: {"balance": hex(COINS * 10**18)} for index in range(len(KEYS))},
        **fields,
    }


def initialise(program: Path, folder: Path, block: dict[str, Any]) -> None:
    """Make a new chain in `folder`, which is made too; `block` is its first, as `genesis` returns it."""
    folder.mkdir(parents=True)
    first = folder / "genesis.json"
    first.write_text(json.dumps(block))
    run([str(program), "init", *_storage(folder), str(first)], what="geth init")


def command(program: Path, folder: Path, port: int, *, by_hand: bool = False) -> list[str]:
    """Return the command that runs the chain in `folder`, its JSON-RPC on a loopback port, nothing else listening.

    `by_hand`: no block comes by itself; geth's `testing` methods make each of them, at any time, of any size.

    Killed, the chain goes back to its last clean stop; a snapshot, which any but a full sync brings, would take it back
    further. Local transactions are kept nowhere on disk: as with a provider, what a crash took out of it is gone.
    """
    pace: tuple[str, ...] = ("--dev.period", "1")
    methods = "eth,net,web3,txpool"
    if by_hand:
        pace = ("--dev.period", "0", "--miner.gaslimit", str(10**9))
        methods = "eth,web3,debug,testing"
    return [
        *(str(program), "--dev", *pace, "--syncmode", "full", "--snapshot=false", "--cache", "64"),
        *("--http", "--http.addr", "127.0.0.1", "--http.port", str(port), "--http.api", methods),
        *_storage(folder),
        *("--ipcdisable", "--txpool.nolocals", "--txpool.journal", ""),
    ]


def _storage(folder: Path) -> Sequence[str]:
    """Name the folder, and how the state lies in it: a trie by hash, in memory until a clean stop."""
    return ("--datadir", str(folder), "--state.scheme", "hash")


def serves(port: int, chain_id: int = CHAIN_ID) -> bool:
    """Tell whether a geth answers on a loopback port with a chain's id."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=2.0) as answer:
            return bool(json.loads(answer.read())["result"] == hex(chain_id))
    except (OSError, ValueError, KeyError):
        return False


def start(program: Path) -> Service:
    """Start a new chain with the built `program`; its data lies in the instance folder."""
    folder = instance_folder() / "geth"
    shutil.rmtree(folder, ignore_errors=True)
    initialise(program, folder, genesis())
    port = free_port()
    process = spawn("geth", command(program, folder, port))
    wait_for("geth", process, lambda: serves(port), START_SECONDS)
    log(f"geth: {PROGRAM.pinned()[0]}, chain {CHAIN_ID} on 127.0.0.1:{port}")
    return Service(
        "geth", process, {"HEARTH_TEST_GETH_RPC": f"http://127.0.0.1:{port}", "HEARTH_TEST_GETH_BIN": str(program)}
    )
