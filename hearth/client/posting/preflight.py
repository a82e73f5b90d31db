"""From a job file to a plan: its sources, its terms, its price, who could take it, and what that means in words.

Nothing here is written, uploaded or signed, so that every refusal that can be foreseen costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hearth.base.errors import NoWorkerError, RefusedError, SpecError
from hearth.client.job.gates import Fleet, takers, workers_in_words
from hearth.client.job.parents import ASKED, ParentView, latest_end, look_at
from hearth.client.judges import asked_judge, paid_when
from hearth.client.posting.estimate import Estimate, earlier_runs, estimate
from hearth.client.posting.sources import COMMAND_LINE, Allowed, Sources, resolve_image
from hearth.client.views import moment
from hearth.protocol import formulas
from hearth.protocol.parents import Condition
from hearth.protocol.types import ZERO_ADDRESS, ZERO_HASH, Billing, Gate, Terms, TermsFlag
from hearth.protocol.units import amount_at_least, format_duration, format_rate, rate_at_least, show_rate

if TYPE_CHECKING:
    from hearth.client.judges.port import AskedJudge
    from hearth.client.reading import JobReader
    from hearth.client.reports import JobPlan
    from hearth.jobfile import JobSpec, LoadedSpec, Prices, ResolvedSpec
    from hearth.market.reads import Policies
    from hearth.protocol.types import Needs, Policy


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked job, ready to be posted: its canonical spec, its terms but for the salt, and what workers say.

    `parents` are the jobs that it is to wait for, as they stand, and `packed` the list of them that is posted.
    """

    loaded: LoadedSpec
    resolved: ResolvedSpec
    sources: Sources
    terms: Terms
    fingerprint: str
    paused_until: int
    fleet: Fleet
    gates: Mapping[Gate, int]
    estimate: Estimate
    lines: tuple[str, ...]
    auto_price: bool
    judge: AskedJudge | None
    parents: tuple[ParentView, ...]
    packed: tuple[bytes, ...]


