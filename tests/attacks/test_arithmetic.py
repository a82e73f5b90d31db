"""Attack 20: arithmetic that corrupts a field. Random extremes; every field must equal the model after every call."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import formulas
from hearth.protocol.types import Billing, Terms
from tests.attacks.modelled import LIVES, Modelled
from tests.kit import world as w

TOP = 2**80 - 1
BPS = st.sampled_from([0, 1, 333, 500, 999, 1_000])


@st.composite
def policies(draw: st.DrawFn) -> w.Policy:
    """Draw parameters at and near the bounds that `set_policy` has."""
    fee = draw(BPS)
    return w.replace(
        w.POLICY,
        fee_bps=fee,
        min_bond_bps=draw(st.sampled_from([1, 9, 4_999, 5_000, 10_000, 65_535])),
        min_price=0,
        min_keeper_fee=8,
        probation_price=draw(st.sampled_from([0, 10 * w.FEE_REFERENCE])) if fee >= 10 else 0,
        ack_time=draw(st.sampled_from([2, 60, 600])),
        open_claim_after=draw(st.sampled_from([2, 300, 3_600])),
        cancel_notice=draw(st.sampled_from([0, 1, 120, 4_095])),
        claim_ramp=draw(st.sampled_from([1, 30, 3_600])),
        grace_floor=draw(st.sampled_from([1, 300, 3_600])),
        start_fee_seconds=draw(st.sampled_from([0, 1, 60, 4_095])),
    )


def _fits(terms: Terms, policy: w.Policy) -> bool:
    """Say whether `post` takes these amounts."""
    return (
        formulas.bond(terms) <= TOP
        and formulas.escrow_at_post(terms) < 2**96
        and terms.keeper_fee <= max(formulas.unit_price(terms), policy.min_keeper_fee)
    )


@given(
    policy=policies(),
    life=st.sampled_from(sorted(LIVES)),
    ceiling=st.one_of(st.integers(1, 10**7), st.integers(10**17, 10**19), st.integers(2**79, TOP)),
    seconds=st.sampled_from([1, 2, 59, 3_600, 10**6, 30 * w.DAY]),
    share=st.sampled_from([0, 1, 3, 7, 8, 9, 15, 16]),
    ask=st.sampled_from([0, 1, 2]),
    attempts=st.integers(1, 8),
    billing=st.sampled_from(list(Billing)),
    used=st.sampled_from([1, 2**24 - 1, 1_000]),
    late=st.sampled_from([0, 1, 119, 599, 600, 601, 10**6]),
)
def test_arithmetic__extreme_parameters_and_amounts__equal_the_model(
    policy: w.Policy,
    life: str,
    ceiling: int,
    seconds: int,
    share: int,
    ask: int,
    attempts: int,
    billing: Billing,
    used: int,
    late: int,
) -> None:
    rate = (ceiling, 1, max(1, ceiling - 1))[ask]
    both = Modelled(policy, ask=rate, stake=TOP)
    price = -(-ceiling * seconds // 10**6)
    terms = both.terms(
        ceiling=ceiling,
        max_seconds=seconds,
        keeper_fee=max(policy.min_keeper_fee, min(price * share // 16, 2**75)),
        max_attempts=attempts,
        billing=billing,
        match_window=12 if life in ("match", "lapse") else 0,
        deadline=both.world.evm.now + 200 * w.DAY,
    )
    if not _fits(terms, policy):
        terms = w.replace(terms, max_seconds=1, keeper_fee=policy.min_keeper_fee, max_attempts=1)
    both.post(terms)
    LIVES[life](both, late, used if billing == Billing.FUEL else 0)
    assert both.job.units[0].state.terminal
    assert both.job.paid == both.job.funded
    assert both.world.lock_of(both.job.terms) == 0
