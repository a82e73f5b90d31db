"""From a plan to a posted job: store its sources, journal its terms, and post them exactly once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from hearth.base.errors import FundsError, NoWorkerError, SpecError, UsageError
from hearth.base.files import AnyPath, path_of
from hearth.client.face import refusing
from hearth.client.job.following import wait as wait_for
from hearth.client.job.gates import Fleet, takers, workers_in_words
from hearth.client.job.results import refuse_folder
from hearth.client.money import recipient
from hearth.client.posting.preflight import Preflight, escrow_of
from hearth.client.posting.quick import RunOptions, spec_of_run, with_parents
from hearth.client.posting.sources import Allowed
from hearth.client.prepared import Prepared
from hearth.client.records import credit_of, parents_of, terms_of
from hearth.client.views import job_hex
from hearth.protocol.types import ZERO_HASH, Gate
from hearth.protocol.units import amount_at_least, show_rate

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.chain.tx import Sender
    from hearth.client.job.results import Results
    from hearth.client.posting.preflight import Plan
    from hearth.client.reading import JobReader
    from hearth.client.reports import (
        JobPlan,
        PostedRecord,
        PreparedJob,
        PreparedTx,
        RerunPlan,
        StoredSource,
        Submission,
        Transaction,
    )
    from hearth.client.session import DryRun
    from hearth.jobfile import AnyJob, LoadedSpec
    from hearth.protocol.types import Terms

POST_GAS: Final = 160_000
APPROVE_GAS: Final = 70_000
WITHDRAW_GAS: Final = 100_000


@refusing
class Posting:
    """Check, submit and rerun jobs."""

    def __init__(self, reads: JobReader, results: Results) -> None:
        """Post nothing yet."""
        self.session = reads.session
        self._reads = reads
        self._results = results
        self._preflight = Preflight(reads)

    def check(
        self,
        job: AnyJob,
        *,
        variables: Mapping[str, str] | None = None,
        after: Sequence[str] = (),
        allow_outside: bool = False,
        allow_private: bool = False,
    ) -> JobPlan:
        """Check a job down to its price and who could take it; writes and sends nothing. Arguments are `submit`'s."""
        from hearth.jobfile import spec_of

        loaded = with_parents(self.session, spec_of(job, variables), after)
        with self._preflight.planned(loaded, Allowed(allow_outside, allow_private)) as plan:
            self._preflight.require_open(plan.paused_until, plan.fleet.now)
            self._preflight.require_parents(plan)
            report = self._preflight.facts(plan)
            enough = report["enough"]
            return {**report, "text": [*report["text"], *([f"for a worker to take it: {enough}"] if enough else [])]}

    def submit(
        self,
        job: AnyJob,
        *,
        variables: Mapping[str, str] | None = None,
        after: Sequence[str] = (),
        again: bool = False,
        anyway: bool = False,
        wait: bool = False,
        results: AnyPath | None = None,
        use_credit: bool = False,
        print_tx: bool = False,
        allow_outside: bool = False,
        allow_private: bool = False,
    ) -> Submission | JobPlan | PreparedJob:
        """Post a job. Where the same one was posted and nobody saw its end yet, return that one (`already_posted`).

        `job` is a file's path, plain values as a file holds them, or a checked spec; `variables` fill a file's text.
        `after` names jobs to wait for besides those that the job names: "JOB", or "JOB:failure", "JOB:always".
        `again` posts a new one in any case, `anyway` posts without a worker that could take it, `wait` waits for the
        end, `results` is a folder for the outputs, `use_credit` pays from the account's credit in Escrow first.
        `allow_outside` lets it bring files from outside the job file's folder (of plain values: the working folder),
        `allow_private` what URLs in a private network answer; both become public, and are told ("note").
        With `print_tx` everything is stored and nothing is sent: the transactions are returned, for another machine to
        sign as the account, which may be an address without a key here.
        Raises the HearthError that says why it cannot be posted, before anything is written or signed.
        """
        from hearth.jobfile import spec_of

        loaded = with_parents(self.session, spec_of(job, variables), after)
        allowed = Allowed(allow_outside, allow_private)
        if not print_tx:
            return self._submit(loaded, allowed, again, anyway, wait, results, use_credit)
        if wait or results is not None:
            raise UsageError("--print-tx sends nothing to wait for", hint="hearth job wait JOB, once it is sent")
        return self._prepare(loaded, allowed, again, anyway, use_credit)

    def run(
        self,
        program: str,
        command: tuple[str, ...] = (),
        *,
        after: Sequence[str] = (),
        again: bool = False,
        anyway: bool = False,
        wait: bool = True,
        results: AnyPath | None = None,
        use_credit: bool = False,
        allow_outside: bool = False,
        allow_private: bool = False,
        auto_price: bool = False,
        **options: Unpack[RunOptions],
    ) -> Submission | JobPlan:
        """Run an image or a WASM module as a job of one unit; without a price, at the cheapest fitting ask and half.

        That price is taken only with `auto_price`: else SpecError NO_PRICE names it.
        A path outside the working folder is allowed by being named, and is told; one with a link anywhere on its way,
        inside the folder too, needs `allow_outside`.
        """
        spec = with_parents(self.session, spec_of_run(program, command, **options), after)
        allowed = Allowed(allow_outside, allow_private)
        return self._submit(spec, allowed, again, anyway, wait, results, use_credit, auto_price)

    def rerun(
        self, job: str, *, anyway: bool = False, wait: bool = False, use_credit: bool = False
    ) -> Submission | RerunPlan:
        """Post a job's terms again under a new salt, with a deadline as far away as the old one was.

        What the old one waited for has had its time: the new one waits for nothing.
        """
        view = self._reads.look(job)
        block = self.session.market.port.block(view.posted.log.block_hash)
        allowed = view.terms.deadline - (block.timestamp if block else view.now)
        policies = self.session.market.policies()
        self._preflight.require_open(policies.paused_until, view.now)
        terms = replace(
            view.terms,
            submitter=self.session.key().address,
            salt=secrets.randbits(96),
            deadline=view.now + allowed,
            policy=policies.word,
            parents_hash=ZERO_HASH,
        )
        if view.posted.parents:
            text = f"job {job_hex(view.posted.job_id)[:14]} was to wait for others; this one runs at once"
            self.session.tell("note", {"text": text})
        fleet = Fleet.read(self.session)

        def enough() -> str | None:
            lower = fleet.backed(terms, self.session.asset)
            return None if lower is None else f'lower the price: hearth submit FILE, with max_rate: "{lower}"'

        self._require_taker(fleet.gates(terms), terms, anyway, enough)
        credit = self._require_price(terms, use_credit)
        if self.session.dry_run:
            return {"schema": "hearth.plan/1", "dry_run": True, "escrow": str(escrow_of(terms)), "rerun_of": job}
        fingerprint = f"rerun/{secrets.token_hex(8)}"
        # Another rerun has another salt, and would not find this one.
        once = (
            f"hearth job show {job_hex(self.session.market.job_id(terms))[:14]} finds it; another rerun posts one more"
        )
        posted, sent = self._post(terms, (), fingerprint, f"rerun of {job}", credit, once)
        return self._finish(posted, sent, wait, None, anyway=anyway)

    def attach(self, job: str, *, results: AnyPath | None = None, anyway: bool = False) -> Submission:
        """Wait for a posted job's end and report it as `submit` does, its outputs in the folder `results`.

        `anyway` waits on where no worker is left that could take it. Raises what `submit` with `wait` does.
        """
        folder = _folder(results)
        posted = job_hex(self._reads.look(job).posted.job_id)
        return self._finish(posted, [], True, folder, already_posted=True, anyway=anyway)

    # ---- from plan to chain ----

    def _submit(
        self,
        loaded: LoadedSpec,
        allowed: Allowed,
        again: bool,
        anyway: bool,
        wait: bool,
        results: AnyPath | None,
        use_credit: bool,
        auto_price: bool = False,
    ) -> Submission | JobPlan:
        folder = _folder(results)
        if folder is not None and not wait:
            raise UsageError("--results needs --wait", hint="add --wait")
        with self._preflight.planned(loaded, allowed) as plan:
            for line in plan.lines:
                self.session.tell("note", {"text": line})
            known = None if again else self._pending(plan.fingerprint)
            sent_before = known is not None and (self._is_posted(known) or self._is_sent(known))
            credit = 0
            if not sent_before:
                self._preflight.require_open(plan.paused_until, plan.fleet.now)
                self._preflight.require_parents(plan)
            if known is not None:
                done = "posted already" if sent_before else "prepared before, and is posted now"
                self.session.tell(
                    "note", {"text": f"this job was {done}: {known['job'][:14]}; --again posts a new one"}
                )
            if not sent_before:
                terms = plan.terms if known is None else terms_of(known)
                self._require_taker(plan.gates, terms, anyway, lambda: self._preflight.enough(plan))
                credit = self._require_price(terms, use_credit if known is None else credit_of(known) > 0)
            if self.session.dry_run:
                return {**self._preflight.facts(plan), "pending": known["job"] if known else None}
            if not sent_before:
                if plan.auto_price and not auto_price:
                    raise self._unpriced(terms)
                text = f"post it for at most {amount_at_least(escrow_of(terms), self.session.asset)}?"
                self.session.tell("confirm", {"text": text, "needed": plan.auto_price})
            if known is None:
                self.session.unlocked(self.session.key())
                self._upload(plan)
                # Again, since an upload may take hours, in which a parent may end.
                self._preflight.require_parents(plan)
                terms = replace(plan.terms, salt=secrets.randbits(96))
                once = f"the same command{' without --again' if again else ''} finds it"
                posted, sent = self._post(terms, plan.packed, plan.fingerprint, str(loaded.source.name), credit, once)
            else:
                posted, sent = known["job"], self._repost(known)
        earlier = known is not None and all(one["repeated"] for one in sent)
        return self._finish(posted, sent, wait, folder, already_posted=earlier, anyway=anyway)

    def _prepare(
        self, loaded: LoadedSpec, allowed: Allowed, again: bool, anyway: bool, use_credit: bool
    ) -> JobPlan | PreparedJob:
        """Store a job's sources, journal its terms, and return what to sign; the same file gives the same job again."""
        from hearth.jobfile import local_sources
        from hearth.protocol import formulas
        from hearth.storage import canonical

        session, market, submitter = self.session, self.session.market, self._submitter()
        with self._preflight.planned(loaded, allowed, submitter) as plan:
            for line in plan.lines:
                session.tell("note", {"text": line})
            known = None if again else self._pending(plan.fingerprint)
            if known is None or not self._is_posted(known):
                self._preflight.require_open(plan.paused_until, plan.fleet.now)
                self._preflight.require_parents(plan)
            if known is None:
                self._require_taker(plan.gates, plan.terms, anyway, lambda: self._preflight.enough(plan))
            if session.dry_run:
                return {**self._preflight.facts(plan), "pending": known["job"] if known else None}
            self._upload(plan)
            if known is None:
                terms = replace(plan.terms, salt=secrets.randbits(96))
                credit = min(market.credit(submitter), escrow_of(terms)) if use_credit else 0
                job = job_hex(market.job_id(terms))
                note = str(loaded.source.name)
                known = session.records.write(job, plan.fingerprint, note, terms, credit, plan.packed)
            stored: list[StoredSource] = [
                {"src": src, "cid": plan.sources.blobs[src].cid} for _, src in local_sources(loaded.spec)
            ]
        terms, credit, posted = terms_of(known), credit_of(known), self._is_posted(known)
        stored.append({"src": "spec", "cid": str(canonical.cid_of_digest(terms.spec))})
        short = escrow_of(terms) - credit - market.asset_balance(submitter)
        if short > 0 and not posted:
            text = f"{submitter} is short of {session.amount(short)} to post this, and of what its gas costs"
            session.tell("warning", {"text": text})
        return {
            "schema": "hearth.prepared/1",
            "network": session.network.name,
            "job": known["job"],
            "from": submitter,
            "already_posted": posted,
            "escrow": str(escrow_of(terms)),
            "escrow_text": session.amount(escrow_of(terms)),
            "send_before": formulas.expirable_from(terms),
            "store": session.store_urls[0],
            "stored": stored,
            "prepared": []
            if posted
            else [self._prepared(key, call, terms) for key, call in self._calls(terms, parents_of(known), credit)],
        }

    def _prepared(self, key: str, call: Call, terms: Terms) -> PreparedTx:
        """Return a call for another machine to sign; its approval, where it needs one, stands before it."""
        spends = call.label == "jobs.post" and self.session.network.asset.address is not None
        approve = escrow_of(terms) if spends else 0
        return Prepared(call.label, terms.submitter, call, approve, key).document(self.session.network)

    def _submitter(self) -> str:
        """Return who is to post what is signed elsewhere: the account, as a key here or as a bare address."""
        account = self.session.settings.account
        if account is not None and account.startswith("0x"):
            return recipient(account, self.session.network, why="nobody can sign as it")
        return self.session.key().address

    def _is_posted(self, record: PostedRecord) -> bool:
        market = self.session.market
        return bool(market.job_word(market.job_id(terms_of(record))))

    def _is_sent(self, record: PostedRecord) -> bool:
        """Say whether an earlier run has begun to post a journalled job; a dry run opens no journal to see it."""
        from hearth.chain.tx import Sender

        with self.session.sender() as sender:
            return isinstance(sender, Sender) and sender.journal.find(f"post/{record['job'][2:]}") is not None

    def _require_taker(
        self, gates: Mapping[Gate, int], terms: Terms, anyway: bool, enough: Callable[[], str | None]
    ) -> None:
        if takers(gates) or anyway:
            return
        text = workers_in_words(gates)
        priced = gates.get(Gate.PRICE, 0)
        raise NoWorkerError(
            f"no worker can take this job: {text}",
            hint=enough() or "hearth offers; or post it with --anyway",
            code="PRICE_TOO_LOW" if priced and priced == sum(gates.values()) else "NO_WORKER",
            workers={gate.name.lower(): count for gate, count in sorted(gates.items())},
            ceiling=str(terms.ceiling),
        )

    def _unpriced(self, terms: Terms) -> SpecError:
        """Return the refusal of a job whose price nobody has named or accepted."""
        rate, total = (
            show_rate(terms.ceiling, self.session.asset),
            amount_at_least(escrow_of(terms), self.session.asset),
        )
        return SpecError(
            f"no price is named, and the market's own is {rate}, {total} at most",
            hint=f'run(..., max_total="{total}"), or run(..., auto_price=True) for whatever it is then',
            code="NO_PRICE",
            field="price",
            rate=str(terms.ceiling),
            escrow=str(escrow_of(terms)),
        )

    def _require_price(self, terms: Terms, use_credit: bool) -> int:
        """Refuse what the account cannot pay, and return how much of its credit in Escrow pays. Raises FundsError."""
        session, escrow = self.session, escrow_of(terms)
        gas = POST_GAS + (0 if session.network.asset.address is None else APPROVE_GAS)
        owned = session.market.credit(terms.submitter)
        credit = min(owned, escrow) if use_credit else 0
        try:
            session.require_funds(
                terms.submitter,
                asset_units=escrow - credit,
                gas=gas + (WITHDRAW_GAS if credit else 0),
                what="this job" if not credit else f"this job, after {session.amount(credit)} of credit,",
            )
        except FundsError as error:
            if owned and not use_credit:
                error.message += f"; {session.amount(owned)} more is its credit in Escrow"
                error.hint = f"add --use-credit, which pays from it first; {error.hint}"
                error.details["credit"] = str(owned)
            raise
        if owned and not use_credit:
            text = f"{session.amount(owned)} more is your credit in Escrow; --use-credit pays from it first"
            session.tell("note", {"text": text})
        return credit

    def _upload(self, plan: Plan) -> None:
        """Store every local source, and refuse one that changed since it was read."""
        from hearth.jobfile import canonical, local_sources

        for where, src in local_sources(plan.loaded.spec):
            meter = self.session.meter(f"upload {src}", plan.sources.blobs[src].size)
            plan.sources.store(src, workdir=where[0] == "workdir", progress=meter)
        digest = self.session.store.put_json(canonical(plan.resolved))
        assert digest == plan.terms.spec, "the store named the spec otherwise than we did"
        self.session.names.note(digest, plan.loaded.spec.name)

    def _post(
        self, terms: Terms, parents: Sequence[bytes], fingerprint: str, note: str, credit: int, once: str
    ) -> tuple[str, list[Transaction]]:
        """Journal terms, then withdraw the credit that pays for them, approve and post them.

        `once` says what finds the job again for whoever is stopped meanwhile.
        """
        with self.session.sender() as sender:
            job = job_hex(self.session.market.job_id(terms))
            self.session.records.write(job, fingerprint, note, terms, credit, parents)
            return job, self._send_post(sender, terms, parents, credit, once)

    def _send_post(
        self, sender: Sender | DryRun, terms: Terms, parents: Sequence[bytes], credit: int, once: str
    ) -> list[Transaction]:
        """Send what posts these terms, naming the job first: from here on it may be on its way."""
        job = job_hex(self.session.market.job_id(terms))
        self.session.tell("posting", {"job": job, "once": once, "text": f"posting job {job}"})
        return [self.session.send(sender, call, key) for key, call in self._calls(terms, parents, credit)]

    def _calls(self, terms: Terms, parents: Sequence[bytes], credit: int) -> list[tuple[str, Call]]:
        """Return what posts these terms, in order, keyed by the job, so that a repetition sends nothing twice."""
        market = self.session.market
        job_id = market.job_id(terms).hex()
        calls = []
        if credit:
            calls.append((f"credit/{job_id}", market.calls.withdraw(terms.submitter, credit)))
        if market.allowance(terms.submitter, self.session.network.jobs) < escrow_of(terms):
            calls.append((f"approve/{job_id}", market.calls.approve_post(terms)))
        calls.append((f"post/{job_id}", market.calls.post(terms, parents)))
        return calls

    def _repost(self, record: PostedRecord) -> list[Transaction]:
        """Make sure that a journalled job is on the chain: posted already, or posted now with the same terms."""
        if self._is_posted(record):
            return []
        terms = terms_of(record)
        with self.session.sender() as sender:
            once = "the same command finds it"
            return self._send_post(sender, terms, parents_of(record), credit_of(record), once)

    def _finish(
        self,
        job: str,
        sent: list[Transaction],
        wait: bool,
        results: Path | None,
        *,
        already_posted: bool = False,
        anyway: bool = False,
    ) -> Submission:
        """Report a posted job; with `wait`, after its end and with its results."""
        report: Submission = {
            "schema": "hearth.submitted/1",
            "job": job,
            "already_posted": already_posted,
            "transactions": sent,
            "waited": wait,
        }
        if not wait:
            return report
        self.session.tell("posted", {"job": job, "text": f"job {job}"})
        report["end"] = wait_for(self._reads, job, anyway=anyway)
        report["results"] = self._results.summary(job, results)
        self.session.records.mark_seen(job)
        return report

    def _pending(self, fingerprint: str) -> PostedRecord | None:
        """Return the journalled job of a fingerprint whose end nobody saw, if it is posted or can still be."""
        from hearth.protocol import formulas

        market = self.session.market
        for record in self.session.records.unseen(fingerprint):
            terms = terms_of(record)
            if market.job_word(market.job_id(terms)):
                return record
            # Terms that the chain has not seen are posted again only while it would still take them. Until then they
            # may be on their way, sent here or signed elsewhere, and others beside them would be a second job.
            policies = market.policies()
            now = market.port.head().timestamp
            if policies.takes(terms.policy, now) and formulas.has_time(terms, now):
                return record
        return None


def _folder(results: AnyPath | None) -> Path | None:
    """Return a folder for results, before anything is paid. Raises BadDestination where it could not be written."""
    if results is None:
        return None
    folder = path_of(results)
    refuse_folder(folder)
    return folder
