"""`after:` and `verify: {keep: true}` of a job file: what they take, what they cost, and what the chain has of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hearth.base.errors import SpecError
from hearth.jobfile import (
    JobSpec,
    dump_spec,
    model,
    parents_of,
    parse_spec,
    plan_prices,
    resolve,
    spec_digest,
    spec_from,
    terms_of,
)
from hearth.market.profiles import PUBLIC
from hearth.protocol.parents import Condition, Parent, pack_parents, parents_hash
from hearth.protocol.types import MAX_PARENTS, ZERO_HASH, JobId, Needs, Terms, TermsFlag
from hearth.protocol.units import Asset, parse_amount

USD = Asset("USDX", 6, "0x" + "11" * 20)
POLICY = dataclasses.replace(PUBLIC.policy, min_price=1_000, min_keeper_fee=400, probation_price=10**6)
NOW = 1_800_000_000
ONE, TWO = "0x" + "01" * 32, "0x" + "02" * 32


def load(line: str) -> JobSpec:
    text = f'image: "x@sha256:{"ab" * 32}"\nprice: {{max_total: "10", keeper_fee: "0.5"}}\nretry: {{attempts: 1}}\n'
    return parse_spec((text + line).encode()).spec


def terms(spec: JobSpec) -> Terms:
    return terms_of(
        spec,
        submitter="0x" + "22" * 20,
        salt=5,
        digest=b"\x01" * 32,
        needs=Needs(),
        prices=plan_prices(spec, USD, POLICY),
        policy=POLICY,
        policy_word=9,
        now=NOW,
    )


@pytest.mark.parametrize(
    ("line", "conditions"),
    [
        (f'after: "{ONE}"', [(ONE, "success")]),
        (f"after: {{job: '{ONE}', if: failure}}", [(ONE, "failure")]),
        (f'after: ["{TWO}", {{job: "{ONE}", if: always}}]', [(TWO, "success"), (ONE, "always")]),
        (f'after: [{{job: "{ONE}"}}]', [(ONE, "success")]),
        ("after: []", []),
    ],
)
def test_after__each_form__is_parents_in_their_order_and_is_written_back(
    line: str, conditions: list[tuple[str, str]]
) -> None:
    spec = load(line)
    wanted = [Parent(JobId(bytes.fromhex(job[2:])), Condition[condition.upper()]) for job, condition in conditions]
    assert list(parents_of(spec)) == wanted
    assert parse_spec(dump_spec(spec).encode()).spec == spec
    assert terms(spec).parents_hash == (parents_hash(pack_parents(wanted)) if wanted else ZERO_HASH)


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        (f'after: ["{ONE}", "{ONE}"]', "after[1]", "names a job twice"),
        (f'after: ["{ONE}", {{job: "{ONE}", if: failure}}]', "after[1]", "names a job twice"),
        ('after: ["0xabcd"]', "after[0]", "not a job id"),
        (f'after: ["{ONE.upper()}"]', "after[0]", "not a job id"),
        (f'after: {{job: "{ONE}", if: never}}', "after[0].if", '"success", "failure" or "always"'),
        (f'after: {{job: "{ONE}", when: always}}', "after[0].when", "unknown key"),
        ("after: {if: always}", "after[0]", "job is missing"),
        ("after: 7", "after[0]", "this is text"),
        ("after: [[]]", "after[0]", "must be text, not a list"),
        ("after:", "after[0]", "must be text, not empty"),
        ("verify: {keep: 1}", "verify.keep", "must be true or false"),
    ],
)
def test_after__what_is_no_parent__is_refused_by_its_field(line: str, field: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(line)
    assert caught.value.details["field"] == field and message in caught.value.message, caught.value.message


def test_after__as_many_as_the_chain_takes__and_no_more() -> None:
    assert model.MAX_PARENTS == MAX_PARENTS
    ids = [f"0x{number:064x}" for number in range(1, MAX_PARENTS + 2)]
    job: dict[str, Any] = {"image": "x", "after": ids[:-1]}
    assert len(pack_parents(parents_of(spec_from(job).spec))) == MAX_PARENTS + 1
    with pytest.raises(SpecError, match=f"has {MAX_PARENTS + 1} entries; the most is {MAX_PARENTS}"):
        spec_from({**job, "after": ids})


def test_after__is_no_part_of_the_document__but_of_the_terms() -> None:
    free, waits = load(""), load(f'after: "{ONE}"')
    assert spec_digest(resolve(free, {})) == spec_digest(resolve(waits, {}))
    assert terms(free) != terms(waits)
    assert dataclasses.replace(terms(waits), parents_hash=ZERO_HASH, ceiling=terms(free).ceiling) == terms(free)


def test_plan_prices__job_that_waits__sets_a_keeper_fee_more_aside_within_its_limit() -> None:
    free, waits = plan_prices(load(""), USD, POLICY), plan_prices(load(f'after: "{ONE}"'), USD, POLICY)
    fee = parse_amount("0.5", USD)
    assert free.total == waits.total == parse_amount("10", USD)
    assert free.unit_price - waits.unit_price == fee == waits.total - waits.unit_price - waits.keeper_fee


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("verify: {keep: true}", TermsFlag.KEEP),
        ("verify: {keep: false}", TermsFlag(0)),
        ("verify: {keep: true}\nmatch: {newcomers: true}", TermsFlag.KEEP | TermsFlag.NEWCOMERS),
    ],
)
def test_terms_of__keep__is_a_flag_of_its_own(line: str, flags: TermsFlag) -> None:
    assert terms(load(line)).flags == flags


def test_keep__beside_attesters__is_taken() -> None:
    assert load("verify: {keep: true, attesters: a.yaml}").verify.kind == "attested"
