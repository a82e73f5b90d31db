"""The network as any observer sees it: status, workers, jobs, parameters, events, and the proof that the books hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING

from hearth.base.errors import UsageError
from hearth.base.files import AnyPath, path_of
from hearth.client.audit.history_file import HistoryWriter
from hearth.client.audit.verify import Verifier
from hearth.client.face import refusing
from hearth.client.governance.changes import change_rows, read_changes
from hearth.client.governance.parameters import NODE_UNITS, POLICY_UNITS, in_words, unit_of
from hearth.client.reading import market_events
from hearth.client.views import event_facts, strays_in
from hearth.protocol.state_labels import STATUS_LABELS, counted

if TYPE_CHECKING:
    from hearth.client.jobs import Jobs
    from hearth.client.reports import (
        JobList,
        NetEvents,
        NetParams,
        NetStatus,
        NetVerification,
        NetWorker,
        NetWorkers,
        Snapshot,
    )


@refusing
class Net:
    """Look at the whole market: `client.net`."""

    def __init__(self, jobs: Jobs) -> None:
        """Read nothing yet."""
        self.session = jobs.session
        self._jobs = jobs
        self._reads = jobs.reads

    def status(self) -> NetStatus:
        """Return whether the network is alive, how much it holds, and how much work there is."""
        from hearth.protocol import formulas
        from hearth.protocol.types import Status

        market = self.session.market
        head = market.port.head()
        parameters = self.session.network.node_parameters
        seen = market.overview(head.hash)
        nodes = market.nodes(head.hash, seen.totals.next_id)
        states = Counter(
            formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake) for node in nodes
        )
        views = self._reads.views(self._reads.posted(head), head)
        counts: Counter[str] = Counter()
        tally: Counter[str] = Counter()
        for view in views:
            counts.update(view.counts)
            tally.update(view.tally)
        paused_until = seen.policies.paused_until
        return {
            "schema": "hearth.net/1",
            "network": self.session.network.name,
            "chain_id": self.session.network.chain_id,
            "deployed_chain_id": self.session.network.job_chain_id,
            "block": head.number,
            "time": head.timestamp,
            "protocol_version": self.session.network.protocol_version,
            "asset": self.session.asset.symbol,
            "escrow_balance": str(seen.held),
            "escrow_text": self.session.amount(seen.held),
            "workers": {status.name.lower(): states[status] for status in Status if states[status]},
            "workers_text": counted({STATUS_LABELS[status]: states[status] for status in Status if states[status]}),
            "slots": sum(node.offer.slots for node in nodes if int(node.operator, 16)),
            "busy": sum(node.state.busy for node in nodes),
            "jobs": len(views),
            "units": dict(counts),
            "units_text": counted(tally),
            "posts_paused": paused_until > head.timestamp,
            "paused_until": paused_until,
            **strays_in(market.strays),
        }

    def workers(self) -> NetWorkers:
        """Return every node that was not left, with its computed status."""
        from hearth.protocol import formulas, reputation, zones
        from hearth.protocol.units import show_rate

        head = self.session.market.port.head()
        parameters = self.session.network.node_parameters
        rows: list[NetWorker] = []
        for node in self.session.market.nodes(head.hash):
            status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
            ask = formulas.ask_in_force(node, head.timestamp)
            rows.append(
                {
                    "node": node.id,
                    "status": status.name.lower(),
                    "status_text": STATUS_LABELS[status],
                    "owner": node.owner,
                    "operator": node.operator,
                    "stake": str(node.stake),
                    "stake_text": self.session.amount(node.stake),
                    "bond": str(node.state.bond),
                    "ask": str(ask),
                    "ask_text": show_rate(ask, self.session.asset),
                    "busy": node.state.busy,
                    "slots": node.offer.slots,
                    "zone": zones.ZONES[node.offer.zone].slug,
                    "reputation_bps": reputation.reputation(node.state.r, node.state.s),
                    "last_beat": node.state.beat,
                    "quarantined": node.state.quarantine > head.timestamp,
                    "quarantined_until": formulas.quarantined_until(node, head.timestamp),
                }
            )
        return {
            "schema": "hearth.workers/1",
            "network": self.session.network.name,
            "block": head.number,
            "workers": rows,
        }

    def jobs(self, *, state: str | None = None) -> JobList:
        """Return everybody's jobs, newest first."""
        return self._jobs.list(state=state, everyone=True)

    def _in_words(self, name: str, value: int) -> str:
        unit = unit_of(name)
        return self.session.amount(value) if unit == "amount" else in_words(unit, value, self.session.asset)

    def params(self) -> NetParams:
        """Return the parameters that new jobs and nodes take, and the changes of them that wait."""
        head = self.session.market.port.head()
        policies = self.session.market.policies(head.hash)
        policy = {name: str(value) if value > 2**53 else value for name, value in asdict(policies.policy).items()}
        nodes = {
            name: str(value) if value > 2**53 else value
            for name, value in asdict(self.session.network.node_parameters).items()
        }
        seen, _ = read_changes(self.session.market, head)
        values = asdict(policies.policy) | asdict(self.session.network.node_parameters)
        units = (POLICY_UNITS | NODE_UNITS).items()
        return {
            "schema": "hearth.params/1",
            "network": self.session.network.name,
            "policy_word": f"{policies.word:#066x}",
            "policy": policy,
            "previous_until": policies.until,
            "posts_paused": policies.paused_until > head.timestamp,
            "paused_until": policies.paused_until,
            "nodes": nodes,
            "contracts": dict(self.session.network.contracts),
            "queued": change_rows(self.session.market, head, (one for one in seen if one.open)),
            "text": {name: self._in_words(name, values[name]) for name, unit in units if unit != "number"},
            **strays_in(self.session.market.strays),
        }

    def events(self, *, first: int | None = None, limit: int = 1_000) -> NetEvents:
        """Return the market's events from a block on, oldest first, at most `limit`."""
        if limit < 1:
            raise UsageError("--limit must be at least 1", hint="hearth net events --help")
        session, market = self.session, self.session.market
        head = market.port.head()
        start = max(session.network.deploy_block, first or 0)
        events = market_events(market, list(session.network.contracts.values()), start, head.number)
        return {
            "schema": "hearth.events/1",
            "network": session.network.name,
            "block": head.number,
            "events": [event_facts(event, session.asset) for event in islice(events, limit)],
            **strays_in(market.strays),
        }

    def verify(self) -> NetVerification:
        """Replay all events and compare them with storage, Escrow's balance, the Steward and every result.

        Recomputes every lock and credit, every unit's word, what each job's lock must hold, and re-reads and re-hashes
        every result with its outputs. `solvent` says whether all of the books agree, `faults` what does not, `unread`
        which results are missing, altered or no results of their units, `strays` which logs had no place in the books:
        with them the books are doubtful, whether they agree or not. The settings' `timeout` is for all of it:
        results for which it was too short are `unverified`. Raises WaitTimeout where it was for the books themselves.
        """
        return Verifier(self._reads).verify()

    def snapshot(self, file: AnyPath | None = None) -> Snapshot:
        """Write the logs of the market's contracts up to a final block into a new file, wholly or not at all.

        Raises BadDestination where the file exists or cannot be written, ChainError NOT_FINAL while the chain is too
        short, REORG where it dropped that block meanwhile.
        """
        return HistoryWriter(self.session).write(path_of(file))
