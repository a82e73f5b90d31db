"""Attest results, which sends nothing, and bring attesters' signatures to the chain, which pays for the results."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hearth.base.errors import RefusedError, UsageError, WaitTimeout
from hearth.base.files import AnyPath, path_of, refused_as, replace_text
from hearth.client.face import refusing
from hearth.client.judges.attester_files import Signed, load_attestation, load_set, row_of
from hearth.client.money import recipient
from hearth.client.views import OUTCOME_LABELS, JobView, job_hex, moment, require_unit
from hearth.protocol.attest import AttesterSet, Result, Signature, typed_data
from hearth.protocol.formulas import fresh_until
from hearth.protocol.state_labels import STATE_LABELS
from hearth.protocol.types import State, UnitFlag

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.client.reading import JobReader
    from hearth.client.reports import Attestation, Confirmation, Transaction

CONFIRM_GAS: Final = 180_000
"""Of one unit by a few attesters, with room; sending asks the chain itself."""


POLL_SECONDS: Final = 0.5


@refusing
class Attesting:
    """Sign results of attested jobs, and confirm them."""

    def __init__(self, reads: JobReader) -> None:
        """Read nothing yet."""
        self.session = reads.session
        self._reads = reads

    def attest(
        self,
        job: str,
        units: Sequence[int] = (),
        *,
        seen: Sequence[str] = (),
        attesters: AnyPath | None = None,
        out: AnyPath | None = None,
    ) -> Attestation:
        """Sign submitted results as they stand on chain, all or those of `units`, with this account's key.

        Nothing is sent: the document goes to whoever confirms, or into the file `out`. With `attesters` the key must be
        in that set, and the set the job's. With `seen`, the CIDs or digests of the results that were looked at, nothing
        else is signed: a unit may be submitted after the look, and a chain may be reorganised. Raises RefusedError
        NOT_ATTESTED, NOT_SUBMITTED, ALREADY_ENDED, NOT_AN_ATTESTER, NOT_SEEN; UsageError WRONG_ATTESTERS.
        """
        from hearth.chain.typed_data import sign

        session, attesters, out = self.session, path_of(attesters), path_of(out)
        view = self._look(job)
        name = job_hex(view.posted.job_id)
        key = session.key()
        if attesters is not None:
            chosen = self._set(view, attesters)
            if key.address not in chosen.keys:
                raise RefusedError(
                    f"{key.address} ({key.name}) is none of the {len(chosen.keys)} attesters in {attesters}",
                    hint="use --account NAME; hearth wallet list",
                    code="NOT_AN_ATTESTER",
                    keys=list(chosen.keys),
                )
        results = [self._result(view, index) for index in self._submitted(view, units)]
        _require_seen(results, seen, name)
        for result in results:
            session.tell("note", {"text": _words(result)})
        if attesters is None:
            text = "the chain holds only a digest of the job's attesters: --attesters FILE checks that this key is one"
            session.tell("note", {"text": text})
        rows = []
        if not session.dry_run:
            account = session.unlocked(key)
            rows = [row_of(result, sign(account, self._document(result))) for result in results]
        report: Attestation = {
            "schema": "hearth.attestation/1",
            "network": session.network.name,
            "chain_id": session.network.chain_id,
            "contract": self._contract,
            "job": name,
            "signer": key.address,
            "results": rows,
            "dry_run": session.dry_run,
        }
        if out is not None and not session.dry_run:
            with refused_as(out):
                replace_text(out, json.dumps(report, indent=2) + "\n")
        return report

    def confirm(
        self,
        job: str,
        units: Sequence[int],
        signatures: Sequence[AnyPath],
        *,
        attesters: AnyPath,
        payee: str | None = None,
    ) -> Confirmation:
        """Have results paid for that enough attesters signed: those of `units`, or all that the files attest.

        Every signature is checked here first, and nothing is sent unless each unit has its quorum. What a node on
        probation submitted is confirmed `fresh_delay` later: once all others are sent, that is waited for as long as
        the settings' `timeout` says. `payee` gets the settler's pay, by default this account. A unit that the chain
        refuses, or whose time is too far away, keeps none of the others back; the first refusal is raised once all
        were tried. Raises RefusedError NOT_ATTESTED, NOT_SUBMITTED, ALREADY_ENDED, TOO_FEW_SIGNATURES, CONFIRM_EARLY;
        UsageError WRONG_ATTESTERS, BAD_ATTESTATION.
        """
        session, set_file, files = self.session, path_of(attesters), [path_of(path) for path in signatures]
        view = self._look(job)
        name = job_hex(view.posted.job_id)
        chosen = self._set(view, set_file)
        signed = [load_attestation(path, name) for path in files]
        to = None if payee is None else recipient(payee, session.network)
        wanted = units or self._still_submitted(view, sorted({index for one in signed for index in one.rows}))
        calls = []
        short: list[str] = []
        for index in self._submitted(view, wanted):
            result = self._result(view, index)
            placed, faults = self._placed(chosen, result, signed)
            if len(placed) < chosen.quorum:
                missing = [key for place, key in enumerate(chosen.keys) if place not in {one.place for one in placed}]
                short += [
                    f"unit {index} has {len(placed)} of {chosen.quorum} signatures; not of {', '.join(missing)}",
                    *faults,
                ]
            for fault in faults:
                session.tell("note", {"text": fault})
            session.tell("note", {"text": f"{_words(result)}; {len(placed)} of {chosen.quorum} signatures"})
            key = f"confirm/{name[2:]}/{index}/{view.units[index].attempts}"
            call = session.market.calls.confirm(view.posted.packed, index, chosen.keys, chosen.quorum, placed, to)
            calls.append((index, key, call))
        if short:
            raise RefusedError(
                "; ".join(short),
                hint=f"hearth job attest {name[:14]} --out FILE, by another attester; or name the units to confirm",
                code="TOO_FEW_SIGNATURES",
                problems=short,
            )
        return {
            "schema": "hearth.action/1",
            "action": "confirm",
            "job": name,
            "units": [index for index, _, _ in calls],
            "transactions": self._send_in_turn(view, calls),
            "dry_run": session.dry_run,
        }

    # ---- inside ----

    @property
    def _contract(self) -> str:
        return self.session.network.attesters

    def _look(self, job: str) -> JobView:
        """Return a job that attesters judge. Raises RefusedError NOT_ATTESTED."""
        view = self._reads.look(job)
        judge = view.terms.judge
        if judge != self._contract.lower():
            name = job_hex(view.posted.job_id)[:14]
            why = "names no judge" if int(judge, 16) == 0 else f"is judged by {judge}, and not by attesters"
            raise RefusedError(f"job {name} {why}", hint=f"hearth job show {name}", code="NOT_ATTESTED")
        return view

    def _set(self, view: JobView, path: Path) -> AttesterSet:
        chosen = load_set(path)
        if chosen.judge_data != view.terms.judge_data:
            raise UsageError(
                f"{path} is not the set that job {job_hex(view.posted.job_id)[:14]} commits to: a key or the quorum "
                "differs",
                hint="ask its submitter for the file that verify.attesters named",
                code="WRONG_ATTESTERS",
                file=str(path),
            )
        return chosen

    def _submitted(self, view: JobView, units: Sequence[int]) -> list[int]:
        """Return the units to look at, each once; with none named, all that are submitted. Raises what names them."""
        name = job_hex(view.posted.job_id)[:14]
        if not units:
            found = [index for index, unit in enumerate(view.units) if unit.state is State.SUBMITTED]
            if found:
                return found
            ended = "every unit has ended" if view.finished else f"its state is {view.labels[1]}"
            raise RefusedError(
                f"job {name} has no submitted result: {ended}",
                hint=f"hearth job show {name}",
                code="ALREADY_ENDED" if view.finished else "NOT_SUBMITTED",
                retryable=not view.finished,
            )
        for index in units:
            require_unit(view, index)
            state = view.units[index].state if index < len(view.units) else State.OPEN
            if state is not State.SUBMITTED:
                raise RefusedError(
                    f"the state of unit {index} of job {name} is {STATE_LABELS[state]}: "
                    + ("it has ended already" if state.terminal else "it has no result yet"),
                    hint=f"hearth job show {name}",
                    code="ALREADY_ENDED" if state.terminal else "NOT_SUBMITTED",
                    retryable=not state.terminal,
                    unit=index,
                )
        return sorted(set(units))

    def _still_submitted(self, view: JobView, attested: Sequence[int]) -> Sequence[int]:
        """Return the attested units that can be confirmed, and say of each other why it is left out.

        Where none is left, all are returned, so that the refusal names one.
        """
        states = {index: view.units[index].state for index in attested if index < len(view.units)}
        found = [index for index in attested if states.get(index) is State.SUBMITTED]
        if not found:
            return attested
        for index in attested:
            if index not in found:
                state = states.get(index, State.OPEN)
                self.session.tell("note", {"text": f"unit {index} is left out: its state is {STATE_LABELS[state]}"})
        return found

    def _send_in_turn(self, view: JobView, calls: Sequence[tuple[int, str, Call]]) -> list[Transaction]:
        """Send a call for each unit as soon as the chain takes it, and raise the first refusal once all were tried.

        Results of nodes on probation come last, each waited for; CONFIRM_EARLY stands for those that are too far away.
        """
        session = self.session
        due = {index: _confirmable_from(view, index) for index, _, _ in calls}
        reach = view.now + session.settings.timeout
        ordered = sorted(calls, key=lambda one: due[one[0]])
        near = [one for one in ordered if due[one[0]] <= reach]
        if near:
            gas = CONFIRM_GAS * len(near)
            session.require_funds(session.key().address, asset_units=0, gas=gas, what="confirming")
        sent: list[Transaction] = []
        refusals: list[RefusedError] = []
        for second, group in groupby(near, key=lambda one: due[one[0]]):
            together = list(group)
            if second > view.now:
                self._await(view, together[0][0])
            sent += self._send(together, refusals)
        if len(near) < len(ordered):
            refusals.append(self._early(view, ordered[-1][0]))
        if refusals:
            raise refusals[0]
        return sent

    def _send(self, calls: Sequence[tuple[int, str, Call]], refusals: list[RefusedError]) -> list[Transaction]:
        """Send a call for each unit, add what is refused to `refusals`, and return what was sent.

        Nothing is waited for in here, since nobody else may use the key meanwhile.
        """
        session = self.session
        sent: list[Transaction] = []
        with session.sender() as sender:
            for index, key, call in calls:
                try:
                    sent.append(session.send(sender, call, key))
                except RefusedError as error:
                    session.tell("note", {"text": f"unit {index} is not confirmed: {error.message}"})
                    refusals.append(error)
        return sent

    def _early(self, view: JobView, index: int) -> RefusedError:
        """Return the refusal of a result that may be confirmed later than anybody waits here."""
        name, due = job_hex(view.posted.job_id)[:14], _confirmable_from(view, index)
        return RefusedError(
            _probation_words(index, due),
            hint=f"the same command after that, or with --timeout {due - view.now}s; hearth job accept {name}",
            code="CONFIRM_EARLY",
            retryable=True,
            unit=index,
        )

    def _await(self, view: JobView, index: int) -> None:
        """Wait until a newcomer's result may be confirmed. Raises WaitTimeout."""
        session, due = self.session, _confirmable_from(view, index)
        session.tell("note", {"text": f"{_probation_words(index, due)}; waiting"})
        end = time.monotonic() + session.settings.timeout
        while session.market.port.head().timestamp < due:
            if time.monotonic() >= end:
                raise WaitTimeout(
                    f"no block of {moment(due)} came within {session.settings.timeout} s",
                    hint="the same command again, with a longer --timeout; "
                    f"hearth job show {job_hex(view.posted.job_id)[:14]}",
                )
            time.sleep(POLL_SECONDS)

    def _result(self, view: JobView, index: int) -> Result:
        """Return what is signed of a submitted unit, all of it as the chain has it."""
        one = view.best[index]
        return Result.of(view.posted.job_id, index, view.terms.spec, one.unit, one.second)

    def _document(self, result: Result) -> dict[str, object]:
        return typed_data(self.session.network.chain_id, self._contract, result)

    def _placed(
        self, chosen: AttesterSet, result: Result, signed: Sequence[Signed]
    ) -> tuple[list[Signature], list[str]]:
        """Return the signatures of a result as the contract takes them, and what is wrong with the others."""
        from hearth.chain.typed_data import signer

        found: list[tuple[str, tuple[int, int, int]]] = []
        faults: list[str] = []
        for one in signed:
            if result.index not in one.rows:
                continue
            vrs = one.vrs(result.index)
            who = signer(self._document(result), vrs)
            if who is not None and who in chosen.keys:
                found.append((who, vrs))
            elif one.signer not in chosen.keys:
                faults.append(f"{one.name} is signed by {one.signer}, which is none of the attesters")
            else:
                faults.append(f"{one.name} {_difference(one, result, vrs)}")
        return chosen.place(found), faults


