"""Several providers of one chain: whom to ask, whom to leave alone for a while, and whom to believe.

A provider that fails, however it does, is set aside with growing pauses and the next one is asked. One that says that
it is asked too often has not failed: it is left alone for as long as it wants, and asked less often from then on.

What all honest providers must answer alike (a block, a read pinned to one, logs) counts where more than half of those
that answer say it: of three, one that lies is outvoted and set aside; of two, a contradiction is NO_QUORUM; one alone
is believed. Why so: docs/decisions/0028-believe-the-majority-of-providers.md.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from hearth.base.errors import ChainError, ConfigError, FundsError, HearthError, RefusedError
from hearth.chain import answers
from hearth.chain.answers import ProviderFailed, TooMuch
from hearth.chain.endpoint import Endpoint
from hearth.chain.pace import TokenBucket
from hearth.chain.port import Block

Value = TypeVar("Value")

MAX_LAG: Final = 64
"""Blocks that a provider's newest one may be away from that of the others, and the seconds that so many take."""
PATIENCE_SECONDS: Final = 1.0
"""An answer that took longer counts as slow, by what it took more."""
FORGIVEN_SECONDS: Final = 60.0
"""After so long without a failure the pauses begin anew; a provider may be slow for its time-out in as long."""
_MAX_WAIT: Final = 30.0
"""Seconds: the longest that a provider which is asked too often is left alone, whatever its Retry-After says."""
_MAX_PAUSE: Final = 300.0
"""Seconds: the longest that a provider which keeps failing is left alone."""
_RECENT_SECONDS: Final = 0.5
"""How long the newest block that was agreed on stands for the newest one."""

OnFault = Callable[[str, str], None]
"""Hear that a provider is set aside: its name, and why."""


class Said(NamedTuple, Generic[Value]):
    """What one provider said: a value, or a refusal that stands for the chain's answer."""

    provider: Provider
    value: Value | None
    refusal: HearthError | None

    @property
    def abstains(self) -> bool:
        """Say whether it knows nothing, which a provider that lags says as well."""
        return self.value is None and not isinstance(self.refusal, RefusedError | FundsError)

    def agrees(self, other: Said[Value]) -> bool:
        """Say whether both say the same; two refusals may be worded differently."""
        return type(self.refusal) is type(other.refusal) and self.value == other.value


class Provider:
    """One endpoint with its health."""

    def __init__(self, endpoint: Endpoint, pace: TokenBucket) -> None:
        self.endpoint = endpoint
        self.pace = pace
        self.name = endpoint.name
        self.down_until = 0.0
        self.failures = 0
        self.throttles = 0
        self.fault: ProviderFailed | None = None
        """How it failed last, None since it answered."""
        self.verified = False
        self.proven = False
        """Whether it has ever served this chain to this process."""
        self.slow, self.slow_since = 0.0, 0.0

    def rests(self, now: float) -> bool:
        """Say whether it asked to be left alone until later."""
        return now < self.down_until and self.fault is not None and self.fault.throttled


