"""The two parameter profiles of a deployment: `public` for real networks, `devnet` for a local chain in real time.

Amounts are written in wei, for what an ether is worth, and brought to the asset by its decimals and by how many of it
are worth one ether. Source: protocol.md "Parameters"; the hard bounds are in the contracts' code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from hearth.base.errors import ConfigError
from hearth.market.network import NodeParameters
from hearth.protocol.types import Policy
from hearth.protocol.units import Asset

_DAY: Final = 86_400
_DIGITS: Final = 3
"""As many digits of an amount as a policy's code always holds."""
_MOST: Final = 1 << 79
"""Half of what the lane of a stake holds, in base units."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One set of parameters.

    `beat_every` is the seconds between a worker's beats, `delay` those that everybody has to see a change.
    """

    name: str
    policy: Policy
    node_parameters: NodeParameters
    beat_every: int
    delay: int

    def for_asset(self, asset: Asset, per_ether: Fraction) -> Profile:
        """Return the profile in base units of an asset of which `per_ether` whole ones are worth an ether.

        Amounts are rounded down, a policy's to three digits. Raises ConfigError UNFIT_AMOUNTS where one of them, or a
        share that the contracts take of it, would be nothing, or more than they can hold.
        """
        scale = per_ether * Fraction(10**asset.decimals, 10**18)

        def scaled(amount: int) -> int:
            return int(amount * scale)

        policy, node = self.policy, self.node_parameters
        found = replace(
            self,
            policy=replace(
                policy,
                min_price=_coded(scaled(policy.min_price)),
                min_keeper_fee=_coded(scaled(policy.min_keeper_fee)),
                probation_price=_coded(scaled(policy.probation_price)),
            ),
            node_parameters=replace(
                node,
                minimum_stake=scaled(node.minimum_stake),
                fee_reference=scaled(node.fee_reference),
                liveness_fee=scaled(node.liveness_fee),
            ),
        )
        wrong = [f"{name} would be nothing" for name, amount in _least(found) if amount == 0]
        wrong += [f"{name} would be too large" for name, amount in _least(found) if amount >= _MOST]
        if wrong:
            raise ConfigError(
                f"in {asset.symbol} of {asset.decimals} decimals, {float(per_ether):g} to an ether, {', '.join(wrong)}",
                hint="check --per-ether and --decimals: what has no small coin cannot pay a market's shares",
                code="UNFIT_AMOUNTS",
            )
        return found


def _coded(amount: int) -> int:
    """Round an amount down to what a policy can hold."""
    step: int = 10 ** max(0, len(str(amount)) - _DIGITS)
    return amount // step * step


def _least(profile: Profile) -> Iterator[tuple[str, int]]:
    """Yield the smallest share that the contracts take of each amount, with its name."""
    policy, node = profile.policy, profile.node_parameters
    yield "an eighth of min_keeper_fee", policy.min_keeper_fee // 8
    yield "the fee on min_price", policy.min_price * policy.fee_bps // 10_000
    # A unit's bond is at least eight keeper fees, its slash a tenth of that.
    yield "a quarter of the smallest slash", 8 * policy.min_keeper_fee // 10 // 4
    yield "probation_price", policy.probation_price
    yield "half of minimum_stake", node.minimum_stake // 2
    yield "fee_reference", node.fee_reference
    yield "liveness_fee", node.liveness_fee


PUBLIC: Final = Profile(
    name="public",
    policy=Policy(
        version=1,
        fee_bps=500,
        min_bond_bps=5_000,
        claim_ramp=30,
        fresh_delay=3_600,
        fetch_floor=60,
        reserved=0,
        min_price=10**12,
        min_keeper_fee=10**11,
        probation_price=2 * 10**16,
        min_match_window=12,
        ack_time=60,
        open_claim_after=300,
        cancel_notice=120,
        grace_floor=300,
        start_fee_seconds=60,
        min_challenge_window=7_200,
        key_timeout=3_600,
        reserved_high=0,
        min_checkpoint=60,
    ),
    node_parameters=NodeParameters(
        dead_after=900,
        ask_notice=600,
        unbonding=7 * _DAY,
        minimum_stake=10**18,
        fee_reference=10**15,
        liveness_fee=10**13,
        ration_bps=100,
    ),
    beat_every=300,
    delay=2 * _DAY,
)

DEVNET: Final = Profile(
    name="devnet",
    # The examples and templates ask up to 1.20 an hour for ten minutes, of nodes that have just begun.
    policy=replace(
        PUBLIC.policy,
        probation_price=2 * 10**17,
        claim_ramp=1,
        fresh_delay=5,
        fetch_floor=10,
        min_match_window=1,
        ack_time=8,
        open_claim_after=6,
        cancel_notice=3,
        grace_floor=10,
        start_fee_seconds=2,
        min_challenge_window=5,
        key_timeout=10,
        min_checkpoint=2,
    ),
    node_parameters=replace(PUBLIC.node_parameters, dead_after=20, ask_notice=2, unbonding=20, fee_reference=10**16),
    beat_every=2,
    delay=5,
)

PROFILES: Final = {profile.name: profile for profile in (PUBLIC, DEVNET)}
