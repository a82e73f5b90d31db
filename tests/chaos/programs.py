"""The three programs and a gateway, imported once for all the processes that a campaign forks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import eth_abi
import eth_account

import hearth.cli.__main__
import hearth.cli.jobs
import hearth.client
import keeper.__main__
import keeper.process
import worker.__main__
import worker.build
import worker.runtimes.docker
import worker.runtimes.wasm

HEAVY = (eth_abi, eth_account, hearth.cli.jobs, hearth.client, keeper.process, worker.build)
"""What each of them imports later, and slowly."""


def _worker(arguments: Sequence[str]) -> int:
    return int(worker.__main__.main(list(arguments), prog_name="worker", standalone_mode=True) or 0)


def _gateway(arguments: Sequence[str]) -> int:
    from tests.chaos import gateways

    return gateways.main(arguments)


PROGRAMS: dict[str, Callable[[Sequence[str]], int]] = {
    "worker": _worker,
    "keeper": keeper.__main__.main,
    "hearth": hearth.cli.__main__.main,
    "gateway": _gateway,
}