class Providers:
    """Ask `urls`, in order of preference. The parameters are those of `RpcChain`."""

    def __init__(
        self,
        urls: Sequence[str],
        timeout: float,
        *,
        chain_id: int | None,
        genesis_hash: bytes | None,
        attempts: int,
        rate: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        on_fault: OnFault = lambda name, why: None,
    ) -> None:
        if not urls:
            raise ConfigError("no RPC address is configured", hint="use --rpc URL", code="NO_RPC")
        self._all = [Provider(Endpoint(url, timeout), TokenBucket(rate, burst, clock, sleep)) for url in urls]
        self._want_chain, self._want_genesis = chain_id, genesis_hash
        self._timeout, self._attempts = timeout, attempts
        self._clock, self._wall, self._sleep = clock, wall, sleep
        self._on_fault = on_fault
        self._current = 0
        self._agreed: tuple[float, Block] | None = None
        self._there: set[Provider] = set()
        """Who had the newest block that was agreed on, when it was."""
        self.counts: Counter[str] = Counter()
        """requests, failovers, throttled, halved, outvoted: for metrics."""

    @property
    def alone(self) -> bool:
        """Say whether there is only one."""
        return len(self._all) == 1

    def begin_cycle(self) -> None:
        """Ask for the head anew, and the most preferred provider that is not set aside before the others."""
        now = self._clock()
        self._current = next((i for i, one in enumerate(self._all) if one.down_until <= now), self._current)
        self._agreed = None

    # ---- whom to believe ----

    def first(self, method: str, params: list[Any], parse: Callable[[Any], Value], *, wide: bool = False) -> Value:
        """Return what the first provider that answers says, the sticky one before the others."""
        for attempt in range(self._attempts):
            refused: list[TooMuch] = []
            for said in self._round(method, params, parse, refused if wide else None):
                if said.refusal is not None:
                    raise said.refusal
                return said.value  # type: ignore[return-value]
            self._pause(attempt, refused)
        raise self._nobody(method)

    def agreed(
        self,
        method: str,
        params: list[Any],
        parse: Callable[[Any], Value],
        *,
        wide: bool = False,
        or_none: bool = False,
    ) -> Value:
        """Return what more than half of the providers that answer say, or raise the refusal that they agree on.

        Who does not know abstains: None, where the parser lets it through, is the answer only of all. With `or_none` it
        is an answer like any other of those that had the newest block (`recent`), and who is behind it abstains. Raises
        ChainError NO_QUORUM where they contradict each other, TooMuch for a `wide` request that too few of them serve.
        """
        if self.alone:
            return self.first(method, params, parse, wide=wide)
        for attempt in range(self._attempts):
            quorum = len(self._order()) // 2 + 1
            unsure: Said[Value] | None = None
            votes: list[Said[Value]] = []
            refused: list[TooMuch] = []
            for said in self._round(method, params, parse, refused if wide else None):
                if said.abstains and not (or_none and said.refusal is None and said.provider in self._there):
                    unsure = said
                    continue
                votes.append(said)
                if sum(said.agrees(vote) for vote in votes) >= quorum:
                    return self._elect(method, said, votes)
            if votes:
                leader = max(votes, key=lambda one: sum(one.agrees(vote) for vote in votes))
                count = sum(leader.agrees(vote) for vote in votes)
                if refused and count < quorum:
                    raise refused[0]
                if 2 * count > len(votes):
                    return self._elect(method, leader, votes)
                names = ", ".join(vote.provider.name for vote in votes)
                raise _no_quorum(f"they contradict each other about {method} ({names})")
            if unsure is not None:
                if unsure.refusal is not None:
                    raise unsure.refusal
                return unsure.value  # type: ignore[return-value]
            self._pause(attempt, refused)
        raise self._nobody(method)

    def numbers(
        self,
        method: str,
        params: list[Any],
        *,
        instead: int | None = None,
        parse: Callable[[Any], int] = answers.quantity,
    ) -> list[int]:
        """Return what each provider that answers says, in rising order: for what honest ones need not agree on.

        `instead` is the word of one that does not serve the method. Raises the refusal where all of them refuse.
        """
        for attempt in range(self._attempts):
            found = list(self._round(method, params, parse))
            words = [instead if _unserved(said.refusal) else said.value for said in found]
            values = sorted(word for word in words if word is not None)
            if values:
                return values
            if found:
                assert found[0].refusal is not None
                raise found[0].refusal
            self._pause(attempt)
        raise self._nobody(method)

    def every(self, method: str, params: list[Any], parse: Callable[[Any], Value]) -> dict[Provider, Value]:
        """Return what each provider says that answers and does not refuse, those left out that say None."""
        return {said.provider: said.value for said in self._round(method, params, parse) if said.value is not None}

    def counted(self, method: str, words: Mapping[Provider, int | None], *, or_none: bool = False) -> int | None:
        """Return the number that more than half say; None is a vote for no number.

        Where nothing has so many votes and anybody says none, it is the highest number that is said, or with `or_none`
        None. Who says another number is set aside, and nobody where no number has won: there are providers that leave
        one out. Raises ChainError NO_QUORUM where all say a number, and none is said by more than half.
        """
        word, count = Counter(words.values()).most_common(1)[0]
        if 2 * count <= len(words):
            numbers = [number for number in words.values() if number is not None]
            if len(numbers) < len(words):
                return None if or_none else max(numbers)
            names = ", ".join(one.name for one in words)
            raise _no_quorum(f"they contradict each other about a fee in {method} ({names})")
        for provider, said in words.items():
            if None not in (said, word) and said != word:
                self._outvote(provider, method)
        return word

    def tell(self, method: str, params: list[Any], parse: Callable[[Any], Value]) -> Value:
        """Tell every provider, and return what the first that takes it says; else raise what most of them say."""
        for attempt in range(self._attempts):
            found = list(self._round(method, params, parse))
            for said in found:
                if said.value is not None:
                    return said.value
            if found:
                refusals = [said.refusal for said in found if said.refusal is not None]
                codes = Counter(refusal.code for refusal in refusals)
                raise max(refusals, key=lambda refusal: codes[refusal.code])
            self._pause(attempt)
        raise self._nobody(method)

    def newest(self) -> Block:
        """Return the newest block that more than half of the answering providers know, field by field.

        A provider whose own newest block is more than MAX_LAG away from that of the others does not count.
        """
        if self.alone:
            newest = self.first("eth_getBlockByNumber", ["latest", False], answers.block)
            self._agreed = self._clock(), newest
            return newest
        for attempt in range(self._attempts):
            heads = self.every("eth_getBlockByNumber", ["latest", False], answers.block)
            if heads:
                agreed = self._meet(self._near(heads))
                self._agreed = self._clock(), agreed
                self._there = {one for one, block in heads.items() if block.number >= agreed.number}
                return agreed
            self._pause(attempt)
        raise self._nobody("eth_getBlockByNumber")

    def recent(self) -> Block:
        """Return the newest block as of a moment ago."""
        if self._agreed is not None and self._clock() - self._agreed[0] <= _RECENT_SECONDS:
            return self._agreed[1]
        return self.newest()

    def _near(self, heads: dict[Provider, Block]) -> dict[Provider, Block]:
        """Leave out, and set aside, those that are far from the height of more than half of those that answer.

        Where no height has so many, a provider that stands still is told by its newest block's time. Raises ChainError
        NO_QUORUM where none is that old, or what is left is still apart: of two, either may be the one that lies.
        """
        numbers = sorted(block.number for block in heads.values())
        # Whatever more than half are near to, the middle one is among them.
        near = _within(heads, numbers[len(numbers) // 2])
        if 2 * len(near) <= len(heads):
            near = {one: block for one, block in heads.items() if self._wall() - block.timestamp <= MAX_LAG}
            top = max((block.number for block in near.values()), default=0)
            if not near or len(_within(near, top)) < len(near):
                told = ", ".join(f"{one.name} at {block.number}" for one, block in heads.items())
                raise _no_quorum(f"their newest blocks are too far apart: {told}")
        height = max(block.number for block in near.values())
        for provider, block in heads.items():
            if provider not in near:
                where = "behind" if block.number < height else "ahead of"
                why = f"its newest block is {abs(block.number - height)} {where} that of the others"
                self._set_aside(provider, ProviderFailed(why, code="RPC_LAGS"))
        return near

    def _meet(self, heads: dict[Provider, Block]) -> Block:
        """Return the newest block on which more than half agree. Raises ChainError NO_QUORUM."""
        # A height that more than half have reached; of two, both.
        top = sorted((block.number for block in heads.values()), reverse=True)[len(heads) // 2]
        for height in range(top, max(-1, top - MAX_LAG), -1):
            votes: list[Block] = []
            for provider, block in heads.items():
                known = block if block.number == height else self._block_of(provider, height)
                if known is not None:
                    votes.append(known)
            if votes:
                winner, count = Counter(votes).most_common(1)[0]
                if 2 * count > len(heads):
                    return winner.announcing(votes)
        raise _no_quorum(f"they do not agree on a chain ({', '.join(provider.name for provider in heads)})")

    def _block_of(self, provider: Provider, height: int) -> Block | None:
        """Ask one provider for a block; None where it does not answer, or not with that block."""
        if provider.down_until > self._clock():
            return None
        try:
            found = self._ask(provider, "eth_getBlockByNumber", [hex(height), False], optional_block, timed=True)
        except ProviderFailed as failed:
            self._set_aside(provider, failed)
            return None
        except HearthError:
            return None
        return found if found is not None and found.number == height else None

    def _elect(self, method: str, winner: Said[Value], votes: list[Said[Value]]) -> Value:
        """Return what won the vote, and set aside who said otherwise; None may be said by a part that lags."""
        for vote in votes:
            if not vote.abstains and not winner.agrees(vote):
                self._outvote(vote.provider, method)
        if winner.refusal is not None:
            raise winner.refusal
        return winner.value  # type: ignore[return-value]

    def _outvote(self, provider: Provider, method: str) -> None:
        """Set aside who contradicts more than half of the others."""
        self.counts["outvoted"] += 1
        self._set_aside(provider, ProviderFailed(f"it contradicts the others about {method}", code="RPC_LIES"))

    # ---- whom to ask ----

    def _round(
        self,
        method: str,
        params: list[Any],
        parse: Callable[[Any], Value],
        refused: list[TooMuch] | None = None,
    ) -> Iterator[Said[Value]]:
        """Ask one provider after the other, for as long as the caller wants to hear more; set aside who fails.

        `refused` takes up who will not serve as much at once, or not in time; without it that is a failure, since a
        single block cannot be asked for in halves.
        """
        self._let_rest()
        for provider in self._order():
            try:
                said = Said(provider, self._ask(provider, method, params, parse, timed=refused is None), None)
            except ProviderFailed as failed:
                self._set_aside(provider, failed)
                if refused is not None and failed.timeout:
                    refused.append(TooMuch(failed.why))
                continue
            except TooMuch as error:
                if refused is None:
                    self._set_aside(provider, ProviderFailed(str(error), code="RPC_LOGS_LIMIT"))
                else:
                    refused.append(error)
                continue
            except HearthError as refusal:
                said = Said(provider, None, refusal)
            if self._all[self._current].down_until > self._clock():
                self.counts["failovers"] += 1
                self._current = self._all.index(provider)
            yield said

    def _order(self) -> list[Provider]:
        """List the providers to ask: from the sticky one on, those set aside left out unless all are.

        Who is asked too often is left out even then, as long as anybody else can be asked.
        """
        order = self._all[self._current :] + self._all[: self._current]
        now = self._clock()
        up = [one for one in order if one.down_until <= now]
        return up or [one for one in order if not one.rests(now)] or order

    def _ask(
        self, provider: Provider, method: str, params: list[Any], parse: Callable[[Any], Value], *, timed: bool
    ) -> Value:
        """Ask one provider. Raises ProviderFailed, TooMuch, HearthError."""
        if not provider.verified:
            self._verify(provider)
        value, took = self._send(provider, method, params, parse)
        now = self._clock()
        if now - provider.down_until > FORGIVEN_SECONDS:
            provider.failures = 0
        provider.throttles = 0
        provider.down_until = min(provider.down_until, now)
        provider.fault = None
        if timed:
            self._time(provider, took, now)
        return value

    def _send(
        self, provider: Provider, method: str, params: list[Any], parse: Callable[[Any], Value]
    ) -> tuple[Value, float]:
        """Send one request when it is its turn; return the answer, and the seconds that it took."""
        provider.pace.take()
        self.counts["requests"] += 1
        began = self._clock()
        return provider.endpoint.ask(method, params, parse), self._clock() - began

    def _time(self, provider: Provider, took: float, now: float) -> None:
        """Set aside who is slow again and again: each answer in time, and a round of them never."""
        if now - provider.slow_since > FORGIVEN_SECONDS:
            provider.slow, provider.slow_since = 0.0, now
        provider.slow += max(0.0, took - PATIENCE_SECONDS)
        if provider.slow > self._timeout and not self.alone:
            self._set_aside(provider, ProviderFailed(f"it answered {provider.slow:.0f} s too slowly in a minute"))
            provider.slow, provider.slow_since = 0.0, now

    def _set_aside(self, provider: Provider, failed: ProviderFailed) -> None:
        """Leave a provider alone for a while: one that failed, or one that is asked too often and works otherwise."""
        if failed.throttled:
            self.counts["throttled"] += 1
            provider.throttles += 1
            provider.pace.slow_down()
            times, longest = provider.throttles, _MAX_WAIT
        else:
            provider.failures += 1
            provider.verified = False
            times, longest = provider.failures, _MAX_PAUSE
        pause = random.uniform(0.5, 1.0) * min(longest, 0.5 * 2 ** min(times, 12))
        provider.down_until = self._clock() + max(pause, min(_MAX_WAIT, failed.wait))
        provider.fault = failed
        self._on_fault(provider.name, failed.why)

    def _let_rest(self) -> None:
        """Wait until the first may be asked again, where all of them say that they are asked too often."""
        now = self._clock()
        if all(one.rests(now) for one in self._all):
            self._sleep(min(one.down_until for one in self._all) - now)

    def verify(self) -> None:
        """Check every provider that answers against the pinned chain.

        Raises ChainError WRONG_CHAIN where one of them serves another, or the last failure where none answers.
        """
        answered = 0
        for provider in self._all:
            try:
                self._verify(provider)
                answered += 1
            except ProviderFailed as failed:
                self._set_aside(provider, failed)
                if failed.code == "WRONG_CHAIN":
                    raise ChainError(
                        f"{provider.name}: {failed.why}", code="WRONG_CHAIN", retryable=False, hint="hearth doctor"
                    ) from failed
        if not answered:
            raise self._nobody("eth_chainId")

    def _verify(self, provider: Provider) -> None:
        """Refuse a provider of another chain, before its first answer is used and after every outage."""
        if self._want_chain is not None:
            served, _ = self._send(provider, "eth_chainId", [], answers.quantity)
            if served != self._want_chain:
                raise _wrong_chain(f"chain id {served}, not {self._want_chain}")
        if self._want_genesis is not None:
            genesis = "eth_getBlockByNumber", ["0x0", False]
            found, _ = self._send(provider, *genesis, lambda raw: answers.digest(raw["hash"]))
            if found != self._want_genesis:
                raise _wrong_chain("another genesis block")
        provider.verified = provider.proven = True

    def _pause(self, attempt: int, refused: Sequence[TooMuch] = ()) -> None:
        """Wait before the next attempt. Raises what no further attempt can change."""
        if refused:
            raise refused[0]
        if self._serve_another_chain():
            raise self._nobody("eth_chainId")
        now = self._clock()
        if attempt + 1 < self._attempts and not all(one.rests(now) for one in self._all):
            self._sleep(random.uniform(0.5, 1.0) * 0.25 * 2**attempt)

    def _serve_another_chain(self) -> bool:
        """Say whether every provider serves another chain, and none ever served this one to this process."""
        return all(one.fault is not None and one.fault.code == "WRONG_CHAIN" and not one.proven for one in self._all)

    def _nobody(self, method: str) -> ChainError:
        """Return the error of a request that no provider answers, with what each of them did instead."""
        faults = {one.name: one.fault for one in self._all if one.fault is not None}
        said = "; ".join(f"{name}: {fault.why}" for name, fault in faults.items())
        codes = {fault.code for fault in faults.values()}
        if codes == {"RPC_LOGS_LIMIT"}:
            return ChainError(
                f"no provider serves the logs of a single block ({said})", code="RPC_LOGS_LIMIT", hint="hearth doctor"
            )
        code = codes.pop() if len(codes) == 1 else "RPC_UNAVAILABLE"
        return ChainError(
            f"no RPC provider answers {method} ({said})",
            code=code,
            retryable=not self._serve_another_chain(),
            hint="hearth doctor",
        )


def _unserved(refusal: HearthError | None) -> bool:
    return refusal is not None and refusal.code == "RPC_UNSUPPORTED"


def _within(heads: dict[Provider, Block], height: int) -> dict[Provider, Block]:
    """Return those whose newest block is near a height."""
    return {one: block for one, block in heads.items() if abs(block.number - height) <= MAX_LAG}


def _no_quorum(why: str) -> ChainError:
    return ChainError(
        f"the RPC providers leave it open what is true: {why}",
        code="NO_QUORUM",
        hint="add a third provider to rpc, or take out the one that is wrong: hearth worker doctor",
    )


def optional_block(raw: Any) -> Block | None:
    return None if raw is None else answers.block(raw)


def _wrong_chain(why: str) -> ProviderFailed:
    return ProviderFailed(f"it serves another chain: {why}", code="WRONG_CHAIN")
