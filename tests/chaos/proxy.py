"""A JSON-RPC provider between daemons and a chain that tells the truth, but for the faults that it is given.

A fault is counted as told where its answer is not what an honest provider says, and as used where the daemon read it,
or hung up on it, and then went on: its next request came in, to this provider or to another of its own. A daemon that
asks three providers shares one `Usage` among their proxies.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.kit import liars
from tests.kit.liars import Asked, Liar, Lie


class Usage:
    """What the proxies of one daemon told it, and what it used, by fault."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self._open: list[str] = []
        self._lock = threading.Lock()

    def asked(self) -> None:
        """Note a request: what was answered before is used."""
        with self._lock:
            self.used.update(self._open)
            self._open.clear()

    def answered(self, fault: str) -> None:
        """Note the end of a false answer."""
        with self._lock:
            self.told[fault] += 1
            self._open.append(fault)


class Honest(Exception):
    """The fault has nothing to falsify in this answer."""


class Proxy(Liar):
    """A provider at `url` that commits one of `faults` (a Lie and its weight by name) with a probability of `rate`.

    `rate` may be changed while it runs; 0 makes it honest.
    """

    def __init__(
        self, upstream: str, faults: Mapping[str, tuple[Lie, float]], usage: Usage, *, rate: float, seed: int
    ) -> None:
        super().__init__(upstream, [liars.honest])
        self.rate = rate
        self.requests = 0
        self._names = list(faults)
        self._weights = [weight for _, weight in faults.values()]
        self._faults = {name: lie for name, (lie, _) in faults.items()}
        self._usage = usage
        self._rng = random.Random(seed)
        self._turns = threading.Lock()

    def _answer(self, asked: dict[str, Any], peer: Any) -> None:
        self._usage.asked()
        with self._turns:
            self.requests += 1
            lies = self._rng.random() < self.rate
            name = self._rng.choices(self._names, self._weights)[0]
        one = Asked(asked["method"], asked["params"], asked["id"], self._upstream, peer, self._ended)
        if not lies:
            one.forward()
            return
        try:
            self._faults[name](one)
        except Honest:
            one.forward()
            return
        except OSError:
            # The daemon hung up, as it should on what has no end.
            self._usage.answered(name)
            raise
        self._usage.answered(name)


# ---- faults beside those of tests.kit.liars ----


LAG_BLOCKS = 3


def refuses_for_now(asked: Asked) -> None:
    """429, and a time to wait that is over at once."""
    asked.body(b"slow down", "429 Too Many Requests", "Retry-After: 0")


def breaks(asked: Asked) -> None:
    """502, as a load balancer says it."""
    asked.body(b"<html>bad gateway</html>", "502 Bad Gateway")


def lags(asked: Asked) -> None:
    """The truth of three blocks ago, where the newest block is asked for."""
    where = next((at for at, one in enumerate(asked.params) if one in ("latest", "pending")), None)
    if where is None or asked.method not in ("eth_getBlockByNumber", "eth_call", "eth_getTransactionCount"):
        raise Honest
    newest = Asked("eth_blockNumber", [], asked.id, asked.upstream, asked.peer, asked.ended).truth()
    asked.params[where] = hex(max(0, int(newest, 16) - LAG_BLOCKS))
    asked.forward()


def drops_a_log(asked: Asked) -> None:
    """All logs but one."""
    found = asked.truth() if asked.method == "eth_getLogs" else []
    if not found:
        raise Honest
    asked.say(found[:-1])


def invents_a_head(asked: Asked) -> None:
    """Another newest block than everybody's."""
    if asked.method != "eth_getBlockByNumber" or asked.params[0] != "latest":
        raise Honest
    asked.say({**asked.truth(), "hash": "0x" + "ab" * 32})


def runs_ahead(asked: Asked) -> None:
    """A newest block of a thousand blocks to come."""
    if asked.method != "eth_getBlockByNumber" or asked.params[0] != "latest":
        raise Honest
    true = asked.truth()
    asked.say({**true, "number": hex(int(true["number"], 16) + 1000), "hash": "0x" + "cd" * 32})


def miscounts(asked: Asked) -> None:
    """A nonce that is five too high."""
    if asked.method != "eth_getTransactionCount":
        raise Honest
    asked.say(hex(int(asked.truth(), 16) + 5))


def knows_no_receipt(asked: Asked) -> None:
    """Nothing of a transaction that was mined."""
    if asked.method != "eth_getTransactionReceipt" or asked.truth() is None:
        raise Honest
    asked.say(None)


def takes_and_forgets(asked: Asked) -> None:
    """A transaction's hash, which goes nowhere."""
    from eth_utils.crypto import keccak

    if asked.method != "eth_sendRawTransaction":
        raise Honest
    asked.say("0x" + keccak(bytes.fromhex(asked.params[0][2:])).hex())


def pauses(asked: Asked) -> None:
    """The truth, two seconds late."""
    time.sleep(2.0)
    asked.forward()


SLOW = ("drips_a_body", "drips_headers", "says_continue", "says_nothing", "floods", "floods_in_chunks", "bombs")
"""Each of these holds a request for as long as its time-out, or moves many bytes."""
BROKEN: dict[str, tuple[Lie, float]] = {
    **{lie.__name__: (lie, 0.02 if lie.__name__ in SLOW else 1.0) for lie in liars.BROKEN},
    **{lie.__name__: (lie, 2.0) for lie in (refuses_for_now, breaks)},
    "pauses": (pauses, 0.05),
}
"""What is no answer: one provider, or two of three, may do it at any time."""
ALONE: dict[str, tuple[Lie, float]] = {**BROKEN, "lags": (lags, 40.0), "takes_and_forgets": (takes_and_forgets, 40.0)}
"""What a provider may do that is believed since there is no other, without a loss but of time."""
LAGGING: dict[str, tuple[Lie, float]] = {"lags": (lags, 1.0)}
LYING: dict[str, tuple[Lie, float]] = {
    **BROKEN,
    **{
        lie.__name__: (lie, 60.0)
        for lie in (drops_a_log, invents_a_head, runs_ahead, miscounts, knows_no_receipt, takes_and_forgets, lags)
    },
}
"""What one of three may say, since the others outvote it."""


@contextmanager
def between(
    upstream: str, setup: Sequence[Mapping[str, tuple[Lie, float]]], usage: Usage, *, rate: float, seed: int
) -> Any:
    """Run one proxy for each table of faults; an empty table is an honest provider, asked as all others are."""
    made = [
        Proxy(upstream, faults or ALONE, usage, rate=rate if faults else 0.0, seed=seed + number)
        for number, faults in enumerate(setup)
    ]
    try:
        yield made
    finally:
        for proxy in made:
            proxy.close()
