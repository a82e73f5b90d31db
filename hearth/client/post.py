"""From a job file to a posted job: check, plan, preflight in words, and post exactly once.

Nothing is written, uploaded or signed before every refusal that can be foreseen was made. Terms are journalled before
they are signed, so that the same file after a Ctrl-C finds its job instead of paying twice.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.client.jobs import Jobs
from hearth.client.views import job_hex, moment
from hearth.errors import ConfigError, NoWorkerError, SpecError, StorageError, UsageError
from hearth.types import Billing, Gate
from hearth.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from hearth.cid import Cid
    from hearth.client.session import Rehearsal
    from hearth.spec import Blob, JobSpec, LoadedSpec, ResolvedSpec
    from hearth.tx import Sender
    from hearth.types import Policy, Terms

POST_GAS: Final = 160_000
APPROVE_GAS: Final = 70_000
MAX_URL_BYTES: Final = 8 << 30
RUN_OUTPUT: Final = "256MiB"
"""What each output of `hearth run` may hold, so that a small job fits a small disk."""
URL_SECONDS: Final = 60.0

GATE_WORDS: Final = {
    Gate.NOT_LIVE: "silent",
    Gate.NOT_ACTIVE: "short of the minimum stake",
    Gate.EXITING: "leaving",
    Gate.QUARANTINED: "in quarantine",
    Gate.NO_SLOT: "busy",
    Gate.STAKE_SHORT: "short of free stake for the bond",
    Gate.RUNTIME: "without the runtime",
    Gate.GPU_COUNT: "with too few GPUs",
    Gate.VRAM: "short of VRAM",
    Gate.CORES: "short of cores",
    Gate.RAM: "short of memory",
    Gate.DISK: "short of disk",
    Gate.TIER: "with weaker GPUs",
    Gate.ZONE: "in other regions",
    Gate.PRICE: "above your price",
    Gate.PROBATION: "on probation",
    Gate.SUBMITTER: "your own",
}
PASSING: Final = (Gate.NO_SLOT, Gate.QUARANTINED)
"""Gates that open again by themselves: such a worker counts as one that can take the job later."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked job, ready to be posted: its canonical spec, its terms but for the salt, and what workers say."""

    loaded: LoadedSpec
    resolved: ResolvedSpec
    blobs: Mapping[str, Blob]
    fetched: Mapping[str, Path]
    terms: Terms
    fingerprint: str
    gates: Mapping[Gate, int]
    lines: tuple[str, ...]
    auto_price: bool = False

    @property
    def takers(self) -> int:
        """Count the workers that can take the job now, or when they are free again."""
        return self.gates.get(Gate.FITS, 0) + sum(self.gates.get(gate, 0) for gate in PASSING)


