"""The two parameter profiles of a deployment: `public` for real networks, `devnet` for a local chain in real time.

Amounts are written for an asset of 18 decimals and scaled to the asset's own. Source: SPEC section
"Parameters"; the hard bounds are in the contracts' code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hearth.market.network import NodeParameters
from hearth.protocol.types import Policy

_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Profile:
    """One set of parameters. `beat_every` is the seconds between a worker's beats."""

    name: str
    policy: Policy
    node_parameters: NodeParameters
    beat_every: int

    def for_decimals(self, decimals: int) -> Profile:
        """Return the profile with its amounts in base units of an asset of `decimals` places, never below one."""
        return replace(
            self,
            policy=replace(
                self.policy,
                min_price=_scaled(self.policy.min_price, decimals),
                min_keeper_fee=_scaled(self.policy.min_keeper_fee, decimals),
                probation_price=_scaled(self.policy.probation_price, decimals),
            ),
            node_parameters=replace(
                self.node_parameters,
                minimum_stake=_scaled(self.node_parameters.minimum_stake, decimals),
                fee_reference=_scaled(self.node_parameters.fee_reference, decimals),
                liveness_fee=_scaled(self.node_parameters.liveness_fee, decimals),
            ),
        )


def _scaled(amount: int, decimals: int) -> int:
    """Move an amount of 18 decimals to `decimals`, rounding up."""
    if decimals >= 18:
        return amount * int(10 ** (decimals - 18))
    return -(-amount // int(10 ** (18 - decimals)))


PUBLIC: Final = Profile(
    name="public",
    policy=Policy(
        version=1,
        fee_bps=500,
        bond_none_bps=5_000,
        bond_optimistic_bps=40_000,
        bond_redundant_bps=10_000,
        bond_proof_bps=5_000,
        min_price=10**12,
        min_keeper_fee=10**11,
        probation_price=10**18,
        min_match_window=12,
        ack_time=60,
        open_claim_after=300,
        cancel_notice=120,
        grace_floor=300,
        start_fee_seconds=60,
        min_challenge_window=7_200,
        key_timeout=3_600,
        audit_share_bps=300,
        min_jurors=7,
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
)

DEVNET: Final = Profile(
    name="devnet",
    policy=replace(
        PUBLIC.policy,
        min_match_window=1,
        ack_time=4,
        open_claim_after=6,
        cancel_notice=3,
        grace_floor=3,
        start_fee_seconds=2,
        min_challenge_window=5,
        key_timeout=10,
        min_jurors=3,
        min_checkpoint=2,
    ),
    node_parameters=replace(PUBLIC.node_parameters, dead_after=6, ask_notice=2, unbonding=20),
    beat_every=2,
)

PROFILES: Final = {profile.name: profile for profile in (PUBLIC, DEVNET)}