def _confirmable_from(view: JobView, index: int) -> int:
    """Return the second from which a unit may be confirmed: now, or a newcomer's later one."""
    unit = view.units[index]
    return max(view.now, fresh_until(view.terms, unit)) if unit.flags & UnitFlag.FRESH else view.now


def _probation_words(index: int, due: int) -> str:
    """Say why a unit's result has to wait."""
    return f"unit {index} ran on a node on probation: its result is confirmed from {moment(due)} on"


def _difference(one: Signed, result: Result, vrs: tuple[int, int, int]) -> str:
    """Say why a file's signature of a unit is not one of the result that the chain has."""
    row, mine = one.rows[result.index], row_of(result, vrs)
    other = [name for name, value in mine.items() if row.get(name) != value]
    if other:
        return f"signs another {' and '.join(other)} of unit {result.index} than the chain has"
    return f"holds no signature of unit {result.index} by {one.signer}, or one for another network"


def _require_seen(results: Sequence[Result], seen: Sequence[str], job: str) -> None:
    """Refuse to sign results of which whoever signs has not said that he saw them; without `seen` he has not said."""
    from hearth.storage import canonical

    if not seen:
        return
    for result in results:
        if not {str(canonical.cid_of_digest(result.result)), result.result.hex()} & set(seen):
            raise RefusedError(
                f"{_words(result)}: none of the results that were seen",
                hint=f"hearth job get {job[:14]}, look at it, and name it; or --unit with those that were seen",
                code="NOT_SEEN",
                unit=result.index,
            )


def _words(result: Result) -> str:
    """Say what is signed of a unit."""
    from hearth.storage import canonical

    fuel = f", {result.fuel_seconds} fuel seconds" if result.fuel_seconds else ""
    return (
        f"unit {result.index}: {OUTCOME_LABELS[result.outcome]}{fuel}, "
        f"result {canonical.cid_of_digest(result.result)} ({result.result.hex()})"
    )