class Posting(Jobs):
    """Check, submit and rerun jobs."""

    def offers(
        self, *, gpu: str | None = None, vram: str | None = None, max_price: str | None = None
    ) -> dict[str, Any]:
        """Return the live workers' offers, cheapest first, optionally of a GPU tier, memory and price."""
        from hearth import protocol, zones
        from hearth.gpu_tiers import TIERS
        from hearth.spec import tier_number
        from hearth.types import Runtime, Status
        from hearth.units import gib_ceil, parse_rate, parse_size

        tier = tier_number(gpu, TIERS) if gpu else 0
        least = gib_ceil(parse_size(vram if not vram.isdigit() else f"{vram}GiB")) if vram else 0
        most = parse_rate(max_price, self.asset) if max_price else None
        head = self.market.port.head()
        parameters = self.network.node_parameters
        slugs = {number: slug for slug, number in TIERS.items()}
        rows = []
        for node in self.market.nodes(head.hash):
            status = protocol.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
            ask = protocol.ask_in_force(node, head.timestamp)
            offer = node.offer
            if status is not Status.ACTIVE or offer.tier < tier or offer.vram_gib < least:
                continue
            if most is not None and ask > most:
                continue
            rows.append(
                {
                    "node": node.id,
                    "owner": node.owner,
                    "ask": str(ask),
                    "ask_text": format_rate(ask, self.asset, places=9),
                    "runtimes": [flag.name.lower() for flag in Runtime if flag & offer.runtimes and flag.name],
                    "gpus": offer.gpu_count,
                    "tier": slugs.get(offer.tier, "") if offer.gpu_count else "",
                    "vram_gib": offer.vram_gib,
                    "cores": offer.cores,
                    "ram_gib": offer.ram_gib,
                    "disk_gib": offer.disk_gib,
                    "zone": zones.ZONES[offer.zone].slug,
                    "slots": offer.slots,
                    "free": max(0, offer.slots - node.hot.busy),
                    "reputation_bps": protocol.reputation(node.hot.r, node.hot.s),
                }
            )
        rows.sort(key=lambda row: (int(str(row["ask"])), row["node"]))
        return {"schema": "hearth.offers/1", "network": self.network.name, "block": head.number, "offers": rows}

    def check(self, file: Path, *, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Check a job file down to its price and who could take it; writes and sends nothing."""
        from hearth.spec import load_spec

        with self._planned(load_spec(file, variables)) as plan:
            return self._plan_facts(plan)

    def submit(
        self,
        file: Path,
        *,
        variables: Mapping[str, str] | None = None,
        again: bool = False,
        anyway: bool = False,
        wait: bool = False,
        results: Path | None = None,
    ) -> dict[str, Any]:
        """Post the job of a file, or find the one that was posted from it and whose end nobody saw yet.

        `again` posts a new one in any case, `anyway` posts without a worker that could take it, `wait` waits for the
        end, `results` is a folder for the outputs. Raises whatever HearthError says why not, before anything is
        written or signed.
        """
        from hearth.spec import load_spec

        return self._submit(load_spec(file, variables), again, anyway, wait, results)

    def run(
        self,
        program: str,
        command: tuple[str, ...] = (),
        *,
        gpu: int = 0,
        vram: str | None = None,
        tier: str | None = None,
        cpus: int = 1,
        memory: str = "1GiB",
        runtime: str = "10m",
        max_total: str | None = None,
        max_rate: str | None = None,
        inputs: tuple[str, ...] = (),
        outputs: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        again: bool = False,
        anyway: bool = False,
        wait: bool = True,
        results: Path | None = None,
    ) -> dict[str, Any]:
        """Run an image or a WASM module as a job of one unit; without a price, at the cheapest fitting ask and half."""
        loaded = self.spec_of_run(
            program,
            command,
            gpu=gpu,
            vram=vram,
            tier=tier,
            cpus=cpus,
            memory=memory,
            runtime=runtime,
            max_total=max_total,
            max_rate=max_rate,
            inputs=inputs,
            outputs=outputs,
            env=env or {},
        )
        return self._submit(loaded, again, anyway, wait, results)

    def spec_of_run(
        self,
        program: str,
        command: tuple[str, ...] = (),
        *,
        gpu: int = 0,
        vram: str | None = None,
        tier: str | None = None,
        cpus: int = 1,
        memory: str = "1GiB",
        runtime: str = "10m",
        max_total: str | None = None,
        max_rate: str | None = None,
        inputs: tuple[str, ...] = (),
        outputs: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> LoadedSpec:
        """Return the spec that `run` would submit."""
        from hearth.spec import spec_from

        wasm = program.endswith(".wasm") or program.startswith("ipfs://")
        data: dict[str, Any] = {
            "version": 1,
            "name": _name_of(program),
            "runtime": "wasm" if wasm else "docker",
            "module" if wasm else "image": program,
            "command": list(command),
            "env": dict(env or {}),
            "inputs": [_input_of(text) for text in inputs],
            "resources": {"cpus": cpus, "memory": memory},
            "limits": {"runtime": runtime},
            "price": {},
        }
        data["outputs"] = [{"path": path, "max_size": RUN_OUTPUT} for path in outputs] or [
            {"path": "/out", "required": False, "max_size": RUN_OUTPUT}
        ]
        if gpu:
            data["resources"]["gpu"] = (
                {"count": gpu} | ({"vram": vram} if vram else {}) | ({"tier": tier} if tier else {})
            )
        if max_total:
            data["price"]["max_total"] = max_total
        if max_rate:
            data["price"]["max_rate"] = max_rate
        return spec_from(data, "command line", Path())

    def job_rerun(self, job: str, *, anyway: bool = False, wait: bool = False) -> dict[str, Any]:
        """Post a job's terms again under a new salt, with a deadline as far away as the old one was."""
        view = self._look(self.job_id(job))
        block = self.market.port.block(view.posted.log.block_hash)
        allowed = view.terms.deadline - (block.timestamp if block else view.now)
        policies = self.market.policies()
        terms = replace(
            view.terms,
            submitter=self.key().address,
            salt=secrets.randbits(96),
            deadline=view.now + allowed,
            policy=policies.word,
        )
        gates = self._gates(terms, policies.policy)
        self._require_taker(gates, terms, anyway)
        self._require_price(terms)
        if self.dry_run:
            return {"schema": "hearth.plan/1", "dry_run": True, "escrow": str(_escrow(terms)), "rerun_of": job}
        posted = self._post(terms, fingerprint=f"rerun/{secrets.token_hex(8)}", note=f"rerun of {job}")
        return self._finish(posted, wait, None)

    # ---- from file to plan ----

    @contextmanager
    def _planned(self, loaded: LoadedSpec) -> Iterator[Plan]:
        """Check a spec against files, market and workers; fetched inputs live while the context is open."""
        with tempfile.TemporaryDirectory(prefix="hearth-") as scratch:
            yield self._plan(loaded, Path(scratch))

    def _plan(self, loaded: LoadedSpec, scratch: Path) -> Plan:
        from hearth.config import asset_of
        from hearth.gpu_tiers import TIERS
        from hearth.spec import (
            local_sources,
            needs_of,
            plan_prices,
            resolve,
            spec_digest,
            terms_of,
        )

        blobs: dict[str, Blob] = {}
        fetched: dict[str, Path] = {}
        for where, src in local_sources(loaded.spec):
            self.tell("step", {"text": f"reading {src}"})
            blobs[src] = self._name_source(loaded, where[0] == "workdir", str(where[0]), src, scratch, fetched)
        spec = loaded.spec
        image = self._resolve_image(spec.image) if spec.image is not None and "@" not in spec.image else None
        try:
            resolved = resolve(spec, blobs, image=image, tiers=TIERS)
        except SpecError as error:
            raise loaded.located(error) from error
        policies = self.market.policies()
        policy = policies.policy
        needs = needs_of(resolved.resources, resolved.runtime, TIERS)
        head = self.market.port.head()
        auto = spec.price.max_total is None and spec.price.max_rate is None and loaded.source.name == "command line"
        if auto:
            spec = self._with_auto_price(spec, needs, policy)
        try:
            prices = plan_prices(spec, asset_of(self.network), policy)
            terms = terms_of(
                spec,
                submitter=self.key().address,
                salt=0,
                digest=spec_digest(resolved),
                needs=needs,
                prices=prices,
                policy=policy,
                policy_word=policies.word,
                now=head.timestamp,
            )
        except SpecError as error:
            raise loaded.located(error) from error
        gates = self._gates(terms, policy)
        fingerprint = self._fingerprint(terms, spec.limits.deadline)
        lines = tuple(self._words(terms, policy, resolved, gates, loaded.notes, auto))
        return Plan(loaded, resolved, blobs, fetched, terms, fingerprint, gates, lines, auto)

    def _name_source(
        self, loaded: LoadedSpec, is_workdir: bool, field: str, src: str, scratch: Path, fetched: dict[str, Path]
    ) -> Blob:
        """Return the CID and size of a source, without storing any of it."""
        from hearth import cid, unixfs
        from hearth.spec import Blob
        from hearth.spec.workdir import workdir_rules

        if src.startswith("ipfs://"):
            root, path = cid.parse_uri(src)
            target = unixfs.resolve(root, path, self.store) if path else root
            size = sum(entry.size for entry in unixfs.walk(target, self.store) if entry.kind == "file")
            return Blob(cid=str(target), size=size)
        if src.startswith(("https://", "http://")):
            path_here = scratch / hashlib.sha256(src.encode()).hexdigest()[:16]
            _download(src, path_here)
            fetched[src] = path_here
        else:
            path_here = loaded.folder / Path(src).expanduser()
            if not path_here.exists():
                raise loaded.located(
                    SpecError(
                        f"{field}: there is no {path_here}",
                        hint="hearth check FILE lists what a job needs",
                        code="NO_SOURCE",
                        field=field,
                    )
                )
        rules = workdir_rules(path_here) if is_workdir else None
        entry = unixfs.import_path(path_here, _Nowhere(), ignore=rules)
        return Blob(cid=str(entry.cid), size=entry.size)

    def _resolve_image(self, image: str) -> str:
        """Return a tag's digest reference by asking its registry through the container engine."""
        import docker
        from docker.errors import DockerException, NotFound

        try:
            engine = docker.from_env(timeout=60)
        except DockerException as error:
            raise ConfigError(
                f"no container engine answers here, so {image} cannot be resolved to a digest: {error}",
                hint='name the image by digest ("name@sha256:..."), or start Docker; hearth doctor',
                code="NO_DOCKER",
            ) from error
        try:
            digest = engine.images.get_registry_data(image).id
        except NotFound as error:
            raise SpecError(
                f"there is no image {image}", hint="check its name; hearth check FILE", code="NO_IMAGE"
            ) from error
        except DockerException as error:
            raise StorageError(
                f"the registry of {image} does not answer: {error}", hint="hearth doctor", code="REGISTRY_DOWN"
            ) from error
        finally:
            engine.close()
        head, slash, last = image.rpartition("/")
        return f"{head}{slash}{last.partition(':')[0]}@{digest}"

    def _with_auto_price(self, spec: JobSpec, needs: Any, policy: Policy) -> JobSpec:
        """Return a spec whose ceiling is half above the cheapest live ask that has what the job needs."""
        from hearth import protocol

        parameters = self.network.node_parameters
        head = self.market.port.head()
        ask = protocol.Ask(needs, (1 << 80) - 1, 0, 0)
        fitting = [
            protocol.ask_in_force(node, head.timestamp)
            for node in self.market.nodes(head.hash)
            if protocol.node_gate(node, ask, head.timestamp, parameters.dead_after, parameters.minimum_stake)
            in (Gate.FITS, *PASSING)
        ]
        if not fitting:
            raise NoWorkerError(
                "no live worker has what the job needs, so there is no price to go by",
                hint="hearth offers; or name a price with --max-rate",
            )
        rate = format_rate(min(fitting) * 3 // 2, self.asset).replace(f" {self.asset.symbol}", "")
        return spec.model_copy(update={"price": spec.price.model_copy(update={"max_rate": rate})})

    def _gates(self, terms: Terms, policy: Policy) -> Counter[Gate]:
        """Count the workers by the first gate that keeps them from the job."""
        from hearth import protocol
        from hearth.types import ZERO_ADDRESS

        parameters = self.network.node_parameters
        head = self.market.port.head()
        ask = protocol.ask_of(terms, policy)
        found: Counter[Gate] = Counter()
        for node in self.market.nodes(head.hash):
            if node.operator == ZERO_ADDRESS:
                continue
            gate = protocol.node_gate(node, ask, head.timestamp, parameters.dead_after, parameters.minimum_stake)
            if gate is Gate.FITS and node.operator == terms.submitter:
                gate = Gate.SUBMITTER
            # Both open again when the node's other leases end.
            if gate is Gate.PROBATION and ask.probation == 1:
                gate = Gate.NO_SLOT
            if gate is Gate.STAKE_SHORT and node.stake >= ask.bond:
                gate = Gate.NO_SLOT
            found[gate] += 1
        return found

    def _words(
        self,
        terms: Terms,
        policy: Policy,
        resolved: ResolvedSpec,
        gates: Mapping[Gate, int],
        notes: tuple[str, ...],
        auto: bool,
    ) -> list[str]:
        """Say in words what the job takes, costs and risks, and who could take it."""
        from hearth import protocol

        lines = list(notes)
        escrow = _escrow(terms)
        price = protocol.unit_price(terms)
        many = f"{terms.units} units, " if terms.units > 1 else ""
        lines.append(
            f"costs at most {self.amount(escrow)}: {many}{self.amount(price)} of work each, and {terms.max_attempts} "
            f"attempts' keeper fees of {self.amount(terms.keeper_fee)}; what is not used comes back"
        )
        chosen = " (half above the cheapest fitting ask)" if auto else ""
        lines.append(
            f"pays at most {format_rate(terms.ceiling, self.asset, places=9)} per unit{chosen}, "
            f"{_billing_words(terms.billing)}, for at most {format_duration(terms.max_seconds)}"
        )
        lines.append(
            f"brings {_about(resolved.download_bytes)}, may leave {_about(resolved.output_bytes)}; "
            f"everything uploaded is public; deadline {moment(terms.deadline)}"
        )
        lines.append("nobody can challenge this result: there is no court on this network yet")
        lines.append(workers_in_words(gates))
        return lines

    def _fingerprint(self, terms: Terms, deadline: str | None) -> str:
        """Name what a user would call the same job: everything but salt, clock and policy."""
        from hearth import words

        same = words.pack_terms(replace(terms, salt=0, deadline=0, policy=1))
        text = json.dumps([self.network.chain_id, self.network.jobs, deadline, [str(word) for word in same]])
        return hashlib.sha256(text.encode()).hexdigest()

    def _plan_facts(self, plan: Plan) -> dict[str, Any]:
        terms = plan.terms
        return {
            "schema": "hearth.plan/1",
            "network": self.network.name,
            "name": plan.resolved.name,
            "spec": terms.spec.hex(),
            "runtime": plan.resolved.runtime,
            "units": terms.units,
            "asset": self.asset.symbol,
            "escrow": str(_escrow(terms)),
            "ceiling": str(terms.ceiling),
            "keeper_fee": str(terms.keeper_fee),
            "max_seconds": terms.max_seconds,
            "deadline": terms.deadline,
            "download_bytes": plan.resolved.download_bytes,
            "output_bytes": plan.resolved.output_bytes,
            "workers": {gate.name.lower(): count for gate, count in sorted(plan.gates.items())},
            "can_take": plan.takers,
            "auto_price": plan.auto_price,
            "text": list(plan.lines),
            "dry_run": self.dry_run,
        }

    # ---- from plan to chain ----

    def _submit(
        self, loaded: LoadedSpec, again: bool, anyway: bool, wait: bool, results: Path | None
    ) -> dict[str, Any]:
        with self._planned(loaded) as plan:
            for line in plan.lines:
                self.tell("note", {"text": line})
            known = None if again else self._pending(plan.fingerprint)
            if known is not None:
                self.tell(
                    "note", {"text": f"this job was posted already: {known['job'][:14]}; --again posts a new one"}
                )
            else:
                self._require_taker(plan.gates, plan.terms, anyway)
                self._require_price(plan.terms)
            if self.dry_run:
                return {**self._plan_facts(plan), "pending": known["job"] if known else None}
            if known is None:
                self.tell(
                    "confirm",
                    {"text": f"post it for at most {self.amount(_escrow(plan.terms))}?", "needed": plan.auto_price},
                )
                self.unlocked(self.key())
                self._upload(plan)
                terms = replace(plan.terms, salt=secrets.randbits(96))
                posted = self._post(terms, plan.fingerprint, str(loaded.source.name))
            else:
                posted = self._repost(known)
        return self._finish(posted, wait, results)

    def _require_taker(self, gates: Mapping[Gate, int], terms: Terms, anyway: bool) -> None:
        able = gates.get(Gate.FITS, 0) + sum(gates.get(gate, 0) for gate in PASSING)
        if able or anyway:
            return
        text = workers_in_words(gates)
        priced = gates.get(Gate.PRICE, 0)
        hint = "raise the price; hearth offers shows the asks" if priced else "hearth offers; or post it with --anyway"
        raise NoWorkerError(
            f"no worker can take this job: {text}",
            hint=hint,
            code="PRICE_TOO_LOW" if priced and priced == sum(gates.values()) else "NO_WORKER",
            workers={gate.name.lower(): count for gate, count in sorted(gates.items())},
            ceiling=str(terms.ceiling),
        )

    def _require_price(self, terms: Terms) -> None:
        native = self.network.asset.address is None
        gas = POST_GAS + (0 if native else APPROVE_GAS)
        self.require_funds(terms.submitter, asset_units=_escrow(terms), gas=gas, what="this job")

    def _upload(self, plan: Plan) -> None:
        """Store every local source, and refuse one that changed since it was read."""
        from hearth.spec import canonical, local_sources
        from hearth.spec.workdir import workdir_rules

        for where, src in local_sources(plan.loaded.spec):
            if src.startswith("ipfs://"):
                continue
            path = plan.fetched.get(src) or plan.loaded.folder / Path(src).expanduser()
            rules = workdir_rules(path) if where[0] == "workdir" else None
            size = plan.blobs[src].size

            entry = self.store.add_path(path, ignore=rules, progress=self._meter(f"upload {src}", size))
            if str(entry.cid) != plan.blobs[src].cid:
                raise SpecError(f"{src} changed while it was read", hint="submit it again", code="SOURCE_CHANGED")
        digest = self.store.put_json(canonical(plan.resolved))
        assert digest == plan.terms.spec, "the store named the spec otherwise than we did"

    def _post(self, terms: Terms, fingerprint: str, note: str) -> dict[str, Any]:
        """Journal terms, then approve and post them."""
        from hearth import words

        job_id = self.market.job_id(terms)
        record = {
            "schema": "hearth.posted/1",
            "job": job_hex(job_id),
            "fingerprint": fingerprint,
            "from": note,
            "terms": [value.hex() if isinstance(value, bytes) else str(value) for value in words.pack_terms(terms)],
            "seen": False,
        }
        with self.sender() as sender:
            self._write_record(record)
            sent = self._send_post(sender, terms)
        return {**record, "transactions": sent}

    def _send_post(self, sender: Sender | Rehearsal, terms: Terms) -> list[dict[str, Any]]:
        market = self.market
        job_id = market.job_id(terms)
        sent = []
        if market.allowance(terms.submitter, self.network.jobs) < _escrow(terms):
            sent.append(self.send(sender, market.calls.approve_post(terms), f"approve/{job_id.hex()}"))
        sent.append(self.send(sender, market.calls.post(terms), f"post/{job_id.hex()}"))
        return sent

    def _repost(self, record: dict[str, Any]) -> dict[str, Any]:
        """Make sure that a journalled job is on the chain: posted already, or posted now with the same terms."""
        terms = _terms_of(record)
        if self.market.job_word(self.market.job_id(terms)):
            return {**record, "transactions": []}
        with self.sender() as sender:
            return {**record, "transactions": self._send_post(sender, terms)}

    def _finish(self, record: dict[str, Any], wait: bool, results: Path | None) -> dict[str, Any]:
        """Report a posted job; with `wait`, after its end and with its results."""
        job = str(record["job"])
        report: dict[str, Any] = {
            "schema": "hearth.submitted/1",
            "job": job,
            "transactions": record["transactions"],
            "waited": wait,
        }
        if not wait:
            return report
        self.tell("posted", {"job": job, "text": f"job {job}"})
        report["end"] = self.wait(job)
        report["results"] = self.results_of(job, results)
        self._mark_seen(job)
        return report

    @abstractmethod
    def results_of(self, job: str, folder: Path | None) -> dict[str, Any]:
        """Return what a job left; the class that reads results says how."""

    # ---- the journal of posted terms ----

    def _pending(self, fingerprint: str) -> dict[str, Any] | None:
        """Return the journalled job of a fingerprint whose end nobody saw, if it is posted or can still be."""
        from hearth import protocol, words

        market = self.market
        for path in sorted(self._records.glob("0x*.json"), key=lambda path: -path.stat().st_mtime_ns):
            try:
                record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if record.get("fingerprint") != fingerprint or record.get("seen"):
                continue
            terms = _terms_of(record)
            if market.job_word(market.job_id(terms)):
                return record
            # Terms that the chain has not seen are posted again only while it would still take them.
            policies = market.policies()
            now = market.port.head().timestamp
            if terms.policy == policies.word and protocol.has_time(terms, words.unpack_policy(terms.policy), now):
                return record
        return None


class _Nowhere:
    """Name blocks without keeping them."""

    def put_block(self, data: bytes, codec: int = 0x55) -> Cid:
        """Return the CID that the block would have."""
        from hearth import cid

        return cid.of(data, codec)


def workers_in_words(gates: Mapping[Gate, int]) -> str:
    """Return "14 workers: 9 short of VRAM, 2 above your price -> 3 can take it"."""
    total = sum(gates.values())
    if not total:
        return "no worker is registered on this network"
    kept = ", ".join(
        f"{count} {GATE_WORDS[gate]}" for gate, count in sorted(gates.items()) if gate is not Gate.FITS and count
    )
    able = gates.get(Gate.FITS, 0) + sum(gates.get(gate, 0) for gate in PASSING)
    noun = "worker" if total == 1 else "workers"
    return f"{total} {noun}{': ' + kept if kept else ''} -> {able} can take it"


def _about(size: int) -> str:
    """Return bytes for people, to the whole unit above."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> shift >= 10:
            return f"{-(-size >> shift)} {unit}"
    return f"{size} bytes"


def _escrow(terms: Terms) -> int:
    from hearth import protocol

    return protocol.escrow_at_post(terms)


def _billing_words(billing: Billing) -> str:
    return {
        Billing.FIXED: "the full time whatever it takes",
        Billing.FUEL: "by the instructions executed (the worker's word, without a court)",
        Billing.METERED: "by the time that it takes (the worker owns the clock)",
    }[billing]


def _terms_of(record: Mapping[str, Any]) -> Terms:
    from hearth import words

    raw = record["terms"]
    packed = [bytes.fromhex(raw[i]) if i in (1, 8) else int(raw[i]) for i in range(9)]
    return words.unpack_terms(tuple(packed))  # type: ignore[arg-type]


def _name_of(program: str) -> str:
    import re

    stem = Path(program).stem if program.endswith(".wasm") else program.split("@")[0].rpartition("/")[2]
    name = re.sub("[^A-Za-z0-9._ -]", "-", stem.partition(":")[0])[:64].strip(" .-_")
    return name or "job"


def _input_of(text: str) -> dict[str, str]:
    src, colon, dst = text.rpartition(":")
    if not colon or not dst.startswith("/"):
        raise UsageError(f'-i "{text}" is not SRC:DST', hint="write -i ./data:/in/data; see hearth run --help")
    return {"src": src, "dst": dst}


def _download(url: str, path: Path) -> None:
    """Fetch a URL once, whole, within bounds on bytes and silence."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    try:
        with (
            urlopen(Request(url, headers={"User-Agent": "hearth"}), timeout=URL_SECONDS) as answer,
            path.open("wb") as out,
        ):
            taken = 0
            while chunk := answer.read(1 << 20):
                taken += len(chunk)
                if taken > MAX_URL_BYTES:
                    raise StorageError(
                        f"{url} has more than {format_size(MAX_URL_BYTES)}", hint="name a CID", code="TOO_LARGE"
                    )
                out.write(chunk)
    except (URLError, OSError, ValueError) as error:
        raise StorageError(f"{url} cannot be fetched: {error}", hint="hearth check FILE", code="URL_DOWN") from error