class Preflight:
    """Check jobs, without writing, uploading or signing anything."""

    def __init__(self, reads: JobReader) -> None:
        """Check nothing yet."""
        self.session = reads.session
        self._reads = reads

    @contextmanager
    def planned(self, loaded: LoadedSpec, allowed: Allowed, submitter: str | None = None) -> Iterator[Plan]:
        """Check a spec against files, market and workers; fetched inputs live while the context is open.

        `submitter` is who posts it, by default this account.
        """
        with tempfile.TemporaryDirectory(prefix="hearth-") as scratch:
            yield self._plan(loaded, allowed, Path(scratch), submitter)

    def _read(
        self, loaded: LoadedSpec, allowed: Allowed, scratch: Path
    ) -> tuple[Sources, ResolvedSpec, AskedJudge | None, tuple[str, ...]]:
        """Return what a job brings, its canonical spec, its judge, and what is to be known of its image."""
        from hearth.client.posting.images import look_at_image
        from hearth.jobfile import local_sources, resolve
        from hearth.jobfile.problems import field_name

        settings = self.session.settings
        seconds = float(settings.timeout)
        sources = Sources(loaded, self.session.store, scratch, allowed=allowed, seconds=seconds, kept=settings.own)
        for where, src in local_sources(loaded.spec):
            self.session.tell("step", {"text": f"reading {src}"})
            sources.name(src, field=field_name(where), workdir=where[0] == "workdir")
        spec = loaded.spec
        private, image = allowed.private, None
        if spec.image is not None and "@" not in spec.image:
            image = resolve_image(spec.image, allow_private=private)
        try:
            named_image = image or spec.image
            notes = look_at_image(named_image, spec.command, allow_private=private) if named_image is not None else ()
            resolved = resolve(spec, sources.blobs, image=image)
            judge = asked_judge(loaded)
            sources.check_program(resolved.resources.memory_mib << 20)
        except SpecError as error:
            raise loaded.located(error) from error
        return sources, resolved, judge, notes

    def _plan(self, loaded: LoadedSpec, allowed: Allowed, scratch: Path, submitter: str | None) -> Plan:
        from hearth.jobfile import needs_of, parents_of
        from hearth.protocol.parents import pack_parents
        from hearth.protocol.runtimes import RUNTIMES

        spec = loaded.spec
        sources, resolved, judge, notes = self._read(loaded, allowed, scratch)
        policies = self.session.market.policies()
        needs = needs_of(resolved.resources, resolved.runtime)
        fleet = Fleet.read(self.session)
        auto = spec.price.max_total is None and spec.price.max_rate is None and loaded.source.name == COMMAND_LINE
        # Asked for here, so that a wrong network is named before a missing account.
        submitter = submitter or self.session.key().address
        try:
            if auto:
                spec = self._with_auto_price(spec, needs, policies, fleet, submitter)
            terms = self._terms(spec, resolved, needs, policies, fleet.now, submitter, judge)
        except SpecError as error:
            if error.code == "NO_PRICE":
                unpriced = self._unpriced(spec, needs, policies, fleet, submitter)
                error.hint = self._cheapest(unpriced, spec, fleet) or error.hint
            raise loaded.located(error) from error
        gates = fleet.gates(terms)
        fingerprint = self.fingerprint(terms, spec.limits.deadline, auto, spec.price.billing == "auto")
        costs = estimate(
            terms,
            RUNTIMES[resolved.runtime],
            fleet.asks(terms),
            earlier_runs(self.session, terms.spec),
        )
        named_parents = parents_of(spec)
        parents = look_at(self._reads, named_parents, self.session.market.port.head()) if named_parents else []
        lines = (
            *sources.lines,
            *self._words(terms, resolved, gates, costs, (*loaded.notes, *notes), auto, judge),
            *_waiting_words(terms, parents),
        )
        return Plan(
            loaded=loaded,
            resolved=resolved,
            sources=sources,
            terms=terms,
            fingerprint=fingerprint,
            paused_until=policies.paused_until,
            fleet=fleet,
            gates=gates,
            estimate=costs,
            lines=lines,
            auto_price=auto,
            judge=judge,
            parents=tuple(parents),
            packed=pack_parents(named_parents),
        )

    def _terms(
        self,
        spec: JobSpec,
        resolved: ResolvedSpec,
        needs: Needs,
        policies: Policies,
        now: int,
        submitter: str,
        judge: AskedJudge | None,
    ) -> Terms:
        """Return the terms of a job, but for the salt."""
        from hearth.jobfile import plan_prices, spec_digest, terms_of

        return terms_of(
            spec,
            submitter=submitter,
            salt=0,
            digest=spec_digest(resolved),
            needs=needs,
            prices=plan_prices(spec, self.session.asset, policies.policy),
            policy=policies.policy,
            policy_word=policies.word,
            now=now,
            judge=self.session.network.contracts[judge.judge.contract] if judge else ZERO_ADDRESS,
            judge_data=judge.data if judge else 0,
        )

    def _with_auto_price(
        self, spec: JobSpec, needs: Needs, policies: Policies, fleet: Fleet, submitter: str
    ) -> JobSpec:
        """Return a spec whose ceiling is half above the cheapest ask of a worker that could take the job at its ask.

        Less where no free stake covers the bond of that price: the highest that one does, or the ask itself.
        """
        asset, unpriced = self.session.asset, self._unpriced(spec, needs, policies, fleet, submitter)
        fitting = fleet.asks(unpriced, any_price=True)
        if not fitting:
            gates = fleet.gates(unpriced, any_price=True)
            # A bond goes by price and time: below its ask no worker comes, and in less time it binds less stake.
            shorter = "use a shorter --runtime, whose bond is smaller; " if gates.get(Gate.STAKE_SHORT) else ""
            raise NoWorkerError(
                f"no worker can take this job at its own ask, so there is no price to go by: {workers_in_words(gates)}",
                hint=f"{shorter}hearth offers; or name a price with --max-rate",
                workers={gate.name.lower(): count for gate, count in sorted(gates.items())},
            )
        rate = format_rate(fitting[0] * 3 // 2, asset).replace(f" {asset.symbol}", "")
        chosen, _, terms = self._at_rate(spec, unpriced, rate)
        if takers(fleet.gates(terms)):
            return chosen
        lower = fleet.backed(terms, asset) or rate_at_least(fitting[0], asset)
        return self._at_rate(spec, unpriced, lower)[0]

    def _unpriced(self, spec: JobSpec, needs: Needs, policies: Policies, fleet: Fleet, submitter: str) -> Terms:
        """Return the terms of a job before it has a price: enough to ask which workers could take it at their own."""
        from hearth.jobfile.plan import deadline_of

        return Terms(
            submitter=submitter,
            salt=0,
            spec=bytes(32),
            needs=needs,
            ceiling=1,
            max_seconds=spec.max_seconds,
            deadline=deadline_of(spec, policies.policy, fleet.now),
            keeper_fee=policies.policy.min_keeper_fee,
            policy=policies.word,
            flags=TermsFlag.NEWCOMERS if spec.match.newcomers else TermsFlag(0),
        )

    def _cheapest(self, unpriced: Terms, spec: JobSpec, fleet: Fleet) -> str | None:
        """Return what to write for the price that the cheapest worker takes, None where the contract's least is more,
        or nobody could take the job."""
        asks = fleet.asks(unpriced, any_price=True)
        if not asks:
            return None
        rate = rate_at_least(asks[0], self.session.asset)
        with suppress(SpecError):
            self._at_rate(spec, unpriced, rate)
            return f'add price: {{max_rate: "{rate}"}}, the cheapest ask; hearth offers shows the asks'
        return None

    def _at_rate(self, spec: JobSpec, terms: Terms, rate: str) -> tuple[JobSpec, Prices, Terms]:
        """Return a spec, its prices and terms with a rate in place of its price. Raises SpecError."""
        from hearth.jobfile import plan_prices

        price = spec.price.model_copy(update={"max_rate": rate, "max_total": None})
        spec = spec.model_copy(update={"price": price})
        prices = plan_prices(spec, self.session.asset, formulas.policy_of(terms))
        return spec, prices, replace(terms, ceiling=prices.ceiling, keeper_fee=prices.keeper_fee)

    def enough(self, plan: Plan) -> str | None:
        """Return the price at which a worker would take a job that none can take, as the user would write it.

        Below the job's own where no free stake covers its bond, else above it; None where neither helps.
        """

        if takers(plan.gates):
            return None
        policy, asset = formulas.policy_of(plan.terms), self.session.asset
        typed = plan.loaded.source.name == COMMAND_LINE
        newcomers = self._for_newcomers(policy, typed=typed) if plan.gates.get(Gate.PROBATION) else None
        lower = plan.fleet.backed(plan.terms, asset)
        rates = plan.fleet.asks(plan.terms, any_price=True)
        if lower is None and not rates:
            return newcomers
        rate_text = lower or rate_at_least(rates[0], asset)
        try:
            _, prices, at = self._at_rate(plan.loaded.spec, plan.terms, rate_text)
        except SpecError:  # a price that this market does not take
            return newcomers
        if not takers(plan.fleet.gates(at)):  # the job names its own keeper fee
            return newcomers
        total = amount_at_least(prices.total, asset)
        if lower is not None:
            rate = f'--max-rate "{lower}"' if typed else f'max_rate: "{lower}"'
            short = plan.gates.get(Gate.STAKE_SHORT)
            why = "free stake covers no more" if short else "workers on probation take no dearer job"
            return f"lower the price to {rate}: {why}"
        if typed:
            return f'use --max-total "{total}", or --max-rate "{rate_text}"; hearth offers shows the asks'
        return f'write max_total: "{total}", or max_rate: "{rate_text}"; hearth offers shows the asks'

    def _for_newcomers(self, policy: Policy, *, typed: bool) -> str:
        """Return what lets workers on probation take a job that is above what they may."""
        shorter = "use a shorter --runtime" if typed else "write match: {newcomers: true}, or a shorter limits.runtime"
        most = self.session.amount(policy.probation_price)
        return f"{shorter}: workers on probation take jobs of at most {most}"

    def _words(
        self,
        terms: Terms,
        resolved: ResolvedSpec,
        gates: Mapping[Gate, int],
        costs: Estimate,
        notes: tuple[str, ...],
        auto: bool,
        judge: AskedJudge | None,
    ) -> list[str]:
        """Say in words what the job takes, costs and risks, and who could take it."""
        lines = list(notes)
        escrow = escrow_of(terms)
        fee = self.session.amount(terms.keeper_fee)
        price = formulas.unit_price(terms)
        many = f"{terms.units} units, " if terms.units > 1 else ""
        lines.append(
            f"costs at most {amount_at_least(escrow, self.session.asset)}: {many}{self.session.amount(price)} of work "
            f"each, and {terms.max_attempts} attempts' keeper fees of {fee}{_unlock_words(terms)}; what is not used "
            "comes back"
        )
        chosen = " (at most half above the cheapest fitting ask)" if auto else ""
        lines.append(
            f"pays at most {show_rate(terms.ceiling, self.session.asset)} per unit{chosen}, "
            f"{_billing_words(terms.billing, judge)}, for at most {format_duration(terms.max_seconds)}"
        )
        if terms.checkpoint_every:
            lines.append(f"checkpoints every {format_duration(terms.checkpoint_every)}; another node can resume it")
        lines += costs.lines(terms, self.session.asset)
        lines.append(
            f"brings {_about(resolved.download_bytes)}, may leave {_about(resolved.output_bytes)}; "
            f"everything uploaded is public; deadline {moment(terms.deadline)}"
        )
        lines.append(paid_when(judge, terms, self.session.amount))
        if terms.flags & TermsFlag.KEEP:
            lines.append("the chain itself keeps the digests of its results")
        lines.append(workers_in_words(gates, terms))
        return lines

    def fingerprint(self, terms: Terms, deadline: str | None, auto_price: bool, auto_billing: bool = False) -> str:
        """Name what a user would call the same job: everything but salt, clock, policy, and a price of our choice."""
        from hearth.protocol import words

        same = replace(terms, salt=0, deadline=0, policy=1)
        if auto_billing and same.billing is Billing.METERED:
            # What was chosen for such a job at first, so that a home of that time finds it pending.
            same = replace(same, billing=Billing.FIXED)
        if auto_price:
            same = replace(same, ceiling=0, keeper_fee=0)
        text = json.dumps(
            [
                self.session.network.job_chain_id,
                self.session.network.jobs,
                deadline,
                [str(word) for word in words.pack_terms(same)],
            ]
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def require_open(self, paused_until: int, now: int) -> None:
        """Refuse a new post while the governor has paused them, and for good where the chain has changed its id.

        Raises RefusedError PAUSED, CHAIN_CHANGED.
        """
        network = self.session.network
        if network.job_chain_id != network.chain_id:
            raise RefusedError(
                f"chain {network.chain_id} had the id {network.job_chain_id} when {network.name} was deployed, and its "
                "contracts take no new job since; those that are posted go on",
                hint="use --network NAME, of a market that was deployed since",
                code="CHAIN_CHANGED",
            )
        if now < paused_until:
            raise RefusedError(
                f"new posts on {network.name} are paused until {moment(paused_until)}",
                hint="the same command after that; hearth net status",
                code="PAUSED",
                retryable=True,
                paused_until=paused_until,
            )

    def require_parents(self, plan: Plan) -> None:
        """Refuse a job that could never run: one that waits for no job of this market, or for an end that did not come.

        They are read as they stand now. Raises SpecError NO_PARENT, PARENT_ENDED.
        """
        if not plan.parents:
            return
        parents = [one.parent for one in plan.parents]
        for index, one in enumerate(look_at(self._reads, parents, self.session.market.port.head())):
            job = f"job 0x{one.parent.job.hex()}"
            if one.posted is None:
                error = SpecError(
                    f"there is no {job} on {self.session.network.name}: one that waits for it would never start",
                    hint="hearth jobs --all",
                    code="NO_PARENT",
                    field=f"after[{index}]",
                )
            elif one.as_asked is False:
                error = SpecError(
                    f"{job} was {ASKED[one.parent.condition]}, and has {one.text}: this job would be refunded at once, "
                    "less a keeper fee",
                    hint=f"wait for another job, or for another end of it; hearth job show {one.name}",
                    code="PARENT_ENDED",
                    field=f"after[{index}]",
                )
            else:
                continue
            raise plan.loaded.located(error)

    def facts(self, plan: Plan) -> JobPlan:
        terms = plan.terms
        return {
            "schema": "hearth.plan/1",
            "network": self.session.network.name,
            "name": plan.resolved.name,
            "spec": terms.spec.hex(),
            "runtime": plan.resolved.runtime,
            "units": terms.units,
            "asset": self.session.asset.symbol,
            "escrow": str(escrow_of(terms)),
            "ceiling": str(terms.ceiling),
            "keeper_fee": str(terms.keeper_fee),
            "billing": terms.billing.name.lower(),
            "costs": [
                {
                    "billing": cost.billing.name.lower(),
                    "at_most": str(cost.at_most),
                    "expected": None if cost.expected is None else str(cost.expected),
                    "unit_seconds": cost.seconds,
                }
                for cost in plan.estimate.costs
            ],
            "cost_basis": {
                "rate": None if plan.estimate.rate is None else str(plan.estimate.rate),
                "asks": plan.estimate.asks,
                "units": plan.estimate.units,
            },
            "max_seconds": terms.max_seconds,
            "deadline": terms.deadline,
            "download_bytes": plan.resolved.download_bytes,
            "output_bytes": plan.resolved.output_bytes,
            "workers": {gate.name.lower(): count for gate, count in sorted(plan.gates.items())},
            "can_take": takers(plan.gates),
            "enough": self.enough(plan),
            "auto_price": plan.auto_price,
            "parents": [one.facts() for one in plan.parents],
            "judge": plan.judge.facts(terms) if plan.judge else None,
            "text": list(plan.lines),
            "dry_run": self.session.dry_run,
        }


def _unlock_words(terms: Terms) -> str:
    """Say what a job pays for being started when its parents have ended."""
    return ", and one more for whoever starts it" if terms.parents_hash != ZERO_HASH else ""


def _waiting_words(terms: Terms, parents: Sequence[ParentView]) -> Iterator[str]:
    """Say of each job that another is to wait for how far it is, by whose word it ends, and what comes too late."""
    for one in parents:
        posted = one.posted
        text = f"waits for job {one.name} {ASKED[one.parent.condition]}: {one.text}"
        if posted is None or one.as_asked is not None:
            yield text  # what has ended takes no more time, and nobody's word changes it
            continue
        if one.parent.condition is not Condition.ALWAYS and posted.terms.judge == ZERO_ADDRESS:
            text += "; how it ends is its worker's word, which nobody can challenge"
        yield text
        end = latest_end(posted.terms)
        if not formulas.has_time(terms, end):
            yield (
                f"job {one.name} may take until {moment(end)}, which leaves this one no time before its deadline: it "
                "would be refunded then; raise limits.deadline"
            )


def _about(size: int) -> str:
    """Return bytes for people, to the whole unit above."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> shift >= 10:
            return f"{-(-size >> shift)} {unit}"
    return f"{size} bytes"


def escrow_of(terms: Terms) -> int:
    """Return what posting these terms locks, base units."""
    return formulas.escrow_at_post(terms)


def _billing_words(billing: Billing, judge: AskedJudge | None) -> str:
    word = judge.fuel_by if judge else "by the word of its worker"
    return {
        Billing.FIXED: "the full time whatever it takes",
        Billing.FUEL: f"by the instructions executed ({word})",
        Billing.METERED: "by the time from start to result on the chain's clock (a worker may draw it out)",
    }[billing]
