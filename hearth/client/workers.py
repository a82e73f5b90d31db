"""Provide a machine: settings, registration, price, stake, exit, and what the running worker says.

Owner actions can be prepared on the worker's machine (`print_tx`) and sent from the one with the owner's key (`tx`).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import ConfigError, NotFoundError, RefusedError, UsageError
from hearth.client.local import Local
from hearth.client.views import job_hex
from hearth.protocol.units import format_rate, parse_amount, parse_rate

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.protocol.types import Node
    from worker.settings import Settings as WorkerSettings

DEFAULT_CONFIG: Final = Path("worker.toml")
OWNER_GAS: Final = 300_000
_TOML: Final = """\
# A worker's settings: hearth worker doctor checks them, hearth worker register and start use them.
network = {network}
home = {home}
rpc = {rpc}
stores = {stores}

[account]
payout = {payout}                # who owns the stake and is paid: a cold address is best
keystore = {keystore}            # the hot key that works
password_file = {password_file}

[offer]
price = {price}                  # what one slot asks per hour
country = {country}
slots = {slots}
gpus = {gpus}
{sizes}
[accept]
confirmations = {confirmations}

[storage]
reserve = {reserve}

[metrics]
listen = {listen}
"""


class Workers(Local):
    """A provider's commands."""

    def worker_init(
        self,
        *,
        config: Path = DEFAULT_CONFIG,
        price: str,
        country: str,
        payout: str | None = None,
        home: Path | None = None,
        slots: int = 1,
        runtimes: tuple[str, ...] = (),
        gpus: str = "all",
        cores: int | None = None,
        memory: str | None = None,
        disk: str | None = None,
        listen: str | None = None,
    ) -> dict[str, Any]:
        """Write a worker.toml for this machine and the operator's key. Raises ConfigError CONFIG_EXISTS."""
        from hearth.config.settings import network_file, rpc_urls
        from worker import settings as worker_settings

        if config.exists():
            raise ConfigError(
                f"{config} exists already", hint="use --config FILE for another worker", code="CONFIG_EXISTS"
            )
        key = self.key("operator")
        beside = key.path.with_suffix(".password")
        password = self.settings.password_file or (beside if beside.is_file() else None)
        if password is None:
            raise ConfigError(
                f"a worker reads the password of {key.name} from a file",
                hint="use --password-file FILE",
                code="NO_PASSWORD",
                component="wallet",
            )
        sizes = {
            "runtimes": list(runtimes) or None,
            "cores": cores,
            "memory": memory,
            "disk": disk,
        }
        local = self.local
        text = _TOML.format(
            network=_toml(str(network_file(self.settings).resolve())),
            home=_toml(str((home or self.settings.home / "workers" / key.name).absolute())),
            rpc=_toml(list(rpc_urls(self.settings, self.network))),
            stores=_toml(list(self.store_urls[:1])),
            payout=_toml((payout or self.key("owner").address).lower()),
            keystore=_toml(str(key.path.absolute())),
            password_file=_toml(str(password.absolute())),
            price=_toml(price),
            country=_toml(country),
            slots=slots,
            gpus=_toml(gpus),
            sizes="".join(f"{name} = {_toml(value)}\n" for name, value in sizes.items() if value is not None),
            confirmations=0 if local else 2,
            reserve=_toml("256MiB" if local else "2GiB"),
            listen=_toml(listen if listen is not None else "" if local else "127.0.0.1:9464"),
        )
        # Refuse what the worker would refuse before a file stands there.
        import tomllib

        parsed = worker_settings.parse(tomllib.loads(text), config)
        parsed.ask(self.asset)
        if not self.dry_run:
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(text, encoding="utf-8")
        return {
            "schema": "hearth.worker.init/1",
            "config": str(config),
            "operator": key.address,
            "dry_run": self.dry_run,
        }

    def worker_doctor(self, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Look at everything that a worker needs; PASS, WARN or FAIL, with the fix."""
        from worker.doctor import diagnose
        from worker.settings import load

        rows = [
            asdict(row) | {"level": row.level.value} for row in diagnose(load(config), self.network, self._market.port)
        ]
        worst = next((level for level in ("FAIL", "WARN") if any(row["level"] == level for row in rows)), "PASS")
        return {"schema": "hearth.doctor/1", "result": worst, "checks": rows}

    def worker_selftest(self, *, config: Path | None = None) -> dict[str, Any]:
        """Run a real program in each runtime of this machine, end to end through its sandbox, and check it.

        Without a worker.toml the container engine is the default one.
        """
        from worker.runtimes.docker import DockerRuntime
        from worker.selftest import selftest
        from worker.settings import docker_of, load

        runtime = DockerRuntime() if config is None else docker_of(load(config))
        rows = [asdict(row) | {"level": row.level.value} for row in selftest(runtime)]
        worst = "FAIL" if any(row["level"] == "FAIL" for row in rows) else "PASS"
        return {"schema": "hearth.selftest/1", "result": worst, "checks": rows}

    def worker_register(
        self,
        *,
        config: Path = DEFAULT_CONFIG,
        stake: str | None = None,
        print_tx: bool = False,
        tx: Path | None = None,
    ) -> dict[str, Any]:
        """Register this machine with the stake, by default the market's minimum.

        Raises ConfigError UNSAFE_ENGINE where it would offer containers in an engine with known holes, RefusedError,
        FundsError.
        """
        from hearth.chain.keys import read_key
        from worker.doctor import refuse_unsafe
        from worker.settings import load, probe_offer
        from worker.watch import find_node

        if tx is not None:
            return self._send_prepared(tx)
        settings = load(config)
        operator = read_key(settings.account.keystore).address
        found = find_node(self.market, None, operator, self.market.port.head().hash)
        if found is not None:
            raise RefusedError(
                f"the key {operator} operates node {found.id} already",
                hint="hearth worker update; hearth worker status",
                code="REGISTERED",
                component="worker",
                node=found.id,
            )
        offer = probe_offer(settings, self.asset)
        refuse_unsafe(settings, self.network.chain_id, offer)
        least = int(self.market.immutable("NodeRegistry", "minimum_stake"))
        amount = least if stake is None else parse_amount(stake, self.asset)
        if amount < least:
            raise RefusedError(
                f"a stake of {self.amount(amount)} is below this market's minimum of {self.amount(least)}",
                hint=f'use --stake "{self.amount(least)}"',
                code="STAKE_SHORT",
                component="worker",
                minimum=str(least),
            )
        manifest = self._manifest(settings)
        call = self.market.calls.register(operator, offer, manifest, amount)
        report = self._owner_action(
            "register",
            call,
            f"register/{operator}/{self._owner_nonce(settings)}",
            settings.account.payout,
            stake=amount,
            print_tx=print_tx,
        )
        if not print_tx and not self.dry_run:
            node = find_node(self.market, None, operator, "latest")
            report["node"] = None if node is None else node.id
        return {**report, "operator": operator, "stake": str(amount), "stake_text": self.amount(amount)}

    def worker_update(
        self, *, config: Path = DEFAULT_CONFIG, print_tx: bool = False, tx: Path | None = None
    ) -> dict[str, Any]:
        """Replace an idle node's offer by what the settings and the machine say now."""
        from worker.doctor import refuse_unsafe
        from worker.settings import load, probe_offer

        if tx is not None:
            return self._send_prepared(tx)
        settings = load(config)
        node = self._node_of(settings)
        offer = probe_offer(settings, self.asset)
        refuse_unsafe(settings, self.network.chain_id, offer)
        if node.hot.busy:
            raise RefusedError(
                f"node {node.id} runs {node.hot.busy} leases, and an offer changes only while none runs",
                hint="hearth worker drain, then hearth worker update",
                code="BUSY",
                component="worker",
            )
        call = self.market.calls.update_offer(node.id, offer, self._manifest(settings))
        key = f"offer/{node.id}/{self._owner_nonce(settings)}"
        return self._owner_action("update", call, key, node.owner, print_tx=print_tx)

    def worker_price(
        self, rate: str, *, config: Path = DEFAULT_CONFIG, print_tx: bool = False, tx: Path | None = None
    ) -> dict[str, Any]:
        """Change a node's ask; it takes effect after the market's notice. Raises RefusedError while one is pending."""
        from worker.settings import load

        if tx is not None:
            return self._send_prepared(tx)
        settings = load(config)
        node = self._node_of(settings)
        ask = parse_rate(rate, self.asset, round_up=True)
        key = f"ask/{node.id}/{ask}/{self._owner_nonce(settings)}"
        report = self._owner_action(
            "price", self.market.calls.set_ask(node.id, ask), key, node.owner, print_tx=print_tx
        )
        return {**report, "node": node.id, "ask": str(ask), "ask_text": format_rate(ask, self.asset, places=9)}

    def worker_stake(
        self, amount: str, *, config: Path = DEFAULT_CONFIG, print_tx: bool = False, tx: Path | None = None
    ) -> dict[str, Any]:
        """Add stake to a node; stake leaves only by exit."""
        from worker.settings import load

        if tx is not None:
            return self._send_prepared(tx)
        settings = load(config)
        node = self._node_of(settings)
        units = parse_amount(amount, self.asset)
        if units == 0:
            raise UsageError("a stake of nothing adds nothing", hint="hearth worker stake AMOUNT", code="BAD_AMOUNT")
        call = self.market.calls.add_stake(node.id, units)
        key = f"stake/{node.id}/{units}/{self._owner_nonce(settings)}"
        report = self._owner_action("stake", call, key, node.owner, stake=units, print_tx=print_tx)
        return {**report, "node": node.id, "added": str(units), "added_text": self.amount(units)}

    def worker_exit(
        self,
        *,
        config: Path = DEFAULT_CONFIG,
        cancel: bool = False,
        finish: bool = False,
        print_tx: bool = False,
        tx: Path | None = None,
    ) -> dict[str, Any]:
        """Start a node's exit; after the unbonding time `finish` credits its stake; `cancel` stays after all."""
        from worker.settings import load

        if tx is not None:
            return self._send_prepared(tx)
        if cancel and finish:
            raise UsageError("--cancel and --finish exclude each other", hint="hearth worker exit --help")
        settings = load(config)
        node = self._node_of(settings)
        calls = self.market.calls
        name = "cancel" if cancel else "finish" if finish else "start"
        call = {"cancel": calls.exit_cancel, "finish": calls.exit_finish, "start": calls.exit_start}[name](node.id)
        key = f"exit/{name}/{node.id}/{self._owner_nonce(settings)}"
        report = self._owner_action(f"exit {name}", call, key, node.owner, print_tx=print_tx)
        return {**report, "node": node.id, "unbonding": self.network.node_parameters.unbonding}

    def worker_start(self, *, config: Path = DEFAULT_CONFIG) -> None:
        """Run the worker in this process until it is told to stop."""
        from hearth.daemon.logs import configure_logs
        from hearth.daemon.loop import harden
        from worker.__main__ import start

        configure_logs(False)
        harden()
        start(config)

    def worker_pause(self, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Tell the worker to take nothing new and to end what it runs; idle and paused, it does not beat."""
        return self._mode(config, "pause")

    def worker_resume(self, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Tell a paused worker to take work again."""
        return self._mode(config, "run")

    def worker_drain(self, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Tell the worker to end what it runs and then stop."""
        return self._mode(config, "drain")

    def worker_status(self, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Return what the chain and the running worker say of this machine's node."""
        from hearth.protocol import formulas, reputation
        from worker.settings import load
        from worker.shell import read_mode, read_status

        settings = load(config)
        node = self._node_of(settings)
        head = self.market.port.head()
        parameters = self.network.node_parameters
        status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
        said = read_status(settings.home)
        return {
            "schema": "hearth.worker.status/1",
            "node": node.id,
            "status": status.name.lower(),
            "owner": node.owner,
            "operator": node.operator,
            "stake": str(node.stake),
            "stake_text": self.amount(node.stake),
            "bond": str(node.hot.bond),
            "busy": node.hot.busy,
            "slots": node.offer.slots,
            "ask_text": format_rate(formulas.ask_in_force(node, head.timestamp), self.asset, places=9),
            "last_beat": node.hot.beat,
            "seconds_since_beat": head.timestamp - node.hot.beat if node.hot.beat else None,
            "reputation_bps": reputation.reputation(node.hot.r, node.hot.s),
            "quarantined_until": node.hot.quarantine if node.hot.quarantine > head.timestamp else None,
            "exit_at": node.exit_at or None,
            "mode": read_mode(settings.home),
            "process": said,
        }

    def worker_why(self, job: str, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Say why this node does or does not take a job: the chain's gate per unit, and the worker's reasons."""
        from hearth.client.preflight import GATE_WORDS
        from hearth.protocol.types import Gate, State
        from worker.settings import load
        from worker.shell import read_status

        settings = load(config)
        node = self._node_of(settings)
        view = self._look(self.job_id(job))
        indices = [index for index, unit in enumerate(view.units) if unit.state is State.OPEN][:20]
        if view.untouched:
            indices.append(len(view.units))
        rows = []
        for index in indices:
            gate = self.market.fit(view.posted.packed, index, node.id)
            text = (
                "it fits"
                if gate is Gate.FITS
                else f"this node is {GATE_WORDS.get(gate, gate.name.lower().replace('_', ' '))}"
            )
            rows.append({"unit": index, "gate": gate.name.lower(), "text": text})
        said = read_status(settings.home) or {}
        reasons = said.get("reasons", {}).get(view.posted.job_id.hex(), [])
        return {
            "schema": "hearth.worker.why/1",
            "job": job_hex(view.posted.job_id),
            "state": view.state,
            "node": node.id,
            "units": rows,
            "worker": reasons,
            "worker_alive": bool(said.get("alive")),
        }

    def worker_earnings(self, *, config: Path = DEFAULT_CONFIG) -> dict[str, Any]:
        """Return the node's books, read from the chain: paid, failed, declined, timed out, slashed."""
        from worker.settings import load
        from worker.watch import Watcher

        node = self._node_of(load(config))
        watcher = Watcher(self.market, node.id)
        watcher.sync()
        books = asdict(watcher.earnings)
        amounts = ("income", "fees", "slashed", "liveness_fees")
        credit = self.market.credit(node.owner)
        return {
            "schema": "hearth.earnings/1",
            "node": node.id,
            "owner": node.owner,
            "asset": self.asset.symbol,
            **{name: str(value) if name in amounts else value for name, value in books.items()},
            "owner_credit": str(credit),
            "text": {name: self.amount(books[name]) for name in amounts} | {"owner's credit": self.amount(credit)},
        }

    # ---- inside ----

    def _node_of(self, settings: WorkerSettings) -> Node:
        from hearth.chain.keys import read_key
        from worker.watch import find_node

        operator = read_key(settings.account.keystore).address
        node = find_node(self.market, settings.node, operator, self.market.port.head().hash)
        if node is None:
            raise NotFoundError(
                f"no node of {self.network.name} is operated by {operator}",
                hint="hearth worker register",
                code="NO_NODE",
                component="worker",
            )
        return node

    def _manifest(self, settings: WorkerSettings) -> bytes:
        """Store the manifest, the details of the offer that the chain only names, and return its digest."""
        from hearth import __version__
        from hearth.storage import canonical
        from worker import gpu

        found = () if settings.offer.gpus == "none" else gpu.probe().gpus
        document = {
            "version": 1,
            "software": f"hearth {__version__}",
            "country": settings.offer.country,
            "gpus": [{"name": one.name, "driver": one.driver, "vram_gib": one.vram_gib} for one in found],
        }
        if self.dry_run:
            return canonical.digest(document)
        from hearth.storage.stores import open_store

        store = open_store(settings.stores[0])
        try:
            return store.put_json(document)
        finally:
            store.close()

    def _owner_nonce(self, settings: WorkerSettings) -> int:
        return self.market.port.nonce(settings.account.payout)

    def _owner_action(
        self, action: str, call: Call, key: str, owner: str, *, stake: int = 0, print_tx: bool = False
    ) -> dict[str, Any]:
        """Send a call of the node's owner, or with `print_tx` return it for another machine to send."""
        report: dict[str, Any] = {"schema": "hearth.action/1", "action": action, "dry_run": self.dry_run}
        if print_tx:
            prepared = {
                "schema": "hearth.tx/1",
                "action": action,
                "chain_id": self.network.chain_id,
                "from": owner,
                "to": call.to,
                "data": "0x" + call.data.hex(),
                "value": str(call.value),
                "approve": str(stake) if stake and self.network.asset.address else "0",
                "key": key,
            }
            return {**report, "prepared": prepared, "transactions": []}
        mine = self.key("owner")
        if mine.address != owner:
            raise ConfigError(
                f"{owner} owns this node, and the key {mine.name} is {mine.address}",
                hint="use --account NAME, or --print-tx here and --tx FILE on the owner's machine",
                code="NOT_OWNER",
                component="worker",
            )
        self.require_funds(owner, asset_units=stake, gas=OWNER_GAS, what=action)
        sent = []
        with self.sender("owner") as sender:
            if stake and self.market.allowance(owner, self.network.nodes) < stake:
                sent.append(self.send(sender, self.market.calls.approve_stake(stake), f"approve/{key}"))
            # Simulated without its approval, the call would be refused.
            if not (self.dry_run and sent):
                sent.append(self.send(sender, call, key))
        return {**report, "transactions": sent}

    def _send_prepared(self, path: Path) -> dict[str, Any]:
        """Send a call that --print-tx wrote on another machine, after checking whose and for which market it is."""
        from hearth.chain.port import Call
        from hearth.market.abi import codec

        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            raw = raw.get("prepared", raw)
            chain, owner, to = int(raw["chain_id"]), str(raw["from"]).lower(), str(raw["to"]).lower()
            data, value = bytes.fromhex(raw["data"][2:]), int(raw["value"])
            stake, action, key = int(raw["approve"]), str(raw["action"]), str(raw["key"])
            # The file's own word for what it does is not taken: the calldata says it.
            told = codec("NodeRegistry").decode_input(data)
            if told is None:
                raise ValueError("its data calls nothing of NodeRegistry")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path} is no prepared transaction: {error!r}", hint="hearth worker register --print-tx", code="BAD_TX"
            ) from error
        if chain != self.network.chain_id or to != self.network.nodes:
            raise RefusedError(
                f"{path} is for contract {to} on chain {chain}, not for {self.network.name}",
                hint="use --network NAME",
                code="WRONG_MARKET",
            )
        function, arguments = told
        shown = ", ".join(f"{name} {_plain(argument)}" for name, argument in arguments.items())
        question = f"{function}({shown}) as {owner}, paying {self.amount(value or stake)}?"
        self.tell("confirm", {"text": question, "needed": False})
        call = Call(to, data, value, f"nodes.{function}")
        report = self._owner_action(action, call, key, owner, stake=stake or value)
        return {**report, "prepared_in": str(path)}

    def _mode(self, config: Path, mode: str) -> dict[str, Any]:
        from worker.settings import load
        from worker.shell import read_status, set_mode

        settings = load(config)
        if not self.dry_run:
            set_mode(settings.home, mode)
        said = read_status(settings.home)
        return {
            "schema": "hearth.worker.mode/1",
            "mode": mode,
            "alive": bool(said and said["alive"]),
            "dry_run": self.dry_run,
        }


def _plain(argument: object) -> str:
    """Return an argument of a call for people."""
    return "0x" + argument.hex() if isinstance(argument, bytes) else str(argument)


def _toml(value: object) -> str:
    """Return a string, a number or a list of strings as TOML, whose basic strings are JSON's."""
    return json.dumps(value)
