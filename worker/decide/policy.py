"""What a provider does not take, pure: each rule names its key of worker.toml, and the value that it met.

A rule holds before anything is sent for a job: before a claim, a proposal of this node, and the ack of a proposal that
somebody else made. Of a lease that the node holds none is asked: its bond is at stake, whatever the settings say by
then. Source: docs/decisions/0018-take-only-work-that-pays-and-fits.md.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from hearth.protocol import formulas
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import RATE_SCALE, ZERO_ADDRESS, Terms, TermsFlag, Unit
from hearth.protocol.units import format_duration, format_size, show_amount, show_rate
from worker import registries
from worker.decide.snapshot import Config, Reason, SpecFacts

Refusal = tuple[Reason, str]
"""A reason, and the sentence that names the rule and the value."""


def refuse_terms(terms: Terms, config: Config, rate: int) -> Refusal | None:
    """Return why a job is not taken that asks for what its terms say, None where they are no reason.

    `rate` is what this node asks now, base units x 1e6 per second.
    """
    submitter = terms.submitter.lower()
    if submitter in config.submitters_refused:
        return Reason.SUBMITTER_REFUSED, f"accept.refuse_submitters names {submitter}"
    if config.submitters is not None and submitter not in config.submitters:
        return Reason.SUBMITTER_REFUSED, f"accept.submitters does not name {submitter}"
    unsupported = _unsupported(terms)
    if unsupported:
        return Reason.NOT_SUPPORTED, unsupported
    unknown = _unknown_judge(terms, config)
    if unknown:
        return Reason.JUDGE_UNKNOWN, unknown
    bound = _bound_too_much(terms, config)
    if bound:
        return Reason.BOND_TOO_LARGE, bound
    if config.gpu_only and not terms.needs.gpu_count:
        return Reason.NO_GPU_ASKED, "accept.gpu_only is true, and the job asks for no GPU"
    if terms.needs.exact and config.gpu_tiers - {terms.needs.tier}:
        return Reason.GPU_KINDS, "the job wants one GPU model alone, and a slot of this node may get another"
    return _too_long_or_cheap(terms, config, rate)


def _unknown_judge(terms: Terms, config: Config) -> str:
    """Say why a job's judge is not trusted with a bond, empty where it is, or where there is none."""
    if terms.judge == ZERO_ADDRESS:
        return ""
    trusted = config.judges.get(terms.judge)
    if trusted is None:
        return f"accept.judges does not name {terms.judge}"
    if trusted.sets is None or terms.judge_data in trusted.sets:
        return ""
    return f"{trusted.setting} does not name the set {terms.judge_data:#066x}"


def _bound_too_much(terms: Terms, config: Config) -> str:
    """Say why a judged lease would bind more stake than the provider allows, empty where it does not.

    What its judge leaves without a ruling stays bound until the deadline and longer. The market's least bond is no
    reason: every lease binds that.
    """
    price = formulas.price(terms)
    bond = formulas.bond(terms)
    if bond <= max(config.max_bond * price, formulas.base_bond(terms)):
        return ""
    bound, paid = show_amount(bond, config.asset), show_amount(price, config.asset)
    return f"a lease binds {bound} of stake, and accept.max_bond is {config.max_bond} times the {paid} that it may pay"


def _too_long_or_cheap(terms: Terms, config: Config, rate: int) -> Refusal | None:
    """Return why a job is not taken for its time or its pay."""
    seconds = formulas.lease_seconds(terms)
    too_long = refuse_time(terms, config)
    if too_long is not None:
        return too_long
    slack = formulas.grace(terms)
    if slack < config.lead:
        late = f"this machine's transactions take {config.lead:.1f} s"
        return Reason.TOO_TIGHT, f"its lease has {slack} s beyond the run, and {late}"
    if rate < config.min_rate:
        asked, least = show_rate(rate, config.asset), show_rate(config.min_rate, config.asset)
        return Reason.RATE_BELOW_MINIMUM, f"the node asks {asked}, and accept.min_price is {least}"
    pay = rate * seconds // RATE_SCALE
    if pay < config.min_pay:
        paid, least = show_amount(pay, config.asset), show_amount(config.min_pay, config.asset)
        return Reason.PAY_BELOW_MINIMUM, f"a unit pays at most {paid}, and accept.min_pay is {least}"
    return None


def refuse_time(terms: Terms, config: Config) -> Refusal | None:
    """Return why a unit is not taken for its time, None where that is no reason; `terms` are those with its top-ups."""
    seconds = formulas.lease_seconds(terms)
    if seconds <= config.max_seconds:
        return None
    most = format_duration(config.max_seconds)
    return Reason.TOO_LONG, f"it may run for {format_duration(seconds)}, and accept.max_runtime is {most}"


def followed_seconds(terms: Terms, unit: Unit, config: Config) -> int:
    """Return for how many of the seconds that a unit was topped up by this worker runs it: no longer in all than it
    would have taken it for, and never less than its terms say."""
    bought = formulas.lease_seconds(formulas.topped(terms, unit)) - formulas.lease_seconds(terms)
    return min(bought, max(0, config.max_seconds - formulas.lease_seconds(terms)))


def refuse_spec(spec: SpecFacts, config: Config) -> Refusal | None:
    """Return why a job is not taken that runs and brings what its spec says, None where that is no reason."""
    if spec.bad:
        return Reason.SPEC_BAD, spec.bad
    if spec.runtime not in config.runtimes:
        return Reason.NOT_SUPPORTED, f"runtime {spec.runtime} is not available here"
    refused = _refuse_program(spec, config)
    if refused:
        return Reason.IMAGE_REFUSED, refused
    for what, size, most, rule in (
        ("its inputs have", spec.input_bytes, config.max_input_bytes, "storage.max_input"),
        ("its outputs may have", spec.output_bytes, config.max_output_bytes, "storage.max_output"),
    ):
        if size > most:
            return Reason.TOO_BIG, f"{what} {format_size(size)}, and this worker takes {format_size(most)} ({rule})"
    return None


def _refuse_program(spec: SpecFacts, config: Config) -> str:
    """Return why a program is not run here, empty where it may be. What is refused is refused by any of its names."""
    program = RUNTIMES[spec.runtime].program
    is_image, target = program == "image", spec.target
    allowed, refused = config.programs(program)
    for pattern in refused:
        if (registries.fits_at_any_port if is_image else fnmatchcase)(target, pattern):
            return f'{target}: accept.refuse_{program}s has "{pattern}"'
    if not any((registries.fits if is_image else fnmatchcase)(target, pattern) for pattern in allowed):
        return f"{target}: no pattern of accept.{program}s fits"
    return registries.refuse(target, config.registries) if is_image else ""


def _unsupported(terms: Terms) -> str:
    """Name the terms that this worker cannot serve; all but replicas the contracts refuse at post too."""
    if terms.replicas > 1:
        return "replicas"
    if terms.chunk > 1:
        return "chunk"
    if terms.judge == ZERO_ADDRESS and formulas.bond(terms) > formulas.base_bond(terms):
        return "a bond above the market's, and no judge who could take it"
    if terms.flags & TermsFlag.CONFIDENTIAL:
        return "confidential inputs"
    return ""
